#include "headroom/parallel/module_choices.hpp"

namespace headroom {

std::vector<std::vector<std::string>> module_choices(const Transformer& model, Precision precision) {
  const bool experts = any_experts(model);
  const bool latent =
      any_layer(model, [](const Architecture& layer) { return layer.latent_attention.has_value(); });
  std::vector<std::string> mixers;
  for_each_mixer([&](const auto& row, auto mixer) {
    if (any_mixer(model, mixer)) mixers.emplace_back(row.recompute.name);
  });
  if ((!experts && !latent && mixers.empty()) || precision == Precision::fp8_delayed) return {};
  if (!experts && !latent) return {mixers};
  if (!experts) return {{"mla_up_proj"}, {"mla_up_proj", "layernorm"}};
  const bool shared = any_layer(model, [](const Architecture& layer) {
    return layer.experts && layer.experts->shared_feedforward > 0;
  });
  const bool dense = any_layer(model, has_dense_mlp);
  std::vector<std::vector<std::string>> choices{{"moe_act"}, {"layernorm", "moe_act"}};
  std::vector<std::string> most{"layernorm", "moe_act"};
  std::vector<std::string> whole{"moe"};
  if (latent) {
    choices.push_back({"mla_up_proj"});
    choices.push_back({"mla_up_proj", "layernorm", "moe_act"});
    most.insert(most.begin(), "mla_up_proj");
    whole.insert(whole.begin(), "mla_up_proj");
  }
  if (shared) most.emplace_back("shared_experts");
  if (dense) {
    most.emplace_back("mlp");
    whole.emplace_back("mlp");
  }
  if (most != choices.back()) choices.push_back(std::move(most));
  if (!mixers.empty()) {
    choices.push_back(mixers);
    whole.insert(whole.end(), mixers.begin(), mixers.end());
  }
  choices.push_back(std::move(whole));
  return choices;
}

std::vector<std::vector<std::string>> dense_module_choices(const Transformer& model, Precision precision) {
  if (precision == Precision::fp8_delayed) return {};
  std::vector<std::vector<std::string>> choices{{"layernorm"}, {"mlp"}, {"layernorm", "mlp"}};
  const bool scores_kept = any_layer(model, [](const Architecture& layer) {
    return has_attention(layer) && layer.kernels.attention != AttentionKernel::flash;
  });
  if (!scores_kept) return choices;
  for (std::size_t i = 0; i < 3; ++i) {
    choices.push_back(choices[i]);
    choices.back().insert(choices.back().begin(), "core_attn");
  }
  return choices;
}

}  // namespace headroom
