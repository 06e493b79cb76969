#include "report/json.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/parallel/strategy_fields.hpp"
#include "io/file_formats.hpp"

namespace headroom {
namespace {

// A file's members behind the name under which it was asked for.
OrderedJson named(const std::string& name, OrderedJson file) {
  OrderedJson json{{"name", name}};
  file.erase("format");
  json.update(file);
  return json;
}

template <class T>
OrderedJson value_json(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return name_of(value);
  } else if constexpr (std::is_same_v<T, Fraction>) {
    return value.value;
  } else if constexpr (std::is_same_v<T, MoeImbalance>) {
    return value.load == ExpertLoad::balanced ? OrderedJson(value.factor) : OrderedJson(name_of(value.load));
  } else if constexpr (std::is_same_v<T, PrecisionModules>) {
    return names_of(value);
  } else {
    return value;
  }
}

// The fields of the strategy or of the workload.
OrderedJson fields_json(std::string_view owner, const Strategy& strategy, const Workload& workload) {
  OrderedJson json = OrderedJson::object();
  for (const StrategyField& field : strategy_fields) {
    if (!field.json.starts_with(owner)) continue;
    const OrderedJson::json_pointer place("/" + std::string(field.json.substr(owner.size())));
    json[place] = std::visit([&](const auto& member) { return value_json(member.in(strategy, workload)); },
                             field.member);
  }
  return json;
}

}  // namespace

OrderedJson number(double value) {
  constexpr double exact_integers = 9007199254740992.0;  // 2^53
  if (value == std::floor(value) && std::abs(value) <= exact_integers)
    return static_cast<std::int64_t>(value);
  return value;
}

OrderedJson to_json(const Transformer& model) { return named(model.name, json_of(model)); }

OrderedJson to_json(const Transformer& model, const Workload& workload) {
  Transformer planned = model;
  planned.sequence = workload.sequence;
  planned.max_positions = std::max(model.max_positions, workload.sequence);
  return to_json(planned);
}

OrderedJson to_json(const ParameterCounts& parameters) {
  return {{"all", number(parameters.all)},
          {"active", number(parameters.active)},
          {"active_without_embedding", number(parameters.active_without_embedding)},
          {"mtp", number(parameters.predictors)}};
}

OrderedJson to_json(const System& system) { return named(system.name, json_of(system)); }

OrderedJson to_json(const Software& software) { return named(software.name, json_of(software)); }

OrderedJson to_json(const PublishedSource& source) { return named(source.key, json_of(source)); }

OrderedJson to_json(const Strategy& strategy) {
  OrderedJson json{{"devices", devices(strategy)}};
  json.update(fields_json("strategy/", strategy, {}));
  return json;
}

OrderedJson to_json(const Workload& workload, const Strategy& strategy) {
  OrderedJson json = fields_json("workload/", strategy, workload);
  json["microbatches"] = microbatches(strategy, workload);
  return json;
}

std::string to_text(const OrderedJson& json) { return json.dump(2) + '\n'; }

}  // namespace headroom
