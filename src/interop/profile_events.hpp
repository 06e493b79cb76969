// What a profile says happened: kernels on the GPU, the launches that started them, and the operators under way on the
// threads that launched. Names and calls that repeat are kept once.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace headroom {

// A call of an operator, with what the profiler recorded of its arguments: one entry for each of them. A profiler that records
// no types leaves that list empty, and names of kernels have to tell them.
struct OperatorCall {
  std::string name;                              // "aten::mm"
  std::vector<std::vector<std::int64_t>> sizes;  // of tensors, else empty
  std::vector<std::string> types;                // "c10::BFloat16"
  std::vector<std::string> values;               // of what is no tensor: "True"
};

struct CollectiveCall {
  std::string name;  // "_allgather_base"
  std::string type;  // "BFloat16"
  std::int64_t elements_in = 0;
  std::int64_t elements_out = 0;
  std::int64_t ranks = 0;                 // 0 where it is not recorded
  std::vector<std::int64_t> first_ranks;  // all of them, or the first few
  std::int64_t nodes = 0;                 // 0 where the ranks tell it
  bool uneven = false;                    // ranks send different amounts
};

// Times are microseconds of the profile's clock.
struct ProfiledOperator {
  std::int32_t thread = 0;
  std::int32_t name = 0;         // of ProfileEvents::names
  std::int32_t call = -1;        // of ProfileEvents::calls; -1 for operators of which nothing is read
  std::int32_t collective = -1;  // of ProfileEvents::collectives, where it is a call of NCCL
  double begin = 0;
  double end = 0;
};

struct KernelLaunch {
  std::int32_t thread = 0;
  double at = 0;
};

struct ProfiledKernel {
  std::int64_t correlation = -1;  // of its launch
  std::int32_t name = 0;
  std::int32_t collective = -1;  // of ProfileEvents::collectives
  double microseconds = 0;
  double copied_bytes = 0;  // of a copy on the GPU that is no kernel
};

struct ProfileEvents {
  std::string device;       // "NVIDIA A100-SXM4-40GB"; empty where it is not recorded
  std::string environment;  // versions, in words
  std::vector<std::string> names;
  std::vector<OperatorCall> calls;
  std::vector<CollectiveCall> collectives;
  std::vector<ProfiledOperator> operators;
  std::unordered_map<std::int64_t, KernelLaunch> launches;  // by correlation
  std::vector<ProfiledKernel> kernels;
};

}  // namespace headroom
