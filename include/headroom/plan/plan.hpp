// Plan that answers a request: memory of every pipeline rank by component, against capacity, and the
// iteration time on a system whose performance is known.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/core/names.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/memory/held.hpp"
#include "headroom/model/detail.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/plan/iteration_time.hpp"
#include "headroom/plan/throughput.hpp"

namespace headroom {

struct Asked;
struct ModelLayers;
class KnownLayers;

// Default margin as a fraction of capacity. Assumed, for fragmentation and transient buffers, which are not
// counted.
inline constexpr double usual_margin = 0.05;

struct Request {
  Transformer model;
  System system;
  Software software;
  Strategy strategy;
  Workload workload;
  Detail detail = Detail::paper;
  double margin = usual_margin;  // fraction of capacity that must stay free for the verdict `fits`
  // Fields that the user set. Searches then keep what the stack's launcher refuses of them.
  std::vector<std::string> insisted = {};
  friend bool operator==(const Request&, const Request&) = default;
};

// `marginal`: the plan fits, but leaves less free than the margin.
enum class Verdict : std::uint8_t { fits, marginal, does_not_fit };

// Code of the warning that the stack's launcher has no flag for a part of the strategy
// (parallel/legality.hpp).
inline constexpr std::string_view no_launcher_flag = "no_launcher_flag";

// A stable code and a sentence for the user.
struct Warning {
  std::string code;
  std::string text;
  friend bool operator==(const Warning&, const Warning&) = default;
};

// Number or simplification that was neither counted nor measured, with its source.
struct Assumption {
  std::string text;
  std::string source;
  friend bool operator==(const Assumption&, const Assumption&) = default;
};

struct Timing {
  IterationTime iteration;
  IterationFlops flops;
  Throughput throughput;
  friend bool operator==(const Timing&, const Timing&) = default;
};

// Memory of one host if something is offloaded to it, as if all its GPUs were of the rank that offloads the
// most.
struct HostMemory {
  std::int64_t devices = 0;
  Bytes needed;
  Bytes available;
  friend bool operator==(const HostMemory&, const HostMemory&) = default;
};
constexpr bool lacks(const HostMemory& host) { return host.needed > host.available; }

// Memory that PyTorch's caching allocator reserves for the tensors of a rank (plan/allocator_use.hpp).
struct AllocatorUse {
  std::size_t rank = 0;  // pipeline rank
  Bytes reserved;
  Bytes allocated;                // most that the rank's tensors take at once
  Bytes expandable;               // reserved memory with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
  bool fits_with_retries = true;  // stays within the GPU's memory by freeing cached segments
  friend bool operator==(const AllocatorUse&, const AllocatorUse&) = default;
};

// Op tables of a request's layers. All that are known of equal requests are equal.
struct PlanLayers {
  std::shared_ptr<const ModelLayers> tables;
  friend bool operator==(const PlanLayers&, const PlanLayers&) { return true; }
};

struct Plan {
  Request request;
  PlanLayers layers;
  std::vector<RankMemory> ranks;  // by pipeline rank; tensor- and data-parallel ranks are alike
  std::size_t peak_rank = 0;      // first rank that holds the most
  Verdict verdict = Verdict::fits;
  std::optional<AllocatorUse> allocator;  // of the rank that reserves the most; settled() sets it if known
  std::optional<HostMemory> host;
  std::optional<Timing> timing;  // if the system has performance figures
  std::vector<Assumption> assumptions;
  std::vector<Warning> warnings;
  friend bool operator==(const Plan&, const Plan&) = default;
};

Bytes peak(const Plan& plan);
// Returns the bytes left free at the peak; negative if the plan does not fit.
Bytes headroom_of(const Plan& plan);

// Plan that does not fit: the limit, what the peak rank or a host needs, and what is available. `attempt`
// holds the full plan.
struct Infeasible {
  Plan attempt;
  std::string limit;  // "device_memory" (tensors), "reserved_memory" (PyTorch's allocator) or "host_memory"
  Bytes needed;
  Bytes available;
  friend bool operator==(const Infeasible&, const Infeasible&) = default;
};

using Evaluation = std::variant<Plan, Infeasible>;

// Returns the question for the rules (parallel/legality.hpp), with `strategy` in place of the request's.
// `known`: layers of the request's model on its stack, or null.
Asked asked(const Request& request, const Strategy& strategy, KnownLayers* known = nullptr);

// Returns what keeps a strategy from running the request's model and batch on its training stack and GPUs, by
// field.
std::vector<Problem> illegalities(const Request& request, const Strategy& strategy);

// Returns the verdict on a peak, for the request's GPUs and margin.
Verdict verdict_of(const Request& request, Bytes peak);

// Evaluates the request by what tensors take at once. Throws InputError with every broken rule if the
// strategy is not legal.
Evaluation evaluate(const Request& request);

// Returns the plan of an evaluation, whether it fits or not; a temporary evaluation gives a value.
const Plan& account(const Evaluation& evaluation);
Plan account(Evaluation&& evaluation);

template <>
inline constexpr std::array<Spelling<Verdict>, 3> spellings<Verdict>{{
    {Verdict::fits, "fits"},
    {Verdict::marginal, "marginal"},
    {Verdict::does_not_fit, "does_not_fit"},
}};

}  // namespace headroom
