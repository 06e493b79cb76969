#include "headroom/model/adapters.hpp"

#include <algorithm>
#include <array>

#include "headroom/core/contains.hpp"
#include "headroom/model/op_builder.hpp"

namespace headroom {
namespace {

constexpr auto adapter_names = with_those_of_mixers(
    std::array<AdapterNames, 12>{{
        {"qkv",
         "qkv_lora_dropout",
         "qkv_lora_a",
         "qkv_lora_b",
         "qkv_lora_add",
         {"q_lora_add", "k_lora_add", "v_lora_add"}},
        {"projection", "projection_lora_dropout", "projection_lora_a", "projection_lora_b",
         "projection_lora_add"},
        {"mlp_up", "mlp_up_lora_dropout", "mlp_up_lora_a", "mlp_up_lora_b", "mlp_up_lora_add"},
        {"mlp_down", "mlp_down_lora_dropout", "mlp_down_lora_a", "mlp_down_lora_b", "mlp_down_lora_add"},
        {"q_down", "q_down_lora_dropout", "q_down_lora_a", "q_down_lora_b", "q_down_lora_add"},
        {"q_up", "q_up_lora_dropout", "q_up_lora_a", "q_up_lora_b", "q_up_lora_add"},
        {"kv_down",
         "kv_down_lora_dropout",
         "kv_down_lora_a",
         "kv_down_lora_b",
         "kv_down_lora_add",
         {"kv_down_lora_add", "k_rope_lora_add"}},
        {"kv_up",
         "kv_up_lora_dropout",
         "kv_up_lora_a",
         "kv_up_lora_b",
         "kv_up_lora_add",
         {"k_up_lora_add", "v_up_lora_add"}},
        {"expert_up", "expert_up_lora_dropout", "expert_up_lora_a", "expert_up_lora_b", "expert_up_lora_add"},
        {"expert_down", "expert_down_lora_dropout", "expert_down_lora_a", "expert_down_lora_b",
         "expert_down_lora_add"},
        {"shared_up", "shared_up_lora_dropout", "shared_up_lora_a", "shared_up_lora_b", "shared_up_lora_add"},
        {"shared_down", "shared_down_lora_dropout", "shared_down_lora_a", "shared_down_lora_b",
         "shared_down_lora_add"},
    }},
    adapters_of_mixers);

bool makes_gate(const OpTable& table, const Op& op) { return table[op.outputs[0]].name == "gate and up"; }

// Returns whether q, k and v are linears of their own, and so gate and up.
bool has_linears_apart(const OpTable& table) {
  return std::any_of(table.ops().begin(), table.ops().end(),
                     [](const Op& op) { return op.name == "qkv" && op.products.size() > 1; });
}

// Adapters of a linear: one for its whole output, or one for each of some parts.
struct Adapters {
  bool all = false;
  FixedVector<int, 3> parts{};
};

Adapters adapters_of(const OpTable& table, const Op& op, const Lora& lora) {
  const bool gate_and_up = makes_gate(table, op);
  const bool apart = has_linears_apart(table);
  Adapters adapters;
  const auto add_part = [&](int part) {
    if (!adapters.parts.contains(part)) adapters.parts.push_back(part);
  };
  const auto add = [&](int part) {
    const bool has_parts = op.name == "qkv" || gate_and_up;
    if (part != all_parts && has_parts) return add_part(part);
    adapters.all = true;
  };
  if (lora.targets.empty() || lora.targets.front() == every_linear) {
    const int parts = !apart ? 0 : op.name == "qkv" ? 3 : gate_and_up ? 2 : 0;
    for (int part = 0; part < parts; ++part) add_part(part);
    adapters.all = parts == 0;
    return adapters;
  }
  for (const std::string& name : lora.targets) {
    const LoraTarget* const target = find_target(name);
    if (target != nullptr && adapts(table, op, *target)) add(target->part);  // others are refused elsewhere
  }
  return adapters;
}

// Rewrites a table op by op.
class Adapting {
 public:
  Adapting(const OpTable& original, CrossEntropy loss, const Lora& lora, bool adapted,
           const AdapterChoices& choices)
      : original_(original), loss_(loss), lora_(lora), adapted_(adapted), choices_(choices) {
    for (const Value& value : original.values()) {
      now_.push_back(table_.value(value));
    }
  }

  OpTable table() {
    for (const Op& op : original_.ops()) {
      Op frozen = renamed(op);
      freeze(frozen);
      table_.op(frozen);
      if (!adapted_ || op.kind != OpKind::linear) continue;
      const auto names = std::find_if(adapter_names.begin(), adapter_names.end(),
                                      [&](const AdapterNames& it) { return it.name == op.name; });
      if (names == adapter_names.end()) continue;
      const Adapters adapters = adapters_of(original_, op, lora_);
      if (adapters.all || !adapters.parts.empty()) adapt(frozen, adapters, *names);
    }
    return table_;
  }

 private:
  // Returns the op with each value replaced by its current stand-in.
  Op renamed(Op op) {
    for (ValueId& input : op.inputs) input = now_[static_cast<std::size_t>(input)];
    for (Save& save : op.saves) save.value = now_[static_cast<std::size_t>(save.value)];
    for (ValueId& value : op.of_all_tokens) value = now_[static_cast<std::size_t>(value)];
    for (Exchange& exchange : op.exchanges) exchange.value = now_[static_cast<std::size_t>(exchange.value)];
    return op;
  }

  [[nodiscard]] bool quantizes(const Op& op) const {
    if (op.kind != OpKind::linear) return false;
    return adapted_ || (choices_.quantizes_output_layer && op.name == "output_layer" && !op.shares_weights);
  }

  void freeze(Op& op) const {
    op.frozen = true;
    if (is_quantized(lora_.base) && quantizes(op)) {
      op.quantized = weight_bytes(lora_.base);
      op.dequantized_apart = has_linears_apart(original_);
      op.dequantized_through_fp16 = choices_.dequantizes_through_fp16;
    }
    const bool of_eight_bits = lora_.base == BaseDtype::int8;
    // A chunked loss saves the gradient of the output layer's input instead of that input.
    const bool stands_for_gradient = in_chunks(loss_) && op.name == "output_layer";
    FixedVector<Save, 8> saves;
    for (const Save& save : op.saves) {
      const bool of_weights =
          save.why == why::weight_gradient || table_[save.value].name == "weight gradient";
      if (op.kind == OpKind::embedding || op.name == "embedding_dropout") continue;
      if (of_weights && (choices_.keeps_quantized_inputs || of_eight_bits) && is_quantized(op)) {
        saves.push_back({save.value, of_eight_bits ? "bitsandbytes keeps the inputs of 8-bit linears"
                                                   : "bitsandbytes keeps the inputs of 4-bit linears"});
        continue;
      }
      if (!of_weights || (stands_for_gradient && save.value == op.inputs[0])) saves.push_back(save);
    }
    op.saves = saves;
  }

  // Returns the columns of an output, over `parts`, and their placement.
  [[nodiscard]] Amount columns_of(ValueId output, const Monomial& rows, std::int64_t parts) const {
    const Value& value = table_[output];
    return {value.elements / (rows * Monomial(parts)), value.placement};
  }

  // Returns the inputs of LORA_a of `count` adapters: the linear's input, or a dropped copy of it for each.
  // Ranks of a column-parallel linear drop the gathered input.
  FixedVector<ValueId, 4> inputs_of(const Op& base, bool by_columns, std::size_t count,
                                    const AdapterNames& names) {
    const Value input = table_[base.inputs[0]];  // values are added below
    if (lora_.dropout.value == 0) return {base.inputs[0]};
    const bool gathered = by_columns && input.placement == Placement::boundary;
    const Placement placement = gathered ? Placement::whole : input.placement;
    Op dropout{.name = names.dropout, .region = base.region, .inputs = {base.inputs[0]}, .outputs = {}};
    dropout.reads_gathered = gathered;
    FixedVector<ValueId, 4> dropped;
    for (std::size_t i = 0; i < count; ++i) {
      const ValueId mask = table_.value({"dropout mask", input.elements, Dtype::boolean, placement});
      dropped.push_back(table_.value({"dropped input", input.elements, Dtype::half, placement}));
      dropout.outputs.push_back(mask);
      dropout.outputs.push_back(dropped[i]);
      dropout.saves.push_back({mask, why::mask});
    }
    table_.op(dropout);
    return dropped;
  }

  void keep(Op& op, const Value& value, std::string_view why) {
    const ValueId id = table_.value(value);
    op.outputs.push_back(id);
    op.saves.push_back({id, why});
  }

  // Saves the 16-bit copies that the linears of an op make of their FP32 weights.
  void save_weights(Op& op) {
    for (const MatrixProduct& product : op.products) {
      for (const Amount& outer : product.outer) keep(op, cast_weights(product, outer), why::cast_weights);
    }
  }

  // Saves the 16-bit copies that `count` adapters make of their FP32 inputs and weights.
  void save_casts(Op& a, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Value copy = table_[a.inputs[a.inputs.size() > 1 ? i : 0]];
      copy.name = "cast input";
      copy.dtype = Dtype::half;
      copy.buffer = nowhere;
      keep(a, copy, why::weight_gradient);
    }
    // Each adapter casts its input to the FP32 of its weights, and autocast casts that to 16 bits again.
    a.traffic.push_back(cast_traffic("cast_input", table_[a.inputs[0]], 2 * static_cast<int>(count)));
    save_weights(a);
  }

  void adapt(const Op& base, const Adapters& adapters, const AdapterNames& names) {
    const MatrixProduct& product = base.products[0];
    const bool of_experts = base.weights == WeightClass::expert;
    const bool split = base.region == Placement::split && !of_experts;
    const bool by_columns = split && product.inner.placement == Placement::whole;
    const bool by_rows = split && !by_columns;
    const Monomial rows = product.batch.count * product.rows.count;
    const Monomial rank(lora_.rank);
    const auto count = adapters.all ? std::size_t{1} : adapters.parts.size();

    Value hidden{.name = "adapter input",
                 .elements = rows * rank * Monomial(static_cast<std::int64_t>(count))};
    hidden.placement = of_experts ? Placement::routed : split ? Placement::whole : Placement::boundary;
    const ValueId inner = table_.value(hidden);
    Op a{.name = names.a, .kind = OpKind::linear, .region = base.region, .inputs = {}, .outputs = {inner}};
    const bool of_parts = choices_.pads_adapters && base.name == "qkv" && !adapters.all;
    const bool padded = of_parts && count < 3;  // the results of all three are as wide as the output
    a.inputs = inputs_of(base, by_columns, of_parts ? 1 : count, names);
    a.reads_gathered = by_columns && table_[a.inputs[0]].placement == Placement::boundary;
    a.weights = base.weights;
    for (std::size_t i = 0; i < count; ++i) {
      MatrixProduct down = product;
      down.dtype = Dtype::half;
      down.outer = {{rank, by_columns ? Placement::split : Placement::whole}};
      a.products.push_back(down);
    }
    if (choices_.autocast) {
      save_casts(a, count);
    } else {
      for (const ValueId input : a.inputs) a.saves.push_back({input, why::weight_gradient});
    }
    table_.op(a);

    Op b{.name = names.b, .kind = OpKind::linear, .region = base.region, .inputs = {inner}, .outputs = {}};
    b.saves = {{inner, why::weight_gradient}};
    b.weights = base.weights;
    Outputs adapted;
    const auto add_product = [&](OuterExtents outer) {
      if (by_rows) {
        for (Amount& part : outer) part.placement = Placement::split;
      }
      MatrixProduct up = product;
      up.dtype = Dtype::half;
      up.inner = {rank, Placement::whole};
      up.outer = outer;
      b.products.push_back(up);
    };
    const auto add_output = [&](ValueId output, std::int64_t parts) {
      Value delta = table_[output];
      delta.name = "adapter output";
      delta.elements = delta.elements / Monomial(parts);
      delta.buffer = nowhere;
      b.outputs.push_back(table_.value(delta));
      adapted.push_back(output);
    };
    if (adapters.all) {
      for (const MatrixProduct& each : base.products) add_product(each.outer);
      for (const ValueId output : base.outputs) {
        if (table_[output].name != "half-precision weights") add_output(output, 1);
      }
    } else if (base.name == "qkv") {
      for (const int part : adapters.parts) {
        const ValueId output = base.outputs[static_cast<std::size_t>(part)];
        add_product({columns_of(output, rows, 1)});
        add_output(output, 1);
      }
    } else {  // gate and up, side by side
      const ValueId output = base.outputs[0];
      Amount half{product.outer[0].count / Monomial(2), product.outer[0].placement};
      for (std::size_t i = 0; i < count; ++i) add_product({half});
      add_output(output, count == 1 ? 2 : 1);
    }
    if (choices_.autocast) save_weights(b);
    table_.op(b);
    for (std::size_t i = 0; i < adapted.size(); ++i) {
      const auto part = adapters.all ? i : static_cast<std::size_t>(adapters.parts[i]);
      add(base.region, b.outputs[i], adapted[i], adapted.size() > 1 ? names.adds[part] : names.add, padded);
    }
  }

  void add(Placement region, ValueId delta, ValueId output, std::string_view name, bool padded) {
    Value sum = table_[output];
    table_.forget_buffer(output);
    const ValueId result = table_.value(sum);
    constexpr std::int64_t scaled = 2 * size_of(Dtype::half);  // read and written
    Op op{.name = name,
          .region = sum.placement == Placement::boundary ? Placement::boundary : region,
          .inputs = {delta, output},
          .outputs = {result},
          .traffic = {{"scale", table_[delta].elements, sum.placement, scaled, scaled}},
          .adds = true};
    if (padded) op.saves = {{delta, "index_copy keeps what it copied"}};
    table_.op(op);
    const auto of_original = std::find(now_.begin(), now_.end(), output);
    EXPECTS(of_original != now_.end());
    *of_original = result;
  }

  const OpTable& original_;
  CrossEntropy loss_;
  const Lora& lora_;
  bool adapted_;
  AdapterChoices choices_;
  OpTable table_;
  std::vector<ValueId> now_;  // by value of the original table
};

}  // namespace

bool adapts(const OpTable& table, const Op& op, const LoraTarget& target) {
  if (op.kind != OpKind::linear || !contains(target.ops, op.name)) return false;
  return target.part != 0 || op.name == "qkv" || makes_gate(table, op);
}

bool adapts(const ModelLayers& layers, const LoraTarget& target) {
  return std::any_of(layers.kinds.begin(), layers.kinds.end(), [&](const LayerKind& kind) {
    const std::vector<Op>& ops = kind.ops.ops();
    return is_layer(kind) &&
           std::any_of(ops.begin(), ops.end(), [&](const Op& op) { return adapts(kind.ops, op, target); });
  });
}

OpTable with_adapters(const OpTable& table, CrossEntropy loss, const Lora& lora, bool adapted,
                      const AdapterChoices& choices) {
  return Adapting(table, loss, lora, adapted, choices).table();
}

ModelLayers with_adapters(ModelLayers layers, CrossEntropy loss, const Lora& lora,
                          const AdapterChoices& choices) {
  if (!trains_adapters(lora)) return layers;
  for (LayerKind& kind : layers.kinds) {
    kind.ops = with_adapters(kind.ops, loss, lora, is_layer(kind), choices);
    kind.fp32_weights = choices.autocast;
  }
  return layers;
}

}  // namespace headroom
