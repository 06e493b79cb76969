#include "interop/profile_work.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <set>
#include <vector>

#include "headroom/core/expects.hpp"
#include "interop/profile_operators.hpp"
#include "io/attention_sample.hpp"

namespace headroom {
namespace {

constexpr std::string_view product_work = "matrix products";
constexpr std::string_view attention_work = "flash attention";
constexpr std::string_view collective_work = "collectives";
constexpr std::string_view streaming_work = "memory-bound kernels";

constexpr std::int64_t largest_side = std::int64_t{1} << 28;
constexpr double most_bytes = 1e15;

std::string lower(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c != '_' && c != ' ') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

bool holds(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// Bytes of one element, 0 for a type that is not known: as operators ("c10::BFloat16", "long int") and as collectives
// ("BFloat16", "Long") name them.
int bytes_of(std::string_view type) {
  std::string name = lower(type);
  if (name.starts_with("c10::")) name.erase(0, 5);
  if (name.starts_with("float8") || name == "bool" || name == "char" || name == "byte" ||
      name == "signedchar" || name == "unsignedchar")
    return 1;
  if (name == "bfloat16" || name == "half" || name == "short" || name == "shortint") return 2;
  if (name == "float" || name == "int") return 4;
  if (name == "double" || name == "long" || name == "longint") return 8;
  return 0;
}

HalfFormat half_format_of(std::string_view type) {
  if (type == "c10::BFloat16") return HalfFormat::bf16;
  return type == "c10::Half" ? HalfFormat::fp16 : HalfFormat::unnamed;
}

const std::string& at(const std::vector<std::string>& texts, std::size_t place) {
  static const std::string none;
  return place < texts.size() ? texts[place] : none;
}

const std::vector<std::int64_t>& sizes_at(const OperatorCall& call, std::size_t place) {
  static const std::vector<std::int64_t> none;
  return place < call.sizes.size() ? call.sizes[place] : none;
}

bool are_sides(const std::vector<std::int64_t>& sizes) {
  return !sizes.empty() && std::all_of(sizes.begin(), sizes.end(),
                                       [](std::int64_t size) { return size >= 1 && size <= largest_side; });
}

double elements_of(const std::vector<std::int64_t>& sizes) {
  double elements = 1;
  for (const std::int64_t size : sizes) elements *= static_cast<double>(size);
  return elements;
}

ProfiledWork problem_of(std::string_view work, std::string problem) {
  return {.work = std::string(work), .problem = std::move(problem), .sample = std::nullopt};
}

// How the scales of a product in 8 bits are laid out tells its type: one for the tensor or a row, or one for 128 elements.
Dtype scaled_type(const OperatorCall& call, std::int64_t inner) {
  const std::vector<std::int64_t>& scales = sizes_at(call, 2);
  const bool blocks = scales.size() == 2 && scales[1] == (inner + 127) / 128 && scales[1] > 1;
  return blocks ? Dtype::fp8_blockwise : Dtype::fp8;
}

ProfiledWork product_of(const OperatorCall& call, const ProductOperator& row) {
  const std::vector<std::int64_t>& a = sizes_at(call, row.first);
  const std::vector<std::int64_t>& b = sizes_at(call, row.first + 1);
  const std::size_t rank = a.size();
  if (rank != b.size() || (rank != 2 && rank != 3))
    return problem_of(product_work, std::string(shapes_not_recorded));
  if (!are_sides(a) || !are_sides(b) || a[rank - 1] != b[rank - 2])
    return problem_of(product_work, "of nothing");
  Sample sample{.kind = SampleKind::matrix_product, .load = Load::sustained};
  sample.product = {
      .batch = rank == 3 ? a[0] : 1, .rows = a[rank - 2], .columns = b[rank - 1], .inner = a[rank - 1]};
  const std::string& type = at(call.types, row.first);
  if (type != at(call.types, row.first + 1) && bytes_of(type) != 1)
    return problem_of(product_work, "of two types");
  sample.half_format = half_format_of(type);
  if (type.starts_with("c10::Float8")) {
    sample.dtype = sample.product.dtype = scaled_type(call, sample.product.inner);
  } else if (type == "float") {
    return problem_of(product_work, "in fp32 or TF32, which no rate is fitted to");
  } else if (sample.half_format == HalfFormat::unnamed) {
    return problem_of(product_work, "in other types than bf16, fp16 and fp8");
  }
  return {.work = std::string(product_work), .problem = {}, .sample = sample};
}

std::optional<std::int64_t> number_of(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && read == end ? std::optional(number) : std::nullopt;
}

ProfiledWork attention_of(const OperatorCall& call, const AttentionOperator& row) {
  const std::vector<std::int64_t>& q = sizes_at(call, row.first);
  const std::vector<std::int64_t>& k = sizes_at(call, row.first + 1);
  const std::vector<std::int64_t>& v = sizes_at(call, row.first + 2);
  if (row.lengths > 0 && !sizes_at(call, row.lengths).empty())
    return problem_of(attention_work, "of packed sequences, whose lengths are not recorded");
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || !are_sides(q) || !are_sides(k) || !are_sides(v))
    return problem_of(attention_work, std::string(shapes_not_recorded));
  const std::size_t heads = row.heads_first ? 1 : 2;
  const std::size_t sequence = 3 - heads;
  const std::string& causal = at(call.values, row.causal);
  if (causal != "True" && causal != "False")
    return problem_of(attention_work, "of which no mask is recorded: newer profilers record it");
  Sample sample{.kind = SampleKind::attention, .load = Load::sustained};
  sample.attention_pass = row.pass;
  Attention& it = sample.attention;
  it = {.batch = q[0],
        .heads = q[heads],
        .kv_heads = k[heads],
        .queries = q[sequence],
        .head_size = q[3],
        .value_size = v[3]};
  sample.half_format = half_format_of(at(call.types, row.first));
  if (sample.half_format == HalfFormat::unnamed)
    return problem_of(attention_work, "in other types than bf16 and fp16");
  if (k[sequence] != it.queries || v[sequence] != it.queries)
    return problem_of(attention_work, "of queries and keys of different length");
  std::int64_t window = 0;
  if (row.window > 0) {
    const auto before = number_of(at(call.values, row.window));
    if (before && *before >= 0) window = *before + 1;  // the query's own token is not counted
  }
  if (!set_mask(it, causal == "True", window))
    return problem_of(attention_work, "with a window and no causal mask");
  if (refused(it)) return problem_of(attention_work, "of shapes that no kernel has");
  return {.work = std::string(attention_work), .problem = {}, .sample = sample};
}

// All extents that tensors of these sizes are stretched to; nothing where they do not fit one another.
std::optional<std::vector<std::int64_t>> broadcast(const std::vector<std::vector<std::int64_t>>& tensors) {
  std::vector<std::int64_t> result;
  for (const std::vector<std::int64_t>& sizes : tensors) {
    if (sizes.size() > result.size()) result.insert(result.begin(), sizes.size() - result.size(), 1);
    const std::size_t skipped = result.size() - sizes.size();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::int64_t& extent = result[skipped + i];
      if (extent == 1) extent = sizes[i];
      if (sizes[i] != 1 && sizes[i] != extent) return std::nullopt;
    }
  }
  return result;
}

ProfiledWork streaming_of(const OperatorCall& call, const StreamingOperator& row) {
  const auto unknown = [](const char* problem) { return problem_of(streaming_work, problem); };
  double bytes = 0;
  int widest = 0;
  std::vector<std::vector<std::int64_t>> tensors;
  for (std::size_t i = row.first; i < row.first + row.count; ++i) {
    const std::vector<std::int64_t>& sizes = sizes_at(call, i);
    if (sizes.empty()) continue;  // a scalar
    const int size = bytes_of(at(call.types, i));
    if (size == 0 || !are_sides(sizes)) return unknown("of types or sizes that are not known");
    bytes += elements_of(sizes) * size;
    widest = std::max(widest, size);
    tensors.push_back(sizes);
  }
  std::vector<std::int64_t> written = sizes_at(call, 0);
  double written_size = bytes_of(at(call.types, 0));
  if (row.written == Written::broadcast) {
    const auto all = broadcast(tensors);
    if (!all) return unknown("of sizes that do not fit");
    written = *all;
    written_size = widest;
  }
  if (row.written == Written::with_mask) written_size += 1;
  if (!are_sides(written) || written_size == 0) return unknown("of types or sizes that are not known");
  bytes += elements_of(written) * written_size;
  if (bytes > most_bytes) return unknown("of types or sizes that are not known");
  return {
      .work = std::string(streaming_work),
      .problem = {},
      .sample = Sample{
          .kind = SampleKind::streaming, .label = call.name, .bytes = Bytes(bytes), .load = Load::sustained}};
}

// Nodes that a group is spread over, as many ranks on each; nothing where that is not known. Of a long group the first ranks
// are recorded, and the others follow as these do.
std::optional<std::int64_t> nodes_of(const CollectiveCall& call, std::int64_t devices_per_node) {
  std::vector<std::int64_t> ranks = call.first_ranks;
  if (ranks.size() < 2 || static_cast<std::int64_t>(ranks.size()) > call.ranks) return std::nullopt;
  const std::int64_t stride = ranks[1] - ranks[0];
  while (static_cast<std::int64_t>(ranks.size()) < call.ranks) ranks.push_back(ranks.back() + stride);
  std::set<std::int64_t> nodes;
  for (const std::int64_t rank : ranks) nodes.insert(rank / devices_per_node);
  const auto count = static_cast<std::int64_t>(nodes.size());
  return call.ranks % count == 0 ? std::optional(count) : std::nullopt;
}

}  // namespace

bool is_read(std::string_view operator_name) {
  return find_in(product_operators, operator_name) != nullptr ||
         find_in(attention_operators, operator_name) != nullptr ||
         find_in(streaming_operators, operator_name) != nullptr;
}

ProfiledWork work_of(const OperatorCall& call) {
  if (call.types.empty() && !call.sizes.empty()) {
    const bool product = find_in(product_operators, call.name) != nullptr;
    const bool attention = find_in(attention_operators, call.name) != nullptr;
    return problem_of(product     ? product_work
                      : attention ? attention_work
                                  : streaming_work,
                      "whose types neither the profiler nor the names of kernels tell");
  }
  if (const ProductOperator* row = find_in(product_operators, call.name)) return product_of(call, *row);
  if (const AttentionOperator* row = find_in(attention_operators, call.name)) return attention_of(call, *row);
  const StreamingOperator* row = find_in(streaming_operators, call.name);
  EXPECTS(row != nullptr);
  return streaming_of(call, *row);
}

std::optional<SampleKind> collective_named(std::string_view name) {
  const std::string plain = lower(name);
  if (holds(plain, {"allreduce"})) return SampleKind::all_reduce;
  if (holds(plain, {"allgather"})) return SampleKind::all_gather;
  if (holds(plain, {"reducescatter"})) return SampleKind::reduce_scatter;
  if (holds(plain, {"alltoall"})) return SampleKind::all_to_all;
  return std::nullopt;
}

ProfiledWork work_of(const CollectiveCall& call, std::int64_t devices_per_node) {
  constexpr std::int64_t most_ranks = 1 << 16;
  const auto kind = collective_named(call.name);
  if (!kind)
    return problem_of(collective_work, "of kinds that no rate is fitted to: broadcasts, sends and others");
  const int size = bytes_of(call.type);
  const std::int64_t elements =
      *kind == SampleKind::all_gather ? std::max(call.elements_in, call.elements_out) : call.elements_in;
  if (size == 0 || elements < 1 || call.ranks < 2 || call.ranks > most_ranks ||
      static_cast<double>(elements) > most_bytes)
    return problem_of(collective_work, "whose size or number of ranks is not recorded");
  if (call.uneven) return problem_of(collective_work, "that send different amounts to different ranks");
  const auto nodes = call.nodes > 0 ? std::optional(call.nodes) : nodes_of(call, devices_per_node);
  if (!nodes) return problem_of(collective_work, "over ranks that are not recorded");
  return {.work = std::string(collective_work),
          .problem = {},
          .sample = Sample{.kind = *kind,
                           .ranks = call.ranks,
                           .nodes = *nodes,
                           .bytes = Bytes(static_cast<double>(elements) * size),
                           .load = Load::sustained}};
}

ProfiledWork work_of_copy(double bytes) {
  if (2 * bytes > most_bytes) return problem_of(streaming_work, "of types or sizes that are not known");
  return {.work = std::string(streaming_work),
          .problem = {},
          .sample = Sample{.kind = SampleKind::streaming,
                           .label = "memcpy",
                           .bytes = Bytes(2 * bytes),  // read and written
                           .load = Load::sustained}};
}

ProfiledWork work_of(std::string_view kernel_name, std::string_view operator_name) {
  const std::string kernel = lower(kernel_name);
  const std::string name = lower(operator_name);
  if (kernel.starts_with("nccl") || kernel.starts_with("rccl"))
    return problem_of(collective_work, "whose size or number of ranks is not recorded");
  if (holds(kernel, {"fmha", "flash", "fusedattention", "sdpa"}))
    return problem_of(attention_work, std::string(shapes_not_recorded));
  const bool convolves = holds(name, {"conv"}) || holds(kernel, {"conv", "fprop", "dgrad", "wgrad"});
  if (!convolves && holds(kernel, {"gemm", "cijk", "nvjet"}))
    return problem_of(product_work, std::string(shapes_not_recorded));
  return problem_of("other kernels", "that no rate is fitted to");
}

}  // namespace headroom
