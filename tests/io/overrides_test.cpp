// --set KEY=VALUE: laid over a file before it is checked.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "messages.hpp"

namespace headroom {
namespace {

std::string message_setting(const std::string& override) {
  return message_of([&] { return read_model("gpt3-175b", {override}); });
}

}  // namespace

TEST_CASE("model: --set hidden=6144 derives head_size anew") {
  const Transformer model = read_model("gpt3-175b", {"hidden=6144"});
  CHECK(model.hidden == 6144);
  CHECK(model.head_size == 64);
}

TEST_CASE("model: --set heads=48 derives head_size and key_value_heads anew") {
  const Transformer model = read_model("gpt3-175b", {"heads=48"});
  CHECK(model.head_size == 256);
  CHECK(model.key_value_heads == 48);
}

TEST_CASE("model: --set sequence=4096 derives max_positions anew") {
  CHECK(read_model("gpt3-175b", {"sequence=4096"}).max_positions == 4096);
}

TEST_CASE("model: --set reaches into kernels, whether or not the file has them") {
  CHECK(read_model("gpt3-175b", {"kernels.attention=flash"}).architecture.kernels.attention ==
        AttentionKernel::flash);
  CHECK(read_model("llama-2-7b", {"kernels.attention=unfused", "kernels.weight_copies=true"})
            .architecture.kernels == Kernels{.weight_copies = true});
}

TEST_CASE("model: --set shows in the source") {
  CHECK(read_model("gpt3-175b", {"hidden=6144", "activation=relu"})
            .source.ends_with("; set hidden=6144; set activation=relu"));
}

TEST_CASE("model: --set with a bad value names the flag") {
  CHECK(message_setting("hidden=12289") ==
        "set hidden: must be divisible by heads (12289 % 96 = 1), unless head_size is given");
  CHECK(message_setting("hidden=big") == "set hidden: must be an integer from 1 to 4194304 (found \"big\")");
  CHECK(message_setting("kernels.attention=flsh") ==
        "set kernels.attention: must be unfused or flash or sdpa_math (found \"flsh\") (did you mean "
        "'flash'?)");
}

TEST_CASE("model: --set with an unknown key suggests the nearest") {
  CHECK(message_setting("hiden=8192") == "set hiden: unknown key (did you mean 'hidden'?)");
  CHECK(message_setting("kernel.attention=flash") ==
        "set kernel.attention: unknown key (did you mean 'kernels'?)");
}

TEST_CASE("model: --set without a value") {
  CHECK(message_setting("hidden") == "set hidden: must be KEY=VALUE, such as hidden=8192");
  CHECK(message_setting("=8192") == "set =8192: must be KEY=VALUE, such as hidden=8192");
}

TEST_CASE("model: --set of a field of a number") {
  CHECK(message_setting("hidden.size=3") == "set hidden.size: 'hidden' has no fields");
}

TEST_CASE("model: --set of a path without end") {
  std::string path = "a";
  for (int i = 0; i < 1000; ++i) path += ".a";
  CHECK(message_setting(path + "=1").ends_with("is nested deeper than 32 levels"));
}

TEST_CASE("model: --set of one key twice") {
  CHECK(message_of([] {
          return read_model("gpt3-175b", {"hidden=96", "hidden=192"});
        }) == "set hidden: is given twice");
}

TEST_CASE("model: --set with bytes that are not text") {
  CHECK(message_setting("source=\xff") == "set source: must be text without control characters");
}

TEST_CASE("system: --set-system of a figure that has a source is a figure of whoever sets it") {
  for (const char* const field :
       {"performance.network.oversubscription", "performance.network.oversubscription.value"}) {
    const System system = read_system("dgx-h100-80g", {std::string(field) + "=2"});
    const Sourced<double>& set = system.performance->network.oversubscription;
    CHECK(set.value == 2);
    CHECK(set.origin == Origin::assumed);
    CHECK(set.source == "set_system " + std::string(field) + "=2");
  }
  const System sourced =
      read_system("dgx-h100-80g", {"performance.network.oversubscription.source=our network's plan",
                                   "performance.network.oversubscription.origin=exact",
                                   "performance.network.oversubscription=2"});
  CHECK(sourced.performance->network.oversubscription ==
        Sourced<double>{2, Origin::exact, "our network's plan"});
  CHECK(message_of([] {
          return read_system("dgx-h100-80g", {"performance.network.oversubscription=0.5"});
        }) == "set_system performance.network.oversubscription: must be at least 1 (found 0.5)");
}

TEST_CASE(
    "system: --set-system of a device's figure takes the rates that follow it along, and leaves the others") {
  const Rates base = read_system("dgx-h100-80g").performance->rates;
  const System faster = read_system("dgx-h100-80g", {"performance.device.link_bandwidth=900 GB/s"});
  const Rates& rates = faster.performance->rates;
  CHECK(rates.collectives.ring_bandwidth.value / base.collectives.ring_bandwidth.value ==
        doctest::Approx(2).epsilon(1e-3));
  CHECK(rates.collectives.ring_bandwidth.origin == Origin::assumed);
  CHECK(rates.products.tile_peak == base.products.tile_peak);
  CHECK(faster.name == "dgx-h100-80g");
  CHECK(faster.source.ends_with("; set_system performance.device.link_bandwidth=900 GB/s"));
  const System stated =
      read_system("dgx-h100-80g", {"performance.device.link_bandwidth=900 GB/s",
                                   "performance.rates.collectives.ring_bandwidth=500 GB/s"});
  CHECK(stated.performance->rates.collectives.ring_bandwidth.value == BytesPerSecond(500e9));
  CHECK(message_of([] {
          return read_system("dgx-h100-80g", {"performance.device.half_peak=0"});
        }).starts_with("set_system performance.device.half_peak: must be"));
}

TEST_CASE("overrides: a key that other programs use suggests the field of that meaning") {
  const auto told = [](const char* key) {
    return message_of([&] { return read_model("llama-3-8b", {std::string(key) + "=32"}); });
  };
  CHECK(told("num_layers") == "set num_layers: unknown key (did you mean 'layers'?)");
  CHECK(told("num_hidden_layers") == "set num_hidden_layers: unknown key (did you mean 'layers'?)");
  CHECK(told("hidden_size") == "set hidden_size: unknown key (did you mean 'hidden'?)");
  CHECK(told("num_query_groups") == "set num_query_groups: unknown key (did you mean 'key_value_heads'?)");
  CHECK(told("num_experts") == "set num_experts: unknown key (did you mean 'experts.count'?)");
}

TEST_CASE("system: --set-system of a lower power limit slows what a device sustains, and no burst") {
  const auto rates = [](const char* name, std::vector<std::string> overrides) {
    return read_system(name, overrides).performance->rates;
  };
  const Rates own = rates("dgx-b200-180g", {});
  const Rates capped = rates("dgx-b200-180g", {"tdp=700 W"});
  // Blackwell's throughput goes with power.
  CHECK(capped.products.sustained.value == doctest::Approx(0.7 * own.products.sustained.value));
  CHECK(capped.flash_attention.sustained.value == doctest::Approx(0.7 * own.flash_attention.sustained.value));
  CHECK(capped.products.sustained.origin == Origin::assumed);
  CHECK(capped.products.sustained.source.starts_with(
      "Power as the mechanism: 0.7 of what the device sustains at 1 kW, at 700 W. There: "));
  CHECK(capped.products.tile_peak == own.products.tile_peak);
  CHECK(capped.products.memory_bandwidth == own.products.memory_bandwidth);
  CHECK(capped.streaming == own.streaming);
  // Hopper's with the cube root of it.
  CHECK(rates("dgx-h100-80g", {"tdp=500 W"}).products.sustained.value ==
        doctest::Approx(std::pow(5.0 / 7, 0.333) * rates("dgx-h100-80g", {}).products.sustained.value));
  // A stated clock stays, and the device's own limit changes nothing.
  CHECK(rates("dgx-b200-180g", {"tdp=700 W", "performance.rates.products.sustained=0.6"})
            .products.sustained.value == 0.6);
  CHECK(rates("dgx-b200-180g", {"tdp=1000 W"}).products.sustained == own.products.sustained);
  CHECK(message_of([] { return read_system("dgx-b200-180g", {"tdp=1.2 kW"}); }) ==
        "set_system tdp: must be 429 W to 1 kW, the power limit of dgx-b200-180g (--power-per-gpu counts "
        "energy at "
        "another power), not 1.2 kW");
  CHECK(message_of([] { return read_system("dgx-b200-180g", {"tdp=200 W"}); }) ==
        "set_system tdp: must be 429 W to 1 kW, the power limit of dgx-b200-180g: below it memory-bound "
        "kernels slow "
        "down too, which is not modelled, not 200 W");
}

TEST_CASE("model: a file that states no attention kernel leaves it to the stack") {
  const auto attention = [](const Transformer& model, const char* stack) {
    return with_attention(model, read_software(stack).attention_kernel).architecture.kernels.attention;
  };
  const Transformer open = read_model("gpt3-175b");
  CHECK(attention(open, "megatron-2022") == AttentionKernel::unfused);
  CHECK(attention(open, "megatron-core-2025") == AttentionKernel::flash);
  // Another stack's comes in its place.
  const Transformer flash = with_attention(open, AttentionKernel::flash);
  CHECK(attention(flash, "megatron-2022") == AttentionKernel::unfused);
  CHECK(attention(read_model("gpt3-175b", {"kernels.attention=unfused"}), "megatron-core-2025") ==
        AttentionKernel::unfused);
  CHECK(attention(read_model("llama-3-8b"), "megatron-2022") == AttentionKernel::flash);
  CHECK(parse_model(write_model(open), "m.json").attention_kernel.stated);
}

}  // namespace headroom
