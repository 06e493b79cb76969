#include "headroom/time/layer_cost.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/time/streaming.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

using tests::layer;
using tests::performance;

k22::Run any_run() {
  k22::Run run = *rc::gen::element(k22::gpt_22b(), k22::gpt3_175b(), k22::gpt_1t());
  run.strategy.tensor_parallel = *rc::gen::element<std::int64_t>(1, 2, 4, 8, 16);
  run.strategy.micro_batch = *rc::gen::inRange<std::int64_t>(1, 4);
  run.strategy.sequence_parallel = *rc::gen::arbitrary<bool>();
  run.strategy.recompute.policy =
      *rc::gen::element(RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full);
  return run;
}

bool near(Seconds x, Seconds y) { return std::abs(x / y - 1) < 1e-12; }

}  // namespace

TEST_CASE("layer cost: the ops of its table add up to it") {
  CHECK(rc::check([] {
    const k22::Run run = any_run();
    const Setting setting = tests::setting(run);
    const OpTable table = layer_ops(run.model.architecture);
    const Collectives inserted = collectives(table, setting.sharding);
    Seconds forward;
    Seconds backwards;
    std::int64_t operations = 0;
    for (std::size_t i = 0; i < table.ops().size(); ++i) {
      const OpCost op = op_cost(table, i, inserted, setting);
      forward += device_time(op.forward);
      backwards += device_time(op.backward_data) + device_time(op.backward_weight);
      operations += op.forward.operations;
    }
    const LayerCost cost = layer(run);
    RC_ASSERT(near(forward, device_time(cost.forward)));
    RC_ASSERT(near(backwards, device_time(backward(cost))));
    RC_ASSERT(operations == cost.forward.operations);
  }));
}

TEST_CASE(
    "layer cost: full recomputation recomputes the forward pass, selective recomputation core attention") {
  CHECK(rc::check([] {
    const k22::Run run = any_run();
    const LayerCost cost = layer(run);
    switch (run.strategy.recompute.policy) {
      case RecomputePolicy::none: RC_ASSERT(cost.recompute == PassCost()); break;
      case RecomputePolicy::full: RC_ASSERT(cost.recompute == cost.forward); break;
      default:
        RC_ASSERT(cost.recompute.attention == cost.forward.attention);
        RC_ASSERT(cost.recompute.gemm == Seconds(0));
        RC_ASSERT(cost.recompute.communication == Seconds(0));
    }
  }));
}

TEST_CASE("layer cost: on Hopper PyTorch's kernels take longer for flash attention, and for nothing else") {
  const System h100 = read_system("dgx-h100-80g");
  const Transformer model = read_model("llama-3-8b");
  const Workload workload{.global_batch = 8, .sequence = 8192};
  const Strategy strategy{.data_parallel = 8};
  const auto cost_of = [&](AttentionKernels kernels) {
    Software software = read_software("torchtitan-2025");
    software.attention_kernels = kernels;
    return layer_cost(
        model, strategy,
        setting_of(model, strategy, workload, h100.devices_per_node, *h100.performance, software));
  };
  const LayerCost fitted = cost_of(AttentionKernels::fitted);
  const LayerCost pytorch = cost_of(AttentionKernels::pytorch);
  const double ratio = pytorch.forward.attention / fitted.forward.attention;
  CHECK(ratio > 1.7);  // 1 / 0.57, but for the launch
  CHECK(ratio < 1.76);
  CHECK(pytorch.forward.gemm == fitted.forward.gemm);
  CHECK(pytorch.forward.memory_bound == fitted.forward.memory_bound);
  const LayerCost triton = cost_of(AttentionKernels::triton);
  CHECK(triton.forward.attention / pytorch.forward.attention == doctest::Approx(1.4).epsilon(0.02));
  CHECK(backward(triton).attention / backward(pytorch).attention == doctest::Approx(2).epsilon(0.02));
}

TEST_CASE("layer cost: products take no less than their FLOPs at peak") {
  CHECK(rc::check([] {
    const k22::Run run = any_run();
    const Setting setting = tests::setting(run);
    const OpTable table = layer_ops(run.model.architecture);
    const Flops forward(forward_flops(table, setting.sharding, every_op(table)).evaluate(setting.letters));
    const LayerCost cost = layer(run);
    const PassCost all = cost.forward + backward(cost);
    RC_ASSERT(all.gemm + all.attention >= 3 * forward / performance().device.half_peak);
  }));
}

TEST_CASE("layer cost: tensor parallelism communicates, one rank does not") {
  k22::Run run = k22::gpt_22b();
  CHECK(layer(run).forward.communication > Seconds(0));
  run.strategy.tensor_parallel = 1;
  CHECK(layer(run).forward.communication == Seconds(0));
  CHECK(backward(layer(run)).communication == Seconds(0));
}

TEST_CASE(
    "layer cost: the reduction of an input gradient hides beside the weight gradient, unless software is "
    "older") {
  const k22::Run run = k22::gpt_22b();
  const Software older = read_software("megatron-2021");
  const Setting setting = setting_of(run.model, run.strategy, run.workload, 8, performance(), older);
  const Bytes whole(2.0 * 2048 * 4 * 6144);
  const Seconds all_reduce = collective_time(CollectiveKind::all_reduce, whole,
                                             tensor_parallel_group(run.strategy, 8), performance());
  CHECK(near(backward(layer_cost(run.model, run.strategy, setting)).communication, 2 * all_reduce));
  CHECK(backward(layer(run)).communication < 0.5 * 2 * all_reduce);
}

TEST_CASE("layer cost: a checkpoint in shards costs one more gather") {
  k22::Run run = k22::gpt_22b();
  run.strategy.recompute.policy = RecomputePolicy::full;
  const Seconds whole = device_time(layer(run).recompute);
  run.strategy.recompute.distribute_saved_activations = true;
  const Seconds gather = collective_time(CollectiveKind::all_gather, Bytes(2.0 * 2048 * 4 * 6144),
                                         tensor_parallel_group(run.strategy, 8), performance());
  CHECK(near(device_time(layer(run).recompute), whole + gather));
}

TEST_CASE("layer cost: operations that the host launches for K22's layer") {
  k22::Run run = k22::gpt_22b();
  CHECK(layer(run).forward.operations == 17);
  CHECK(backward(layer(run)).operations == 31);
  run.strategy.tensor_parallel = 1;
  CHECK(layer(run).forward.operations == 15);
}

TEST_CASE("layer cost: every embedded model is priced, flash attention as an assumption") {
  for (const Transformer& model : list_models()) {
    CAPTURE(model.name);
    const Strategy strategy{.tensor_parallel = 1};
    const Setting setting = setting_of(model, strategy, {.global_batch = 1, .sequence = model.sequence}, 8,
                                       performance(), tests::megatron());
    const ModelCost cost = model_cost(model, strategy, setting);
    CHECK(device_time(cost.kinds[0].forward) > Seconds(0));
    CHECK(device_time(backward(cost.kinds[0])) > 1.5 * device_time(cost.kinds[0].forward));
    // Where few tokens meet many experts, weights are read, at 2 bytes, forward; the same and gradients added to, at 8, back.
    const double most = any_experts(model) ? 6 : 3;
    CHECK(device_time(backward(cost.kinds[0])) < most * device_time(cost.kinds[0].forward));
    CHECK(device_time(cost.kinds[2].forward) > Seconds(0));
    Extrapolations beyond;
    for (const LayerCost& kind : cost.kinds) beyond = beyond | kind.beyond;
    CHECK(beyond.flash_attention == any_flash_attention(model));
    CHECK(beyond.scan == any_layer(model, [](const Architecture& of) { return has_mixer(of.mixers); }));
  }
}

TEST_CASE("layer cost: flash attention is faster than storing the scores") {
  k22::Run run = k22::gpt_22b();
  const LayerCost unfused = layer(run);
  run.model.architecture.kernels.attention = AttentionKernel::flash;
  const LayerCost flash = layer(run);
  CHECK(device_time(flash.forward) < device_time(unfused.forward));
  CHECK(device_time(backward(flash)) < device_time(backward(unfused)));
}

TEST_CASE("layer cost: says where it goes beyond what was fitted") {
  k22::Run run = k22::gpt_22b();
  run.model.head_size = 96;
  CHECK(layer(run).beyond == Extrapolations());  // attention products have no table of their own
  run.model.feedforward = 8 * 1'000'000;
  CHECK(layer(run).beyond == Extrapolations{.product_size = true});
  run = k22::gpt3_175b();
  CHECK(layer(run).beyond == Extrapolations());
  run.strategy.tensor_parallel = 16;
  CHECK(layer(run).beyond.group_size);
  run = k22::gpt3_175b();
  run.model.head_size = 108;
  CHECK(layer(run).beyond.unaligned_heads);
}

TEST_CASE("layer: gathers and scatters in pieces show less, never less than what they take from products") {
  k22::Run run = k22::gpt_22b();
  run.strategy.sequence_parallel = true;
  Setting setting = tests::setting(run);
  const PassCost whole = layer_cost(run.model, run.strategy, setting).forward;
  Software full = tests::megatron();
  full.overlap_tensor_parallel = TensorOverlap::full;
  const Setting in_pieces = setting_of(run.model, run.strategy, run.workload, tests::a100().devices_per_node,
                                       tests::performance(), full);
  const LayerCost cost = layer_cost(run.model, run.strategy, in_pieces);
  CHECK(cost.forward.communication < 0.6 * whole.communication);
  CHECK(cost.forward.communication > 0.472 * 0.999 * whole.communication);
  CHECK(backward(cost).communication < backward(layer_cost(run.model, run.strategy, setting)).communication);
  CHECK(cost.forward.gemm == whole.gemm);
  // Without sequence parallelism there is nothing to cut into pieces, and over nodes nothing to cut it with.
  run.strategy.sequence_parallel = false;
  const auto forward = [&](const Software& software, std::int64_t devices_per_node) {
    return layer_cost(run.model, run.strategy,
                      setting_of(run.model, run.strategy, run.workload, devices_per_node,
                                 tests::performance(), software))
        .forward.communication;
  };
  CHECK(forward(full, 8) == forward(tests::megatron(), 8));
  run.strategy.sequence_parallel = true;
  CHECK(forward(full, 2) == forward(tests::megatron(), 2));
}

TEST_CASE(
    "layer: what is gathered and scattered along sequences is copied where they are no first dimension") {
  k22::Run run = k22::gpt_22b();
  run.strategy.sequence_parallel = true;
  Software stack = tests::megatron();
  const auto cost = [&](bool copies) {
    stack.copies_sequence_shards = copies;
    return layer_cost(run.model, run.strategy,
                      setting_of(run.model, run.strategy, run.workload, tests::a100().devices_per_node,
                                 tests::performance(), stack));
  };
  const auto copied = [&](auto pass) {
    return pass(cost(true)).memory_bound - pass(cost(false)).memory_bound;
  };
  const auto forward = [](const LayerCost& layer) { return layer.forward; };
  // Two gathers and two scatters of all tokens, each read and written once; backward the input that a weight gradient needs as well.
  const Bytes tokens(
      2.0 * static_cast<double>(run.strategy.micro_batch * run.workload.sequence * run.model.hidden));
  const Seconds one = streaming_time(2 * tokens, tests::performance());
  CHECK(copied(forward) / one == doctest::Approx(4));
  CHECK(copied([](const LayerCost& layer) { return backward(layer); }) / one == doctest::Approx(6));
  CHECK(cost(true).forward.communication == cost(false).forward.communication);
  // Pieces are in order already, and a reduction of whole sequences has none.
  stack.overlap_tensor_parallel = TensorOverlap::full;
  CHECK(copied(forward) == Seconds(0));
  stack.overlap_tensor_parallel = TensorOverlap::backward;
  run.strategy.sequence_parallel = false;
  CHECK(copied(forward) == Seconds(0));
}

TEST_CASE("layer cost: gradients are added up in the dtype in which a stack keeps them") {
  const Transformer model = read_model("llama-3-8b");
  const auto added_in = [&](const char* stack, DataSharding sharding, std::int64_t global_batch = 16) {
    const Strategy strategy{.data_parallel = 8, .data_sharding = sharding, .gradient_dtype = Dtype::bf16};
    return setting_of(model, strategy, {.global_batch = global_batch, .sequence = 4096}, 8, performance(),
                      read_software(stack))
        .gradients;
  };
  CHECK(added_in("hf-trainer", DataSharding::none) == Dtype::fp32);  // DDP's weights are fp32
  CHECK(added_in("hf-trainer", DataSharding::zero3) == Dtype::bf16);
  CHECK(added_in("hf-trainer", DataSharding::zero3, 8) == Dtype::fp32);  // one microbatch is reduced at once
  CHECK(added_in("deepspeed-2025", DataSharding::zero2) == Dtype::bf16);
}

}  // namespace headroom
