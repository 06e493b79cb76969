// Gathered weights of units that data-parallel ranks shard, as PyTorch's caching allocator serves them.
#pragma once

#include <optional>
#include <utility>

#include "headroom/core/units.hpp"
#include "plan/allocation_log.hpp"

namespace headroom {

enum Stream : int { compute, gather, reduce };

// Gathered unit: the buffer that receives the weights and, if the stack copies them out, tensors of their
// own.
struct GatheredUnit {
  Bytes bytes;
  TracedTensor tensor;
  std::optional<CachingAllocator::Block> buffer;
  std::optional<CachingAllocator::Block> weights;
};
inline bool is_there(const GatheredUnit& unit) { return unit.buffer || unit.weights; }

class GatheredUnits {
 public:
  explicit GatheredUnits(LoggedAllocator& allocator) : allocator_(allocator) {}

  // Gathers a unit of so many bytes on the stream of gathers, if it has any.
  GatheredUnit start(Bytes bytes, const TracedTensor& tensor) {
    if (bytes <= Bytes(0)) return {};
    return {.bytes = bytes,
            .tensor = tensor,
            .buffer = allocator_.allocate(bytes, gather, [&] { return tensor; }),
            .weights = {}};
  }

  void copy(GatheredUnit& unit) {
    if (!unit.buffer) return;
    unit.weights = allocator_.allocate(unit.bytes, compute, [&] { return unit.tensor; });
    allocator_.free(*std::exchange(unit.buffer, std::nullopt));
  }

  // Gathers a unit. In a forward pass, FSDP2 gathers a unit when it reaches the unit, and frees the copied
  // buffer once the next unit has arrived [PyTorch, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py,
  // wait_for_unshard].
  GatheredUnit start_and_copy(Bytes bytes, const TracedTensor& tensor) {
    GatheredUnit unit = start(bytes, tensor);
    if (!unit.buffer) return unit;
    free_copied();
    unit.weights = allocator_.allocate(unit.bytes, compute, [&] { return tensor; });
    copied_ = std::exchange(unit.buffer, std::nullopt);
    return unit;
  }

  // Frees the buffer from which the last unit of a forward pass was copied.
  void free_copied() {
    if (copied_) allocator_.free(*std::exchange(copied_, std::nullopt));
  }

  void release(GatheredUnit& unit) {
    if (unit.buffer) allocator_.free(*unit.buffer);
    if (unit.weights) allocator_.free(*unit.weights);
    unit = {};
  }

 private:
  LoggedAllocator& allocator_;
  std::optional<CachingAllocator::Block> copied_;
};

}  // namespace headroom
