#include "headroom/time/gemm.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/system_file.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

using tests::performance;

Seconds burst(const Gemm& gemm) { return gemm_time(gemm, performance().device, performance().rates, 1); }

Gemm any_gemm() {
  const auto extent = [] { return 64 * *rc::gen::inRange<std::int64_t>(1, 200); };
  return {.batch = *rc::gen::inRange<std::int64_t>(1, 64),
          .rows = extent(),
          .columns = extent(),
          .inner = extent()};
}

void holds_for_all(auto property) { CHECK(rc::check(property)); }

// Tiles of 256 x 128 in nine rows: twelve columns of them are 108, one for each multiprocessor.
Gemm tiles(std::int64_t columns) { return {.rows = 9 * 256, .columns = columns * 128, .inner = 4096}; }

}  // namespace

TEST_CASE("gemm: a wave of one tile a multiprocessor, by hand") {
  const MatrixProductRates& rates = performance().rates.products;
  const Seconds math = Flops(2.0 * 256 * 128 * 4096) / (rates.tile_peak.value / 108);
  const Seconds edge = Bytes(256 * 128 * 2.0) / (rates.result_bandwidth.value / 108);
  const Seconds launch = performance().rates.kernels.launch.value;
  CHECK(burst(tiles(11)).count() == tests::about((launch + math + edge + rates.wave_fill.value).count()));
}

TEST_CASE("gemm: a full wave on all multiprocessors meets the power cap, by hand") {
  const Seconds power = flops(tiles(12)) / performance().rates.products.power_cap.value;
  CHECK(burst(tiles(12)).count() == tests::about((performance().rates.kernels.launch.value + power).count()));
}

TEST_CASE("gemm: one column of tiles more starts another wave") {
  CHECK(burst(tiles(13)) > 1.2 * burst(tiles(12)));
}

TEST_CASE("gemm: a long inner extent is split over idle multiprocessors") {
  const Gemm deep{.rows = 256, .columns = 256, .inner = 65536};
  Gemm twice = deep;
  twice.batch = 2;  // batched products are not split
  CHECK(burst(deep) < 0.5 * burst(twice));
}

TEST_CASE("gemm: heads that rule out 16-byte loads fall off the tensor cores") {
  const Gemm aligned{.batch = 96, .rows = 2048, .columns = 2048, .inner = 108};
  Gemm unaligned = aligned;
  unaligned.aligned = false;
  CHECK(burst(unaligned) > 4 * burst(aligned));
}

TEST_CASE("gemm: adding to an fp32 sum takes longer than storing in half") {
  CHECK(burst({.rows = 4096, .columns = 4096, .inner = 256, .result_bytes = 8}) >
        burst({.rows = 4096, .columns = 4096, .inner = 256}));
}

TEST_CASE("gemm: under the power limit an fp32 sum takes what it moves beyond a result of 16 bits") {
  Rates rates = performance().rates;
  rates.products.power_cap.value = 1e-3 * rates.products.power_cap.value;  // so that it is what sets the time
  const auto capped = [&](std::int64_t result_bytes) {
    return gemm_time({.rows = 4096, .columns = 4096, .inner = 4096, .result_bytes = result_bytes},
                     performance().device, rates, 1);
  };
  const Bytes more(4096.0 * 4096 * (8 - 2));
  CHECK((capped(8) - capped(2)).count() ==
        doctest::Approx((more / performance().device.memory_bandwidth).count()).epsilon(1e-9));
  CHECK(capped(4) == capped(2));  // a result that is only written in fp32 was not measured
}

TEST_CASE(
    "gemm: factors of fewer bits move less, and are multiplied as much faster as the peak of their type") {
  Device device = performance().device;
  device.fp8_peak = 2 * device.half_peak;
  const Gemm half{.rows = 8192, .columns = 8192, .inner = 8192};
  Gemm fp8 = half;
  fp8.dtype = Dtype::fp8;
  const auto time = [&](const Gemm& gemm) { return gemm_time(gemm, device, performance().rates, 1); };
  CHECK(time(fp8) < 0.6 * time(half));
  CHECK(time(fp8) > 0.5 * time(half));
  Gemm bf16 = half;
  bf16.dtype = Dtype::bf16;
  CHECK(time(bf16) == time(half));
  CHECK(peak_of(device, Dtype::fp8) == 2 * peak_of(device, Dtype::fp16));
  CHECK(peak_of(performance().device, Dtype::fp4) == FlopsPerSecond(0));
}

TEST_CASE("gemm: a type with rates of its own is priced by them, and no other type is") {
  Device device = performance().device;
  device.fp8_peak = 2 * device.half_peak;
  Rates rates = performance().rates;
  const auto time = [&](Dtype dtype) {
    return gemm_time({.rows = 8192, .columns = 8192, .inner = 8192, .dtype = dtype}, device, rates, 1);
  };
  const Seconds half = time(Dtype::half);
  const Seconds scaled = time(Dtype::fp8);
  CHECK(time(Dtype::fp8_blockwise) == scaled);
  NarrowProductRates own{.products = rates.products};
  own.products.power_cap.value = 0.5 * rates.products.power_cap.value;
  rates.products_by_dtype[*narrow_index(Dtype::fp8)] = own;
  CHECK(&product_rates(rates, Dtype::bf16) == &rates.products);
  CHECK(product_rates(rates, Dtype::fp8).power_cap.value == own.products.power_cap.value);
  CHECK(time(Dtype::fp8) > 3 * scaled);  // half the power cap, where scaling would double it
  CHECK(time(Dtype::half) == half);
  CHECK(time(Dtype::fp8_blockwise) == scaled);
}

TEST_CASE("gemm: quantization reads a tensor once for each pass, and writes it") {
  const Performance& a100 = performance();
  Rates rates = a100.rates;
  NarrowProductRates own{.products = rates.products};
  own.quantization.launch.value = Seconds(5e-6);
  own.quantization.bandwidth.value = BytesPerSecond(1e12);
  for (const Dtype dtype : {Dtype::fp8, Dtype::nvfp4}) rates.products_by_dtype[*narrow_index(dtype)] = own;
  constexpr double elements = 1e9;
  // Two readings of 2 bytes and a byte written, with one scale a tensor; one reading and half a byte by blocks of 16.
  CHECK(quantization_time(elements, Dtype::fp8, a100.device, rates).count() == doctest::Approx(5e-6 + 5e-3));
  CHECK(quantization_time(elements, Dtype::nvfp4, a100.device, rates).count() ==
        doctest::Approx(5e-6 + 2.5e-3));
  const double streaming =
      (a100.rates.streaming.bandwidth_share.value * a100.device.memory_bandwidth).count();
  CHECK(quantization_time(elements, Dtype::mxfp8, a100.device, rates).count() ==
        doctest::Approx(rates.kernels.launch.value.count() + 3e9 / streaming));
}

TEST_CASE(
    "gemm: a cast to MXFP8 for both directions takes what Transformer Engine's kernel took on a GB200") {
  const Performance gb200 = *read_system("gb200-nvl72").performance;
  const auto microseconds = [&](double elements, int copies) {
    return 1e6 *
           quantization_time(elements, Dtype::mxfp8, gb200.device, gb200.rates, {.copies = copies}).count();
  };
  // NVIDIA/TransformerEngine pull request 3137, plain_bf16_e4m3, GPU_cpp_us.
  CHECK(microseconds(4096.0 * 4096, 2) == doctest::Approx(15.97).epsilon(0.01));
  CHECK(microseconds(4096.0 * 8192, 2) == doctest::Approx(26.52).epsilon(0.01));
  CHECK(microseconds(4096.0 * 14336, 2) == doctest::Approx(41.72).epsilon(0.01));
  CHECK(microseconds(4096.0 * 14336, 1) == doctest::Approx(29.96).epsilon(0.15));
}

TEST_CASE("gemm: the fitted range") {
  const MatrixProductRates& rates = performance().rates.products;
  CHECK(within_fit({.rows = 128, .columns = 65536, .inner = 1024}, rates));
  CHECK_FALSE(within_fit({.rows = 1, .columns = 4096, .inner = 4096}, rates));
  CHECK_FALSE(within_fit({.rows = 4096, .columns = 4096, .inner = 64}, rates));
}

TEST_CASE("gemm: never faster than the peak, the power cap or the memory") {
  holds_for_all([] {
    const Gemm gemm = any_gemm();
    const Device& device = performance().device;
    const Rates& rates = performance().rates;
    const Bytes result(2.0 * static_cast<double>(gemm.batch * gemm.rows * gemm.columns));
    RC_ASSERT(burst(gemm) >= flops(gemm) / device.half_peak);
    RC_ASSERT(burst(gemm) >= flops(gemm) / rates.products.power_cap.value);
    RC_ASSERT(burst(gemm) >= result / device.memory_bandwidth);
    RC_ASSERT(burst(gemm) > rates.kernels.launch.value);
  });
}

TEST_CASE("gemm: grows with the batch, and shrinks with the clock") {
  holds_for_all([] {
    const Gemm gemm = any_gemm();
    Gemm larger = gemm;
    larger.batch = gemm.batch + 108;
    if (gemm.batch > 1) RC_ASSERT(burst(larger) > burst(gemm));
    RC_ASSERT(gemm_time(gemm, performance().device, performance().rates, 0.9) >= burst(gemm));
  });
}

TEST_CASE("gemm: rows and columns may change places") {
  holds_for_all([] {
    const Gemm gemm = any_gemm();
    Gemm transposed = gemm;
    std::swap(transposed.rows, transposed.columns);
    RC_ASSERT(burst(gemm) == burst(transposed));
  });
}

}  // namespace headroom
