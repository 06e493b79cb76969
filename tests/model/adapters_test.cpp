// Adapters in place of weights: how many there are, what is kept, computed, reduced and gathered.
#include "headroom/model/adapters.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "headroom/core/contains.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/iteration_flops.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/time/iteration_end.hpp"

namespace headroom {
namespace {

constexpr double nf4_size = 0.5 + 1.0 / 64 + 4.0 / (64 * 256);

// With linears as Hugging Face has them.
Transformer of_hub(const char* name) { return read_model(name, {"kernels.qkv=separate"}); }

Strategy adapting(std::int64_t rank, std::vector<std::string> targets = {},
                  BaseDtype base = BaseDtype::bf16) {
  return {.lora = {.rank = rank, .targets = std::move(targets), .base = base}};
}

Parameters held_by(const Transformer& model, const Strategy& strategy) {
  return parameters_by_rank(model, strategy, {.global_batch = 8, .sequence = model.sequence}).front();
}

Request request(const Transformer& model, const Strategy& strategy) {
  return {.model = model,
          .system = read_system("dgx-h100-80g"),
          .software = read_software("megatron-core-2025"),
          .strategy = strategy,
          .workload = {.global_batch = 8, .sequence = model.sequence},
          .detail = Detail::exact};
}

}  // namespace

TEST_CASE("adapters: as many parameters are trained as two matrices of each linear have") {
  // An adapter of rank r beside a linear of so many inputs and outputs: r (inputs + outputs).
  const auto adapter = [](double rank, double inputs, double outputs) { return rank * (inputs + outputs); };
  const double of_q_and_v =
      32 * 2 * adapter(8, 4096, 4096);  // 32 layers of Llama 2 7B, whose heads all have keys and values
  CHECK(of_q_and_v == 4'194'304);
  // Llama 3 8B: 8 of 32 heads have keys and values, the feed-forward layer is 14,336 wide.
  const double of_llama_3 = 32 * (2 * adapter(16, 4096, 4096) + 2 * adapter(16, 4096, 1024) +
                                  2 * adapter(16, 4096, 14336) + adapter(16, 14336, 4096));
  CHECK(of_llama_3 == 41'943'040);
  const double of_llama_2 =
      32 * (4 * adapter(64, 4096, 4096) + 2 * adapter(64, 4096, 11008) + adapter(64, 11008, 4096));
  CHECK(of_llama_2 == 159'907'840);
  const auto trained_by = [](const char* name, const Strategy& strategy) {
    return total(trained(held_by(of_hub(name), strategy)));
  };
  CHECK(trained_by("llama-2-7b", adapting(8, {"q_proj", "v_proj"})) == of_q_and_v);
  CHECK(trained_by("llama-3-8b", adapting(16)) == of_llama_3);
  CHECK(trained_by("llama-3-8b", adapting(16, {"all-linear"})) == of_llama_3);
  CHECK(trained_by("llama-2-7b", adapting(64)) == of_llama_2);
  // One adapter for what is one linear shares its first matrix.
  const double shared = total(trained(held_by(read_model("llama-3-8b"), adapting(16))));
  CHECK(of_llama_3 - shared == 32.0 * 16 * 3 * 4096);
  CHECK(total(held_by(of_hub("llama-3-8b"), adapting(16))) ==
        total(held_by(of_hub("llama-3-8b"), {})) + of_llama_3);
}

TEST_CASE("adapters: under autocast, each saves a 16-bit copy of its input and of its weights") {
  const ModelLayers layers = layers_of(of_hub("llama-3-8b"), LayerChoices{});
  const Lora lora{.rank = 16, .targets = {"all-linear"}};
  const auto kept = [&](bool autocast) {
    const ModelLayers adapted = with_adapters(layers, CrossEntropy::plain, lora, {.autocast = autocast});
    const Bindings letters = bindings(of_hub("llama-3-8b"), {.micro_batch = 1}, {.sequence = 2048});
    return kept_bytes(stored_tensors(adapted.kinds.front().ops, {}, {}, Detail::paper)).evaluate(letters);
  };
  const double tokens = 2048;
  // Copies of inputs: three instead of one for q, k and v, two instead of one for gate and up, and one more of
  // the context, which attention also saves.
  const double inputs = (2 + 1 + 1) * 2 * tokens * 4096;
  const double weights =
      2.0 * 16 * ((4096 + 4096) + 2 * (4096 + 1024) + (4096 + 4096) + 2 * (4096 + 14336) + (14336 + 4096));
  CHECK(kept(true) - kept(false) == inputs + weights);
}

TEST_CASE("adapters: both linears of a Mamba layer have them") {
  // Nemotron-H 8B: 24 Mamba layers of 128 heads of 64 and 8 groups of 128 states.
  const Transformer model = read_model("nemotron-h-8b");
  const double in = 4096 + 2.0 * 128 * 64 + 2.0 * 8 * 128 + 128;
  const double out = 128 * 64 + 4096;
  const auto trained_by = [&](std::vector<std::string> targets, std::int64_t ranks) {
    Strategy strategy = adapting(16, std::move(targets));
    strategy.tensor_parallel = ranks;
    return total(trained(held_by(model, strategy)));
  };
  CHECK(trained_by({"in_proj", "out_proj"}, 1) == 24 * 16 * (in + out));
  CHECK(trained_by({"in_proj", "out_proj"}, 4) == 24 * 16 * (in + out) / 4);
  const double others = trained_by({"linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"}, 1);
  CHECK(trained_by({}, 1) == others + 24 * 16 * (in + out));
  Strategy strategy = adapting(16, {"in_proj"});
  CHECK(illegalities(model, strategy, {.global_batch = 8, .sequence = 8192}, {}).empty());
  CHECK_FALSE(
      illegalities(of_hub("llama-3-8b"), strategy, {.global_batch = 8, .sequence = 8192}, {}).empty());
}

TEST_CASE("adapters: every op of a layer has a name of its own") {
  for (const char* const model : {"llama-3-8b", "deepseek-v3", "mixtral-8x7b", "nemotron-3-nano-30b-a3b"}) {
    for (const Fraction dropout : {Fraction{0}, Fraction{0.1}}) {
      const Strategy strategy{.lora = {.rank = 8, .dropout = dropout}};
      for (const LayerKind& kind : layers_of(read_model(model), strategy).kinds) {
        std::vector<std::string_view> names;
        for (const Op& op : kind.ops.ops()) {
          CAPTURE(op.name);
          CHECK_FALSE(contains(names, op.name));
          names.push_back(op.name);
        }
      }
    }
  }
}

TEST_CASE("adapters: a table has room for any model's ops on any stack, with narrow linears and adapters") {
  std::size_t tables = 0;
  for (const Transformer& model : list_models()) {
    for (const Software& software : list_software()) {
      for (const std::int64_t rank : {0, 8}) {
        Strategy strategy{.precision = Precision::fp8};
        strategy.lora = {.rank = rank};
        tables += layers_of(model, strategy, software).kinds.size();
      }
    }
  }
  CHECK(tables > list_models().size());
}

TEST_CASE("adapters: tensor-parallel ranks divide both matrices") {
  Strategy strategy = adapting(16);
  const double whole = total(trained(held_by(of_hub("llama-3-8b"), strategy)));
  strategy.tensor_parallel = 4;
  CHECK(total(trained(held_by(of_hub("llama-3-8b"), strategy))) == whole / 4);
  strategy.tensor_parallel = 32;
  const auto problems =
      illegalities(of_hub("llama-3-8b"), strategy, {.global_batch = 8, .sequence = 8192}, {});
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().where == "lora_rank");
}

TEST_CASE("adapters: experts have their own, which expert-parallel ranks divide") {
  const Transformer model = read_model("mixtral-8x7b");
  Strategy strategy = adapting(8, {"down_proj"});
  CHECK(trained(held_by(model, strategy)).expert == 32.0 * 8 * 8 * (14336 + 4096));
  CHECK(trained(held_by(model, strategy)).dense == 0);
  strategy.data_parallel = strategy.expert_parallel = 4;
  CHECK(trained(held_by(model, strategy)).expert == 32.0 * 2 * 8 * (14336 + 4096));
}

TEST_CASE("adapters: state is of adapters, and of frozen weights their bytes") {
  const Transformer model = of_hub("llama-3-8b");
  const Parameters held = held_by(model, adapting(16));
  const double adapters = 41'943'040;
  const double base = total(held) - adapters;
  CHECK(model_state(model, adapting(16), Workload{}, held) ==
        ModelState{Bytes(2 * (base + adapters)), Bytes(4 * adapters), Bytes(12 * adapters)});
  const Strategy quantized = adapting(16, {}, BaseDtype::nf4);
  const Parameters nf4 = held_by(model, quantized);
  CHECK(nf4.quantized_dense == base - 2.0 * 128256 * 4096 - 65.0 * 4096);
  const double bytes = (base - nf4.quantized_dense + adapters) * 2 + nf4.quantized_dense * 2113 / 4096;
  CHECK(model_state(model, quantized, Workload{}, nf4).weights == Bytes(std::ceil(bytes)));
  CHECK(8 * nf4_size == doctest::Approx(4.127).epsilon(1e-4));
}

TEST_CASE("adapters: a linear keeps its input for an adapter alone") {
  const Transformer model = of_hub("llama-3-8b");
  const auto saved_by = [&](const std::vector<std::string>& targets, std::string_view value) {
    const OpTable table = layers_of(model, adapting(16, targets)).kinds.front().ops;
    const StoredTensors tensors = stored_tensors(table, {});
    return std::count_if(tensors.begin(), tensors.end(),
                         [&](const StoredTensor& tensor) { return tensor.name == value; });
  };
  CHECK(saved_by({"o_proj"}, "normalized") == 0);  // neither attention's nor the MLP's
  CHECK(saved_by({"q_proj", "k_proj", "v_proj"}, "normalized") == 1);
  CHECK(saved_by({"q_proj", "gate_proj", "up_proj"}, "normalized") == 2);
  CHECK(saved_by({"q_proj"}, "activated") == 0);
  CHECK(saved_by({"down_proj"}, "activated") == 1);
  CHECK(saved_by({"down_proj"}, "adapter input") == 1);
}

TEST_CASE("adapters: Megatron keeps the input that was gathered for a column-parallel linear whole") {
  const Transformer model = read_model("llama-3-8b");
  Strategy strategy = adapting(16, {"linear_qkv"});
  strategy.tensor_parallel = 8;
  strategy.sequence_parallel = true;
  const OpTable table = layers_of(model, strategy).kinds.front().ops;
  const Sharding sharding = sharding_of(model, strategy);
  Expr whole;
  for (const StoredTensor& tensor : stored_tensors(table, sharding)) {
    if (tensor.name == "normalized") whole += tensor.bytes;
  }
  using namespace symbols;
  CHECK(whole == 2 * s * b * h);
  for (const Collective& collective : collectives(table, sharding)) CHECK_FALSE(collective.regathers);
}

TEST_CASE("adapters: dropout keeps a mask and a dropped input for each adapter, and no input") {
  using namespace symbols;
  const auto kept = [](const Transformer& model, Strategy strategy, std::string_view value) {
    strategy.lora.dropout = {0.1};
    const OpTable table = layers_of(model, strategy).kinds.front().ops;
    Expr bytes;
    for (const StoredTensor& tensor : stored_tensors(table, sharding_of(model, strategy))) {
      if (tensor.name == value) bytes += tensor.bytes;
    }
    return bytes;
  };
  const Transformer hub = of_hub("llama-3-8b");
  const Strategy q_and_v = adapting(16, {"q_proj", "v_proj"});
  CHECK(kept(hub, q_and_v, "dropout mask") == 2 * s * b * h);
  CHECK(kept(hub, q_and_v, "dropped input") == 4 * s * b * h);
  CHECK(kept(hub, q_and_v, "normalized") == Expr());
  Strategy megatron = adapting(16, {"linear_qkv", "linear_proj"});
  megatron.tensor_parallel = 8;
  megatron.sequence_parallel = true;
  // What is gathered for linear_qkv is dropped whole, and what ranks hold of linear_proj's input by each of them.
  const Transformer model = read_model("llama-3-8b");
  const Bindings letters = bindings(model, megatron, {.global_batch = 8, .sequence = 8192});
  const double input = 8192.0 * 4096;
  CHECK(kept(model, megatron, "dropout mask").evaluate(letters) == input + input / 8);
  CHECK(kept(model, megatron, "dropped input").evaluate(letters) == 2 * (input + input / 8));
  const OpTable without = layers_of(model, megatron).kinds.front().ops;
  Strategy dropping = megatron;
  dropping.lora.dropout = {0.1};
  const OpTable with = layers_of(model, dropping).kinds.front().ops;
  const Sharding sharding = sharding_of(model, megatron);
  CHECK(collectives(with, sharding).size() == collectives(without, sharding).size());
  Strategy none;
  none.lora.dropout = {0.1};
  CHECK(illegalities(model, none, {.global_batch = 8, .sequence = 8192}, {}).front().where == "lora_dropout");
}

TEST_CASE(
    "adapters: frozen weights take two thirds of the FLOPs, and adapters three times their forward pass") {
  const Transformer model = of_hub("llama-3-8b");
  const Workload workload{.global_batch = 8, .sequence = 8192};
  const auto flops = [&](const Strategy& strategy) {
    return iteration_flops(model, layers_of(model, strategy), workload).model.count();
  };
  const double tokens = 8.0 * 8192;
  const double linears = 8'030'261'248 - 128256.0 * 4096 - 65 * 4096;  // no embedding, no norms
  const double adapters = 41'943'040;
  const double of_weights = 2 * tokens * linears;
  CHECK(flops({}) - flops(adapting(16)) == doctest::Approx(of_weights - 3 * 2 * tokens * adapters));
}

TEST_CASE("adapters: data-parallel ranks reduce and gather adapters alone") {
  const Transformer model = of_hub("llama-3-8b");
  const Request whole = request(model, {.tensor_parallel = 4, .data_parallel = 2});
  const Parameters held = held_by(model, adapting(16));
  Parameters adapters(41'943'040);
  Strategy strategy = adapting(16);
  strategy.data_parallel = 8;
  strategy.data_sharding = DataSharding::zero1;
  const auto times = [&](const Parameters& of) {
    return data_parallel_times(of, strategy, Workload{}, 8, *whole.system.performance, whole.software);
  };
  CHECK(times(held) == times(adapters));
  CHECK(buckets(held, strategy, whole.software) == buckets(adapters, strategy, whole.software));
}

TEST_CASE("adapters: NF4 needs less memory and more time, and a linear's weights made BF16 at the peak") {
  const Transformer model = of_hub("llama-3-8b");
  Strategy strategy = adapting(16);
  strategy.recompute.policy = RecomputePolicy::full;
  const Plan bf16 = account(evaluate(request(model, strategy)));
  strategy.lora.base = BaseDtype::nf4;
  const Plan nf4 = account(evaluate(request(model, strategy)));
  CHECK(peak(nf4) < peak(bf16));
  CHECK(nf4.timing->iteration.total > bf16.timing->iteration.total);
  const double saved = bf16.ranks.front().state.weights.count() - nf4.ranks.front().state.weights.count();
  const double quantized = held_by(model, strategy).quantized_dense;
  CHECK(saved == doctest::Approx(quantized * (2 - nf4_size)));
  strategy.lora.targets = {"q_proj"};
  Request long_head = request(model, strategy);
  long_head.model.vocabulary = 128;  // so that the peak is in a layer
  const Plan in_layer = account(evaluate(long_head));
  const Bytes dequantized = in_layer.ranks.front().activations.at_peak.dequantized_weights;
  const double sizes[] = {0, 2.0 * 4096 * 4096, 2.0 * 4096 * 6144, 2.0 * 4096 * 28672, 2.0 * 4096 * 14336};
  CHECK(std::find(std::begin(sizes), std::end(sizes), dequantized.count()) != std::end(sizes));
}

TEST_CASE("adapters: without double quantization, each 64 weights have an FP32 scale") {
  const Transformer model = of_hub("llama-3-8b");
  const auto weights = [&](BaseDtype base) {
    const Strategy strategy = adapting(16, {}, base);
    return model_state(model, strategy, Workload{}, held_by(model, strategy)).weights.count();
  };
  const double quantized = held_by(model, adapting(16, {}, BaseDtype::nf4)).quantized_dense;
  CHECK(weights(BaseDtype::bf16) - weights(BaseDtype::nf4_single) == quantized * (2 - 0.5 - 4.0 / 64));
  CHECK(weights(BaseDtype::bf16) - weights(BaseDtype::int8) == quantized * (2 - 1));
}

TEST_CASE("adapters: linears of their own are dequantized one at a time") {
  Strategy strategy = adapting(16, {"q_proj"}, BaseDtype::nf4);
  strategy.recompute.policy = RecomputePolicy::full;
  const auto dequantized = [&](QkvLinear qkv) {
    Request asked = request(of_hub("llama-3-8b"), strategy);
    asked.software = read_software("hf-trainer");
    asked.model.architecture.kernels.qkv = qkv;
    asked.model.vocabulary = 128;   // so that the peak is in a layer
    asked.workload.sequence = 128;  // and its weights are most of it
    const Plan plan = account(evaluate(asked));
    return plan.ranks.front().activations.at_peak.dequantized_weights.count();
  };
  CHECK(dequantized(QkvLinear::one) == 2.0 * 4096 * 28672);
  CHECK(dequantized(QkvLinear::separate) == 2.0 * 4096 * 14336);
}

TEST_CASE("adapters: older bitsandbytes keeps the inputs of quantized linears") {
  const Transformer model = of_hub("llama-3-8b");
  const auto kept = [&](BaseDtype base, bool keeps) {
    Software software;
    software.memory.keeps_quantized_inputs = keeps;
    const ModelLayers layers = layers_of(model, adapting(16, {"q_proj"}, base), software);
    const Bindings letters = bindings(model, {.micro_batch = 1}, {.sequence = 2048});
    const auto layer = std::find_if(layers.kinds.begin(), layers.kinds.end(), is_layer);
    return kept_bytes(stored_tensors(layer->ops, {}, {}, Detail::paper)).evaluate(letters);
  };
  CHECK(kept(BaseDtype::bf16, true) == kept(BaseDtype::bf16, false));
  // The inputs of gate and up, and of down; the adapter saves that of q already, attention that of the projection.
  CHECK(kept(BaseDtype::nf4, true) - kept(BaseDtype::nf4, false) == 2.0 * 2048 * (4096 + 14336));
}

TEST_CASE(
    "adapters: litgpt saves what its adapters of q and v make, the output of all three, and a copied "
    "context") {
  Transformer model = of_hub("llama-2-7b");  // as many heads of keys as of queries
  model.architecture.kernels = {.attention = AttentionKernel::flash};
  const Software litgpt = read_software("litgpt-2024");
  Strategy strategy = adapting(16, {"q_proj", "v_proj"});
  strategy.lora.dropout = {.value = 0.05};
  const auto kept = [&](const Software& software) {
    const ModelLayers layers = layers_of(model, strategy, software);
    const Bindings letters = bindings(model, {.micro_batch = 1}, {.sequence = 2048});
    const auto layer = std::find_if(layers.kinds.begin(), layers.kinds.end(), is_layer);
    return kept_bytes(stored_tensors(layer->ops, {}, {}, Detail::paper)).evaluate(letters);
  };
  const double tensor = 2048.0 * 4096;  // elements
  const auto without = [&](bool StackMemory::*member) {
    Software software = litgpt;
    software.memory.*member = false;
    return kept(software);
  };
  // Of the output of the linear, v is saved anyway.
  CHECK(kept(litgpt) - without(&StackMemory::keeps_views) == 2 * 2 * tensor);
  // The results of two adapters, less the mask and the copy of a second dropped input.
  CHECK(kept(litgpt) - without(&StackMemory::pads_adapters) == (2 * 2 - 1 - 2) * tensor);
  CHECK(kept(litgpt) == without(&StackMemory::copies_context));
  // Adapters of all three need no padding: only the copies and the masks of two more dropped inputs go.
  strategy.lora.targets = {"q_proj", "k_proj", "v_proj"};
  CHECK(kept(litgpt) - without(&StackMemory::pads_adapters) == 2 * (-1 - 2) * tensor);
  strategy.lora.targets = {"q_proj", "v_proj", "o_proj"};
  strategy.lora.dropout = {};
  CHECK(kept(litgpt) - without(&StackMemory::copies_context) == 2 * tensor);
}

TEST_CASE("adapters: Lightning quantizes the output layer, and dequantizes by way of FP16") {
  const Transformer model = of_hub("llama-2-7b");
  const Strategy strategy = adapting(16, {"q_proj"}, BaseDtype::nf4_single);
  const auto output_layer_of = [&](const char* stack) {
    const Software software = read_software(stack);
    const ModelLayers layers = layers_of(model, strategy, software);
    const OpTable& head = layers.kinds.back().ops;
    return *std::find_if(head.ops().begin(), head.ops().end(),
                         [](const Op& op) { return op.name == "output_layer"; });
  };
  CHECK_FALSE(is_quantized(output_layer_of("hf-trainer")));
  CHECK(is_quantized(output_layer_of("litgpt-2024")));
  Request asked = request(model, strategy);
  asked.software = read_software("litgpt-2024");
  asked.workload.sequence = 16;  // so that the weights of the output layer are most of the peak
  const auto dequantized = [&] {
    return account(evaluate(asked)).ranks.front().activations.at_peak.dequantized_weights.count();
  };
  const double twice = dequantized();
  asked.software.memory.dequantizes_through_fp16 = false;
  CHECK(twice == 4.0 * 4096 * 32000);
  CHECK(dequantized() * 2 == twice);
}

TEST_CASE("adapters: of a loss in chunks the gradient of its input is kept, and none of the weights") {
  for (const CrossEntropy loss : {CrossEntropy::chunked, CrossEntropy::linear_fused, CrossEntropy::fused}) {
    Transformer model = of_hub("llama-3-8b");
    model.architecture.kernels.cross_entropy = loss;
    const OpTable head = layers_of(model, adapting(16)).kinds.back().ops;
    bool keeps_input = false;
    for (const StoredTensor& tensor : stored_tensors(head, {})) {
      CHECK(tensor.name != "weight gradient");
      keeps_input = keeps_input || tensor.name == "normalized";
    }
    CHECK(keeps_input == in_chunks(loss));
  }
}

}  // namespace headroom
