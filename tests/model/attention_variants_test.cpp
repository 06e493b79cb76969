// Theorems about what architectures have of attention beside heads: latent attention, windows, sinks, normalizations, caps.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/collectives.hpp"
#include "headroom/parallel/flops.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "model/architectures.hpp"

namespace headroom::attention_variants {
namespace {

using namespace symbols;

constexpr Architecture plain = tests::llama;

template <class Change>
constexpr Architecture with(Change change) {
  Architecture architecture = plain;
  change(architecture);
  return architecture;
}

constexpr Architecture latent = with([](Architecture& it) { it.latent_attention = {.q_rank = 1}; });
constexpr Architecture latent_keys = with([](Architecture& it) { it.latent_attention = LatentAttention{}; });
constexpr Architecture windowed = with([](Architecture& it) { it.window = 1; });
constexpr Architecture sinks = with([](Architecture& it) { it.attention_sinks = true; });
constexpr Architecture head_norms = with([](Architecture& it) { it.qk_norm = QkNorm::per_head; });
constexpr Architecture full_norms = with([](Architecture& it) { it.qk_norm = QkNorm::full; });
constexpr Architecture l2_norms = with([](Architecture& it) { it.qk_norm = QkNorm::l2; });
constexpr Architecture four_norms = with([](Architecture& it) { it.norm_position = NormPosition::both; });
constexpr Architecture post_norms = with([](Architecture& it) { it.norm_position = NormPosition::after; });
constexpr Architecture parallel = with([](Architecture& it) { it.residual = ResidualForm::parallel; });
constexpr Architecture one_norm =
    with([](Architecture& it) { it.residual = ResidualForm::parallel_shared_norm; });
constexpr Architecture capped = with([](Architecture& it) { it.attention_softcap = true; });
constexpr Architecture capped_logits = with([](Architecture& it) { it.final_softcap = true; });

constexpr Sharding alone{};
constexpr Sharding tensor{.tensor = true};
constexpr Sharding sequence{.tensor = true, .sequence = true};

constexpr Expr weights(const Architecture& architecture, const Sharding& sharding = alone) {
  return parameters(layer_ops(architecture), sharding);
}
constexpr Expr saved(const Architecture& architecture, const Sharding& sharding = alone,
                     Detail detail = Detail::paper) {
  return kept_bytes(stored_tensors(layer_ops(architecture), sharding, {}, detail));
}
constexpr Expr flops(const Architecture& architecture, const Sharding& sharding = alone) {
  const OpTable table = layer_ops(architecture);
  return forward_flops(table, sharding, every_op(table));
}
constexpr Expr head_saves(const Architecture& architecture) {
  return kept_bytes(stored_tensors(head_ops(architecture), alone));
}

constexpr Expr dense_mlp = 3 * h * f + 2 * h;  // and the two normalizations of a layer

// Saved by the MLP, and by the two normalizations and their outputs.
constexpr Expr around_attention(const Monomial& divided) {
  return s * b * (8 * h / divided) + 6 * s * b * f / t;
}

}  // namespace

TEST_CASE("latent attention: parameters are those of the ranks, the heads and two normalizations") {
  static_assert(weights(latent) - dense_mlp ==
                h * R + R + R * a * e + h * w + h * j + w + w * a * i + w * a * l + a * l * h);
  static_assert(weights(latent_keys) - dense_mlp ==
                h * a * e + h * w + h * j + w + w * a * i + w * a * l + a * l * h);
  // Down-projections are whole on every rank.
  static_assert(weights(latent, sequence) - (3 * h * f / t + 2 * h) ==
                h * R + R + h * w + h * j + w + (R * a * e + w * a * i + w * a * l + a * l * h) / t);
}

TEST_CASE("latent attention: DeepSeek-V3 has 187.1M parameters of attention a layer") {
  const Transformer model = read_model("deepseek-v3");
  const Bindings letters = bindings(model, {}, {.global_batch = 1, .sequence = 4096});
  CHECK((weights(latent) - dense_mlp).evaluate(letters) == 187'107'328);
}

TEST_CASE("latent attention: FLOPs divide by t under sequence parallelism, though not all weights do") {
  constexpr Expr mlp = 6 * s * b * h * f;
  constexpr Expr down = 2 * s * b * (h * R + h * w + h * j);
  constexpr Expr up = 2 * s * b * (R * a * e + w * a * i + w * a * l + a * l * h);
  constexpr Expr core = 2 * s * s * b * a * (e + l);
  static_assert(flops(latent) == mlp + down + up + core);
  static_assert(flops(latent, sequence) == (mlp + down + up + core) / t);
  static_assert(flops(latent, tensor) == down + (mlp + up + core) / t);
}

TEST_CASE("latent attention: saved are latents twice, q, k, v and the context of every head") {
  static_assert(saved(latent, sequence) ==
                around_attention(t) + s * b * (4 * R + 4 * w) / t +
                    s * b * a * (4 * e + 4 * l) / t +  // q and k; v and the context
                    4 * s * b * a / t);                // log-sum-exp
}

TEST_CASE("latent attention: latents are gathered where they enter the heads, and nothing wider is") {
  const OpTable table = layer_ops(latent);
  Expr gathered;
  for (const Collective& collective : collectives(table, sequence)) {
    const std::string_view op = table.ops()[static_cast<std::size_t>(collective.op)].name;
    if (op == "q_up" || op == "kv_up" || op == "mla_rotary") {
      CHECK(collective.name == Conjugate::g);
      gathered += collective.bytes;
    }
    CHECK(op != "q_down");
    CHECK(op != "kv_down");
  }
  CHECK(gathered == 2 * s * b * (R + w + j));
}

// The bytes of a token that are kept of a DeepSeek-V3 layer with experts, t = 1, even load.
TEST_CASE("latent attention: a DeepSeek-V3 layer with experts keeps what its rows add up to") {
  const Transformer model = read_model("deepseek-v3");
  const ModelLayers layers = layers_of(model);
  const LayerKind& moe = layers.kinds[1];
  REQUIRE(moe.name == "moe");
  const Workload workload{.global_batch = 1, .sequence = 4096};
  const Bindings letters = bindings_of(moe.sizes, bindings(model, {}, workload));
  const auto of_token = [&](const RecomputedOps& recomputed) {
    return kept_bytes(stored_tensors(moe.ops, alone, recomputed)).evaluate(letters) / 4096;
  };
  // 460,768 as rows of modern layers are usually summed up; of the router's choice also the chosen experts (8 x 8), their
  // normalized scores (8 x 4) and the sum (4); without the shared rotary key (64 x 2), which only a view pins.
  CHECK(of_token({}) == 460'768 + 100 - 128);
  const auto with_modules = [&](std::vector<std::string> modules) {
    const Recomputation recompute{.policy = RecomputePolicy::ops, .ops = std::move(modules)};
    return of_token(recomputed_ops_of(moe, recompute, {}));
  };
  // q, k, v and the normalized latents go; the rotary key is what the replay starts from.
  CHECK(with_modules({"mla_up_proj"}) == 460'768 + 100 - 131'072 - 4'096);
  CHECK(with_modules({"mla_up_proj", "layernorm", "moe_act"}) == 460'768 + 100 - 135'168 - 28'672 - 32'768);
  const double exact = kept_bytes(stored_tensors(moe.ops, alone, {}, Detail::exact)).evaluate(letters) / 4096;
  CHECK(exact == 460'768 + 100 + 4 * 4);  // and four deviations
}

TEST_CASE("windows: a window as long as the sequence is no window, and no rows change") {
  static_assert(flops(windowed).substitute(Symbol::keys_met, s) == flops(plain));
  static_assert(saved(windowed) == saved(plain));
  static_assert(weights(windowed) == weights(plain));
  static_assert(flops(windowed) - (flops(plain) - 4 * s * s * b * a * e) == 4 * s * o * b * a * e);
}

TEST_CASE("windows: half of what is counted is the window's area in a causal mask") {
  Transformer model = read_model("mistral-7b");
  const auto keys = [&](std::int64_t window, std::int64_t tokens) {
    model.architecture.window = window;
    return bindings(model, {}, {.global_batch = 1, .sequence = tokens})[Symbol::keys_met];
  };
  CHECK(keys(4096, 8192) == 2 * 4096 - 2048);
  CHECK(keys(4096, 4096) == 4096);
  CHECK(keys(8192, 4096) == 4096);
  CHECK(keys(0, 4096) == 4096);
  // Counted one by one: a query sees itself and up to w - 1 before it.
  const std::int64_t tokens = 1024;
  for (const std::int64_t window : {1, 7, 128, 1000, 1023, 1024}) {
    double pairs = 0;
    for (std::int64_t query = 1; query <= tokens; ++query)
      pairs += static_cast<double>(std::min(query, window));
    // As a causal mask over s keys is counted as s^2/2 and has s (s + 1)/2 of them, so a window has w/2 more.
    CHECK(keys(window, tokens) * static_cast<double>(tokens) / 2 ==
          doctest::Approx(pairs - static_cast<double>(window) / 2));
  }
}

TEST_CASE("chunks: a query meets the keys of its own chunk, and of a shorter last one fewer") {
  for (const std::int64_t chunk : {1, 7, 128, 1000, 1023, 1024, 4096}) {
    constexpr std::int64_t tokens = 1024;
    double met = 0;
    for (std::int64_t query = 0; query < tokens; ++query) {
      const std::int64_t start = query / chunk * chunk;
      met += static_cast<double>(std::min(start + chunk, tokens) - start);
    }
    CHECK(keys_in_chunk(chunk, tokens) * tokens == doctest::Approx(met));
  }
  CHECK(keys_in_chunk(0, 1024) == 1024);
  // Llama 4's layers without positions see all of the sequence, each fourth of them.
  const Transformer model = read_model("llama-4-scout");
  const ModelLayers layers = layers_of(model);
  const auto keys = [&](std::size_t kind, std::int64_t tokens) {
    const Bindings letters = bindings(model, {}, {.global_batch = 1, .sequence = tokens});
    const Bindings of_kind = bindings_of(layers.kinds[kind].sizes, letters);
    for (const Op& op : layers.kinds[kind].ops.ops()) {
      if (op.kind == OpKind::flash_attention) return op.products[0].outer[0].count.evaluate(of_kind);
    }
    return 0.0;
  };
  CHECK(layers.kinds[0].name == "rope");
  CHECK(keys(0, 8192) == 8192);
  CHECK(keys(0, 32768) == 8192);
  CHECK(keys(1, 32768) == 32768);
}

TEST_CASE("windows: kinds of layers have windows of their own") {
  const Transformer model = read_model("gpt-oss-20b");
  const ModelLayers layers = layers_of(model);
  const Workload workload{.global_batch = 1, .sequence = 4096};
  const Bindings letters = bindings(model, {}, workload);
  CHECK(bindings_of(layers.kinds[0].sizes, letters)[Symbol::keys_met] == 2 * 128 - 4);
  CHECK(layers.kinds[0].name == "sliding");
  CHECK(layers.kinds[0].count == Monomial(12));
  CHECK(layers.kinds[1].sizes.empty());
  const auto core = [&](const LayerKind& kind) {
    return forward_flops(kind.ops, alone, core_attention_ops(kind.ops))
        .evaluate(bindings_of(kind.sizes, letters));
  };
  CHECK(core(layers.kinds[0]) / core(layers.kinds[1]) == 252.0 / 4096);
}

TEST_CASE("sinks: a number for each head, and nothing is kept but a column that an unfused softmax adds") {
  static_assert(weights(sinks) - weights(plain) == Expr(a));
  static_assert(weights(sinks, tensor) - weights(plain, tensor) == a / t);
  static_assert(saved(sinks, alone, Detail::exact) == saved(plain, alone, Detail::exact));
  constexpr Architecture unfused =
      with([](Architecture& it) { it.kernels.attention = AttentionKernel::unfused; });
  constexpr Architecture unfused_sinks = with([](Architecture& it) {
    it.kernels.attention = AttentionKernel::unfused;
    it.attention_sinks = true;
  });
  static_assert(saved(unfused_sinks, alone, Detail::exact) - saved(unfused, alone, Detail::exact) ==
                2 * a * s * b);
}

TEST_CASE("norms of q and k: their inputs are kept too, and weights are of a head, of all or none") {
  static_assert(weights(head_norms) - weights(plain) == Expr(2 * e));
  static_assert(weights(head_norms, tensor) - weights(plain, tensor) == Expr(2 * e));
  static_assert(weights(full_norms, tensor) - weights(plain, tensor) == (a * e + k * e) / t);
  static_assert(weights(l2_norms) == weights(plain));
  static_assert(saved(head_norms, tensor) - saved(plain, tensor) == 2 * s * b * (a * e + k * e) / t);
  static_assert(flops(head_norms) == flops(plain));
  // Exactly, the view v pins the projected q and k with or without them: only deviations are new.
  static_assert(saved(head_norms, alone, Detail::exact) - saved(plain, alone, Detail::exact) ==
                4 * s * b * (a + k));
}

TEST_CASE(
    "norms after a block keep its output; parallel blocks have a stream less, or a normalization less") {
  static_assert(weights(four_norms) - weights(plain) == Expr(2 * h));
  static_assert(saved(four_norms) - saved(plain) == 4 * s * b * h);
  static_assert(saved(four_norms, sequence) - saved(plain, sequence) == 4 * s * b * h / t);
  // Without those before, the linears keep the stream that they read.
  static_assert(weights(post_norms) == weights(plain));
  static_assert(saved(post_norms) == saved(plain));
  static_assert(weights(parallel) == weights(plain));
  static_assert(saved(plain) - saved(parallel) == 2 * s * b * h);  // both read the same stream
  static_assert(weights(plain) - weights(one_norm) == Expr(h));
  static_assert(saved(plain) - saved(one_norm) == 4 * s * b * h);
  static_assert(flops(four_norms) == flops(plain));
  static_assert(flops(one_norm) == flops(plain));
}

TEST_CASE("caps: a flash kernel keeps nothing of them, unfused scores and logits are kept capped") {
  static_assert(saved(capped) == saved(plain));
  constexpr Architecture unfused =
      with([](Architecture& it) { it.kernels.attention = AttentionKernel::unfused; });
  constexpr Architecture unfused_capped = with([](Architecture& it) {
    it.kernels.attention = AttentionKernel::unfused;
    it.attention_softcap = true;
  });
  static_assert(saved(unfused_capped) - saved(unfused) == 2 * a * s * s * b);
  static_assert(head_saves(capped_logits) - head_saves(plain) == 2 * s * b * v);
}

}  // namespace headroom::attention_variants
