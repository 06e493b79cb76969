// Models of torchtitan: its flavors, and those that a module adds to them (experimental.custom_import).
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/decimal.hpp"
#include "headroom/interop/hugging_face.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/python.hpp"
#include "interop/launch_in/script_files.hpp"
#include "interop/launch_in/titan_parts.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// Flavors whose layers are those of an embedded model [torchtitan/models/*/__init__.py].
struct Flavor {
  std::string_view model;
  std::string_view flavor;  // in lower case
  std::string_view ours;
};
constexpr std::array<Flavor, 32> flavors{{
    {"llama2", "7b", "llama-2-7b"},
    {"llama2", "13b", "llama-2-13b"},
    {"llama2", "70b", "llama-2-70b"},
    {"llama3", "1b", "llama-3.2-1b"},
    {"llama3", "3b", "llama-3.2-3b"},
    {"llama3", "8b", "llama-3-8b"},
    {"llama3", "8b_flex", "llama-3-8b"},
    {"llama3", "8b_varlen", "llama-3-8b"},
    {"llama3", "70b", "llama-3-70b"},
    {"llama3", "405b", "llama-3-405b"},
    {"llama4", "17bx16e", "llama-4-scout"},
    {"llama4", "17bx128e", "llama-4-maverick"},
    {"llama4", "17bx16e_irope", "llama-4-scout"},
    {"llama4", "17bx128e_irope", "llama-4-maverick"},
    {"deepseek_v3", "16b", "deepseek-v2-lite"},
    {"deepseek_v3", "236b", "deepseek-v2"},
    {"deepseek_v3", "671b", "deepseek-v3"},
    {"deepseek_v3", "kimi_k2", "kimi-k2"},
    {"qwen3", "0.6b", "qwen3-0.6b"},
    {"qwen3", "1.7b", "qwen3-1.7b"},
    {"qwen3", "4b", "qwen3-4b"},
    {"qwen3", "8b", "qwen3-8b"},
    {"qwen3", "14b", "qwen3-14b"},
    {"qwen3", "32b", "qwen3-32b"},
    {"qwen3", "30b-a3b", "qwen3-30b-a3b"},
    {"qwen3", "30b_a3b", "qwen3-30b-a3b"},
    {"qwen3", "235b-a22b", "qwen3-235b-a22b"},
    {"qwen3", "235b_a22b", "qwen3-235b-a22b"},
    {"gpt_oss", "20b", "gpt-oss-20b"},
    {"gpt_oss", "120b", "gpt-oss-120b"},
    {"gpt_oss", "20b_flex", "gpt-oss-20b"},
    {"gpt_oss", "120b_flex", "gpt-oss-120b"},
}};

// Models for tests: of their first sizes [torchtitan/models/llama3/__init__.py, debugmodel].
void debug_members(const std::string& model, const Written* from, RunBuilder& builder) {
  builder.name_absent_model(model + " debugmodel", from);
  builder.member("hidden", 256, nullptr);
  builder.member("layers", 6, nullptr);
  builder.member("heads", 16, nullptr);
  builder.member("feedforward", 768, nullptr);
  builder.member("vocabulary", 2048, nullptr);
  if (model == "deepseek_v3" || model == "llama4") {
    builder.member("experts/count", 8, nullptr);
    builder.member("experts/per_token", model == "llama4" ? 1 : 3, nullptr);
    builder.member("experts/feedforward", 256, nullptr);
  }
  llama_members(builder);
  builder.assume(
      fmt::format("{}'s debugmodel is read as 6 layers of width 256 with a vocabulary of 2,048", model),
      from);
}

bool is_flavor(const Flavor& row, std::string_view model, std::string_view flavor) {
  return model.starts_with(row.model) && row.flavor == flavor;
}

// The arguments of a model as they are written in Python: "TransformerModelArgs(dim=4096, ...)".
class TitanArguments {
 public:
  TitanArguments(const TreeNode& node, std::string file, RunBuilder& builder)
      : node_(node), file_(std::move(file)), builder_(builder) {}

  // The size that is written, else the class's own.
  [[nodiscard]] std::int64_t size(std::string_view name, std::int64_t by_default) const {
    const TreeNode* const written = member_of(node_, name);
    if (written == nullptr || written->kind == TreeKind::none) return by_default;
    const std::optional<std::int64_t> count =
        written->kind == TreeKind::scalar ? whole_count(written->text) : std::nullopt;
    if (!count) problem(*written, fmt::format("must be a whole number, not '{}'", printable(written->text)));
    return count.value_or(by_default);
  }

  void member(std::string_view path, std::string_view name, std::int64_t by_default) {
    put(path, size(name, by_default), name);
  }
  // Sets a member of the model. Errors point at the argument `name`.
  void put(std::string_view path, Json value, std::string_view name) {
    const TreeNode* const written = member_of(node_, name);
    Written from = written_as(written == nullptr ? node_ : *written);
    if (written == nullptr) from.as_written = name;
    builder_.member(path, std::move(value), &from);
  }

  void problem(const TreeNode& written, std::string rule) const {
    builder_.problem(written_as(written), std::move(rule));
  }
  [[nodiscard]] const TreeNode* find(std::string_view name) const { return member_of(node_, name); }
  [[nodiscard]] bool is_true(std::string_view name) const {
    const TreeNode* const written = member_of(node_, name);
    if (written != nullptr && written->text != "True" && written->text != "False")
      problem(*written, "must be True or False");
    return written != nullptr && written->text == "True";
  }
  [[nodiscard]] Written written_as(const TreeNode& node) const {
    const std::string text = node.kind == TreeKind::scalar ? node.text : node.text + "(...)";
    return {node.key, {text}, node.key + "=" + text, {file_, node.line}, {}};
  }

 private:
  const TreeNode& node_;
  std::string file_;
  RunBuilder& builder_;
};

// The width of FeedForward of torchtitan's llama3 [torchtitan/models/llama3/model/model.py].
std::int64_t llama_feedforward(const TitanArguments& arguments) {
  constexpr double largest = 1e15;
  const double dim = static_cast<double>(arguments.size("dim", 4096));
  double width = std::floor(8 * dim / 3);
  if (const TreeNode* const factor = arguments.find("ffn_dim_multiplier"); factor != nullptr) {
    const char* const end = factor->text.data() + factor->text.size();
    double times = 1;
    const auto [at, error] = decimal_from_chars(factor->text.data(), end, times);
    if (factor->kind != TreeKind::none && (error != std::errc() || at != end))
      arguments.problem(*factor, "must be a number");
    width = std::floor(width * times);
  }
  const std::int64_t step = std::max<std::int64_t>(arguments.size("multiple_of", 256), 1);
  if (!(width > 0 && width < largest) || step > static_cast<std::int64_t>(largest)) return 0;
  return (static_cast<std::int64_t>(width) + step - 1) / step * step;
}

// Experts of torchtitan [torchtitan/models/moe/moe.py, MoEArgs].
void titan_experts(TitanArguments& model, const TreeNode& node, std::int64_t width, const std::string& path,
                   const std::string& file, RunBuilder& builder) {
  const TreeNode* const written = model.find("moe_args");
  TreeNode none;
  none.line = node.line;
  TitanArguments experts(written == nullptr ? none : *written, file, builder);
  const std::int64_t feedforward = model.size("moe_inter_dim", width);
  const std::int64_t shared = experts.size("num_shared_experts", 1);
  experts.member(path + "/count", "num_experts", 8);
  experts.member(path + "/per_token", "top_k", 1);
  model.put(path + "/feedforward", feedforward, "moe_inter_dim");
  constexpr std::int64_t most = 1 << 24;
  if (shared != 0) {
    // Beyond any size, which the model's own rules refuse.
    const bool fits = shared > 0 && shared < most && feedforward > 0 && feedforward < most;
    experts.put(path + "/shared_feedforward", fits ? shared * feedforward : shared, "num_shared_experts");
  }
  const TreeNode* const scores = experts.find("score_func");
  if (scores == nullptr || scores->text == "sigmoid") experts.put(path + "/scores", "sigmoid", "score_func");
}

// The sizes of a class of model arguments, with that class's defaults [torchtitan/models/*/model/args.py, v0.2.2].
// Returns the layers; none: it is not the class of the model `of`.
std::optional<std::int64_t> argument_members(const TreeNode& node, const std::string& of,
                                             const std::string& file, RunBuilder& builder) {
  TitanArguments model(node, file, builder);
  const std::string type = node.text.substr(node.text.rfind('.') + 1);
  const bool llama = type == "TransformerModelArgs" && (of.starts_with("llama2") || of.starts_with("llama3"));
  const bool qwen = type == "Qwen3ModelArgs" && of.starts_with("qwen3");
  const bool deepseek = type == "DeepSeekV3ModelArgs" && of.starts_with("deepseek_v3");
  if (!llama && !qwen && !deepseek) return std::nullopt;
  if (const TreeNode* const first = model.find("0"); first != nullptr)  // by its place
    model.problem(*first, "must be given by name, such as dim=4096");
  std::int64_t layers = model.size("n_layers", llama ? 32 : qwen ? 28 : 27);
  if (layers < 1 || layers > most_layers) {
    model.problem(*model.find("n_layers"), fmt::format("must be a number from 1 to {}", most_layers));
    layers = 1;
  }
  model.member("hidden", "dim", llama ? 4096 : qwen ? 1024 : 2048);
  model.member("heads", "n_heads", llama ? 32 : 16);
  model.member("vocabulary", "vocab_size", llama ? 128256 : qwen ? 151936 : 102400);
  if (llama) {
    model.member("layers", "n_layers", layers);
    model.member("key_value_heads", "n_kv_heads", model.size("n_heads", 32));
    model.put("feedforward", llama_feedforward(model), "ffn_dim_multiplier");
  } else if (qwen) {
    model.member("layers", "n_layers", layers);
    model.member("key_value_heads", "n_kv_heads", 8);
    model.member("head_size", "head_dim", 128);
    model.member("feedforward", "hidden_dim", 3072);
    model.put("qk_norm", "per_head", "qk_norm");
    model.put("tied_embeddings", model.is_true("enable_weight_tying"), "enable_weight_tying");
    if (model.is_true("moe_enabled")) titan_experts(model, node, 768, "experts", file, builder);
  } else {
    const std::int64_t dense = std::clamp<std::int64_t>(model.size("n_dense_layers", 1), 0, layers);
    Json runs = Json::array();
    if (dense > 0) runs.push_back({{"kind", "dense"}, {"count", dense}});
    if (layers > dense) runs.push_back({{"kind", "moe"}, {"count", layers - dense}});
    model.put("layers", std::move(runs), "n_layers");
    model.member("feedforward", "inter_dim", 10944);
    model.member("latent_attention/q_rank", "q_lora_rank", 0);
    model.member("latent_attention/kv_rank", "kv_lora_rank", 512);
    model.member("latent_attention/nope_head_size", "qk_nope_head_dim", 128);
    model.member("latent_attention/rope_head_size", "qk_rope_head_dim", 64);
    model.member("latent_attention/value_head_size", "v_head_dim", 128);
    if (layers > dense) titan_experts(model, node, 1408, "layer_kinds/moe/experts", file, builder);
  }
  llama_members(builder);
  builder.member("kernels/attention", "flash", nullptr);
  return layers;
}

// A flavor that a module beside the configuration adds: "llama3_args["mine"] = TransformerModelArgs(...)".
std::optional<std::int64_t> take_added_flavor(const Written& module, const std::string& model,
                                              const std::string& flavor, RunBuilder& builder) {
  std::string path = text_of_values(module);
  std::replace(path.begin(), path.end(), '.', '/');
  const std::optional<std::string> file = place_in_script(path + ".py", module.at.file);
  if (!file) return std::nullopt;
  PythonResult names;
  try {
    names = python_names(read_file(*file), *file);
  } catch (const InputError& error) {
    builder.assume(fmt::format("{} is not read: {}", *file, error.what()));
    return std::nullopt;
  }
  for (const TreeNode& table : names.root.members) {
    const TreeNode* const arguments = table.kind == TreeKind::map ? member_of(table, flavor) : nullptr;
    if (arguments == nullptr) continue;
    const auto layers = argument_members(*arguments, model, *file, builder);
    if (!layers) {
      builder.assume(fmt::format("{}:{}: Headroom does not read the arguments of {}(...)", *file,
                                 arguments->line, printable(arguments->text)));
      continue;
    }
    for (const PythonRemark& remark : names.remarks)
      builder.assume(fmt::format("{}:{}: {}", *file, remark.line, remark.text));
    return layers;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::pair<std::string, std::string>> titan_flavor(const std::string& name) {
  const std::string word = lower_case(name);
  for (std::size_t at = word.find('_'); at != std::string::npos; at = word.find('_', at + 1)) {
    const std::string model = word.substr(0, at);
    const std::string flavor = word.substr(at + 1);
    if (std::any_of(flavors.begin(), flavors.end(),
                    [&](const Flavor& row) { return is_flavor(row, model, flavor); }))
      return std::pair{model, flavor};
  }
  return std::nullopt;
}

std::optional<std::int64_t> take_titan_model(const std::string& given, const std::string& flavor,
                                             const Written* from, const std::string& file,
                                             RunBuilder& builder, const Written* module) {
  if (module != nullptr) {
    if (const auto layers = take_added_flavor(*module, lower_case(given), flavor, builder)) return layers;
  }
  const std::string model = lower_case(given);
  std::string kind = lower_case(flavor);
  if (kind.starts_with("debugmodel") || kind.starts_with("debug_model")) {
    debug_members(model, from, builder);
    return 6;
  }
  const auto is_known = [&] {
    return std::any_of(flavors.begin(), flavors.end(),
                       [&](const Flavor& row) { return is_flavor(row, model, kind); });
  };
  // Forks name their settings behind a flavor: "30B-A3B-deepep".
  for (std::size_t end = kind.find_last_of("-_"); !is_known() && end != std::string::npos;
       end = kind.find_last_of("-_"))
    kind.resize(end);
  if (!is_known()) kind = lower_case(flavor);
  if (kind != lower_case(flavor))
    builder.imply(fmt::format("the layers of flavor {} are those of {}", printable(flavor), kind), from);
  for (const Flavor& row : flavors) {
    if (!is_flavor(row, model, kind)) continue;
    builder.name_model(std::string(row.ours), from);
    if (row.ours == "deepseek-v3") {
      builder.member("mtp_layers", 0, nullptr);
      builder.imply("torchtitan's DeepSeek-V3 has no multi-token prediction", from);
    }
    if (row.ours == "deepseek-v2-lite")
      builder.imply("deepseek_v3 16B has the layers of DeepSeek-V2-Lite", from);
    return read_any_model(std::string(row.ours)).layers;
  }
  name_model_of(given + (flavor.empty() ? "" : "-" + flavor), from, file, builder);
  return std::nullopt;
}

}  // namespace headroom
