#include "headroom/parallel/context.hpp"

#include <algorithm>
#include <numeric>

namespace headroom {
bool admits(const Architecture& layer, CpComm how) {
  if (how == CpComm::a2a || !has_attention(layer)) return true;
  const bool masked = layer.window > 0 || layer.attention_chunk > 0;
  return !layer.attention_sinks && (!masked || how == CpComm::all_gather);
}

bool admits_any(const Architecture& layer, const std::vector<CpComm>& kinds) {
  return kinds.empty() ||
         std::any_of(kinds.begin(), kinds.end(), [&](CpComm kind) { return admits(layer, kind); });
}

std::int64_t context_inner(const Transformer& model, const Strategy& strategy) {
  const std::int64_t ranks = strategy.context_parallel;
  switch (strategy.cp_comm) {
    case CpComm::p2p:
    case CpComm::all_gather: return 1;
    case CpComm::a2a: return ranks;
    case CpComm::a2a_p2p: break;
  }
  const std::vector<std::int64_t>& sizes = strategy.hierarchical_cp_sizes;
  if (!sizes.empty()) return sizes.front();
  std::int64_t inner = ranks;
  const auto allow = [&](std::int64_t heads) {
    inner = std::gcd(inner, std::max<std::int64_t>(heads / strategy.tensor_parallel, 1));
  };
  if (model.layer_kinds.empty()) allow(model.key_value_heads);
  for (const LayerDescription& kind : model.layer_kinds) {
    if (has_attention(kind.architecture)) allow(kind.key_value_heads);
  }
  return inner;
}

std::vector<CpComm> admitted_cp_comm(const Transformer& model) {
  std::vector<CpComm> admitted;
  for (const auto& [how, name] : spellings<CpComm>) {
    const bool refused =
        any_layer(model, [how = how](const Architecture& layer) { return !admits(layer, how); });
    const bool again = !admitted.empty() && admitted.back() == how;  // another spelling of the same kind
    if (!refused && !again) admitted.push_back(how);
  }
  return admitted;
}

bool attends_in_parts(const Transformer& model) {
  return !any_layer(model, [](const Architecture& layer) {
    return has_attention(layer) && layer.kernels.attention != AttentionKernel::flash;
  });
}

std::int64_t most_parts(const Transformer& model, std::int64_t sequence) {
  return attends_in_parts(model) && sequence >= long_sequence ? sequence / shortest_part : 1;
}

}  // namespace headroom
