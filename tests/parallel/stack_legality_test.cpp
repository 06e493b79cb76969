// What a stack has not is refused by the name of the stack.
#include <algorithm>
#include <string_view>

#include <doctest/doctest.h>

#include "headroom/io/software_file.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stack_defaults.hpp"

namespace headroom {

TEST_CASE("stack: if no schedule is named, a pipeline takes one of the stack's") {
  const Software maxtext = read_software("maxtext-2025");
  CHECK(default_schedule(maxtext, 1) == ScheduleKind::gpipe);
  CHECK(default_schedule(maxtext, 4) == ScheduleKind::looped_bfs);
  CHECK(default_schedule(read_software("dualpipe-2025"), 1) == ScheduleKind::dualpipe);
  CHECK(default_schedule(read_software("own"), 1) == ScheduleKind::one_forward_one_backward);
  CHECK(default_schedule(read_software("own"), 2) == ScheduleKind::interleaved);
}

TEST_CASE("stack: exchanges and precisions are those that it lists, where they are used") {
  const Software titan = read_software("torchtitan-2025");
  Strategy strategy{.data_parallel = 2, .data_sharding = DataSharding::zero3};
  const auto breaks = [&](std::string_view field, const Software& software) {
    const std::vector<Problem> problems = stack_illegalities(software, strategy);
    return std::any_of(problems.begin(), problems.end(),
                       [&](const Problem& problem) { return problem.where == field; });
  };
  strategy.cp_comm = CpComm::a2a;
  CHECK_FALSE(breaks("cp_comm", titan));
  strategy.context_parallel = 2;
  CHECK(breaks("cp_comm", titan));
  CHECK_FALSE(breaks("cp_comm", read_software("megatron-core-2025")));
  strategy.cp_comm = CpComm::all_gather;
  CHECK_FALSE(breaks("cp_comm", titan));
  strategy.moe_dispatcher = Dispatcher::hybridep;
  CHECK_FALSE(breaks("moe_dispatcher", titan));
  strategy.expert_parallel = 2;
  CHECK(breaks("moe_dispatcher", titan));
  CHECK_FALSE(breaks("moe_dispatcher", Software{}));
  strategy.moe_dispatcher = Dispatcher::deepep;
  strategy.precision = Precision::fp8_delayed;
  CHECK(breaks("precision", titan));
  CHECK_FALSE(breaks("precision", Software{}));
  strategy.precision = Precision::mxfp8;
  CHECK(stack_illegalities(titan, strategy).empty());
}

}  // namespace headroom
