#include "headroom/model/hybrid_pattern.hpp"

#include <array>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/model/layer_kinds.hpp"

namespace headroom {

TEST_CASE("hybrid pattern: a letter for each layer; bars and what is predicted say nothing of them") {
  using enum HybridLayer;
  const HybridLayer mamba = from_name<HybridLayer>("mamba").value();
  CHECK(hybrid_layers("M-|M*E/*E/*E") == std::vector{mamba, mlp, mamba, attention, experts});
  CHECK_FALSE(hybrid_layers("").has_value());
  CHECK_FALSE(hybrid_layers("/*E").has_value());
  CHECK_FALSE(hybrid_layers("MD").has_value());
}

TEST_CASE("hybrid pattern: of a model, by stages, with a depth of prediction behind each slash") {
  Transformer model = read_model("nemotron-3-nano-30b-a3b");
  const std::array<std::int64_t, 1> one{52};
  const std::array<std::int64_t, 3> three{20, 30, 2};
  CHECK(hybrid_pattern(model, one) == "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME");
  CHECK(hybrid_pattern(model, three) == "MEMEM*EMEMEM*EMEMEM*|EMEMEM*EMEMEM*EMEMEMEM*EMEMEME|ME");
  model.mtp_layers = 2;
  CHECK(hybrid_pattern(model, three)->ends_with("|ME/*E/*E"));
  // Of no attention: a depth is the last layer alone, as it is counted.
  const Transformer cut = with_layers(model, 4);
  const std::array<std::int64_t, 1> four{4};
  CHECK(hybrid_pattern(cut, four) == "MEME/E/E");
  CHECK_FALSE(hybrid_pattern(read_model("llama-3-8b"), one).has_value());
  CHECK_FALSE(hybrid_pattern(read_model("gpt-oss-20b"), one).has_value());
}

}  // namespace headroom
