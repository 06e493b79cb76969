#include "headroom/parallel/edits.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "headroom/core/expects.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/parallel/layout_text.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom {
namespace {

constexpr std::string_view no_names = "''";  // an empty list, as a shell takes it

// Sets the virtual stages per rank that a layout implies, as Megatron-Core does.
void imply_virtual_stages(Strategy& strategy) {
  const std::int64_t stages = std::ssize(strategy.stage_layers);
  const std::int64_t ranks = strategy.pipeline_parallel;
  if (strategy.virtual_pipeline > 1 || stages <= ranks || stages % ranks != 0) return;
  strategy.virtual_pipeline = stages / ranks;
  if (strategy.schedule == implied_schedule(1))
    strategy.schedule = implied_schedule(strategy.virtual_pipeline);
}

}  // namespace

std::string apply(const Edit& edit, Strategy& strategy, Workload& workload) {
  const StrategyField* const field = find_field(edit.field);
  EXPECTS(field != nullptr && field->name == edit.field);
  if (field->name == "recompute") strategy.recompute = {};
  std::string broken = set_value(*field, edit.value, strategy, workload);
  if (field->name == "recompute_ops") strategy.recompute.policy = RecomputePolicy::ops;
  if (field->name == "stage_layers" && megatron_stages(edit.value)) imply_virtual_stages(strategy);
  if (field->name == "virtual_pipeline") {
    strategy.schedule = implied_schedule(strategy.virtual_pipeline);
    if (strategy.schedule != ScheduleKind::interleaved) strategy.microbatch_group_size = 0;
  }
  return broken;
}

void apply(const Edits& edits, Strategy& strategy, Workload& workload) {
  for (const Edit& edit : edits) {
    const std::string broken = apply(edit, strategy, workload);
    EXPECTS(broken.empty());
  }
}

std::string flags_of(const Edits& edits, FlagNames names) {
  std::string flags;
  for (const auto& [name, value] : edits) {
    const StrategyField* const field = find_field(name);
    EXPECTS(field != nullptr);
    const bool by_letter = names == FlagNames::letters && !field->letter.empty();
    if (!flags.empty()) flags += ' ';
    flags += by_letter ? short_flag_of(*field) : flag_of(field->name);
    if (!field->value.empty()) {
      const std::string_view none = name == "stage_layers" ? even_stages : no_names;
      flags.append(" ").append(value.empty() ? none : std::string_view(value));
    } else if (value == "no") {
      flags += "=no";
    }
  }
  return flags;
}

std::optional<Edits> edits_of_flags(std::string_view flags) {
  Edits edits;
  const StrategyField* awaits_value = nullptr;
  for (std::string_view part : parts_of(flags, ' ')) {
    if (awaits_value != nullptr) {
      edits.push_back({std::string(awaits_value->name), part == no_names ? "" : std::string(part)});
      awaits_value = nullptr;
      continue;
    }
    const bool off = part.ends_with("=no");
    if (off) part.remove_suffix(std::string_view("=no").size());
    const std::size_t dashes = std::min(part.find_first_not_of('-'), part.size());
    const StrategyField* const field = dashes == 0 ? nullptr : find_field(part.substr(dashes));
    if (field == nullptr || (off && !field->value.empty())) return std::nullopt;
    if (field->value.empty()) {
      edits.push_back({std::string(field->name), off ? "no" : "yes"});
    } else {
      awaits_value = field;
    }
  }
  if (awaits_value != nullptr) return std::nullopt;
  return edits;
}

Edits edits_of(const Strategy& strategy, Strategy of) {
  Edits edits;
  const Workload none;
  Strategy told = std::move(of);
  Workload workload;
  for (const StrategyField& field : strategy_fields) {
    const std::string value = value_of(field, strategy, none);
    const bool by_its_ops = field.name == "recompute" && strategy.recompute.policy == RecomputePolicy::ops;
    if (by_its_ops) continue;
    if (!always_told(field) && value == value_of(field, told, none)) continue;
    edits.push_back({std::string(field.name), value});
    apply(edits.back(), told, workload);  // also sets what it implies; illegal strategies are accepted
  }
  return edits;
}

}  // namespace headroom
