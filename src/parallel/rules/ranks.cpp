// Rules of ranks: how many each axis may have, and what they exchange.
#include <algorithm>
#include <array>

#include "headroom/core/counts.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/model/expert_load.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/divided_sizes.hpp"
#include "parallel/rules/rows.hpp"

namespace headroom::rules {
namespace {

constexpr std::array count_rows{Rule{"", [](const RuleCase& it) { return it.size >= 1; },
                                     "must be at least 1, not {}", "A count of ranks, sequences or tokens",
                                     [](const RuleCase& it) { return shown(it.size); }}};

void each_count(const RuleCase& it, VisitCase visit) {
  RuleCase of = it;
  const auto count = [&](std::string_view field, std::int64_t size) {
    of.field = field;
    of.size = size;
    visit(of);
  };
  const Strategy& strategy = it.strategy;
  count("tensor_parallel", strategy.tensor_parallel);
  count("pipeline_parallel", strategy.pipeline_parallel);
  count("virtual_pipeline", strategy.virtual_pipeline);
  count("context_parallel", strategy.context_parallel);
  count("data_parallel", strategy.data_parallel);
  count("expert_parallel", strategy.expert_parallel);
  count("expert_tensor_parallel", strategy.expert_tensor_parallel);
  count("micro_batch", strategy.micro_batch);
  count("global_batch", it.workload.global_batch);
  count("sequence", it.workload.sequence);
}

constexpr std::array division_rows{Rule{
    "", [](const RuleCase& it) { return divides(it.parts, it.size); }, "must divide the {}{} ({} % {} = {})",
    "Megatron-LM, core/utils.py, divide: ranks have equal shares",
    [](const RuleCase& it) { return shown(it.name, of_kind(it), it.size, it.parts, it.size % it.parts); }}};

// Visits the sizes of layers that ranks of some axes split.
template <class Among>
void each_divided(const RuleCase& it, VisitCase visit, Among among) {
  each_layer(it, [&](const RuleCase& layer) {
    RuleCase of = layer;
    visit_divided_sizes(*layer.layer, [&](const DividedSize& size) {
      if (!among(size)) return;
      for (const AxisField& axis : axis_fields) {
        if (axis.axis != size.axis) continue;
        of.field = axis.name;
        of.parts = it.strategy.*axis.size;
      }
      of.name = size.name;
      of.size = size.size;
      of.why = size.why;
      visit(of);
    });
  });
}

void each_of_tensor_ranks(const RuleCase& it, VisitCase visit) {
  each_divided(it, visit, [](const DividedSize& size) { return size.axis == ParallelAxis::tensor; });
}

void each_of_expert_ranks(const RuleCase& it, VisitCase visit) {
  each_divided(it, visit, [](const DividedSize& size) { return size.axis != ParallelAxis::tensor; });
}

void each_attention(const RuleCase& it, VisitCase visit) {
  each_layer(it, [&](const RuleCase& layer) {
    if (has_attention(layer.layer->architecture)) visit(layer);
  });
}

constexpr std::array key_value_rows{
    Rule{"tensor_parallel",
         [](const RuleCase& it) {
           const std::int64_t t = it.strategy.tensor_parallel;
           const std::int64_t k = it.layer->key_value_heads;
           return t < 1 || k % t == 0 || t % k == 0;
         },
         "must divide the key/value heads{} or be a multiple of them ({} heads, {} ranks)",
         "Megatron-LM, core/transformer/attention.py: ranks share or copy whole groups of queries",
         [](const RuleCase& it) {
           return shown(of_kind(it), it.layer->key_value_heads, it.strategy.tensor_parallel);
         }}};

void each_sequence(const RuleCase& it, VisitCase visit) {
  const Strategy& strategy = it.strategy;
  if (!strategy.sequence_parallel || strategy.split_hidden || strategy.context_parallel < 1) return;
  RuleCase of = it;
  of.field = "tensor_parallel";
  of.name = strategy.context_parallel > 1
                ? "tokens of a `context_parallel` rank when `sequence_parallel` is on"
                : "sequence length when `sequence_parallel` is on";
  of.size = it.workload.sequence / strategy.context_parallel;
  of.parts = strategy.tensor_parallel;
  visit(of);
}

bool makes_context(const Strategy& strategy) {
  const std::vector<std::int64_t>& sizes = strategy.hierarchical_cp_sizes;
  const std::int64_t c = strategy.context_parallel;
  return sizes.empty() ||
         (sizes.size() == 2 && sizes[0] >= 1 && c % sizes[0] == 0 && c / sizes[0] == sizes[1]);
}

bool divides_context(const Strategy& strategy) {
  return strategy.context_parallel > 1 && strategy.tensor_parallel >= 1 && makes_context(strategy);
}

constexpr std::array context_group_rows{
    Rule{"hierarchical_cp_sizes",
         [](const RuleCase& it) {
           return it.strategy.hierarchical_cp_sizes.empty() || it.strategy.cp_comm == CpComm::a2a_p2p;
         },
         "needs `cp_comm` a2a_p2p",
         "Megatron-LM, --hierarchical-context-parallel-sizes: two levels are those of a2a+p2p"},
    Rule{"hierarchical_cp_sizes", [](const RuleCase& it) { return makes_context(it.strategy); },
         "must be two sizes whose product is `context_parallel` ({})",
         "Megatron-LM, training/arguments.py: np.prod(hierarchical_context_parallel_sizes)",
         [](const RuleCase& it) { return shown(it.strategy.context_parallel); }},
    Rule{"context_parallel",
         [](const RuleCase& it) {
           const std::int64_t c = it.strategy.context_parallel;
           const std::int64_t s = it.workload.sequence;
           return c <= 1 || !makes_context(it.strategy) || (s % 2 == 0 && s / 2 % c == 0);
         },
         "must divide half the sequence length: a rank takes one chunk from each half ({} tokens, {} ranks)",
         "Megatron-LM, core/utils.py, get_batch_on_this_cp_rank",
         [](const RuleCase& it) { return shown(it.workload.sequence, it.strategy.context_parallel); }}};

void each_exchanged(const RuleCase& it, VisitCase visit) {
  if (!divides_context(it.strategy)) return;
  each_divided(it, visit, [](const DividedSize& size) { return size.exchanged; });
}

constexpr std::array exchanged_rows{
    Rule{"context_parallel",
         [](const RuleCase& it) {
           return it.size % it.parts != 0 || it.size / it.parts % it.strategy.context_parallel == 0;
         },
         "must divide the {} {}{} on each `tensor_parallel` rank{}",
         "Megatron-LM, core/ssm: context-parallel ranks exchange tokens for whole heads and groups",
         [](const RuleCase& it) { return shown(it.size / it.parts, it.name, of_kind(it), it.why); }}};

void each_context_layer(const RuleCase& it, VisitCase visit) {
  if (!divides_context(it.strategy)) return;
  RuleCase of = it;
  of.size = context_inner(it.model, it.strategy);
  each_attention(of, visit);
}

constexpr std::array context_layer_rows{
    Rule{
        "context_parallel",
        [](const RuleCase& it) { return it.layer->architecture.kernels.attention == AttentionKernel::flash; },
        "needs `kernels.attention` flash{}, not {}: each rank attends to part of the sequence, and ranks "
        "merge their partial results",
        "Transformer Engine, attention/dot_product_attention/context_parallel.py",
        [](const RuleCase& it) { return shown(of_kind(it), it.layer->architecture.kernels.attention); }},
    Rule{"cp_comm",
         [](const RuleCase& it) {
           // Where the stack has no kind that the layer admits, another rule says so.
           return admits(it.layer->architecture, it.strategy.cp_comm) ||
                  !admits_any(it.layer->architecture, it.software.cp_comm);
         },
         "must be {}{} when `context_parallel` is above 1, not {}",
         "Transformer Engine, attention/dot_product_attention/utils.py, get_attention_backend",
         [](const RuleCase& it) {
           const Architecture& layer = it.layer->architecture;
           return shown(layer.attention_sinks ? "a2a for attention sinks"
                        : layer.window > 0    ? "all_gather or a2a for sliding windows"
                                              : "all_gather or a2a for chunked attention",
                        of_kind(it), it.strategy.cp_comm);
         }},
    // Of the ranks that exchange heads each has as many, and so of the query heads, whose number is a
    // multiple.
    Rule{"context_parallel",
         [](const RuleCase& it) {
           const std::int64_t t = it.strategy.tensor_parallel;
           const std::int64_t k = it.layer->key_value_heads;
           return it.size <= 1 || (k % t == 0 && k / t % it.size == 0);
         },
         "must suit `cp_comm` {}: its {} ranks must divide the key/value heads{} of each `tensor_parallel` "
         "rank ({} heads, {} TP ranks)",
         "arXiv:2309.14509 (Ulysses): all-to-all exchanges tokens for whole heads",
         [](const RuleCase& it) {
           return shown(it.strategy.cp_comm, it.size, of_kind(it), it.layer->key_value_heads,
                        it.strategy.tensor_parallel);
         }}};

void each_with_experts(const RuleCase& it, VisitCase visit) {
  each_layer(it, [&](const RuleCase& layer) {
    if (layer.layer->architecture.experts) visit(layer);
  });
}

constexpr std::array expert_layer_rows{
    Rule{"expert_tensor_parallel",
         [](const RuleCase& it) {
           return it.strategy.expert_tensor_parallel == 1 || !it.layer->architecture.linear_bias;
         },
         "must be 1 when experts{} have biases",
         "Megatron-LM, core/transformer/moe/experts.py: ranks would add a bias each",
         [](const RuleCase& it) { return shown(of_kind(it)); }}};

// Visits a strategy of a model with experts whose axes all have ranks, with the GPUs of a pipeline rank.
void once_with_experts(const RuleCase& it, VisitCase visit) {
  const Strategy& strategy = it.strategy;
  const bool sizes =
      std::min({strategy.expert_parallel, strategy.expert_tensor_parallel, strategy.context_parallel,
                strategy.tensor_parallel, strategy.data_parallel}) >= 1;
  if (!sizes || !any_experts(it.model)) return;
  RuleCase of = it;
  if (__builtin_mul_overflow(strategy.tensor_parallel, strategy.data_parallel, &of.size) ||
      __builtin_mul_overflow(of.size, strategy.context_parallel, &of.size)) {
    return;
  }
  visit(of);
}

constexpr std::array expert_rank_rows{
    Rule{"expert_parallel",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           std::int64_t of_expert = 0;
           return !__builtin_mul_overflow(strategy.expert_parallel, strategy.expert_tensor_parallel,
                                          &of_expert) &&
                  it.size % of_expert == 0;
         },
         "times `expert_tensor_parallel` must divide the {} GPUs of each pipeline rank ({} x {})",
         "Megatron-LM, core/parallel_state.py, expert_decoder_rank_generator",
         [](const RuleCase& it) {
           return shown(it.size, it.strategy.expert_parallel, it.strategy.expert_tensor_parallel);
         }},
    Rule{"sequence_parallel",
         [](const RuleCase& it) { return it.strategy.tensor_parallel == 1 || it.strategy.sequence_parallel; },
         "must be on when `tensor_parallel` is above 1 and the model has experts",
         "Megatron-LM, core/transformer/moe/moe_layer.py: training needs sequence parallelism"},
    Rule{"moe_dispatcher",
         [](const RuleCase& it) {
           return !sends_once_to_each_rank(it.strategy.moe_dispatcher) || it.strategy.expert_parallel > 1;
         },
         "must be alltoall or allgather when `expert_parallel` is 1, not {}: no tokens go to other ranks",
         "Megatron-LM, core/transformer/moe/token_dispatcher.py",
         [](const RuleCase& it) { return shown(it.strategy.moe_dispatcher); }},
    // Its ranks of both axes are one group, to each of whose ranks a token goes once.
    Rule{"moe_dispatcher",
         [](const RuleCase& it) {
           return !sends_once_to_each_rank(it.strategy.moe_dispatcher) ||
                  it.strategy.expert_tensor_parallel == 1;
         },
         "must be alltoall or allgather when `expert_tensor_parallel` is above 1: {} is not modelled with "
         "expert tensor parallelism",
         "Megatron-LM, core/transformer/moe/fused_a2a.py",
         [](const RuleCase& it) { return shown(it.strategy.moe_dispatcher); }}};

void once_overlapping(const RuleCase& it, VisitCase visit) {
  if (it.strategy.overlap_expert_all_to_all) once_with_experts(it, visit);
}

constexpr std::string_view of_overlap =
    "Megatron-Core, transformer_config.py, overlap_moe_expert_parallel_comm";
constexpr std::array overlap_rows{
    Rule{"overlap_expert_all_to_all", [](const RuleCase& it) { return it.strategy.expert_parallel > 1; },
         "needs `expert_parallel` above 1", of_overlap},
    Rule{"overlap_expert_all_to_all",
         [](const RuleCase& it) {
           return it.strategy.pipeline_parallel == 1 || it.strategy.schedule == ScheduleKind::interleaved;
         },
         "needs `schedule` interleaved or one pipeline rank; dualpipe and dualpipe-v already overlap the "
         "all-to-all",
         of_overlap},
    Rule{"overlap_expert_all_to_all",
         [](const RuleCase& it) {
           return it.strategy.pipeline_parallel > 1 ||
                  it.strategy.schedule == ScheduleKind::one_forward_one_backward;
         },
         "needs `schedule` 1f1b on one pipeline rank", of_overlap},
    Rule{"overlap_expert_all_to_all",
         [](const RuleCase& it) { return it.strategy.moe_dispatcher != Dispatcher::allgather; },
         "needs `moe_dispatcher` alltoall, deepep or hybridep", of_overlap},
    Rule{"overlap_expert_all_to_all", [](const RuleCase& it) { return it.model.mtp_layers <= 1; },
         "cannot be combined with more than one MTP layer (`mtp_layers` of the model)", of_overlap}};

void once_padding(const RuleCase& it, VisitCase visit) {
  if (it.strategy.moe_pad_to_capacity) once_with_experts(it, visit);
}

constexpr std::array capacity_rows{
    Rule{
        "moe_pad_to_capacity", [](const RuleCase& it) { return has_capacities(it.model); },
        "needs `capacity_factor` in the model's experts: it sets the padded token count relative to the mean",
        "Megatron-Core, transformer_config.py, moe_pad_expert_input_to_capacity"},
    Rule{"moe_pad_to_capacity",
         [](const RuleCase& it) { return it.strategy.moe_dispatcher == Dispatcher::alltoall; },
         "needs `moe_dispatcher` alltoall, not {}: padding is modelled only for alltoall",
         "Megatron-Core, transformer_config.py, moe_pad_expert_input_to_capacity",
         [](const RuleCase& it) { return shown(it.strategy.moe_dispatcher); }}};

void once_without_experts(const RuleCase& it, VisitCase visit) {
  if (!any_experts(it.model)) visit(it);
}

constexpr std::string_view needs_experts = "needs a model with experts";
constexpr std::string_view without_experts = "A model without experts has no rows to send";
constexpr std::array no_expert_rows{
    // Below 1 they are refused as counts.
    Rule{"expert_parallel", [](const RuleCase& it) { return it.strategy.expert_parallel <= 1; },
         needs_experts, without_experts},
    Rule{"expert_tensor_parallel", [](const RuleCase& it) { return it.strategy.expert_tensor_parallel <= 1; },
         needs_experts, without_experts},
    Rule{"moe_dispatcher",
         [](const RuleCase& it) { return it.strategy.moe_dispatcher == Dispatcher::alltoall; }, needs_experts,
         without_experts},
    Rule{"moe_router_padding", [](const RuleCase& it) { return !it.strategy.moe_router_padding; },
         needs_experts, without_experts},
    Rule{"moe_pad_to_capacity", [](const RuleCase& it) { return !it.strategy.moe_pad_to_capacity; },
         needs_experts, without_experts},
    Rule{"overlap_expert_all_to_all",
         [](const RuleCase& it) { return !it.strategy.overlap_expert_all_to_all; }, needs_experts,
         without_experts}};

constexpr std::array device_rows{
    Rule{"data_parallel",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           std::int64_t all = 0;
           return !__builtin_mul_overflow(strategy.tensor_parallel, strategy.pipeline_parallel, &all) &&
                  !__builtin_mul_overflow(all, strategy.context_parallel, &all) &&
                  !__builtin_mul_overflow(all, strategy.data_parallel, &all) && all <= most_count;
         },
         "must keep the job at {} GPUs or fewer", "Counts of devices are numbers of 31 bits",
         [](const RuleCase&) { return shown(most_count); }}};

void once_split_hidden(const RuleCase& it, VisitCase visit) {
  if (it.strategy.split_hidden) visit(it);
}

void each_hidden(const RuleCase& it, VisitCase visit) {
  if (!it.strategy.split_hidden) return;
  RuleCase of = it;
  of.field = "tensor_parallel";
  of.name = "hidden size";
  of.size = it.model.hidden;
  of.parts = it.strategy.tensor_parallel;
  visit(of);
}

// Only blocks with GEMMs of 16 bits can be split along the hidden dimension between them.
constexpr std::string_view of_hidden =
    "A layout to compare with: what it splits is described for these alone";
constexpr std::array hidden_rows{
    Rule{"split_hidden",
         [](const RuleCase& it) { return it.strategy.sequence_parallel && it.strategy.tensor_parallel > 1; },
         "needs `sequence_parallel` and `tensor_parallel` above 1", of_hidden},
    Rule{"split_hidden",
         [](const RuleCase& it) {
           return it.model.layer_kinds.empty() && !any_experts(it.model) &&
                  !it.model.architecture.latent_attention;
         },
         "needs a model with one kind of layer, no experts and no latent attention", of_hidden},
    Rule{"split_hidden", [](const RuleCase& it) { return it.strategy.precision == Precision::bf16; },
         "needs `precision` bf16", of_hidden},
    Rule{"split_hidden", [](const RuleCase& it) { return it.strategy.lora.rank == 0; },
         "cannot be combined with `lora_rank`", of_hidden}};

constexpr std::array ranks_topics{
    Topic{"counts", Whose::mechanism, Reads::layout, each_count, count_rows},
    Topic{"sizes of tensor-parallel ranks", Whose::mechanism, Reads::layout, each_of_tensor_ranks,
          division_rows},
    Topic{"key/value heads", Whose::mechanism, Reads::layout, each_attention, key_value_rows},
    Topic{"parts of a sequence", Whose::mechanism, Reads::layout, each_sequence, division_rows},
    Topic{"context-parallel groups", Whose::mechanism, Reads::layout, once, context_group_rows},
    Topic{"sizes of context-parallel ranks", Whose::mechanism, Reads::layout, each_exchanged, exchanged_rows},
    Topic{"attention to parts", Whose::mechanism, Reads::layout, each_context_layer, context_layer_rows},
    Topic{"sizes of expert-parallel ranks", Whose::mechanism, Reads::layout, each_of_expert_ranks,
          division_rows},
    Topic{"layers of experts", Whose::mechanism, Reads::layout, each_with_experts, expert_layer_rows},
    Topic{"expert-parallel ranks", Whose::mechanism, Reads::layout, once_with_experts, expert_rank_rows},
    Topic{"overlap of exchanges", Whose::mechanism, Reads::layout, once_overlapping, overlap_rows},
    Topic{"capacity of experts", Whose::mechanism, Reads::layout, once_padding, capacity_rows},
    Topic{"no experts", Whose::mechanism, Reads::layout, once_without_experts, no_expert_rows},
    Topic{"devices", Whose::mechanism, Reads::layout, once, device_rows},
    Topic{"a split hidden size", Whose::mechanism, Reads::layout, once_split_hidden, hidden_rows},
    Topic{"the hidden size", Whose::mechanism, Reads::layout, each_hidden, division_rows}};

}  // namespace

std::span<const Topic> of_ranks() { return ranks_topics; }

}  // namespace headroom::rules
