#include "cli/space_flags.hpp"

#include <type_traits>

namespace headroom::cli {
namespace {

std::string most_flag(const SpaceField& dimension) {
  return flag_of(std::string("max_").append(dimension.field));
}

// A field that is tried unless told otherwise has a flag that tells.
std::string switch_flag(const SpaceField& dimension, bool by_default) {
  return by_default ? flag_of(std::string("no_").append(dimension.field)) : flag_of(dimension.field);
}

void add_field(Command command, const SpaceField& dimension, SpaceFlag& flag) {
  const StrategyField& field = *find_field(dimension.field);
  const std::string help(dimension.help);
  const auto option = [&](const std::string& value) {
    command.option(flag_names(field), flag.values, value, help);
  };
  const auto add = [&](auto member) {
    using Values = std::remove_cvref_t<decltype(Space().*member)>;
    if constexpr (std::is_same_v<Values, Counts>) {
      option("N,N,...");
      command.option(most_flag(dimension), flag.most, "N", "Largest of these sizes to try");
    } else if constexpr (std::is_same_v<Values, std::vector<bool>>) {
      option("yes|no|both");
    } else if constexpr (std::is_same_v<Values, bool>) {
      command.flag(switch_flag(dimension, Space().*member), flag.on, help);
    } else if constexpr (std::is_same_v<Values, ModuleSets>) {
      option(std::string(field.value));
      command.flag(switch_flag(dimension, true), flag.on,
                   "Leave out recomputation of single modules of experts and latent attention");
    } else {
      option(std::string(field.value) + ",...");
    }
  };
  std::visit(add, dimension.values);
}

void read_values(const SpaceField& dimension, const SpaceFlag& flag, Counts& counts,
                 std::vector<Problem>& problems) {
  for (const std::string& part : split_list(flag.values)) {
    counts.only.push_back(0);
    read_count(flag_of(dimension.field), part, counts.only.back(), problems);
  }
  read_count(most_flag(dimension), flag.most, counts.most, problems);
}

// yes, no, or both.
void read_values(const SpaceField& dimension, const SpaceFlag& flag, std::vector<bool>& values,
                 std::vector<Problem>& problems) {
  if (!flag.values) return;
  if (*flag.values == "yes") {
    values = {true};
  } else if (*flag.values == "no") {
    values = {false};
  } else if (*flag.values == "both") {
    if (values.size() < 2) values = {false, true};
  } else {
    problems.push_back({flag_of(dimension.field), "must be yes, no or both, not '" + *flag.values + "'"});
  }
}

void read_values(const SpaceField&, const SpaceFlag& flag, bool& tried, std::vector<Problem>&) {
  if (flag.on) tried = !tried;
}

void read_values(const SpaceField&, const SpaceFlag& flag, ModuleSets& sets, std::vector<Problem>&) {
  sets.of_model = !flag.on;
  sets.only = split_list(flag.values);
}

template <class E>
void read_values(const SpaceField& dimension, const SpaceFlag& flag, std::vector<E>& values,
                 std::vector<Problem>& problems) {
  if (!flag.values) return;
  values.clear();
  for (const std::string& part : split_list(flag.values)) {
    values.emplace_back();
    read_choice(flag_of(dimension.field), part, values.back(), problems);
  }
}

}  // namespace

void add_space_flags(Command command, SpaceFlags& flags) {
  command = command.in(topic::search_space);
  command.option("--devices", flags.devices, "N", "GPUs to use, all of them").required();
  for (std::size_t i = 0; i < space_fields.size(); ++i) add_field(command, space_fields[i], flags.fields[i]);
  command.flag("--fast", flags.fast,
               "Search the usual values alone. These are: TP within a node, whole sequences below 32k "
               "tokens, one shard "
               "group, one dispatcher");
  command.option(
      "--layout", flags.layout, "even|any",
      "even: equal virtual stages, which every launcher accepts; any: uneven ones too (default: what "
      "the stack launches)");
  command.flag("--try-offload", flags.try_offload,
               "Also try offloading to the host: optimizer state, activations and, with zero3, weights and "
               "gradients");
}

void add_search_flags(Command command, RequestFlags& request, SystemFlags& system, SpaceFlags& space) {
  add_model_flags(command, request);
  add_saved_flags(command, request);
  command.in(topic::search_space)
      .option(
          "--global-batch", request.text("global_batch"), "N",
          "Sequences in an iteration (GBS), or '4M tokens', which is the default, of the model's sequence");
  add_system_flags(command, system);
  add_space_flags(command, space);
}

void use_default_batch(const RequestFlags& flags, const Space& space, Request& request) {
  if (flags.text("global_batch")) return;
  request.workload.global_batch = usual_global_batch(request, space.devices);
}

Space read_space(const SpaceFlags& flags, const Software& software, std::vector<Problem>& problems) {
  Space space{.breadth = flags.fast ? Breadth::usual : Breadth::wide, .layouts = layouts_of(software)};
  read_count("--devices", flags.devices, space.devices, problems);
  for (std::size_t i = 0; i < space_fields.size(); ++i) {
    const auto read = [&](auto member) {
      read_values(space_fields[i], flags.fields[i], space.*member, problems);
    };
    std::visit(read, space_fields[i].values);
  }
  for (const RecomputePolicy policy : space.recompute) {
    if (policy == RecomputePolicy::ops)
      problems.push_back({"--recompute", "must be none, selective, selective_op or full"});
  }
  const auto asked_for = [&](std::string_view field) {
    for (std::size_t i = 0; i < space_fields.size(); ++i) {
      if (space_fields[i].field == field) return flags.fields[i].values.has_value();
    }
    return false;
  };
  if (!asked_for("schedule")) space.schedules = searched_schedules(software);
  space.offload = flags.try_offload;
  if (flags.layout) read_choice("--layout", *flags.layout, space.layouts, problems);
  return space;
}

}  // namespace headroom::cli
