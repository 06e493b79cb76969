// Question of `headroom compare`: two strategies, term by term. `headroom plan --why` also uses it, to
// compare a strategy with the best one.
#pragma once

#include <string>
#include <vector>

#include "headroom/plan/plan.hpp"

namespace headroom {

struct CompareQuestion {
  Request before;
  Request after;
};

// A term of both plans; its name ends in the unit.
struct ComparedTerm {
  std::string name;
  double before = 0;
  double after = 0;
  friend bool operator==(const ComparedTerm&, const ComparedTerm&) = default;
};

struct CompareReply {
  Evaluation before;
  Evaluation after;
  std::vector<ComparedTerm> time;    // the last is the sum of the others; empty if time is not known
  std::vector<ComparedTerm> memory;  // of the peak rank of each plan; the last is the sum of the others
};

// Compares two strategies. Throws InputError if one is not legal.
CompareReply answer(const CompareQuestion& question);

// Compares two plans that were evaluated before.
CompareReply compared(Evaluation before, Evaluation after);

}  // namespace headroom
