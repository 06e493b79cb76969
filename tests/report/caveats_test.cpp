#include "headroom/report/caveats.hpp"

#include <doctest/doctest.h>

#include "headroom/model/parts/mixers.hpp"

namespace headroom {
namespace {

TEST_CASE("warnings of how sure a figure is are those of rates, all others say what to change") {
  for (const char* const code :
       {"assumed_rates", "extrapolated_message_size", "extrapolated_flash_attention",
        "transferred_step_rates", "flash_attention_assumed", "scaled_product_rates", "fp8_attention_rates"}) {
    CAPTURE(code);
    CHECK(is_of_evidence({.code = code, .text = ""}));
  }
  for_each_mixer([](const auto& row, auto) {
    if (!row.warning.code.empty()) CHECK(is_of_evidence({.code = std::string(row.warning.code), .text = ""}));
  });
  for (const char* const code :
       {"no_launcher_flag", "tensor_parallel_across_nodes", "hosts_not_filled", "launch_bound",
        "selective_saves_little", "sequence_exceeds_positions", "unaligned_heads", "moe_imbalance_capped"}) {
    CAPTURE(code);
    CHECK(!is_of_evidence({.code = code, .text = ""}));
  }
}

TEST_CASE("a short answer counts what says how sure figures are, and a verbose one lists it") {
  Plan plan;
  plan.assumptions = {{.text = "a", .source = ""}, {.text = "b", .source = ""}};
  CHECK(caveats_text(plan, Style()) == "2 assumptions: -v lists them\n");
  plan.warnings = {{.code = "assumed_rates", .text = "guessed"}};
  CHECK(caveats_text(plan, Style()) == "2 assumptions, 1 warning: -v lists them\n");
  plan.warnings.push_back({.code = "launch_bound", .text = "use graphs"});
  plan.assumptions.pop_back();
  CHECK(caveats_text(plan, Style()) ==
        "warning [launch_bound]: use graphs\n1 assumption, 1 more warning: -v lists them\n");
  Style verbose;
  verbose.verbose = true;
  CHECK(caveats_text(plan, verbose) ==
        "warning [assumed_rates]: guessed\nwarning [launch_bound]: use graphs\n\n"
        "Assumed of memory (sources: --format json):\n- a\n");
}

}  // namespace
}  // namespace headroom
