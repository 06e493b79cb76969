// The tensors of passes one by one: each is allocated once and freed once, and those that forward passes leave are what layers keep.
#include "headroom/memory/pass_events.hpp"

#include <algorithm>
#include <map>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {
namespace {

struct Played {
  std::map<int, Bytes> alive;
  Bytes most;

  void play(const std::vector<MemoryEvent>& events) {
    for (const MemoryEvent& event : events) {
      if (frees(event)) {
        CHECK(alive.erase(event.tensor) == 1);
      } else {
        CHECK(alive.emplace(event.tensor, event.bytes).second);
      }
      most = std::max(most, sum());
    }
  }
  [[nodiscard]] Bytes sum() const {
    Bytes bytes;
    for (const auto& [tensor, of] : alive) bytes += of;
    return bytes;
  }
};

}  // namespace

TEST_CASE("pass events: forward passes leave what layers keep, and backward passes free it") {
  const Software software = read_software("megatron-core-2025");
  for (const char* const name :
       {"gpt3-175b", "llama-3-70b", "mixtral-8x7b", "deepseek-v3", "nemotron-h-8b"}) {
    CAPTURE(name);
    const Transformer model = read_model(name);
    const Strategy strategy{.tensor_parallel = 2, .sequence_parallel = true};
    const Workload workload{.sequence = 4096};
    const ModelLayers layers = layers_of(model, strategy, software);
    const Sharding sharding = sharding_of(model, strategy);
    const Bindings letters = bindings(model, strategy, workload);
    const ModelActivations kept =
        evaluate(model_activation_exprs(layers, sharding, strategy, Detail::paper), letters);
    using Gradients = std::optional<PassGradients>;
    for (const Gradients& gradients : {Gradients(), Gradients(PassGradients{}), Gradients({.stay = false})}) {
      for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
        const LayerKind& kind = layers.kinds[i];
        CAPTURE(kind.name);
        const Bindings own = bindings_of(kind.sizes, letters);
        const PassEvents events = pass_events(kind, sharding_of(kind.sizes, sharding, 2), {}, Detail::paper,
                                              software, own, gradients);
        Played played;
        played.play(events.forward);
        CHECK(played.sum() == kept.kinds[i].plain.kept);
        played.play(events.backward);
        CHECK(played.alive.size() == events.weight_gradients.size());
        if (!gradients || !gradients->stay) CHECK(events.weight_gradients.empty());
        CHECK(events.sources.empty());
        const PassEvents named = pass_events(kind, sharding_of(kind.sizes, sharding, 2), {}, Detail::paper,
                                             software, own, gradients, Sources::listed);
        CHECK(named.forward == events.forward);
        CHECK(named.backward == events.backward);
        REQUIRE(named.sources.size() == static_cast<std::size_t>(named.tensors));
        for (const MemoryEvent& event : named.forward) {
          const TensorSource& source = named.sources[static_cast<std::size_t>(event.tensor)];
          CHECK((frees(event) || source.bytes == event.bytes));
          CHECK((source.op != nowhere || source.value != nowhere));
          CHECK(source.use != TensorUse::gradient);
        }
      }
    }
  }
}

}  // namespace headroom
