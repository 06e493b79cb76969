// Saved tensors that wait on the host: which they are, what the device has of them at its peak, and what the host holds.
#include "headroom/memory/offloaded.hpp"

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/step.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {
namespace {

constexpr double saved_tokens = 8192;
constexpr double saved_width = 4096;
constexpr double all_layers = 32;
constexpr double saved_input = 2 * saved_tokens * saved_width;
// 32 heads of queries, 8 of keys and 8 of values, 128 wide.
constexpr double saved_qkv = 2 * saved_tokens * (32 + 8 + 8) * 128;

Request saving(std::vector<std::string> modules, Recomputation recompute = {}, std::int64_t pipeline = 1) {
  return {.model = read_model("llama-3-8b"),
          .system = read_system("dgx-h100-80g"),
          .software = read_software("megatron-core-2025"),
          .strategy = {.pipeline_parallel = pipeline,
                       .recompute = std::move(recompute),
                       .offload = {.modules = std::move(modules)}},
          .workload = {.global_batch = 8, .sequence = static_cast<std::int64_t>(saved_tokens)}};
}

Plan plan_of(const Request& request) { return account(evaluate(request)); }

RankMemory first_rank(const Request& request) { return plan_of(request).ranks.front(); }

}  // namespace

TEST_CASE(
    "offloaded: core attention alone saves queries, keys and values, and shares its output with the "
    "projection") {
  const RankMemory kept = first_rank(saving({}));
  const RankMemory alone = first_rank(saving({"core_attn"}));
  CHECK(alone.activations_on_host == Bytes(all_layers * saved_qkv));
  CHECK(alone.activations.at_peak.layers == kept.activations.at_peak.layers - Bytes(all_layers * saved_qkv));
  const RankMemory both = first_rank(saving({"core_attn", "attn_proj"}));
  CHECK(both.activations_on_host == Bytes(all_layers * (saved_qkv + saved_input)));
  // The loss is the peak: the last layer's have come back ahead of it.
  CHECK(both.activations.at_peak.fetched == Bytes(saved_qkv + saved_input));
  CHECK(total(both) == total(kept) - Bytes((all_layers - 1) * (saved_qkv + saved_input)));
}

TEST_CASE("offloaded: the inputs of checkpoints leave nothing of the layers on the device but those of two") {
  const Recomputation full{.policy = RecomputePolicy::full};
  const RankMemory kept = first_rank(saving({}, full));
  const RankMemory away = first_rank(saving({"layer_input"}, full));
  CHECK(kept.activations.at_peak.layers == Bytes(all_layers * saved_input));
  CHECK(away.activations.at_peak.layers == Bytes(0));
  CHECK(away.activations_on_host == Bytes(all_layers * saved_input));
  CHECK(total(kept) - total(away) == Bytes((all_layers - 1) * saved_input));
  // In checkpoints of four layers there are a quarter as many.
  const Recomputation uniform{
      .policy = RecomputePolicy::full, .method = RecomputeMethod::uniform, .layers = 4};
  CHECK(first_rank(saving({"layer_input"}, uniform)).activations_on_host ==
        Bytes(all_layers / 4 * saved_input));
}

TEST_CASE("offloaded: at a moment of a forward pass nothing has come back and nothing is reduced") {
  const BackwardPeak forward{.during = {.kind = 0, .op = 0, .pass = OpPass::forward},
                             .forward_values = 100_B};
  StageActivations stage;
  stage.layers = {{.count = 4, .on_host = 10_B, .peaks = {.backward = {.during = {.kind = 0, .op = 0}}}}};
  RunUnits& units = stage.layers.front().units;
  units.first = units.inner = units.last = {.gathered = 3_B, .gradients = 5_B};
  const auto excess = [&] { return pass_activations(stage); };
  // Backward, the next layer's come while this one's are there.
  CHECK(total(excess().excess) == 10_B + 3_B + 5_B);
  CHECK(excess().during.pass == OpPass::backward);
  stage.layers.front().peaks.forward = forward;
  CHECK(excess().during.pass == OpPass::forward);
  CHECK(total(excess().excess) == 100_B + 3_B);
  CHECK(excess().excess.fetched == 0_B);
  CHECK(excess().excess.unit_gradients == 0_B);
  // A recomputation is of a backward pass.
  stage.layers.front().peaks = {.backward = {.during = {.kind = 0, .op = 0, .pass = OpPass::recomputation}}};
  CHECK(total(excess().excess) == 10_B + 3_B + 5_B);
}

TEST_CASE("offloaded: a host holds those of all microbatches in flight, and they are a limit") {
  Request request = saving({"layer_input"}, {.policy = RecomputePolicy::full}, 4);
  Plan plan = plan_of(request);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const double in_flight = 4 - static_cast<double>(rank);
    CHECK(plan.ranks[rank].activations_on_host == Bytes(in_flight * all_layers / 4 * saved_input));
  }
  REQUIRE(plan.host.has_value());
  CHECK(plan.host->devices == 4);
  CHECK(plan.host->needed == Bytes(4 * all_layers * saved_input));
  request.system.host->memory = Bytes(4 * all_layers * saved_input - 1);
  const Evaluation evaluation = evaluate(request);
  const auto* lacking = std::get_if<Infeasible>(&evaluation);
  REQUIRE(lacking != nullptr);
  CHECK(lacking->limit == "host_memory");
}

TEST_CASE("offloaded: small tensors stay, and a slow link shows") {
  Request request = saving({"core_attn"});
  request.workload.sequence = 128;  // keys of 128 Ki elements, queries of 512 Ki
  CHECK(first_rank(request).activations_on_host == Bytes(0));
  request = saving({"core_attn"});
  request.strategy.recompute = {};
  request.system.host->device_link = BytesPerSecond(1e9);
  const Plan plan = plan_of(request);
  const ExchangeTimes& times = plan.timing->iteration.exchanges;
  CHECK(times.host.count() == doctest::Approx(2 * all_layers * saved_qkv / 1e9));
  // Each layer computes for as long as it is alone, and its transfers take longer, both ways.
  const ModelLayers kinds = layers_of(request.model, request.strategy, request.software);
  std::size_t place = 0;
  while (kinds.kinds[place].position != KindPosition::layer) ++place;
  const LayerCost& layer = plan.timing->iteration.cost.kinds[place];
  const double shown = all_layers * (saved_qkv / 1e9 - device_time(layer.forward).count());
  CHECK(times.exposed_host_forward.count() == doctest::Approx(shown).epsilon(0.02));
  CHECK(plan.timing->iteration.breakdown.host_communication ==
        8.0 * (times.exposed_host_forward + times.exposed_host_backward));
}

TEST_CASE("offloaded: first layers leave all that they save, beside the passes of all layers") {
  const RankMemory kept = first_rank(saving({}));
  Request request = saving({});
  const auto away = [&](std::int64_t layers) {
    request.strategy.offload.layers = layers;
    return first_rank(request);
  };
  const RankMemory one = away(1);
  const RankMemory several = away(12);
  const Bytes of_layer = one.activations_on_host;
  // Inputs of norms, of the MLP and of its activation are among it, statistics of fewer than 1 Mi elements are not.
  CHECK(of_layer > Bytes(saved_qkv + 3 * saved_input));
  CHECK(of_layer <= (1 / all_layers) * kept.activations.at_peak.layers);
  CHECK(several.activations_on_host == 12.0 * of_layer);
  CHECK(several.activations.at_peak.layers == kept.activations.at_peak.layers - 12.0 * of_layer);
  CHECK(total(several) == total(kept) - 12.0 * of_layer);  // the loss is the peak, and the last layers stay
  request.system.host->device_link = BytesPerSecond(1e9);
  const auto host_time = [&] { return plan_of(request).timing->iteration.exchanges.host; };
  CHECK(host_time().count() == doctest::Approx(2 * 12 * of_layer.count() / 1e9));
}

TEST_CASE("offloaded: shards of weights and gradients leave the device") {
  Request request = saving({}, {.policy = RecomputePolicy::full});
  request.software = read_software("torchtitan-2025");
  request.strategy.data_parallel = 8;
  request.strategy.data_sharding = DataSharding::zero3;
  const ModelState device = first_rank(request).state;
  request.strategy.offload = {.optimizer = {1}, .parameters = true};
  const ModelState host = first_rank(request).state;
  CHECK(total(host) == Bytes(0));
  // fp32 weights beside fp32 gradients and two moments: 16 bytes a parameter, of which each rank has an eighth.
  CHECK(host.on_host == total(device));
  CHECK(host.on_host.count() == doctest::Approx(16 * 8.03e9 / 8).epsilon(0.001));
}

}  // namespace headroom
