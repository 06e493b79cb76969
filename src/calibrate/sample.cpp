#include "headroom/calibrate/sample.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include "headroom/calibrate/comparison.hpp"

namespace headroom {
namespace {

// Returns what identifies a shape, including its label: two kernels that move the same bytes are two shapes.
auto shape_of(const Sample& sample) {
  const Gemm& product = sample.product;
  const MeasuredLayer& layer = sample.layer;
  const auto kind =
      std::tuple(sample.kind, sample.label, sample.load, sample.dtype, sample.quantizes, sample.half_format);
  const auto size = std::tuple(product.batch, product.rows, product.columns, product.inner,
                               product.result_bytes, sample.ranks, sample.nodes, sample.bytes.count());
  const Attention& attention = sample.attention;
  const auto heads =
      std::tuple(attention.batch, attention.heads, attention.kv_heads, attention.queries, attention.keys,
                 attention.head_size, attention.value_size, attention.mask, sample.attention_pass);
  const ExpertBlock& block = sample.expert_block;
  const auto experts = std::tuple(block.tokens, block.hidden, block.feedforward, block.top_k, block.experts,
                                  block.tensor_parallel, block.expert_parallel);
  return std::tuple(kind, size, heads, experts, layer.sequence, layer.micro_batch, layer.hidden, layer.heads,
                    layer.tensor_parallel, layer.recompute, layer.pass);
}

// [Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014]
std::uint64_t mixed(std::uint64_t state, std::uint64_t value) {
  state += 0x9E3779B97F4A7C15U + value;
  state = (state ^ (state >> 30U)) * 0xBF58476D1CE4E5B9U;
  state = (state ^ (state >> 27U)) * 0x94D049BB133111EBU;
  return state ^ (state >> 31U);
}

// Splits a GPU's name into upper-case words: "A100", "SXM4", "80GB".
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0) {
      words.back() += static_cast<char>(std::toupper(letter));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

struct DeviceWords {
  std::string model;   // "A100": the first word that is no maker's name
  std::string memory;  // "80GB"
  std::string form;    // "PCIE" or "NVL", which run at other clocks and links; empty for SXM, often not named
};

// Returns whether a word names the maker or a product line; names of GPUs may leave these out.
bool is_makers(const std::string& word) {
  return word == "NVIDIA" || word == "TESLA" || word == "AMD" || word == "INSTINCT" || word == "RADEON" ||
         word == "GRAPHICS" || word == "GEFORCE" || word == "RTX";
}

DeviceWords device_words(const std::string& name) {
  DeviceWords found;
  for (const std::string& word : words_of(name)) {
    const bool figure = !word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) != 0;
    if (figure && word.ends_with("GB")) {
      found.memory = word;
    } else if (word == "PCIE" || word == "NVL") {
      found.form = word;
    } else if ((found.model.empty() || found.model == "PRO") && !is_makers(word)) {
      found.model += word;  // RTX PRO 6000 is not RTX 6000
    }
  }
  return found;
}

}  // namespace

bool tells_bandwidth(const Sample& sample) {
  return sample.bytes >= (sample.kind == SampleKind::streaming ? 64_MiB : 16_MiB);
}

bool same_shape(const Sample& x, const Sample& y) { return shape_of(x) == shape_of(y); }

std::uint64_t shape_hash(const Sample& sample) {
  const Gemm& product = sample.product;
  std::uint64_t state = static_cast<std::uint64_t>(sample.kind);
  for (const std::int64_t size :
       {product.batch, product.rows, product.columns, product.inner, product.result_bytes, sample.ranks}) {
    state = mixed(state, static_cast<std::uint64_t>(size));
  }
  if (sample.kind == SampleKind::attention) {
    const Attention& it = sample.attention;
    for (const std::int64_t size : {it.batch, it.heads, it.kv_heads, it.queries, it.head_size, it.value_size,
                                    static_cast<std::int64_t>(std::llround(it.keys))}) {
      state = mixed(state, static_cast<std::uint64_t>(size));
    }
  }
  if (sample.kind == SampleKind::expert_block) {
    const ExpertBlock& it = sample.expert_block;
    for (const std::int64_t size : {it.tokens, it.hidden, it.feedforward, it.top_k, it.experts,
                                    it.tensor_parallel, it.expert_parallel}) {
      state = mixed(state, static_cast<std::uint64_t>(size));
    }
  }
  return mixed(state, static_cast<std::uint64_t>(sample.bytes.count()));
}

std::vector<Sample> merge_repeated(const std::vector<Sample>& samples) {
  std::map<decltype(shape_of(Sample())), std::size_t> places;
  std::vector<Sample> merged;
  std::vector<std::vector<double>> times;
  for (const Sample& sample : samples) {
    const auto [place, fresh] = places.try_emplace(shape_of(sample), merged.size());
    if (fresh) {
      merged.push_back(sample);
      times.emplace_back();
    }
    times[place->second].push_back(sample.median.count());
  }
  for (std::size_t i = 0; i < merged.size(); ++i) merged[i].median = Seconds(median(times[i]));
  return merged;
}

bool same_device(const std::string& x, const std::string& y) {
  const DeviceWords first = device_words(x);
  const DeviceWords second = device_words(y);
  const bool memory = first.memory == second.memory || first.memory.empty() || second.memory.empty();
  return first.model == second.model && first.form == second.form && memory;
}

}  // namespace headroom
