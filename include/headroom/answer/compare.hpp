// Two strategies term by term: the question of `headroom compare`, and what `headroom plan --why` says of a strategy
// beside the best one.
#pragma once

#include <string>
#include <vector>

#include "headroom/plan/plan.hpp"

namespace headroom {

struct CompareQuestion {
  Request before;
  Request after;
};

// A term of both plans, in the unit that its name ends in.
struct ComparedTerm {
  std::string name;
  double before = 0;
  double after = 0;
  friend bool operator==(const ComparedTerm&, const ComparedTerm&) = default;
};

struct CompareReply {
  Evaluation before;
  Evaluation after;
  std::vector<ComparedTerm> time;    // the last is the sum of the others; empty where time is not known
  std::vector<ComparedTerm> memory;  // of the peak rank of each plan; the last is their sum
};

// Throws InputError where one of the strategies is not legal.
CompareReply answer(const CompareQuestion& question);

// The same of two plans that are there already.
CompareReply compared(Evaluation before, Evaluation after);

}  // namespace headroom
