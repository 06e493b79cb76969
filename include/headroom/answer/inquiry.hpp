// Question of `headroom plan --why`: what is wrong with a strategy.
#pragma once

#include <optional>
#include <vector>

#include "headroom/answer/compare.hpp"
#include "headroom/core/on_heap.hpp"
#include "headroom/plan/remedies.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

struct InquiryQuestion {
  Request base;  // its strategy has the fields that the space does not set
  Space space;
  Strategy strategy;               // strategy in question
  std::vector<Problem> problems;   // rules that it is known to break
  std::optional<Evaluation> best;  // best plan of the space, for comparison
};

struct InquiryReply {
  std::vector<Problem> problems;  // rules that the strategy breaks; if any, there is no evaluation
  std::optional<Evaluation> evaluation;
  OnHeap<CompareReply> against_best;  // `before` is the best plan, `after` the strategy
  std::vector<Alternative> remedies;  // if the strategy is legal and does not fit
  // If the strategy fits and takes no longer than the best plan: the nearest strategy that was searched,
  // unless they are equal.
  std::optional<Strategy> searched;
  // if the strategy is not legal: nearest strategies of the space that are legal and fit
  std::vector<Plan> nearest;
};

InquiryReply answer(const InquiryQuestion& question);

// Returns whether the strategy in question is the best plan.
bool is_best(const InquiryReply& reply);

}  // namespace headroom
