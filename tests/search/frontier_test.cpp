// The recomputation frontier against brute force: every set of ops and every number of layers, and every assignment of sets to
// pipeline ranks.
#include "headroom/search/frontier.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/rank.hpp"
#include "headroom/memory/reserves.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/model/op_table.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/schedule/order.hpp"
#include "headroom/search/frontier_batches.hpp"

namespace headroom {
namespace {

Request request_for(const std::string& model, const std::vector<std::string>& overrides,
                    const Strategy& strategy, std::int64_t batch) {
  Request request{.model = read_model(model, overrides),
                  .system = read_system("dgx-a100-80g"),
                  .software = read_software("megatron-2022"),
                  .strategy = strategy};
  if (strategy.virtual_pipeline > 1) request.strategy.schedule = ScheduleKind::interleaved;
  request.workload = {.global_batch = batch, .sequence = request.model.sequence};
  return request;
}

Request paper_request(const std::string& model, std::int64_t p, std::int64_t m, std::int64_t b,
                      std::int64_t batch) {
  return request_for(model, {},
                     {.tensor_parallel = 8,
                      .pipeline_parallel = p,
                      .virtual_pipeline = m,
                      .micro_batch = b,
                      .sequence_parallel = true},
                     batch);
}

struct Score {
  Bytes peak;
  Seconds iteration;
  friend bool operator==(const Score&, const Score&) = default;
};

// Of all sets of ops in the first K layers of every virtual stage.
std::vector<Score> brute_force(const Request& request, std::int64_t most_layers) {
  const OpTable table = layer_ops(request.model.architecture);
  Composer composer(request);  // whose questions are held to whole accounts by tests of their own
  const Layout layout = composer.layout(request.strategy);
  std::vector<Score> scores;
  for (std::uint64_t ops = 0; ops < std::uint64_t{1} << table.ops().size(); ++ops) {
    for (std::int64_t layers = 1; layers <= (ops == 0 ? 1 : most_layers); ++layers) {
      Strategy asked = request.strategy;
      if (ops != 0) asked.recompute = {.policy = RecomputePolicy::ops, .layers = layers};
      for (std::size_t i = 0; i < table.ops().size(); ++i) {
        if (OpSet(ops).contains(i)) asked.recompute.ops.emplace_back(table.ops()[i].name);
      }
      scores.push_back({layout.peak(asked).bytes, layout.iteration(asked)});
    }
  }
  std::sort(scores.begin(), scores.end(), [](const Score& x, const Score& y) {
    return std::tie(x.iteration, x.peak) < std::tie(y.iteration, y.peak);
  });
  std::vector<Score> front;
  for (const Score& score : scores) {
    if (front.empty() || score.peak < front.back().peak) front.push_back(score);
  }
  return front;
}

void check_uniform(const Request& request, std::int64_t most_layers) {
  const Frontier frontier(request);
  const std::vector<FrontierPoint> front = frontier.uniform();
  std::vector<Score> found;
  for (const FrontierPoint& point : front) found.push_back({point.peak, point.iteration});
  CHECK(found == brute_force(request, most_layers));
  for (const FrontierPoint& point : front) {
    CHECK(frontier.point(point.recompute) == point);
    REQUIRE(frontier.staged(point.peak).has_value());
    CHECK(frontier.staged(point.peak)->iteration <= point.iteration);
  }
  CHECK(Frontier(request).uniform() == front);
}

TEST_CASE("frontier: all ranks alike is as evaluating every set and every number of layers") {
  check_uniform(request_for("gpt2-xl", {"layers=2"}, {.tensor_parallel = 5, .pipeline_parallel = 2}, 8), 1);
  check_uniform(request_for("llama-2-7b", {"layers=6", "kernels.attention=flash"},
                            {.tensor_parallel = 8, .pipeline_parallel = 2, .sequence_parallel = true}, 6),
                3);
  Request exact = request_for("gpt3-13b", {"layers=4"},
                              {.tensor_parallel = 2, .pipeline_parallel = 2, .virtual_pipeline = 2}, 4);
  exact.detail = Detail::exact;
  exact.strategy.keep_pipeline_outputs = true;
  check_uniform(exact, 1);
}

TEST_CASE("frontier: a reference model runs its forward pass at every point") {
  Request request = request_for("llama-2-7b", {"layers=3", "kernels.attention=flash"},
                                {.tensor_parallel = 8, .sequence_parallel = true}, 6);
  request.workload.reference_model = true;
  check_uniform(request, 3);
}

TEST_CASE("frontier: layers that do not divide among the chunks of a rank") {
  check_uniform(request_for("llama-2-7b", {"layers=5", "kernels.attention=flash"},
                            {.tensor_parallel = 4, .pipeline_parallel = 2, .virtual_pipeline = 2}, 4),
                2);
}

TEST_CASE("frontier: weights and gradients that ranks divide, and schedules with passes for weights") {
  Request sharded =
      request_for("llama-2-7b", {"layers=2", "kernels.attention=flash"}, {.data_parallel = 8}, 16);
  sharded.software = read_software("nemo-2025");
  sharded.software.memory.backward_buffers = false;  // sets are not compared by what a backward pass adds
  // Gathers of several milliseconds, under which recomputation hides some.
  sharded.system.performance->rates.collectives.ring_bandwidth.value = BytesPerSecond(20e9);
  for (const DataSharding sharding : {DataSharding::zero2, DataSharding::zero3}) {
    sharded.strategy.data_sharding = sharding;
    check_uniform(sharded, 2);
  }
  const auto on = [](ScheduleKind schedule, std::int64_t chunks) {
    Request request = request_for("llama-2-7b", {"layers=4", "kernels.attention=flash"},
                                  {.tensor_parallel = 8, .pipeline_parallel = 2}, 8);
    request.strategy.virtual_pipeline = chunks;
    request.strategy.schedule = schedule;
    request.software = read_software("zero-bubble-2023");
    request.software.schedules.clear();
    request.software.memory.backward_buffers = false;
    return request;
  };
  check_uniform(on(ScheduleKind::zero_bubble_h1, 1), 2);
  check_uniform(on(ScheduleKind::zero_bubble_v, 2), 1);
  check_uniform(on(ScheduleKind::dualpipe_v, 2), 1);
  check_uniform(on(ScheduleKind::dualpipe, 1), 2);
  // A stack that counts what backward passes add: the least that any policy needs is on the front.
  Request counted = on(ScheduleKind::zero_bubble_h1, 1);
  counted.software.memory.backward_buffers = true;
  const Frontier frontier(counted);
  CHECK(frontier.uniform().back().peak <= frontier.point({.policy = RecomputePolicy::full}).peak);
  for (const FrontierPoint& point : frontier.uniform()) {
    REQUIRE(frontier.staged(point.peak).has_value());
    CHECK(frontier.staged(point.peak)->iteration <= point.iteration);
  }
  check_uniform(on(ScheduleKind::looped_bfs, 2), 1);
}

struct Assignment {
  Bytes peak;
  Seconds iteration;
};

// What every pipeline rank recomputes in its one layer, by the functions that an evaluation is put together from.
class Assigned {
 public:
  explicit Assigned(const Request& request)
      : request_(request),
        kept_(model_activations(request.model, request.strategy, request.workload, request.detail)),
        cost_(model_cost(
            request.model, request.strategy,
            setting_of(request.model, request.strategy, request.workload, request.system.devices_per_node,
                       *request.system.performance, request.software))),
        places_(stage_places(request.model, request.strategy)),
        parameters_(parameters_by_rank(request.model, request.strategy, request.workload)),
        composer_(request),
        layout_(composer_.layout(request.strategy)) {}

  Assignment operator()(const std::vector<LayerChoice>& by_rank) {
    const auto& [model, system, software, strategy, workload, detail, margin, insisted] = request_;
    const ScheduleShape shape = schedule_shape(strategy, microbatches(strategy, workload));
    std::vector<StageActivations> stages;
    std::vector<StageCost> costs;
    for (std::size_t rank = 0; rank < places_.size(); ++rank) {
      const KindChoices choice{by_rank[rank]};
      const LayerMix mix{.first = choice, .rest = choice, .first_layers = places_[rank].layers};
      stages.push_back(stage_activations(mix, places_[rank], kept_));
      costs.push_back(stage_cost(mix, places_[rank], cost_));
    }
    Assignment result;
    for (std::size_t rank = 0; rank < places_.size(); ++rank) {
      const RankMemory memory{.state = model_state(model, strategy, workload, parameters_[rank]),
                              .activations = rank_activations(stages, shape, static_cast<std::int64_t>(rank)),
                              .reserved = reserved(system, software, strategy)};
      result.peak = std::max(result.peak, total(memory));
    }
    result.iteration = layout_.iteration(costs);
    return result;
  }

 private:
  const Request& request_;
  ModelActivations kept_;
  ModelCost cost_;
  std::vector<StagePlace> places_;
  std::vector<Parameters> parameters_;
  Composer composer_;
  Layout layout_;
};

TEST_CASE("frontier: each rank for itself is as trying every assignment of sets to ranks") {
  // A layer a rank, so that a mix is one set.
  Request request = request_for("gpt2-xl", {"layers=2"}, {.tensor_parallel = 5, .pipeline_parallel = 2}, 6);
  for (const std::int64_t micro_batch : {1, 3}) {
    request.strategy.micro_batch = micro_batch;
    const Frontier frontier(request);
    const std::vector<LayerChoice>& sets = frontier.layer_fronts().front().choices;
    Assigned assigned(request);
    std::vector<Assignment> all;
    for (const LayerChoice& first : sets) {
      for (const LayerChoice& second : sets) all.push_back(assigned({first, second}));
    }
    Bytes least = all.front().peak;
    Bytes most;
    for (const Assignment& one : all) {
      least = std::min(least, one.peak);
      most = std::max(most, one.peak);
    }
    CHECK_FALSE(frontier.staged(least - Bytes(1)).has_value());
    for (int part = 0; part <= 16; ++part) {
      const Bytes budget = least + part / 16.0 * (most - least);
      Seconds quickest(1e9);
      for (const Assignment& one : all) {
        if (one.peak <= budget) quickest = std::min(quickest, one.iteration);
      }
      const std::optional<StagedPoint> found = frontier.staged(budget);
      REQUIRE(found.has_value());
      CHECK(found->peak <= budget);
      CHECK(found->iteration == quickest);
    }
  }
}

TEST_CASE("frontier: the point within a budget is the first that fits") {
  const Frontier frontier(paper_request("gpt3-175b", 8, 3, 1, 64));
  const std::vector<FrontierPoint> front = frontier.uniform();
  for (std::size_t i = 0; i < front.size(); ++i) {
    CHECK(within(front, front[i].peak) == &front[i]);
    const FrontierPoint* below = within(front, front[i].peak - Bytes(1));
    CHECK(below == (i + 1 < front.size() ? &front[i + 1] : nullptr));
  }
}

// What every budget of selective recomputation buys: at its own peak there is always something quicker.
TEST_CASE("K22 table 3: the least time within the memory of selective recomputation") {
  struct Run {
    Request request;
    bool same_tensors;  // the uniform optimum keeps what selective recomputation keeps
  };
  for (const Run& run :
       {Run{paper_request("gpt-22b", 1, 1, 4, 4), false}, Run{paper_request("gpt3-175b", 8, 3, 1, 64), true},
        Run{paper_request("mt-nlg-530b", 35, 3, 1, 280), true},
        Run{paper_request("gpt-1t", 64, 1, 1, 512), true}}) {
    CAPTURE(run.request.model.name);
    const Frontier frontier(run.request);
    const FrontierPoint selective = frontier.point({.policy = RecomputePolicy::selective});
    const std::vector<FrontierPoint> front = frontier.uniform();
    const FrontierPoint* best = within(front, selective.peak);
    REQUIRE(best != nullptr);
    CHECK(best->iteration < selective.iteration);
    CHECK((best->layers.front().bytes.kept == selective.layers.front().bytes.kept) == run.same_tensors);
    const std::optional<StagedPoint> staged = frontier.staged(selective.peak);
    REQUIRE(staged.has_value());
    CHECK(staged->iteration <= best->iteration);
    CHECK(front.front() == frontier.point({}));
    CHECK(front.back() == frontier.point({.policy = RecomputePolicy::full}));
  }
}

TEST_CASE("frontier: windows are as evaluating every set with one") {
  Request request = request_for("llama-2-7b", {"layers=4", "kernels.attention=flash"},
                                {.tensor_parallel = 4, .pipeline_parallel = 2}, 6);
  const Frontier frontier(request);
  const OpTable table = layer_ops(request.model.architecture);
  const Bytes least = frontier.uniform().back().peak;
  const Bytes most = frontier.uniform().front().peak;
  CHECK_FALSE(frontier.windowed(least - Bytes(1)).has_value());
  for (const double part : {0.3, 0.8}) {
    request.system.memory = least + part * (most - least);
    Seconds quickest(1e9);
    for (std::uint64_t ops = 1; ops < std::uint64_t{1} << table.ops().size(); ++ops) {
      request.strategy.recompute = {.policy = RecomputePolicy::ops, .window = true};
      for (std::size_t i = 0; i < table.ops().size(); ++i) {
        if (OpSet(ops).contains(i)) request.strategy.recompute.ops.emplace_back(table.ops()[i].name);
      }
      const Evaluation evaluation = evaluate(request);
      const auto* plan = std::get_if<Plan>(&evaluation);
      if (plan != nullptr) quickest = std::min(quickest, plan->timing->iteration.total);
    }
    const std::optional<FrontierPoint> found = frontier.windowed(request.system.memory);
    REQUIRE(found.has_value());
    CHECK(found->iteration == quickest);
  }
}

TEST_CASE("frontier: larger microbatches, up to the first that cannot fit") {
  const Request request = paper_request("gpt3-175b", 8, 3, 1, 64);
  const std::vector<BatchChoice> choices = batch_choices(request, request.system.memory);
  REQUIRE(choices.size() > 1);
  CHECK(choices[0].micro_batch == 1);
  CHECK(choices[1].micro_batch == 2);
  for (const BatchChoice& choice : choices) {
    Request asked = request;
    asked.strategy.micro_batch = choice.micro_batch;
    CHECK(choice.staged == Frontier(asked).staged(request.system.memory));
    CHECK(choice.staged.has_value() == (&choice != &choices.back() || choice.micro_batch == 8));
  }
}

TEST_CASE("frontier: needs a legal layout and a system whose performance is known") {
  Request request = paper_request("gpt3-175b", 8, 3, 1, 64);
  request.strategy.tensor_parallel = 7;
  request.system.performance.reset();
  try {
    const Frontier frontier(request);
    FAIL("no error");
  } catch (const InputError& error) {
    CHECK(error.problems().size() > 1);
  }
}

}  // namespace
}  // namespace headroom
