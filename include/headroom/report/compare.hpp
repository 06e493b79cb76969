// The report of `headroom compare`: two plans for the same model, term by term.
#pragma once

#include <string>

#include "headroom/plan/plan.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

struct StrategyComparison {
  Evaluation before;
  Evaluation after;
  std::string change;  // the flags that make the second of the first
};

// JSON follows schemas/compare.schema.json.
std::string render(const StrategyComparison& comparison, Format format);

}  // namespace headroom
