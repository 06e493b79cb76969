#include "interop/nvtx_range.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace headroom {
namespace {

constexpr std::string_view before_sizes = ", sizes = ";

// The number of `width` bytes at an offset, least significant first; nothing beyond the end.
std::optional<std::uint64_t> number_in(std::string_view bytes, std::size_t offset, std::size_t width) {
  if (offset > bytes.size() || bytes.size() - offset < width) return std::nullopt;
  std::uint64_t number = 0;
  for (std::size_t i = width; i > 0; --i)
    number = number << 8 | static_cast<unsigned char>(bytes[offset + i - 1]);
  return number;
}

// Bytes of a field: int, uint64_t and size_t, the types that NCCL has [NVTX, nvToolsExtPayload.h].
std::size_t width_of(std::int64_t type) {
  switch (type) {
    case 5: return 4;
    case 18:
    case 22: return 8;
    default: return 0;
  }
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

NvtxText nvtx_text(std::string_view text) {
  NvtxText result;
  const std::size_t at = text.find(before_sizes);
  if (at != std::string_view::npos) {
    const std::string_view rest = text.substr(at + before_sizes.size());
    const std::size_t end = rest.find(", input_op_ids = ");
    result.sizes = rest.substr(0, end);
    text = text.substr(0, at);
  }
  for (const std::string_view other : {", seq = ", ", op_id = "}) text = text.substr(0, text.find(other));
  result.name = text;
  return result;
}

std::vector<std::vector<std::int64_t>> sizes_in(std::string_view sizes) {
  constexpr std::int64_t largest = std::int64_t{1} << 48;
  std::vector<std::vector<std::int64_t>> result;
  int depth = 0;
  bool digits = false;
  for (const char c : sizes) {
    if (c == '[' && depth < 2) {
      if (++depth == 2) result.emplace_back();
      digits = false;
    } else if (c == ']' && depth > 0) {
      --depth;
      digits = false;
    } else if (c >= '0' && c <= '9' && depth == 2) {
      if (!digits) result.back().push_back(0);
      digits = true;
      std::int64_t& number = result.back().back();
      if (number > largest) return {};
      number = 10 * number + (c - '0');
    } else if (c == ',' || c == ' ') {
      digits = false;
    } else {
      return {};
    }
  }
  return depth == 0 ? result : std::vector<std::vector<std::int64_t>>();
}

NcclPayload nccl_payload(std::string_view bytes, const PayloadSchemas& schemas) {
  constexpr std::size_t header = 32;
  NcclPayload payload;
  const auto domain = number_in(bytes, 0, 4);
  const auto schema = number_in(bytes, 8, 4);
  if (!domain || !schema || bytes.size() < header) return payload;
  const auto found = schemas.find({static_cast<std::int64_t>(*domain), static_cast<std::int64_t>(*schema)});
  if (found == schemas.end()) return payload;
  const std::string_view fields = bytes.substr(header);
  for (const PayloadField& field : found->second) {
    const std::size_t width = width_of(field.type);
    if (width == 0 || field.offset < 0) continue;
    const auto number = number_in(fields, static_cast<std::size_t>(field.offset), width);
    if (field.name == "NCCL communicator ID") payload.communicator = number;
    if (field.name == "Message size [bytes]") payload.message_bytes = number;
    if (field.name == "No. of ranks") payload.ranks = number;
    if (field.name == "Rank") payload.rank = number;
  }
  return payload;
}

std::string_view type_in_kernel_name(std::string_view kernel) {
  std::string name(kernel);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  // Casts of loads and stores, and PyTorch's kernels that turn fp32 into 16 bits.
  if (has(name, "withcast") || has(name, "16_copy_kernel")) return {};
  struct Mark {
    std::string_view part;
    std::string_view type;
  };
  // What stands earlier says more: products of 8 bits name the type of their sums as well, those of 16 bits that of accumulators.
  // Names of cuBLAS's nvjet kernels begin with the types of factors, sums and results: qq is 8 bits, t bf16, h fp16, s fp32.
  static constexpr std::array<Mark, 21> marks{{{"e4m3", "c10::Float8_e4m3fn"},
                                               {"e5m2", "c10::Float8_e5m2"},
                                               {"nvjet_qq", "c10::Float8_e4m3fn"},
                                               {"_qqtst_", "c10::Float8_e4m3fn"},
                                               {"bf16", "c10::BFloat16"},
                                               {"bfloat16", "c10::BFloat16"},
                                               {"_tst_", "c10::BFloat16"},
                                               {"_tss_", "c10::BFloat16"},
                                               {"fp16", "c10::Half"},
                                               {"f16", "c10::Half"},
                                               {"c10::half", "c10::Half"},
                                               {"half_t", "c10::Half"},
                                               {"__half", "c10::Half"},
                                               {"_hsh_", "c10::Half"},
                                               {"_h884", "c10::Half"},
                                               {"_h1688", "c10::Half"},
                                               {"_h16816", "c10::Half"},
                                               {"tf32", "float"},
                                               {"f32f32", "float"},
                                               {"sgemm", "float"},
                                               {"float", "float"}}};
  for (const Mark& mark : marks) {
    if (has(name, mark.part)) return mark.type;
  }
  return {};
}

}  // namespace headroom
