// What a precision of fewer than 16 bits does to memory, time and legality.
#include <algorithm>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/model/ends_ops.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/plan/interval.hpp"
#include "headroom/time/collective.hpp"

namespace headroom {
namespace {

Request llama_in(const std::string& system, Precision precision) {
  Request request{.model = read_model("llama-3-8b"),
                  .system = read_system(system),
                  .strategy = {.tensor_parallel = 2,
                               .data_parallel = 4,
                               .sequence_parallel = true,
                               .data_sharding = DataSharding::zero1,
                               .precision = precision},
                  .workload = {.global_batch = 32, .sequence = 8192}};
  return request;
}

Plan planned(const Request& request) { return account(evaluate(request)); }

// Bytes of weights of linears, by how many of them there are.
double of_narrow_weight(const std::string& system, Precision precision, bool gathered_in_type) {
  Request request = llama_in(system, precision);
  request.strategy.fp8_param_gather = gathered_in_type;
  const Parameters held = parameters_by_rank(request.model, request.strategy, request.workload).front();
  const double others = 2 * (total(held) - held.narrow_dense);
  return (planned(request).ranks.front().state.weights.count() - others) / held.narrow_dense;
}

bool breaks(const std::vector<Problem>& problems, const std::string& field) {
  return std::any_of(problems.begin(), problems.end(),
                     [&](const Problem& problem) { return problem.where == field; });
}

}  // namespace

TEST_CASE("precision: bytes of a weight by recipe and device") {
  constexpr const char* hopper = "dgx-h100-80g";
  constexpr const char* blackwell = "dgx-b200-180g";
  const auto takes = [](const char* system, Precision precision, bool in_type, double bytes) {
    CHECK(of_narrow_weight(system, precision, in_type) == doctest::Approx(bytes).epsilon(1e-9));
  };
  takes(hopper, Precision::fp8, false, 4);
  takes(hopper, Precision::fp8_delayed, true, 2);
  takes(blackwell, Precision::fp8, false, 3);
  takes(blackwell, Precision::fp8, true, 1);
  takes(hopper, Precision::fp8_blockwise, false, 2 + 2 * (1 + 1.0 / 4096));
  takes(blackwell, Precision::mxfp8, false, 2 + 2 * (1 + 1.0 / 32));
  takes(blackwell, Precision::mxfp8, true, 2 * (1 + 1.0 / 32));
  takes(blackwell, Precision::nvfp4, true, 2 * 0.5625);
}

TEST_CASE("precision: weights of linears of layers are narrow, those of the ends and of norms are not") {
  const Request request = llama_in("dgx-h100-80g", Precision::fp8);
  const Parameters held = parameters_by_rank(request.model, request.strategy, request.workload).front();
  const double h = 4096;
  const double linears = h * h + 2 * 1024 * h + h * h + 3 * h * 14336;
  CHECK(held.narrow_dense == 32 * linears / 2);
  Strategy plain = request.strategy;
  plain.precision = Precision::bf16;
  const Parameters same = parameters_by_rank(request.model, plain, request.workload).front();
  CHECK(total(same) == total(held));
  CHECK(same.narrow_dense == 0);
}

// Megatron-LM's recorded peaks of one layer of experts of Mixtral's sizes without gating, blockwise minus BF16, on
// one of 8 ranks: 205.2 to 205.7 MB [Megatron-LM, tests/functional_tests/test_cases/common/moe_perf].
TEST_CASE("precision: blockwise FP8 takes as much more for a layer of experts as was measured, within 2%") {
  constexpr double parameters = 2.0 * 4096 * 14336;
  constexpr double rows = 2.0 * 4096;
  const Strategy blockwise{.precision = Precision::fp8_blockwise};
  const double weights = parameters * (narrow_weight_size(blockwise, 2) - 2);
  const double inputs = rows * 4096 * (1 + 1.0 / 32 - 2);
  for (const double measured : {205.716e6, 205.152e6, 205.710e6}) {
    CHECK(weights + inputs == doctest::Approx(measured).epsilon(0.02));
  }
}

TEST_CASE("precision: FP8 is faster, sends less and is measured against both peaks") {
  const Plan plain = planned(llama_in("dgx-h100-80g", Precision::bf16));
  const Plan fp8 = planned(llama_in("dgx-h100-80g", Precision::fp8));
  const Breakdown& before = plain.timing->iteration.breakdown;
  const Breakdown& after = fp8.timing->iteration.breakdown;
  CHECK(after.gemm < before.gemm);
  CHECK(after.attention == before.attention);
  CHECK(after.memory_bound > before.memory_bound);  // casts
  CHECK(after.tensor_communication < before.tensor_communication);
  CHECK(plain.timing->throughput.mfu == plain.timing->throughput.mfu_half);
  const Device& device = fp8.request.system.performance->device;
  CHECK(fp8.timing->throughput.mfu * (*device.fp8_peak / device.half_peak) ==
        doctest::Approx(fp8.timing->throughput.mfu_half));
}

TEST_CASE("precision: delayed scaling casts with the norm, and its casts read once") {
  const Plan current = planned(llama_in("dgx-h100-80g", Precision::fp8));
  const Plan delayed = planned(llama_in("dgx-h100-80g", Precision::fp8_delayed));
  CHECK(delayed.timing->iteration.breakdown.memory_bound < current.timing->iteration.breakdown.memory_bound);
  CHECK(delayed.timing->iteration.breakdown.gemm == current.timing->iteration.breakdown.gemm);
}

TEST_CASE("precision: delayed scaling reduces largest elements once a pass of every virtual stage") {
  const auto with = [](Precision precision, std::int64_t chunks, bool tp_only) {
    Request request = llama_in("dgx-h100-80g", precision);
    request.strategy.pipeline_parallel = 2;
    request.strategy.virtual_pipeline = chunks;
    if (chunks > 1) request.strategy.schedule = ScheduleKind::interleaved;
    request.strategy.data_parallel = 8;
    request.strategy.tp_only_amax_red = tp_only;
    request.workload.global_batch = 64;
    request.system.memory = Bytes(1e12);
    return request;
  };
  const auto seconds = [&](Precision precision, std::int64_t chunks, bool tp_only) {
    return planned(with(precision, chunks, tp_only)).timing->iteration.breakdown.scale_communication;
  };
  CHECK(seconds(Precision::fp8, 1, false) == Seconds(0));
  // Of 32 layers of 4 linears 3 numbers forward and 2 backward, among the 16 ranks of a pipeline rank, in 8 microbatches.
  const Request request = with(Precision::fp8_delayed, 1, false);
  const Performance& performance = *request.system.performance;
  const auto reduced = [&](double numbers, const Group& group) {
    return small_all_reduce_time(Bytes(4 * numbers), group, performance);
  };
  const Group all{.ranks = 16, .ranks_in_node = 8, .rings_per_node = 1};
  const Group tensor{.ranks = 2, .ranks_in_node = 2, .rings_per_node = 4};
  const Group node{.ranks = 8, .ranks_in_node = 8, .rings_per_node = 1};
  CHECK(reduced(1, all) == reduced(1, node) + 2 * performance.rates.network.step.value);
  CHECK(reduced(1, node) == collective_time(CollectiveKind::all_reduce, Bytes(4), node, performance));
  const auto of_microbatch = [&](const Group& group) {
    return reduced(32 * 4 * 3, group) + reduced(32 * 4 * 2, group);
  };
  const auto expected = [](Seconds once, double passes) { return doctest::Approx(passes * once.count()); };
  CHECK(seconds(Precision::fp8_delayed, 1, false).count() == expected(of_microbatch(all), 8));
  CHECK(seconds(Precision::fp8_delayed, 2, false).count() == expected(of_microbatch(all), 16));
  CHECK(seconds(Precision::fp8_delayed, 1, true).count() == expected(of_microbatch(tensor), 8));
}

TEST_CASE("precision: what is not legal") {
  const auto rules = [](const Request& request) {
    return illegalities(request.model, request.strategy, request.workload, request.software);
  };
  Request request = llama_in("dgx-h100-80g", Precision::fp8);
  CHECK(rules(request).empty());
  request.strategy.fp8_param_gather = true;
  CHECK(rules(request).empty());
  request.strategy.data_sharding = DataSharding::none;
  CHECK(breaks(rules(request), "fp8_param_gather"));
  request.strategy.lora = {.rank = 16};  // of frozen weights none is gathered after a step
  CHECK(rules(request).empty());
  request = llama_in("dgx-h100-80g", Precision::bf16);
  request.strategy.fp8_param_gather = true;
  CHECK(breaks(rules(request), "fp8_param_gather"));
  request = llama_in("dgx-b200-180g", Precision::mxfp8);
  request.model.feedforward = 14336 - 32;  // 7152 on a rank
  CHECK(breaks(rules(request), "precision"));
  request.strategy.precision = Precision::fp8;
  CHECK(rules(request).empty());
  request = llama_in("dgx-h100-80g", Precision::fp8_delayed);
  request.strategy.recompute = {.policy = RecomputePolicy::ops, .ops = {"layernorm"}};
  CHECK(breaks(rules(request), "precision"));
  request.strategy.precision = Precision::fp8;
  CHECK(rules(request).empty());
  request.strategy.tp_only_amax_red = true;
  CHECK(breaks(rules(request), "tp_only_amax_red"));
  request.strategy.precision = Precision::bf16;
  CHECK(breaks(rules(request), "tp_only_amax_red"));
  request.strategy.precision = Precision::fp8;
  request.strategy.tp_only_amax_red = false;
  request.model = read_model("deepseek-v3");
  CHECK(rules(request).empty());
  for (LayerDescription& kind : request.model.layer_kinds) kind.architecture.latent_attention->kv_rank = 500;
  CHECK(breaks(rules(request), "precision"));
}

TEST_CASE("precision: layers in BF16 among others have the weights, the activations and the time of BF16") {
  const auto with = [](Precision precision, PrecisionScope scope) {
    Request request = llama_in("dgx-h100-80g", precision);
    request.strategy.precision_scope = scope;
    request.strategy.pipeline_parallel = 4;
    request.strategy.data_parallel = 1;
    request.system.memory = Bytes(1e12);
    return request;
  };
  const Plan plain = planned(with(Precision::bf16, {}));
  const Plan narrow = planned(with(Precision::fp8, {}));
  const Plan mixed = planned(with(Precision::fp8, {.bf16_layers_at_start = 8, .bf16_layers_at_end = 1}));
  // All eight layers of the first rank, one of eight of the last, none of those between.
  const auto weights = [](const Plan& plan, std::size_t rank) {
    return plan.ranks[rank].state.weights.count();
  };
  CHECK(weights(mixed, 0) == weights(plain, 0));
  CHECK(weights(mixed, 1) == weights(narrow, 1));
  CHECK(weights(mixed, 3) == doctest::Approx((7 * weights(narrow, 3) + weights(plain, 3)) / 8));
  const auto saved = [](const Plan& plan, std::size_t rank) {
    return plan.ranks[rank].activations.at_peak.layers.count();
  };
  CHECK(saved(mixed, 0) == saved(plain, 0));
  CHECK(saved(mixed, 2) == saved(narrow, 2));
  CHECK(saved(mixed, 3) == doctest::Approx((7 * saved(narrow, 3) + saved(plain, 3)) / 8));
  const auto seconds = [](const Plan& plan) { return plan.timing->iteration.total; };
  CHECK(seconds(narrow) < seconds(mixed));
  CHECK(seconds(mixed) <= seconds(plain));
  CHECK(mixed.timing->flops.model == plain.timing->flops.model);
}

TEST_CASE("precision: weights of an output layer in MXFP8 have copies, and stay at 16 bits too") {
  const auto weights = [](bool output_layer, bool gathered_in_type) {
    Request request = llama_in("dgx-b200-180g", Precision::mxfp8);
    request.strategy.fp8_param_gather = gathered_in_type;
    request.strategy.precision_scope.output_layer = output_layer;
    return planned(request).ranks.front().state.weights.count();
  };
  const double output = 128256.0 * 4096 / 2;
  for (const bool gathered_in_type : {false, true}) {
    CHECK(weights(true, gathered_in_type) - weights(false, gathered_in_type) ==
          doctest::Approx(2 * output * (1 + 1.0 / 32)));
  }
}

TEST_CASE("precision: attention in FP8 takes less memory, and an interval as wide as its rates are poor") {
  Request request = llama_in("dgx-h100-80g", Precision::fp8);
  const Plan plain = planned(request);
  request.system.performance->run_spread = RunSpread{.logarithm = 0.01, .flash_attention = true};
  CHECK(step_rates(request) == StepRates::own_runs);
  request.strategy.precision_scope.attention = true;
  CHECK(step_rates(request) == StepRates::experts);
  const Plan narrow = planned(request);
  CHECK(peak(narrow) < peak(plain));
  CHECK(narrow.timing->iteration.breakdown.attention < plain.timing->iteration.breakdown.attention);
  CHECK(std::any_of(narrow.warnings.begin(), narrow.warnings.end(),
                    [](const Warning& warning) { return warning.code == "fp8_attention_rates"; }));
}

TEST_CASE("precision: what of a model cannot be in it, or out of it") {
  Request request = llama_in("dgx-b200-180g", Precision::mxfp8);
  const auto broken_by = [&](Precision precision, const PrecisionScope& scope, const char* field) {
    request.strategy.precision = precision;
    request.strategy.precision_scope = scope;
    return breaks(illegalities(request.model, request.strategy, request.workload, request.software), field);
  };
  const PrecisionScope everything{
      .bf16_layers_at_start = 16, .bf16_layers_at_end = 15, .attention = true, .output_layer = true};
  for (const char* const field :
       {"bf16_layers_at_start", "bf16_layers_at_end", "fp8_attention", "fp8_output_layer"}) {
    CAPTURE(field);
    CHECK_FALSE(broken_by(Precision::mxfp8, everything, field));
    CHECK(broken_by(Precision::bf16, everything, field));
  }
  CHECK(broken_by(Precision::mxfp8, {.bf16_layers_at_start = 16, .bf16_layers_at_end = 16},
                  "bf16_layers_at_start"));
  CHECK(broken_by(Precision::mxfp8,
                  {.bf16_layers_at_start = std::numeric_limits<std::int64_t>::max(),
                   .bf16_layers_at_end = std::numeric_limits<std::int64_t>::max()},
                  "bf16_layers_at_start"));
  CHECK(broken_by(Precision::mxfp8, {.bf16_layers_at_end = 32}, "bf16_layers_at_end"));
  CHECK(broken_by(Precision::fp8_delayed, {.bf16_layers_at_end = 1}, "bf16_layers_at_end"));
  CHECK(broken_by(Precision::fp8, {.output_layer = true}, "fp8_output_layer"));
  CHECK(broken_by(Precision::nvfp4, {.attention = true}, "fp8_attention"));
  CHECK(broken_by(Precision::fp8_blockwise, {.attention = true}, "fp8_attention"));
  request.strategy.context_parallel = 2;
  for (const CpComm how : {CpComm::p2p, CpComm::a2a, CpComm::a2a_p2p}) {
    request.strategy.cp_comm = how;
    CHECK_FALSE(broken_by(Precision::fp8, {.attention = true}, "fp8_attention"));
    CHECK_FALSE(broken_by(Precision::fp8_delayed, {.attention = true}, "fp8_attention"));
    CHECK(broken_by(Precision::mxfp8, {.attention = true}, "fp8_attention"));
  }
  request.strategy.cp_comm = CpComm::all_gather;
  CHECK(broken_by(Precision::fp8, {.attention = true}, "fp8_attention"));
  request.strategy.cp_comm = CpComm::p2p;
  request.model.architecture.attention_sinks = true;
  CHECK(broken_by(Precision::fp8, {.attention = true}, "fp8_attention"));
  request.model.architecture.attention_sinks = false;
  request.strategy.context_parallel = 1;
  request.model.architecture.kernels.attention = AttentionKernel::unfused;
  CHECK(broken_by(Precision::fp8, {.attention = true}, "fp8_attention"));
}

TEST_CASE("precision: a device has the arithmetic, or the strategy is refused") {
  const auto refused = [](const char* system, Precision precision) {
    return breaks(system_illegalities(read_system(system), {.precision = precision}, Whose::device),
                  "precision");
  };
  CHECK(refused("dgx-a100-80g", Precision::fp8));
  CHECK(refused("dgx-h100-80g", Precision::mxfp8));
  CHECK(refused("dgx-h100-80g", Precision::nvfp4));
  for (const PrecisionRow& row : precisions) CHECK_FALSE(refused("dgx-b200-180g", row.precision));
  // An MI355X scales blocks of 32, as MXFP8 has them, and not of 16.
  CHECK(refused("mi300x", Precision::mxfp8));
  for (const PrecisionRow& row : precisions)
    CHECK(refused("mi355x", row.precision) == (row.precision == Precision::nvfp4));
  CHECK_FALSE(refused("dgx-a100-80g", Precision::bf16));
  CHECK_THROWS_AS(evaluate(llama_in("dgx-a100-80g", Precision::fp8)), InputError);
}

TEST_CASE("precision: a composer asked for one after another answers as a fresh one does") {
  const Request base = llama_in("dgx-b200-180g", Precision::bf16);
  Composer composer(base);
  for (const PrecisionRow& row : precisions) {
    Request asked = base;
    asked.strategy.precision = row.precision;
    const Plan kept = account(composer.evaluate(asked.strategy));
    const Plan fresh = planned(asked);
    CHECK(peak(kept) == peak(fresh));
    CHECK(kept.timing->iteration.total == fresh.timing->iteration.total);
  }
}

TEST_CASE("precision: and so it does where other ranks agree on the scales") {
  const Request base = llama_in("dgx-h100-80g", Precision::fp8_delayed);
  Composer composer(base);
  for (const std::int64_t data : {4, 2, 8, 4}) {
    for (const bool tp_only : {false, true}) {
      Request asked = base;
      asked.strategy.data_parallel = data;
      asked.strategy.tp_only_amax_red = tp_only;
      CHECK(account(composer.evaluate(asked.strategy)).timing->iteration.total ==
            planned(asked).timing->iteration.total);
    }
  }
}

TEST_CASE("precision: so it does with layers in BF16, attention and output layer one after another") {
  const Request base = llama_in("dgx-b200-180g", Precision::mxfp8);
  Composer composer(base);
  for (const PrecisionScope& scope :
       {PrecisionScope{}, PrecisionScope{.bf16_layers_at_start = 2}, PrecisionScope{.bf16_layers_at_end = 2},
        PrecisionScope{.attention = true}, PrecisionScope{.output_layer = true}}) {
    Request asked = base;
    asked.strategy.precision_scope = scope;
    const Plan kept = account(composer.evaluate(asked.strategy));
    const Plan fresh = planned(asked);
    CHECK(peak(kept) == peak(fresh));
    CHECK(kept.timing->iteration.total == fresh.timing->iteration.total);
  }
}

}  // namespace headroom
