#include "headroom/plan/plan.hpp"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "headroom/core/counts.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

Plan plan_of(const Request& request) { return account(evaluate(request)); }

std::vector<std::string> warning_codes(const Request& request) {
  std::vector<std::string> codes;
  for (const Plan plan = plan_of(request); const Warning& warning : plan.warnings)
    codes.push_back(warning.code);
  return codes;
}

}  // namespace

TEST_CASE("plan: GPT-3 with sequence parallelism and selective recomputation fits 64 A100s") {
  const Evaluation evaluation = evaluate(with_both_techniques(gpt3_on_a100()));
  REQUIRE(std::holds_alternative<Plan>(evaluation));
  const Plan& plan = std::get<Plan>(evaluation);
  CHECK(plan.verdict == Verdict::fits);
  CHECK(plan.ranks.size() == 8);
  CHECK(peak(plan) + headroom_of(plan) == 80_GiB);
  CHECK(headroom_of(plan) >= usual_margin * 80_GiB);
  CHECK(plan.warnings.empty());
  CHECK(&account(evaluation) == &plan);
}

// torchtune, README.md, optimization flags: Llama 3.2 3B with all of them before 8-bit moments, 2 x 4096 tokens.
TEST_CASE("plan: torchtune's steps in the backward pass take the memory that it publishes") {
  Request request;
  request.system = read_system("dgx-a100-80g");
  request.software = read_software("torchtune");
  request.software.launches = Launches::compiled;
  request.software.memory.fp32_logits = false;  // CEWithChunkedOutputLoss
  request.model = with_attention(read_model("llama-3-8b"), request.software.attention_kernel);
  request.model.layers = 28;
  request.model.hidden = 3072;
  request.model.feedforward = 8192;
  request.model.heads = 24;
  request.model.architecture.tied_embeddings = true;
  request.workload = {.global_batch = 2, .sequence = 4096};
  request.strategy = with_stack_defaults({.micro_batch = 2}, request.software, request.model);
  request.strategy.recompute.policy = RecomputePolicy::full;
  request.strategy.offload.modules = {"layer_input"};
  const auto allocated = [&] {
    const RankMemory rank = plan_of(request).ranks.front();
    return total(rank) - rank.reserved;
  };
  const Bytes at_end = allocated();
  request.strategy.step_in_backward = true;
  CHECK(allocated() < at_end);
  CHECK(allocated() / 1_GiB == doctest::Approx(21.8).epsilon(0.02));
}

TEST_CASE("plan: a reference model holds a 16-bit copy, and runs a forward pass more") {
  for (const DataSharding sharding : {DataSharding::none, DataSharding::zero3}) {
    Request request{.model = read_model("llama-3.2-1b"),
                    .system = read_system("dgx-h100-80g"),
                    .software = read_software("hf-trainer"),
                    .strategy = {.data_parallel = 8, .data_sharding = sharding},
                    .workload = {.global_batch = 16, .sequence = 4096}};
    const Plan alone = account(evaluate(request));
    request.workload.reference_model = true;
    const Plan both = account(evaluate(request));
    const RankMemory& rank = both.ranks.front();
    const double shards = sharding == DataSharding::none ? 1 : 8;
    const double copy =
        2 * total(parameters_by_rank(request.model, request.strategy, request.workload).front()) / shards;
    CHECK((rank.state.weights - alone.ranks.front().state.weights).count() ==
          doctest::Approx(copy).epsilon(1e-6));
    CHECK(rank.state.optimizer == alone.ranks.front().state.optimizer);
    CHECK((peak(both) - peak(alone)) == rank.state.weights - alone.ranks.front().state.weights);
    const IterationTime& longer = both.timing->iteration;
    const IterationTime& shorter = alone.timing->iteration;
    const Seconds forward = 2 * shorter.times.stages.front().forward;  // of two microbatches
    CHECK((longer.total - shorter.total).count() == doctest::Approx(forward.count()).epsilon(0.02));
    CHECK(both.timing->flops.hardware > alone.timing->flops.hardware);
    CHECK(both.timing->flops.model == alone.timing->flops.model);
  }
  // Without its adapters, the model is the reference.
  Request adapters{.model = read_model("llama-3.2-1b"),
                   .system = read_system("dgx-h100-80g"),
                   .software = read_software("hf-trainer"),
                   .strategy = {.data_parallel = 8, .lora = {.rank = 8}},
                   .workload = {.global_batch = 16, .sequence = 4096}};
  const Plan alone = account(evaluate(adapters));
  adapters.workload.reference_model = true;
  const Plan scored = account(evaluate(adapters));
  CHECK(peak(scored) == peak(alone));
  CHECK(scored.timing->iteration.total > alone.timing->iteration.total);
}

TEST_CASE("plan: a workspace of matrix products is counted once, by the stack or by the system") {
  Request request = gpt3_on_a100();
  request.system.reserves.push_back({.name = "cublas_workspace", .bytes = 32_MiB, .workspace = true});
  const RankMemory by_system = plan_of(request).ranks.front();
  CHECK(by_system.reserved - plan_of(gpt3_on_a100()).ranks.front().reserved == 32_MiB);
  CHECK(by_system.workspaces == 0_B);
  request.software.memory.workspaces = 96_MiB;
  const RankMemory by_stack = plan_of(request).ranks.front();
  CHECK(by_stack.reserved == plan_of(gpt3_on_a100()).ranks.front().reserved);
  CHECK(by_stack.workspaces == 96_MiB);
}

TEST_CASE("plan: GPT-3 without them does not fit, with the whole account") {
  const Evaluation evaluation = evaluate(gpt3_on_a100());
  REQUIRE(std::holds_alternative<Infeasible>(evaluation));
  const Infeasible& infeasible = std::get<Infeasible>(evaluation);
  CHECK(infeasible.limit == "device_memory");
  CHECK(infeasible.available == 80_GiB);
  CHECK(infeasible.needed == peak(infeasible.attempt));
  CHECK(infeasible.needed > infeasible.available);
  CHECK(infeasible.attempt.verdict == Verdict::does_not_fit);
  CHECK(infeasible.attempt.ranks.size() == 8);
  CHECK(infeasible.attempt.request == gpt3_on_a100());
  CHECK(headroom_of(infeasible.attempt) == infeasible.available - infeasible.needed);
  CHECK(&account(evaluation) == &infeasible.attempt);
}

TEST_CASE("plan: with less than a twentieth to spare it is marginal, with nothing it still fits") {
  Request request = with_both_techniques(gpt3_on_a100());
  const Bytes needed = peak(plan_of(request));
  const auto verdict_with = [&](Bytes memory) {
    request.system.memory = memory;
    return plan_of(request).verdict;
  };
  CHECK(verdict_with(needed * 1.06) == Verdict::fits);
  CHECK(verdict_with(needed * 1.05) == Verdict::marginal);
  CHECK(verdict_with(needed) == Verdict::marginal);
  CHECK(verdict_with(needed - 1_B) == Verdict::does_not_fit);
}

TEST_CASE("plan: every rank's total is its named terms") {
  const Plan plan = plan_of(gpt3_on_a100());
  for (const RankMemory& rank : plan.ranks) {
    const Activations& parts = rank.activations.at_peak;
    CHECK(total(rank) == rank.state.weights + rank.state.gradients + rank.state.optimizer + parts.layers +
                             parts.embedding + parts.head + parts.outputs + parts.recompute + rank.reserved);
    CHECK(rank.reserved == 1_GiB + 512_MiB);
    CHECK(total(rank) <= peak(plan));
  }
}

TEST_CASE("plan: torch's pipelines keep the logits of all microbatches on the last stage") {
  Request request = gpt3_on_a100();
  const Plan freed = plan_of(request);
  request.software.memory.keeps_logits = true;
  const Plan kept = plan_of(request);
  const auto last = kept.ranks.size() - 1;
  const Workload& workload = request.workload;
  const double logits = 2.0 * real(workload.sequence) *
                        real(padded_vocabulary(request.model, request.strategy.tensor_parallel)) /
                        real(request.strategy.tensor_parallel) * real(request.strategy.micro_batch);
  const double all = real(microbatches(request.strategy, workload)) * logits;
  CHECK(kept.ranks[last].activations.kept_logits.count() == all);
  CHECK(total(kept.ranks[last]).count() == total(freed.ranks[last]).count() + all);
  for (std::size_t rank = 0; rank < last; ++rank) CHECK(kept.ranks[rank] == freed.ranks[rank]);
}

TEST_CASE("plan: the peak rank is the first of those as full") {
  const Plan plan = plan_of(gpt3_on_a100());
  CHECK(plan.peak_rank == 0);
  CHECK(plan.ranks[0].activations.pipeline_rank == 0);

  // With many labels and little in flight it is the last, which holds the head.
  Request vocabulary = with_both_techniques(gpt3_on_a100());
  vocabulary.model.vocabulary = 51'200'000;
  vocabulary.model.architecture.tied_embeddings = false;
  CHECK(plan_of(vocabulary).peak_rank == 7);
}

TEST_CASE("plan: ranks hold their chunks' layers") {
  const Plan plan = plan_of(gpt3_on_a100());
  for (const RankMemory& rank : plan.ranks) CHECK(rank.activations.layers == 12);
}

TEST_CASE("plan: the largest component") {
  const Plan plan = plan_of(gpt3_on_a100());
  CHECK(largest_component(plan.ranks[0]).name == "activations");
  CHECK(largest_component(plan.ranks[0]).bytes == total(plan.ranks[0].activations.at_peak));
  CHECK(largest_component(plan_of(with_both_techniques(gpt3_on_a100())).ranks[0]).name == "optimizer state");
}

TEST_CASE("plan: exact detail counts what the paper leaves out") {
  Request request = gpt3_on_a100();
  const Bytes paper = peak(plan_of(request));
  request.detail = Detail::exact;
  const Bytes exact = peak(plan_of(request));
  CHECK(exact > paper);
  CHECK(exact < paper * 1.001);
}

TEST_CASE("plan: what is not legal is the user's mistake, with all its problems") {
  Request request = gpt3_on_a100();
  request.strategy.tensor_parallel = 7;
  request.strategy.micro_batch = 5;
  try {
    static_cast<void>(evaluate(request));
    FAIL("no InputError");
  } catch (const InputError& error) {
    CHECK(error.problems() ==
          illegalities(request.model, request.strategy, request.workload, request.software));
    CHECK(error.problems().size() > 1);
  }
}

TEST_CASE("plan: buffers are reserved for each communicator of more than one rank") {
  Request request = gpt3_on_a100();
  request.model.layers = 1;
  request.strategy = {.tensor_parallel = 8};
  CHECK(account(evaluate(request)).ranks[0].reserved == 1_GiB + 256_MiB);
  request.strategy.data_parallel = 2;
  CHECK(account(evaluate(request)).ranks[0].reserved == 1_GiB + 512_MiB);
  request.strategy = {};
  CHECK(account(evaluate(request)).ranks[0].reserved == 1_GiB);
}

TEST_CASE("plan: assumed reserves are assumptions, counted ones are not") {
  const Plan plan = plan_of(gpt3_on_a100());
  REQUIRE(plan.assumptions.size() == 2);
  CHECK(plan.assumptions[0] == Assumption{"1024 MiB of non-torch memory: cuda_context", "typical"});
  CHECK(plan.assumptions[1].text.starts_with("not counted: "));
}

TEST_CASE("plan: warns of tensor parallelism across nodes") {
  Request request = with_both_techniques(gpt3_on_a100());
  request.strategy.tensor_parallel = 16;
  CHECK(warning_codes(request) == std::vector<std::string>{"tensor_parallel_across_nodes"});
}

TEST_CASE("plan: warns of sequence parallelism over one rank") {
  Request request = gpt3_on_a100();
  request.strategy.tensor_parallel = 1;
  request.strategy.sequence_parallel = true;
  CHECK(warning_codes(request) == std::vector<std::string>{"sequence_parallel_without_tensor_parallel"});
}

TEST_CASE("plan: warns of sequences longer than the position table") {
  Request request = with_both_techniques(gpt3_on_a100());
  request.workload.sequence = 4096;
  CHECK(warning_codes(request) == std::vector<std::string>{"sequence_exceeds_positions"});
  request.model.architecture.positions = Positions::rotary;
  CHECK(warning_codes(request).empty());
}

TEST_CASE("plan: warns of selective recomputation where flash attention left nothing to save") {
  Request request = with_both_techniques(gpt3_on_a100());
  request.model.architecture.kernels.attention = AttentionKernel::flash;
  CHECK(warning_codes(request) == std::vector<std::string>{"selective_saves_little"});
}

TEST_CASE("plan: the same request has the same plan") {
  CHECK(evaluate(gpt3_on_a100()) == evaluate(gpt3_on_a100()));
}

TEST_CASE("plan: tokens that experts drop are no FLOPs, and no rank is sent more than all of them") {
  Request request = gpt3_timed();
  request.model = read_model("mixtral-8x7b");
  request.strategy = {.data_parallel = 8, .expert_parallel = 8, .data_sharding = DataSharding::zero1};
  request.workload = {.global_batch = 8, .sequence = 4096};
  const auto model_flops = [&](double capacity) {
    Request dropping = request;
    dropping.model.architecture.experts->capacity_factor = capacity;
    return plan_of(dropping).timing->flops.model.count();
  };
  const double all = plan_of(request).timing->flops.model.count();
  CHECK(model_flops(1.5) == all);
  CHECK(model_flops(1) == all);
  const Experts& experts = *request.model.architecture.experts;
  const double routed = 3.0 * 2 * 3 * static_cast<double>(experts.per_token * experts.feedforward) *
                        static_cast<double>(request.model.hidden * request.model.layers) * 8 * 4096;
  CHECK(model_flops(0.5) == doctest::Approx(all - 0.5 * routed));
  const auto capped = [&] {
    const std::vector<std::string> codes = warning_codes(request);
    return std::find(codes.begin(), codes.end(), "moe_imbalance_capped") != codes.end();
  };
  CHECK_FALSE(capped());
  request.model.architecture.experts->capacity_factor = 0.5;
  CHECK_FALSE(capped());
  request.model.architecture.experts->capacity_factor.reset();
  request.workload.moe_imbalance.factor = 5;  // of the four that tokens of two experts can come to
  CHECK(capped());
}

TEST_CASE("plan: padding to the capacity of experts costs time and memory, and no FLOPs that count") {
  Request request = gpt3_timed();
  request.model = read_model("mixtral-8x7b");
  request.strategy = {.data_parallel = 8, .expert_parallel = 8, .data_sharding = DataSharding::zero1};
  request.workload = {.global_batch = 8, .sequence = 4096};
  const auto padded = [&](double capacity) {
    Request asked = request;
    asked.model.architecture.experts->capacity_factor = capacity;
    asked.strategy.moe_pad_to_capacity = true;
    return account(evaluate(asked));
  };
  const Plan even = account(evaluate(request));
  const Plan one = padded(1);
  const Plan two = padded(2);
  const Plan four = padded(4);
  CHECK(one.ranks[0].activations.at_peak == even.ranks[0].activations.at_peak);
  CHECK(peak(one) < peak(two));
  CHECK(peak(two) < peak(four));
  const auto exchanged = [](const Plan& plan) {
    return plan.timing->iteration.breakdown.expert_communication;
  };
  const auto products = [](const Plan& plan) { return plan.timing->iteration.breakdown.gemm; };
  CHECK(exchanged(four) > 1.9 * exchanged(two));
  CHECK(products(four) - products(two) > 1.8 * (products(two) - products(one)));
  CHECK(four.timing->flops.model == even.timing->flops.model);
  // No load of experts changes what is padded.
  request.workload.moe_imbalance.factor = 1.5;
  CHECK(padded(2).timing->iteration.total == two.timing->iteration.total);
  const auto problem = [&](Dispatcher dispatcher, std::optional<double> capacity) {
    Request asked = request;
    asked.model.architecture.experts->capacity_factor = capacity;
    asked.strategy.moe_pad_to_capacity = true;
    asked.strategy.moe_dispatcher = dispatcher;
    return illegalities(asked, asked.strategy).front();
  };
  CHECK(problem(Dispatcher::alltoall, std::nullopt) ==
        Problem{"moe_pad_to_capacity",
                "needs `capacity_factor` in the model's experts: it sets the padded token count relative to "
                "the mean"});
  CHECK(problem(Dispatcher::allgather, 2).rule ==
        "needs `moe_dispatcher` alltoall, not allgather: padding is modelled only for alltoall");
}

}  // namespace headroom
