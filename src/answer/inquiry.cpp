#include "headroom/answer/inquiry.hpp"

#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/search/neighbours.hpp"

namespace headroom {
namespace {

constexpr std::size_t most_neighbours = 3;

// The rules that the strategy breaks, of the devices before those of the model.
std::vector<Problem> problems_of(const InquiryQuestion& question) {
  if (!question.problems.empty()) return question.problems;
  const std::int64_t asked = devices(question.strategy);
  if (asked != question.space.devices) {
    return {{"data_parallel",
             "makes it " + std::to_string(asked) + " GPUs, not " + std::to_string(question.space.devices)}};
  }
  return illegalities(question.base, question.strategy);
}

// What the search tried in its place, where it would have been better than what it found.
std::optional<Strategy> searched_instead(const InquiryQuestion& question, const InquiryReply& reply) {
  const Plan& best = account(*question.best);
  const auto* plan = std::get_if<Plan>(&*reply.evaluation);
  if (plan == nullptr || plan->verdict != Verdict::fits || !plan->timing || !best.timing) return std::nullopt;
  if (plan->timing->iteration.total > best.timing->iteration.total || is_best(reply)) return std::nullopt;
  std::optional<Strategy> nearest = nearest_in(question.base, question.space, question.strategy);
  if (nearest && edits_of(*nearest) == edits_of(question.strategy)) return std::nullopt;
  return nearest;
}

}  // namespace

InquiryReply answer(const InquiryQuestion& question) {
  InquiryReply reply{.problems = problems_of(question)};
  Request request = question.base;
  if (!reply.problems.empty()) {
    // No single change need make it legal, so the neighbours are whole strategies.
    for (const Strategy& strategy :
         nearest_that_fit(question.base, question.space, question.strategy, most_neighbours)) {
      request.strategy = strategy;
      reply.nearest.push_back(account(settled(evaluate(request))));
    }
    return reply;
  }
  request.strategy = question.strategy;
  reply.evaluation = settled(evaluate(request));
  if (std::holds_alternative<Infeasible>(*reply.evaluation)) {
    reply.remedies = remedies(request, most_neighbours);
  }
  if (question.best) {
    reply.against_best = compared(*question.best, *reply.evaluation);
    reply.searched = searched_instead(question, reply);
  }
  return reply;
}

bool is_best(const InquiryReply& reply) {
  return reply.against_best && account(reply.against_best->before).request.strategy ==
                                   account(reply.against_best->after).request.strategy;
}

}  // namespace headroom
