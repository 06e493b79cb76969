#include "cli/sweep_points.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "cli/choice_flags.hpp"
#include "cli/other_names.hpp"
#include "headroom/interop/hugging_face.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"

namespace headroom::cli {
namespace {

std::string field_name(const std::string& flag) {
  std::string name = flag.substr(std::min(flag.size(), flag.find_first_not_of('-')));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// All fields by name. Where a flag and a field of a file have the same name, the flag is meant.
std::map<std::string, Field> known_fields(SweepKind kind) {
  PointFlags flags;
  ArgumentReader reader;
  add_point_flags(reader.command(), kind, flags);
  std::map<std::string, Field> fields{{"model", {FieldKind::model_name, ""}},
                                      {"system", {FieldKind::system_name, "--system="}},
                                      {"software", {FieldKind::software_name, "--software="}},
                                      {"attention", {FieldKind::model_field, "--attention="}}};
  for (const Option& option : reader.command().options()) {
    const std::string flag = option.flag();
    if (flag.empty() || flag.starts_with("--set")) continue;
    for (const std::string& name : option.long_names()) {
      fields.emplace(field_name(name), Field{FieldKind::flag, flag + "="});
    }
  }
  CapacityFlags capacity;
  ArgumentReader capacity_reader;
  add_capacity_flags(capacity_reader.command(), capacity);
  for (const Option& option : capacity_reader.command().options()) {
    if (const auto field = fields.find(field_name(option.flag())); field != fields.end())
      field->second.kind = FieldKind::training;
  }
  for (const std::string& name : model_field_names()) {
    fields.emplace(name, Field{FieldKind::model_field, "--set=" + name + "="});
  }
  for (const std::string& name : system_field_names()) {
    fields.emplace(name, Field{FieldKind::system_field, "--set-system=" + name + "="});
    // A figure with a source may be set as a whole.
    if (constexpr std::string_view value = ".value"; name.ends_with(value)) {
      const std::string whole = name.substr(0, name.size() - value.size());
      fields.emplace(whole, Field{FieldKind::system_field, "--set-system=" + whole + "="});
    }
  }
  for (const std::string& name : software_field_names()) {
    fields.emplace(name, Field{FieldKind::software_field, "--set-software=" + name + "="});
  }
  return fields;
}

}  // namespace

void add_point_flags(Command command, SweepKind kind, PointFlags& flags) {
  if (kind == SweepKind::estimate) {
    add_request_flags(command, flags.request);
    add_system_flags(command, flags.system);
  } else {
    add_search_flags(command, flags.request, flags.system, flags.space);
    add_exact_flag(command, flags.exact);
  }
  // A launch script is one run, and a sweep asks for many.
  command.find("model").describe("MODEL", "Model's name (headroom list models) or model file");
  add_capacity_flags(command, flags.capacity);
}

std::vector<Field> find_fields(SweepKind kind, const std::vector<std::string>& names) {
  const std::map<std::string, Field> known = known_fields(kind);
  std::vector<Field> fields;
  std::vector<Problem> problems;
  for (const std::string& name : names) {
    auto field = known.find(name);
    if (const StrategyField* const other = find_field(name); field == known.end() && other != nullptr) {
      field = known.find(std::string(other->name));
    }
    if (field != known.end()) {
      fields.push_back(field->second);
      continue;
    }
    if (is_field_of_kind(name)) {
      fields.push_back({FieldKind::model_field, "--set=" + name + "="});
      continue;
    }
    if (std::string rule = rule_of_varied(name); !rule.empty()) {
      problems.push_back({"--vary " + name, std::move(rule)});
      continue;
    }
    std::vector<std::string_view> candidates;
    candidates.reserve(known.size());
    for (const auto& [candidate, of] : known) candidates.push_back(candidate);
    problems.push_back(
        {"--vary " + name, "is neither a flag of 'headroom " +
                               std::string(kind == SweepKind::plan ? "plan" : "estimate") +
                               "' that changes its answer nor a field of a model, a system or a stack" +
                               did_you_mean(name, candidates)});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return fields;
}

PointReader::PointReader(SweepKind kind) : kind_(kind) {
  add_point_flags(reader_.command(), kind_, *flags_);
  for (Option option : reader_.command().options()) option.required(false);
}

PointQuestion PointReader::read(const std::vector<std::string>& arguments) {
  *flags_ = {};
  reader_.read(arguments);
  std::vector<Problem> problems;
  PointQuestion point;
  const SystemFlags& named = flags_->system;
  const ReadModel read = [&](const auto& source, const auto& overrides) {
    return model_.read(source, overrides, read_any_model);
  };
  point.request = read_request(flags_->request, problems, read);
  collect(problems, [&] { point.request.system = system_.read(named.system, named.overrides, read_system); });
  const std::string stack = named.software.empty() ? point.request.system.default_software : named.software;
  collect(problems,
          [&] { point.request.software = software_.read(stack, named.software_overrides, read_software); });
  point.request.model =
      with_attention(std::move(point.request.model), point.request.software.attention_kernel);
  read_margin(named, point.request, problems);
  if (kind_ == SweepKind::plan) {
    use_stack_optimizer(flags_->request, point.request);
  } else {
    use_stack_defaults(flags_->request, point.request);
  }
  if (kind_ == SweepKind::plan) {
    point.space = read_space(flags_->space, point.request.software, problems);
    point.by = flags_->exact ? RankedBy::time : RankedBy::preference;
    if (problems.empty()) use_default_batch(flags_->request, *point.space, point.request);
  }
  point.training = read_training(flags_->capacity, problems);
  if (!problems.empty()) throw InputError(std::move(problems));
  return point;
}

}  // namespace headroom::cli
