// Sets of ops that a layer can recompute, against the composed table that every estimate rests on.
#include "headroom/search/layer_front.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {
namespace {

struct Layer {
  Transformer model;
  Strategy strategy;
  Workload workload;
  Detail detail = Detail::paper;
};

const System& a100() {
  static const System system = read_system("dgx-a100-80g");
  return system;
}

Setting setting_for(const Layer& layer) {
  static const Software software = read_software("megatron-2022");
  return setting_of(layer.model, layer.strategy, layer.workload, a100().devices_per_node, *a100().performance,
                    software);
}

// A layer with what its sets refer to.
class Sets {
 public:
  explicit Sets(const Layer& layer)
      : table_(layer_ops(layer.model.architecture)),
        setting_(setting_for(layer)),
        prices_(priced(table_work(table_, setting_), setting_)),
        sets_(table_, prices_, setting_.sharding, setting_.letters, layer.detail) {}
  Sets(const Sets&) = delete;
  Sets& operator=(const Sets&) = delete;

  const LayerSets& operator*() const { return sets_; }

 private:
  OpTable table_;
  Setting setting_;
  PricedTable prices_;
  LayerSets sets_;
};

std::vector<LayerChoice> all_of(const LayerSets& sets) {
  REQUIRE(sets.ops() <= 20);
  std::vector<LayerChoice> all;
  for (std::uint64_t ops = 0; ops < std::uint64_t{1} << sets.ops(); ++ops) all.push_back(sets.choice(ops));
  return all;
}
std::vector<LayerChoice> all_of(const Layer& layer) { return all_of(*Sets(layer)); }

// As an estimate has it.
LayerChoice replaying(Layer layer, const Recomputation& recompute) {
  layer.strategy.recompute = recompute;
  return {.ops = recomputed_ops_of(layer_ops(layer.model.architecture), recompute, {}).ops,
          .bytes = layer_activations(layer.model, layer.strategy, layer.workload, recompute, layer.detail),
          .recompute = layer_cost(layer.model, layer.strategy, setting_for(layer)).recompute};
}

Layer any_layer() {
  const std::string name = *rc::gen::element<std::string>("gpt2-xl", "gpt3-13b", "llama-2-7b", "llama-3-8b");
  std::vector<std::string> overrides;
  if (*rc::gen::arbitrary<bool>()) overrides.emplace_back("kernels.attention=unfused");
  if (*rc::gen::arbitrary<bool>()) overrides.emplace_back("kernels.activation=unfused");
  Layer layer{.model = read_model(name, overrides)};
  layer.strategy = {.tensor_parallel = *rc::gen::element(1, 2, 4),
                    .micro_batch = *rc::gen::inRange(1, 4),
                    .sequence_parallel = *rc::gen::arbitrary<bool>(),
                    .save_gathered_input = *rc::gen::arbitrary<bool>()};
  if (layer.model.heads % layer.strategy.tensor_parallel != 0) layer.strategy.tensor_parallel = 1;
  layer.workload = {.global_batch = layer.strategy.micro_batch, .sequence = layer.model.sequence};
  layer.detail = *rc::gen::element(Detail::paper, Detail::exact);
  return layer;
}

Recomputation of_ops(const OpTable& table, OpSet ops) {
  Recomputation recompute{.policy = RecomputePolicy::ops};
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if ((ops & op_bit(i)) != 0) recompute.ops.emplace_back(table.ops()[i].name);
  }
  return recompute;
}

TEST_CASE("every set of ops has the bytes and the cost that an estimate has for it") {
  CHECK(rc::check([] {
    const Layer layer = any_layer();
    const std::vector<LayerChoice> all = all_of(layer);
    const OpTable table = layer_ops(layer.model.architecture);
    RC_ASSERT(all.size() == std::size_t{1} << table.ops().size());
    for (int i = 0; i < 20; ++i) {
      const auto ops = *rc::gen::inRange<std::uint64_t>(0, all.size());
      RC_ASSERT(all[ops] == replaying(layer, of_ops(table, ops)));
    }
  }));
}

TEST_CASE("to keep some of what a recomputation makes takes no less time and no less memory") {
  CHECK(rc::check([] {
    const Layer layer = any_layer();
    const OpTable table = layer_ops(layer.model.architecture);
    const Sharding sharding = sharding_of(layer.model, layer.strategy);
    const Bindings letters = bindings(layer.model, layer.strategy, layer.workload);
    const OpSet ops = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << table.ops().size());
    const auto bytes = [&](bool discard) {
      const StoredTensors tensors =
          stored_tensors(table, sharding, {.ops = ops, .discarded = discard ? ops : OpSet()}, layer.detail);
      return std::pair(kept_bytes(tensors).evaluate(letters), dropped_bytes(tensors).evaluate(letters));
    };
    const auto [kept, recomputed] = bytes(true);
    const auto [region_kept, region_recomputed] = bytes(false);
    RC_ASSERT(kept <= region_kept);
    // Where gathered inputs are kept whole, a recomputation that makes one again holds it whole too.
    if (!layer.strategy.save_gathered_input) RC_ASSERT(kept + recomputed <= region_kept + region_recomputed);
  }));
}

TEST_CASE("no set is better than all of the front, and none of the front is for nothing") {
  for (const char* model : {"gpt3-175b", "llama-3-70b"}) {
    const Layer layer{.model = read_model(model),
                      .strategy = {.tensor_parallel = 8, .sequence_parallel = true},
                      .workload = {.global_batch = 1, .sequence = 2048}};
    const std::vector<LayerChoice> all = all_of(layer);
    const std::vector<LayerChoice> front = layer_front(*Sets(layer)).choices;
    CHECK(front.front() == all.front());
    for (const LayerChoice& choice : all) {
      CHECK(std::any_of(front.begin(), front.end(),
                        [&](const LayerChoice& one) { return no_worse(one, choice); }));
    }
    for (const LayerChoice& one : front) {
      CHECK(std::count_if(front.begin(), front.end(),
                          [&](const LayerChoice& other) { return no_worse(other, one); }) == 1);
    }
  }
}

TEST_CASE("going through the table op by op finds the front of all sets, to the bit") {
  CHECK(rc::check([] {
    const Layer layer = any_layer();
    const Sets sets(layer);
    const LayerFront found = layer_front(*sets);
    RC_ASSERT(found.tolerance == 0.0);
    RC_ASSERT(found.choices == unbeaten(all_of(*sets)));
  }));
}

// A table with as many ops as a mixture of experts behind latent attention has, and values of many sizes: a few layers'
// rows, one after the other.
OpTable long_table(const Architecture& architecture, int layers) {
  OpTable table;
  for (int i = 0; i < layers; ++i) {
    const OpTable one = layer_ops(architecture);
    const auto values = static_cast<ValueId>(table.values().size());
    const ValueId stream = values - 1;  // what the rows before end with
    for (Value value : one.values()) {
      if (value.buffer != nowhere) value.buffer += values;
      value.elements = (i + 2) * value.elements;
      table.value(value);
    }
    const auto moved = [&](ValueId id) { return id == 0 && i > 0 ? stream : id + values; };
    for (Op op : one.ops()) {
      for (ValueId& input : op.inputs) input = moved(input);
      for (ValueId& output : op.outputs) output = moved(output);
      for (Save& save : op.saves) save.value = moved(save.value);
      table.op(op);
    }
  }
  return table;
}

TEST_CASE("a table of 52 ops and 93 values has a front, and no set is better than it by more than it says") {
  const Layer layer{.model = read_model("gpt3-175b"),
                    .strategy = {.tensor_parallel = 8, .sequence_parallel = true},
                    .workload = {.global_batch = 1, .sequence = 2048}};
  const OpTable table = long_table(layer.model.architecture, 4);
  REQUIRE(table.ops().size() > 32);
  REQUIRE(table.values().size() > 64);
  const Setting setting = setting_for(layer);
  const PricedTable prices = priced(table_work(table, setting), setting);
  const LayerSets sets(table, prices, setting.sharding, setting.letters, layer.detail);
  const LayerFront front = layer_front(sets);
  CHECK(front.choices.size() > 100);
  CHECK(front.choices.size() <= most_choices);
  CHECK(front.choices.front() == sets.choice({}));
  const Bytes bytes = front.tolerance * sets.choice({}).bytes.kept;
  const PassCost all = sets.choice(every_op(table)).recompute;
  const auto stands_in = [&](const LayerChoice& one, const LayerChoice& other) {
    return one.bytes.kept <= other.bytes.kept + bytes &&
           one.bytes.recomputed <= other.bytes.recomputed + bytes &&
           device_time(one.recompute) <= device_time(other.recompute) + front.tolerance * device_time(all) &&
           one.recompute.host <= other.recompute.host + front.tolerance * all.host;
  };
  CHECK(front.tolerance > 0);
  CHECK(front.tolerance < 0.1);
  CHECK(rc::check([&] {
    OpSet ops;
    for (std::size_t op = 0; op < table.ops().size(); ++op) {
      if (*rc::gen::inRange(0, 3) == 0) ops.insert(op);
    }
    const LayerChoice choice = sets.choice(ops);
    RC_ASSERT(std::any_of(front.choices.begin(), front.choices.end(),
                          [&](const LayerChoice& one) { return stands_in(one, choice); }));
  }));
}

// K22 section 5 drops what softmax, its dropout and QK^T make, and recomputes core attention for it. Dropping just
// that is the optimum: no set that keeps as little takes less time than recomputing those three. The fourth op of the
// recomputation, the product with V, makes nothing that was dropped.
TEST_CASE(
    "K22: what selective recomputation drops is the optimum at its bytes and one product of its "
    "recomputation is in "
    "vain") {
  for (const char* model : {"gpt-22b", "gpt3-175b", "mt-nlg-530b", "gpt-1t"}) {
    CAPTURE(model);
    const Layer layer{.model = read_model(model),
                      .strategy = {.tensor_parallel = 8, .sequence_parallel = true},
                      .workload = {.global_batch = 1, .sequence = 2048}};
    const LayerChoice selective = replaying(layer, {.policy = RecomputePolicy::selective});
    const LayerChoice scores =
        replaying(layer, {.policy = RecomputePolicy::ops, .ops = {"scores", "softmax", "softmax_dropout"}});
    CHECK(scores.bytes == selective.bytes);
    CHECK(device_time(scores.recompute) < device_time(selective.recompute));
    for (const LayerChoice& choice : all_of(layer)) {
      if (choice.bytes.kept > selective.bytes.kept) continue;
      CHECK(device_time(choice.recompute) >= device_time(scores.recompute));
    }
  }
}

}  // namespace
}  // namespace headroom
