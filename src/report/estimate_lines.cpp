#include "report/estimate_lines.hpp"

#include "report/allocator.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

// What goes on at the peak of a backward pass, of a recomputation in it, or of the forward pass before it.
std::string during(const Plan& plan, const RankActivations& activations) {
  const OpPlace& place = activations.during;
  if (place.op == nowhere) {
    const bool ended = activations.grown_gradients > Bytes(0) && activations.at_peak.recompute == Bytes(0);
    return ended ? "its end" : "its first recompute";
  }
  const ModelLayers& layers = *plan.layers.tables;
  const LayerKind& kind = layers.kinds[static_cast<std::size_t>(place.kind)];
  const bool several = kind.position == KindPosition::layer && layer_kind_count(layers) > 1;
  return fmt::format("{} of the {}", kind.ops.ops()[static_cast<std::size_t>(place.op)].name,
                     several ? "'" + kind.name + "' layer" : kind.name);
}

}  // namespace

std::string moment_text(const Plan& plan, const RankMemory& rank) {
  const Step& step = rank.activations.peak;
  const std::string chunk = plan.request.strategy.virtual_pipeline > 1
                                ? fmt::format(" through virtual stage {}", step.chunk + 1)
                                : "";
  if (step.pass == Pass::forward)
    return fmt::format("at the end of the forward pass of microbatch {}{}", step.microbatch + 1, chunk);
  const bool gathered = rank.activations.at_peak.gathered_weights > Bytes(0);
  const OpPass pass = rank.activations.during.pass;
  const char* const before = pass == OpPass::forward         ? "forward pass before the "
                             : pass == OpPass::recomputation ? "recomputation of the "
                                                             : "";
  return fmt::format("in the {}backward pass of microbatch {}{}, during {}{}", before, step.microbatch + 1,
                     chunk, during(plan, rank.activations),
                     !gathered ? ""
                     : pass == OpPass::forward
                         ? ", with its weights and those of the unit after it gathered"
                         : ", with its weights and those of the unit before it gathered");
}

std::string time_line(const EstimateReply& report, const Plan& plan, const Style& style) {
  const Timing& timing = *plan.timing;
  const Throughput& rates = timing.throughput;
  const IterationInterval& interval = *report.interval;
  const Device& device = plan.request.system.performance->device;
  const Dtype dtype = compute_dtype(plan.request.strategy.precision);
  std::string text =
      fmt::format("Iteration {} ({:.0f}%: {} to {}), {:.0f} tokens/s ({:.0f} a GPU).\n",
                  human(timing.iteration.total), 100 * interval_level, human(interval.low),
                  human(interval.high), rates.tokens_per_second, rates.tokens_per_second_per_device);
  text += in_lines(
      fmt::format("{:.1f} TFLOP/s a GPU: MFU {:.1f}%, HFU {:.1f}% of {:.0f} TFLOP/s dense {}, with the "
                  "causal half of attention (in full: MFU {:.1f}%, HFU {:.1f}%).",
                  rates.flops_per_device.count() / 1e12, 100 * rates.mfu, 100 * rates.hfu,
                  peak_of(device, dtype).count() / 1e12, peak_name(dtype), 100 * rates.mfu_full,
                  100 * rates.hfu_full),
      style.columns, 0);
  if (is_narrow(plan.request.strategy.precision)) {
    text += fmt::format("\nOf {:.0f} TFLOP/s dense {}: MFU {:.1f}%.", device.half_peak.count() / 1e12,
                        peak_name(Dtype::half), 100 * rates.mfu_half);
  }
  return text;
}

std::string host_memory_text(const HostMemory& host) {
  return fmt::format("{} GPU{} of a host keep{} {} of {} in its memory", host.devices,
                     host.devices == 1 ? "" : "s", host.devices == 1 ? "s" : "", human(host.needed),
                     human(host.available));
}

std::string verdict_line(const Plan& plan, const Style& style) {
  const RankMemory& rank = plan.ranks[plan.peak_rank];
  const Bytes spare = headroom_of(plan);
  const auto said = [&](const char* text) { return painted(text, plan.verdict, style); };
  const std::string need = fmt::format("PP rank {} needs {} of {}", plan.peak_rank, human(peak(plan)),
                                       human(plan.request.system.memory));
  switch (plan.verdict) {
    case Verdict::fits: return fmt::format("{}: {}, {} free.", said("Fits"), need, human(spare));
    case Verdict::marginal:
      if (const std::string held = held_too_much(plan); !held.empty())
        return fmt::format("{}: {}, but {}.", said("Marginal"), need, held);
      return fmt::format("{}: {}, only {} free for fragmentation and temporary buffers.", said("Marginal"),
                         need, human(spare));
    case Verdict::does_not_fit: {
      if (plan.host && lacks(*plan.host)) {
        return fmt::format("{}: {}, {} too much; {}.", said("Does not fit"), host_memory_text(*plan.host),
                           human(plan.host->needed - plan.host->available), need);
      }
      if (const std::string held = held_too_much(plan); !held.empty())
        return fmt::format("{}: {}, but {}.", said("Does not fit"), need, held);
      const Component largest = largest_component(rank);
      return fmt::format("{}: {}, {} too much. The largest part is {} ({}).", said("Does not fit"), need,
                         human(Bytes(0) - spare), largest.name, human(largest.bytes));
    }
  }
  EXPECTS(!"unknown verdict");
  return {};
}

}  // namespace headroom
