#include "headroom/answer/estimate.hpp"

#include "headroom/io/spreads_file.hpp"

namespace headroom {
namespace {

constexpr std::size_t most_alternatives = 3;

}  // namespace

std::vector<LoadedPlan> plans_by_load(const Request& request) {
  const std::int64_t ranks = request.strategy.expert_parallel;
  std::vector<LoadedPlan> loads;
  if (ranks == 1 || !any_experts(request.model)) return loads;
  for (const auto& [load, name] : spellings<ExpertLoad>) {
    Request loaded = request;
    loaded.workload.moe_imbalance = {.load = load};
    const Evaluation evaluation = evaluate(loaded);
    const Plan& plan = account(evaluation);
    loads.push_back({.load = load,
                     .imbalance = fullest_rank(loaded.workload.moe_imbalance, loaded.model, ranks),
                     .peak = peak(plan),
                     .verdict = plan.verdict});
    if (plan.timing) loads.back().iteration = plan.timing->iteration.total;
  }
  return loads;
}

EstimateReply estimated(Evaluation evaluation, const Training& training) {
  EstimateReply reply{.evaluation = std::move(evaluation)};
  const Plan& plan = account(reply.evaluation);
  reply.training = training_on(training, plan.request.system);
  reply.allocated = allocated_interval(plan, embedded_spreads());
  reply.allocator = allocator_use(plan, static_cast<std::int64_t>(plan.peak_rank));
  if (!plan.timing) return reply;
  const Seconds iteration = plan.timing->iteration.total;
  reply.spread = iteration_spread(plan.request, embedded_spreads());
  reply.interval = iteration_interval(iteration, reply.spread->spread);
  if (training.tokens > 0) {
    reply.cost = training_interval(reply.training, plan.request.workload, iteration, *reply.interval,
                                   devices(plan.request.strategy));
  }
  return reply;
}

EstimateReply answer(const EstimateQuestion& question) {
  EstimateReply reply = estimated(evaluate(question.request), question.training);
  const Plan& plan = account(reply.evaluation);
  reply.loads = plans_by_load(question.request);
  reply.looked_for_alternatives = question.with_alternatives;
  if (question.with_alternatives) {
    reply.alternatives =
        fits(reply) ? improvements(plan, most_alternatives) : remedies(question.request, most_alternatives);
  }
  if (question.with_schedule && plan.timing) reply.trace = trace_of(plan);
  if (question.with_launch) {
    const Request& request = plan.request;
    reply.launch = launch_flags(request.model, request.strategy, request.workload, request.software);
  }
  return reply;
}

bool fits(const EstimateReply& reply) { return std::holds_alternative<Plan>(reply.evaluation); }

}  // namespace headroom
