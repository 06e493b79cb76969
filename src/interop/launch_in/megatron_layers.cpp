// Layers of Megatron-Core by the names of its configuration, which Megatron-LM's flags and Megatron-Bridge's overrides share.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/hardware/launch_mode.hpp"
#include "interop/launch_in/megatron_model.hpp"

namespace headroom {

void read_attention(const MegatronSettings& asked, RunBuilder& run) {
  const Written* const groups = asked.first({"num_query_groups", "num_key_value_heads"});
  const bool latent = asked.is("multi_latent_attention");
  const bool grouped =
      asked.is("group_query_attention") || (groups != nullptr && groups->name != "num_query_groups");
  if (latent) {
    const auto size = [&](std::initializer_list<std::string_view> names, std::int64_t fallback) {
      const Written* const setting = asked.first(names);
      if (setting == nullptr) return fallback;
      const auto number = asked.number(*setting);
      if (!number && setting->unknown.empty()) run.problem(*setting, "must be a whole number");
      return number.value_or(fallback);
    };
    const Written* const from = asked.find("multi_latent_attention");
    // Defaults of arguments.py, _add_mla_args.
    run.member("latent_attention/q_rank", size({"q_lora_rank"}, 0), from);
    run.member("latent_attention/kv_rank", size({"kv_lora_rank"}, 32), from);
    run.member("latent_attention/nope_head_size", size({"qk_head_dim", "qk_nope_head_dim"}, 128), from);
    run.member("latent_attention/rope_head_size", size({"qk_pos_emb_head_dim", "qk_rope_head_dim"}, 64),
               from);
    run.member("latent_attention/value_head_size", size({"v_head_dim"}, 128), from);
    run.member("positions", "rotary", nullptr);
  } else {
    if (grouped) {
      run.member("key_value_heads", groups == nullptr ? 1 : asked.number(*groups).value_or(1),
                 groups == nullptr ? asked.find("group_query_attention") : groups);
      if (groups == nullptr)
        run.imply("attention has one KV head: --num-query-groups is not given",
                  asked.find("group_query_attention"));
    } else if (groups != nullptr && asked.number(*groups).value_or(1) > 1) {
      run.imply(
          "every head has keys and values of its own: --num-query-groups is ignored without "
          "--group-query-attention",
          groups);
    }
    const Written* const channels = asked.find("kv_channels");
    if (channels != nullptr && asked.number(*channels))
      run.member("head_size", *asked.number(*channels), channels);
    const Written* const norm = asked.find("qk_layernorm");
    if (norm != nullptr && is_on(*norm)) run.member("qk_norm", "per_head", norm);
  }
  const Written* const backend =
      asked.first({"attention_backend", "use_flash_attn", "use_flash_attn_v2", "use_flash_attn_triton"});
  const std::string text = backend == nullptr ? "" : text_of_values(*backend);
  if (text == "unfused" || text == "local") run.member("kernels/attention", "unfused", backend);
  if (backend != nullptr &&
      (text == "flash" || text == "fused" || (backend->name != "attention_backend" && is_on(*backend))))
    run.member("kernels/attention", "flash", backend);
  if (backend == nullptr && run.so_far().framework == "Megatron-DeepSpeed") {
    run.member("kernels/attention", "unfused", nullptr);
    run.imply("attention is unfused and saves its scores: --use-flash-attn is not given");
  }
  if (asked.text("softmax_type") == "learnable")
    run.member("attention_sinks", true, asked.find("softmax_type"));
}

namespace {

struct ExpertMember {
  std::string_view argument;
  std::string_view member;
};
constexpr std::array<ExpertMember, 6> expert_members{{
    {"moe_router_topk", "per_token"},
    {"topk", "per_token"},
    {"moe_shared_expert_intermediate_size", "shared_feedforward"},
    {"moe_router_num_groups", "groups"},
    {"moe_router_group_topk", "groups_per_token"},
    {"moe_latent_size", "latent"},
}};

constexpr std::int64_t most_of_window = std::int64_t{1} << 40;

std::int64_t mlp_width(const MegatronSettings& asked, const RunBuilder& run) {
  const Json* const read = run.member_at("feedforward");
  if (read != nullptr && read->is_number_integer()) return read->get<std::int64_t>();
  return asked.number("ffn_hidden_size").value_or(0);
}

}  // namespace

void read_experts(const MegatronSettings& asked, const std::string& at, RunBuilder& run) {
  const auto put = [&](std::string_view name, Json value, const Written* from) {
    run.member(at + "experts/" + std::string(name), std::move(value), from);
  };
  const Written* const count = asked.first({"num_experts", "num_moe_experts"});
  put("count", asked.number(*count).value_or(1), count);
  put("per_token", asked.has("deepspeed") ? 1 : 2, nullptr);
  for (const auto& [argument, member] : expert_members) {
    const Written* const setting = asked.find(argument);
    if (setting != nullptr && asked.number(*setting)) put(member, *asked.number(*setting), setting);
  }
  const Written* const width = asked.first({"moe_ffn_hidden_size", "moe_intermediate_size"});
  if (width != nullptr && asked.number(*width)) put("feedforward", *asked.number(*width), width);
  // Shared experts by their number are as wide as the others, which are as wide as the MLP where that is not
  // written [MindSpeed, features_manager/moe/shared_expert.py, validate_args].
  const Written* const shared = asked.first({"num_shared_experts", "n_shared_experts"});
  const std::int64_t each = width != nullptr ? asked.number(*width).value_or(0) : mlp_width(asked, run);
  if (shared != nullptr && !asked.has("moe_shared_expert_intermediate_size")) {
    const auto number = asked.number(*shared);
    const auto all = product_of(number.value_or(0), each);
    if (!number)
      run.problem(*shared, shared->unknown.empty() ? "must be a whole number" : shared->unknown);
    else if (*number < 0 || !all || *all > most_count)
      run.problem(*shared, fmt::format("must be a number of experts of width {}, not {}", each, *number));
    else if (all && *all > 0)
      put("shared_feedforward", *all, shared);
  }
  const Written* const score = asked.find("moe_router_score_function");
  if (score != nullptr && text_of_values(*score) == "sigmoid") put("scores", "sigmoid", score);
  if (asked.is("moe_router_pre_softmax"))
    put("scores", "softmax_before_choice", asked.find("moe_router_pre_softmax"));
  if (asked.is("moe_router_enable_expert_bias"))
    put("router_bias", true, asked.find("moe_router_enable_expert_bias"));
  if (asked.text("moe_router_load_balancing_type") == "none")
    put("auxiliary_loss", false, asked.find("moe_router_load_balancing_type"));
  const Written* const capacity = asked.first({"moe_expert_capacity_factor", "moe_train_capacity_factor"});
  if (capacity != nullptr && capacity->unknown.empty() && !capacity->values.empty() &&
      !asked.is("disable_moe_token_dropping")) {
    const Json factor = scalar(text_of_values(*capacity));
    if (factor.is_number() && factor.get<double>() > 0) put("capacity_factor", factor, capacity);
  }
  const Written* const dtype = asked.find("moe_router_dtype");
  const bool wide = dtype != nullptr && text_of_values(*dtype) == "fp32";
  put("router_dtype", wide ? "fp32" : "half", dtype);  // [core/transformer/transformer_config.py]
  if (dtype == nullptr) run.imply("routing is in the dtype of the model: --moe-router-dtype is not given");
}

namespace {

// 1 for each layer with experts; nothing: they are not known, and that is told.
std::optional<std::vector<int>> layers_with_experts(const MegatronSettings& asked, std::int64_t layers,
                                                    RunBuilder& run) {
  const Written* const frequency = asked.find("moe_layer_freq");
  const Written* const first = asked.find("first_k_dense_replace");
  const Written* const interval = asked.find("expert_interval");
  const Written* from = frequency != nullptr ? frequency : interval;
  // MindSpeed-LLM's spelling of no dense layers.
  if (from != nullptr && from->unknown.empty() && text_of_values(*from) == "-1") from = nullptr;
  const bool counts = from == nullptr && first != nullptr && asked.number(*first);
  if (from != nullptr && !from->unknown.empty()) {
    asked.tell_unknown(*from, run);
    return std::nullopt;
  }
  std::optional<std::vector<int>> which;
  if (counts) {
    const auto dense = std::clamp<std::int64_t>(*asked.number(*first), 0, layers);
    which.emplace(static_cast<std::size_t>(dense), 0);
    which->resize(static_cast<std::size_t>(layers), 1);
    from = first;
  } else {
    which = expert_layers(from == nullptr ? "1" : text_of_values(*from), layers);
  }
  if (!which) {
    run.problem(*from, "must be a number of layers or a list of 0 and 1, such as '([0]*3+[1]*58)'");
  } else if (std::ssize(*which) < layers) {
    run.problem(*from, fmt::format("must name {} layers, not {}", layers, which->size()));
    which.reset();
  } else {
    which->resize(static_cast<std::size_t>(layers));
  }
  // Dense layers first, then every n-th with experts [MindSpeed-LLM, core/models/gpt/gpt_layer_specs.py].
  if (which && !counts && first != nullptr && asked.number(*first)) {
    const auto dense = std::clamp<std::int64_t>(*asked.number(*first), 0, layers);
    std::fill_n(which->begin(), dense, 0);
  }
  if (which && std::none_of(which->begin(), which->end(), [](int moe) { return moe == 1; })) {
    run.problem(*from, "leaves no layer with experts");
    which.reset();
  }
  return which;
}

// Tokens that a layer with a window attends to, of --window-size, which counts those to the left of the query.
std::optional<std::int64_t> window_of(const MegatronSettings& asked, RunBuilder& run) {
  const Written* const window = asked.find("window_size");
  if (window == nullptr || !window->unknown.empty() || !is_on(*window)) return std::nullopt;
  std::string number = text_of_values(*window);
  std::erase_if(number, [](char c) { return c == '(' || c == '[' || c == ' ' || c == '\''; });
  const auto left = whole_number(number.substr(0, number.find(',')));
  if (!left) run.problem(*window, "must be the tokens to the left and to the right, such as 127,0");
  return left && *left >= 0 && *left < most_of_window ? std::optional(*left + 1) : std::nullopt;
}

// 1 for each layer with a window: all but every n-th, or as listed [core/transformer/utils.py,
// is_layer_window_attention].
std::optional<std::vector<int>> layers_with_windows(const MegatronSettings& asked, std::int64_t layers,
                                                    RunBuilder& run) {
  std::vector<int> which(static_cast<std::size_t>(layers), 1);
  const Written* const skips = asked.find("window_attn_skip_freq");
  if (skips == nullptr) return which;
  if (!skips->unknown.empty()) {
    asked.tell_unknown(*skips, run);
    return std::nullopt;
  }
  if (const auto every = whole_number(text_of_values(*skips)); every && *every > 0) {
    for (std::size_t i = 0; i < which.size(); ++i)
      which[i] = (i + 1) % static_cast<std::size_t>(*every) == 0 ? 0 : 1;
    return which;
  }
  auto listed = expert_layers(text_of_values(*skips), layers);
  if (listed && std::ssize(*listed) == layers) return listed;
  run.problem(
      *skips,
      fmt::format("must be a positive number or a list of {} zeros and ones, such as '[1,0]*2'", layers));
  return std::nullopt;
}

bool are_mixed(const std::vector<int>& which) {
  return std::any_of(which.begin(), which.end(), [&](int one) { return one != which.front(); });
}

}  // namespace

void read_layers(const MegatronSettings& asked, const Written& setting, std::int64_t layers,
                 RunBuilder& run) {
  run.member("layers", layers, &setting);
  std::optional<std::vector<int>> moe(std::in_place, static_cast<std::size_t>(layers), 0);
  if (asked.has_experts()) moe = layers_with_experts(asked, layers, run);
  const std::optional<std::int64_t> window = window_of(asked, run);
  std::vector<int> sliding(static_cast<std::size_t>(layers), 0);
  if (window) {
    if (auto listed = layers_with_windows(asked, layers, run)) sliding = std::move(*listed);
  }
  if (!moe) return;
  const bool by_experts = are_mixed(*moe);
  const bool by_windows = are_mixed(sliding);
  const Written* const at = asked.find("window_size");
  if (!by_experts && moe->front() == 1) read_experts(asked, "", run);
  if (!by_windows && sliding.front() == 1) run.member("window", *window, at);
  if (!by_experts && !by_windows) return;
  Json runs = Json::array();
  std::vector<std::string> kinds;
  for (std::size_t i = 0; i < moe->size(); ++i) {
    std::string kind = !by_experts ? "" : (*moe)[i] == 1 ? "moe" : "dense";
    if (by_windows)
      kind += fmt::format("{}{}", kind.empty() ? "" : "_", sliding[i] == 1 ? "sliding" : "full");
    if (runs.empty() || runs.back()["kind"] != kind) runs.push_back({{"kind", kind}, {"count", 0}});
    runs.back()["count"] = runs.back()["count"].get<std::int64_t>() + 1;
    if (contains(kinds, kind)) continue;
    kinds.push_back(kind);
    if (by_experts && (*moe)[i] == 1) read_experts(asked, fmt::format("layer_kinds/{}/", kind), run);
    if (by_windows) run.member(fmt::format("layer_kinds/{}/window", kind), sliding[i] == 1 ? *window : 0, at);
  }
  run.drop_member("layers");  // the count says no other than the list
  const Written* const from = asked.first({"moe_layer_freq", "expert_interval", "first_k_dense_replace"});
  run.member("layers", std::move(runs), from != nullptr ? from : asked.find("window_attn_skip_freq"));
}

void read_window(const MegatronSettings& asked, RunBuilder& run) {
  const Written* const window = asked.find("window_size");
  const auto tokens = window_of(asked, run);
  if (!tokens) return;
  if (asked.has("window_attn_skip_freq"))
    run.leave_out(*window, "a window of some layers: every layer attends to the whole sequence");
  else
    run.member("window", *tokens, window);
}

void read_clamp(const MegatronSettings& asked, RunBuilder& run) {
  const Written* const clamp = asked.find("activation_func_clamp_value");
  if (clamp == nullptr || !clamp->unknown.empty()) return;
  if (!asked.is("quick_geglu")) return run.leave_out(*clamp, "a clamped activation");
  run.drop_member("activation");
  // SwiGLU with a factor in the sigmoid [core/fusions/fused_bias_geglu.py, quick_gelu].
  run.member("activation", "swiglu", clamp);
  run.member("clamped_activation", true, clamp);
}

void read_graphs(const MegatronSettings& asked, RunBuilder& run) {
  const Written* const graphs = asked.first({"cuda_graph_impl", "enable_cuda_graph", "external_cuda_graph"});
  if (graphs == nullptr || !is_on(*graphs)) return;
  const Written* const scope = asked.first({"cuda_graph_scope", "cuda_graph_modules"});
  std::optional<CudaGraphs> asked_graphs =
      graphs_by(graphs->name == "cuda_graph_impl" ? text_of_values(*graphs) : std::string("local"));
  const RecordedGraphs recorded =
      recorded_graphs(asked_graphs, scope == nullptr ? std::vector<std::string>() : scope->values);
  if (recorded.graphs) run.choose("cuda_graphs", std::string(name_of(*recorded.graphs)), graphs);
  if (!recorded.modules.empty()) run.choose("cuda_graph_modules", joined(recorded.modules, ","), scope);
}

}  // namespace headroom
