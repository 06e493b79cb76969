#include "headroom/plan/capacity.hpp"

#include <cmath>

namespace headroom {

double iterations_of(const Training& training, const Workload& workload) {
  return std::ceil(training.tokens / static_cast<double>(workload.global_batch) /
                   static_cast<double>(workload.sequence));
}

TrainingCost training_cost(const Training& training, const Workload& workload, Seconds iteration,
                           std::int64_t devices) {
  constexpr double hour = 3600;
  TrainingCost cost{.iterations = iterations_of(training, workload)};
  const double hours = cost.iterations * iteration.count() / hour;
  cost.days = hours / 24;
  cost.device_hours = hours * static_cast<double>(devices);
  if (training.price_per_device_hour) cost.price = cost.device_hours * *training.price_per_device_hour;
  if (training.device_watts) cost.kilowatt_hours = cost.device_hours * *training.device_watts / 1000;
  return cost;
}

TrainingInterval training_interval(const Training& training, const Workload& workload, Seconds iteration,
                                   const IterationInterval& interval, std::int64_t devices) {
  const auto at = [&](Seconds time) { return training_cost(training, workload, time, devices); };
  return {.predicted = at(iteration), .low = at(interval.low), .high = at(interval.high)};
}

Seconds iteration_by(const Training& training, const Workload& workload, Seconds deadline) {
  return deadline / iterations_of(training, workload);
}

}  // namespace headroom
