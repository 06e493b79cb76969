#include "headroom/parallel/module_choices.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "headroom/expr/expr.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/model/op_table.hpp"
#include "headroom/model/precision_ops.hpp"
#include "headroom/parallel/compose.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {

TEST_CASE("module choices: of every model they are legal, none stands twice, and a dense one has none") {
  for (const Transformer& model : list_models()) {
    CAPTURE(model.name);
    const std::vector<std::vector<std::string>> choices = module_choices(model, Precision::bf16);
    const bool latent =
        any_layer(model, [](const Architecture& it) { return it.latent_attention.has_value(); });
    const bool mixes = any_layer(model, [](const Architecture& it) { return has_mixer(it.mixers); });
    CHECK(choices.empty() == !(any_experts(model) || latent || mixes));
    CHECK(std::set(choices.begin(), choices.end()).size() == choices.size());
    CHECK(module_choices(model, Precision::fp8_delayed).empty());
    for (const std::vector<std::string>& modules : choices) {
      const Strategy strategy{.recompute = {.policy = RecomputePolicy::ops, .ops = modules}};
      CHECK(illegalities(model, strategy, {.global_batch = 1, .sequence = model.sequence}, {}).empty());
    }
  }
}

TEST_CASE("module choices: a Mamba layer whose mixer is recomputed keeps what enters its two halves") {
  const Transformer model = read_model("nemotron-h-8b");
  const auto kept = [&](const std::vector<std::string>& modules) {
    const ModelLayers layers = layers_of(model);
    const auto kind = std::find_if(layers.kinds.begin(), layers.kinds.end(),
                                   [](const LayerKind& it) { return it.name == "mamba"; });
    REQUIRE(kind != layers.kinds.end());
    const OpTable& table = kind->ops;
    const Recomputation recompute{.policy = RecomputePolicy::ops, .ops = modules};
    return kept_bytes(stored_tensors(table, {}, recomputed_ops_of(table, recompute, {})));
  };
  using namespace symbols;
  // The input of the layer and, normalized, that of the mixer.
  CHECK(kept({"mamba"}) == 4 * s * b * h);
  CHECK(kept({"mlp"}) == kept({}));
}

TEST_CASE("parts of a sequence: short ones are whole, and so are those whose attention keeps scores") {
  const Transformer llama = read_model("llama-3-8b");
  CHECK(most_parts(llama, 8192) == 1);
  CHECK(most_parts(llama, 131'072) == 32);
  CHECK(most_parts(read_model("gpt3-175b"), 131'072) == 1);
}

}  // namespace headroom
