#include "designed.hpp"

#include <algorithm>
#include <array>

#include "headroom/core/counts.hpp"
#include "headroom/core/expects.hpp"

namespace headroom::harness {
namespace {

constexpr std::array<std::string_view, 3> layout_names{"forward", "data gradient", "weight gradient"};

constexpr std::int64_t least_elements = 1 << 14;
constexpr std::int64_t most_elements = 1 << 28;
constexpr std::int64_t least_message = 1 << 12;
constexpr std::int64_t most_message = 1 << 29;

Sample product(Layout layout, const Gemm& shape, Load load) {
  Sample sample{.kind = SampleKind::matrix_product, .product = shape, .load = load};
  sample.label = layout_names[static_cast<std::size_t>(layout)];
  sample.product.result_bytes = layout == Layout::weight_gradient ? 8 : 2;
  const Gemm& gemm = sample.product;
  const std::int64_t factors = gemm.rows * gemm.inner + gemm.inner * gemm.columns;
  sample.bytes = Bytes(real(gemm.batch * (2 * factors + gemm.result_bytes * gemm.rows * gemm.columns)));
  return sample;
}

// Sides apart by less than a factor of two in all three directions, with some that are no powers of two, as the widths
// of a layer split over 1 to 8 ranks are.
void add_grid(std::vector<Sample>& all) {
  for (const std::int64_t m : {128, 512, 1024, 2048, 4096, 8192}) {
    for (const std::int64_t n : {128, 768, 1536, 3072, 6144, 12288}) {
      for (const std::int64_t k : {128, 768, 1536, 3072, 6144, 12288}) {
        all.push_back(product(Layout::forward, {.rows = m, .columns = n, .inner = k}, Load::burst));
      }
    }
  }
}

// Of layers of width h, split over t ranks: QKV, projection and both of the MLP, with their gradients.
void add_layer_products(std::vector<Sample>& all) {
  constexpr std::int64_t tokens = 4096;
  for (const std::int64_t h : {4096, 6144, 12288}) {
    for (const std::int64_t t : {1, 8}) {
      const std::array<std::array<std::int64_t, 2>, 4> weights{
          {{3 * h / t, h}, {h, h / t}, {4 * h / t, h}, {h, 4 * h / t}}};
      for (const auto& [out, in] : weights) {
        for (const Load load : {Load::burst, Load::sustained}) {
          // Bursts of it lie within the grid.
          if (load == Load::sustained)
            all.push_back(product(Layout::forward, {.rows = tokens, .columns = out, .inner = in}, load));
          all.push_back(product(Layout::data_gradient, {.rows = tokens, .columns = in, .inner = out}, load));
          all.push_back(
              product(Layout::weight_gradient, {.rows = out, .columns = in, .inner = tokens}, load));
        }
      }
    }
  }
}

// Scores and context of attention: heads of width 128 and 64 over sequences of 1024 to 4096.
void add_batched(std::vector<Sample>& all) {
  for (const std::int64_t batch : {8, 64}) {
    for (const std::int64_t width : {64, 128}) {
      for (const std::int64_t sequence : {1024, 2048, 4096}) {
        const Gemm scores{.batch = batch, .rows = sequence, .columns = sequence, .inner = width};
        const Gemm context{.batch = batch, .rows = sequence, .columns = width, .inner = sequence};
        all.push_back(product(Layout::forward, scores, Load::burst));
        all.push_back(product(Layout::data_gradient, context, Load::burst));
      }
    }
  }
}

}  // namespace

Layout layout_of(const Sample& product) {
  const auto* const found = std::find(layout_names.begin(), layout_names.end(), product.label);
  EXPECTS(found != layout_names.end());
  return static_cast<Layout>(found - layout_names.begin());
}

std::int64_t bytes_an_element(std::string_view streaming_kernel) {
  if (streaming_kernel == "residual_add") return 6;  // reads two
  if (streaming_kernel == "dropout") return 5;       // writes a mask besides
  return 4;
}

std::vector<Sample> designed_kernels() {
  std::vector<Sample> all{{.kind = SampleKind::empty_kernel}};
  for (std::int64_t count = least_elements; count <= most_elements; count *= 4) {
    for (const std::string_view kernel : streaming_kernels) {
      all.push_back({.kind = SampleKind::streaming,
                     .label = std::string(kernel),
                     .bytes = Bytes(real(count * bytes_an_element(kernel))),
                     .half_format = HalfFormat::bf16});
    }
  }
  return all;
}

std::vector<Sample> designed_products(const std::vector<HalfFormat>& formats) {
  std::vector<Sample> all;
  for (const HalfFormat format : formats) {
    std::vector<Sample> of_format;
    add_grid(of_format);
    add_layer_products(of_format);
    add_batched(of_format);
    for (Sample& sample : of_format) sample.half_format = format;
    all.insert(all.end(), of_format.begin(), of_format.end());
  }
  return all;
}

std::vector<std::int64_t> rank_counts(std::int64_t ranks) {
  std::vector<std::int64_t> counts;
  for (std::int64_t count = 2; count < ranks; count *= 2) counts.push_back(count);
  if (ranks >= 2) counts.push_back(ranks);
  return counts;
}

std::vector<Sample> designed_collectives(std::int64_t ranks, std::int64_t nodes) {
  std::vector<Sample> all;
  for (const SampleKind kind : {SampleKind::all_reduce, SampleKind::all_gather, SampleKind::reduce_scatter,
                                SampleKind::all_to_all, SampleKind::send_receive}) {
    for (std::int64_t bytes = least_message; bytes <= most_message; bytes *= 2) {
      // Whole elements for every rank.
      const std::int64_t share = 2 * ranks;
      all.push_back({.kind = kind,
                     .ranks = ranks,
                     .nodes = nodes,
                     .bytes = Bytes(real(std::max(bytes / share, std::int64_t{1}) * share)),
                     .half_format = HalfFormat::bf16});
    }
  }
  return all;
}

Seconds assumed_duration(const Sample& sample) {
  constexpr double overhead = 0.1;   // allocation, verification
  constexpr double burst = 0.01;     // windows of half a millisecond
  constexpr double pauses = 0.3;     // before the windows of a burst on one GPU
  constexpr double sustained = 2.1;  // the load before the first window, and the windows
  constexpr double windows = 30;  // of work that is longer than a window, those that are not timed among them
  constexpr FlopsPerSecond products(200e12);
  constexpr BytesPerSecond memory(1e12);
  constexpr BytesPerSecond links(100e9);
  switch (sample.kind) {
    case SampleKind::matrix_product: {
      const Seconds once = flops(sample.product) / products + sample.bytes / memory;
      return Seconds(overhead + (sample.load == Load::sustained ? sustained : burst + pauses)) +
             windows * once;
    }
    case SampleKind::streaming:
    case SampleKind::empty_kernel:
      return Seconds(overhead + burst + pauses) + windows * (sample.bytes / memory);
    default: break;
  }
  constexpr double launches = 5;  // a window of a collective has no fewer
  return Seconds(burst) + windows * launches * (sample.bytes / links);
}

}  // namespace headroom::harness
