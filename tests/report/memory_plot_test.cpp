// Memory over time in the terminal, and the units of a pass in a trace.
#include "headroom/report/memory_plot.hpp"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

// Llama 2 7B, fully sharded over 8 GPUs.
Request sharded() {
  Request request = gpt3_timed();
  request.model = read_model("llama-2-7b");
  request.software = read_software("torchtitan-2025");
  request.strategy = {.data_parallel = 8, .data_sharding = DataSharding::zero3};
  request.workload = {.global_batch = 16, .sequence = 4096};
  return request;
}

}  // namespace

TEST_CASE("memory plot: from what a rank holds throughout to its peak") {
  const Plan plan = account(evaluate(with_both_techniques(gpt3_timed())));
  const Trace trace = trace_of(plan);
  const Seconds end = plan.timing->iteration.schedule.makespan;
  const std::string plot = memory_plot(trace, 0, end, {.columns = 60});
  CHECK(plot.starts_with(fmt::format("{:6.2f} ", peak(plan).count() / gibi)));
  std::vector<std::string> lines;
  for (std::size_t from = 0; from < plot.size(); from = plot.find('\n', from) + 1)
    lines.push_back(plot.substr(from, plot.find('\n', from) - from));
  REQUIRE(lines.size() == 10);
  for (std::size_t i = 0; i + 2 < lines.size(); ++i) {
    CHECK(lines[i].size() <= 60);
    CHECK(std::count(lines[i].begin(), lines[i].end(), '#') > 0);
    if (i > 0) {
      // Whoever holds more also holds less.
      CHECK(std::count(lines[i].begin(), lines[i].end(), '#') >=
            std::count(lines[i - 1].begin(), lines[i - 1].end(), '#'));
    }
  }
  const ResidentMemory& resident = trace.resident[0];
  CHECK(lines[8].starts_with(fmt::format("{:6.2f} =", (resident.state + resident.reserved).count() / gibi)));
}

TEST_CASE(
    "trace: each unit of divided weights is gathered and reduced in every pass, beside another's work") {
  const Plan plan = account(evaluate(sharded()));
  const Trace trace = trace_of(plan);
  const auto spans_named = [&](const std::string& start, bool collective) {
    return std::count_if(trace.spans.begin(), trace.spans.end(), [&](const TraceSpan& span) {
      return span.name.starts_with(start) && span.collective == collective;
    });
  };
  constexpr std::int64_t microbatches = 2;
  constexpr std::int64_t units = 32 + 2;
  // The last unit of a forward pass is the first of the backward pass, and not gathered again.
  CHECK(spans_named("gather ", true) == microbatches * (2 * units - 1));
  CHECK(spans_named("reduce ", true) == microbatches * units);
  CHECK(spans_named("layer ", false) == microbatches * 2 * 32);
  for (const TraceSpan& span : trace.spans) {
    CHECK(span.start <= span.end);
    CHECK(span.end <= (1 + 1e-9) * trace.end);
  }
}

}  // namespace headroom
