// The Chrome trace, read back as JSON.
#include "headroom/report/trace.hpp"

#include <algorithm>
#include <map>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include "headroom/memory/rank.hpp"
#include "headroom/schedule/replay.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

using Json = nlohmann::json;

Trace trace_of(const ScheduleShape& shape, const ScheduleTimes& times,
               const std::vector<StageActivations>& checkpointed, const std::vector<StageActivations>& full) {
  Trace trace;
  trace.end =
      replay_schedule(shape, times, [&](const ReplayedStep& step) { trace.steps.push_back(step); }).makespan;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    const std::int64_t window = times.windows.empty() ? 0 : times.windows[static_cast<std::size_t>(rank)];
    trace.activations.push_back(activations_by_step(checkpointed, full, window, shape, rank));
    trace.resident.push_back({.state = 100_MiB * static_cast<double>(rank + 1), .reserved = 7_B});
  }
  return trace;
}

std::string text_of(const Trace& trace) {
  std::string text;
  chrome_trace(streamed(trace), [&](const std::string& part) { text += part; });
  return text;
}

std::vector<Json> events_of(const Trace& trace, const std::string& phase) {
  std::vector<Json> events;
  const Json json = Json::parse(text_of(trace));
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == phase) events.push_back(event);
  }
  return events;
}

// Two ranks, one microbatch, rank 1 keeping checkpoints. In units of 1 s and 1 GiB.
Trace small_trace() {
  const ScheduleShape shape{.ranks = 2, .microbatches = 1};
  const ScheduleTimes times{
      .stages = {{Seconds(1), Seconds(0), Seconds(2)}, {Seconds(1), Seconds(1), Seconds(2)}},
      .links = {Seconds(0.5), Seconds(0)}};
  const std::vector<StageActivations> stages{{.layers = {{1, 8_GiB, 0_GiB}}},
                                             {.layers = {{2, 1_GiB, 4_GiB}}}};
  Trace trace = trace_of(shape, times, stages, stages);
  trace.resident = {{32_GiB, 2_GiB}, {16_GiB, 2_GiB}};
  return trace;
}

using Curve = std::vector<std::pair<double, double>>;  // seconds, GiB

std::map<std::string, Curve> curves_of(const Trace& trace) {
  std::map<std::string, Curve> curves;
  for (const Json& event : events_of(trace, "C")) {
    curves[event["name"]].emplace_back(event["ts"].get<double>() / 1e6, event["args"]["GiB"]);
  }
  return curves;
}

}  // namespace

TEST_CASE("trace: the text comes in parts, whatever its length") {
  const ScheduleShape shape{.ranks = 4, .microbatches = 512};
  const std::vector<PassTimes> passes(4, {Seconds(1), Seconds(1), Seconds(2)});
  const ScheduleTimes times{.stages = passes, .links = std::vector<Seconds>(4, Seconds(0))};
  const std::vector<StageActivations> stages(4, {.layers = {{1, 8_GiB, 0_GiB}}});
  std::size_t parts = 0;
  std::size_t longest = 0;
  std::string text;
  const Trace trace = trace_of(shape, times, stages, stages);
  chrome_trace(streamed(trace), [&](const std::string& part) {
    ++parts;
    longest = std::max(longest, part.size());
    text += part;
  });
  CHECK(parts > 5);
  CHECK(longest < (1 << 16) + 1000);
  CHECK(Json::parse(text)["traceEvents"].size() > 4 * 512 * 3);
}

TEST_CASE("trace: one process with a track for each rank") {
  const std::vector<Json> names = events_of(small_trace(), "M");
  const auto has = [&](const char* text) {
    return std::count(names.begin(), names.end(), Json::parse(text)) == 1;
  };
  CHECK(has(R"({"ph":"M","pid":0,"name":"process_name","args":{"name":"pipeline"}})"));
  CHECK(has(R"({"ph":"M","pid":0,"tid":0,"name":"thread_name","args":{"name":"rank 0"}})"));
  CHECK(has(R"({"ph":"M","pid":0,"tid":1,"name":"thread_name","args":{"name":"rank 1"}})"));
  CHECK(has(R"({"ph":"M","pid":0,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}})"));
}

TEST_CASE("trace: what each rank does, in microseconds") {
  const std::vector<Json> spans = events_of(small_trace(), "X");
  const auto span = [](int rank, const char* name, double start, double length) {
    return Json{{"ph", "X"},
                {"pid", 0},
                {"tid", rank},
                {"name", name},
                {"ts", 1e6 * start},
                {"dur", 1e6 * length},
                {"args", {{"microbatch", 0}, {"virtual_stage", 0}}}};
  };
  CHECK(spans == std::vector<Json>{span(0, "forward", 0, 1), span(0, "transfer", 1, 0.5),
                                   span(1, "forward", 1.5, 1), span(1, "recompute", 2.5, 1),
                                   span(1, "backward", 3.5, 2), span(1, "transfer", 5.5, 0.5),
                                   span(0, "backward", 6, 2)});
}

TEST_CASE(
    "trace: memory rises with a forward pass, peaks in a recomputation and falls after the backward pass") {
  std::map<std::string, Curve> curves = curves_of(small_trace());
  CHECK(curves.size() == 2);
  CHECK(curves["memory (GiB) rank 0"] == Curve{{0, 34}, {1, 42}, {8, 34}, {8, 34}});
  CHECK(curves["memory (GiB) rank 1"] == Curve{{0, 18}, {2.5, 20}, {2.5, 24}, {3.5, 20}, {5.5, 18}, {8, 18}});
}

TEST_CASE("trace: work outside the passes, with any name") {
  Trace trace = small_trace();
  trace.spans = {{.name = "\"optimizer\"", .rank = 1, .start = Seconds(8), .end = Seconds(9)}};
  trace.end = Seconds(10);
  const Json last = events_of(trace, "X").back();
  CHECK(last["name"] == "\"optimizer\"");
  CHECK(last["tid"] == 1);
  CHECK(last["ts"] == 8e6);
  CHECK(curves_of(trace)["memory (GiB) rank 0"].back().first == 10);
}

TEST_CASE("trace: the counter's maximum is the rank's peak and its end the iteration's") {
  CHECK(rc::check([] {
    const auto any_stage = [](std::int64_t lowest_recompute) {
      StageActivations stage{.embedding = Bytes(*rc::gen::inRange(0, 50)),
                             .head = Bytes(*rc::gen::inRange(0, 50))};
      for (int run = 0; run < 2; ++run) {
        stage.layers.push_back(
            {*rc::gen::inRange(1, 4), Bytes(*rc::gen::inRange(1, 50)),
             Bytes(static_cast<double>(*rc::gen::inRange<std::int64_t>(0, 500) * lowest_recompute))});
      }
      return stage;
    };
    const std::int64_t p = *rc::gen::inRange(1, 5);
    const bool interleaved = *rc::gen::arbitrary<bool>();
    const std::int64_t m = interleaved ? *rc::gen::inRange(1, 4) : 1;
    const ScheduleShape shape{
        interleaved ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward, p, m,
        p * *rc::gen::inRange(1, 9)};
    ScheduleTimes times;
    std::vector<StageActivations> checkpointed;
    std::vector<StageActivations> full;
    for (std::int64_t stage = 0; stage < p * m; ++stage) {
      times.stages.push_back({Seconds(0.013), Seconds(0.001 * *rc::gen::inRange(0, 9)), Seconds(0.027)});
      checkpointed.push_back(any_stage(1));
      full.push_back(any_stage(0));
    }
    times.links.assign(static_cast<std::size_t>(p), Seconds(0.0003));
    times.windows.assign(static_cast<std::size_t>(p), *rc::gen::inRange(0, 3));

    const Trace trace = trace_of(shape, times, checkpointed, full);
    for (const auto& [name, curve] : curves_of(trace)) {
      const auto rank = std::stoll(name.substr(name.rfind(' ')));
      const auto index = static_cast<std::size_t>(rank);
      const RankActivations estimate =
          rank_activations(checkpointed, full, times.windows[index], shape, rank);
      const ResidentMemory& resident = trace.resident[index];
      const Bytes peak = resident.state + total(estimate.at_peak) + resident.reserved;
      const auto highest = std::max_element(curve.begin(), curve.end(),
                                            [](const auto& x, const auto& y) { return x.second < y.second; });
      RC_ASSERT(Bytes(highest->second * gibi) == peak);
      RC_ASSERT(curve.back().first == trace.end.count() * 1e6 / 1e6);
      RC_ASSERT(std::is_sorted(curve.begin(), curve.end(),
                               [](const auto& x, const auto& y) { return x.first < y.first; }));
    }
  }));
}

TEST_CASE(
    "trace: of a plan, each rank's counter peaks at its estimate and the last ends with the iteration") {
  for (const auto policy : {RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full}) {
    Request request = with_both_techniques(gpt3_timed());
    request.strategy.recompute.policy = policy;
    request.strategy.recompute.window = policy == RecomputePolicy::full;
    request.strategy.data_parallel = 2;
    request.workload.global_batch = 32;
    const Plan plan = account(evaluate(request));
    double end = 0;
    const auto curves = curves_of(headroom::trace_of(plan));
    REQUIRE(curves.size() == plan.ranks.size());
    for (const auto& [name, curve] : curves) {
      const auto rank = static_cast<std::size_t>(std::stoll(name.substr(name.rfind(' '))));
      double highest = 0;
      for (const auto& [seconds, gib] : curve) {
        highest = std::max(highest, gib);
        end = std::max(end, seconds);
      }
      CHECK(highest == doctest::Approx(total(plan.ranks[rank]).count() / gibi).epsilon(1e-9));
    }
    CHECK(end == doctest::Approx(plan.timing->iteration.total.count()).epsilon(1e-9));
  }
}

}  // namespace headroom
