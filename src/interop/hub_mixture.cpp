#include "interop/hub_mixture.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "headroom/core/counts.hpp"
#include "io/model_fields.hpp"

namespace headroom {
namespace {

class Mixture {
 public:
  Mixture(ConfigReader& config, const HubType& type, std::int64_t feedforward, std::vector<HubLayer>& layers)
      : config_(config), type_(type), feedforward_(feedforward), layers_(layers) {}

  Json read() {
    switch (type_.family) {
      case HubFamily::mixtral: mixtral(); break;
      case HubFamily::qwen_moe: qwen(); break;
      case HubFamily::deepseek:
      case HubFamily::glm: deepseek(); break;
      case HubFamily::gpt_oss: gpt_oss(); break;
      case HubFamily::llama4: llama4(); break;
      default: break;
    }
    return std::move(experts_);
  }

 private:
  [[nodiscard]] bool is(std::string_view name) const { return type_.name == name; }

  std::int64_t size(const char* ours, const std::string& key, std::int64_t by_default, Range sizes) {
    config_.stands_for(std::string("experts/") + ours, key);
    return config_.integer(key, by_default, sizes);
  }

  void experts(const std::string& count, std::int64_t by_default, std::int64_t per_token,
               std::int64_t width) {
    experts_ = {
        {"count", size("count", count, by_default, head_counts)},
        {"per_token", size("per_token", is("kimi_linear") ? "num_experts_per_token" : "num_experts_per_tok",
                           per_token, head_counts)},
        {"feedforward", width}};
  }

  // From the first that is not dense, each of so many, but for those listed.
  void expert_layers(std::int64_t dense_first, std::int64_t step,
                     const std::vector<std::size_t>& dense = {}) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      const bool listed = std::find(dense.begin(), dense.end(), i) != dense.end();
      layers_[i].experts = number >= dense_first && (number + 1) % step == 0 && !listed;
    }
  }

  void mixtral() {
    experts("num_local_experts", 8, 2, feedforward_);
    expert_layers(0, 1);
  }

  void qwen() {
    const bool second = is("qwen2_moe");
    const bool next = is("qwen3_next");
    const bool shared = second || next || is("qwen3_5_moe_text");
    const char* count = config_.has("num_experts") ? "num_experts" : "num_local_experts";
    experts(config_.has(count) ? count : "num_experts",
            second   ? 60
            : next   ? 512
            : shared ? 256
                     : 128,
            second ? 4
            : next ? 10
                   : 8,
            size("feedforward", "moe_intermediate_size",
                 second   ? 1408
                 : shared ? 512
                          : 768,
                 widths));
    if (shared) {
      experts_["shared_feedforward"] = size("shared_feedforward", "shared_expert_intermediate_size",
                                            second ? 5632 : 512, Range{0, widths.most});
      experts_["shared_gate"] = true;
    }
    const bool normalized = is("qwen3_5_moe_text") || config_.boolean("norm_topk_prob", next);
    if (!normalized) experts_["scores"] = "softmax_before_choice";
    expert_layers(0, config_.integer("decoder_sparse_step", 1, layer_counts),
                  config_.places("mlp_only_layers", layers_.size()));
  }

  void deepseek() {
    const bool v2 = is("deepseek_v2");
    const bool glm = type_.family == HubFamily::glm;
    const std::int64_t width = size("feedforward", "moe_intermediate_size",
                                    v2    ? 1407
                                    : glm ? 1408
                                          : 2048,
                                    widths);
    const bool kimi = is("kimi_linear");
    for (const char* const key : {"num_experts", "num_experts_per_token", "moe_intermediate_size",
                                  "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
      if (kimi && !config_.has(key)) config_.report(key, "is missing, and has no default in this model type");
    }
    if (kimi && config_.text("moe_router_activation_func", "sigmoid") != "sigmoid")
      config_.report("moe_router_activation_func", "must be sigmoid: other scores are not modelled");
    const char* count = (glm || kimi) && config_.has("num_experts") ? "num_experts" : "n_routed_experts";
    if (v2 && !config_.has("num_experts_per_tok")) {
      config_.report("num_experts_per_tok", "is missing, and has no default in this model type");
    }
    experts(count, v2 ? 64 : glm ? 128 : 256, 8, width);
    const char* const shared_key = kimi ? "num_shared_experts" : "n_shared_experts";
    if (const std::int64_t shared = or_null(shared_key, v2 ? 2 : kimi ? 0 : 1, 0); shared > 0) {
      config_.stands_for("experts/shared_feedforward", shared_key);
      experts_["shared_feedforward"] = shared * width;
    }
    experts_["scores"] = v2 ? "softmax_before_choice" : "sigmoid";
    if (!v2) experts_["router_bias"] = true;
    const bool limited = !v2 || config_.text("topk_method", "greedy") == "group_limited_greedy";
    if (limited && !kimi) expert_groups(v2 || glm ? 1 : 8, v2 || glm ? 1 : 4);
    if (kimi && config_.integer("num_expert_group").value_or(1) != 1)
      config_.report("num_expert_group", "must be 1");
    if (config_.integer("moe_layer_freq").value_or(1) != 1) config_.report("moe_layer_freq", "must be 1");
    const Range dense{0, std::max<std::int64_t>(1, static_cast<std::int64_t>(layers_.size()))};
    expert_layers(config_.integer("first_k_dense_replace", v2 || kimi ? 0 : glm ? 1 : 3, dense), 1);
  }

  void gpt_oss() {
    experts("num_local_experts", 128, 4, feedforward_);
    experts_["router_bias"] = true;
    expert_layers(0, 1);
  }

  void llama4() {
    const std::int64_t width = size("feedforward", "intermediate_size", 8192, widths);
    experts("num_local_experts", 16, 1, width);
    experts_["shared_feedforward"] = width;
    experts_["scores"] = "sigmoid";
    experts_["scale_inputs"] = true;
    if (!config_.has("moe_layers")) {
      return expert_layers(0, config_.integer("interleave_moe_layer_step", 1, layer_counts));
    }
    for (const std::size_t i : config_.places("moe_layers", layers_.size())) layers_[i].experts = true;
  }

  // Null is a value of its own: none, or no limit.
  std::int64_t or_null(const std::string& key, std::int64_t by_default, std::int64_t null) {
    return config_.names(key) && !config_.has(key)
               ? null
               : config_.integer(key, by_default, Range{null, head_counts.most});
  }

  void expert_groups(std::int64_t groups, std::int64_t per_token) {
    config_.stands_for("experts/groups", "n_group");
    config_.stands_for("experts/groups_per_token", "topk_group");
    const std::int64_t count = or_null("n_group", groups, 1);
    if (count == 1) return;
    experts_.update({{"groups", count}, {"groups_per_token", or_null("topk_group", per_token, 1)}});
  }

  ConfigReader& config_;
  const HubType& type_;
  std::int64_t feedforward_;
  std::vector<HubLayer>& layers_;
  Json experts_ = Json::object();
};

}  // namespace

Json mixture_of(ConfigReader& config, const HubType& type, std::int64_t feedforward,
                std::vector<HubLayer>& layers) {
  return Mixture(config, type, feedforward, layers).read();
}

}  // namespace headroom
