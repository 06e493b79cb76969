// The layers of hybrid models of Megatron-LM: Mamba, attention and MLPs.
#include <algorithm>
#include <cmath>

#include "headroom/model/transformer.hpp"
#include "interop/launch_in/megatron_model.hpp"
#include "io/document.hpp"

namespace headroom {
namespace {

// The letters of layers that Megatron-LM spreads by their shares: attention evenly between sections of Mamba, then MLPs in
// place of Mamba, the last one as late as it can [megatron/core/ssm/mamba_hybrid_layer_allocation.py, _allocate_auto].
std::string letters_of_shares(std::int64_t layers, double attention, double mlp) {
  std::string letters(static_cast<std::size_t>(layers), 'M');
  const auto spread = [&](char letter, double step) {
    double left = step;
    for (char& layer : letters) {
      if (layer != 'M') continue;
      if (left < 0.5) {
        layer = letter;
        left += step;
      } else {
        left -= 1;
      }
    }
  };
  // nearbyint() takes a half to the even number, as Python's round() does.
  const double attentions = std::nearbyint(static_cast<double>(layers) * attention);
  const double mlps = std::nearbyint(static_cast<double>(layers) * mlp);
  const double mambas = static_cast<double>(layers) - attentions;
  spread('*', mambas / (attentions + 1));
  if (mlps > 0) spread('-', (mambas - mlps) / mlps);
  return letters;
}

}  // namespace

std::string hybrid_letters(const MegatronSettings& asked, const std::string& program, RunBuilder& run) {
  if (const Written* const pattern = asked.first({"hybrid_layer_pattern", "hybrid_override_pattern"})) {
    if (!pattern->unknown.empty()) return {};
    std::string text = text_of_values(*pattern);
    std::erase(text, '\'');
    return text;
  }
  const Written* const ratio = asked.first({"hybrid_attention_ratio", "hybrid_mlp_ratio", "is_hybrid_model"});
  if (ratio == nullptr && program.find("mamba") == std::string::npos) return {};
  const Written* const count = asked.find("num_layers");
  const std::int64_t layers = count == nullptr ? 0 : asked.number(*count).value_or(0);
  if (layers < 1 || layers > most_layers) return {};
  const auto share = [&](std::string_view name) {
    const Written* const setting = asked.find(name);
    if (setting == nullptr) return 0.0;
    const Json value = scalar(text_of_values(*setting));
    const bool fits = value.is_number() && value.get<double>() >= 0 && value.get<double>() <= 1;
    if (!fits) run.problem(*setting, "must be a number from 0 to 1");
    return fits ? value.get<double>() : 0.0;
  };
  const double attention = share("hybrid_attention_ratio");
  const double mlp = share("hybrid_mlp_ratio");
  if (attention + mlp > 1) {
    run.problem(*ratio, "must be 1 at most with --hybrid-mlp-ratio");
    return {};
  }
  run.imply("layers of Mamba, attention and MLPs are spread by their shares", ratio);
  return letters_of_shares(layers, attention, mlp);
}

}  // namespace headroom
