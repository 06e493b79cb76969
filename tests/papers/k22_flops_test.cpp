// K22 appendix A: FLOPs of an iteration, of matrix products only.
#include <doctest/doctest.h>

#include "headroom/parallel/flops.hpp"
#include "papers/k22.hpp"

namespace headroom {
namespace {

constexpr Expr model() { return k22::in_its_letters(model_flops({})); }
constexpr Expr exact(const RecomputedOps& recomputed) {
  return k22::in_its_letters(hardware_flops({}, recomputed));
}
constexpr Expr as_printed(const RecomputedOps& recomputed) {
  return k22::in_its_letters(hardware_flops_k22({}, recomputed));
}

// Forward FLOPs of one op of the layer, for a microbatch.
constexpr Expr forward_of(std::string_view name) {
  const OpTable table = layer_ops({});
  OpSet set = 0;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if (table.ops()[i].name == name) set |= op_bit(i);
  }
  return k22::in_its_letters(forward_flops(table, {}, set));
}

}  // namespace

TEST_CASE("K22 appendix A: forward FLOPs of every matrix product") {
  using namespace symbols;
  static_assert(forward_of("qkv") == 6 * b * s * h * h);
  static_assert(forward_of("scores") == 2 * b * s * s * h);
  static_assert(forward_of("context") == 2 * b * s * s * h);
  static_assert(forward_of("projection") == 2 * b * s * h * h);
  static_assert(forward_of("mlp_up") + forward_of("mlp_down") == 16 * b * s * h * h);
  static_assert(k22::in_its_letters(forward_flops(layer_ops({}), {}, every_op(layer_ops({})))) ==
                24 * b * s * h * h + 4 * b * s * s * h);
  static_assert(forward_flops(head_ops({}), {}, every_op(head_ops({}))) == 2 * b * s * h * v);
  static_assert(forward_flops(embedding_ops({}), {}, every_op(embedding_ops({}))) == 0);
}

TEST_CASE("K22 appendix A: a tensor-parallel rank computes 1/t of it") {
  using namespace symbols;
  const OpTable table = layer_ops({});
  CHECK(forward_flops(table, k22::tensor, every_op(table)) == forward_flops(table, {}, every_op(table)) / t);
  CHECK(forward_flops(table, k22::tensor_sequence, every_op(table)) ==
        forward_flops(table, k22::tensor, every_op(table)));
}

TEST_CASE("K22 eq. 7: model FLOPs of an iteration") {
  using namespace symbols;
  static_assert(model() == 72 * B * L * s * h * h * (1 + s / (6 * h) + v / (12 * h * L)));
}

TEST_CASE("K22 appendix A: hardware FLOPs without recomputation are model FLOPs") {
  static_assert(exact({}) == model());
  static_assert(as_printed({}) == model());
}

TEST_CASE("K22 appendix A: hardware FLOPs with selective recomputation, counted exactly") {
  using namespace symbols;
  static_assert(exact(k22::selective()) ==
                72 * B * L * s * h * h * (1 + s / (6 * h) + s / (18 * h) + v / (12 * h * L)));
}

TEST_CASE("K22 eq. 8: hardware FLOPs with selective recomputation in the paper's convention") {
  using namespace symbols;
  static_assert(as_printed(k22::selective()) ==
                72 * B * L * s * h * h * (1 + s / (3 * h) + v / (12 * h * L)));
}

TEST_CASE("K22 eq. 9: the ratio of eqs. 8 and 7 is about 1 + s/(6h)") {
  using namespace symbols;
  for (const k22::Run& run : k22::table_3()) {
    CAPTURE(run.model.name);
    const double ratio = k22::evaluate(as_printed(k22::selective()), run) / k22::evaluate(model(), run);
    const double approximation = k22::evaluate(1 + s / (6 * h), run);
    // What the approximation leaves out only makes the ratio smaller, by the square of s/(6h) and the head.
    CHECK(ratio < approximation);
    CHECK(ratio == doctest::Approx(approximation).epsilon(0.006));
  }
}

TEST_CASE("K22 appendix A: full recomputation recomputes every forward pass of the layers") {
  using namespace symbols;
  static_assert(exact(k22::full()) - model() == L * (24 * B * s * h * h + 4 * B * s * s * h));
}

TEST_CASE("K22 table 5: HFU over MFU is eq. 8 over eq. 7") {
  struct Utilisation {
    k22::Run run;
    double mfu, hfu;
  };
  for (const auto& [of, mfu, hfu] :
       {Utilisation{k22::gpt_22b(), 41.5, 43.7}, Utilisation{k22::gpt3_175b(), 51.4, 52.8},
        Utilisation{k22::mt_nlg_530b(), 56.0, 57.0}, Utilisation{k22::gpt_1t(), 56.3, 57.0}}) {
    const k22::Run& run = of;  // a lambda of CAPTURE takes no structured binding in Clang 14
    CAPTURE(run.model.name);
    const double ratio = k22::evaluate(as_printed(k22::selective()), run) / k22::evaluate(model(), run);
    CHECK(mfu * ratio == doctest::Approx(hfu).epsilon(0.003));  // utilisations are printed to 0.1 points
  }
}

TEST_CASE("K22 table 5: MFU follows from eq. 7, iteration times and 312 TFLOP/s") {
  struct Measured {
    k22::Run run;
    double seconds, mfu;
  };
  for (const auto& [of, seconds, mfu] :
       {Measured{k22::gpt_22b(), 1.10, 41.5}, Measured{k22::gpt3_175b(), 13.75, 51.4},
        Measured{k22::mt_nlg_530b(), 37.83, 56.0}, Measured{k22::gpt_1t(), 71.49, 56.3}}) {
    const k22::Run& run = of;  // a lambda of CAPTURE takes no structured binding in Clang 14
    CAPTURE(run.model.name);
    const double peak = 312e12 * static_cast<double>(devices(run.strategy));
    CHECK(100 * k22::evaluate(model(), run) / (seconds * peak) == doctest::Approx(mfu).epsilon(0.005));
  }
}

}  // namespace headroom
