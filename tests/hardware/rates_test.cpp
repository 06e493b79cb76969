// The presets' numbers: every one with its origin and its source.
#include "headroom/hardware/rates.hpp"

#include <set>
#include <string>

#include <doctest/doctest.h>

#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "io/messages.hpp"

namespace headroom {
namespace {

std::string system_message(const std::string& override) {
  return message_of([&] { return read_system("dgx-a100-80g", {override}); });
}

}  // namespace

TEST_CASE("rates: a fitted range holds its ends") {
  constexpr FittedRange range{2, 8};
  static_assert(holds(range, 2) && holds(range, 8) && !holds(range, 1) && !holds(range, 16));
}

TEST_CASE("rates: every embedded system has all of them, with sources, and tells what is assumed") {
  for (const System& system : list_systems()) {
    CAPTURE(system.name);
    REQUIRE(system.performance.has_value());
    // Of systems from data sheets little was measured: the other rates are those of another GPU, scaled.
    if (system.performance->rates.products.tile_peak.source.starts_with("That of ")) {
      visit_rates(system.performance->rates, [](std::string_view, std::string_view name, const auto& rate) {
        CAPTURE(name);
        CHECK((rate.origin == Origin::assumed) == rate.source.starts_with("That of "));
      });
      continue;
    }
    std::set<std::string> assumed;
    int count = 0;
    int narrow = 0;
    visit_rates(system.performance->rates,
                [&](std::string_view group, std::string_view name, const auto& rate) {
                  ++(group.find("_by_dtype") != std::string_view::npos ? narrow : count);
                  CHECK_FALSE(rate.source.empty());
                  const bool at_bound = rate.source.starts_with("At a bound");
                  CHECK((!at_bound || rate.origin == Origin::assumed));
                  if (rate.origin == Origin::assumed && !at_bound)
                    assumed.insert(std::string(group) + "." + std::string(name));
                });
    const Rates& rates = system.performance->rates;
    CHECK(count == 40 + (rates.grouped_products ? 6 : 0) + (rates.collectives.nvls ? 2 : 0) +
                       (rates.collectives.deepep ? 6 : 0) + (rates.collectives.hybridep ? 2 : 0) +
                       (rates.collectives.hybridep_over_nodes ? 2 : 0));
    // Tables of narrow products speak of bursts.
    for (const NarrowType& type : narrow_types) {
      const NarrowProductRates* const own = narrow_rates(rates, type.dtype);
      const bool fitted = own != nullptr;
      CHECK(assumed.erase(std::string(type.products) + ".sustained") == (fitted ? 1 : 0));
      if (fitted) CHECK(has_peak(system.performance->device, type.dtype));
      narrow -= fitted ? 10 : 0;
      narrow -= fitted && own->grouped ? 6 : 0;
      narrow -= !fitted && quantization_rates(rates, type.dtype) != nullptr ? 2 : 0;
    }
    CHECK(narrow == 0);
    for (const char* name :
         {"kernels.shortest", "flash_attention.tile_queries", "network.nic_efficiency", "network.step"}) {
      CHECK(assumed.erase(name) == 1);
    }
    // The backward pass was measured on the B200 and the H100, and on another A100; a sustained load not on B300.
    const bool h100 = system.name == "dgx-h100-80g";
    CHECK(assumed.erase("flash_attention.backward") == (h100 || system.name == "dgx-b200-180g" ? 0 : 1));
    // HybridEP was measured within B200s and GB200s and between H100s, casts to MXFP8 on a GB200.
    for (const char* name : {"dispatch_bandwidth", "combine_bandwidth"}) {
      const bool newer = system.name == "dgx-b300" || system.name == "gb300-nvl72";
      CHECK(assumed.erase(std::string("collectives.hybridep.") + name) == (newer ? 1 : 0));
      CHECK(assumed.erase(std::string("collectives.hybridep_over_nodes.") + name) ==
            (system.name == "dgx-h200-141g" ? 1 : 0));
    }
    const bool casts_of_others =
        rates.quantization_by_dtype[*narrow_index(Dtype::mxfp8)].has_value() && system.name != "gb200-nvl72";
    for (const char* name : {"launch", "bandwidth"})
      CHECK(assumed.erase(std::string("quantization_by_dtype.mxfp8.") + name) == (casts_of_others ? 1 : 0));
    const bool ampere = system.device.starts_with("A100");
    for (const char* name :
         {"flash_attention.softmax_width", "flash_attention.overlap_order", "flash_attention.fp8_speed"}) {
      CHECK(assumed.erase(name) == (ampere ? 1 : 0));
    }
    CHECK(assumed.erase("flash_attention.sustained") == (ampere || system.name == "dgx-b300" ? 1 : 0));
    CHECK(assumed.erase("flash_attention.pytorch_speed") == (ampere || h100 ? 0 : 1));
    // Hosts were measured on two systems; an operation of the stack on one of them and on that of the A100.
    const bool grace = system.name == "gb200-nvl72";
    CHECK(assumed.erase("host.launch") == (grace || h100 ? 0 : 1));
    CHECK(assumed.erase("host.operation") == (grace || ampere ? 0 : 1));
    if (ampere) {
      CHECK(assumed.size() == (system.name == "dgx-a100-40g" ? 2 : 0));  // what goes with its slower memory
    } else {
      // What the tables of products and of collectives do not speak of is that of the A100.
      CHECK(assumed == std::set<std::string>{"products.sustained", "streaming.bandwidth_share",
                                             "collectives.overlap_loss", "network.shared_nic_efficiency",
                                             "network.send_synchronization", "host.blocking_operation",
                                             "host.balance"});
    }
  }
}

TEST_CASE("rates: K22's three scalars come from table 4 and nothing else does") {
  int from_table_4 = 0;
  visit_rates(read_system("dgx-a100-80g").performance->rates,
              [&](std::string_view, std::string_view, const auto& rate) {
                from_table_4 += rate.source.find("K22 table 4") != std::string::npos ? 1 : 0;
                CHECK(rate.source.find("table 5") == std::string::npos);
              });
  CHECK(from_table_4 == 3);
}

TEST_CASE(
    "systems: those of other clusters differ from the DGX in their network, and take none of its runs") {
  const System dgx = read_system("dgx-a100-80g");
  for (const char* name : {"vtrain-a100-80g", "jean-zay-a100-80g", "zero-bubble-a100-80g"}) {
    CAPTURE(name);
    System other = read_system(name);
    CHECK(other.performance->network != dgx.performance->network);
    other.performance->network = dgx.performance->network;
    other.name = dgx.name;
    other.source = dgx.source;
    CHECK(other.runs_of.empty());
    other.runs_of = dgx.runs_of;
    CHECK(other == dgx);
  }
}

TEST_CASE("systems: a base that is not known, and one without a source of its own") {
  CHECK(message_of(
            [] { return parse_system(R"({"format": 1, "source": "s", "base": "dgx-a100-80"})", "x.json"); })
            .starts_with(
                "x.json: /base: 'dgx-a100-80' is not the name of a system (did you mean 'dgx-a100-80g'?)"));
  CHECK(message_of([] { return parse_system(R"({"format": 1, "base": "dgx-a100-80g"})", "x.json"); }) ==
        "x.json: /source: is missing");
}

TEST_CASE("systems: without performance, for memory only") {
  const System system = parse_system(R"({"format": 1, "source": "s", "device": "d", "memory": "1 GiB",
                                         "devices_per_node": 1, "reserves": []})",
                                     "x.json");
  CHECK_FALSE(system.performance.has_value());
  CHECK(write_system(system).find("performance") == std::string::npos);
}

TEST_CASE("rates: one can be set, and must stay possible") {
  CHECK(read_system("dgx-a100-80g", {"performance.rates.host.operation.value=20 us"})
            .performance->rates.host.operation.value == Seconds(20e-6));
  CHECK(system_message("performance.rates.host.operation.value=20") ==
        "set_system performance.rates.host.operation.value: must be text with a unit, such as \"10 us\" "
        "(found 20)");
  CHECK(system_message("performance.rates.streaming.bandwidth_share.value=1.5") ==
        "set_system performance.rates.streaming.bandwidth_share.value: must be at most 1 (found 1.5)");
  CHECK(system_message("performance.rates.streaming.bandwidth_share.value=0") ==
        "set_system performance.rates.streaming.bandwidth_share.value: must be a number above zero (found "
        "0)");
  CHECK(system_message("performance.rates.products.tile_peak.value=400 TFLOP/s") ==
        "set_system performance.rates.products.tile_peak.value: must not exceed the device's half_peak (400 "
        "TFLOP/s > "
        "312 TFLOP/s)");
  CHECK(message_of([] {
          return read_system("dgx-h100-80g",
                             {"performance.rates.products_by_dtype.fp8.tile_peak.value=2 PFLOP/s"});
        }) ==
        "set_system performance.rates.products_by_dtype.fp8.tile_peak.value: must not exceed the device's "
        "fp8_peak (2 PFLOP/s > 1.9789 PFLOP/s)");
  CHECK(system_message("performance.network.nic_bandwidth=0 GB/s") ==
        "set_system performance.network.nic_bandwidth: must be above zero (found \"0 GB/s\")");
  CHECK(system_message("performance.network.rails.value=straight") ==
        "set_system performance.network.rails.value: must be aligned or shared (found \"straight\")");
  CHECK(system_message("performance.network.oversubscription.value=0.5") ==
        "set_system performance.network.oversubscription.value: must be at least 1 (found 0.5)");
  CHECK(message_of([] { return read_system("dgx-h100-80g", {"performance.network.nics_per_device=0.5"}); })
            .ends_with(
                "can be aligned only where every device has a NIC of its own (nics_per_device is below 1)"));
  CHECK(system_message("performance.rates.host.operation.source= ") ==
        "set_system performance.rates.host.operation.source: must not be empty");
}

TEST_CASE("software: the default is K22's, as its file has it") {
  Software written = read_software("megatron-2022");
  written.source.clear();
  written.product_rate.source = Software().product_rate.source;
  CHECK(written.expert_products.origin == Origin::exact);  // where files that do not say it leave it assumed
  written.expert_products.origin = Software().expert_products.origin;
  written.expert_products.source = Software().expert_products.source;
  CHECK(written.launcher == Launcher::megatron_lm);  // which a stack has that is read of a file
  written.launcher.reset();
  CHECK(written == Software());
}

TEST_CASE("software: writing and reading give the same back") {
  const std::vector<Software> all = list_software();
  CHECK(all.size() == 21);
  for (const Software& software : all) {
    CHECK(parse_software(write_software(software), software.name + ".json") == software);
  }
}

TEST_CASE("software: that of 2025 says where every choice is documented") {
  const Software software = read_software("megatron-core-2025");
  REQUIRE(software.sources.has_value());
  for (const std::string& source : *software.sources) CHECK(source.size() > 10);
  CHECK(software.overlap_grad_reduce);
  CHECK(software.overlap_param_gather);
  CHECK(software.overlap_p2p);
  CHECK(software.overlap_tensor_parallel == TensorOverlap::full);
  CHECK(message_of([] { return read_software("megatron-core-2025", {"sources.overlap_p2p= "}); }) ==
        "set_software sources.overlap_p2p: must not be empty");
}

TEST_CASE(
    "systems: each names its training stack: that of 2025 since Hopper, Transformers for single cards") {
  for (const System& system : list_systems()) {
    CAPTURE(system.name);
    const auto is = [&](const char* device) { return system.device.starts_with(device); };
    const bool ampere = is("A100") || is("A800");
    const bool workstation = is("RTX") || is("A10G") || is("L4-") || is("V100");
    CHECK(read_software(system.default_software).name == (workstation ? "hf-trainer"
                                                          : ampere    ? "megatron-2022"
                                                                      : "megatron-core-2025"));
  }
}

TEST_CASE("software: misspelt, and incomplete") {
  CHECK(message_of([] { return read_software("megatron-2023"); }) ==
        "megatron-2023: is neither a file nor the name of a training stack (did you mean 'megatron-2021' or "
        "'megatron-2022'?)");
  CHECK(message_of([] { return read_software("megatron-2022", {"norm_backward=one"}); }) ==
        "set_software norm_backward: must be one_pass or two_kernels (found \"one\")");
}

}  // namespace headroom
