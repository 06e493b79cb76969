#include "headroom/plan/capacity.hpp"

#include <cmath>
#include <string>

#include "headroom/core/error.hpp"

namespace headroom {

Training training_on(Training training, const System& system) {
  if (!training.device_watts && system.tdp) {
    training.device_watts = system.tdp->value.count();
    training.watts_of_data_sheet = true;
  }
  if (training.reliability) training.reliability->devices_per_node = host_size(system);
  return training;
}

double iterations_of(const Training& training, const Workload& workload) {
  return std::ceil(training.tokens / static_cast<double>(workload.global_batch) /
                   static_cast<double>(workload.sequence));
}

TrainingCost training_cost(const Training& training, const Workload& workload, Seconds iteration,
                           std::int64_t devices) {
  constexpr double hour = 3600;
  TrainingCost cost{.iterations = iterations_of(training, workload)};
  double hours = cost.iterations * iteration.count() / hour;
  double paid = static_cast<double>(devices);
  if (const std::optional<Reliability>& reliability = training.reliability) {
    cost.goodput = goodput(*reliability, devices);
    constexpr double next_to_none = 1e-6;
    if (!(cost.goodput->productive > next_to_none)) {
      throw InputError("mtbf", "leaves next to no time between failures: on " + std::to_string(devices) +
                                   " GPUs something fails every " +
                                   std::to_string(cost.goodput->mtbf.count()) + " s");
    }
    hours /= cost.goodput->productive;
    cost.failures = hours * hour / cost.goodput->mtbf.count();
    paid += static_cast<double>(reliability->spares);
  }
  cost.days = hours / 24;
  cost.device_hours = hours * paid;
  if (training.price_per_device_hour) cost.price = cost.device_hours * *training.price_per_device_hour;
  if (training.device_watts)
    cost.kilowatt_hours = hours * static_cast<double>(devices) * *training.device_watts / 1000;
  return cost;
}

TrainingInterval training_interval(const Training& training, const Workload& workload, Seconds iteration,
                                   const IterationInterval& interval, std::int64_t devices) {
  const auto at = [&](Seconds time) { return training_cost(training, workload, time, devices); };
  return {.predicted = at(iteration), .low = at(interval.low), .high = at(interval.high)};
}

Seconds iteration_by(const Training& training, const Workload& workload, std::int64_t devices,
                     Seconds deadline) {
  const double productive = training.reliability ? goodput(*training.reliability, devices).productive : 1;
  return deadline * productive / iterations_of(training, workload);
}

}  // namespace headroom
