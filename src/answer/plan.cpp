#include "headroom/answer/plan.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/io/spreads_file.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/search/feasibility.hpp"
#include "headroom/search/find_held.hpp"
#include "headroom/search/given_values.hpp"
#include "headroom/search/idle_devices.hpp"
#include "headroom/search/insisted.hpp"
#include "headroom/search/obstacle.hpp"
#include "headroom/search/widen.hpp"

namespace headroom {
namespace {

// What an iteration may take, where that is asked.
std::optional<Seconds> limit_of(const PlanQuestion& question, const Workload& workload,
                                std::int64_t devices) {
  if (!question.deadline) return question.find ? question.find->within : std::nullopt;
  const Training training = training_on(question.training, question.base.system);
  return iteration_by(training, workload, devices, *question.deadline);
}

// The inverse question, where there is one; a deadline is one. It speaks of predicted times.
std::optional<Question> inverse_of(const PlanQuestion& question) {
  std::optional<Question> inverse = question.find;
  if (question.deadline && !inverse) {
    inverse = Question{.extreme = Extreme::min_devices, .most = usual_most_devices};
  }
  if (!inverse) return inverse;
  double share = 1;
  if (question.odds && question.base.system.performance) {
    const Spread spread = iteration_spread(question.base, embedded_spreads()).spread;
    share = predicted_for(Seconds(1), *question.odds, spread).count();
  }
  if (question.deadline) {
    EXPECTS(inverse->extreme == Extreme::min_devices && question.training.tokens > 0);
    inverse->run = RunLimit{.training = training_on(question.training, question.base.system),
                            .deadline = *question.deadline,
                            .share = share};
  } else if (inverse->within) {
    inverse->within = share * *inverse->within;
  }
  return inverse;
}

// What is compared: without other systems, devices or batches, the question's own.
Compared comparison_of(const PlanQuestion& question) {
  Compared comparison{.offers = question.offers,
                      .device_counts = question.device_counts,
                      .global_batches = question.global_batches};
  if (comparison.offers.empty()) {
    comparison.offers.push_back({.system = question.base.system,
                                 .software = question.base.software,
                                 .layouts = question.space.layouts,
                                 .price_per_device_hour = question.training.price_per_device_hour});
  }
  if (comparison.device_counts.empty()) comparison.device_counts.push_back(question.space.devices);
  if (comparison.global_batches.empty())
    comparison.global_batches.push_back(question.base.workload.global_batch);
  return comparison;
}

// Makes a task that of what was found, or of the least that was asked for where nothing fits.
void put_found(PlanTask& task) {
  const Question& question = task.found->question;
  const bool devices = question.extreme == Extreme::min_devices;
  std::int64_t value = task.found->value.value_or(devices ? question.most : question.step);
  if (task.found->micro_batch) {
    value = task.space.devices * *task.found->micro_batch;
    task.space.micro_batch = {.only = {*task.found->micro_batch}};
  }
  put(question.extreme, value, task.base, task.space);
  if (devices) task.comparison.device_counts = {task.space.devices};
  if (question.extreme == Extreme::max_batch) {
    task.comparison.global_batches = {task.base.workload.global_batch};
  }
}

std::vector<Outlook> outlooks_of(const PlanReply& reply, const std::vector<Candidate>& candidates) {
  std::vector<Outlook> outlooks;
  if (!reply.spread) return outlooks;
  outlooks.reserve(candidates.size());
  std::vector<IterationSpread> spreads;
  for (const Offer& offer : reply.comparison.offers) {
    Request request = reply.base;
    request.system = offer.system;
    spreads.push_back(iteration_spread(request, embedded_spreads()));
  }
  for (const auto& candidate : candidates) {
    const Variant& variant = variant_of(reply, candidate);
    Outlook outlook{.iteration = iteration_interval(candidate.iteration, spreads[variant.offer].spread)};
    if (reply.training.tokens > 0) {
      Workload workload = reply.base.workload;
      workload.global_batch = variant.global_batch;
      outlook.training = training_interval(training_of(reply, candidate), workload, candidate.iteration,
                                           outlook.iteration, devices(candidate.strategy));
    }
    outlooks.push_back(outlook);
  }
  return outlooks;
}

std::vector<EstimateReply> accounts_of(const PlanReply& reply, std::size_t most) {
  std::vector<EstimateReply> accounts;
  for (std::size_t i = 0; i < std::min(most, reply.result.plans.size()); ++i) {
    const Candidate& candidate = reply.result.plans[i];
    Request request = request_of(reply.base, reply.comparison, variant_of(reply, candidate));
    request.strategy = candidate.strategy;
    accounts.push_back(estimated(evaluate(request), training_of(reply, candidate)));
  }
  return accounts;
}

// Puts system, stack, batch and devices of a candidate in place of the first that are compared.
void take_variant(PlanReply& reply, const Candidate& candidate) {
  const Variant& variant = variant_of(reply, candidate);
  reply.base = request_of(reply.base, reply.comparison, variant);
  reply.space = space_of(reply.space, reply.comparison, variant);
  reply.training = training_of(reply, candidate);
}

// How the batches that were asked for do beside the best.
void compare_batches(PlanReply& reply, const std::optional<std::int64_t>& around) {
  const Candidate& best = reply.result.plans.front();
  const Variant& chosen = variant_of(reply, best);
  const std::vector<std::int64_t>& batches = reply.comparison.global_batches;
  std::map<std::int64_t, double> rates;
  for (const Candidate& candidate : reply.result.plans) {
    const Variant& variant = variant_of(reply, candidate);
    if (variant.offer == chosen.offer && variant.devices == chosen.devices) {
      rates[variant.global_batch] = tokens_per_second(reply, candidate);
    }
  }
  const auto add = [&](std::int64_t batch) {
    const auto known = std::find_if(reply.batch_rates.begin(), reply.batch_rates.end(),
                                    [&](const BatchRate& rate) { return rate.global_batch == batch; });
    if (known != reply.batch_rates.end()) return;
    const auto rate = rates.find(batch);
    reply.batch_rates.push_back({batch, rate == rates.end() ? std::nullopt : std::optional(rate->second)});
  };
  add(chosen.global_batch);
  if (around) {
    add(*around);
  } else {
    add(*std::min_element(batches.begin(), batches.end()));
    add(*std::max_element(batches.begin(), batches.end()));
  }
  reply.batches_without_plan = std::ssize(batches) - std::ssize(rates);
}

std::optional<std::size_t> cheapest_of(const PlanReply& reply) {
  const auto price = [&](std::size_t i) { return *reply.plan_outlooks[i].training->predicted.price; };
  std::size_t cheapest = 0;
  for (std::size_t i = 0; i < reply.plan_outlooks.size(); ++i) {
    const std::optional<TrainingInterval>& training = reply.plan_outlooks[i].training;
    if (!training || !training->predicted.price) return {};
    if (reply.result.plans[i].verdict == Verdict::fits && price(i) < price(cheapest)) cheapest = i;
  }
  return cheapest > 0 ? std::optional(cheapest) : std::nullopt;
}

// Takes the plans on fewer devices than were asked for where those train faster. The batch follows the devices where nobody named one,
// and no strategy with it.
void leave_idle(PlanReply& reply, bool batch_is_free, const SearchOptions& options) {
  std::optional<FewerDevices> fewer = fewer_devices(
      reply.base, reply.space, reply.result, batch_is_free ? BatchOf::devices : BatchOf::request, options);
  if (!fewer) return;
  reply.idle = IdleDevices{.asked = reply.space.devices, .with_all_batch = reply.base.workload.global_batch};
  if (!reply.result.plans.empty()) reply.idle->with_all = reply.result.plans.front().iteration;
  reply.base = std::move(fewer->base);
  reply.space = std::move(fewer->space);
  reply.result = std::move(fewer->result);
  reply.comparison.device_counts = {reply.space.devices};
  reply.comparison.global_batches = {reply.base.workload.global_batch};
  reply.variants = variants_of(reply.comparison);
}

// Takes the plans with CUDA graphs of layers where these train faster. Searched only for a release that has them,
// and only if graphs make the best plan without them faster. Graphs of layers refuse full recomputation
// [Megatron-LM, megatron/core/transformer/transformer_config.py].
void take_graphs(PlanReply& reply, const SearchOptions& options) {
  const Software& software = reply.base.software;
  const std::vector<CudaGraphs>& kinds = software.cuda_graph_kinds;
  const bool has = software.released && contains(software.searches, WideChoice::cuda_graphs) &&
                   (kinds.empty() || contains(kinds, CudaGraphs::layers));
  if (!has || software.cuda_graphs != CudaGraphs::none || reply.result.plans.empty() ||
      reply.space.breadth == Breadth::usual || contains(reply.space.recompute, RecomputePolicy::full))
    return;
  const Seconds best = reply.result.plans.front().iteration;
  Request with_graphs = reply.base;
  with_graphs.software.cuda_graphs = CudaGraphs::layers;
  Request same = with_graphs;
  same.strategy = reply.result.plans.front().strategy;
  const Evaluation evaluation = evaluate(same);
  if (account(evaluation).timing->iteration.total >= worth_a_change * best) return;
  Space space = reply.space;
  if (space.recompute.empty()) space.recompute = software.recompute;
  std::erase(space.recompute, RecomputePolicy::full);
  std::erase(space.recompute, RecomputePolicy::ops);  // stands for modules, which the space tries beside
  SearchResult result = search(with_graphs, space, options);
  widen(result, with_graphs, space, options);
  if (result.plans.empty() || result.plans.front().iteration >= worth_a_change * best) return;
  reply.base = std::move(with_graphs);
  reply.space = std::move(space);
  reply.result = std::move(result);
  reply.comparison.offers.front().software = reply.base.software;
}

void launch_trials(PlanChoice& choice, Request request, LaunchTarget target) {
  for (ProposedTrial& trial : choice.trials) {
    request.strategy = trial.candidate.strategy;
    trial.launch = launch_of(request, target);
  }
}

// Returns what keeps every layout from being legal. Of several variants: that of the first, if each has one.
std::optional<Problem> what_bars_all(const PlanReply& reply) {
  const auto bars = [](const Request& request, const Space& space) {
    std::optional<Problem> problem = obstacle(request, space);
    return problem ? problem : broken_rule(request, space);
  };
  if (!compares(reply)) return bars(reply.base, reply.space);
  std::optional<Problem> first;
  for (const Variant& variant : variants_of(reply.comparison)) {
    const std::optional<Problem> problem = bars(request_of(reply.base, reply.comparison, variant),
                                                space_of(reply.space, reply.comparison, variant));
    if (!problem) return std::nullopt;
    if (!first) first = problem;
  }
  return first;
}

// Returns whether the plans are those of one finished search whose times only order them.
bool may_choose(const PlanQuestion& question, const PlanReply& reply) {
  const bool of_time = question.deadline || (reply.found && reply.found->question.within);
  return !compares(reply) && !of_time && !reply.result.undecided && !reply.result.plans.empty() &&
         reply.base.system.performance;
}

}  // namespace

PlanTask task_of(const PlanQuestion& question, const Watch& watch) {
  PlanTask task{
      .base = question.base, .space = question.space, .comparison = comparison_of(question), .found = {}};
  EXPECTS(question.offers.size() <= 1 || !(question.find || question.deadline));
  task.base.model = with_attention(std::move(task.base.model), task.base.software.attention_kernel);
  const std::optional<Question> inverse = inverse_of(question);
  const bool of_size =
      inverse && (inverse->extreme == Extreme::max_sequence || inverse->extreme == Extreme::max_layers);
  task.base.insisted = insisted_fields(task.base, task.space);
  check_values(task.base, task.space, task.comparison, of_size ? ModelSize::asked : ModelSize::given);
  if (!inverse) return task;
  task.found = find_held(task.base, task.space, *inverse, task.comparison.global_batches, watch);
  put_found(task);
  return task;
}

namespace {

// Returns the first plan that a search comes to where its question was answered only so far; none of a comparison.
SearchResult first_plan(const PlanTask& task) {
  const bool nothing_known = !task.found->value && !task.found->micro_batch;
  if (nothing_known || variants_of(task.comparison).size() > 1) {
    SearchResult nothing;
    nothing.undecided = Undecided{};
    return nothing;
  }
  bool found = false;
  SearchOptions first{.threads = 1, .bounds = true};
  first.watch.stops = [&] { return found; };
  first.progress = [&](const SearchProgress& progress) { found = progress.best != nullptr; };
  return search(task.base, task.space, first);
}

}  // namespace

SearchResult search(const PlanTask& task, const SearchOptions& options) {
  if (task.found && task.found->stopped) return first_plan(task);
  // A part of one search can be told from the whole.
  return variants_of(task.comparison).size() > 1
             ? search_variants(task.base, task.space, task.comparison, options)
             : search(task.base, task.space, options);
}

PlanReply reply_to(const PlanQuestion& question, PlanTask task, SearchResult result,
                   const std::optional<AskedStrategy>& why, const SearchOptions& options) {
  PlanReply reply{.base = std::move(task.base),
                  .space = ruling_out(std::move(task.space), question.choice.measured),
                  .comparison = std::move(task.comparison),
                  .variants = {},
                  .found = task.found,
                  .default_batch = question.default_batch,
                  .training = question.training,
                  .result = std::move(result)};
  reply.variants = variants_of(reply.comparison);
  const Request asked = reply.base;
  const Space asked_space = reply.space;
  if (!compares(reply)) widen(reply.result, reply.base, reply.space, options);
  if (!compares(reply) && !reply.found && !reply.result.undecided && reply.base.system.performance)
    take_graphs(reply, options);
  if (!question.use_all_devices && !compares(reply) && !reply.found && !reply.result.undecided)
    leave_idle(reply, question.default_batch && !why, options);
  const auto searched_of = [&](const Candidate& candidate) {
    const Variant& variant = variant_of(reply, candidate);
    return Searched{.base = request_of(reply.base, reply.comparison, variant),
                    .space = space_of(reply.space, reply.comparison, variant)};
  };
  const auto better = [&](const Candidate& x, const Candidate& y) {
    const auto merit = [&](const Candidate& it) {
      const double time =
          compares_batches(reply) ? seconds_per_sequence(it, variant_of(reply, it)) : it.iteration.count();
      return std::tuple(it.verdict, time, it.peak, it.variant, it.place);
    };
    return merit(x) < merit(y);
  };
  Shown shown = question.shown;
  shown.plans = std::max(shown.plans, compared_plans);
  if (question.choice.trials > 0) shown.pareto = std::max(shown.pareto, compared_plans);
  confirm(reply.result, shown, searched_of, better, options.threads, options.watch);
  if (may_choose(question, reply))
    reply.choice = choose(reply.result.plans, reply.result.pareto, reply.base, reply.space, question.choice);
  tell(options.watch, explaining);
  // Of power nothing is said where not all systems tell theirs.
  const bool all_have_tdp = std::all_of(reply.comparison.offers.begin(), reply.comparison.offers.end(),
                                        [](const Offer& offer) { return offer.system.tdp.has_value(); });
  if (!all_have_tdp) {
    for (Offer& offer : reply.comparison.offers) offer.system.tdp.reset();
  }
  if (!reply.result.plans.empty()) {
    take_variant(reply, reply.result.plans.front());
  } else if (reply.result.nearest) {
    take_variant(reply, *reply.result.nearest);
  }
  // Batches that are compared leave an iteration different times: what is said is that of the best plan.
  if (reply.found && reply.found->question.run) {
    reply.found->question.within = within_of(reply.found->question, reply.base.workload, reply.space.devices);
  }
  constexpr std::size_t least_accounts = 2;  // the best, and the next to see its margin
  reply.accounts = accounts_of(reply, std::max(question.accounts, least_accounts));
  if (!reply.accounts.empty()) {
    EstimateReply& best = reply.accounts.front();
    const Plan& plan = account(best.evaluation);
    best.routing = routing_of(plan, reply.training);
    if (question.views != WhichViews::none) {
      best.views = views_of(plan, question.views);
      best.peak_tensors = peak_tensors(plan);
    }
  }
  if (question.with_launch && !reply.accounts.empty()) {
    const Request& best = account(reply.accounts.front().evaluation).request;
    const std::optional<LaunchTarget> target = question.target ? question.target : own_target(best.software);
    if (target) {
      reply.accounts.front().launch = launch_of(best, *target);
      if (reply.choice) launch_trials(*reply.choice, best, *target);
    }
  }
  if (reply.base.system.performance) reply.spread = iteration_spread(reply.base, embedded_spreads());
  if (const std::optional<Seconds> limit = limit_of(question, reply.base.workload, reply.space.devices)) {
    reply.in_time = InTime{.limit = *limit, .asked = question.odds};
    if (!reply.result.plans.empty()) {
      reply.in_time->odds = odds_within(reply.result.plans.front().iteration, *limit, reply.spread->spread);
    }
  }
  reply.plan_outlooks = outlooks_of(reply, reply.result.plans);
  reply.pareto_outlooks = outlooks_of(reply, reply.result.pareto);
  if (compares_batches(reply) && !reply.result.plans.empty()) compare_batches(reply, question.around_batch);
  if (!reply.result.plans.empty()) reply.cheapest = cheapest_of(reply);
  leave_undecided(reply.result, options.watch);
  if (reply.result.undecided) {
    // What follows speaks of a finished search.
  } else if (!reply.accounts.empty()) {
    const Plan& best = account(reply.accounts.front().evaluation);
    reply.blocked = blocked_by_memory(best);
    if (reply.space.precision.empty()) reply.in_fp8 = in_fp8(best);
    reply.left_out = left_out(best, reply.space);
  } else {
    if (!reply.result.nearest && reply.space.ran_out.empty()) reply.obstacle = what_bars_all(reply);
    if (reply.result.nearest) {
      Request request = reply.base;
      request.strategy = reply.result.nearest->strategy;
      const Evaluation evaluation = evaluate(request);
      const auto* const lacking = std::get_if<Infeasible>(&evaluation);
      reply.nearest_lacks_host = lacking != nullptr && lacking->limit == "host_memory";
      if (!reply.nearest_lacks_host && reply.space.devices > 1)
        reply.sharding_stacks = sharding_stacks(request, reply.space.devices);
      if (reply.result.rejected.contains("layout") && !compares(reply)) {
        Space uneven = reply.space;
        uneven.layouts = Layouts::any;
        reply.uneven_fits = Feasibility(reply.base).fits(uneven);
      }
      Space offloading = reply.space;
      offloading.offload = true;
      reply.offloading_fits = !reply.space.offload && !compares(reply) && reply.base.system.host &&
                              !offloads(reply.base.strategy.offload) &&
                              Feasibility(reply.base).fits(offloading);
    }
    if (!reply.found && !compares(reply)) reply.relief = relief(reply.base, reply.space, options.watch);
    // What no value helps was said once.
    if (reply.obstacle) std::erase_if(reply.relief, [](const Found& found) { return !found.value; });
  }
  if (why) {
    InquiryQuestion inquiry{.base = asked,
                            .space = asked_space,
                            .strategy = why->strategy,
                            .problems = why->problems,
                            .best = {}};
    if (why->software) {
      inquiry.base.software = *why->software;
      inquiry.base.model = with_attention(std::move(inquiry.base.model), why->software->attention_kernel);
    }
    if (!reply.accounts.empty()) inquiry.best = reply.accounts.front().evaluation;
    reply.inquiry = answer(inquiry);
    // What widening or the choice came to was searched, though the space does not list it.
    const bool is_plan = std::any_of(reply.result.plans.begin(), reply.result.plans.end(),
                                     [&](const Candidate& it) { return it.strategy == why->strategy; });
    if (is_plan) reply.inquiry->searched.reset();
  }
  return reply;
}

PlanReply answer(const PlanQuestion& question, const SearchOptions& options) {
  PlanTask task = task_of(question, options.watch);
  SearchResult result = search(task, options);
  return reply_to(question, std::move(task), std::move(result), question.why, options);
}

const Variant& variant_of(const PlanReply& reply, const Candidate& candidate) {
  return reply.variants[candidate.variant];
}

const System& system_of(const PlanReply& reply, const Candidate& candidate) {
  return reply.comparison.offers[variant_of(reply, candidate).offer].system;
}

Training training_of(const PlanReply& reply, const Candidate& candidate) {
  const Offer& offer = reply.comparison.offers[variant_of(reply, candidate).offer];
  Training training = reply.training;
  training.price_per_device_hour = offer.price_per_device_hour;
  if (training.watts_of_data_sheet) training.device_watts.reset();
  return training_on(std::move(training), offer.system);
}

double slower_by(const PlanReply& reply, const Candidate& candidate) {
  const Candidate& best = reply.result.plans.front();
  const Variant& variant = variant_of(reply, candidate);
  if (variant.global_batch == variant_of(reply, best).global_batch) {
    return candidate.iteration / best.iteration - 1;
  }
  return seconds_per_sequence(candidate, variant) / seconds_per_sequence(best, variant_of(reply, best)) - 1;
}

double tokens_per_second(const PlanReply& reply, const Candidate& candidate) {
  return static_cast<double>(reply.base.workload.sequence) /
         seconds_per_sequence(candidate, variant_of(reply, candidate));
}

const Candidate* faster_but_marginal(const PlanReply& reply) {
  const SearchResult& result = reply.result;
  if (result.plans.empty() || result.plans.front().verdict == Verdict::marginal) return nullptr;
  // Nothing is faster than the first of the front.
  const Candidate& fastest = result.pareto.front();
  return fastest.verdict == Verdict::marginal && slower_by(reply, fastest) < 0 ? &fastest : nullptr;
}

bool compares_devices(const PlanReply& reply) { return reply.comparison.device_counts.size() > 1; }
bool compares_batches(const PlanReply& reply) { return reply.comparison.global_batches.size() > 1; }
bool compares_systems(const PlanReply& reply) { return reply.comparison.offers.size() > 1; }
bool compares(const PlanReply& reply) { return reply.variants.size() > 1; }

std::optional<double> gap(const PlanReply& reply) {
  const SearchResult& result = reply.result;
  if (!result.undecided || !result.undecided->least || result.plans.empty()) return {};
  const Seconds least = *result.undecided->least;
  return std::max(0.0, result.plans.front().iteration / least - 1);
}

bool unanswered(const PlanReply& reply) {
  return reply.found && !reply.found->value && !reply.found->micro_batch;
}

}  // namespace headroom
