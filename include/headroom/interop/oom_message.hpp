// Reads the messages of a GPU or a host that ran out of memory from a log: those of PyTorch 1.0 to 2.10, the
// CUDA driver, NCCL, cuBLAS, XLA and the Linux kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headroom/core/units.hpp"

namespace headroom {

// What ran out of memory. torch: PyTorch's allocator, whose message has numbers. driver, nccl, cublas: the
// GPU, outside PyTorch's allocator. xla: the GPU or TPU of a JAX program. host: the memory of the host.
enum class OutOf : std::uint8_t { torch, driver, nccl, cublas, xla, host };

// The first message of a log. Numbers are present if the message states them [PyTorch,
// c10/cuda/CUDACachingAllocator.cpp].
struct OomMessage {
  OutOf source = OutOf::torch;
  std::int64_t line = 0;      // from 1
  std::int64_t messages = 1;  // of this kind in the log
  bool hip = false;           // a GPU of AMD
  std::optional<std::int64_t> gpu;
  std::optional<Bytes> asked;      // of one tensor
  std::optional<Bytes> capacity;   // of the GPU
  std::optional<Bytes> free;       // on the GPU
  std::optional<Bytes> process;    // of this process, what is not PyTorch's included
  std::optional<Bytes> limit;      // set_per_process_memory_fraction
  std::optional<Bytes> allocated;  // by tensors
  std::optional<Bytes> pools;      // private pools of CUDA graphs, part of `allocated`
  std::optional<Bytes> unused;     // reserved by PyTorch, but not allocated
  bool expandable = false;         // the message advises expandable segments: PyTorch 2.2 or later
  friend bool operator==(const OomMessage&, const OomMessage&) = default;
};

// Returns what PyTorch's allocator has reserved, as far as the message states it [PyTorch,
// c10/cuda/CUDACachingAllocator.cpp, malloc].
Bytes reserved(const OomMessage& message);

// Returns the first message of a text, or nothing if it has none. PyTorch's own message is preferred, since
// others may follow from it.
std::optional<OomMessage> read_oom_message(std::string_view text);

// Returns the same of a log of up to 64 GiB, gzipped or not. Reads the log in pieces. Throws InputError if it
// cannot be read.
std::optional<OomMessage> read_oom_log(const std::string& path);

}  // namespace headroom
