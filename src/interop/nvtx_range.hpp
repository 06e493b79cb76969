// The ranges that PyTorch and NCCL mark for NVIDIA's tools: what their texts and payloads say.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interop/profile_events.hpp"

namespace headroom {

// Of "aten::mm, seq = 4, op_id = 7, sizes = [[4096, 1024], [1024, 512]]", which torch.autograd.profiler.emit_nvtx marks
// [PyTorch, torch/csrc/profiler/util.cpp, getNvtxStr]: name and sizes of the arguments; types and values it does not mark.
// Sizes that are no lists of numbers are none.
struct NvtxText {
  std::string_view name;   // "aten::mm"
  std::string_view sizes;  // "[[4096, 1024], [1024, 512]]"; empty where none were recorded
};
NvtxText nvtx_text(std::string_view text);
std::vector<std::vector<std::int64_t>> sizes_in(std::string_view sizes);

// A field of a payload, as tables of an export describe it.
struct PayloadField {
  std::string name;
  std::int64_t type = 0;
  std::int64_t offset = 0;
};
// By domain and schema.
using PayloadSchemas = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<PayloadField>>;

// What NCCL says of a call or of a communicator [NCCL, src/include/nvtx_payload_schemas.h]; nothing where a field is missing.
struct NcclPayload {
  std::optional<std::uint64_t> communicator;
  std::optional<std::uint64_t> message_bytes;
  std::optional<std::uint64_t> ranks;
  std::optional<std::uint64_t> rank;
};

// Of the bytes that an export keeps of a range: 8 each of domain, schema, size of the payload and size of all, then the payload,
// least significant bytes first.
NcclPayload nccl_payload(std::string_view bytes, const PayloadSchemas& schemas);

// The type of elements that the name of a kernel tells, as operators name it ("c10::BFloat16"); nothing where it tells none, or
// where elements are cast on their way.
std::string_view type_in_kernel_name(std::string_view kernel);

}  // namespace headroom
