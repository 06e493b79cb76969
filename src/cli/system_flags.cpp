#include "cli/system_flags.hpp"

#include <utility>

#include "cli/notes.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom::cli {

void add_hardware_flags(Command command, SystemFlags& flags) {
  command = command.in(topic::system);
  command.option("--system", flags.system, "SYSTEM", "System's name (headroom list systems) or file")
      .note(flags.names_system);
  command.option("--set-system", flags.overrides, "KEY=VALUE",
                 "Override a field of the system: memory='96 GiB'");
}

void add_system_flags(Command command, SystemFlags& flags) {
  add_hardware_flags(command, flags);
  add_software_flags(command, flags);
  command.in(topic::system)
      .option("--margin", flags.margin, "PERCENT",
              "Memory to keep free for fragmentation and temporary buffers (5%)");
}

void add_software_flags(Command command, SystemFlags& flags) {
  command = command.in(topic::system);
  command.option("--software", flags.software, "SOFTWARE",
                 "Training stack (headroom list software) or its file. Default: the system's");
  command.option("--set-software", flags.software_overrides, "KEY=VALUE",
                 "Override a field of the software: overlap_grad_reduce=true (also: --overlap-grad-reduce, "
                 "--cross-entropy chunked, --no-overlap-param-gather, --tp-comm-overlap, "
                 "--no-overlap-p2p-communication, --compile, --eager, --cuda-graphs layers, ...)");
}

void read_margin(const SystemFlags& flags, Request& request, std::vector<Problem>& problems) {
  if (!flags.margin) return;
  const std::optional<double> margin = read_part(*flags.margin);
  if (!margin || !(*margin >= 0 && *margin < 1)) {
    problems.push_back(
        {"--margin",
         "must be a part of memory from 0 to below 100%, such as 5% or 0.05, not '" + *flags.margin + "'"});
    return;
  }
  request.margin = *margin;
}

void read_software_flags(const SystemFlags& flags, Request& request, std::vector<Problem>& problems) {
  const std::string stack = flags.software.empty() ? request.system.default_software : flags.software;
  collect(problems, [&] { request.software = read_software(stack, flags.software_overrides); });
  note_reading("software", stack);
  request.model = with_attention(std::move(request.model), request.software.attention_kernel);
}

void read_system_flags(const SystemFlags& flags, Request& request, std::vector<Problem>& problems) {
  collect(problems, [&] { request.system = read_system(flags.system, flags.overrides); });
  note_reading("system", flags.system, flags.overrides);
  read_software_flags(flags, request, problems);
  read_margin(flags, request, problems);
}

void use_stack_optimizer(const RequestFlags& asked, Request& request) {
  request.strategy = with_stack_defaults(request.strategy, request.software, request.model);
  for (const std::string_view field :
       {"optimizer", "main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype", "gradient_dtype"}) {
    const FlagText& text = asked.text(field);
    // What is wrong with it was said when it was read.
    if (text) apply(Edit{std::string(field), *text}, request.strategy, request.workload);
    if (field == "optimizer") request.strategy.optimizer = without_idle_moments(request.strategy.optimizer);
  }
  if (!asked.text("main_params_dtype"))
    request.strategy.optimizer.main_params =
        default_main_params(request.strategy, request.software, request.model);
}

void use_stack_defaults(const RequestFlags& asked, Request& request) {
  use_stack_optimizer(asked, request);
  Strategy& strategy = request.strategy;
  if (!asked.text("schedule")) use_default_schedule(strategy, request.software);
  if (!asked.text("data_sharding")) strategy.data_sharding = default_sharding(request.software, strategy);
  // On one rank, a launch file's sharding has no effect on such stacks.
  const bool of_file = asked.places.contains("--data-sharding");
  if (of_file && devices(strategy) == 1 && request.software.sharding.plain_alone)
    strategy.data_sharding = sharding_of_one(request.software, strategy);
}

Request read_request_on(const RequestFlags& asked, const SystemFlags& system,
                        std::vector<Problem>& problems) {
  Request request = read_request(asked, problems);
  read_system_flags(system, request, problems);
  use_stack_defaults(asked, request);
  return request;
}

}  // namespace headroom::cli
