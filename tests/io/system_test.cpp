#include <map>
#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "headroom/io/check.hpp"
#include "headroom/io/remarks.hpp"
#include "headroom/io/system_file.hpp"
#include "messages.hpp"
#include "scratch_file.hpp"

namespace headroom {
namespace {

const std::string dgx = R"({
  "format": 1, "source": "datasheet", "device": "A100-SXM4-80GB", "memory": "80 GiB", "devices_per_node": 8,
  "reserves": [
    {"name": "cuda_context", "bytes": "512 MiB", "origin": "assumed", "source": "a guess"},
    {"name": "cublas_workspace", "bytes": "8.125 MiB", "origin": "exact", "source": "PyTorch"}
  ]
})";

std::string system_mistake(const std::string& part, const std::string& changed) {
  return message_of([&] { return parse_system(with(dgx, part, changed), "dgx.json"); });
}

}  // namespace

TEST_CASE("system: read from its text") {
  const System expected{
      .name = "dgx",
      .source = "datasheet",
      .device = "A100-SXM4-80GB",
      .memory = 80_GiB,
      .devices_per_node = 8,
      .reserves = {
          {.name = "cuda_context", .bytes = 512_MiB, .origin = Origin::assumed, .source = "a guess"},
          {.name = "cublas_workspace", .bytes = 8519680_B, .origin = Origin::exact, .source = "PyTorch"}}};
  CHECK(parse_system(dgx, "presets/systems/dgx.json") == expected);
}

TEST_CASE("system: writing and reading give the same system back") {
  for (const System& system : list_systems()) {
    CHECK(parse_system(write_system(system), system.name + ".json") == system);
  }
}

TEST_CASE("system: the stack of its runs is a file or is known by its name") {
  CHECK(read_system("mi325x", {"default_software=nemo"}).default_software == "nemo");  // nemo-2025
  CHECK(message_of([] { return read_system("mi325x", {"default_software=nonsense"}); }) ==
        "set_system default_software: is neither a file nor the name of a training stack (see: headroom list "
        "software) (found \"nonsense\")");
}

TEST_CASE("system: a job over several racks gets equally many whole hosts of each") {
  const System rack = read_system("gb200-nvl72");
  CHECK(host_size(rack) == 4);
  const std::pair<std::int64_t, std::int64_t> cases[] = {{4, 72},   {64, 72},  {72, 72},   {76, 4}, {96, 48},
                                                         {128, 64}, {144, 72}, {1024, 64}, {90, 72}};
  for (const auto& job : cases) {  // its devices, and those of them that NVLink connects
    CAPTURE(job.first);
    CHECK(connected_devices(rack, job.first) == job.second);
  }
  const System dgx = read_system("dgx-h100-80g");
  CHECK(host_size(dgx) == 8);
  for (const std::int64_t job : {1, 8, 12, 16, 1000}) CHECK(connected_devices(dgx, job) == 8);
}

TEST_CASE("system: hosts divide what NVLink connects") {
  CHECK(message_of([] { return read_system("gb200-nvl72", {"devices_per_host=7"}); }) ==
        "set_system devices_per_host: must divide devices_per_node (72 % 7 = 2)");
  CHECK(message_of([] { return read_system("gb200-nvl72", {"devices_per_host=0"}); }) ==
        "set_system devices_per_host: must be an integer from 1 to 65536 (found 0)");
  CHECK(connected_devices(read_system("gb200-nvl72", {"devices_per_node=64"}), 128) == 64);
}

TEST_CASE("system: GB of a GPU's memory are GiB in flags and files, which is told; a host's are decimal") {
  const System system = read_system("dgx-h100-80g", {"memory=80 GB", "host.memory=500 GB"});
  CHECK(system.memory == 80_GiB);
  CHECK(system.host->memory == Bytes(500e9));
  CHECK(parse_system(write_system(system), "mine.json").memory == 80_GiB);
  const std::vector<std::string> told{
      "memory of 80 GB is read as 80 GiB, as vendors count the memory of a GPU"};
  CHECK(remarks_on("system", "dgx-h100-80g", {"memory=80 GB"}) == told);
  CHECK(remarks_on("system", "dgx-h100-80g", {"memory=80 GiB"}).empty());
  CHECK(remarks_on("system", "dgx-h100-80g", {"host.memory=500 GB"}).empty());
  std::string text = write_system(read_system("dgx-a100-80g"));
  text.replace(text.find("80 GiB"), 6, "80 GB");
  CHECK(parse_system(text, "mine.json").memory == 80_GiB);
  const ScratchFile file("vendor.json", text);
  CHECK(remarks_on("system", file.path()) == told);
  CHECK(remarks_on("system", file.path(), {"memory=40 GiB"}).empty());
}

TEST_CASE("system: a new one has rates scaled by its data sheet, every one assumed") {
  const System base = read_system("dgx-h100-80g");
  const System made = new_system(
      "dgx-h100-80g",
      {"device=H100-NVL", "memory=94 GB", "performance.device.half_peak=494.7 TFLOP/s",
       "performance.device.memory_bandwidth=3.35 TB/s", "performance.device.link_bandwidth=225 GB/s",
       "performance.rates.products.sustained.value=0.8"});
  CHECK(made.memory == 94_GiB);
  CHECK(made.runs_of.empty());
  const Rates& old = base.performance->rates;
  const Rates& rates = made.performance->rates;
  CHECK(rates.products.tile_peak.value / old.products.tile_peak.value ==
        doctest::Approx(0.5).epsilon(0.001));  // of four digits
  CHECK(rates.flash_attention.power_cap.value / old.flash_attention.power_cap.value ==
        doctest::Approx(0.5).epsilon(0.001));  // of four digits
  CHECK(rates.products.memory_bandwidth.value == old.products.memory_bandwidth.value);
  CHECK(rates.collectives.ring_bandwidth.value / old.collectives.ring_bandwidth.value ==
        doctest::Approx(0.5).epsilon(0.001));  // of four digits
  CHECK(rates.collectives.ring_step.value == old.collectives.ring_step.value);
  CHECK(rates.products.sustained.value == 0.8);
  CHECK_FALSE(rates.products.held_out_ratios.has_value());
  visit_rates(rates, [](std::string_view group, std::string_view name, const auto& rate) {
    const bool set = group == "products" && name == "sustained";
    CHECK(rate.origin == Origin::assumed);
    CHECK(rate.source.starts_with(set ? "set performance.rates.products" : "That of dgx-h100-80g"));
  });
  CHECK(made.source.find("set memory=94 GB") != std::string::npos);
  // What is written is a system file, and reads as what it was.
  CHECK(write_system(parse_system(write_system(made), "mine.json")) == write_system(made));
}

TEST_CASE("system: a new one with the GPU of another has that one's rates, as they were measured") {
  const System base = read_system("dgx-h100-80g");
  const System made = new_system("dgx-h100-80g", {"performance.network.nic_bandwidth=25 GB/s"});
  CHECK(made.performance->network.nic_bandwidth.count() == 25e9);
  CHECK(made.performance->rates == base.performance->rates);
  CHECK(made.performance->rates.products.held_out_ratios.has_value());
  CHECK(made.runs_of.empty());
}

TEST_CASE("system: a file can leave its rates to another's, scaled by the figures of both devices") {
  const std::string head = R"({"format": 1, "source": "mine", "scaled_from": )";
  const System system = parse_system(
      head + R"("dgx-h100-80g", "device": "X", "memory": "40 GiB", "performance": {"device": {)" +
          R"("half_peak": "494.7 TFLOP/s"}, "rates": {"products": {"sustained": )" +
          R"({"value": 0.5, "origin": "calibrated", "source": "measured"}}}}})",
      "x.json");
  System made = new_system("dgx-h100-80g", {"performance.device.half_peak=494.7 TFLOP/s"});
  const Rates& rates = system.performance->rates;
  CHECK(rates.products.tile_peak == made.performance->rates.products.tile_peak);
  CHECK(rates.products.sustained.value == 0.5);
  CHECK(rates.products.sustained.origin == Origin::calibrated);
  CHECK(system.memory == 40_GiB);
  CHECK(system.runs_of.empty());
  CHECK(system.source == "mine");
  CHECK(message_of([&] { return parse_system(head + R"("h-100"})", "x.json"); }) ==
        "x.json: /scaled_from: 'h-100' is not the name of a system");
  CHECK(message_of([&] {
          return parse_system(head + R"("l40s", "base": "l40s"})", "x.json");
        }).find("/base: contradicts /scaled_from") != std::string::npos);
  CHECK(message_of([&] { return parse_system(head + "3}", "x.json"); }) ==
        "x.json: /scaled_from: '3' is not the name of a system");
}

TEST_CASE("check: a file that only names another system is one") {
  const ScratchFile file("card.json", R"({"format": 1, "source": "mine", "scaled_from": "l40s"})");
  CHECK(check_file(file.path()) == "system");
}

TEST_CASE("system: rates of a new one do not round above the peak that it is given") {
  for (const char* const peak : {"3.9578 PFLOP/s", "2.2226 PFLOP/s", "1.98765 PFLOP/s"}) {
    const System made = new_system("dgx-h100-80g", {std::string("performance.device.fp8_peak=") + peak});
    const auto& fp8 = made.performance->rates.products_by_dtype[*narrow_index(Dtype::fp8)];
    CHECK(fp8->products.tile_peak.value <= *made.performance->device.fp8_peak);
  }
}

TEST_CASE("system: a new one without a peak for a type has no rates of it, and mistakes are named") {
  const System made = new_system("gb200-nvl72", {"performance.device.half_peak=1 PFLOP/s"});
  CHECK(made.performance->rates.products_by_dtype[*narrow_index(Dtype::nvfp4)].has_value());
  CHECK(contains(
      message_of([] { return new_system("dgx-h100-80g", {"performance.device.half_peek=1 PFLOP/s"}); }),
      "half_peek"));
  CHECK(contains(message_of([] { return new_system("dgx-h100-80g", {"memory=80"}); }),
                 "must be text with a unit"));
  CHECK(contains(message_of([] {
                   return new_system("dgx-h100-80g",
                                     {"performance.rates.products.tile_peak.value=2 PFLOP/s"});
                 }),
                 "must not exceed the device's half_peak"));
}

TEST_CASE("system: memory without a unit") {
  CHECK(system_mistake("80 GiB", "80") ==
        "dgx.json: /memory: needs a unit, one of TiB, TB, GiB, GB, MiB, MB, KiB, KB, B (found \"80\")");
}

TEST_CASE("system: memory as a bare number") {
  CHECK(system_mistake("\"80 GiB\"", "80") ==
        "dgx.json: /memory: must be text with a unit, such as \"80 GiB\" (found 80)");
}

TEST_CASE("system: memory with a misspelt unit") {
  CHECK(contains(system_mistake("80 GiB", "80 GiBs"),
                 "dgx.json: /memory: unknown unit 'GiBs' (did you mean 'GiB'?)"));
}

TEST_CASE("system: no memory") {
  CHECK(system_mistake("80 GiB", "0 GiB") ==
        "dgx.json: /memory: must be at least 1 byte and below 2^53 (found \"0 GiB\")");
}

TEST_CASE("system: negative memory") {
  CHECK(system_mistake("80 GiB", "-1 GiB") == "dgx.json: /memory: must not be negative (found \"-1 GiB\")");
}

TEST_CASE("system: memory beyond exact arithmetic") {
  CHECK(contains(system_mistake("80 GiB", "1e30 GiB"),
                 "dgx.json: /memory: must be at least 1 byte and below 2^53"));
}

TEST_CASE("system: no devices in a node") {
  CHECK(system_mistake("\"devices_per_node\": 8", "\"devices_per_node\": 0") ==
        "dgx.json: /devices_per_node: must be an integer from 1 to 65536 (found 0)");
}

TEST_CASE("system: reserves are not optional") {
  CHECK(system_mistake("\"reserves\"", "\"reserve\"") ==
        "dgx.json: /reserves: is missing\ndgx.json: /reserve: unknown key (did you mean 'reserves'?)");
}

TEST_CASE("system: reserves that are no list") {
  CHECK(message_of([] {
          return parse_system(R"({"format": 1, "source": "s", "device": "d", "memory": "1 GiB",
                                  "devices_per_node": 1, "reserves": {}})",
                              "dgx.json");
        }) == "dgx.json: /reserves: must be a list (found an object)");
}

TEST_CASE("system: reserves without end") {
  std::string many = "1";
  for (int i = 0; i < 1000; ++i) many += ", 1";
  CHECK(system_mistake("\"reserves\": [", "\"reserves\": [" + many + ", ") ==
        "dgx.json: /reserves: must be a list of at most 1000");
}

TEST_CASE("system: a reserve that is no object") {
  CHECK(system_mistake("\"reserves\": [", "\"reserves\": [1, ") ==
        "dgx.json: /reserves/0: must be an object (found 1)");
}

TEST_CASE("system: a reserve without a source does not load") {
  CHECK(system_mistake(", \"source\": \"a guess\"", "") == "dgx.json: /reserves/0/source: is missing");
  CHECK(system_mistake("a guess", "") == "dgx.json: /reserves/0/source: must not be empty");
}

TEST_CASE("system: a reserve of unknown origin") {
  CHECK(system_mistake("\"exact\"", "\"exakt\"") ==
        "dgx.json: /reserves/1/origin: must be exact or calibrated or assumed (found \"exakt\") "
        "(did you mean 'exact'?)");
}

TEST_CASE("system: two reserves of one name") {
  CHECK(system_mistake("cublas_workspace", "cuda_context") ==
        "dgx.json: /reserves/1/name: is the name of an earlier reserve");
}

TEST_CASE("system: reserves that leave nothing") {
  CHECK(
      contains(system_mistake("512 MiB", "80 GiB"), "dgx.json: /reserves: must leave some of the memory ("));
}

TEST_CASE("system: --set memory") {
  CHECK(read_system("dgx-a100-80g", {"memory=40 GiB"}).memory == 40_GiB);
  CHECK(message_of([] { return read_system("dgx-a100-80g", {"memory=40"}); }) ==
        "set_system memory: must be text with a unit, such as \"80 GiB\" (found 40)");
}

TEST_CASE("check: tells a file's kind by its keys") {
  const auto check = [](const std::string& text) {
    return check_file(ScratchFile("check.json", text).path());
  };
  CHECK(check(dgx) == "system");
  CHECK(check(R"({"format": 1, "source": "s", "hidden": 8, "feedforward": 32, "heads": 2,
                  "layers": 1, "vocabulary": 10, "sequence": 4})") == "model");
  CHECK(check(R"({"format": 1, "device": "NVIDIA H200",
                  "samples": [{"kind": "empty_kernel", "median_seconds": 1e-6}]})") == "samples");
  CHECK(check("m,n,k,milliseconds\n1,2,3,0.5\n") == "samples");
  CHECK(contains(message_of([&] { return check("m,n,k,milliseconds\n1,2,3,nan\n"); }), "above zero"));
  CHECK(contains(message_of([&] { return check("[]"); }), "holds no runs"));
  CHECK(contains(message_of([&] { return check(R"({"cases": []})"); }), "/source: is missing"));
  CHECK(contains(
      message_of([&] { return check(R"({"format": 1})"); }),
      ": is no model (hidden, layers, ...), system (device, memory, ...), software "
      "(gradient_accumulation, product_rate, ...), published source (label, titles, ...), spreads "
      "(iteration, allocated), releases, recipes, samples, measurements (cases, targets) or list of runs"));
  CHECK(contains(message_of([&] { return check(R"({"label": "A"})"); }), "/titles: is missing"));
  CHECK(contains(message_of([&] { return check(R"({"allocated": {}})"); }),
                 "/allocated/logarithm: is missing"));
  CHECK(
      contains(message_of([&] { return check(R"({"memory": "1 GiB"})"); }), "/devices_per_node: is missing"));
}

TEST_CASE("system: a device's name finds its system, whatever else the name says") {
  const std::map<std::string, std::string> systems{
      {"NVIDIA H100 80GB HBM3", "dgx-h100-80g"},
      {"A100", "dgx-a100-80g"},
      {"H100 SXM", "dgx-h100-80g"},
      {"AMD Instinct MI300X", "mi300x"},
      {"GB200 (Blackwell, NVL72)", "gb200-nvl72"},
      {"NVIDIA GB300", "gb300-nvl72"},
      {"NVIDIA B300 SXM6 AC", "dgx-b300"},
      {"NVIDIA A100 80GB PCIe", "a100-pcie"},
      {"NVIDIA GeForce RTX 4090", "rtx-4090"},
      {"NVIDIA RTX A6000", "rtx-a6000"},
      {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000"},
      {"NVIDIA RTX 6000 Ada Generation", "none"},
      {"Tesla V100-SXM2-32GB", "v100-32g"},
      {"P100-SXM2-16GB", "none"},
      {"", "none"}};
  for (const auto& named : systems) {
    CAPTURE(named.first);
    const std::optional<System> system = system_of_device(named.first);
    CHECK((system ? system->name : "none") == named.second);
  }
}

}  // namespace headroom
