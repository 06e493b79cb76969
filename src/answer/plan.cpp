#include "headroom/answer/plan.hpp"

#include <algorithm>

#include "headroom/core/expects.hpp"
#include "headroom/search/device_counts.hpp"
#include "headroom/search/obstacle.hpp"

namespace headroom {
namespace {

// The inverse question, where there is one; a deadline is one.
std::optional<Question> inverse_of(const PlanQuestion& question) {
  if (!question.deadline) return question.find;
  Question inverse =
      question.find.value_or(Question{.extreme = Extreme::min_devices, .most = usual_most_devices});
  EXPECTS(inverse.extreme == Extreme::min_devices && question.training.tokens > 0);
  inverse.within = iteration_by(question.training, question.base.workload, *question.deadline);
  return inverse;
}

// Makes a task that of what was found, or of the least that was asked for where nothing fits.
void put_found(PlanTask& task) {
  const Question& question = task.found->question;
  const bool devices = question.extreme == Extreme::min_devices;
  std::int64_t value = task.found->value.value_or(devices ? question.most : question.step);
  if (task.found->micro_batch) {
    value = task.space.devices * *task.found->micro_batch;
    task.space.micro_batch = {.only = {*task.found->micro_batch}};
  }
  put(question.extreme, value, task.base, task.space);
}

std::vector<TrainingCost> costs_of(const PlanReply& reply, const std::vector<Candidate>& candidates) {
  std::vector<TrainingCost> costs;
  if (reply.training.tokens <= 0) return costs;
  costs.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    costs.push_back(
        training_cost(reply.training, reply.base.workload, candidate.iteration, devices(candidate.strategy)));
  }
  return costs;
}

std::vector<EstimateReply> accounts_of(const PlanReply& reply, std::size_t most) {
  std::vector<EstimateReply> accounts;
  Request request = reply.base;
  for (std::size_t i = 0; i < std::min(most, reply.result.plans.size()); ++i) {
    request.strategy = reply.result.plans[i].strategy;
    accounts.push_back(estimated(evaluate(request), reply.training));
  }
  return accounts;
}

}  // namespace

PlanTask task_of(const PlanQuestion& question) {
  PlanTask task{
      .base = question.base, .space = question.space, .device_counts = question.device_counts, .found = {}};
  const std::optional<Question> inverse = inverse_of(question);
  if (!inverse) return task;
  task.found = find(task.base, task.space, *inverse);
  put_found(task);
  return task;
}

SearchResult search(const PlanTask& task, const SearchOptions& options) {
  return task.device_counts.size() > 1
             ? search_device_counts(task.base, task.space, task.device_counts, options)
             : search(task.base, task.space, options);
}

PlanReply reply_to(const PlanQuestion& question, PlanTask task, SearchResult result,
                   const std::optional<AskedStrategy>& why) {
  PlanReply reply{.base = std::move(task.base),
                  .space = std::move(task.space),
                  .device_counts = std::move(task.device_counts),
                  .found = task.found,
                  .default_batch = question.default_batch,
                  .training = question.training,
                  .result = std::move(result)};
  constexpr std::size_t least_accounts = 2;  // the best, and the next to see its margin
  reply.accounts = accounts_of(reply, std::max(question.accounts, least_accounts));
  reply.plan_costs = costs_of(reply, reply.result.plans);
  reply.pareto_costs = costs_of(reply, reply.result.pareto);
  if (!reply.accounts.empty()) {
    reply.blocked = blocked_by_memory(account(reply.accounts.front().evaluation));
  } else {
    if (!reply.result.nearest && reply.device_counts.size() <= 1) {
      reply.obstacle = obstacle(reply.base, reply.space);
    }
    if (!reply.found) reply.relief = relief(reply.base, reply.space);
    // What no value helps was said once.
    if (reply.obstacle) std::erase_if(reply.relief, [](const Found& found) { return !found.value; });
  }
  if (why) {
    InquiryQuestion inquiry{.base = reply.base,
                            .space = reply.space,
                            .strategy = why->strategy,
                            .problems = why->problems,
                            .best = {}};
    if (!reply.accounts.empty()) inquiry.best = reply.accounts.front().evaluation;
    reply.inquiry = answer(inquiry);
  }
  return reply;
}

PlanReply answer(const PlanQuestion& question, const SearchOptions& options) {
  PlanTask task = task_of(question);
  SearchResult result = search(task, options);
  return reply_to(question, std::move(task), std::move(result), question.why);
}

bool unanswered(const PlanReply& reply) {
  return reply.found && !reply.found->value && !reply.found->micro_batch;
}

}  // namespace headroom
