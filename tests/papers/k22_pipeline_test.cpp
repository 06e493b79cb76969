// K22 section 4.2.3, section 4.3 and appendix B: activations along the pipeline. In-flight counts come
// from the generated schedules, the paper's expressions from multiplying them out.
#include <doctest/doctest.h>

#include "headroom/memory/rank.hpp"
#include "papers/k22.hpp"

namespace headroom {
namespace {

RankActivations activations(const k22::Run& run, std::int64_t rank) {
  const auto stages = stage_activations(run.model, run.strategy, run.workload, Detail::paper);
  return rank_activations(stages, schedule_shape(run.strategy, microbatches(run.strategy, run.workload)),
                          rank);
}

k22::Run without_interleaving(k22::Run run) {
  run.strategy.virtual_pipeline = 1;
  run.strategy.schedule = ScheduleKind::one_forward_one_backward;
  return run;
}

// 1 + (p-1)/(pm) for an interleaved schedule with microbatches enough, and 1 without interleaving.
Expr interleaving_factor(const k22::Run& run) {
  using namespace symbols;
  return run.strategy.virtual_pipeline > 1 ? 1 + (p - 1) / (p * m) : 1;
}

}  // namespace

TEST_CASE("K22 eq. 5: the first stage holds p microbatches of L/p layers, as many as one holds of all L") {
  using namespace symbols;
  const Expr eq_5 = s * b * h * L / t * (34 + 5 * a * s / h);
  for (k22::Run run : k22::table_3()) {
    run.strategy.sequence_parallel = true;
    CAPTURE(run.model.name);
    CHECK(activations(without_interleaving(run), 0).at_peak.layers == Bytes(k22::evaluate(eq_5, run)));
    CHECK(activations(run, 0).at_peak.layers == Bytes(k22::evaluate(eq_5 * interleaving_factor(run), run)));
  }
}

TEST_CASE("K22 eq. 6: the same with selective recomputation, and one layer's recomputation") {
  using namespace symbols;
  const Expr eq_6 = 34 * s * b * h * L / t;
  const Expr core_attention = 5 * a * s * s * b / t;
  for (const k22::Run& plain : k22::table_3()) {
    const k22::Run run = k22::with_both_techniques(plain);
    CAPTURE(run.model.name);
    CHECK(activations(without_interleaving(run), 0).at_peak.layers == Bytes(k22::evaluate(eq_6, run)));
    if (run.strategy.pipeline_parallel == 1)
      continue;  // the head is alive too, and outweighs the recomputation
    const Activations peak = activations(run, 0).at_peak;
    CHECK(peak.layers == Bytes(k22::evaluate(eq_6 * interleaving_factor(run), run)));
    CHECK(peak.recompute == Bytes(k22::evaluate(core_attention, run)));
  }
}

TEST_CASE("K22 section 4.3: the embedding's dropout mask, sbhp/t") {
  using namespace symbols;
  static_assert(p * k22::embedding_bytes(k22::tensor_sequence) == s * b * h * p / t);
  for (k22::Run run : k22::table_3()) {
    run.strategy.sequence_parallel = true;
    CAPTURE(run.model.name);
    CHECK(activations(without_interleaving(run), 0).at_peak.embedding ==
          Bytes(k22::evaluate(s * b * h * p / t, run)));
  }
}

TEST_CASE(
    "K22 section 4.3: with p = 1 the final norm, the output layer and the fp32 logits, 4sbh/t(1 + v/h)") {
  using namespace symbols;
  static_assert(k22::head_bytes(k22::tensor_sequence) == 4 * s * b * h / t * (1 + v / h));
  const OpTable head = head_ops({});
  const StoredTensors stored = stored_tensors(head, k22::tensor_sequence);
  REQUIRE(stored.size() == 3);
  CHECK(stored[0].bytes == 2 * s * b * h / t);
  CHECK(stored[1].bytes == 2 * s * b * h / t);
  CHECK(stored[2].bytes == 4 * s * b * v / t);
}

TEST_CASE("K22 section 4.3: together sbhL/t(p/L + 4/L(1 + v/h)) where p = 1") {
  using namespace symbols;
  constexpr Expr extra =
      p * k22::embedding_bytes(k22::tensor_sequence) + k22::head_bytes(k22::tensor_sequence);
  static_assert(extra == s * b * h * L / t * (p / L + 4 / L * (1 + v / h)));
  k22::Run run = k22::gpt_22b();
  run.strategy.sequence_parallel = true;
  const Activations peak = activations(run, 0).at_peak;
  CHECK(peak.embedding + peak.head == Bytes(k22::evaluate(extra, run)));
}

TEST_CASE("K22 section 4.3: with p above 1 the first stage has no head and the last no embedding") {
  for (const k22::Run& run : {k22::gpt3_175b(), k22::mt_nlg_530b(), k22::gpt_1t()}) {
    CHECK(activations(run, 0).at_peak.head == 0_B);
    CHECK(activations(run, run.strategy.pipeline_parallel - 1).at_peak.embedding == 0_B);
  }
}

TEST_CASE("K22 appendix B: rank r holds min(n, p - r) microbatches under 1F1B") {
  for (const std::int64_t p : {1, 2, 3, 8, 35}) {
    for (const std::int64_t n : {1, 2, 7, 8, 64, 280}) {
      for (std::int64_t r = 0; r < p; ++r) {
        CHECK(chunks_in_flight({.ranks = p, .microbatches = n}, r) == std::min(n, p - r));
      }
    }
  }
}

TEST_CASE(
    "K22 section 4.2.3: interleaving holds 1 + (p-1)/(pm) times as much on the first stage for n >> p") {
  for (const std::int64_t p : {2, 4, 8, 35}) {
    for (const std::int64_t m : {2, 3, 5}) {
      const ScheduleShape shape{ScheduleKind::interleaved, p, m, 8 * p};
      // p m chunks would be p microbatches; the factor times p m is p m + p - 1.
      CHECK(chunks_in_flight(shape, 0) == p * m + p - 1);
    }
  }
}

TEST_CASE("K22 appendix B: deallocating sent outputs saves the first rank of 530B 2.73 GiB") {
  using namespace symbols;
  k22::Run run = without_interleaving(k22::mt_nlg_530b());
  run.strategy.keep_pipeline_outputs = true;
  const Bytes outputs = activations(run, 0).at_peak.outputs;
  CHECK(outputs == Bytes(k22::evaluate(2 * s * b * h * p, run)));
  CHECK(outputs.count() / gibi == doctest::Approx(2.73).epsilon(0.002));
  run.strategy.keep_pipeline_outputs = false;
  CHECK(activations(run, 0).at_peak.outputs == 0_B);
}

TEST_CASE(
    "K22 section 5: full recomputation holds its checkpoints and one layer's working set as a term of its "
    "own") {
  using namespace symbols;
  for (k22::Run run : k22::table_3()) {
    run.strategy.recompute.policy = RecomputePolicy::full;
    const Activations peak = activations(without_interleaving(run), 0).at_peak;
    CAPTURE(run.model.name);
    CHECK(peak.layers == Bytes(k22::evaluate(2 * s * b * h * L, run)));
    CHECK(peak.head == 0_B);
    // The checkpoint itself is the layer's input, which is not stored twice.
    const Expr working_set = s * b * h * (10 + 24 / t + 5 * a * s / (h * t)) - 2 * s * b * h;
    CHECK(peak.recompute == Bytes(k22::evaluate(working_set, run)));
  }
}

}  // namespace headroom
