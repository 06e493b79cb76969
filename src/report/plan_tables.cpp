#include "report/plan_tables.hpp"

#include <algorithm>

#include "headroom/parallel/stage_layout.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "report/capacity.hpp"
#include "report/strategy_flags.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

std::string recompute_cell(const Recomputation& recompute) {
  std::string text(recompute.policy == RecomputePolicy::ops ? "modules" : name_of(recompute.policy));
  if (recompute.layers > 0) text += fmt::format(" {}", recompute.layers);
  return recompute.window ? text + " window" : text;
}

std::string host_cell(const Offload& offload) {
  std::string text = offload.parameters            ? "optimizer, weights"
                     : offload.optimizer.value > 0 ? "optimizer"
                                                   : "";
  if (offload.layers > 0) return text + fmt::format("{}{} layers", text.empty() ? "" : ", ", offload.layers);
  if (offload.modules.empty()) return text;
  return text + fmt::format("{}{}", text.empty() ? "" : ", ", fmt::join(offload.modules, " "));
}

}  // namespace

std::string flags_of(const PlanReply& report, const Candidate& candidate) {
  const Offer& offer = report.comparison.offers[variant_of(report, candidate).offer];
  return strategy_flags(candidate.strategy, offer.software, report.base.model);
}

std::string command_of(const PlanReply& report, const PlanWords& asked, const Candidate& candidate) {
  const Variant& variant = variant_of(report, candidate);
  // A launch file has a strategy of its own, from which the flags lead to the candidate's.
  return fmt::format("{} --global-batch {} {}", asked.estimates[variant.offer], variant.global_batch,
                     asked.launched
                         ? flags_of(edits_of(candidate.strategy, *asked.launched), FlagNames::letters)
                         : flags_of(report, candidate));
}

Table candidates_table(const PlanReply& report, const std::vector<Candidate>& candidates,
                       const std::vector<Outlook>& outlooks, std::size_t most,
                       const std::vector<PlanBelief>& beliefs) {
  Table table{.columns = {{"#"}}};
  if (compares_systems(report)) table.columns.push_back({"system", Align::left});
  if (compares_devices(report)) table.columns.push_back({"GPUs"});
  if (compares_batches(report)) {
    table.columns.push_back({"GBS"});
    table.columns.push_back({"tokens/s"});
  }
  // 1 to 3: what makes a plan, hidden on narrow screens alone. Beside what is compared there is less room; seconds of different batches do not compare.
  const int beside_others = compares(report) ? 6 : 0;
  const std::vector<Column> common{{"seconds", Align::right, compares_batches(report) ? 7 : 0},
                                   {fmt::format("{:.0f}% seconds", 100 * interval_level), Align::right, 6},
                                   {"MFU (causal)", Align::right, 3},
                                   {"peak GiB", Align::right, std::max(beside_others, 4)},
                                   {"free", Align::right, 5},
                                   {"verdict", Align::left},
                                   {"TP"},
                                   {"PP"},
                                   {"VP", Align::right, 1},
                                   {"stages", Align::left, std::max(beside_others, 4)},
                                   {"DP"},
                                   {"MBS", Align::right, 2},
                                   {"SP", Align::left, 7},
                                   {"recompute", Align::left},
                                   {"ZeRO", Align::right, 6}};
  table.columns.insert(table.columns.end(), common.begin(), common.end());
  const bool context = std::any_of(candidates.begin(), candidates.end(),
                                   [](const Candidate& one) { return one.strategy.context_parallel > 1; });
  if (context) table.columns.push_back({"CP"});
  const bool experts = any_experts(report.base.model);
  if (experts) {
    table.columns.push_back({"EP"});
    table.columns.push_back({"ETP", Align::right, 6});
  }
  const auto differ = [&](auto value_of_one) {
    const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(std::min(most, candidates.size()));
    return std::any_of(candidates.begin(), end, [&](const Candidate& one) {
      return value_of_one(one.strategy) != value_of_one(candidates.front().strategy);
    });
  };
  const bool exchanges = context && differ([](const Strategy& of) {
                           return of.context_parallel > 1 ? of.cp_comm : CpComm::p2p;
                         });
  if (exchanges) table.columns.push_back({"CP by", Align::left, 4});
  const bool dispatchers =
      report.space.moe_dispatcher.size() > 1 || differ([](const Strategy& of) { return of.moe_dispatcher; });
  if (dispatchers) table.columns.push_back({"dispatcher", Align::left, 4});
  const bool precisions = report.space.precision.size() > 1;
  if (precisions) table.columns.push_back({"precision", Align::left});
  const bool schedules = std::any_of(candidates.begin(), candidates.end(), [](const Candidate& one) {
    return one.strategy.schedule != implied_schedule(one.strategy.virtual_pipeline);
  });
  if (schedules) table.columns.push_back({"schedule", Align::left, 4});
  if (report.space.offload) table.columns.push_back({"on the host", Align::left});
  const bool measured = !beliefs.empty() && beliefs.front().expected;
  if (measured) {
    table.columns.push_back({"expected"});
    table.columns.push_back({"measured"});
  }
  if (beliefs.size() > 1) table.columns.push_back({"odds", Align::right, 8});
  for (Column& column : training_columns(report.training)) table.columns.push_back(std::move(column));
  for (std::size_t i = 0; i < std::min(most, candidates.size()); ++i) {
    const Candidate& one = candidates[i];
    const Strategy& strategy = one.strategy;
    const StageLayout layout = stage_layout(report.base.model.layers, strategy);
    std::vector<std::string> row{std::to_string(i + 1)};
    const Variant& variant = variant_of(report, one);
    if (compares_systems(report)) row.push_back(system_of(report, one).name);
    if (compares_devices(report)) row.push_back(std::to_string(variant.devices));
    if (compares_batches(report)) {
      row.push_back(std::to_string(variant.global_batch));
      row.push_back(whole(tokens_per_second(report, one)));
    }
    const auto& [low, high] = outlooks[i].iteration;
    const std::vector<std::string> cells{
        fmt::format("{:#.4g}", one.iteration.count()),
        range_cell(fmt::format("{:#.3g}", low.count()), fmt::format("{:#.3g}", high.count())),
        fmt::format("{:.1f}%", 100 * one.mfu),
        in_gib(one.peak),
        in_gib(system_of(report, one).memory - one.peak),
        std::string(name_of(one.verdict)),
        std::to_string(strategy.tensor_parallel),
        std::to_string(strategy.pipeline_parallel),
        std::to_string(strategy.virtual_pipeline),
        layout == StageLayout::uneven ? "uneven" : "",
        std::to_string(strategy.data_parallel),
        std::to_string(strategy.micro_batch),
        strategy.sequence_parallel ? "yes" : "no",
        recompute_cell(strategy.recompute),
        std::to_string(static_cast<int>(strategy.data_sharding))};
    row.insert(row.end(), cells.begin(), cells.end());
    if (context) row.push_back(std::to_string(strategy.context_parallel));
    if (experts) {
      row.push_back(std::to_string(strategy.expert_parallel));
      row.push_back(std::to_string(strategy.expert_tensor_parallel));
    }
    if (exchanges) row.emplace_back(strategy.context_parallel > 1 ? name_of(strategy.cp_comm) : "");
    if (dispatchers) row.emplace_back(name_of(strategy.moe_dispatcher));
    if (precisions) row.emplace_back(name_of(strategy.precision));
    if (schedules) row.emplace_back(name_of(strategy.schedule));
    if (report.space.offload) row.push_back(host_cell(strategy.offload));
    const PlanBelief belief = i < beliefs.size() ? beliefs[i] : PlanBelief{};
    const auto time_cell = [](const std::optional<Seconds>& time) {
      return time ? fmt::format("{:#.4g}", time->count()) : "";
    };
    if (measured) {
      row.push_back(time_cell(belief.expected));
      row.push_back(time_cell(belief.ran ? belief.expected : std::nullopt));
    }
    if (beliefs.size() > 1)
      row.push_back(i < beliefs.size() ? fmt::format("{:.0f}%", 100 * belief.odds) : "");
    if (outlooks[i].training) {
      for (std::string& cell : training_cells(training_of(report, one), *outlooks[i].training)) {
        row.push_back(std::move(cell));
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table csv_table(const PlanReply& report) {
  Table table;
  if (compares_systems(report)) table.columns.push_back({"system"});
  if (compares_batches(report)) {
    table.columns.push_back({"global_batch"});
    table.columns.push_back({"tokens_per_second"});
  }
  const std::vector<Column> common{{"devices"},
                                   {"tensor_parallel"},
                                   {"pipeline_parallel"},
                                   {"virtual_pipeline"},
                                   {"context_parallel"},
                                   {"cp_comm"},
                                   {"data_parallel"},
                                   {"expert_parallel"},
                                   {"expert_tensor_parallel"},
                                   {"moe_dispatcher"},
                                   {"micro_batch"},
                                   {"sequence_parallel"},
                                   {"recompute"},
                                   {"recompute_ops"},
                                   {"recompute_layers"},
                                   {"recompute_window"},
                                   {"schedule"},
                                   {"precision"},
                                   {"overlap_expert_all_to_all"},
                                   {"data_sharding"},
                                   {"shard_size"},
                                   {"no_reshard_after_forward"},
                                   {"sync_each_batch"},
                                   {"layout"},
                                   {"stage_layers"},
                                   {"microbatch_group_size"},
                                   {"iteration_seconds"},
                                   {"low_iteration_seconds"},
                                   {"high_iteration_seconds"},
                                   {"mfu"},
                                   {"verdict"},
                                   {"peak_bytes"},
                                   {"headroom_bytes"}};
  table.columns.insert(table.columns.end(), common.begin(), common.end());
  // Columns depend on what is asked, not on what is found.
  const bool chooses = !compares(report) && !report.in_time && report.base.system.performance;
  if (chooses) {
    for (const char* const name : {"odds_of_fastest", "equal_within_noise", "expected_seconds", "measured"})
      table.columns.push_back({name});
  }
  for (const std::string& name : training_csv_columns(report.training)) table.columns.push_back({name});
  const auto yes = [](bool value) { return std::string(value ? "true" : "false"); };
  for (std::size_t i = 0; i < report.result.plans.size(); ++i) {
    const Candidate& one = report.result.plans[i];
    const Outlook& outlook = report.plan_outlooks[i];
    const Strategy& strategy = one.strategy;
    std::vector<std::string> row;
    if (compares_systems(report)) row.push_back(system_of(report, one).name);
    if (compares_batches(report)) {
      row.push_back(std::to_string(variant_of(report, one).global_batch));
      row.push_back(fmt::format("{}", tokens_per_second(report, one)));
    }
    const std::vector<std::string> cells{
        std::to_string(devices(strategy)),
        std::to_string(strategy.tensor_parallel),
        std::to_string(strategy.pipeline_parallel),
        std::to_string(strategy.virtual_pipeline),
        std::to_string(strategy.context_parallel),
        std::string(name_of(strategy.cp_comm)),
        std::to_string(strategy.data_parallel),
        std::to_string(strategy.expert_parallel),
        std::to_string(strategy.expert_tensor_parallel),
        std::string(name_of(strategy.moe_dispatcher)),
        std::to_string(strategy.micro_batch),
        yes(strategy.sequence_parallel),
        std::string(name_of(strategy.recompute.policy)),
        strategy.recompute.ops.empty() ? "" : value_of(*find_field("recompute_ops"), strategy, {}),
        std::to_string(strategy.recompute.layers),
        yes(strategy.recompute.window),
        std::string(name_of(strategy.schedule)),
        std::string(name_of(strategy.precision)),
        yes(strategy.overlap_expert_all_to_all),
        std::string(name_of(strategy.data_sharding)),
        std::to_string(strategy.shard_size),
        yes(strategy.no_reshard_after_forward),
        yes(strategy.sync_each_batch),
        std::string(name_of(stage_layout(report.base.model.layers, strategy))),
        value_of(*find_field("stage_layers"), strategy, {}),
        std::to_string(strategy.microbatch_group_size),
        fmt::format("{}", one.iteration.count()),
        fmt::format("{}", outlook.iteration.low.count()),
        fmt::format("{}", outlook.iteration.high.count()),
        fmt::format("{}", one.mfu),
        std::string(name_of(one.verdict)),
        whole(one.peak.count()),
        whole((system_of(report, one).memory - one.peak).count())};
    row.insert(row.end(), cells.begin(), cells.end());
    if (chooses) {
      const bool compared = report.choice && i < report.choice->plans.size();
      const PlanBelief belief = compared ? report.choice->plans[i] : PlanBelief{};
      row.push_back(compared ? fmt::format("{}", belief.odds) : "");
      row.push_back(compared ? yes(belief.equal) : "");
      row.push_back(belief.expected ? fmt::format("{}", belief.expected->count()) : "");
      row.push_back(compared ? yes(belief.ran) : "");
    }
    table.rows.push_back(std::move(row));
    if (!outlook.training) continue;
    for (std::string& cell : training_csv_cells(*outlook.training)) {
      table.rows.back().push_back(std::move(cell));
    }
  }
  return table;
}

}  // namespace headroom
