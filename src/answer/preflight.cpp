#include "headroom/answer/preflight.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/interop/launch_patch.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stage_places.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/search/neighbours.hpp"
#include "headroom/search/space.hpp"
#include "interop/unified_diff.hpp"

namespace headroom {
namespace {

constexpr std::size_t most_changes = 3;

// Whether the request has what the file says of a field, or its default.
bool is_as_read(const PreflightQuestion& question, std::string_view field) {
  const StrategyField& known = *find_field(field);
  const LaunchSetting* const setting = find_setting(question.run, field);
  const Workload& workload = question.request.workload;
  const std::string read = setting != nullptr ? plain_value(known, setting->value, workload)
                                              : value_of(known, Strategy(), workload);
  return value_of(known, question.request.strategy, workload) == read;
}

PreflightFinding finding(const PreflightQuestion& question, Problem problem, std::string source) {
  PreflightFinding result{.problem = std::move(problem),
                          .written = {},
                          .at = {.file = question.file},
                          .source = std::move(source)};
  const LaunchSetting* const setting = find_setting(question.run, result.problem.where);
  if (setting == nullptr) return result;
  if (find_field(result.problem.where) != nullptr && !is_as_read(question, result.problem.where))
    return result;  // a flag of the command line took its place
  result.written = setting->written;
  result.at = setting->at;
  return result;
}

// Whether the file states the value that a rule says to have no words.
bool is_stated(const PreflightQuestion& question, const BrokenRule& broken) {
  constexpr std::array of_optimizer{"optimizer", "main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"};
  if (!broken.rule->of_words) return false;
  const bool optimizer = contains(of_optimizer, broken.problem.where);
  return std::any_of(
      question.run.strategy.begin(), question.run.strategy.end(), [&](const LaunchSetting& it) {
        return it.field == broken.problem.where || (optimizer && contains(of_optimizer, it.field));
      });
}

// The rules that the request breaks. `stated`: takes the fields whose values have no words but in the file.
std::vector<BrokenRule> rules_broken(const PreflightQuestion& question, std::vector<std::string>& stated) {
  std::vector<BrokenRule> broken =
      broken_rules(asked(question.request, question.request.strategy), RuleSet{});
  std::erase_if(broken, [&](const BrokenRule& one) {
    const bool is = is_stated(question, one);
    if (is) stated.push_back(one.problem.where);
    return is;
  });
  return broken;
}

// What the framework refuses in the file, but where a flag of the command line took the place of a setting.
std::vector<LaunchRefusal> refusals_of(const PreflightQuestion& question) {
  std::vector<LaunchRefusal> refusals = question.run.refusals;
  if (auto refusal = batch_refusal(question.run, question.request.strategy.data_parallel))
    refusals.push_back(std::move(*refusal));
  std::erase_if(refusals, [&](const LaunchRefusal& refusal) {
    return !std::all_of(refusal.fields.begin(), refusal.fields.end(),
                        [&](const std::string& field) { return is_as_read(question, field); });
  });
  return refusals;
}

std::vector<PreflightFinding> findings_of(const PreflightQuestion& question,
                                          const std::vector<LaunchRefusal>& refusals,
                                          const std::vector<BrokenRule>& broken) {
  std::vector<PreflightFinding> findings;
  for (const Problem& problem : question.problems) findings.push_back(finding(question, problem, {}));
  for (const LaunchRefusal& refusal : refusals) {
    findings.push_back({.problem = {.where = refusal.fields.front(), .rule = refusal.rule},
                        .written = refusal.written,
                        .at = refusal.at,
                        .source = refusal.source});
  }
  for (const BrokenRule& one : broken) {
    PreflightFinding& found = findings.emplace_back(finding(
        question, one.problem, std::string(own_source(question.run, one.problem.where, one.rule->source))));
    // Another framework may run what Megatron-LM refuses.
    const bool of_other = one.rule->source.starts_with("Megatron-LM") && found.source.empty();
    found.modelled = !of_other && !one.rule->source.starts_with("The stack's file");
  }
  return findings;
}

// Legal strategies near the request's that fit, as changes of it.
std::vector<Alternative> legal_neighbours(const Request& request, std::int64_t devices) {
  Space space{.devices = devices,
              .layouts = layouts_of(request.software),
              .schedules = searched_schedules(request.software)};
  std::vector<Alternative> alternatives;
  Request neighbour = request;
  for (const Strategy& strategy : nearest_that_fit(request, space, request.strategy, most_changes)) {
    neighbour.strategy = strategy;
    const Evaluation evaluation = settled(evaluate(neighbour));
    if (account(evaluation).verdict == Verdict::does_not_fit) continue;
    Edits edits = edits_of(strategy, request.strategy);
    std::erase_if(edits, [&](const Edit& edit) {
      return edit.value == value_of(*find_field(edit.field), request.strategy, request.workload);
    });
    alternatives.push_back({.changes = {std::move(edits)}, .plan = account(evaluation)});
  }
  return alternatives;
}

// That the stack's launcher has no flag for a value is no warning here: the file says it in its own words.
void leave_out_flags(Evaluation& evaluation) {
  const auto from = [](Plan& plan) {
    std::erase_if(plan.warnings, [](const Warning& warning) { return warning.code == no_launcher_flag; });
  };
  if (auto* const plan = std::get_if<Plan>(&evaluation)) from(*plan);
  if (auto* const infeasible = std::get_if<Infeasible>(&evaluation)) from(infeasible->attempt);
}

// Where a file states accumulation or no batch, the flags of a change must keep the global batch that it was evaluated
// with.
void keep_batch(const Request& request, std::vector<Alternative>& changes) {
  const std::string batch = std::to_string(request.workload.global_batch);
  for (Alternative& change : changes) {
    const bool moves = std::any_of(change.changes.begin(), change.changes.end(), [](const Edits& edits) {
      return std::any_of(edits.begin(), edits.end(), [](const Edit& edit) {
        return edit.field == "micro_batch" || edit.field == "data_parallel";
      });
    });
    if (moves) change.changes.push_back({{"global_batch", batch}});
  }
}

// The layers of each stage, if the request's stages are of unlike length and no layout says so.
std::optional<Edits> unstated_stages(const Request& request, Strategy strategy) {
  const std::int64_t stages = strategy.pipeline_parallel * strategy.virtual_pipeline;
  if (!strategy.stage_layers.empty() || request.model.layers % stages == 0) return std::nullopt;
  for (const StagePlace& place : stage_places(request.model, strategy))
    strategy.stage_layers.push_back(place.layers);
  return Edits{{"stage_layers", value_of(*find_field("stage_layers"), strategy, {})}};
}

// Megatron-LM starts stages of unlike length by a layout alone, which the flags of a change must name.
void name_stages(const Request& request, std::vector<Alternative>& changes) {
  const bool megatron = request.software.launcher == Launcher::megatron_lm ||
                        request.software.launcher == Launcher::megatron_bridge;
  if (!megatron) return;
  for (Alternative& change : changes) {
    if (auto stages = unstated_stages(request, change.plan.request.strategy))
      change.changes.push_back(std::move(*stages));
  }
}

// Where unlike stages are refused, a layout that states them is the smallest change.
void state_stages(const std::vector<LaunchRefusal>& refusals, PreflightReply& reply) {
  const bool refused = std::any_of(refusals.begin(), refusals.end(), [](const LaunchRefusal& refusal) {
    return contains(refusal.fields, std::string("stage_layers"));
  });
  const Plan* const plan = refused ? std::get_if<Plan>(&reply.estimate->evaluation) : nullptr;
  if (plan == nullptr) return;
  auto stages = unstated_stages(plan->request, plan->request.strategy);
  if (!stages) return;
  reply.changes.insert(reply.changes.begin(), {.changes = {std::move(*stages)}, .plan = *plan});
  if (reply.changes.size() > most_changes) reply.changes.resize(most_changes);
}

// Whether a change gives another value to a setting of everything that the framework refuses.
bool mends(const Alternative& change, const std::vector<LaunchRefusal>& refusals) {
  return std::all_of(refusals.begin(), refusals.end(), [&](const LaunchRefusal& refusal) {
    return std::any_of(change.changes.begin(), change.changes.end(), [&](const Edits& edits) {
      return std::any_of(edits.begin(), edits.end(),
                         [&](const Edit& edit) { return contains(refusal.fields, edit.field); });
    });
  });
}

// Keeps the changes with which the job starts, if there are any.
void keep_mending(const std::vector<LaunchRefusal>& refusals, PreflightReply& reply) {
  const auto does = [&](const Alternative& change) { return mends(change, refusals); };
  if (reply.changes.empty()) return;
  reply.mended = std::any_of(reply.changes.begin(), reply.changes.end(), does);
  if (reply.mended) std::erase_if(reply.changes, [&](const Alternative& change) { return !does(change); });
}

// The file says for how many GPUs it is: none of its changes is for another number.
std::optional<PreflightPatch> patch_of(const PreflightQuestion& question,
                                       const std::vector<Alternative>& changes) {
  if (question.run.devices && *question.run.devices != question.devices) return std::nullopt;
  std::vector<Edits> all;
  for (const Alternative& change : changes) {
    Edits& edits = all.emplace_back();
    for (const Edits& some : change.changes) edits.insert(edits.end(), some.begin(), some.end());
  }
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t one, std::size_t other) { return all[one].size() < all[other].size(); });
  for (const std::size_t i : order) {
    if (const auto text = patched_launch(question.file, question.run, *question.patched, all[i]))
      return PreflightPatch{.change = i,
                            .diff = unified_diff(question.file, launch_text(question.file), *text)};
  }
  return std::nullopt;
}

}  // namespace

PreflightOutcome outcome_of(const PreflightReply& reply) {
  if (reply.unread) return PreflightOutcome::unread;
  if (!reply.run.model) return PreflightOutcome::without_model;
  if (!reply.findings.empty()) {
    const bool refused = std::any_of(reply.findings.begin(), reply.findings.end(),
                                     [](const PreflightFinding& finding) { return finding.modelled; });
    return refused ? PreflightOutcome::refused : PreflightOutcome::not_modelled;
  }
  return fits(*reply.estimate) ? PreflightOutcome::starts : PreflightOutcome::does_not_fit;
}

PreflightReply answer(const PreflightQuestion& question) {
  Request request = question.request;
  const std::vector<BrokenRule> broken = rules_broken(question, request.insisted);
  const std::vector<LaunchRefusal> refusals = refusals_of(question);
  PreflightReply reply{.file = question.file,
                       .run = question.run,
                       .devices = question.devices,
                       .findings = findings_of(question, refusals, broken)};
  const std::int64_t replica =
      devices(request.strategy) / std::max<std::int64_t>(request.strategy.data_parallel, 1);
  const bool divides = question.devices % replica == 0;
  const bool legal = broken.empty();
  if (legal) {
    reply.estimate = answer(EstimateQuestion{.request = request, .training = question.training});
    leave_out_flags(reply.estimate->evaluation);
    reply.changes = std::exchange(reply.estimate->alternatives, {});
    if (!divides) reply.estimated_devices = devices(request.strategy);
  }
  if (!legal || !divides) reply.changes = legal_neighbours(request, question.devices);
  if (question.run.accumulation || find_setting(question.run, "global_batch") == nullptr)
    keep_batch(request, reply.changes);
  name_stages(request, reply.changes);
  if (legal && divides) state_stages(refusals, reply);
  keep_mending(refusals, reply);
  if (question.patched) reply.patch = patch_of(question, reply.changes);
  return reply;
}

}  // namespace headroom
