#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "filling.cuh"
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

// Parameters and their fp32 gradients, and more than the layer's tensors [K22 eq. 2], gradients among them, take.
double needed_bytes(const LayerSize& size) {
  const auto number = [](std::int64_t count) { return static_cast<double>(count); };
  const double parameters = 12 * number(size.hidden) * number(size.hidden) / number(size.shards);
  const double tokens = number(size.tokens() * size.hidden) * (16 + 32 / number(size.shards));
  return 6 * parameters + 1.5 * tokens + 11 * number(size.scores());
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

}  // namespace

void measure_layers(const std::vector<Sample>& samples, const LayerRank& rank, const Session& session) {
  std::set<std::pair<HalfFormat, RecomputePolicy>> checked;
  for (std::size_t i = 0; i + 1 < samples.size(); i += 2) {
    const Sample& forward = samples[i];
    const Sample& backward = samples[i + 1];
    if (rank.together.agree(interrupted() ? 1 : 0) != 0) return;
    const std::int64_t shards = rank.communicator == nullptr ? 1 : forward.layer.tensor_parallel;
    if (checked.insert({forward.half_format, forward.layer.recompute}).second)
      check_layer(forward.half_format, forward.layer.recompute, shards, rank);
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
