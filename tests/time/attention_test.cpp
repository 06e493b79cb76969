#include "headroom/time/attention.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/time/streaming.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

using tests::performance;

Seconds burst(const Attention& attention, AttentionPass pass, const Performance& of = performance()) {
  return attention_time(attention, pass, attention_bytes(attention, pass), of, 1);
}

Attention causal(std::int64_t sequence, std::int64_t heads = 1024) {
  return {.batch = 1,
          .heads = heads,
          .kv_heads = heads,
          .queries = sequence,
          .keys = static_cast<double>(sequence),
          .head_size = 128,
          .value_size = 128};
}

// Rates by which a time can be reckoned by hand: a device of 100 multiprocessors that computes 1e14 FLOP/s, and exponentials
// beside the products in no time.
Performance plain() {
  Performance simple = performance();
  simple.device.multiprocessors = 100;
  FlashRates& rates = simple.rates.flash_attention;
  rates.launch.value = Seconds(1e-6);
  rates.tile_queries.value = 128;
  rates.tile_fill.value = Seconds(1e-6);
  rates.tile_peak.value = FlopsPerSecond(1e14);
  rates.softmax_width.value = 1e-9;
  rates.overlap_order.value = 1;
  rates.last_tile.value = 0.5;
  rates.power_cap.value = FlopsPerSecond(1e14);
  rates.backward.value = 0.8;
  return simple;
}

}  // namespace

TEST_CASE("attention: tiles over the multiprocessors, and part of the longest at the end, by hand") {
  // Four tiles of each of 50 heads, which go past 1, 2, 3 and 4 tiles of keys.
  const double step = 2.0 * 128 * 128 * 256 / 1e12;
  const double mean = 2.5 * step + 1e-6;
  const double longest = 4 * step + 1e-6;
  CHECK(burst(causal(512, 50), AttentionPass::forward, plain()).count() ==
        tests::about(1e-6 + 2 * mean + 0.5 * longest));
  // One head alone: no multiprocessor has more than one tile, and the longest is waited for.
  CHECK(burst(causal(512, 1), AttentionPass::forward, plain()).count() == tests::about(1e-6 + longest));
}

TEST_CASE(
    "attention: without a mask every tile goes past all keys, behind a window past those of the window") {
  Attention full = causal(8192);
  full.mask = Mask::none;
  const double ratio = burst(full, AttentionPass::forward) / burst(causal(8192), AttentionPass::forward);
  CHECK(ratio > 1.8);
  CHECK(ratio < 2.0);
  Attention window = causal(8192);
  window.mask = Mask::window;
  window.keys = keys_met(1024, 8192);
  const double part = burst(window, AttentionPass::forward) / burst(causal(8192), AttentionPass::forward);
  CHECK(part > 1024.0 * 7680 / (8192.0 * 4096));  // its scores, and those that tiles compute beside them
  CHECK(part < 0.45);
}

TEST_CASE("attention: the backward pass runs five products, and takes values as wide as keys") {
  const Performance device = plain();
  const auto without_ends = [&](const Attention& it, AttentionPass pass) {
    Performance bare = device;
    bare.rates.flash_attention.tile_fill.value = bare.rates.flash_attention.launch.value = Seconds(1e-12);
    return burst(it, pass, bare);
  };
  const Attention it = causal(16384);
  CHECK(without_ends(it, AttentionPass::backward) / without_ends(it, AttentionPass::forward) ==
        doctest::Approx(2.5 / 0.8).epsilon(0.001));
  Attention latent = it;
  latent.head_size = 192;
  Attention padded = latent;
  padded.value_size = 192;
  CHECK(without_ends(latent, AttentionPass::backward) == without_ends(padded, AttentionPass::backward));
  CHECK(without_ends(latent, AttentionPass::forward) < without_ends(padded, AttentionPass::forward));
}

TEST_CASE("attention: exponentials hide behind products of wide heads, and set the pace of narrow ones") {
  Performance overlapped = plain();
  overlapped.rates.flash_attention.softmax_width.value = 256;
  overlapped.rates.flash_attention.overlap_order.value = 20;
  Attention narrow = causal(4096);
  narrow.head_size = narrow.value_size = 64;
  Attention wide = causal(4096);
  wide.head_size = wide.value_size = 256;
  const auto slower = [&](const Attention& it) {
    return burst(it, AttentionPass::forward, overlapped) / burst(it, AttentionPass::forward, plain());
  };
  CHECK(slower(narrow) > 1.8);
  CHECK(slower(wide) == doctest::Approx(1).epsilon(0.01));
}

TEST_CASE("attention: few queries are bound by memory, and a clock scales arithmetic alone") {
  const Attention it = causal(4096);
  const Bytes many(1e12);
  const Seconds bound =
      performance().rates.flash_attention.launch.value + many / streaming_bandwidth(performance());
  CHECK(attention_time(it, AttentionPass::forward, many, performance(), 1) == bound);
  CHECK(attention_time(it, AttentionPass::forward, many, performance(), 0.5) == bound);
  const Seconds launch = performance().rates.flash_attention.launch.value;
  const auto at = [&](double clock) {
    return attention_time(it, AttentionPass::forward, Bytes(0), performance(), clock) - launch;
  };
  CHECK(at(0.5) / at(1) == doctest::Approx(2));
}

TEST_CASE("attention: more queries, keys, heads or wider heads never take less time, on any system") {
  CHECK(rc::check([] {
    const System system = read_system(
        *rc::gen::element<std::string>("dgx-a100-80g", "dgx-h100-80g", "dgx-b200-180g", "gb300-nvl72"));
    const auto size = [](std::int64_t most) { return *rc::gen::inRange<std::int64_t>(1, most); };
    Attention it = causal(size(20000), size(64));
    it.batch = size(8);
    it.mask = *rc::gen::element(Mask::none, Mask::causal);
    it.head_size = it.value_size = 8 * size(32);
    const AttentionPass pass = *rc::gen::element(AttentionPass::forward, AttentionPass::backward);
    const Seconds before = burst(it, pass, *system.performance);
    RC_ASSERT(before > Seconds(0));
    Attention more = it;
    switch (*rc::gen::inRange(0, 4)) {
      case 0: more.queries += size(5000); break;
      case 1: more.keys += static_cast<double>(size(5000)); break;
      case 2: more.heads += size(64); break;
      default: more.head_size += 8 * size(8);
    }
    RC_ASSERT(burst(more, pass, *system.performance) >= before);
  }));
}

}  // namespace headroom
