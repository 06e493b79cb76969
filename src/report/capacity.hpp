// Time and cost of a training run: as a sentence, as columns of tables of plans, and as JSON.
#pragma once

#include <string>
#include <vector>

#include "headroom/plan/capacity.hpp"
#include "headroom/report/table.hpp"
#include "report/json.hpp"

namespace headroom {

// "$1.28M", "EUR 12.8k", "$2.50": in the currency of the training run.
std::string human_price(const Training& training, double price);

std::string training_line(const Training& training, const TrainingInterval& cost);

// Return headers and cells in the same order; none if no tokens are given.
std::vector<Column> training_columns(const Training& training);
std::vector<std::string> training_cells(const Training& training, const TrainingInterval& cost);

// In the units that their names give, all digits.
std::vector<std::string> training_csv_columns(const Training& training);
std::vector<std::string> training_csv_cells(const TrainingInterval& cost);

OrderedJson training_json(const Training& training, const TrainingInterval& cost);

}  // namespace headroom
