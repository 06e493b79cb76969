// Stacks whose tensor-parallel ranks divide less of the vocabulary than Megatron's: what a rank holds, sends and may run.
#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {
namespace {

Request in_four(const VocabularyParallel& vocabulary) {
  Request request{.model = read_model("llama-3-8b"),
                  .system = read_system("dgx-h200-141g"),
                  .software = read_software("kempnerforge-2026"),
                  .strategy = {.tensor_parallel = 4, .sequence_parallel = true},
                  .workload = {.global_batch = 4, .sequence = 4096}};
  request.model.vocabulary_multiple = 1;
  request.software.vocabulary = vocabulary;
  request.strategy.optimizer = request.software.optimizer;
  request.strategy.micro_batch = 4;
  return request;
}

constexpr VocabularyParallel gathers{EmbeddingParallel::none, LossParallel::gathered};
constexpr VocabularyParallel repeats{EmbeddingParallel::none, LossParallel::none};
constexpr double padded = 128256;
constexpr double tokens = 4 * 4096;
constexpr double width = 4096;

}  // namespace

TEST_CASE("vocabulary: KempnerForge's ranks have all of the embedding and of the logits") {
  const Plan divided = account(evaluate(in_four({})));
  const Plan whole = account(evaluate(in_four(gathers)));
  CHECK(read_software("kempnerforge-2026").vocabulary == gathers);
  const RankMemory& less = divided.ranks.front();
  const RankMemory& more = whole.ranks.front();
  // Weights and gradients of 2 bytes, and moments of 2 each.
  const Bytes embedding(0.75 * padded * width);
  CHECK(more.state.weights - less.state.weights == 2.0 * embedding);
  CHECK(more.state.optimizer - less.state.optimizer == 4.0 * embedding);
  CHECK(more.state.gradients - less.state.gradients == 2.0 * embedding);
  // Their gradient and that of the log-softmax, and what the loss keeps: the log-softmax, and the logits that the loop holds.
  const Bytes logits(0.75 * 2 * tokens * padded);
  CHECK(more.activations.at_peak.logits - less.activations.at_peak.logits == 2.0 * logits);
  CHECK(more.activations.at_peak.head - less.activations.at_peak.head == 2.0 * logits);
  // What is gathered takes time, and the reductions over parts of the vocabulary are no more.
  const LayerCost& head = whole.timing->iteration.cost.kinds.back();
  const LayerCost& in_parts = divided.timing->iteration.cost.kinds.back();
  CHECK(head.forward.communication > in_parts.forward.communication);
  CHECK(head.forward.gemm == in_parts.forward.gemm);
  CHECK(head.forward.memory_bound > in_parts.forward.memory_bound);
}

TEST_CASE("vocabulary: PyTorch's loss over parts is DTensor's, Megatron's is its own") {
  const Transformer model = read_model("llama-3-8b");
  const auto distributed = [&](const char* stack, std::int64_t t) {
    return vocabulary_parallel(model, {.tensor_parallel = t}, read_software(stack)).distributed;
  };
  CHECK(distributed("torchtitan-2025", 2));
  CHECK_FALSE(distributed("torchtitan-2025", 1));
  CHECK_FALSE(distributed("megatron-core-2025", 2));
  CHECK_FALSE(distributed("kempnerforge-2026", 2));
}

TEST_CASE("vocabulary: an output layer on every rank takes its whole products, and nothing is sent for it") {
  Request request = in_four(repeats);
  request.strategy.sequence_parallel = false;
  Request alone = in_four({});
  alone.strategy.tensor_parallel = 1;
  alone.strategy.sequence_parallel = false;
  const LayerCost head = account(evaluate(request)).timing->iteration.cost.kinds.back();
  const LayerCost of_one = account(evaluate(alone)).timing->iteration.cost.kinds.back();
  CHECK(head.forward.gemm == of_one.forward.gemm);
  CHECK(head.forward.communication == Seconds(0));
  CHECK(head.backward_data.communication == Seconds(0));
}

TEST_CASE(
    "vocabulary: what is whole at one end of tied embeddings is so at the other, without shards of "
    "sequences") {
  static_assert(of_tied(gathers) == repeats);
  static_assert(of_tied({}) == VocabularyParallel{});
  Request request = in_four(gathers);
  const auto problems = [&] {
    return illegalities(request.model, request.strategy, request.workload, request.software);
  };
  CHECK(problems().empty());
  request.model.architecture.tied_embeddings = true;
  REQUIRE(problems().size() == 1);
  CHECK(problems()[0].where == "sequence_parallel");
  CHECK(problems()[0].rule ==
        "must be off on the stack kempnerforge-2026: its output layer with tied embeddings is replicated on "
        "every tensor-parallel rank");
  request.strategy.sequence_parallel = false;
  CHECK(problems().empty());
  // One matrix, which both ends have: all of it on every rank.
  const ModelParameters parts =
      model_parameters(request.model, request.strategy, request.workload, request.software);
  CHECK(parts.shared == padded * width);
  request.strategy.tensor_parallel = 1;
  request.strategy.sequence_parallel = true;  // which does nothing
  CHECK(problems().empty());
  request.software = read_software("deepspeed-2025");
  request.strategy.tensor_parallel = 2;
  request.model.architecture.tied_embeddings = false;
  CHECK(problems()[0].where == "sequence_parallel");
}

}  // namespace headroom
