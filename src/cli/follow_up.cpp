#include "cli/follow_up.hpp"

#include <algorithm>

#include "headroom/parallel/stack_defaults.hpp"
#include "io/text.hpp"
#include "report/strategy_flags.hpp"

namespace headroom::cli {
namespace {

// In quotes where a shell would take it apart.
std::string quoted(const std::string& given) {
  std::string text = printable(given, std::string::npos);
  const std::string safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:";
  if (text.find_first_not_of(safe) == std::string::npos) return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// What is asked about, without strategy and batch.
std::string command(const std::string& name, const RequestFlags& request, const SystemFlags& system) {
  std::string command = "headroom " + name + " " + quoted(request.model);
  const auto add = [&](const char* flag, const FlagText& value) {
    if (value) command += std::string(" ") + flag + " " + quoted(*value);
  };
  for (const std::string& change : request.overrides) add("--set", change);
  add("--attention", request.attention);
  add("--sequence", request.text("sequence"));
  add("--moe-imbalance", request.text("moe_imbalance"));
  add("--moe-balancing", request.text("moe_balancing"));
  const auto reference = static_cast<std::size_t>(find_field("reference_model") - strategy_fields.data());
  if (request.fields.at(reference).on.value_or(false)) command += " --reference-model";
  add("--detail", request.detail);
  add("--system", system.system);
  for (const std::string& change : system.overrides) add("--set-system", change);
  if (!system.software.empty()) add("--software", system.software);
  for (const std::string& change : system.software_overrides) add("--set-software", change);
  add("--margin", system.margin);
  return command;
}

}  // namespace

std::string estimate_command(const RequestFlags& request, const SystemFlags& system) {
  return command("estimate", request, system);
}

std::string estimate_command(const RequestFlags& flags, const SystemFlags& system, const Request& request) {
  return estimate_command(flags, system) + " --global-batch " +
         std::to_string(request.workload.global_batch) + " " +
         strategy_flags(request.strategy, request.software, request.model);
}

std::string plan_command(const RequestFlags& flags, const SystemFlags& system, const Request& request) {
  Edits saved = edits_of(request.strategy, request.software, request.model);
  std::erase_if(saved, [](const Edit& edit) { return find_field(edit.field)->group != FieldGroup::saved; });
  std::string text = command("plan", flags, system) + " --devices " +
                     std::to_string(devices(request.strategy)) + " --global-batch " +
                     std::to_string(request.workload.global_batch);
  return saved.empty() ? text : text + " " + flags_of(saved);
}

}  // namespace headroom::cli
