#include "headroom/answer/list.hpp"

#include "headroom/core/expects.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/source_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/reserves.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom {
namespace {

std::vector<ListedModel> listed_models() {
  std::vector<ListedModel> models;
  for (Transformer& model : list_models()) {
    const ParameterCounts parameters = parameter_counts(model);
    models.push_back({.model = std::move(model), .parameters = parameters});
  }
  return models;
}

std::vector<ListedSystem> listed_systems() {
  std::vector<ListedSystem> systems;
  for (System& system : list_systems()) {
    // By a dense model that is divided every way.
    const Strategy divided{.tensor_parallel = 2, .pipeline_parallel = 2, .data_parallel = 2};
    ListedSystem listed{.system = {}, .reserved = reserved(system, Software{}, divided), .peaks = {}};
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp8, Dtype::fp4}) {
      if (!system.performance || !has_peak(system.performance->device, dtype)) continue;
      listed.peaks.push_back({.dtype = dtype, .dense = peak_of(system.performance->device, dtype)});
    }
    listed.system = std::move(system);
    systems.push_back(std::move(listed));
  }
  return systems;
}

std::vector<ListedField> listed_fields() {
  std::vector<ListedField> fields;
  for (const StrategyField& field : strategy_fields) {
    ListedField listed{.name = field.name,
                       .flag = flag_of(field.name),
                       .short_flag = field.letter.empty() ? "" : short_flag_of(field),
                       .json = field.json,
                       .value = value_of(field, {}, {}),
                       .aliases = {},
                       .help = field.help};
    for (const std::string_view alias : aliases_of(field)) listed.aliases.push_back(flag_of(alias));
    fields.push_back(std::move(listed));
  }
  return fields;
}

}  // namespace

ListReply answer(const ListQuestion& question) {
  switch (question.listed) {
    case Listed::models: return {listed_models()};
    case Listed::systems: return {listed_systems()};
    case Listed::software: return {list_software()};
    case Listed::sources: return {list_sources()};
    case Listed::fields: return {listed_fields()};
  }
  EXPECTS(false);
  return {};
}

}  // namespace headroom
