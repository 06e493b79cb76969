#include "headroom/memory/units.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/memory/rank.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/schedule/order.hpp"

namespace headroom {
namespace {

using enum DataSharding;

const Workload units_batch{.global_batch = 32, .sequence = 4096};

Strategy sharded_over(std::int64_t ranks, DataSharding sharding) {
  return {.data_parallel = ranks, .data_sharding = sharding};
}

double bytes_a_parameter(Bytes bytes) { return bytes.count() / 1e9; }

// What is whole of divided weights and gradients at each moment of a backward pass, unit by unit: the embedding, each layer,
// the head.
struct Unit {
  double gathered = 0;
  double gradients = 0;
  double reduction = 0;
};

}  // namespace

TEST_CASE("state: what each stage of ZeRO divides, on each kind of stack") {
  const Transformer model = read_model("llama-3-8b");
  const Parameters billion = 1e9;
  using Parts = std::vector<double>;
  const auto parts_of = [&](const Software& software, const Strategy& strategy) {
    const ModelState held = model_state(model, strategy, units_batch, billion, 2, software);
    return Parts{bytes_a_parameter(held.weights), bytes_a_parameter(held.gradients),
                 bytes_a_parameter(held.optimizer)};
  };
  const auto each = [&](const char* stack, DataSharding sharding) {
    return parts_of(read_software(stack), sharded_over(8, sharding));
  };
  CHECK(each("nemo-2025", none) == Parts{2, 4, 12});
  CHECK(each("nemo-2025", zero1) == Parts{2, 4, 1.5});
  CHECK(each("nemo-2025", zero2) == Parts{2, 0.5, 1.5});
  CHECK(each("nemo-2025", zero3) == Parts{0.25, 0.5, 1.5});
  // 16 bytes a parameter, of which a rank has an eighth, and none in 16 bits.
  CHECK(each("torchtitan-2025", zero3) == Parts{0.5, 0.5, 1});
  // Gradients of several microbatches stay whole; DDP has FP32 gradients in buckets too.
  CHECK(each("hf-trainer", zero3) == Parts{0.5, 4, 1});
  Strategy at_once = sharded_over(8, zero3);
  at_once.sync_each_batch = true;
  CHECK(parts_of(read_software("hf-trainer"), at_once) == Parts{0.5, 0.5, 1});
  // With what each stack sums gradients in, and KempnerForge's BF16 weights and moments, which its gradients are of once reduced.
  const auto by_default = [&](const char* stack, DataSharding sharding) {
    const Software software = read_software(stack);
    return parts_of(software, with_stack_defaults(sharded_over(8, sharding), software, model));
  };
  CHECK(by_default("torchtitan-2025", zero3) == Parts{0.5, 0.5, 1});
  CHECK(by_default("hf-trainer", zero3) == Parts{0.5, 2, 1});
  CHECK(by_default("hf-trainer", none) == Parts{4, 8, 8});
  CHECK(by_default("deepspeed-2025", zero2) == Parts{2, 0.25, 1.5});
  CHECK(by_default("fms-fsdp-2024", zero3) == Parts{0.5, 0.5, 1});
  CHECK(by_default("kempnerforge-2026", zero3) == Parts{0.25, 4, 0.5});
  CHECK(by_default("kempnerforge-2026", none) == Parts{2, 2, 4});
  CHECK(each("hf-trainer", none) == Parts{4, 8, 8});
  CHECK(model_state(model, {}, units_batch, billion, 2, read_software("hf-trainer")).gradients == Bytes(4e9));
}

TEST_CASE("state: shards of a group of ranks, and weights that pipeline ranks keep for an iteration") {
  const Transformer model = read_model("llama-3-8b");
  const Software torch = read_software("torchtitan-2025");
  Strategy strategy = sharded_over(8, zero3);
  strategy.shard_size = 2;
  CHECK(bytes_a_parameter(total(model_state(model, strategy, units_batch, 1e9, 2, torch))) == 8);
  strategy = sharded_over(8, zero3);
  strategy.pipeline_parallel = 2;
  const ModelState held = model_state(model, strategy, units_batch, 1e9, 2, torch);
  CHECK(bytes_a_parameter(held.weights) == 2.5);
  CHECK(bytes_a_parameter(held.gradients) == 4);
}

TEST_CASE("state: FSDP1 has gradients of frozen weights that share a unit with adapters") {
  const Transformer model = read_model("llama-2-7b");
  Strategy strategy = sharded_over(2, zero3);
  strategy.lora.rank = 8;
  const auto gradients = [&](const char* stack, const Workload& batch) {
    const Software software = read_software(stack);
    const Strategy by_default = with_stack_defaults(strategy, software, model);
    const ModelParameters parts = model_parameters(model, by_default, batch, software);
    const Parameters held =
        parameters_of_rank(parts, counts_of(layers_of(model, by_default, software)), true);
    return model_state(model, by_default, batch, held, 2, software).gradients.count();
  };
  const double layers = 32.0 * (4 * 4096 * 4096 + 3.0 * 4096 * 11008 + 2 * 4096);
  // Whole while several microbatches are summed, a shard if there is one; embedding and head have none.
  CHECK(gradients("litgpt-2024", units_batch) > 2 * layers);
  CHECK(gradients("litgpt-2024", units_batch) < 2.01 * layers);
  CHECK(gradients("litgpt-2024", {.global_batch = 2, .sequence = 4096}) ==
        gradients("litgpt-2024", units_batch) / 2);
  CHECK(gradients("torchtune", units_batch) < 0.01 * layers);
}

TEST_CASE("units: the worst moment of a backward pass is that of a walk from unit to unit") {
  for (const char* stack : {"torchtitan-2025", "pytorch-fsdp-2023", "nemo-2025"}) {
    for (const bool keeps : {false, true}) {
      for (const RecomputePolicy policy : {RecomputePolicy::none, RecomputePolicy::full}) {
        Software software = read_software(stack);
        software.memory.backward_buffers = false;  // moments between ops are another test's
        Transformer model = read_model("llama-3-8b");
        model.layers = 3;
        Strategy strategy = sharded_over(8, zero3);
        strategy.no_reshard_after_forward = keeps;
        strategy.recompute.policy = policy;
        const ModelParameters parameters = model_parameters(model, strategy, units_batch);
        const auto unit_of = [&](const Parameters& of) {
          const double all = total(of);
          return Unit{2 * all, 2 * all, 4 * all};
        };
        const ModelLayers layers = layers_of(model, strategy);
        Unit layer;
        Unit embedding;
        Unit head;
        for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
          Unit& unit = layers.kinds[i].position == KindPosition::layer   ? layer
                       : layers.kinds[i].position == KindPosition::first ? embedding
                                                                         : head;
          unit = unit_of(parameters.kinds[i]);
        }
        double root = 0;
        if (software.sharding.ends_in_root) {
          root = embedding.gathered + embedding.gradients + head.gathered + head.gradients;
          embedding = head = {};
        }
        const std::vector<Unit> units{embedding, layer, layer, layer, head};
        const StageActivations stage =
            stage_activations(model, strategy, units_batch, Detail::paper, software).front();
        // Rows alive when each unit's backward pass starts, above what the forward pass left, with its recomputation.
        double worst = 0;
        double freed = 0;
        for (std::size_t i = units.size(); i-- > 0;) {
          double whole = units[i].gradients + root;
          if (keeps) {
            for (std::size_t j = 0; j <= i; ++j) whole += units[j].gathered;
          } else {
            whole += units[i].gathered + (i > 0 ? units[i - 1].gathered : 0);
          }
          if (i + 1 < units.size()) whole += units[i + 1].reduction;
          const bool is_layer = i > 0 && i + 1 < units.size();
          const CheckpointRun& run = stage.layers.front();
          worst = std::max(worst, whole + (is_layer ? run.recomputed.count() : 0) - freed);
          freed += is_layer ? run.kept.count() : i > 0 ? stage.head.count() : 0;
        }
        CAPTURE(std::string(stack));
        CAPTURE(keeps);
        CHECK(total(pass_activations(stage).excess).count() == doctest::Approx(worst));
      }
    }
  }
}

TEST_CASE("units: a bucket of DeepSpeed's takes the place of a unit's gradients") {
  const Software software = read_software("deepspeed-2025");
  const Transformer model = read_model("llama-3-8b");
  const Strategy strategy = sharded_over(8, zero2);
  const ModelUnits units =
      model_units(layers_of(model, strategy), model_parameters(model, strategy, units_batch), strategy,
                  units_batch, software);
  CHECK(units.buckets == Bytes(2 * 2 * 5e8));
  for (const KindUnit& kind : units.kinds) CHECK(kind == KindUnit{.position = kind.position});
}

TEST_CASE("units: a step in the backward pass frees each gradient at once") {
  const Software software = read_software("torchtune");
  Transformer model = read_model("llama-3-8b");
  const Workload one{.global_batch = 1, .sequence = 512};
  Strategy strategy = with_stack_defaults({}, software, model);
  strategy.recompute.policy = RecomputePolicy::full;
  Strategy early = strategy;
  early.step_in_backward = true;
  const double parameters = parameter_count(model);
  const auto state = [&](const Strategy& it) {
    return model_state(model, it, one, Parameters(parameters), 2, software);
  };
  CHECK(state(strategy).gradients == Bytes(2 * parameters));
  CHECK(state(early).gradients == Bytes(0));
  CHECK(state(early).optimizer == state(strategy).optimizer);
  const auto excess = [&](const Strategy& it) {
    return pass_activations(stage_activations(model, it, one, Detail::paper, software).front()).excess;
  };
  // No more than the largest gradient stands at a time: that of the output layer.
  CHECK(excess(early).weight_gradients <= Bytes(2.0 * 128256 * 4096));
  CHECK(excess(early).unit_gradients == Bytes(0));
  // Of tied weights it waits for the embedding's.
  model.architecture.tied_embeddings = true;
  const ModelLayers layers = layers_of(model, early, software);
  const ModelUnits units =
      model_units(layers, model_parameters(model, early, one, software), early, one, software);
  CHECK(units.tied == Bytes(2.0 * 128256 * 4096));
  // A shard is stepped once it is reduced, and freed.
  early.data_parallel = 4;
  early.data_sharding = zero3;
  const Workload four{.global_batch = 4, .sequence = 512};
  const ModelUnits shards =
      model_units(layers, model_parameters(model, early, four, software), early, four, software);
  CHECK(shards.tied == Bytes(0));
  CHECK(model_state(model, early, four, Parameters(parameters), 2, software).gradients == Bytes(0));
  for (const KindUnit& unit : shards.kinds) {
    CHECK(unit.kept == Bytes(0));
    CHECK(unit.stepped == 0.25 * unit.gradients);
  }
}

TEST_CASE("state: bitsandbytes keeps FP32 moments of a whole embedding under the Trainer") {
  const Software software = read_software("hf-trainer");
  Transformer model = read_model("llama-3-8b");
  const Workload one{.global_batch = 1, .sequence = 512};
  Strategy strategy = with_stack_defaults({}, software, model);
  strategy.optimizer = {MainParams::none, MomentDtype::int8, MomentDtype::int8};
  const Parameters all = parameter_count(model);
  const auto optimizer = [&] { return model_state(model, strategy, one, all, 2, software).optimizer; };
  const double of_each = 2 * (1 + 4.0 / 256);
  const double embedding = 128256.0 * 4096;
  CHECK(optimizer().count() == doctest::Approx(of_each * all.dense + (8 - of_each) * embedding));
  strategy.optimizer.exp_avg = strategy.optimizer.exp_avg_sq = MomentDtype::bf16;
  CHECK(optimizer() == Bytes(4 * all.dense));
  // Shards are other tensors than the one that is named.
  strategy.optimizer = {MainParams::none, MomentDtype::int8, MomentDtype::int8};
  strategy.data_parallel = 4;
  strategy.data_sharding = zero3;
  CHECK(optimizer().count() == doctest::Approx(of_each * all.dense / 4));
}

}  // namespace headroom
