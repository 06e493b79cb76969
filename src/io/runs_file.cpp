#include "headroom/io/runs_file.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "document.hpp"
#include "file_formats.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/releases_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/source_file.hpp"
#include "headroom/model/hybrid_pattern.hpp"
#include "headroom/parallel/layout_text.hpp"
#include "model_fields.hpp"
#include "object_reader.hpp"
#include "run_fields.hpp"
#include "run_graphs.hpp"
#include "run_members.hpp"
#include "schema_writer.hpp"
#include "text.hpp"

namespace headroom {
namespace {

constexpr std::size_t most_runs = 10'000;

void drop_nulls(Json& value) {
  if (!value.is_structured()) return;
  for (auto member = value.begin(); member != value.end();) {
    drop_nulls(*member);
    member = member->is_null() && value.is_object() ? value.erase(member) : std::next(member);
  }
}

// Says in the schema of an object that what it does not require may be null, and so in its members.
void or_null(nlohmann::ordered_json& object) {
  if (!object.contains("properties")) return;
  const nlohmann::ordered_json required = object.value("required", nlohmann::ordered_json::array());
  for (auto& [name, member] : object["properties"].items()) {
    or_null(member);
    if (contains(required, name)) continue;
    if (member.contains("type")) member["type"] = {member["type"], "null"};
    if (member.contains("enum")) member["enum"].push_back(nullptr);
  }
}

// And that it has a member of any kind at a place, "/model/params_b".
void allow_anything(nlohmann::ordered_json& object, std::string_view place) {
  const std::size_t end = place.find('/', 1);
  nlohmann::ordered_json& member = object["properties"][std::string(place.substr(1, end - 1))];
  if (end == std::string_view::npos) {
    member = nlohmann::ordered_json::object();
  } else {
    allow_anything(member, place.substr(end));
  }
}

const Json* find(const Json& run, std::string_view path) {
  const JsonPointer field{std::string(path)};
  return run.contains(field) ? &run.at(field) : nullptr;
}

// False, 0, "none" and lists of such are not.
bool is_had(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value != 0;
  if (value.is_array()) return std::any_of(value.begin(), value.end(), is_had);
  return !value.is_string() || value != "none";
}

void erase(Json& run, std::string_view path) {
  const JsonPointer field{std::string(path)};
  const JsonPointer parent = field.parent_pointer();
  if (run.contains(parent) && run.at(parent).is_object()) run.at(parent).erase(field.back());
}

std::string words_of(const Json& run, std::string_view path) {
  const Json* const words = find(run, path);
  return words != nullptr && words->is_string() ? words->get<std::string>() : std::string();
}

// Of those that shard weights, by what they call it, and by what their overlap says.
std::string stack_of_sharding(const std::string& name, const Json& run) {
  if (name.starts_with("Megatron-FSDP")) return "nemo-2025";
  const bool second = name.starts_with("FSDP2") || words_of(run, "/overlap").starts_with("FSDP2");
  return second ? "torchtitan-2025" : "pytorch-fsdp-2023";
}

// The stacks and releases that say of which software's runs they are, read when a run first says its software.
class StacksOfRuns {
 public:
  std::optional<std::string> of(const std::string& software) {
    if (software.empty()) return std::nullopt;
    if (stacks_.empty()) {
      stacks_ = list_software();
      families_ = list_families();
    }
    std::optional<std::string> release = release_of_runs(families_, software);
    return release ? std::move(release) : stack_of_runs(stacks_, software);
  }

 private:
  std::vector<Software> stacks_;
  std::vector<StackFamily> families_;
};

// Layers whose saved tensors were on the host are read. What else was there is not modelled.
void take_offload(Json& run, MeasuredRun& measured) {
  const Json* const found = find(run, "/offload");
  if (found == nullptr) return;
  Json left = *found;
  const bool reads_layers = left.is_object() && left.contains("activations_layers");
  if (reads_layers) left.erase("activations_layers");
  const bool other = left.is_object() ? std::any_of(left.begin(), left.end(), is_had) : is_had(left);
  if (other) measured.unmodelled.emplace_back("offloading to the host");
  if (!reads_layers) return erase(run, "/offload");
  run["offload"] = {{"activations_layers", found->at("activations_layers")}};
}

// What is taken from a run before ObjectReader reads it, which then has no nulls and words, and "FULL_SHARD" as true.
void normalize(Json& run, StacksOfRuns& stacks, WrittenRun& written) {
  drop_nulls(run);
  if (!run.is_object()) return;
  take_offload(run, written.run);
  const std::string software = words_of(run, "/software");
  written.run.sharding_stack = stacks.of(software.empty() ? words_of(run, "/source/title") : software);
  if (const Json* sharded = find(run, "/parallel/fsdp"); sharded != nullptr && sharded->is_string()) {
    const auto name = sharded->get<std::string>();
    written.run.shards_in_node = name == "HYBRID_SHARD";
    if (!written.run.sharding_stack) written.run.sharding_stack = stack_of_sharding(name, run);
    run["parallel"]["fsdp"] = true;
  }
  const std::string kernels = words_of(run, "/attention_backend");
  if (kernels.find("unfused") != std::string::npos && !run.contains("flash_attention"))
    run["flash_attention"] = false;
  for (const std::string_view path : described_members) erase(run, path);
  for (const std::string_view path : unread_members) {
    if (find(run, path) == nullptr) continue;
    std::string name(path.substr(1));
    std::replace(name.begin(), name.end(), '/', '.');
    written.run.unread.push_back(std::move(name));
    erase(run, path);
  }
  if (const Json* model = find(run, "/model"); model != nullptr && model->is_string()) {
    written.model = model->get<std::string>();
    erase(run, "/model");
  }
  written.graphs = graphs_of(run);
  erase(run, "/cuda_graphs");
}

// Layers, virtual stages and multi-token prediction that a layout tells. What else the run says of these stays.
void lay_stages(WrittenRun& written, Document& document, const JsonPointer& at) {
  if (!written.layout) return;
  MeasuredRun& run = written.run;
  const JsonPointer place = at / "parallel" / "layout";
  const std::int64_t ranks = run.pipeline_parallel;
  if (*written.layout == "even") {
    const std::int64_t stages = ranks * run.virtual_pipeline.value_or(1);
    const std::int64_t layers = run.model ? run.model->layers : run.layers;
    if (layers % stages != 0)
      document.report(place,
                      fmt::format("cannot be even with {} layers on {} virtual stages", layers, stages));
    return;
  }
  const auto read = read_layout(*written.layout);
  if (const auto* const rule = std::get_if<std::string>(&read)) {
    document.report(place, fmt::format("{} (found \"{}\")", *rule, printable(*written.layout)));
    return;
  }
  const auto& layout = std::get<WrittenLayout>(read);
  const std::int64_t stages = std::ssize(layout.stage_layers);
  if (!run.virtual_pipeline && stages % ranks == 0) run.virtual_pipeline = stages / ranks;
  if (stages != ranks * run.virtual_pipeline.value_or(1)) {
    document.report(place,
                    fmt::format("must have a stage for each of {} pipeline ranks x {} virtual stages, not {}",
                                ranks, run.virtual_pipeline.value_or(1), stages));
  }
  std::int64_t& predictors = run.model ? run.model->mtp_layers : run.mtp_layers;
  if (predictors == 0) predictors = layout.mtp_layers;
  if (layout.mtp_layers > 0 && layout.mtp_layers != predictors) {
    document.report(place,
                    fmt::format("must have an m for each of {} layers of multi-token prediction, not {}",
                                predictors, layout.mtp_layers));
  }
  if (!layout.mtp_beside_loss)
    run.unmodelled.emplace_back(
        "a layout with multi-token prediction (m) in another stage than the loss (L)");
  if (stages > 1) run.stage_layers = layout.stage_layers;
}

// Reads what the run refers to by name, and what it says in words of its own. Notes what does not exist.
void resolve(WrittenRun& written, Document& document, const JsonPointer& at) {
  MeasuredRun& run = written.run;
  const auto named = [&](const JsonPointer& field, auto read) {
    try {
      read();
    } catch (const InputError& error) {
      for (const auto& [where, rule] : error.problems()) document.report(field, where + " " + rule);
    }
  };
  if (written.iteration) run.iteration = Seconds(*written.iteration);
  run.cuda_graphs = written.graphs.recorded.graphs;
  run.cuda_graph_modules = written.graphs.recorded.modules;
  if (!written.graphs.rule.empty()) document.report(at / "cuda_graphs", written.graphs.rule);
  choices_of_embedded(run);
  // It comes with Transformer Engine's op fuser, whose activation clamps and whose products add biases
  // [transformer_engine/pytorch/ops/basic, ScaledClampedQGeGLU, GroupedLinear; Megatron-Bridge, perf_recipes/gpt_oss/common.py].
  if (written.paged_stash) {
    run.settings = laid_over(run.settings,
                             RunSettings{.clamp_kernel = Fusion::fused, .expert_bias_kernel = Fusion::fused});
  }
  if (written.model) named(at / "model", [&] { run.model = read_model(*written.model); });
  if (run.model) run.sequence = run.model->sequence;
  lay_stages(written, document, at);
  if (run.stack) named(at / "stack", [&] { read_software(*run.stack); });
  if (written.sequence) run.sequence = *written.sequence;
  if (written.tensor_overlap && !run.settings.overlap_tensor_parallel)
    run.settings.overlap_tensor_parallel =
        *written.tensor_overlap ? TensorOverlap::full : TensorOverlap::backward;
  const bool adapts = written.mode && written.mode->find("LoRA") != std::string::npos;
  if (adapts && !trains_adapters(run.lora)) run.lora = lora_of_recipes;
  if (run.experts && written.capacity_factor) run.experts->capacity_factor = written.capacity_factor;
  if (run.experts && written.router_dtype) run.experts->router_dtype = *written.router_dtype;
  if (run.experts && run.experts->count > 0 && run.experts->per_token > run.experts->count) {
    document.report(at / "model" / "moe" / "topk", fmt::format("must be at most experts ({} > {})",
                                                               run.experts->per_token, run.experts->count));
  }
  if (run.experts) {
    resolve_expert_groups(*run.experts, [&](std::string_view field, std::string rule) {
      const char* const of_run = field == "groups" ? "groups" : field == "per_token" ? "topk" : "group_topk";
      document.report(at / "model" / "moe" / of_run, std::move(rule));
    });
  }
  if (written.pattern) {
    if (const auto layers = hybrid_layers(*written.pattern)) {
      run.hybrid_layers = *layers;
    } else {
      document.report(at / "model" / "hybrid_pattern", hybrid_pattern_rule());
    }
  }
  if (written.norm == "rms" || written.norm == "rms_norm") run.normalization = Normalization::rms_norm;
  if (written.norm == "layer" || written.norm == "layer_norm") run.normalization = Normalization::layer_norm;
  if (written.norm && !run.normalization)
    document.report(at / "model" / "norm",
                    "must be rms or layer (found \"" + printable(*written.norm) + "\")");
  if (const std::string rule = run.key.empty() ? "" : unknown_source(run.key); !rule.empty())
    document.report(at / "source" / "key", rule);
}

// The run of a row, which is a document of its own.
MeasuredRun read_run(Document row, StacksOfRuns& stacks) {
  WrittenRun written;
  normalize(row.root, stacks, written);
  ObjectReader::read(row, JsonPointer(), written, run_fields);
  resolve(written, row, JsonPointer());
  for (auto& [where, rule] : row.problems)
    written.run.mistakes.push_back({std::move(where), std::move(rule)});
  return std::move(written.run);
}

// A mistake that was found in the text of a whole file, "runs.json: /12/parallel/tp", as one of the row that it is in.
std::pair<std::size_t, Problem> in_row(const Problem& problem, const std::string& file) {
  const std::string place = problem.where.substr(file.size() + std::string_view(": /").size());
  std::size_t digits = 0;
  const std::size_t row = std::stoul(place, &digits);
  return {row, {place.substr(digits), problem.rule}};
}

}  // namespace

nlohmann::ordered_json runs_schema() {
  using Schema = nlohmann::ordered_json;
  Schema run = SchemaWriter::write(WrittenRun{}, run_fields, LeftOut::as_elsewhere);
  or_null(run);
  for (const auto& paths : {std::span<const std::string_view>(described_members),
                            std::span<const std::string_view>(unread_members)}) {
    for (const std::string_view path : paths) allow_anything(run, path);
  }
  allow_anything(run, "/offload");
  Schema& fields = run["properties"];
  fields["parallel"]["properties"]["fsdp"]["type"].push_back("string");
  fields["model"] = {{"oneOf", {text_schema(), fields["model"]}}};
  const Schema words = {
      {"enum", {nullptr, false, "none", "local", "transformer_engine", "layers", "full_iteration"}}};
  fields["cuda_graphs"] = {
      {"oneOf", {words, {{"type", "object"}, {"required", {"impl"}}, {"properties", {{"impl", words}}}}}}};
  return {{"type", "array"}, {"minItems", 1}, {"maxItems", most_runs}, {"items", std::move(run)}};
}

std::vector<MeasuredRun> parse_runs(std::string_view text, const std::string& file) {
  Document document = read_document(text, file, most_runs);
  if (!document.root.is_array()) throw InputError(file, "must be a list of runs");
  if (document.root.empty()) throw InputError(file, "holds no runs");
  if (document.problems.size() == most_problems_listed) document.finish();  // more may have gone unnoted
  std::vector<MeasuredRun> runs;
  StacksOfRuns stacks;
  for (std::size_t i = 0; i < document.root.size(); ++i) {
    runs.push_back(read_run({.file = "",
                             .root = std::move(document.root[i]),
                             .overridden = {},
                             .overrides = {},
                             .origins = {},
                             .problems = {}},
                            stacks));
    if (runs.back().name.empty()) runs.back().name = "/" + std::to_string(i);
  }
  for (const Problem& problem : document.problems) {
    auto [row, mistake] = in_row(problem, file);
    runs[row].mistakes.push_back(std::move(mistake));
  }
  return runs;
}

std::vector<MeasuredRun> read_runs(const std::string& path) { return parse_runs(read_file(path), path); }

std::vector<Problem> mistakes_of(const std::vector<MeasuredRun>& runs, const std::string& file) {
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [where, rule] : runs[i].mistakes) {
      if (problems.size() == most_problems_listed) {
        problems.push_back({file, "has more problems than these"});
        return problems;
      }
      problems.push_back({fmt::format("{}: /{}{}", file, i, where), rule});
    }
  }
  return problems;
}

}  // namespace headroom
