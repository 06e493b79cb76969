#include "cli/inquiry.hpp"

#include "headroom/search/neighbours.hpp"
#include "report/strategy_flags.hpp"

namespace headroom::cli {
namespace {

constexpr std::size_t most_neighbours = 3;

// The request of the flags, and what is wrong with it.
Request read_inquiry(const std::string& why, const RequestFlags& flags, const Request& base,
                     const Space& space, std::vector<Problem>& problems) {
  RequestFlags asked = flags;
  CLI::App parser;
  parser.set_help_flag();
  add_request_flags(parser, asked);
  try {
    parser.parse(asked.model + " " + why);
  } catch (const CLI::ParseError& error) {
    throw InputError("--why", std::string(error.what()));
  }
  if (!asked.data_parallel) asked.devices = std::to_string(space.devices);
  Request request = read_request(asked, problems);
  request.system = base.system;
  request.software = base.software;
  if (problems.empty() && devices(request.strategy) != space.devices) {
    problems.push_back({"--data-parallel", "makes it " + std::to_string(devices(request.strategy)) +
                                               " devices, not " + std::to_string(space.devices)});
  }
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
