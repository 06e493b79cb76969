#include "headroom/report/listing.hpp"

#include <fmt/format.h>

#include "headroom/core/joined.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "report/json.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

std::string render_list(const std::vector<ListedModel>& models, const Style& style) {
  if (style.format == Format::json) {
    OrderedJson list = OrderedJson::array();
    for (const ListedModel& listed : models) {
      OrderedJson json = to_json(listed.model);
      json["parameters"] = number(listed.parameters.all);
      json["active_parameters"] = number(listed.parameters.active);
      json["active_parameters_without_embedding"] = number(listed.parameters.active_without_embedding);
      json["mtp_parameters"] = number(listed.parameters.predictors);
      list.push_back(std::move(json));
    }
    return to_text(OrderedJson{{"format", 2}, {"models", std::move(list)}});
  }
  Table table{.columns = {{"model", Align::left},
                          {"parameters"},
                          {"active"},
                          {"active_without_embedding", Align::right, 7},
                          {"layers"},
                          {"hidden"},
                          {"feedforward", Align::right, 2},
                          {"heads", Align::right, 3},
                          {"kv_heads", Align::right, 1},
                          {"vocabulary", Align::right, 4},
                          {"sequence"},
                          {"activation", Align::left, 6},
                          {"attention", Align::left, 5}}};
  const bool csv = style.format == Format::csv;
  const auto count = [&](double parameters) { return csv ? whole(parameters) : human_count(parameters); };
  for (const auto& [model, parameters] : models) {
    const bool all_active = parameters.active == parameters.all && !csv;
    table.rows.push_back(
        {model.name, count(parameters.all), all_active ? "" : count(parameters.active),
         all_active ? "" : count(parameters.active_without_embedding), std::to_string(model.layers),
         std::to_string(model.hidden), std::to_string(model.feedforward), std::to_string(model.heads),
         std::to_string(model.key_value_heads), std::to_string(model.vocabulary),
         std::to_string(model.sequence), std::string(name_of(model.architecture.activation)),
         model.attention_kernel.stated ? std::string(name_of(model.architecture.kernels.attention))
                                       : "the stack's"});
  }
  return render_table(table, style);
}

// "BF16 989, FP8 1979": in TFLOP/s.
std::string peaks_text(const std::vector<ListedPeak>& peaks) {
  std::string text;
  for (const auto& [dtype, dense] : peaks) {
    text += fmt::format("{}{} {:.0f}", text.empty() ? "" : ", ", peak_name(dtype), dense.count() / 1e12);
  }
  return text;
}

std::string render_list(const std::vector<ListedSystem>& systems, const Style& style) {
  if (style.format == Format::json) {
    OrderedJson list = OrderedJson::array();
    for (const ListedSystem& listed : systems) list.push_back(to_json(listed.system));
    return to_text(OrderedJson{{"format", 2}, {"systems", std::move(list)}});
  }
  Table table{.columns = {{"system", Align::left},
                          {"GPU", Align::left, 1},
                          {"memory"},
                          {"GPUs_per_node"},
                          {"non_torch", Align::right, 2},
                          {"dense_TFLOPS", Align::left}}};
  for (const auto& [system, reserved, peaks] : systems) {
    const bool csv = style.format == Format::csv;
    table.rows.push_back({system.name, system.device,
                          csv ? whole(system.memory.count()) : human(system.memory),
                          std::to_string(system.devices_per_node),
                          csv ? whole(reserved.count()) : human(reserved), peaks_text(peaks)});
  }
  return render_table(table, style);
}

std::string render_list(const std::vector<Software>& software, const Style& style) {
  if (style.format == Format::json) {
    OrderedJson list = OrderedJson::array();
    for (const Software& stack : software) list.push_back(to_json(stack));
    return to_text(OrderedJson{{"format", 2}, {"software", std::move(list)}});
  }
  Table table{.columns = {{"software", Align::left}, {"description", Align::left}}};
  for (const Software& stack : software) table.rows.push_back({stack.name, stack.source});
  return render_table(table, style);
}

std::string render_list(const std::vector<StackFamily>& families, const Style& style) {
  if (style.format == Format::json) {
    OrderedJson list = OrderedJson::array();
    for (const StackFamily& family : families) {
      OrderedJson json{{"family", family.name}};
      json.update(OrderedJson::parse(write_releases(family)));
      json.erase("format");
      list.push_back(std::move(json));
    }
    return to_text(OrderedJson{{"format", 2}, {"releases", std::move(list)}});
  }
  Table table{.columns = {{"release", Align::left},
                          {"tags", Align::left, 1},
                          {"date", Align::left},
                          {"changes", Align::left}}};
  for (const StackFamily& family : families) {
    for (std::size_t i = 0; i < family.releases.size(); ++i) {
      const StackRelease& release = family.releases[i];
      table.rows.push_back({name_of(family, i), joined(release.tags), release.date, release.source});
    }
  }
  return render_table(table, style);
}

OrderedJson json_of_recipe(const Recipe& recipe) {
  OrderedJson json{{"recipe", recipe.name},
                   {"family", recipe.family},
                   {"releases", recipe.releases},
                   {"model", recipe.model}};
  if (!recipe.system.empty()) json["system"] = recipe.system;
  if (recipe.devices > 0) json["devices"] = recipe.devices;
  json["flags"] = flags_of(recipe.settings);
  json["set_software"] = recipe.software;
  json["source"] = recipe.source;
  return json;
}

std::string render_list(const std::vector<Recipe>& recipes, const Style& style) {
  if (style.format == Format::json) {
    OrderedJson list = OrderedJson::array();
    for (const Recipe& recipe : recipes) list.push_back(json_of_recipe(recipe));
    return to_text(OrderedJson{{"format", 2}, {"recipes", std::move(list)}});
  }
  Table table{.columns = {{"recipe", Align::left},
                          {"stack", Align::left},
                          {"releases", Align::left},
                          {"model", Align::left, 2},
                          {"system", Align::left, 2},
                          {"GPUs", Align::right, 2},
                          {"flags", Align::left, 1}}};
  for (const Recipe& recipe : recipes) {
    table.rows.push_back({recipe.name, recipe.family, joined(recipe.releases), recipe.model, recipe.system,
                          recipe.devices > 0 ? std::to_string(recipe.devices) : "",
                          flags_of(recipe.settings)});
  }
  return render_table(table, style);
}

std::string render_list(const std::vector<ListedField>& fields, const Style& style) {
  if (style.format == Format::json) {
    OrderedJson list = OrderedJson::array();
    for (const ListedField& field : fields) {
      list.push_back({{"name", field.name},
                      {"flag", field.flag},
                      {"json", "/" + std::string(field.json)},
                      {"default", field.value},
                      {"aliases", field.aliases},
                      {"help", field.help}});
    }
    return to_text(OrderedJson{{"format", 2}, {"fields", std::move(list)}});
  }
  Table table{
      .columns = {{"flags", Align::left}, {"in JSON", Align::left, 1}, {"also accepted", Align::left}}};
  for (const ListedField& field : fields) {
    table.rows.push_back({field.short_flag.empty() ? field.flag : field.short_flag + ", " + field.flag,
                          std::string(field.json.substr(field.json.find('/') + 1)),
                          fmt::format("{}", fmt::join(field.aliases, " "))});
  }
  return render_table(table, style);
}

std::string render_list(const std::vector<PublishedSource>& sources, const Style& style) {
  if (style.format == Format::json) {
    OrderedJson list = OrderedJson::array();
    for (const PublishedSource& source : sources) list.push_back(to_json(source));
    return to_text(OrderedJson{{"format", 2}, {"sources", std::move(list)}});
  }
  Table table{.columns = {{"source", Align::left},
                          {"label", Align::left, 1},
                          {"system", Align::left},
                          {"software", Align::left}}};
  for (const PublishedSource& source : sources)
    table.rows.push_back({source.key, source.label, source.system.value_or(""), source.software});
  return render_table(table, style);
}

}  // namespace

std::string render(const ListReply& reply, const Style& style) {
  return std::visit([&](const auto& entries) { return render_list(entries, style); }, reply.entries);
}

}  // namespace headroom
