// Duration and cost of a training run. The run iterates until it has seen its tokens. Failures and
// checkpoints add time where they are requested; evaluation runs are left out. Money and energy follow from a
// price and a power.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headroom/core/units.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/plan/goodput.hpp"
#include "headroom/plan/interval.hpp"

namespace headroom {

struct Training {
  double tokens = 0;                            // to train on; 0: not requested
  std::optional<double> price_per_device_hour;  // in `currency`
  std::string currency = "$";                   // prefix of a price
  std::optional<double> device_watts;           // constant draw of a GPU
  bool watts_of_data_sheet = false;        // device_watts is the system's TDP, for lack of another figure
  std::optional<Reliability> reliability;  // if absent, nothing fails
  friend bool operator==(const Training&, const Training&) = default;
};

struct TrainingCost {
  double iterations = 0;  // rounded up: the last one may see more tokens than are left
  double days = 0;
  double device_hours = 0;  // spares included
  std::optional<double> price;
  std::optional<double> kilowatt_hours;  // of the training GPUs, without spares
  std::optional<Goodput> goodput;        // where Training has a reliability
  double failures = 0;                   // expected number
  friend bool operator==(const TrainingCost&, const TrainingCost&) = default;
};

// Fills in from the system: its TDP if no power is given, and its GPUs per node.
Training training_on(Training training, const System& system);

double iterations_of(const Training& training, const Workload& workload);

// Throws InputError if failures leave next to no time for training.
TrainingCost training_cost(const Training& training, const Workload& workload, Seconds iteration,
                           std::int64_t devices);

// Training cost at the predicted iteration time and at both ends of its interval.
struct TrainingInterval {
  TrainingCost predicted;
  TrainingCost low;
  TrainingCost high;
  friend bool operator==(const TrainingInterval&, const TrainingInterval&) = default;
};

TrainingInterval training_interval(const Training& training, const Workload& workload, Seconds iteration,
                                   const IterationInterval& interval, std::int64_t devices);

// Returns the longest iteration time with which the run on `devices` GPUs ends by `deadline`.
Seconds iteration_by(const Training& training, const Workload& workload, std::int64_t devices,
                     Seconds deadline);

}  // namespace headroom
