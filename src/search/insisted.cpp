#include "headroom/search/insisted.hpp"

#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom {

std::vector<std::string> insisted_fields(const Request& base, const Space& space) {
  std::vector<std::string> fields;
  const Space open;
  for (const SpaceField& field : space_fields) {
    // Of several precisions the search may choose one that the launcher has.
    if (field.field == "precision" && space.precision.size() > 1) continue;
    const auto is_set = [&](auto member) { return !(space.*member == open.*member); };
    const bool of_schedules =
        field.field == "schedule" && space.schedules == searched_schedules(base.software);
    if (!of_schedules && std::visit(is_set, field.values)) fields.emplace_back(field.field);
  }
  if (space.layouts == Layouts::any && !base.software.uneven_stages)
    fields.insert(fields.end(), {"stage_layers", "microbatch_group_size"});
  const Strategy usual = with_stack_defaults({}, base.software, base.model);
  for (const StrategyField& field : strategy_fields) {
    if (!field.searched && value_of(field, base.strategy, {}) != value_of(field, usual, {}))
      fields.emplace_back(field.name);
  }
  if (base.workload.reference_model) fields.emplace_back("reference_model");
  // Its dtypes are set apart from its name, and launchers have one rule of both.
  if (base.strategy.optimizer != usual.optimizer) fields.emplace_back("optimizer");
  fields.emplace_back("cuda_graph_modules");  // of the stack, which no search changes
  return fields;
}

Request with_insisted(Request base, const Space& space) {
  base.insisted = insisted_fields(base, space);
  return base;
}

}  // namespace headroom
