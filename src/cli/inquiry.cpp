#include "cli/inquiry.hpp"

namespace headroom::cli {
namespace {

// d, where it is not given, from the devices.
void use_devices(const RequestFlags& asked, std::int64_t all, Strategy& strategy,
                 std::vector<Problem>& problems) {
  const std::int64_t replica = devices_of_replica(strategy);
  if (!asked.text("data_parallel") && !asked.devices) {
    if (all % replica == 0) {
      strategy.data_parallel = all / replica;
    } else {
      problems.push_back({"--devices", "must be a multiple of " + sizes_of_replica(strategy) + " (" +
                                           std::to_string(all) + " is not a multiple of " +
                                           std::to_string(replica) + ")"});
    }
  } else if (devices(strategy) != all) {
    problems.push_back(
        {asked.devices ? "--devices" : "--data-parallel",
         "makes it " + std::to_string(devices(strategy)) + " GPUs, not " + std::to_string(all)});
  }
}

}  // namespace

AskedStrategy read_inquiry(const std::string& option, const std::string& text, const AllFlags& flags,
                           const Request& base, const Space& space) {
  AllFlags first = flags;
  // What is the same for all strategies of the space need not be said again.
  if (space.precision.size() == 1)
    first.request.text("precision") = std::string(name_of(space.precision.front()));
  const auto [asked, runs_on] = changed_flags(first, option, text, add_software_flags);
  std::vector<Problem> unreadable;
  Request request = read_request(asked, unreadable);
  request.system = base.system;
  read_software_flags(runs_on, request, unreadable);
  use_stack_defaults(asked, request);
  for (Problem& problem : unreadable) problem.where = option + " " + as_typed(problem).where;
  if (!unreadable.empty()) throw InputError(std::move(unreadable));
  Transformer model = with_attention(request.model, base.software.attention_kernel);
  model.source = base.model.source;  // names the number of layers that --find max-layers found
  if (model != base.model || request.workload != base.workload || request.detail != base.detail) {
    throw InputError(option,
                     "asks about a strategy: model, batch, sequence and detail are those of the plan");
  }
  AskedStrategy result{.strategy = request.strategy, .problems = {}};
  if (request.software != base.software) result.software = request.software;
  use_devices(asked, space.devices, result.strategy, result.problems);
  return result;
}

}  // namespace headroom::cli
