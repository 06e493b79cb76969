#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "filling.cuh"
#include "headroom/core/counts.hpp"
#include "layer.cuh"
#include "layers.cuh"

namespace headroom::harness {
namespace {

constexpr std::uint64_t input_seed = 11;
constexpr std::uint64_t gradient_seed = 12;

LayerSize size_of(const MeasuredLayer& layer) {
  return {.sequence = layer.sequence,
          .micro_batch = layer.micro_batch,
          .hidden = layer.hidden,
          .heads = layer.heads,
          .shards = layer.tensor_parallel};
}


// Half-precision parameters with their fp32 gradients, and the pool.
double needed_bytes(const LayerSize& size) {
  const double parameters = 12 * real(size.hidden) * real(size.hidden) / real(size.shards);
  return 6 * parameters + real(static_cast<std::int64_t>(pool_bytes(size)));
}

bool fits(const LayerSize& size) {
  std::size_t free = 0;
  std::size_t all = 0;
  check(cudaMemGetInfo(&free, &all));
  return needed_bytes(size) < 0.9 * static_cast<double>(free);
}

template <class T>
class LayerRun {
 public:
  LayerRun(const MeasuredLayer& measured, const LayerRank& rank)
      : size_(size_of(measured)),
        rank_(rank),
        library_(make_library()),
        pool_(rank.stream),
        layer_(size_, rank.shard, measured.recompute, pool_, library_, rank.communicator, rank.stream),
        input_(token_bytes()),
        output_(token_bytes()),
        output_gradient_(token_bytes()),
        input_gradient_(token_bytes()) {
    pool_.reserve(pool_bytes(size_));
    fill(input_.as<T>(), size_.tokens() * size_.hidden, input_seed, rank.stream);
    fill(output_gradient_.as<T>(), size_.tokens() * size_.hidden, gradient_seed, rank.stream);
    rank.together.agree(0);
  }

  // One pass each way with the allocator's bytes read between.
  void read_memory(MeasuredLayer& forward, MeasuredLayer& backward) {
    const auto bytes = [](std::size_t count) { return Bytes(static_cast<double>(count)); };
    pool_.set_careful(true);
    const std::size_t before = pool_.used_bytes();
    prepare();
    pool_.reset_peak();
    run_forward();
    forward.stored = backward.stored = bytes(pool_.used_bytes() - before);
    forward.peak = bytes(pool_.peak_bytes() - before);
    pool_.reset_peak();
    run_backward();
    backward.peak = bytes(pool_.peak_bytes() - before);
    if (pool_.used_bytes() != before)
      throw std::logic_error("the layer's backward pass leaves tensors behind");
    pool_.set_careful(false);
  }

  std::optional<PassTimings> time(const Nvml* nvml) {
    return time_passes(rank_.stream,
                       {.prepare = [this](cudaStream_t) { prepare(); },
                        .forward = [this](cudaStream_t) { run_forward(); },
                        .backward = [this](cudaStream_t) { run_backward(); }},
                       rank_.together, nvml);
  }

 private:
  [[nodiscard]] std::size_t token_bytes() const {
    return static_cast<std::size_t>(size_.tokens() * size_.hidden) * sizeof(T);
  }
  void prepare() {
    tensor_ = Tensor(pool_, static_cast<std::int64_t>(token_bytes()));
    check(cudaMemcpyAsync(tensor_.as<void>(), input_.template as<void>(), token_bytes(),
                          cudaMemcpyDeviceToDevice, rank_.stream));
  }
  void run_forward() { layer_.forward(std::move(tensor_), output_.template as<T>()); }
  void run_backward() {
    layer_.backward(output_gradient_.template as<const T>(), input_gradient_.template as<T>());
  }

  LayerSize size_;
  const LayerRank& rank_;
  Library library_;
  Pool pool_;
  Layer<T> layer_;
  Buffer input_, output_, output_gradient_, input_gradient_;
  Tensor tensor_;
};

template <class T>
void measure(Sample forward, Sample backward, const LayerRank& rank, const Session& session) {
  LayerRun<T> run(forward.layer, rank);
  run.read_memory(forward.layer, backward.layer);
  const auto timings = run.time(session.nvml);
  if (!timings) return;
  session.add(forward, timings->forward, timings->state);
  session.add(backward, timings->backward, timings->state);
}

// What check_layer() finds on any rank of the group, so that all leave out the same; empty where all is right.
std::string error_of_check(const Sample& sample, const LayerRank& rank) {
  const std::int64_t shards = rank.communicator == nullptr ? 1 : sample.layer.tensor_parallel;
  std::string error;
  try {
    check_layer(sample.half_format, sample.layer.recompute, shards, rank);
  } catch (const SampleError& wrong) {
    error = wrong.what();
  }
  if (rank.together.agree(error.empty() ? 0 : 1) != 0 && error.empty())
    error = "a layer is wrong on another rank";
  return error;
}

}  // namespace

std::size_t pool_bytes(const LayerSize& size) {
  constexpr double rounding =
      64 << 20;  // of the driver: tensors begin at round addresses, in blocks of 32 MiB
  const double tokens = real(size.tokens() * size.hidden) * (16 + 32 / real(size.shards));
  return static_cast<std::size_t>(1.5 * tokens + 11 * real(size.scores()) + rounding);
}

void measure_layers(const std::vector<Sample>& samples, const LayerRank& rank, const Session& session) {
  std::map<std::pair<HalfFormat, RecomputePolicy>, std::string> checked;  // with what is wrong
  for (std::size_t i = 0; i + 1 < samples.size(); i += 2) {
    const Sample& forward = samples[i];
    const Sample& backward = samples[i + 1];
    if (rank.together.agree(interrupted() ? 1 : 0) != 0) return;
    const auto [found, is_new] = checked.try_emplace({forward.half_format, forward.layer.recompute});
    std::string& error = found->second;
    if (is_new) error = error_of_check(forward, rank);
    if (!error.empty()) {
      session.wrong(forward, error);
      session.wrong(backward, error);
      continue;
    }
    if (rank.together.agree(fits(size_of(forward.layer)) ? 0 : 1) != 0) {
      for (const Sample* sample : {&forward, &backward}) {
        if (session.report != nullptr)
          session.report->skip(*sample, "a layer of " + sample->label + " is left out: no memory for it");
      }
      continue;
    }
    with_type(forward.half_format,
              [&](auto type) { measure<decltype(type)>(forward, backward, rank, session); });
  }
}

}  // namespace headroom::harness
