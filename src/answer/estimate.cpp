#include "headroom/answer/estimate.hpp"

#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/spreads_file.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/search/feasibility.hpp"

namespace headroom {
namespace {

constexpr std::size_t most_alternatives = 3;

}  // namespace

std::vector<std::string> sharding_stacks(const Request& request, std::int64_t devices) {
  std::vector<std::string> stacks;
  if (contains(request.software.sharding.modes, DataSharding::zero3)) return stacks;
  for (const char* name : {"torchtitan-2025", "nemo-2025"}) {
    Request other = request;
    other.software = read_software(name);
    other.model = with_attention(std::move(other.model), other.software.attention_kernel);
    other.strategy = with_stack_defaults({}, other.software, other.model);
    const Space space{.devices = devices,
                      .layouts = layouts_of(other.software),
                      .schedules = searched_schedules(other.software)};
    const std::optional<Strategy> fitting = Feasibility(other).fitting_strategy(space);
    if (!fitting) continue;
    other.strategy = *fitting;
    if (settled_verdict(evaluate(other)) == Verdict::fits) stacks.emplace_back(name);
  }
  return stacks;
}

EstimateReply estimated(Evaluation evaluation, const Training& training) {
  EstimateReply reply{.evaluation = settled(std::move(evaluation))};
  const Plan& plan = account(reply.evaluation);
  reply.training = training_on(training, plan.request.system);
  reply.allocated = allocated_interval(plan, embedded_spreads());
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
  reply.routing = routing_of(plan, reply.training);
  reply.looked_for_alternatives = question.with_alternatives;
  if (question.with_alternatives) {
    reply.alternatives =
        fits(reply) ? improvements(plan, most_alternatives) : remedies(question.request, most_alternatives);
  }
  if (question.with_alternatives && !fits(reply))
    reply.sharding_stacks = sharding_stacks(question.request, devices(question.request.strategy));
  if (question.with_schedule && plan.timing) {
    if (const std::int64_t steps = trace_steps(plan); steps > most_drawn_steps) {
      throw InputError("timeline", "cannot draw " + std::to_string(steps) + " steps, of at most " +
                                       std::to_string(most_drawn_steps) + ": give fewer microbatches");
    }
    reply.trace = trace_of(plan);
  }
  if (question.views != WhichViews::none) reply.views = views_of(plan, question.views);
  if (question.with_peak_tensors) reply.peak_tensors = peak_tensors(plan);
  if (question.with_launch) {
    const std::optional<LaunchTarget> target =
        question.target ? question.target : own_target(plan.request.software);
    if (target) reply.launch = launch_of(plan.request, *target);
  }
  return reply;
}

bool fits(const EstimateReply& reply) { return std::holds_alternative<Plan>(reply.evaluation); }

}  // namespace headroom
