#include "headroom/answer/plan.hpp"

#include <algorithm>

#include "headroom/core/expects.hpp"
#include "headroom/io/spreads_file.hpp"
#include "headroom/search/device_counts.hpp"
#include "headroom/search/obstacle.hpp"

namespace headroom {
namespace {

// What an iteration may take, where that is asked.
std::optional<Seconds> limit_of(const PlanQuestion& question) {
  if (question.deadline) {
    EXPECTS(question.training.tokens > 0);
    return iteration_by(question.training, question.base.workload, *question.deadline);
  }
  return question.find ? question.find->within : std::nullopt;
}

// The inverse question, where there is one; a deadline is one. It speaks of predicted times.
std::optional<Question> inverse_of(const PlanQuestion& question) {
  std::optional<Question> inverse = question.find;
  if (question.deadline && !inverse) {
    inverse = Question{.extreme = Extreme::min_devices, .most = usual_most_devices};
  }
  EXPECTS(!question.deadline || inverse->extreme == Extreme::min_devices);
  const std::optional<Seconds> limit = limit_of(question);
  if (!limit) return inverse;
  inverse->within = limit;
  if (question.odds && question.base.system.performance) {
    const Spread spread = iteration_spread(question.base, embedded_spreads()).spread;
    inverse->within = predicted_for(*limit, *question.odds, spread);
  }
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

std::vector<Outlook> outlooks_of(const PlanReply& reply, const std::vector<Candidate>& candidates) {
  std::vector<Outlook> outlooks;
  if (!reply.spread) return outlooks;
  outlooks.reserve(candidates.size());
  for (const auto& candidate : candidates) {
    Outlook outlook{.iteration = iteration_interval(candidate.iteration, reply.spread->spread)};
    if (reply.training.tokens > 0) {
      outlook.training = training_interval(reply.training, reply.base.workload, candidate.iteration,
                                           outlook.iteration, devices(candidate.strategy));
    }
    outlooks.push_back(std::move(outlook));
  }
  return outlooks;
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
  if (reply.base.system.performance) reply.spread = iteration_spread(reply.base, embedded_spreads());
  if (const std::optional<Seconds> limit = limit_of(question)) {
    reply.in_time = InTime{.limit = *limit, .asked = question.odds};
    if (!reply.result.plans.empty()) {
      reply.in_time->odds = odds_within(reply.result.plans.front().iteration, *limit, reply.spread->spread);
    }
  }
  reply.plan_outlooks = outlooks_of(reply, reply.result.plans);
  reply.pareto_outlooks = outlooks_of(reply, reply.result.pareto);
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
