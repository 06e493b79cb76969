// What is wrong with a strategy: the question of `headroom plan --why`.
#pragma once

#include <optional>
#include <vector>

#include "headroom/answer/compare.hpp"
#include "headroom/plan/remedies.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

struct InquiryQuestion {
  Request base;  // its strategy lends what the space does not set
  Space space;
  Strategy strategy;               // that is asked about
  std::vector<Problem> problems;   // the rules that it is already known to break
  std::optional<Evaluation> best;  // the best plan of the space, to compare with
};

struct InquiryReply {
  std::vector<Problem> problems;  // the rules that the strategy breaks; then there is no evaluation
  std::optional<Evaluation> evaluation;
  std::optional<CompareReply> against_best;  // the best plan before, the strategy after
  std::vector<Alternative> remedies;         // where it is legal and does not fit
  // Where it fits and takes no longer than the best plan: the nearest strategy that was searched, unless it is this one.
  std::optional<Strategy> searched;
  std::vector<Plan> nearest;  // where it is not legal: the nearest strategies of the space that are and fit
};

InquiryReply answer(const InquiryQuestion& question);

// Whether what was asked about is the best plan itself.
bool is_best(const InquiryReply& reply);

}  // namespace headroom
