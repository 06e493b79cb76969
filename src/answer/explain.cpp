#include "headroom/answer/explain.hpp"

#include <algorithm>

#include "answer/explain_state.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stage_places.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {
namespace {

// Relations between a model's sizes that bring its expressions into the paper's letters.
class ModelRelations {
 public:
  explicit ModelRelations(const Bindings& letters) {
    using namespace symbols;
    const auto holds = [&](const Expr& x, const Expr& y) {
      return x.evaluate(letters) == y.evaluate(letters);
    };
    if (holds(a * e, h)) use(Symbol::head_size, h / a, "e = h/a");
    if (holds(k, a)) use(Symbol::key_value_heads, a, "k = a");
    if (holds(f, 4 * h)) use(Symbol::feedforward, 4 * h, "f = 4 h");
  }

  [[nodiscard]] Expr apply(Expr expr) const {
    for (const auto& [symbol, replacement] : replacements_) expr = expr.substitute(symbol, replacement);
    return expr;
  }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  void use(Symbol symbol, const Expr& replacement, std::string text) {
    replacements_.emplace_back(symbol, replacement);
    texts_.push_back(std::move(text));
  }

  std::vector<std::pair<Symbol, Expr>> replacements_;
  std::vector<std::string> texts_;
};

struct Context {
  Sharding sharding;
  Bindings letters;
  ModelRelations relations;
  Detail detail;

  [[nodiscard]] Derived derive(const Expr& expr) const {
    return {.expression = relations.apply(expr), .value = expr.evaluate(letters)};
  }
};

// In layers of a kind.
Context context_of(const KindSizes& sizes, const Context& of_model, const Strategy& strategy) {
  const Bindings letters = bindings_of(sizes, of_model.letters);
  return {.sharding = sharding_of(sizes, of_model.sharding, strategy.tensor_parallel),
          .letters = letters,
          .relations = ModelRelations(letters),
          .detail = of_model.detail};
}

std::vector<LetterValue> sizes_in(const KindSizes& sizes, const Bindings& letters) {
  std::vector<LetterValue> values;
  for (const KindSize& size : sizes) values.push_back({size.letter, letters[size.letter]});
  return values;
}

ExplainedTable explain_kind(const LayerKind& kind, std::int64_t count, const Recomputation& recompute,
                            const Context& context) {
  const OpTable& table = kind.ops;
  const RecomputedOps recomputed = recomputed_ops_of(kind, recompute, context.sharding);
  const StoredTensors tensors = stored_tensors(table, context.sharding, recomputed, context.detail);
  const Collectives inserted = collectives(table, context.sharding, recomputed);
  ExplainedTable result{
      .name = kind.name,
      .position = kind.position,
      .count = count,
      .sizes = sizes_in(kind.sizes, context.letters),
      .equalities = kind.sizes.empty() ? std::vector<std::string>() : context.relations.texts(),
      .kept = context.derive(kept_bytes(tensors)),
      .dropped = context.derive(dropped_bytes(tensors)),
      .plain = context.derive(kept_bytes(stored_tensors(table, context.sharding, {}, context.detail)))};
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    const Op& op = table.ops()[i];
    ExplainedOp row{.name = std::string(op.name),
                    .kind = op.kind,
                    .region = op.region,
                    .recomputed = (recomputed.ops & op_bit(i)) != 0,
                    .forward_flops = context.derive(forward_flops(table, context.sharding, op_bit(i)))};
    Expr kept;
    for (const StoredTensor& tensor : tensors) {
      if (tensor.op != static_cast<int>(i)) continue;
      if (tensor.kept) kept += tensor.bytes;
      row.tensors.push_back(
          {.name = (tensor.received ? "exchanged " : "") + std::string(tensor.name),
           .why = std::string(tensor.why),
           .dtype = tensor.dtype,
           .placement = tensor.value == nowhere ? Placement::whole : table[tensor.value].placement,
           .kept = tensor.kept,
           .bytes = context.derive(tensor.bytes)});
    }
    row.kept = context.derive(kept);
    for (const Collective& collective : inserted) {
      if (collective.op != static_cast<int>(i)) continue;
      (enters(collective.name) ? row.before : row.after).push_back(collective);
    }
    result.ops.push_back(std::move(row));
  }
  return result;
}

// How many virtual stages of microbatches the first rank holds, in symbols; the schedule's own count confirms it.
Expr chunks_in_flight_in_symbols(const ScheduleShape& shape, const Bindings& letters) {
  using namespace symbols;
  const bool enough = shape.microbatches > group_size(shape);
  Expr in_symbols = [&]() -> Expr {
    switch (shape.kind) {
      case ScheduleKind::gpipe: return n;
      case ScheduleKind::one_forward_one_backward:
      case ScheduleKind::zero_bubble_h1: return enough ? p : n;
      case ScheduleKind::zero_bubble_h2:
        return shape.microbatches >= 2 * shape.ranks - 1 ? 2 * p - 1 : Expr(n);
      case ScheduleKind::zero_bubble_2p: return shape.microbatches >= 2 * shape.ranks ? 2 * p : Expr(n);
      case ScheduleKind::interleaved:
        if (shape.group > shape.ranks && enough) return shape.group * (m - 1) + 2 * p - 1;
        return enough ? p * m + p - 1 : Expr(n * m);
      case ScheduleKind::looped_bfs: return n * m;
      case ScheduleKind::zero_bubble_v:
        return shape.microbatches >= 2 * shape.ranks ? 2 * p : Expr(chunks_in_flight(shape, 0));
      case ScheduleKind::v_half:
      case ScheduleKind::v_min: return Expr(chunks_in_flight(shape, 0));
      case ScheduleKind::dualpipe_v: return 2 * p + 1;
      case ScheduleKind::dualpipe: return p + 1;
    }
    EXPECTS(!"unknown schedule");
    return 0;
  }();
  if (shape.in_pairs && enough) in_symbols += 1;
  EXPECTS(in_symbols.evaluate(letters) == static_cast<double>(chunks_in_flight(shape, 0)));
  return in_symbols;
}

ExplainedStage explain_first_stage(const ExplainQuestion& question, const ModelLayers& layers,
                                   const std::vector<ExplainedTable>& kinds, const Context& context) {
  using namespace symbols;
  const auto& [model, strategy, workload, detail, software, device] = question;
  const ScheduleShape shape = schedule_shape(strategy, microbatches(strategy, workload));
  const std::vector<StagePlace> places = stage_places(layers, strategy);
  const std::vector<StageActivations> stages =
      stage_activations(layers, context.sharding, context.letters, strategy, workload, detail);
  ExplainedStage result{.rank = rank_activations(stages, shape, 0)};
  for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    result.layers += places[static_cast<std::size_t>(stage_of(shape, 0, chunk))].layers;
  }

  const bool even =
      strategy.stage_layers.empty() && layer_count(layers) % static_cast<std::int64_t>(stages.size()) == 0;
  const Expr chunks = chunks_in_flight_in_symbols(shape, context.letters);
  if (even) {
    const Monomial stages_of_model = strategy.virtual_pipeline > 1 ? p * m : p;
    Expr layers_in_flight = chunks * L / stages_of_model;
    // Of a forward pass beside a backward pass a layer at the most is more than the other has freed, and none while the head goes.
    if (shape.in_pairs && chunks_in_flight(shape, 0) > warm_up_passes(shape, 0)) {
      layers_in_flight = (chunks - 1) * L / stages_of_model;
      const double held = layers_in_flight.evaluate(context.letters) * kinds.front().kept.value;
      if (result.rank.at_peak.layers > Bytes(held)) layers_in_flight += 1;
    }
    result.layers_in_flight = context.derive(layers_in_flight);
  }
  const auto of_layers = [](const ExplainedTable& kind) { return kind.position == KindPosition::layer; };
  const bool alike =
      even && strategy.recompute.layers == 0 && std::count_if(kinds.begin(), kinds.end(), of_layers) == 1;
  // Where a backward pass leaves more for weights than recomputation kept, those are at the peak too.
  const bool weights_at_peak = has_weight_passes(shape) && result.rank.peak.pass != Pass::forward;
  if (alike && !weights_at_peak) {
    result.layer_bytes.expression = kinds.front().kept.expression * result.layers_in_flight.expression;
  }
  result.layer_bytes.value = result.rank.at_peak.layers.count();

  const auto copies = [](Bytes all, Bytes one) { return one.count() > 0 ? all / one : 0; };
  result.embedding_copies = copies(result.rank.at_peak.embedding, stages.front().embedding);
  result.head_copies = copies(result.rank.at_peak.head, stages.back().head);
  return result;
}

}  // namespace

ExplainReply answer(const ExplainQuestion& question) {
  return answer(question, layers_of(question.model, question.strategy, question.software));
}

ExplainReply answer(const ExplainQuestion& question, const ModelLayers& layers) {
  const auto& [model, strategy, workload, detail, software, device] = question;
  if (std::vector<Problem> problems = illegalities(model, strategy, workload, question.software);
      !problems.empty()) {
    throw InputError(std::move(problems));
  }
  const Bindings letters = bindings(model, strategy, workload);
  const Context context{.sharding = sharding_of(model, strategy),
                        .letters = letters,
                        .relations = ModelRelations(letters),
                        .detail = detail};
  ExplainReply result{.model = model,
                      .strategy = strategy,
                      .workload = workload,
                      .software = software,
                      .detail = detail,
                      .equalities = context.relations.texts()};
  const KindCounts counts = counts_of(layers);
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    const LayerKind& kind = layers.kinds[i];
    result.kinds.push_back(
        explain_kind(kind, counts[i], strategy.recompute, context_of(kind.sizes, context, strategy)));
  }
  result.first_stage = explain_first_stage(question, layers, result.kinds, context);
  result.state = explain_state(question, context.letters);
  const ModelParameters parts = evaluate(
      model_parameter_exprs(layers, context.sharding, strategy.tensor_parallel, strategy.optimizer.kind),
      context.letters);
  const ScheduleShape shape = schedule_shape(strategy, microbatches(strategy, question.workload));
  const KindCounts held = kinds_of_rank(stage_places(layers, strategy), shape, 0);
  const bool both_ends = holds_both_ends(shape, 0);
  result.first_rank = parameters_of_rank(parts, held, both_ends);
  result.first_rank_state =
      model_state(model, strategy, question.workload, result.first_rank, copies_of_weights(question),
                  software, matrices_of_rank(parts, held, both_ends));
  return result;
}

}  // namespace headroom
