// Random small requests and spaces, with memory about as large as what strategies need, and trying all of a space.
#pragma once

#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/reserves.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/search/insisted.hpp"
#include "headroom/search/layers_by_memory.hpp"

namespace headroom {

inline std::vector<Strategy> strategies(const Request& base, const Space& space) {
  const Request request = with_insisted(base, space);
  std::vector<Strategy> all;
  visit_layouts(
      request, space,
      [&](const Strategy& layout) {
        visit_strategies(request, layout, sharding_choices(request, space, layout),
                         recomputations(request, space, layout),
                         [&](const Strategy& strategy) { all.push_back(strategy); });
        return true;
      },
      [](const Problem&) {});
  return all;
}

struct PlacedStrategy {
  Strategy strategy;
  std::int64_t place = 0;  // in the order of the space
};

// The same, and behind those of each layout the ones whose layers are placed by memory.
inline std::vector<PlacedStrategy> placed_strategies(const Request& base, const Space& space) {
  const Request request = with_insisted(base, space);
  std::vector<PlacedStrategy> all;
  Composer composer(request);
  std::optional<Layout> balanced;
  LayersByMemory by_memory(request, space);
  std::int64_t place = 0;
  visit_layouts(
      request, space,
      [&](const Strategy& layout) {
        const bool placed = by_memory.applies(layout);
        const std::vector<Recomputation> list = recomputations(request, space, layout);
        const std::vector<ShardingChoice> choices = sharding_choices(request, space, layout);
        const std::int64_t count = std::ssize(list) * std::ssize(choices);
        std::map<std::size_t, std::pair<std::vector<Strategy>, std::vector<std::int64_t>>>
            too_large;  // by choice
        std::int64_t of_layout = 0;
        visit_strategies(request, layout, choices, list, [&](const Strategy& strategy) {
          balanced = composer.layout(with_sharding(layout, sharding_choice(strategy)));
          all.push_back({strategy, place + of_layout});
          if (placed && !strategy.recompute.window &&
              verdict_of(request, balanced->peak(strategy).bytes) != Verdict::fits) {
            const auto choice = std::find(choices.begin(), choices.end(), sharding_choice(strategy));
            auto& [of_choice, places] = too_large[index(choice - choices.begin())];
            of_choice.push_back(strategy);
            places.push_back(place + of_layout + count);
          }
          ++of_layout;
        });
        if (placed) {
          for (const auto& [choice, list_of] : too_large) {
            const Layout of_choice = composer.layout(with_sharding(layout, choices[choice]));
            for (const auto& other : by_memory.fitting(of_choice, list_of.first))
              all.push_back({other.strategy, list_of.second[other.of]});
          }
        }
        place += placed ? 2 * count : count;
        return true;
      },
      [](const Problem&) {});
  return all;
}

inline Request small_request() {
  const auto number = [](const char* key, std::int64_t value) {
    return std::string(key) + "=" + std::to_string(value);
  };
  const std::int64_t heads = *rc::gen::element<std::int64_t>(2, 4, 6, 8);
  const std::int64_t head_size = *rc::gen::element<std::int64_t>(16, 64);
  const std::string kernel = *rc::gen::element<std::string>("unfused", "flash");
  Request request{.model = read_model(*rc::gen::element<std::string>("gpt3-13b", "llama-2-7b"),
                                      {number("heads", heads), number("key_value_heads", heads),
                                       number("hidden", heads * head_size), number("head_size", head_size),
                                       number("feedforward", 4 * heads * head_size),
                                       number("layers", *rc::gen::inRange<std::int64_t>(1, 14)),
                                       number("vocabulary", *rc::gen::element<std::int64_t>(1000, 32000)),
                                       "kernels.attention=" + kernel}),
                  .system = read_system("dgx-a100-80g")};
  request.system.devices_per_node = *rc::gen::element<std::int64_t>(4, 8);
  request.workload = {.global_batch = *rc::gen::inRange<std::int64_t>(1, 33),
                      .sequence = 12 * *rc::gen::inRange<std::int64_t>(1, 100)};
  request.software.microbatch_groups = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) {
    request.software.sharding = {
        .modes = {DataSharding::none, DataSharding::zero1, DataSharding::zero2, DataSharding::zero3},
        .with_pipeline = *rc::gen::arbitrary<bool>(),
        .weights = *rc::gen::element(ShardedWeights::copies, ShardedWeights::main_params),
        .reduction_buffer = *rc::gen::element(ReductionBuffer::unit, ReductionBuffer::bucket),
        .copies_units = *rc::gen::arbitrary<bool>(),
        .ends_in_root = *rc::gen::arbitrary<bool>(),
        .sums_before_reduction = *rc::gen::arbitrary<bool>(),
        .sync_each_batch = *rc::gen::arbitrary<bool>()};
  }
  request.software.memory.keeps_logits = request.workload.global_batch % 2 == 0;
  request.strategy.keep_pipeline_outputs = *rc::gen::arbitrary<bool>();
  request.strategy.gradient_dtype = *rc::gen::element(Dtype::fp32, Dtype::half);
  request.system.memory =
      most_reserved(request.system) + *rc::gen::inRange(1, 1000) * *rc::gen::element(0.2, 1.0, 5.0) * 1_MiB;
  return request;
}

inline Space small_space() {
  using enum ScheduleKind;
  using Policies = std::vector<RecomputePolicy>;
  using Schedules = std::vector<ScheduleKind>;
  const auto pinned = [](std::initializer_list<std::int64_t> values) {
    return Counts{.only = std::vector<std::int64_t>(values)};
  };
  const std::vector<bool> both{true, false};
  const std::vector<bool> yes{true};
  const std::vector<bool> no{false};
  return {
      .devices = *rc::gen::element<std::int64_t>(1, 2, 4, 6, 8, 12, 16),
      .virtual_pipeline =
          *rc::gen::element(Counts{}, pinned({1}), pinned({2}), pinned({1, 2, 3}), Counts{.most = 2}),
      .micro_batch = *rc::gen::element(Counts{}, pinned({2, 3}), Counts{.most = 2}),
      .layouts = *rc::gen::element(Layouts::even, Layouts::any),
      .sequence_parallel = *rc::gen::elementOf(std::vector{both, yes, no}),
      .data_sharding = *rc::gen::elementOf(std::vector<std::vector<DataSharding>>{
          {}, {DataSharding::zero1, DataSharding::none}, {DataSharding::none}}),
      .shard_size = *rc::gen::element(Counts{}, Counts{}, pinned({2, 4})),
      .no_reshard_after_forward = *rc::gen::elementOf(std::vector{both, no}),
      .recompute = *rc::gen::elementOf(
          std::vector<Policies>{{RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full},
                                {RecomputePolicy::selective},
                                {RecomputePolicy::full}}),
      .schedules = *rc::gen::elementOf(std::vector<Schedules>{{one_forward_one_backward, interleaved},
                                                              {gpipe},
                                                              {interleaved},
                                                              {gpipe, one_forward_one_backward, interleaved},
                                                              {one_forward_one_backward, zero_bubble_h1},
                                                              {zero_bubble_h1}})};
}

}  // namespace headroom
