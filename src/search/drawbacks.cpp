#include "headroom/search/drawbacks.hpp"

#include <array>

#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom {
namespace {

// Returns whether groups of so many neighbouring ranks reach beyond a node.
bool leaves_node(const Request& request, std::int64_t ranks) {
  return ranks > request.system.devices_per_node;
}

// Assumed, as what Headroom's users are taken to ask of a change: an uneven layout, or tensor parallelism between
// nodes, must gain 3%, any other drawback half a percent, which is also the least that a change of a search must
// gain (widen.hpp).
constexpr double high_price = 0.03;
constexpr double usual_price = 0.005;

constexpr std::array<Drawback, 17> all_drawbacks{{
    {"uneven_layout", "an uneven layout", high_price,
     [](const Request& request, const Candidate&) {
       return stage_layout(request.model.layers, request.strategy) == StageLayout::uneven;
     }},
    {"tensor_parallel", "tensor parallelism", usual_price,
     [](const Request& request, const Candidate&) { return request.strategy.tensor_parallel > 1; }},
    {"context_parallel", "context parallelism", usual_price,
     [](const Request& request, const Candidate&) { return request.strategy.context_parallel > 1; }},
    {"pipeline_parallel", "pipeline parallelism", usual_price,
     [](const Request& request, const Candidate&) { return request.strategy.pipeline_parallel > 1; }},
    {"virtual_pipeline", "virtual stages", usual_price,
     [](const Request& request, const Candidate&) { return request.strategy.virtual_pipeline > 1; }},
    {"expert_parallel", "expert parallelism", usual_price,
     [](const Request& request, const Candidate&) { return request.strategy.expert_parallel > 1; }},
    {"expert_tensor_parallel", "experts split over ranks", usual_price,
     [](const Request& request, const Candidate&) { return request.strategy.expert_tensor_parallel > 1; }},
    {"shard_size", "groups of shards", usual_price,
     [](const Request& request, const Candidate&) { return request.strategy.shard_size > 0; }},
    {"sharded_gradients", "sharded gradients", usual_price,
     [](const Request& request, const Candidate&) { return shards_gradients(request.strategy); }},
    {"schedule", "another schedule than 1F1B", usual_price,
     [](const Request& request, const Candidate&) {
       return request.strategy.schedule != implied_schedule(request.strategy.virtual_pipeline);
     }},
    {"recompute", "recomputation", usual_price,
     [](const Request& request, const Candidate&) {
       return request.strategy.recompute.policy != RecomputePolicy::none;
     }},
    {"recompute_parts", "recomputation of some layers or modules", usual_price,
     [](const Request& request, const Candidate&) {
       const Recomputation& recompute = request.strategy.recompute;
       return recompute.layers > 0 || recompute.ops.size() > 1 || recompute.window;
     }},
    {"offload", "offloading to the host", usual_price,
     [](const Request& request, const Candidate&) { return offloads(request.strategy.offload); }},
    {"full_memory", "less than a tenth of the memory free", usual_price,
     [](const Request& request, const Candidate& candidate) {
       constexpr double full = 0.9;
       return candidate.peak > full * request.system.memory;
     }},
    {"tensor_between_nodes", "tensor parallelism between nodes", high_price,
     [](const Request& request, const Candidate&) {
       return leaves_node(request, request.strategy.tensor_parallel);
     }},
    {"context_between_nodes", "context parallelism between nodes", usual_price,
     [](const Request& request, const Candidate&) {
       const Strategy& it = request.strategy;
       return it.context_parallel > 1 && leaves_node(request, it.tensor_parallel * it.context_parallel);
     }},
    {"expert_between_nodes", "expert parallelism between nodes", usual_price,
     [](const Request& request, const Candidate&) {
       const Strategy& it = request.strategy;
       return it.expert_parallel > 1 && leaves_node(request, it.expert_parallel * it.expert_tensor_parallel);
     }},
}};

}  // namespace

std::vector<const Drawback*> drawbacks_of(const Request& base, const Candidate& candidate) {
  Request request = base;
  request.strategy = candidate.strategy;
  std::vector<const Drawback*> found;
  for (const Drawback& drawback : all_drawbacks) {
    if (drawback.has(request, candidate)) found.push_back(&drawback);
  }
  return found;
}

double price_of(const std::vector<const Drawback*>& drawbacks) {
  double price = 0;
  for (const Drawback* const drawback : drawbacks) price += drawback->price;
  return price;
}

}  // namespace headroom
