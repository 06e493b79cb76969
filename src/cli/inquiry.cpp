#include "cli/inquiry.hpp"

#include "headroom/search/neighbours.hpp"
#include "report/strategy_flags.hpp"

namespace headroom::cli {
namespace {

constexpr std::size_t most_neighbours = 3;

// d, where it is not given, from the devices.
void use_devices(const RequestFlags& asked, std::int64_t all, Strategy& strategy,
                 std::vector<Problem>& problems) {
  const std::int64_t replica = strategy.tensor_parallel * strategy.pipeline_parallel;
  if (!asked.data_parallel && !asked.devices) {
    if (all % replica == 0) {
      strategy.data_parallel = all / replica;
    } else {
      problems.push_back({"--devices", "must be a multiple of --tensor-parallel times --pipeline-parallel (" +
                                           std::to_string(all) + " is not a multiple of " +
                                           std::to_string(replica) + ")"});
    }
  } else if (devices(strategy) != all) {
    problems.push_back(
        {asked.devices ? "--devices" : "--data-parallel",
         "makes it " + std::to_string(devices(strategy)) + " devices, not " + std::to_string(all)});
  }
}

// The request of the flags; `problems` is why it is not legal. Throws InputError when it cannot be read or is about
// something else than the plan.
Request read_inquiry(const std::string& why, const RequestFlags& flags, const Request& base,
                     const Space& space, std::vector<Problem>& problems) {
  RequestFlags asked = flags;
  ArgumentReader reader;
  add_request_flags(reader.command(), asked);
  reader.read("--why", asked.model + " " + why);
  std::vector<Problem> unreadable;
  Request request = read_request(asked, unreadable);
  for (Problem& problem : unreadable) problem.where = "--why " + problem.where;
  if (!unreadable.empty()) throw InputError(std::move(unreadable));
  request.system = base.system;
  request.software = base.software;
  if (request.model != base.model || request.workload != base.workload || request.detail != base.detail) {
    throw InputError("--why",
                     "asks about a strategy: model, batch, sequence and detail are those of the plan");
  }
  use_devices(asked, space.devices, request.strategy, problems);
  if (problems.empty()) problems = illegalities(request.model, request.strategy, request.workload);
  return request;
}

}  // namespace

Inquiry inquire(const std::string& why, const RequestFlags& flags, const Request& base, const Space& space) {
  Inquiry inquiry{.flags = why, .problems = {}, .evaluation = {}, .neighbours = {}};
  const Request request = read_inquiry(why, flags, base, space, inquiry.problems);
  if (inquiry.problems.empty()) {
    inquiry.evaluation = evaluate(request);
    const bool fits = std::holds_alternative<Plan>(*inquiry.evaluation);
    if (!fits) inquiry.neighbours = remedies(request, most_neighbours);
    return inquiry;
  }
  // No single change need make it legal, so the neighbours are whole strategies.
  for (const Strategy& strategy : nearest_that_fit(base, space, request.strategy, most_neighbours)) {
    Request neighbour = base;
    neighbour.strategy = strategy;
    inquiry.neighbours.push_back(
        {.changes = {strategy_flags(strategy)}, .plan = account(evaluate(neighbour))});
  }
  return inquiry;
}

}  // namespace headroom::cli
