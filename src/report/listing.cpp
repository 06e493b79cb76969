#include "headroom/report/listing.hpp"

#include <optional>

#include <fmt/format.h>

#include "headroom/memory/reserves.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "report/json.hpp"
#include "report/text.hpp"

namespace headroom {

std::string render(const std::vector<Transformer>& models, const Style& style) {
  if (style.format == Format::json) {
    OrderedJson list = OrderedJson::array();
    for (const Transformer& model : models) {
      OrderedJson json = to_json(model);
      json["parameters"] = number(parameter_count(model));
      list.push_back(std::move(json));
    }
    return to_text(OrderedJson{{"format", 2}, {"models", std::move(list)}});
  }
  Table table{.columns = {{"model", Align::left},
                          {"parameters"},
                          {"layers"},
                          {"hidden"},
                          {"feedforward"},
                          {"heads"},
                          {"kv_heads"},
                          {"vocabulary"},
                          {"sequence"},
                          {"activation", Align::left, 2},
                          {"attention", Align::left, 1}}};
  for (const Transformer& model : models) {
    table.rows.push_back(
        {model.name,
         style.format == Format::csv ? whole(parameter_count(model)) : human_count(parameter_count(model)),
         std::to_string(model.layers), std::to_string(model.hidden), std::to_string(model.feedforward),
         std::to_string(model.heads), std::to_string(model.key_value_heads), std::to_string(model.vocabulary),
         std::to_string(model.sequence), std::string(name_of(model.architecture.activation)),
         std::string(name_of(model.architecture.kernels.attention))});
  }
  return render_table(table, style);
}

namespace {

// "BF16 989, FP8 1979": dense peaks in TFLOP/s, of the types that a device has them for.
std::string peaks_of(const std::optional<Performance>& performance) {
  std::string text;
  if (!performance) return text;
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp8, Dtype::fp4}) {
    if (!has_peak(performance->device, dtype)) continue;
    text += fmt::format("{}{} {:.0f}", text.empty() ? "" : ", ", peak_name(dtype),
                        peak_of(performance->device, dtype).count() / 1e12);
  }
  return text;
}

}  // namespace

std::string render(const std::vector<System>& systems, const Style& style) {
  if (style.format == Format::json) {
    OrderedJson list = OrderedJson::array();
    for (const System& system : systems) list.push_back(to_json(system));
    return to_text(OrderedJson{{"format", 2}, {"systems", std::move(list)}});
  }
  Table table{.columns = {{"system", Align::left},
                          {"GPU", Align::left, 1},
                          {"memory"},
                          {"GPUs_per_node"},
                          {"non_torch", Align::right, 2},
                          {"dense_TFLOPS", Align::left}}};
  for (const System& system : systems) {
    const Bytes reserved = most_reserved(system);
    const bool csv = style.format == Format::csv;
    table.rows.push_back({system.name, system.device,
                          csv ? whole(system.memory.count()) : human(system.memory),
                          std::to_string(system.devices_per_node),
                          csv ? whole(reserved.count()) : human(reserved), peaks_of(system.performance)});
  }
  return render_table(table, style);
}

std::string render(const std::vector<Software>& software, const Style& style) {
  if (style.format == Format::json) {
    OrderedJson list = OrderedJson::array();
    for (const Software& stack : software) list.push_back(to_json(stack));
    return to_text(OrderedJson{{"format", 2}, {"software", std::move(list)}});
  }
  Table table{.columns = {{"software", Align::left}, {"description", Align::left}}};
  for (const Software& stack : software) table.rows.push_back({stack.name, stack.source});
  return render_table(table, style);
}

std::string render_fields(const Style& style) {
  OrderedJson list = OrderedJson::array();
  Table table{.columns = {{"flags", Align::left}, {"in JSON", Align::left}, {"also accepted", Align::left}}};
  for (const StrategyField& field : strategy_fields) {
    std::string flags = flag_of(field.name);
    if (!field.letter.empty()) flags = short_flag_of(field) + ", " + flags;
    OrderedJson others = OrderedJson::array();
    for (const std::string_view alias : aliases_of(field)) others.push_back(flag_of(alias));
    const std::string value = value_of(field, {}, {});
    if (style.format == Format::json) {
      list.push_back({{"name", field.name},
                      {"flag", flag_of(field.name)},
                      {"json", "/" + std::string(field.json)},
                      {"default", value},
                      {"aliases", std::move(others)},
                      {"help", field.help}});
      continue;
    }
    std::string also;
    for (const auto& other : others) also += (also.empty() ? "" : " ") + other.get<std::string>();
    table.rows.push_back({flags, std::string(field.json.substr(field.json.find('/') + 1)), also});
  }
  if (style.format == Format::json) return to_text(OrderedJson{{"format", 2}, {"fields", std::move(list)}});
  return render_table(table, style);
}

std::string render(const std::vector<PublishedSource>& sources, const Style& style) {
  if (style.format == Format::json) {
    OrderedJson list = OrderedJson::array();
    for (const PublishedSource& source : sources) list.push_back(to_json(source));
    return to_text(OrderedJson{{"format", 1}, {"sources", std::move(list)}});
  }
  Table table{.columns = {{"source", Align::left},
                          {"label", Align::left},
                          {"system", Align::left},
                          {"software", Align::left}}};
  for (const PublishedSource& source : sources)
    table.rows.push_back({source.key, source.label, source.system, source.software});
  return render_table(table, style);
}

}  // namespace headroom
