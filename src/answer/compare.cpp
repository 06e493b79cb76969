#include "headroom/answer/compare.hpp"

namespace headroom {
namespace {

// Of the fullest rank of each plan; the last is their sum.
std::vector<ComparedTerm> memory_terms(const Plan& before, const Plan& after) {
  const RankMemory& x = before.ranks[before.peak_rank];
  const RankMemory& y = after.ranks[after.peak_rank];
  const Activations& a = x.activations.at_peak;
  const Activations& b = y.activations.at_peak;
  const auto term = [](const char* name, Bytes from, Bytes to) {
    return ComparedTerm{name, from.count(), to.count()};
  };
  return {term("weights_bytes", x.state.weights, y.state.weights),
          term("gradients_bytes", x.state.gradients, y.state.gradients),
          term("optimizer_bytes", x.state.optimizer, y.state.optimizer),
          term("layers_bytes", a.layers, b.layers),
          term("embedding_bytes", a.embedding, b.embedding),
          term("head_bytes", a.head, b.head),
          term("outputs_bytes", a.outputs, b.outputs),
          term("recompute_bytes", a.replay, b.replay),
          term("activation_gradients_bytes", a.gradients, b.gradients),
          term("logits_bytes", a.logits, b.logits),
          term("gathered_bytes", a.gathered, b.gathered),
          term("weight_gradients_bytes", a.weight_gradients, b.weight_gradients),
          term("dummy_gradients_bytes", x.dummy_gradients, y.dummy_gradients),
          term("workspaces_bytes", x.workspaces, y.workspaces),
          term("non_torch_bytes", x.reserved, y.reserved),
          term("peak_bytes", peak(before), peak(after))};
}

// The last is the sum of the others. Empty where time is not known.
std::vector<ComparedTerm> time_terms(const Plan& before, const Plan& after) {
  std::vector<ComparedTerm> terms;
  if (!before.timing || !after.timing) return terms;
  const IterationTime& x = before.timing->iteration;
  const IterationTime& y = after.timing->iteration;
  for (const auto& [name, part] : breakdown_parts) {
    terms.push_back(
        {std::string(name) + "_seconds", (x.breakdown.*part).count(), (y.breakdown.*part).count()});
  }
  terms.push_back({"iteration_seconds", x.total.count(), y.total.count()});
  return terms;
}

}  // namespace

CompareReply compared(Evaluation before, Evaluation after) {
  std::vector<ComparedTerm> time = time_terms(account(before), account(after));
  std::vector<ComparedTerm> memory = memory_terms(account(before), account(after));
  return {.before = std::move(before),
          .after = std::move(after),
          .time = std::move(time),
          .memory = std::move(memory)};
}

CompareReply answer(const CompareQuestion& question) {
  return compared(evaluate(question.before), evaluate(question.after));
}

}  // namespace headroom
