#include "headroom/plan/changes.hpp"

#include "headroom/parallel/stage_layout.hpp"

namespace headroom {
namespace {

// from, 2 from, 4 from, ... up to `most`.
std::vector<std::int64_t> doublings(std::int64_t from, std::int64_t most) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = from; value <= most; value *= 2) values.push_back(value);
  return values;
}

// value/2, value/4, ... while whole.
std::vector<std::int64_t> halvings(std::int64_t value) {
  std::vector<std::int64_t> values;
  while (value % 2 == 0) values.push_back(value /= 2);
  return values;
}

struct Changes {
  std::vector<Edits> list;

  void add(Edits edits) { list.push_back(std::move(edits)); }
  void set(const char* field, std::int64_t to) { add({{field, std::to_string(to)}}); }
  void enable(const char* field) { add({{field, "yes"}}); }
};

void change_policy(Changes& changes, const Request& request) {
  const Strategy& strategy = request.strategy;
  const RecomputePolicy policy = strategy.recompute.policy;
  if (strategy.schedule == ScheduleKind::gpipe || has_weight_passes(strategy.schedule)) {
    changes.add({{"schedule", "1f1b"}});
  }
  if (!strategy.distributed_optimizer && strategy.data_parallel > 1) {
    changes.enable("distributed_optimizer");
  }
  if (!strategy.sequence_parallel && strategy.tensor_parallel > 1) {
    changes.enable("sequence_parallel");
  }
  if (policy != RecomputePolicy::none) changes.add({{"recompute", "none"}});
  const bool scores_kept = any_layer(request.model, [](const Architecture& layer) {
    return layer.kernels.attention != AttentionKernel::flash;
  });
  if (policy != RecomputePolicy::selective && scores_kept) {
    changes.add({{"recompute", "selective"}});
  }
  if (policy != RecomputePolicy::full || strategy.recompute.layers > 0) {
    for (const std::int64_t k : doublings(1, longest_stage(request.model.layers, strategy) - 1)) {
      changes.add({{"recompute", "full"}, {"recompute_layers", std::to_string(k)}});
    }
    changes.add({{"recompute", "full"}});
  }
}

void change_batching(Changes& changes, const Strategy& strategy) {
  for (const std::int64_t b : halvings(strategy.micro_batch)) {
    changes.set("micro_batch", b);
  }
  for (const std::int64_t b : {2 * strategy.micro_batch, 4 * strategy.micro_batch}) {
    changes.set("micro_batch", b);
  }
  if (strategy.virtual_pipeline > 1) changes.set("virtual_pipeline", 1);
  if (strategy.pipeline_parallel > 1) {
    for (const std::int64_t m : {2, 3, 4, 6, 8}) {
      if (m != strategy.virtual_pipeline) changes.set("virtual_pipeline", m);
    }
  }
}

// Twice as much of one parallel size for half of another.
void trade(Changes& changes, const Strategy& strategy, std::int64_t devices_per_node) {
  struct Size {
    const char* field;
    std::int64_t Strategy::*member;
    std::int64_t most;
  };
  const std::array<Size, 3> sizes{{{"tensor_parallel", &Strategy::tensor_parallel, devices_per_node},
                                   {"pipeline_parallel", &Strategy::pipeline_parallel, devices(strategy)},
                                   {"data_parallel", &Strategy::data_parallel, devices(strategy)}}};
  for (const Size& more : sizes) {
    for (const Size& less : sizes) {
      const std::int64_t doubled = 2 * (strategy.*more.member);
      if (more.member == less.member || strategy.*less.member % 2 != 0 || doubled > more.most) continue;
      const std::int64_t halved = strategy.*less.member / 2;
      changes.add({{more.field, std::to_string(doubled)}, {less.field, std::to_string(halved)}});
    }
  }
}

}  // namespace

Request changed(const Request& request, const Edits& change) {
  Request result = request;
  apply(change, result.strategy, result.workload);
  return result;
}

std::vector<Edits> changes_on_same_devices(const Request& request) {
  Changes changes;
  change_policy(changes, request);
  change_batching(changes, request.strategy);
  trade(changes, request.strategy, request.system.devices_per_node);
  return std::move(changes.list);
}

bool launchable(const Request& request, const Strategy& strategy) {
  const auto even = [&](const Strategy& one) {
    return stage_layout(request.model.layers, one) == StageLayout::even;
  };
  return request.software.uneven_stages || even(strategy) || !even(request.strategy);
}

}  // namespace headroom
