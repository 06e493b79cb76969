// What a training run takes: iterations until it has seen its tokens, one after the other, and what failures and
// checkpoints cost where they are asked for; evaluations are left out. At a price and a power, what that costs.
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
  double tokens = 0;                            // to train on; 0: not asked
  std::optional<double> price_per_device_hour;  // in the currency
  std::string currency = "$";                   // as it stands before a price
  std::optional<double> device_watts;           // that a device draws all the time
  bool watts_of_data_sheet = false;             // they are the system's TDP, since nobody said more
  std::optional<Reliability> reliability;       // without it nothing fails
  friend bool operator==(const Training&, const Training&) = default;
};

struct TrainingCost {
  double iterations = 0;  // the last one may see more tokens than are left
  double days = 0;
  double device_hours = 0;  // of spares too
  std::optional<double> price;
  std::optional<double> kilowatt_hours;  // of the devices that train
  std::optional<Goodput> goodput;        // where failures are asked for
  double failures = 0;                   // that are to be expected, of them
  friend bool operator==(const TrainingCost&, const TrainingCost&) = default;
};

// On a system: with its TDP where no power is given, and with the size of its nodes.
Training training_on(Training training, const System& system);

double iterations_of(const Training& training, const Workload& workload);

// Throws InputError where failures leave next to no time.
TrainingCost training_cost(const Training& training, const Workload& workload, Seconds iteration,
                           std::int64_t devices);

// The same as predicted, and at the two ends of the interval of an iteration's time.
struct TrainingInterval {
  TrainingCost predicted;
  TrainingCost low;
  TrainingCost high;
  friend bool operator==(const TrainingInterval&, const TrainingInterval&) = default;
};

TrainingInterval training_interval(const Training& training, const Workload& workload, Seconds iteration,
                                   const IterationInterval& interval, std::int64_t devices);

// What an iteration may take for all of them to end by then, on so many devices.
Seconds iteration_by(const Training& training, const Workload& workload, std::int64_t devices,
                     Seconds deadline);

}  // namespace headroom
