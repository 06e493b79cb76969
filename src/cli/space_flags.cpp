#include "cli/space_flags.hpp"

#include <array>

namespace headroom::cli {
namespace {

struct CountDimension {
  const char* field;
  const char* help;
  CountFlags SpaceFlags::*flags;
  Counts Space::*counts;
};

constexpr std::array<CountDimension, 5> dimensions{{
    {"tensor_parallel", "Tensor-parallel (TP) sizes; by default those within a node",
     &SpaceFlags::tensor_parallel, &Space::tensor_parallel},
    {"pipeline_parallel", "Pipeline-parallel (PP) sizes", &SpaceFlags::pipeline_parallel,
     &Space::pipeline_parallel},
    {"virtual_pipeline",
     "Virtual pipeline (VP) stages on each PP rank; by default those that divide the layers evenly",
     &SpaceFlags::virtual_pipeline, &Space::virtual_pipeline},
    {"data_parallel", "Data-parallel (DP) sizes", &SpaceFlags::data_parallel, &Space::data_parallel},
    {"micro_batch", "Sequences in a microbatch (MBS)", &SpaceFlags::micro_batch, &Space::micro_batch},
}};

std::string most_flag(const CountDimension& dimension) {
  return flag_of(std::string("max_") + dimension.field);
}

// yes, no, or both.
void read_choices(const std::string& flag, const FlagText& text, std::vector<bool>& values,
                  std::vector<Problem>& problems) {
  if (!text) return;
  if (*text == "yes") {
    values = {true};
  } else if (*text == "no") {
    values = {false};
  } else if (*text != "both") {
    problems.push_back({flag, "must be yes, no or both, not '" + *text + "'"});
  }
}

template <class E>
void read_list(const std::string& flag, const FlagText& text, std::vector<E>& values,
               std::vector<Problem>& problems) {
  if (!text) return;
  values.clear();
  for (const std::string& part : split_at_commas(text)) {
    values.emplace_back();
    read_choice(flag, part, values.back(), problems);
  }
}

}  // namespace

void add_space_flags(Command command, SpaceFlags& flags) {
  const char* group = "Space";
  command.option("--devices", flags.devices, "N", "GPUs to use, all of them").required().group(group);
  for (const CountDimension& dimension : dimensions) {
    command
        .option(flag_names(*find_field(dimension.field)), (flags.*dimension.flags).only, "N,N,...",
                dimension.help)
        .group(group);
    command.option(most_flag(dimension), (flags.*dimension.flags).most, "N", "The largest of these sizes")
        .group(group);
  }
  const auto option = [&](const char* name, FlagText& value, const char* type, const char* help) {
    command.option(name, value, type, help).group(group);
  };
  option("--sp,--sequence-parallel", flags.sequence_parallel, "yes|no|both",
         "Sequence parallelism (default both)");
  option("--distributed-optimizer", flags.distributed_optimizer, "yes|no|both",
         "Optimizer state sharded over data-parallel ranks (default both)");
  option("--recompute", flags.recompute, "POLICY,...", "none, selective, full (default all three)");
  command.flag("--no-recompute-layers", flags.no_recompute_layers, "Full recomputation of all layers only")
      .group(group);
  command
      .flag("--recompute-window", flags.recompute_window,
            "Also windows of microbatches exempt from recomputation (slower to search)")
      .group(group);
  option("--schedule", flags.schedule, "KIND,...", "gpipe, 1f1b, interleaved (default the last two)");
}

void add_search_flags(Command command, RequestFlags& request, SystemFlags& system, SpaceFlags& space) {
  add_model_flags(command, request);
  add_saved_flags(command, request);
  command.option("--global-batch", request.text("global_batch"), "N", "Sequences in an iteration (GBS)")
      .required();
  add_system_flags(command, system);
  add_space_flags(command, space);
}

Space read_space(const SpaceFlags& flags, std::vector<Problem>& problems) {
  Space space;
  read_count("--devices", flags.devices, space.devices, problems);
  for (const CountDimension& dimension : dimensions) {
    const CountFlags& texts = flags.*dimension.flags;
    Counts& counts = space.*dimension.counts;
    const std::string flag = flag_of(dimension.field);
    for (const std::string& part : split_at_commas(texts.only)) {
      counts.only.push_back(0);
      read_count(flag, part, counts.only.back(), problems);
    }
    read_count(most_flag(dimension), texts.most, counts.most, problems);
  }
  read_choices("--sequence-parallel", flags.sequence_parallel, space.sequence_parallel, problems);
  read_choices("--distributed-optimizer", flags.distributed_optimizer, space.distributed_optimizer, problems);
  read_list("--recompute", flags.recompute, space.recompute, problems);
  for (const RecomputePolicy policy : space.recompute) {
    if (policy == RecomputePolicy::ops)
      problems.push_back({"--recompute", "must be none, selective or full"});
  }
  space.recompute_layers = !flags.no_recompute_layers;
  space.recompute_window = flags.recompute_window;
  read_list("--schedule", flags.schedule, space.schedules, problems);
  return space;
}

}  // namespace headroom::cli
