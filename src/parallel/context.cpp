#include "headroom/parallel/context.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>

namespace headroom {
namespace {

std::string layers_named(std::string_view kind) {
  return kind.empty() ? std::string() : " of '" + std::string(kind) + "' layers";
}

// Ranks change tokens for what of a mixer tensor-parallel ranks divide.
void check_mixer(std::vector<Problem>& problems, const Mixers& mixers, std::string_view kind,
                 const Strategy& strategy) {
  const std::int64_t t = strategy.tensor_parallel;
  const std::int64_t c = strategy.context_parallel;
  with_mixer(mixers, [&](const auto& row, const auto& mixer) {
    for (const auto& size : row.sizes) {
      const std::int64_t whole = mixer.*size.member;
      // Of tensor parallelism legality.cpp says it.
      if (size.divided.empty() || whole % t != 0 || whole / t % c == 0) continue;
      problems.push_back({"context_parallel", "must divide the " + std::to_string(whole / t) + " " +
                                                  std::string(size.divided) + layers_named(kind) +
                                                  " of a `tensor_parallel` rank" +
                                                  std::string(size.context_limit)});
    }
  });
}

bool admits(const Architecture& architecture, CpComm how) {
  if (how == CpComm::a2a || !has_attention(architecture)) return true;
  const bool masked = architecture.window > 0 || architecture.attention_chunk > 0;
  return !architecture.attention_sinks && (!masked || how == CpComm::all_gather);
}

// Of layers of a kind, where ranks have parts of sequences.
template <class Layer>
void check_layer(std::vector<Problem>& problems, const Layer& layer, std::string_view kind,
                 const Strategy& strategy, std::int64_t inner) {
  const Architecture& architecture = layer.architecture;
  check_mixer(problems, architecture.mixers, kind, strategy);
  if (!has_attention(architecture)) return;
  const std::string how(name_of(strategy.cp_comm));
  const std::string of_kind = layers_named(kind);
  if (architecture.kernels.attention != AttentionKernel::flash) {
    problems.push_back(
        {"context_parallel", "needs `kernels.attention` flash" + of_kind + ", not " +
                                 std::string(name_of(architecture.kernels.attention)) +
                                 ": ranks attend to parts of a sequence and merge what they find"});
  }
  if (!admits(architecture, strategy.cp_comm)) {
    const char* const rule = architecture.attention_sinks ? "must be a2a for attention sinks"
                             : architecture.window > 0    ? "must be all_gather or a2a for sliding windows"
                                                       : "must be all_gather or a2a for attention in chunks";
    problems.push_back({"cp_comm", rule + of_kind + " under `context_parallel`, not " + how});
  }
  if (inner <= 1) return;
  const std::int64_t t = strategy.tensor_parallel;
  const auto divides = [&](std::int64_t heads, const char* what) {
    if (heads % t == 0 && heads / t % inner == 0) return;
    problems.push_back({"context_parallel",
                        "with `cp_comm` " + how + " has " + std::to_string(inner) + " ranks that share the " +
                            what + of_kind + " of a `tensor_parallel` rank, and must divide them (" +
                            std::to_string(heads) + " heads, " + std::to_string(t) + " TP ranks)"});
  };
  divides(layer.heads, "attention heads");
  divides(layer.key_value_heads, "key/value heads");
}

}  // namespace

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
    const bool again = !admitted.empty() && admitted.back() == how;  // by another spelling
    if (!refused && !again) admitted.push_back(how);
  }
  return admitted;
}

std::vector<Problem> context_illegalities(const Transformer& model, const Strategy& strategy,
                                          const Workload& workload) {
  std::vector<Problem> problems;
  const std::int64_t c = strategy.context_parallel;
  const std::vector<std::int64_t>& sizes = strategy.hierarchical_cp_sizes;
  if (!sizes.empty()) {
    if (strategy.cp_comm != CpComm::a2a_p2p) {
      problems.push_back({"hierarchical_cp_sizes", "needs `cp_comm` a2a_p2p"});
    }
    const bool makes = sizes.size() == 2 && sizes[0] >= 1 && c % sizes[0] == 0 && c / sizes[0] == sizes[1];
    if (!makes) {
      problems.push_back({"hierarchical_cp_sizes",
                          "must be two sizes whose product is `context_parallel`, " + std::to_string(c)});
      return problems;
    }
  }
  if (c <= 1) return problems;
  const std::int64_t s = workload.sequence;
  if (s % 2 != 0 || s / 2 % c != 0) {
    problems.push_back(
        {"context_parallel",
         "times 2 must divide the sequence length, of which a rank has one part near the start "
         "and one near the end (" +
             std::to_string(s) + " tokens, " + std::to_string(c) + " ranks)"});
  }
  if (strategy.tensor_parallel < 1) return problems;
  const std::int64_t inner = context_inner(model, strategy);
  if (model.layer_kinds.empty()) check_layer(problems, model, "", strategy, inner);
  for (const LayerDescription& kind : model.layer_kinds) {
    check_layer(problems, kind, kind.name, strategy, inner);
  }
  return problems;
}

std::int64_t most_parts(const Transformer& model, std::int64_t sequence) {
  const bool attends_in_parts = !any_layer(model, [](const Architecture& layer) {
    return has_attention(layer) && layer.kernels.attention != AttentionKernel::flash;
  });
  return attends_in_parts && sequence >= long_sequence ? sequence / shortest_part : 1;
}

}  // namespace headroom
