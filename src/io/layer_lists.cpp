#include "layer_lists.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "model_fields.hpp"
#include "object_writer.hpp"
#include "schema_writer.hpp"
#include "text.hpp"

namespace headroom {
namespace {

constexpr std::size_t most_layer_kinds = most_kinds - most_end_kinds;
constexpr std::size_t longest_names = 200;  // of all kinds, where they are listed

// One entry of "layers": so many layers of a kind, or so many that go through a pattern of kinds again and again.
struct RunEntry {
  std::optional<std::string> kind;
  std::vector<std::string> pattern;
  std::int64_t count = 0;
};

constexpr auto layer_run_fields = [](auto& fields, auto& entry) {
  fields.optional("kind", entry.kind);
  fields.optional_texts("pattern", entry.pattern);
  fields.required("count", entry.count, layer_counts);
};

// A name stands in flags: "wide.mlp_up,wide.activation".
bool is_plain_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), plain);
}

// What the ends of a model and the stream between its layers are made of cannot differ by layer.
void check_common(const LayerDescription& layer, const Transformer& model, const JsonPointer& at,
                  Document& document) {
  const Kernels& own = layer.architecture.kernels;
  const Kernels& common = model.architecture.kernels;
  const auto require = [&](bool holds, const char* field) {
    if (!holds)
      document.report(at / "kernels" / field, "must be as in the model: all layers have it in common");
  };
  require(own.residual_dtype == common.residual_dtype, "residual_dtype");
  require(own.cross_entropy == common.cross_entropy, "cross_entropy");
  require(own.logits == common.logits, "logits");
  require(own.weight_copies == common.weight_copies, "weight_copies");
  if (layer.architecture.positions == Positions::learned &&
      model.architecture.positions != Positions::learned) {
    document.report(at / "positions", "learned positions belong to the model, not to a kind of its layers");
  }
}

// The kinds that the file describes, and "dense", the model's own layer, where it describes none of that name.
std::vector<LayerDescription> read_kinds(Document& document, const LayerLists& lists,
                                         const Transformer& model) {
  std::vector<LayerDescription> kinds;
  if (lists.kinds && !lists.kinds->is_object()) {
    document.report(JsonPointer("/layer_kinds"), "must be an object of kinds by name");
  } else if (lists.kinds) {
    for (const auto& item : lists.kinds->items()) {
      const std::string& name = item.key();
      const Json& json = item.value();
      const JsonPointer at = JsonPointer("/layer_kinds") / name;
      if (!is_plain_name(name)) {
        document.report(at, "a kind's name must be of letters, digits, - and _");
      }
      LayerDescription layer = own_layer(model);
      layer.name = name;
      if (!ObjectReader::read(document, at, layer, layer_fields)) continue;
      const auto given = [&](std::string_view field) { return json.contains(field); };
      if (given("heads") && !given("key_value_heads") && model.key_value_heads == model.heads) {
        layer.key_value_heads = layer.heads;
      }
      if (given("linear_bias") && !given("qkv_bias") && !document.root.contains("qkv_bias")) {
        layer.architecture.qkv_bias = layer.architecture.linear_bias;
      }
      resolve_parts(layer, given, at, document);
      resolve_latent_attention(layer, given("head_size"), at, document);
      check_heads(layer, at, document);
      check_choices(layer, at, document);
      resolve_experts(layer, at, document);
      check_common(layer, model, at, document);
      kinds.push_back(std::move(layer));
    }
  }
  const LayerDescription own = own_layer(model);
  const bool described = std::any_of(kinds.begin(), kinds.end(),
                                     [&](const LayerDescription& kind) { return kind.name == own.name; });
  if (!described) kinds.push_back(own);
  return kinds;
}

// Runs of the model, as long as `most_layers` allows.
class RunReader {
 public:
  RunReader(Document& document, const std::vector<LayerDescription>& kinds)
      : document_(document), kinds_(kinds) {}

  std::vector<LayerRun> read(std::size_t entries) {
    for (std::size_t i = 0; i < entries; ++i) {
      const JsonPointer at = JsonPointer("/layers") / i;
      RunEntry entry;
      if (ObjectReader::read(document_, at, entry, layer_run_fields)) append(entry, at);
    }
    return std::move(runs_);
  }

 private:
  void append(const RunEntry& entry, const JsonPointer& at) {
    const bool patterned = document_.root.at(at).contains("pattern");
    if (entry.kind.has_value() == patterned) {
      document_.report(at, "must have a kind or a pattern of kinds, and not both");
      return;
    }
    if (entry.kind) {
      append_run(*entry.kind, entry.count, at / "kind");
      return;
    }
    if (entry.pattern.empty()) return document_.report(at / "pattern", "must name at least one kind");
    for (std::size_t i = 0; i < entry.pattern.size(); ++i) {
      append_run(entry.pattern[i], 0, at / "pattern" / i);
    }
    const std::int64_t read = std::clamp<std::int64_t>(entry.count, 0, most_layers - of_patterns_);
    for (std::int64_t i = 0; i < read; ++i) {
      append_run(entry.pattern[static_cast<std::size_t>(i) % entry.pattern.size()], 1, std::nullopt);
    }
    of_patterns_ += read;
  }

  // Notes a name that no kind has at `named`, if that is where it stands.
  void append_run(const std::string& name, std::int64_t count, const std::optional<JsonPointer>& named) {
    std::vector<std::string_view> known;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      known.push_back(kinds_[kind].name);
      if (kinds_[kind].name != name) continue;
      if (count == 0) return;
      if (!runs_.empty() && runs_.back().kind == kind) {
        runs_.back().count += count;
      } else {
        runs_.push_back({kind, count});
      }
      return;
    }
    if (named) {
      document_.report(*named, fmt::format("'{}' is no kind that layer_kinds describes{}", printable(name),
                                           did_you_mean(name, known)));
    }
  }

  Document& document_;
  const std::vector<LayerDescription>& kinds_;
  std::vector<LayerRun> runs_;
  std::int64_t of_patterns_ = 0;  // layers; more than a model can have are a mistake that is noted already
};

// The kinds that some run names, as the model comes to them, and the runs by their places among these.
void use_kinds(const std::vector<LayerDescription>& kinds, std::vector<LayerRun> runs, Transformer& model) {
  std::vector<std::optional<std::size_t>> place(kinds.size());
  for (LayerRun& run : runs) {
    if (!place[run.kind]) {
      place[run.kind] = model.layer_kinds.size();
      model.layer_kinds.push_back(kinds[run.kind]);
    }
    run.kind = *place[run.kind];
  }
  model.layer_runs = std::move(runs);
}

// "experts" and "count" of "experts.count".
std::pair<std::string, std::string> first_of(std::string_view path) {
  const std::size_t dot = std::min(path.find('.'), path.size());
  return {std::string(path.substr(0, dot)), std::string(path.substr(std::min(dot + 1, path.size())))};
}

// The kinds that a file describes, and those that its runs are of.
std::vector<std::string> kind_names(const Json& root) {
  std::vector<std::string> names;
  const auto add = [&](const Json& name) {
    if (name.is_string() && !contains(names, name.get<std::string>()))
      names.push_back(name.get<std::string>());
  };
  const Json runs = root.value("layers", Json());
  for (const Json& run : runs.is_array() ? runs : Json::array()) {
    if (!run.is_object()) continue;
    add(run.value("kind", Json()));
    const Json pattern = run.value("pattern", Json());
    for (const Json& name : pattern.is_array() ? pattern : Json::array()) add(name);
  }
  const Json kinds = root.value("layer_kinds", Json());
  if (!kinds.is_object()) return names;
  for (const auto& item : kinds.items()) add(Json(item.key()));
  return names;
}

// Of "layer_kinds.KIND.FIELD": whether there is such a kind.
std::string rule_of_kind(const Json& root, std::string_view path) {
  const auto [kind, field] = first_of(path);
  const std::vector<std::string> names = kind_names(root);
  if (field.empty() || contains(names, kind)) return {};
  if (names.empty()) return "names a kind of layers, and the model's are all alike: give " + printable(field);
  const std::vector<std::string_view> known(names.begin(), names.end());
  return fmt::format("names no kind of the model's layers, which are {}{}",
                     printable(fmt::format("{}", fmt::join(names, ", ")), longest_names),
                     did_you_mean(kind, known));
}

// Of "PART.FIELD": whether kinds of layers have the part and the model itself has not. Kernels all have.
std::string rule_of_part(const Json& root, std::string_view path) {
  const auto [part, field] = first_of(path);
  const Json kinds = root.value("layer_kinds", Json());
  if (field.empty() || part == "kernels" || root.contains(part) || !kinds.is_object()) return {};
  std::vector<std::string> names;
  std::vector<std::string> paths;
  for (const auto& item : kinds.items()) {
    if (!item.value().is_object() || !item.value().value(part, Json()).is_object()) continue;
    names.push_back("'" + printable(item.key()) + "'");
    paths.push_back(fmt::format("layer_kinds.{}.{}.{}", printable(item.key()), part, printable(field)));
  }
  if (names.empty()) return {};
  return fmt::format("is a field of the model's layers of kind {} alone: give {}", fmt::join(names, " and "),
                     fmt::join(paths, " or "));
}

}  // namespace

std::vector<std::string> overrides_for_kinds(Document& document, const std::vector<std::string>& overrides,
                                             std::string_view flag) {
  if (!document.root.is_object()) return overrides;  // reported when it is read
  constexpr std::string_view of_kind = "layer_kinds.";
  std::vector<std::string> left;
  for (const std::string& override : overrides) {
    const std::string_view key = std::string_view(override).substr(0, override.find('='));
    std::string rule = key.starts_with(of_kind) ? rule_of_kind(document.root, key.substr(of_kind.size()))
                                                : rule_of_part(document.root, key);
    if (rule.empty()) {
      left.push_back(override);
    } else {
      document.problems.push_back({fmt::format("{} {}", flag, printable(key)), std::move(rule)});
    }
  }
  return left;
}

LayerLists taken_lists(Document& document) {
  LayerLists lists;
  if (!document.root.is_object()) return lists;
  if (const auto found = document.root.find("layer_kinds"); found != document.root.end()) {
    lists.kinds = std::move(*found);
    document.root.erase("layer_kinds");
  }
  const auto found = document.root.find("layers");
  if (found == document.root.end() || !found->is_array()) return lists;
  lists.runs = std::move(*found);
  std::int64_t sum = 0;
  for (const Json& run : *lists.runs) {
    if (!run.is_object() || !run.contains("count") || !run["count"].is_number_integer()) continue;
    const auto count = run["count"].get<std::int64_t>();
    if (count >= 1 && count <= most_layers && sum <= most_layers) sum += count;
  }
  *found = std::max<std::int64_t>(sum, 1);  // each mistake is noted where it stands
  return lists;
}

void read_layer_lists(Document& document, const LayerLists& lists, Transformer& model) {
  if (!lists.runs) {
    if (lists.kinds) {
      document.report(JsonPointer("/layer_kinds"),
                      "needs `layers` as a list of runs that name the kinds, such as "
                      R"([{"kind": "dense", "count": 3}, {"kind": "wide", "count": 58}])");
    }
    return;
  }
  document.root["layers"] = *lists.runs;
  if (lists.kinds) document.root["layer_kinds"] = *lists.kinds;
  if (lists.runs->empty()) return document.report(JsonPointer("/layers"), "must have at least one run");
  const std::vector<LayerDescription> kinds = read_kinds(document, lists, model);
  std::vector<LayerRun> runs = RunReader(document, kinds).read(lists.runs->size());
  if (!document.problems.empty()) return;
  if (lists.kinds) {
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      const bool used =
          std::any_of(runs.begin(), runs.end(), [&](const LayerRun& run) { return run.kind == kind; });
      if (used || !lists.kinds->contains(kinds[kind].name)) continue;
      document.report(JsonPointer("/layer_kinds") / kinds[kind].name, "no run of `layers` is of this kind");
    }
  }
  use_kinds(kinds, std::move(runs), model);
  if (model.layer_kinds.size() > most_layer_kinds) {
    document.report(JsonPointer("/layers"), fmt::format("must be of at most {} kinds, not {}",
                                                        most_layer_kinds, model.layer_kinds.size()));
  }
}

void write_layer_lists(const Transformer& model, nlohmann::ordered_json& json) {
  if (model.layer_kinds.empty()) return;
  nlohmann::ordered_json& runs = json["layers"] = nlohmann::ordered_json::array();
  for (const LayerRun& run : model.layer_runs) {
    runs.push_back({{"kind", model.layer_kinds[run.kind].name}, {"count", run.count}});
  }
  nlohmann::ordered_json& kinds = json["layer_kinds"] = nlohmann::ordered_json::object();
  for (const LayerDescription& kind : model.layer_kinds) {
    kinds[kind.name] = ObjectWriter::write(kind, layer_fields);
  }
}

void add_layer_lists(nlohmann::ordered_json& schema) {
  using Schema = nlohmann::ordered_json;
  const Schema name = {{"type", "string"}, {"pattern", "^[A-Za-z0-9_-]+$"}};
  Schema run = SchemaWriter::write(RunEntry{}, layer_run_fields);
  run["properties"]["kind"] = name;
  run["properties"]["pattern"] = {{"type", "array"}, {"minItems", 1}, {"items", name}};
  run["oneOf"] = {{{"required", {"kind"}}}, {{"required", {"pattern"}}}};
  Schema& fields = schema["properties"];
  const Schema number = fields["layers"];
  const Schema runs = {
      {"type", "array"}, {"minItems", 1}, {"maxItems", most_layers}, {"items", std::move(run)}};
  fields["layers"] = {{"oneOf", {number, runs}}};
  fields["layer_kinds"] = {
      {"type", "object"},
      {"minProperties", 1},
      {"propertyNames", {{"pattern", name["pattern"]}}},
      {"additionalProperties", SchemaWriter::write(LayerDescription{}, layer_fields, LeftOut::as_elsewhere)}};
}

}  // namespace headroom
