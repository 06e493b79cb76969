#include <doctest/doctest.h>

#include "headroom/calibrate/sample_replay.hpp"
#include "headroom/io/samples_file.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/time/collective.hpp"
#include "paths.hpp"
#include "time/a100.hpp"

namespace headroom {

using tests::about;

TEST_CASE("exchange: latency does not grow with the ranks, the bytes on the wire do") {
  const Performance& a100 = tests::performance();
  CHECK(all_to_all_time(Bytes(8), 8, a100).count() ==
        about(all_to_all_time(Bytes(8), 2, a100).count()).epsilon(0.001));
  const Bytes large = 512_MiB;
  const Seconds two = all_to_all_time(large, 2, a100);
  const Seconds eight = all_to_all_time(large, 8, a100);
  CHECK(two < eight);
  CHECK(eight < send_receive_time(large, a100) + large / 8.0 / a100.rates.collectives.local_bandwidth.value);
}

TEST_CASE("exchange: a small transfer is a launch and a step") {
  const CollectiveRates& rates = tests::performance().rates.collectives;
  const Seconds latency = rates.low_latency_launch.value + rates.low_latency_step.value;
  CHECK(send_receive_time(Bytes(1), tests::performance()).count() == about(latency.count()).epsilon(0.001));
}

TEST_CASE("exchange: a token goes once to each node of its experts, and is handed on there") {
  // 256 experts over 32 GPUs of four nodes, 8 for a token of 7168 elements of 16 bits, as DeepEP was measured in its combine:
  // 124 GB/s received [aiconfigurator, comm/sglang/0.5.6 of h100_sxm, 20 multiprocessors, 4 nodes].
  const Performance performance = *read_system("dgx-h100-80g").performance;
  Bindings letters;
  letters.bind(Symbol::experts, 256).bind(Symbol::experts_per_token, 8).bind(Symbol::expert_parallel, 32);
  letters.bind(Symbol::expert_groups, 1).bind(Symbol::expert_groups_per_token, 1);
  const double ranks = parts_per_token(letters, 32);
  const double nodes = parts_per_token(letters, 4);
  CHECK(ranks == doctest::Approx(7.19).epsilon(0.01));
  CHECK(nodes == doctest::Approx(3.61).epsilon(0.01));
  const Group group{.ranks = 32, .ranks_in_node = 8};
  const Bytes received(65536 * ranks * 7168 * 2);
  const TokenRoute route{.nodes_of_ranks = nodes / ranks};
  const Seconds taken = routed_time(route, received, group, performance);
  CHECK((received / taken).count() == doctest::Approx(124e9).epsilon(0.05));
  CHECK(taken < 0.6 * collective_time(CollectiveKind::all_to_all, received, group, performance));
  // Within a node nothing is handed on.
  const Group node{.ranks = 8, .ranks_in_node = 8};
  CHECK(routed_time(route, received, node, performance) ==
        collective_time(CollectiveKind::all_to_all, received, node, performance));
  // DeepEP's kernels take a time for each token too, which the NICs do not hide.
  const TokenKernelRates& combine = performance.rates.collectives.deepep->combine;
  const TokenRoute counted{.nodes_of_ranks = nodes / ranks, .tokens = 65536, .kernel = &combine};
  const Seconds of_tokens = 65536 * combine.token.value;
  CHECK(routed_time(counted, received, group, performance) - taken > of_tokens);
  CHECK(routed_time(counted, Bytes(0), node, performance) == combine.launch.value + of_tokens);
}

SHARED_TEST_CASE("exchange: measured all-to-alls are met by rates fitted to other collectives") {
  struct Table {
    const char* system;
    const char* file;
    double from_1_mebibyte, below;  // medians of absolute errors; below, all are predicted too short
  };
  for (const Table& table :
       {Table{"dgx-a100-80g", "a100-sxm-80g", 0.09, 0.22}, Table{"dgx-h100-80g", "h100-sxm-80g", 0.11, 0.21},
        Table{"dgx-h200-141g", "h200-sxm-141g", 0.09, 0.42},
        Table{"dgx-b200-180g", "b200-sxm-180g", 0.20, 0.18},
        Table{"gb200-nvl72", "kernels/gb200", 0.20, 0.12}, Table{"gb300-nvl72", "kernels/gb300", 0.20, 0.20},
        Table{"dgx-b300", "kernels/b300_sxm", 0.20, 0.22}}) {
    CAPTURE(table.system);
    const auto file = tests::shared_file(std::string("data/microbench/") + table.file + "_nccl_fp16.csv");
    if (!file) continue;
    const SampleReplay replayed =
        replay(read_samples(file->string()).samples, *read_system(table.system).performance);
    std::size_t groups = 0;
    for (const ErrorGroup& group : replayed.groups) {
      if (!group.name.starts_with("all_to_all")) continue;
      ++groups;
      CHECK(group.median_absolute <=
            (group.name.ends_with("from 1 MiB") ? table.from_1_mebibyte : table.below));
    }
    CHECK(groups == 2);
    CHECK(replayed.unmodelled.empty());
  }
}

}  // namespace headroom
