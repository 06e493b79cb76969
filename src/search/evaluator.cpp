#include "headroom/search/evaluator.hpp"

#include <algorithm>
#include <limits>

namespace headroom {

Evaluator::Evaluator(const Request& base) : base_(base) {
  model_flops_ = iteration_flops(base.model, Strategy{}, base.workload, 0).model;
}

void Evaluator::set_layout(const Strategy& layout) {
  layout_ = layout;
  reserved_ = reserved(base_.system, layout);
  shape_ = schedule_shape(layout, microbatches(layout, base_.workload));
  stages_.clear();
  stage_of_.clear();
  rank_layers_.assign(static_cast<std::size_t>(shape_.ranks), 0);
  for (const StagePlace& place : stage_places(base_.model, layout)) {
    const auto same = std::find_if(stages_.begin(), stages_.end(),
                                   [&](const Stage& stage) { return stage.place == place; });
    rank_layers_[stage_of_.size() % rank_layers_.size()] += place.layers;
    stage_of_.push_back(static_cast<std::size_t>(same - stages_.begin()));
    if (same == stages_.end()) stages_.push_back({.place = place, .activations = {}, .times = {}});
  }
  links_.clear();
  recompute_.reset();
}

Evaluator::Parts& Evaluator::parts_of(const Strategy& strategy) {
  const PartsKey key{strategy.tensor_parallel, strategy.micro_batch, strategy.sequence_parallel,
                     strategy.recompute.policy};
  if (const auto found = parts_.find(key); found != parts_.end()) return found->second;
  const auto& [model, system, software, ignored, workload, detail] = base_;
  const Parts parts{.activations = model_activations(model, strategy, workload, detail),
                    .parameters = model_parameters(model, strategy, workload),
                    .cost = {}};
  return parts_.emplace(key, parts).first->second;
}

const ModelCost& Evaluator::cost_now() {
  if (now_->cost) return *now_->cost;
  const auto& [model, system, software, ignored, workload, detail] = base_;
  Strategy strategy = layout_;
  strategy.recompute = *recompute_;
  const Setting setting =
      setting_of(model, strategy, workload, system.devices_per_node, *system.performance, software);
  return now_->cost.emplace(model_cost(model, strategy, setting));
}

void Evaluator::set_recompute(const Strategy& strategy) {
  if (recompute_ == strategy.recompute) return;
  recompute_ = strategy.recompute;
  now_ = &parts_of(strategy);
  for (Stage& stage : stages_) {
    stage.activations =
        pass_activations(stage_activations(now_->activations, stage.place, strategy.recompute));
  }
  timed_ = false;
  makespan_.reset();
}

Plan Evaluator::whole_plan(const Strategy& strategy) const {
  Request request = base_;
  request.strategy = strategy;
  return account(evaluate(request));
}

RankPeak Evaluator::peak(const Strategy& strategy) {
  if (strategy.recompute.window) {
    const Plan plan = whole_plan(strategy);
    return {.rank = plan.peak_rank, .bytes = headroom::peak(plan)};
  }
  set_recompute(strategy);
  RankPeak highest;
  passes_.resize(static_cast<std::size_t>(shape_.chunks));
  for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      const std::size_t stage = stage_of_[static_cast<std::size_t>(stage_of(shape_, rank, chunk))];
      passes_[static_cast<std::size_t>(chunk)] = stages_[stage].activations;
    }
    const double parameters = parameters_of_rank(
        now_->parameters, rank_layers_[static_cast<std::size_t>(rank)], rank == 0, rank + 1 == shape_.ranks);
    const RankMemory memory{.state = model_state(base_.model, strategy, parameters),
                            .activations = rank_activations(passes_, shape_, rank),
                            .reserved = reserved_};
    if (const Bytes bytes = total(memory); bytes > highest.bytes) {
      highest = {.rank = static_cast<std::size_t>(rank), .bytes = bytes};
    }
  }
  return highest;
}

const std::vector<ChunkSpans>& Evaluator::spans() {
  if (timed_) return spans_;
  timed_ = true;
  if (links_.empty()) {
    links_ = send_times(base_.model, layout_, base_.workload, base_.system.devices_per_node,
                        *base_.system.performance, base_.software);
  }
  const ModelCost& cost = cost_now();
  for (Stage& stage : stages_) {
    stage.times = pass_times(stage_cost(cost, stage.place, *recompute_), base_.system.performance->rates.host,
                             base_.software);
  }
  spans_.clear();
  for (std::size_t i = 0; i < stage_of_.size(); ++i) {
    spans_.push_back(chunk_spans(shape_, stages_[stage_of_[i]].times, links_, static_cast<std::int64_t>(i)));
  }
  return spans_;
}

EndTimes Evaluator::end_of(const Strategy& strategy, Seconds last_backward) const {
  double most = 0;
  for (std::size_t rank = 0; rank < rank_layers_.size(); ++rank) {
    const bool last = rank + 1 == rank_layers_.size();
    most = std::max(most, parameters_of_rank(now_->parameters, rank_layers_[rank], rank == 0, last));
  }
  return end_times(base_.model, strategy, most, last_backward, base_.system.devices_per_node,
                   *base_.system.performance, base_.software);
}

Seconds Evaluator::iteration(const Strategy& strategy) {
  // Where the reduction of gradients hides behind a backward pass, it matters which rank is busiest.
  const bool overlaps = base_.software.overlaps_data_parallel && strategy.data_parallel > 1;
  if (strategy.recompute.window || overlaps) return whole_plan(strategy).timing->iteration.total;
  set_recompute(strategy);
  if (!makespan_) makespan_ = makespan(shape_, spans());
  const EndTimes end = end_of(strategy, Seconds(0));
  return *makespan_ + end.data_communication + end.optimizer;
}

Seconds Evaluator::least_iteration(const Strategy& strategy) {
  Strategy least = strategy;
  // A window stores at the most every pass.
  if (strategy.recompute.window) least.recompute = {};
  set_recompute(least);
  // As if a backward pass were long enough to hide the reduction of gradients as far as that goes.
  const EndTimes end = end_of(least, Seconds(std::numeric_limits<double>::infinity()));
  return least_makespan(shape_, spans()) + end.data_communication + end.optimizer;
}

double Evaluator::mfu(const Strategy& strategy, Seconds iteration) const {
  return utilization(model_flops_, iteration, devices(strategy), base_.system.performance->device.half_peak);
}

}  // namespace headroom
