#include "plan/replayed_ranks.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/memory/caching_allocator.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "memory/kept_layers.hpp"

namespace headroom {
namespace {

// Returns how many microbatches to replay. In the steady state of 1F1B and interleaved schedules, every group
// of microbatches requests the same tensors in the same order. Memory that suffices for some groups suffices
// for all later groups. GPipe and similar schedules hold all microbatches at once.
std::int64_t replayed_microbatches(const Request& request) {
  const std::int64_t count = microbatches(request.strategy, request.workload);
  const ScheduleKind kind = request.strategy.schedule;
  if (kind != ScheduleKind::one_forward_one_backward && kind != ScheduleKind::interleaved) return count;
  constexpr std::int64_t groups = 6;
  const std::int64_t group = group_size(request.strategy);
  const std::int64_t most = groups * std::max(group, request.strategy.pipeline_parallel) + groups;
  return count <= most ? count : count - (count - most + group - 1) / group * group;
}

std::vector<BlockEvent> block_events(const std::vector<MemoryEvent>& events) {
  std::vector<BlockEvent> blocks;
  blocks.reserve(events.size());
  for (const MemoryEvent& event : events) {
    blocks.push_back({.tensor = index(event.tensor),
                      .bytes = frees(event) ? -1 : CachingAllocator::block_bytes(event.bytes)});
  }
  return blocks;
}

BlockEvents block_events(PassEvents events) {
  BlockEvents blocks{.forward = block_events(events.forward),
                     .backward = block_events(events.backward),
                     .left = {},
                     .weight_gradients = {},
                     .tensors = index(events.tensors),
                     .sources = std::move(events.sources)};
  std::vector<bool> alive(blocks.tensors);
  for (const BlockEvent& event : blocks.forward) alive[event.tensor] = event.bytes >= 0;
  for (std::size_t tensor = 0; tensor < blocks.tensors; ++tensor) {
    if (alive[tensor]) blocks.left.push_back(tensor);
  }
  for (const int tensor : events.weight_gradients) blocks.weight_gradients.push_back(index(tensor));
  return blocks;
}

void find_events(ReplayedRanks& ranks, Sources sources) {
  const Request& request = ranks.plan.request;
  const Strategy& strategy = request.strategy;
  const Sharding sharding = sharding_of(request.model, strategy);
  const Bindings letters = bindings(request.model, strategy, request.workload);
  for (const LayerKind& kind : ranks.layers.kinds) {
    const Bindings of_kind = bindings_of(kind.sizes, letters);
    const Sharding shards = sharding_of(kind.sizes, sharding, strategy.tensor_parallel);
    const auto events = [&](const RecomputedOps& recomputed) {
      return block_events(pass_events(kind, shards, recomputed, request.detail, request.software, of_kind,
                                      pass_gradients(strategy, request.workload, request.software), sources));
    };
    ranks.events.emplace_back(events({}), events(recomputed_ops_of(kind, strategy.recompute, shards)));
    KindParameters& held = ranks.parameters.emplace_back();
    for (std::size_t op = 0; op < kind.ops.ops().size(); ++op) {
      const double count = parameters(kind.ops.ops()[op], shards).evaluate(of_kind);
      if (count <= 0) continue;
      held.of_ops.push_back(count);
      held.ops.push_back(static_cast<int>(op));
      held.sum += count;
    }
  }
  if (strategy.keep_pipeline_outputs) {
    const Bytes output(output_of_stage(ranks.layers, sharding).evaluate(letters));
    const PassEvents kept{.forward = {{.tensor = 0, .bytes = output}},
                          .backward = {{.tensor = 0}},
                          .weight_gradients = {},
                          .tensors = 1,
                          .sources = {{.bytes = output}}};
    ranks.events.emplace_back(block_events(kept), block_events(kept));
    ranks.parameters.emplace_back();
  }
  if (!has_units(strategy, request.workload, request.software) && !strategy.step_in_backward) return;
  const ModelParameterExprs of_model =
      model_parameter_exprs(ranks.layers, sharding, strategy.tensor_parallel);
  ranks.units =
      model_units(ranks.layers, evaluate(of_model, letters), strategy, request.workload, request.software);
}

}  // namespace

ReplayedRanks replayed_ranks(const Plan& plan, Sources sources) {
  const Request& request = plan.request;
  ReplayedRanks ranks{
      .plan = plan,
      .layers = *plan.layers.tables,
      .order = same_liveness(schedule_shape(request.strategy, replayed_microbatches(request))),
      .places = stage_places(*plan.layers.tables, request.strategy),
      .reduces = reduces_in_passes(request.strategy, request.workload, request.software),
      .grows = grows_gradients(request.strategy, request.workload, request.software),
      .gathers = gathers_in_passes(request.strategy),
      .units = {},
      .events = {},
      .parameters = {}};
  find_events(ranks, sources);
  return ranks;
}

std::vector<std::vector<StageMember>> members_of(const ReplayedRanks& ranks, std::int64_t rank) {
  const Recomputation& recompute = ranks.plan.request.strategy.recompute;
  const bool in_root = ranks.plan.request.software.sharding.ends_in_root;
  std::vector<std::vector<StageMember>> chunks;
  const ScheduleShape& shape = ranks.order.shape();
  for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    const std::int64_t stage = stage_of(shape, rank, chunk);
    const StagePlace& place = ranks.places[index(stage)];
    std::vector<StageMember>& members = chunks.emplace_back();
    std::size_t tensors = 0;
    std::int64_t layer = 0;
    for (std::int64_t before = 0; before < stage; ++before) layer += ranks.places[index(before)].layers;
    const auto add = [&](StageMember member, std::int64_t count) {
      const bool divided = member.kind < ranks.layers.kinds.size() &&
                           ranks.layers.kinds[member.kind].position == KindPosition::layer;
      for (std::int64_t n = 0; n < count; ++n) {
        member.first = tensors;
        member.layer = divided ? layer++ : -1;
        members.push_back(member);
        tensors += ranks.events_of(member).tensors;
      }
    };
    const auto add_ends = [&](KindPosition position) {
      for (std::size_t i = 0; i < ranks.layers.kinds.size(); ++i) {
        if (ranks.layers.kinds[i].position != position) continue;
        const bool again = is_layer(ranks.layers.kinds[i]) && recomputes_all_layers(recompute);
        add({.kind = i, .recomputed = again, .rooted = in_root}, place.of_kind[i]);
      }
    };
    add_ends(KindPosition::first);
    visit_kept_layers(place, recompute, [&](const KeptLayers& of) {
      add({.kind = of.kind, .recomputed = of.recomputed}, of.count);
    });
    add_ends(KindPosition::last);
    const bool sends = stage + 1 < stages_of(shape);
    const std::size_t kinds = ranks.layers.kinds.size();
    if (sends && ranks.events.size() > kinds) add({.kind = kinds}, 1);
  }
  return chunks;
}

}  // namespace headroom
