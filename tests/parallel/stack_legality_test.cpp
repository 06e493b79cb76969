// What a stack has not is refused by the name of the stack.
#include "headroom/parallel/stack_legality.hpp"

#include <doctest/doctest.h>

#include "headroom/io/software_file.hpp"

namespace headroom {

TEST_CASE("stack: exchanges and precisions are those that it lists, where they are used") {
  const Software titan = read_software("torchtitan-2025");
  const auto where = [](const Software& software, const Strategy& strategy) {
    const std::vector<Problem> problems = stack_illegalities(software, strategy);
    return problems.empty() ? std::string() : problems.front().where;
  };
  Strategy strategy{.data_parallel = 2, .data_sharding = DataSharding::zero3};
  CHECK(where(titan, strategy).empty());
  strategy.cp_comm = CpComm::a2a;
  CHECK(where(titan, strategy).empty());
  strategy.context_parallel = 2;
  CHECK(where(titan, strategy) == "cp_comm");
  CHECK(where(read_software("megatron-core-2025"), strategy).empty());
  strategy.cp_comm = CpComm::all_gather;
  strategy.moe_dispatcher = Dispatcher::hybridep;
  CHECK(where(titan, strategy).empty());
  strategy.expert_parallel = 2;
  CHECK(where(titan, strategy) == "moe_dispatcher");
  strategy.moe_dispatcher = Dispatcher::deepep;
  strategy.precision = Precision::fp8_delayed;
  CHECK(where(titan, strategy) == "precision");
  strategy.precision = Precision::mxfp8;
  CHECK(where(titan, strategy).empty());
  CHECK(where(Software{}, strategy).empty());
}

}  // namespace headroom
