// What a search leaves out: nothing that the table of rules calls legal, of the values that a space names, and no more.
#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "headroom/core/counts.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/search/insisted.hpp"
#include "headroom/search/space.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

constexpr std::int64_t gpus = 8;
const std::vector<RecomputePolicy> policies{RecomputePolicy::none, RecomputePolicy::selective,
                                            RecomputePolicy::selective_op, RecomputePolicy::full};

Space space_with_all() {
  return {.devices = gpus,
          .context_parallel = {.most = 2},
          .virtual_pipeline = {.most = 2},
          .expert_tensor_parallel = {.most = 2},
          .micro_batch = {.most = 2},
          .no_reshard_after_forward = {false, true},
          .recompute = policies,
          .recompute_layers = false,
          .recompute_modules = {.of_model = false},
          .recompute_window = true,
          .schedules = {ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward,
                        ScheduleKind::interleaved, ScheduleKind::zero_bubble_h1, ScheduleKind::dualpipe_v},
          .overlap_expert_all_to_all = {false, true}};
}

// Calls visit(strategy) for each combination of those values, legal or not. What says nothing where an axis has one rank, or a pipeline
// one microbatch, has one value there.
template <class Visit>
void visit_all_values(const Request& request, const Space& space, const Visit& visit) {
  const std::vector<bool> off{false};
  const std::vector<bool> both{false, true};
  Strategy strategy = request.strategy;
  const auto recomputed = [&] {
    for (const RecomputePolicy policy : policies) {
      for (const bool window : policy == RecomputePolicy::none ? off : both) {
        strategy.recompute = {.policy = policy, .window = window};
        visit(strategy);
      }
    }
  };
  const auto sharded = [&] {
    if (replicas(strategy) == 1) {
      strategy.data_sharding = sharding_of_one(request.software, strategy);
      strategy.no_reshard_after_forward = strategy.sync_each_batch = false;
      return recomputed();
    }
    for (const auto& [sharding, name] : spellings<DataSharding>) {
      const bool in_passes = sharding == DataSharding::zero3 && strategy.pipeline_parallel == 1;
      for (const bool keeps : in_passes ? both : off) {
        for (const bool syncs : microbatches(strategy, request.workload) > 1 ? both : off) {
          strategy.data_sharding = sharding;
          strategy.no_reshard_after_forward = keeps;
          strategy.sync_each_batch = syncs;
          recomputed();
        }
      }
    }
  };
  const auto run = [&] {
    for (const std::int64_t b : {1, 2}) {
      if (request.workload.global_batch % (b * strategy.data_parallel) != 0) continue;
      strategy.micro_batch = b;
      for (const bool sequence_parallel : strategy.tensor_parallel > 1 ? both : off) {
        strategy.sequence_parallel = sequence_parallel;
        for (const ScheduleKind schedule : space.schedules) {
          strategy.schedule = schedule;
          for (const bool overlaps : both) {
            strategy.overlap_expert_all_to_all = overlaps;
            sharded();
          }
        }
      }
    }
  };
  for (const std::int64_t t : divisors(gpus)) {
    for (const std::int64_t c : {1, 2}) {
      for (const std::int64_t p : divisors(gpus)) {
        if (gpus % (t * c * p) != 0) continue;
        strategy.tensor_parallel = t;
        strategy.context_parallel = c;
        strategy.pipeline_parallel = p;
        strategy.data_parallel = gpus / (t * c * p);
        for (const std::int64_t m : {1, 2}) {
          if (request.model.layers % (p * m) != 0) continue;  // even layouts
          strategy.virtual_pipeline = m;
          for (const std::int64_t z : {1, 2}) {
            for (const std::int64_t y : divisors(gpus)) {
              strategy.expert_tensor_parallel = z;
              strategy.expert_parallel = y;
              run();
            }
          }
        }
      }
    }
  }
}

std::string key_of(const Strategy& strategy) {
  std::string key;
  for (const Edit& edit : edits_of(strategy)) key += edit.field + "=" + edit.value + " ";
  return key + std::string(name_of(strategy.schedule));
}

void check_pruning(const Request& request) {
  const Space space = space_with_all();
  std::set<std::string> legal;
  const Request insisted = with_insisted(request, space);
  visit_all_values(insisted, space, [&](const Strategy& strategy) {
    if (holds(asked(insisted, strategy), {.whose = all_whose})) legal.insert(key_of(strategy));
  });
  std::set<std::string> visited;
  for (const Strategy& strategy : strategies(request, space)) {
    CHECK(illegalities(request, strategy).empty());
    visited.insert(key_of(strategy));
  }
  CHECK(legal.size() > 50);
  std::vector<std::string> dropped;
  std::set_difference(legal.begin(), legal.end(), visited.begin(), visited.end(),
                      std::back_inserter(dropped));
  std::vector<std::string> kept;
  std::set_difference(visited.begin(), visited.end(), legal.begin(), legal.end(), std::back_inserter(kept));
  CAPTURE(legal.size());
  const std::string first_dropped = dropped.empty() ? "" : dropped.front();
  CAPTURE(first_dropped);
  CHECK(dropped.size() == 0);
  const std::string first_kept = kept.empty() ? "" : kept.front();
  CAPTURE(first_kept);
  CHECK(kept.size() == 0);
}

Request request_on(const char* model, const char* stack) {
  Request request{.model = read_model(model),
                  .system = read_system("dgx-h100-80g"),
                  .software = read_software(stack),
                  .strategy = {},
                  .workload = {.global_batch = 16, .sequence = 2048}};
  request.model = with_attention(std::move(request.model), request.software.attention_kernel);
  request.strategy = with_stack_defaults({}, request.software, request.model);
  return request;
}

TEST_CASE("pruning: a search visits what the rules call legal, and nothing else, on stacks of all kinds") {
  for (const auto& [of, on] :
       {std::pair{"gpt2-small", "megatron-2022"}, std::pair{"mixtral-8x7b", "megatron-core-2025"},
        std::pair{"nemotron-h-8b", "nemo-2025"}, std::pair{"llama-3-8b", "torchtitan-2025"},
        std::pair{"llama-3-8b", "deepspeed-2025"}, std::pair{"llama-3-8b", "own"},
        std::pair{"gpt-oss-20b", "hf-trainer"}}) {
    const std::string model = of;
    const std::string stack = on;
    CAPTURE(model);
    CAPTURE(stack);
    check_pruning(request_on(of, on));
  }
}

TEST_CASE("pruning: nor with what the request says of precision, optimizer, adapters and the host") {
  Request request = request_on("llama-3-8b", "megatron-core-2025");
  for (const Edits& edits :
       {Edits{{"precision", "fp8"}, {"fp8_param_gather", "yes"}}, Edits{{"optimizer", "muon"}},
        Edits{{"lora_rank", "12"}}, Edits{{"offload_modules", "core_attn,attn_proj"}},
        Edits{{"offload_modules", "layer_input"}}, Edits{{"shard_size", "0"}, {"offload_layers", "4"}}}) {
    CAPTURE(flags_of(edits));
    Request asking = request;
    for (const Edit& edit : edits) {
      if (edit.value != "0") REQUIRE(apply(edit, asking.strategy, asking.workload).empty());
    }
    check_pruning(asking);
  }
}

TEST_CASE("pruning: the modules that a search recomputes by itself are legal") {
  for (const bool overlaps : {false, true}) {
    Request request = request_on("deepseek-v2-lite", "megatron-core-2025");
    request.software.overlap_shared_experts = overlaps;
    int with_modules = 0;
    for (const Strategy& strategy : strategies(request, {.devices = gpus, .micro_batch = {.only = {1}}})) {
      CAPTURE(key_of(strategy));
      CHECK(holds(asked(request, strategy), all_rules));
      with_modules += strategy.recompute.ops.empty() ? 0 : 1;
    }
    CHECK(with_modules > 100);
  }
}

}  // namespace
}  // namespace headroom
