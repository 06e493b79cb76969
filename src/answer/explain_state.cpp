#include "answer/explain_state.hpp"

#include <cmath>

#include "headroom/memory/state.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {
namespace {

// Bytes of a parameter have scales of up to 4096 values in them.
Rational exact(double bytes) {
  constexpr std::int64_t parts = 4096;
  const double scaled = bytes * static_cast<double>(parts);
  EXPECTS(scaled == std::floor(scaled));
  return {static_cast<std::int64_t>(scaled), parts};
}

// Of what the optimizer keeps; a millionth is exact enough.
Rational part_on_host(const Offload& offload) {
  constexpr std::int64_t parts = 1'000'000;
  return {std::llround(offload.optimizer.value * static_cast<double>(parts)), parts};
}

// Ranks that divide what is sharded of a class; 1 where nothing is.
Monomial shards_in_symbols(const Strategy& strategy, WeightClass weights) {
  using namespace symbols;
  if (strategy.data_sharding == DataSharding::none) return 1;
  const bool dense = weights == WeightClass::dense;
  if (strategy.shard_size > 0 && dense) return strategy.shard_size;
  const Monomial alike = dense ? d * c : t * d * c / (y * z);
  return alike / Monomial(shard_copies(strategy));
}

// Of one class of weights, each part a row.
class ClassRows {
 public:
  ClassRows(const ExplainQuestion& question, const Bindings& letters, WeightClass weights)
      : question_(question),
        strategy_(question.strategy),
        software_(question.software),
        letters_(letters),
        offloaded_(part_on_host(strategy_.offload)),
        weights_(weights),
        shards_(shards_in_symbols(strategy_, weights)),
        adapts_(trains_adapters(strategy_.lora)),
        name_(weights == WeightClass::dense ? "parameters" : "experts"),
        shards_fp32_(shards_main_params(software_, strategy_.optimizer)),
        weight_copies_(keeps_fp32_weights(question.model, strategy_, software_)),
        fp32_(weight_copies_ || shards_fp32_) {}

  std::vector<ExplainedState> rows() {
    if (adapts_) add_frozen();
    if (adapts_) name_ = name_ == "experts" ? "adapters of experts" : "adapters";
    add_weights();
    add_gradients();
    add_optimizer();
    const bool weights = strategy_.offload.parameters;
    const std::string kept = "of the optimizer, with fp32 gradients";
    if (offloaded_ != Rational(0)) add("on the host", on_host_, weights ? "weights, and " + kept : kept);
    return std::move(rows_);
  }

 private:
  void add(std::string part, const Expr& bytes, std::string what) {
    rows_.push_back({.of = name_,
                     .part = std::move(part),
                     .bytes = {.expression = bytes, .value = bytes.evaluate(letters_)},
                     .what = std::move(what)});
  }
  [[nodiscard]] Expr sharded(Rational bytes) const { return Expr(bytes / shards_); }

  // Weights, which the host may keep.
  void add_held(std::string part, const Expr& bytes, std::string what) {
    const bool away = strategy_.offload.parameters;
    if (away) on_host_ += bytes;
    add(std::move(part), away ? Expr() : bytes, std::move(what));
  }

  // What the optimizer keeps, of which the host may have a part, beside gradients of the same parameters.
  void add_stepped(std::string part, double bytes, std::string what) {
    const Rational all = exact(bytes);
    on_host_ += sharded((all + size_of(Dtype::fp32)) * offloaded_);
    add(std::move(part), sharded(all * (1 - offloaded_)), std::move(what));
  }

  void add_frozen() {
    const bool quantized = is_quantized(strategy_.lora.base);
    const bool kept_gathered = shards_weights(strategy_) && !gathers_in_passes(strategy_);
    const auto kept = [&](Rational bytes) {
      const Expr held = shards_weights(strategy_) ? sharded(bytes) : Expr(bytes);
      return kept_gathered ? held + Expr(bytes) : held;
    };
    const std::string gathered = kept_gathered ? ", and gathered" : "";
    if (quantized) {
      const BaseDtype base = strategy_.lora.base;
      const char* const what = base == BaseDtype::int8         ? "INT8 without its row scales"
                               : base == BaseDtype::nf4_single ? "NF4 with FP32 scales"
                                                               : "NF4 with double quantization";
      add_held("frozen linears", kept(weight_bytes(base)), what + gathered);
    }
    add_held(quantized ? "frozen others" : "frozen weights", kept(2), "BF16 or FP16" + gathered);
    if (software_.sharding.flat_parameters && shards_weights(strategy_)) {
      const Rational bytes = size_of(kept_gradient_dtype(strategy_, question_.workload, software_));
      const bool reduced = reduces_in_passes(strategy_, question_.workload, software_);
      add("gradients of frozen weights", reduced ? sharded(bytes) : Expr(bytes),
          "of layers with adapters: FSDP1 keeps a layer's frozen and trained weights in one tensor");
    }
  }

  void add_weights() {
    const bool sharded_weights = shards_weights(strategy_);
    const Rational held = fp32_ ? 4 : 2;
    Expr bytes = sharded_weights ? sharded(held) : Expr(held);
    std::string what = fp32_ ? "fp32" : "BF16 or FP16";
    const bool casts_at_use = weight_copies_ || autocasts_adapters(strategy_, software_);
    if ((sharded_weights || shards_fp32_) && !gathers_in_passes(strategy_) && !casts_at_use) {
      bytes += Expr(2);
      what += ", and gathered in 16 bits";
    }
    if (is_narrow(strategy_.precision))
      what += ", but those of " + std::string(name_of(strategy_.precision)) + " linears";
    add_held("weights", bytes, std::move(what));
    if (is_narrow(strategy_.precision) && !sharded_weights && !shards_fp32_) add_narrow_weights();
  }

  void add_narrow_weights() {
    const int count = copies_of_weights(question_);
    std::string copies = count == 1 ? "one copy by rows and columns" : "copies by rows and by columns";
    if (!question_.device && compute_dtype(strategy_.precision) == Dtype::fp8)
      copies += " (on Blackwell one: give --system)";
    add(std::string(name_of(strategy_.precision)) + " linears",
        Expr(exact(narrow_weight_size(strategy_, count))),
        strategy_.fp8_param_gather ? copies + " alone" : "BF16 or FP16, and " + copies);
  }

  void add_gradients() {
    const bool reduced = reduces_in_passes(strategy_, question_.workload, software_);
    const Dtype dtype =
        weight_copies_ ? Dtype::fp32 : kept_gradient_dtype(strategy_, question_.workload, software_);
    const Rational bytes = size_of(dtype);
    const Expr held = reduced ? sharded(bytes) : Expr(bytes);
    const bool away = reduced && strategy_.offload.parameters;  // with those of the optimizer
    add("gradients", away ? Expr() : held, dtype == Dtype::fp32 ? "fp32" : "BF16 or FP16");
    if (copies_gradients(strategy_, software_, weights_))
      add("gradients in buckets", Expr(bytes), "what is reduced, copied from gradients and back");
  }

  void add_optimizer() {
    const Optimizer& optimizer = strategy_.optimizer;
    const double main_params = fp32_ ? 0 : size_of(optimizer.main_params);
    const std::string main =
        main_params == 0 ? "" : std::string(name_of(optimizer.main_params)) + " main params";
    const auto with = [](const std::string& list, const std::string& part) {
      return list + (list.empty() ? "" : ", ") + part;
    };
    const std::string first = with(main, std::string(name_of(optimizer.exp_avg)) + " exp_avg");
    const std::string both = with(first, std::string(name_of(optimizer.exp_avg_sq)) + " exp_avg_sq");
    switch (optimizer.kind) {
      case OptimizerKind::adam: add_stepped("optimizer", main_params + moments_size(optimizer), both); break;
      case OptimizerKind::sgd:
        add_stepped("optimizer", main_params + moments_size(optimizer),
                    with(main, std::string(name_of(optimizer.exp_avg)) + " momentum"));
        break;
      case OptimizerKind::adafactor:
        add("optimizer", sharded(exact(main_params)),
            with(main, "4 bytes for each row and column of a matrix and for each other parameter"));
        break;
      case OptimizerKind::muon:
        add("optimizer of matrices", sharded(exact(main_params + matrix_moment_size(optimizer))),
            first + ", matrices divided whole: the mean");
        add("optimizer of others", sharded(exact(main_params + moments_size(optimizer))), both);
        break;
    }
  }

  const ExplainQuestion& question_;
  const Strategy& strategy_;
  const Software& software_;
  const Bindings& letters_;
  Rational offloaded_;
  WeightClass weights_;
  Monomial shards_;
  bool adapts_;
  std::string name_;
  bool shards_fp32_;
  bool weight_copies_;
  bool fp32_;
  Expr on_host_;
  std::vector<ExplainedState> rows_;
};

}  // namespace

int copies_of_weights(const ExplainQuestion& question) {
  constexpr int by_rows_and_columns = 2;
  return question.device ? copies_of_factor(*question.device, compute_dtype(question.strategy.precision))
                         : by_rows_and_columns;
}

std::vector<ExplainedState> explain_state(const ExplainQuestion& question, const Bindings& letters) {
  std::vector<ExplainedState> rows = ClassRows(question, letters, WeightClass::dense).rows();
  if (!any_experts(question.model)) return rows;
  for (ExplainedState& row : ClassRows(question, letters, WeightClass::expert).rows()) {
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace headroom
