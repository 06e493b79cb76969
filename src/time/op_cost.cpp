#include "headroom/time/op_cost.hpp"

#include <algorithm>
#include <utility>

#include "headroom/parallel/context.hpp"
#include "headroom/time/launches.hpp"
#include "headroom/time/streaming.hpp"
#include "pieces.hpp"
#include "product_shapes.hpp"
#include "token_route.hpp"

namespace headroom {
namespace {

class Pricing {
 public:
  Pricing(const OpWork& work, const Setting& setting) : work_(work), setting_(setting) {}

  OpCost price() {
    Pieces pieces_ahead;
    Pieces pieces_back;
    Seconds gather_again;  // beside input gradients
    Seconds reduce;        // beside weight gradients, if any
    for (const Collective& collective : work_.collectives) {
      const Bytes bytes(collective.bytes.evaluate(setting_.letters));
      const Bytes bytes_back(collective.backward_bytes.evaluate(setting_.letters));
      const Group& group = collective.axis == ParallelAxis::context ? setting_.groups.context(collective.part)
                                                                    : setting_.groups[collective.axis];
      if (collective.part != GroupPart::whole && group.ranks == 1) continue;
      const TokenRoutes routes = token_routes(collective, group, setting_);
      const CollectiveKind forward = forward_kind(collective.name);
      const bool in_pieces = runs_in_pieces(collective, group);
      if (in_pieces) {
        pieces_ahead.add(time_of(forward, bytes, group), group.ranks);
      } else {
        const Bytes map = routing_map_bytes(collective, group, setting_);
        if (map > Bytes(0)) communicate(cost_.forward, CollectiveKind::all_gather, map, group);
        communicate(cost_.forward, forward, bytes, group, routes.forward);
        const Seconds copied = copy(cost_.forward, collective, forward, bytes);
        if (forward == CollectiveKind::reduce_scatter) {
          cost_.reduction += time_of(forward, bytes, group);
          cost_.reduction_copies += copied;
        }
      }
      const CollectiveKind backward = backward_kind(collective.name);
      if (work_.overlaps && enters(collective.name) && !goes_round(collective)) {
        reduce += time_of(backward, bytes_back, group);
        copy(cost_.backward_data, collective, backward, bytes_back);
        if (collective.regathers) {
          gather_again += time_of(CollectiveKind::all_gather, bytes, group);
          copy(cost_.backward_data, collective, CollectiveKind::all_gather, bytes);
        }
      } else if (in_pieces) {
        pieces_back.add(time_of(backward, bytes_back, group), group.ranks);
        if (goes_round(collective)) pieces_back.add(time_of(forward, bytes, group), group.ranks);
      } else {
        communicate(cost_.backward_data, backward, bytes_back, group, routes.backward);
        copy(cost_.backward_data, collective, backward, bytes_back);
        if (collective.regathers) {
          communicate(cost_.backward_data, forward, bytes, group);
          copy(cost_.backward_data, collective, forward, bytes);
        }
      }
    }
    switch (work_.kind) {
      case OpKind::linear: linear(); break;
      case OpKind::batched_matmul: attention(); break;
      case OpKind::mask_product: mask_product(); break;
      case OpKind::flash_attention: flash(); break;
      case OpKind::scan: scan(); break;
      case OpKind::loss: loss(); break;
      default: break;
    }
    const Seconds data = cost_.backward_data.products();
    const Seconds weight = cost_.backward_weight.products();
    overlap(cost_.backward_data, data, gather_again);
    overlap(cost_.forward, pieces_ahead.beside(cost_.forward.products()), pieces_ahead.time);
    overlap(cost_.backward_data, pieces_back.beside(data), pieces_back.time);
    const bool overlaps = setting_.software.overlap_tensor_parallel != TensorOverlap::none;
    overlap(cost_.backward_data, !overlaps ? Seconds(0) : weight > Seconds(0) ? weight : data, reduce);
    stream();
    cast(cost_.forward, launches_.forward, work_.forward_casts);
    cast(cost_.backward_data, launches_.backward_data, work_.backward_casts);
    attribute();
    launch();
    double made = 0;
    for (const auto& [value, elements] : work_.made) made += elements.evaluate(setting_.letters);
    for (const auto& [value, elements] : work_.made)
      cost_.made.emplace_back(value, elements.evaluate(setting_.letters) / made);
    return cost_;
  }

 private:
  static bool goes_round(const Collective& collective) { return collective.name == Conjugate::pass_on; }

  [[nodiscard]] bool runs_in_pieces(const Collective& collective, const Group& group) const {
    if (goes_round(collective)) return true;
    const bool of_sequence = collective.name == Conjugate::g || collective.name == Conjugate::g_bar;
    return work_.in_pieces && of_sequence && group.ranks <= group.ranks_in_node;
  }

  Seconds time_of(CollectiveKind kind, Bytes bytes, const Group& group,
                  const std::optional<TokenRoute>& route = {}) {
    const CollectiveRates& rates = setting_.performance.rates.collectives;
    const bool known_ranks = holds(rates.fitted_ranks, static_cast<double>(group.ranks));
    if (kind != CollectiveKind::none && !within_fit(bytes, group, rates))
      (known_ranks ? cost_.beyond.message_size : cost_.beyond.group_size) = true;
    return route ? routed_time(*route, bytes, group, setting_.performance)
                 : collective_time(kind, bytes, group, setting_.performance);
  }

  void communicate(PassCost& pass, CollectiveKind kind, Bytes bytes, const Group& group,
                   const std::optional<TokenRoute>& route = {}) {
    if (kind == CollectiveKind::none) return;
    pass.communication += time_of(kind, bytes, group, route);
    ++pass.operations;
  }

  // Returns the time to reorder what is gathered or scattered along the hidden dimension, the vocabulary or,
  // depending on the stack, the sequence.
  Seconds copy(PassCost& pass, const Collective& collective, CollectiveKind kind, Bytes bytes) {
    const bool of_shards = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
    const bool copies = setting_.software.copies_sequence_shards || setting_.sharding.hidden ||
                        collective.name == Conjugate::gather;
    if (!copies || collective.axis != ParallelAxis::tensor || !of_shards) return Seconds(0);
    const Seconds time = streaming_time(2 * bytes, setting_.performance);
    pass.memory_bound += time;
    ++pass.operations;
    return time;
  }

  // Adds the exposed time of a collective beside GEMMs.
  void overlap(PassCost& pass, Seconds products, Seconds collective) {
    if (collective == Seconds(0)) return;
    pass.communication += exposed_beside(products, collective, setting_.performance.rates.collectives);
    ++pass.operations;
  }

  Seconds product(const Gemm& gemm) {
    const Rates& rates = setting_.performance.rates;
    // Batched attention GEMMs have no samples of their own; they take the rates of plain GEMMs at any size.
    if (gemm.batch == 1 && !within_fit(gemm, product_rates(rates, gemm.dtype)))
      cost_.beyond.product_size = true;
    if (const auto narrow = narrow_index(gemm.dtype)) cost_.beyond.narrow_types |= 1U << *narrow;
    return gemm_time(gemm, setting_.performance.device, rates, clock_of(gemm.dtype));
  }

  Seconds one_by_one(Gemm gemm) {
    const std::int64_t experts = std::exchange(gemm.batch, 1);
    return static_cast<double>(experts) * product(gemm);
  }

  // Returns the GEMM time of all experts of the rank. If grouped GEMMs were not measured, they count as one
  // batch of plain GEMMs (assumed).
  Seconds experts_product(const Gemm& gemm, bool gradient_of_weights) {
    const Performance& performance = setting_.performance;
    if (setting_.software.expert_products.value == ExpertProducts::per_expert) return one_by_one(gemm);
    const GroupedProductRates* const own = grouped_rates(performance.rates, gemm.dtype);
    if (own == nullptr) return product(gemm);
    cost_.beyond.grouped_products = true;
    const std::int64_t rows = gradient_of_weights ? gemm.inner : gemm.rows;  // tokens of an expert
    if (!holds(own->fitted_rows, static_cast<double>(rows))) cost_.beyond.product_size = true;
    if (const auto narrow = narrow_index(gemm.dtype)) cost_.beyond.narrow_types |= 1U << *narrow;
    const Seconds grouped = performance.rates.kernels.launch.value +
                            grouped_gemm_time(gemm, performance.device, *own, clock_of(gemm.dtype));
    // Stores were fitted to forward passes, so one kernel takes no longer than the loop over experts that it
    // replaces (assumed).
    return gradient_of_weights ? std::min(grouped, one_by_one(gemm)) : grouped;
  }

  [[nodiscard]] double clock_of(Dtype dtype) const {
    return training_clock(setting_.performance, setting_.software, dtype);
  }

  void linear() {
    Seconds data;
    Seconds weight;
    const auto time_of_product = [&](const Gemm& gemm, bool gradient_of_weights = false) {
      return work_.experts ? experts_product(gemm, gradient_of_weights) : product(gemm);
    };
    for (const ProductWork& it : work_.products) {
      const Gemm forward = shape_of(it, setting_.letters);
      cost_.forward.gemm += time_of_product(forward);
      data += time_of_product(left_gradient(forward, it.left_gradient));
      if (work_.frozen) continue;
      Gemm gradient = right_gradient(forward, it.right_gradient);
      if (adds_in_product(traffic_options(setting_))) gradient.result_bytes = 2 * size_of(Dtype::fp32);
      weight += time_of_product(gradient, /*gradient_of_weights=*/true);
    }
    const auto count = static_cast<std::int64_t>(work_.products.size());
    cost_.forward.operations += count;
    cost_.backward_data.operations += count;
    if (!work_.frozen) cost_.backward_weight.operations += count;
    if (work_.experts) {
      const double more = static_cast<double>(count) * (launches_of_experts() - 1);
      launches_.forward += more;
      launches_.backward_data += more;
      if (!work_.frozen) launches_.backward_weight += more;
    }
    cost_.backward_data.gemm += data;
    cost_.backward_weight.gemm += weight;
  }

  // Tokens get a gradient, the mask as well unless it is constant.
  void mask_product() {
    for (const ProductWork& it : work_.products) {
      const Gemm forward = shape_of(it, setting_.letters);
      cost_.forward.gemm += product(forward);
      cost_.backward_data.gemm += product(left_gradient(forward, it.left_gradient));
      cost_.forward.operations += 1;
      cost_.backward_data.operations += 1;
      if (work_.frozen) continue;
      cost_.backward_data.gemm += product(right_gradient(forward, it.right_gradient));
      cost_.backward_data.operations += 1;
    }
  }

  void attention() {
    for (const ProductWork& it : work_.products) {
      Gemm forward = shape_of(it, setting_.letters);
      // Heads lie side by side, so each starts at a multiple of its size.
      constexpr std::int64_t sixteen_bytes = 8;
      forward.aligned = forward.inner % sixteen_bytes == 0 && forward.columns % sixteen_bytes == 0;
      if (!forward.aligned) cost_.beyond.unaligned_heads = true;
      cost_.forward.attention += product(forward);
      cost_.backward_data.attention += product(left_gradient(forward, it.left_gradient)) +
                                       product(right_gradient(forward, it.right_gradient));
      cost_.forward.operations += 1;
      cost_.backward_data.operations += 2;
    }
  }

  void flash() {
    const FlashRates& rates = setting_.performance.rates.flash_attention;
    const Attention attention = attention_of(work_, setting_.letters);
    cost_.beyond.flash_attention = true;
    if (!within_fit(attention, rates)) cost_.beyond.attention_size = true;
    // A ring runs a kernel for each rank's part.
    std::int64_t kernels = 1;
    for (const Collective& collective : work_.collectives) {
      if (goes_round(collective)) kernels = setting_.groups.context(collective.part).ranks;
    }
    const Bytes bytes(work_.attention.evaluate(setting_.letters));
    const Seconds launches = static_cast<double>(kernels - 1) * rates.launch.value;
    const auto time_of_pass = [&](AttentionPass pass, Bytes moved) {
      const double clock = attention_clock(setting_.performance, setting_.software, pass);
      return attention_time(attention, pass, moved, setting_.performance, clock) + launches;
    };
    cost_.forward.attention += time_of_pass(AttentionPass::forward, bytes);
    // All tensors and their gradients.
    cost_.backward_data.attention += time_of_pass(AttentionPass::backward, 2 * bytes);
    cost_.forward.operations += kernels;
    cost_.backward_data.operations += kernels;
  }

  void scan() {
    const Scan scan = scan_of(work_, setting_.letters);
    cost_.beyond.scan = true;
    const auto add = [&](PassCost& pass, double& launches, const ScanWork& of) {
      pass.memory_bound += scan_time(of, setting_.performance);
      ++pass.operations;
      launches += static_cast<double>(of.kernels - 1);
    };
    add(cost_.forward, launches_.forward, work_.scan->forward(scan));
    add(cost_.backward_data, launches_.backward_data, work_.scan->backward(scan));
  }

  // Reduces over the parts of the vocabulary the maximum, the target's logit and the sum of exponentials, one
  // FP32 number a token each [Megatron-LM, core/tensor_parallel/cross_entropy.py].
  void loss() {
    if (!work_.has_parts) return;
    const Monomial tokens = of_own_tokens(symbols::s * symbols::b, setting_.sharding);
    const Bytes numbers((tokens * size_of(Dtype::fp32)).evaluate(setting_.letters));
    for (int i = 0; i < 3; ++i)
      communicate(cost_.forward, CollectiveKind::all_reduce, numbers, setting_.groups[ParallelAxis::tensor]);
  }

  // An op has tensor-parallel collectives or those that it asks for, never both.
  void attribute() {
    if (work_.collectives.empty()) return;
    const ParallelAxis axis = work_.collectives.front().axis;
    if (axis == ParallelAxis::tensor) return;
    for (PassCost* const pass : {&cost_.forward, &cost_.backward_data}) {
      (axis == ParallelAxis::context ? pass->context_communication : pass->expert_communication) =
          pass->communication;
    }
  }

  void stream() {
    const auto add = [&](PassCost& pass, double& launches, const StreamingKernel& kernel) {
      const double parts = kernel.by_expert
                               ? static_cast<double>(kernel.operations + kernel.operators) * experts_of_rank()
                               : static_cast<double>(1 + kernel.operators);
      const Bytes moved((1 / parts) * kernel.bytes.evaluate(setting_.letters));
      pass.memory_bound += parts * streaming_time(moved, setting_.performance);
      launches += kernel.by_expert ? parts : kernel.operators;
      if (!kernel.by_expert) pass.operations += kernel.operations;
    };
    const Seconds shortest = setting_.performance.rates.kernels.shortest.value;
    cost_.forward.memory_bound += static_cast<double>(work_.operators.forward) * shortest;
    cost_.backward_data.memory_bound += static_cast<double>(work_.operators.backward) * shortest;
    launches_.forward += work_.operators.forward;
    launches_.backward_data += work_.operators.backward;
    for (const StreamingKernel& kernel : work_.forward) add(cost_.forward, launches_.forward, kernel);
    for (const StreamingKernel& kernel : work_.backward) {
      add(kernel.of_weights ? cost_.backward_weight : cost_.backward_data,
          kernel.of_weights ? launches_.backward_weight : launches_.backward_data, kernel);
    }
  }

  [[nodiscard]] double experts_of_rank() const {
    return static_cast<double>(whole_extent(work_.experts_of_rank, setting_.letters));
  }

  // Returns the launches of expert GEMMs: one for each expert of the rank, or one if grouped.
  [[nodiscard]] double launches_of_experts() const {
    return setting_.software.expert_products.value == ExpertProducts::grouped ? 1 : experts_of_rank();
  }

  // Sets the host time of the passes. Each is a graph, part of a graph, or launched op by op.
  void launch() {
    const LaunchTimes each = launch_times(setting_.performance.rates.host, setting_.software);
    cost_.host_waits = work_.host_waits;
    if (work_.host_waits) cost_.forward.drained = each.operation;
    const std::int64_t graphs = work_.launched == Launched::first_of_graph ? 1 : 0;
    const auto of_pass = [&](PassCost& pass, double launches, std::int64_t in_graphs) {
      if (work_.launched != Launched::alone) {
        launches = 0;
        pass.operations = in_graphs;
      }
      pass.host = host_time(static_cast<double>(pass.operations), launches, each);
    };
    of_pass(cost_.forward, launches_.forward, graphs);
    cost_.kernels = static_cast<double>(cost_.forward.operations) +
                    (work_.launched == Launched::alone ? launches_.forward : 0);
    of_pass(cost_.backward_data, launches_.backward_data, graphs);
    of_pass(cost_.backward_weight, launches_.backward_weight, 0);
  }

  void cast(PassCost& pass, double& launches, const std::vector<Cast>& casts) {
    const Device& device = setting_.performance.device;
    const Rates& rates = setting_.performance.rates;
    for (const Cast& it : casts) {
      const CastOptions options{.scale_known = it.scale_known,
                                .copies = it.both_directions ? copies_of_factor(device, it.dtype) : 1};
      // Kernels for each expert start and drain one after the other [Transformer Engine, module/grouped_linear.py,
      // split_quantize].
      const double parts = it.experts ? launches_of_experts() : 1;
      const double elements = it.elements.evaluate(setting_.letters) / parts;
      pass.memory_bound += parts * quantization_time(elements, it.dtype, device, rates, options);
      const std::int64_t kernels = quantization_passes(it.dtype, it.scale_known);
      pass.operations += kernels;
      launches += static_cast<double>(kernels) * (parts - 1);
    }
  }

  const OpWork& work_;
  const Setting& setting_;
  OpCost cost_;
  struct {
    double forward = 0;
    double backward_data = 0;
    double backward_weight = 0;
  } launches_;  // beyond the one kernel of each operation
};

}  // namespace

OpCost op_cost(const OpWork& work, const Setting& setting) { return Pricing(work, setting).price(); }

OpCost op_cost(const OpTable& table, std::size_t op, const Collectives& inserted, const Setting& setting) {
  return op_cost(op_work(table, op, inserted, setting), setting);
}

}  // namespace headroom
