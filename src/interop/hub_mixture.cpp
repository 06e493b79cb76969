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
  Mixture(ConfigReader& config, const HubType& type, Json& model, std::vector<HubLayer>& layers)
      : config_(config), type_(type), of_(type.traits.experts), model_(model), layers_(layers) {}

  Json read() {
    if (type_.traits.family == HubFamily::llama4) {
      llama4();
    } else if (!of_.count[0].empty()) {
      by_row();
    }
    return std::move(experts_);
  }

 private:
  // Of a size that has no default in some types.
  std::int64_t size(const char* ours, const HubNames& names, std::int64_t by_default, Range sizes) {
    const std::string key = config_.key_of(names);
    config_.stands_for(std::string("experts/") + ours, key);
    if (by_default == 0 && sizes.least > 0 && !config_.has(key)) {
      config_.report(key, "is missing, and has no default in this model type");
      return 1;
    }
    return config_.of_each_layer(key, by_default, sizes);
  }

  // Null is a value of its own: none, or no limit.
  std::int64_t or_null(const std::string& key, std::int64_t by_default, std::int64_t null) {
    return config_.names(key) && !config_.has(key)
               ? null
               : config_.of_each_layer(key, by_default, Range{null, widths.most});
  }

  void by_row() {
    // Some types have dense layers, as wide as their shared expert, where they have no experts at all.
    const bool may_be_none = of_.shared[0].empty() && !of_.shared_width[0].empty() && !of_.shared_gate;
    const std::int64_t count = size("count", of_.count, of_.count_by_default,
                                    Range{may_be_none ? 0 : head_counts.least, head_counts.most});
    const std::int64_t feedforward = model_.value("feedforward", std::int64_t{0});
    if (count == 0) {
      const std::string key = config_.key_of(of_.shared_width);
      config_.stands_for("feedforward", key);
      model_["feedforward"] = config_.integer(key, of_.shared_width_by_default, widths);
      return;
    }
    if (count == 1 && of_.one_is_none) return;
    const std::int64_t by_default = of_.width_by_default < 0 ? feedforward : of_.width_by_default;
    const std::int64_t width =
        of_.width[0].empty() ? feedforward : size("feedforward", of_.width, by_default, widths);
    experts_ = {{"count", count},
                {"per_token", size("per_token", of_.per_token, of_.per_token_by_default, head_counts)},
                {"feedforward", width}};
    if (const std::int64_t shared = shared_feedforward(width); shared > 0) {
      experts_["shared_feedforward"] = shared;
      if (of_.shared_gate) experts_["shared_gate"] = true;
    }
    std::string scores(of_.scores);
    if (!of_.scores_key.empty()) {
      const std::string key(of_.scores_key);
      scores = config_.text(key, of_.scores);
      if (scores != "softmax" && scores != "sigmoid") config_.report(key, "must be softmax or sigmoid");
    }
    if (scores == "softmax" && !flag(of_.normalized)) scores = "softmax_before_choice";
    if (scores != "softmax") experts_["scores"] = scores;
    if (flag(of_.bias)) experts_["router_bias"] = true;
    groups();
    places();
    demand();
  }

  bool flag(const HubFlag& of) {
    return of.key.empty() ? of.by_default : config_.boolean(std::string(of.key), of.by_default);
  }

  std::int64_t shared_feedforward(std::int64_t width) {
    if (type_.traits.family == HubFamily::arctic) return residual_mlp();
    if (of_.shared[0].empty()) {
      return of_.shared_width[0].empty() ? 0
                                         : size("shared_feedforward", of_.shared_width,
                                                of_.shared_width_by_default, Range{0, widths.most});
    }
    const std::string key = config_.key_of(of_.shared);
    config_.stands_for("experts/shared_feedforward", key);
    return or_null(key, of_.shared_by_default, 0) * width;
  }

  // Arctic's dense MLP beside the experts, which reads another normalization of the stream.
  std::int64_t residual_mlp() {
    if (!config_.boolean("parallel_attn_mlp_res", false)) return 0;
    config_.assume("",
                   "the dense MLP beside the experts is counted as a shared expert; its normalization, "
                   "hidden_size numbers a layer, is left out");
    return model_.value("hidden", std::int64_t{0});
  }

  void groups() {
    if (of_.groups == 0) return;
    if (of_.scores == "softmax_before_choice" &&
        config_.text("topk_method", "greedy") != "group_limited_greedy")
      return;
    config_.stands_for("experts/groups", "n_group");
    config_.stands_for("experts/groups_per_token", "topk_group");
    const std::int64_t count = or_null("n_group", of_.groups, 1);
    if (count == 1) return;
    experts_.update(
        {{"groups", count}, {"groups_per_token", or_null("topk_group", of_.groups_per_token, 1)}});
  }

  // Which layers have experts.
  void places() {
    const auto layers = static_cast<std::int64_t>(layers_.size());
    const Range any{0, std::max<std::int64_t>(1, layers)};
    const std::int64_t first =
        of_.first[0].empty() ? 0 : config_.integer(config_.key_of(of_.first), of_.first_by_default, any);
    std::int64_t last = layers - 1;
    if (!of_.last.empty()) {
      const std::string key(of_.last);
      last = config_.integer(key, -1, Range{-1, any.most});
      if (last < 0) last = layers - 1;
      if (layers > 0 && last < first)
        config_.report(key, fmt::format("must be at least {} ({} < {})", of_.first[0], last, first));
    }
    const std::int64_t step =
        of_.step[0].empty() ? 1
                            : config_.integer(config_.key_of(of_.step), of_.step_by_default, layer_counts);
    std::int64_t offset = step - 1;
    if (!of_.offset.empty()) {
      const std::string key(of_.offset);
      offset = config_.integer(key, of_.offset_by_default, Range{0, most_layers});
      if (offset >= step)
        config_.report(key, fmt::format("must be below {} ({} >= {})", of_.step[0], offset, step));
    }
    const std::vector<std::size_t> dense = config_.places(std::string(of_.dense_layers), layers_.size());
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      const bool listed = std::find(dense.begin(), dense.end(), i) != dense.end();
      layers_[i].experts = number >= first && number <= last && number % step == offset && !listed;
    }
    listed_places();
  }

  // Newer files list "dense" or "sparse" for each layer.
  void listed_places() {
    const std::string key = "mlp_layer_types";
    const std::vector<std::string> kinds = config_.list<std::string>(key);
    if (kinds.empty()) return;
    if (!layers_.empty() && kinds.size() != layers_.size())
      config_.report(
          key, fmt::format("must be of the model's {} layers (found {})", layers_.size(), kinds.size()));
    for (std::size_t i = 0; i < std::min(kinds.size(), layers_.size()); ++i) {
      if (kinds[i] != "dense" && kinds[i] != "sparse") {
        config_.report(key, fmt::format("must be of dense and sparse: '{}' is not modelled", kinds[i]));
        return;
      }
      layers_[i].experts = kinds[i] == "sparse";
    }
  }

  // What only one value of is modelled.
  void demand() {
    const auto one = [&](const char* key) {
      if (config_.has(key) && config_.of_each_layer(key, 1) != 1) config_.report(key, "must be 1");
    };
    one("moe_layer_freq");
    one("num_expert_group");
    const char* const scores = "moe_router_activation_func";
    if (config_.has(scores) && config_.text(scores, of_.scores) != of_.scores)
      config_.report(scores, fmt::format("must be {}: other scores are not modelled", of_.scores));
    const char* const shared = "shared_intermediate_size";
    if (of_.shared_width[0].empty() && config_.integer(shared).value_or(0) != 0)
      config_.report(shared, "must be 0: a shared expert is not modelled in this model type");
  }

  void llama4() {
    const HubNames counts{"num_local_experts"};
    const std::int64_t width = size("feedforward", {"intermediate_size"}, 8192, widths);
    experts_ = {{"count", size("count", counts, 16, head_counts)},
                {"per_token", size("per_token", {"num_experts_per_tok"}, 1, head_counts)},
                {"feedforward", width},
                {"shared_feedforward", width},
                {"scores", "sigmoid"},
                {"scale_inputs", true}};
    const char* const listed = "moe_layers";
    const std::int64_t step =
        config_.has(listed) ? 1 : config_.integer("interleave_moe_layer_step", 1, layer_counts);
    for (std::size_t i = 0; i < layers_.size(); ++i)
      layers_[i].experts = !config_.has(listed) && (static_cast<std::int64_t>(i) + 1) % step == 0;
    for (const std::size_t i : config_.places(listed, layers_.size())) layers_[i].experts = true;
  }

  ConfigReader& config_;
  const HubType& type_;
  const HubExperts& of_;
  Json& model_;
  std::vector<HubLayer>& layers_;
  Json experts_ = Json::object();
};

}  // namespace

Json mixture_of(ConfigReader& config, const HubType& type, Json& model, std::vector<HubLayer>& layers) {
  return Mixture(config, type, model, layers).read();
}

}  // namespace headroom
