#include "interop/launch_in/setting.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "interop/launch_in/absent_parts.hpp"
#include "interop/launch_in/tree_run.hpp"
#include "io/file_formats.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

// "--hidden-size" of "--hidden-size 4096".
std::string flag_as_written(const Written& setting) {
  const std::size_t end = setting.as_written.find_first_of(" =:");
  const std::string flag = setting.as_written.substr(0, end);
  return flag.empty() ? setting.name : printable(flag);
}

std::string where_written(const Written& setting) {
  return text_of(setting.at) + ": " + flag_as_written(setting);
}

// A value that a user gave as text, also as Python and YAML spell it.
Json json_of_value(const std::string& text) {
  const std::string word = lower(text);
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  return scalar(text);
}

// A stack's choice spells a switch true or false; Python and YAML have other words for it.
std::string choice_text(const Written& setting) {
  std::string text = text_of_values(setting);
  if (setting.values.empty()) return "true";
  const Json value = json_of_value(text);
  return value.is_boolean() ? value.dump() : text;
}

JsonPointer pointer_of(std::string_view path) { return JsonPointer("/" + std::string(path)); }

const StrategyField* field_named(std::string_view name) {
  const StrategyField* const field = find_field(name);
  return field != nullptr && field->name == name ? field : nullptr;
}

// Whether two names differ by one letter: more, less or other.
bool is_slip(std::string_view x, std::string_view y) {
  if (x.front() != y.front()) return false;  // --patch-size is no slip of --batch-size
  if (x.size() < y.size()) std::swap(x, y);
  const std::size_t start =
      static_cast<std::size_t>(std::mismatch(y.begin(), y.end(), x.begin()).first - y.begin());
  if (x.size() == y.size()) return start < x.size() && x.substr(start + 1) == y.substr(start + 1);
  return x.size() == y.size() + 1 && x.substr(start + 1) == y.substr(start);
}

// A value as the reader of a field spells it, where the file spells a switch otherwise.
std::string spelt_for(const StrategyField& field, std::string value) {
  if (!std::holds_alternative<Member<bool>>(field.member)) return value;
  const std::string word = lower(value);
  if (word == "true" || word == "on" || word == "1" || word == "yes") return "yes";
  if (word == "false" || word == "off" || word == "0" || word == "no") return "no";
  return value;
}

// The value in one spelling, or the rule that it breaks.
std::string checked(const StrategyField& field, std::string& value) {
  value = spelt_for(field, std::move(value));
  if (field.name == "stage_layers" && value.find('=') != std::string::npos) return {};  // needs the model
  Strategy strategy;
  Workload workload;
  workload.sequence = 1;
  std::string rule = set_value(field, value, strategy, workload);
  const bool keeps_text = field.name == "stage_layers" || field.name == "global_batch";
  if (rule.empty() && !keeps_text) value = value_of(field, strategy, workload);
  return rule;
}

LaunchSetting* find_setting(std::vector<LaunchSetting>& list, std::string_view field) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const LaunchSetting& setting) { return setting.field == field; });
  return found == list.end() ? nullptr : &*found;
}

std::optional<std::string> value_in(const std::vector<LaunchSetting>& list, std::string_view field) {
  for (const LaunchSetting& setting : list) {
    if (setting.field == field) return setting.value;
  }
  return std::nullopt;
}

// The overrides of a named model: a member of members is a dotted key.
void add_overrides(const Json& members, const std::string& above, std::vector<std::string>& overrides) {
  for (const auto& [key, value] : members.items()) {
    if (value.is_object()) {
      add_overrides(value, above + key + ".", overrides);
    } else {
      overrides.push_back(above + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
    }
  }
}

bool sets_key(const std::vector<std::string>& overrides, std::string_view override) {
  const std::string_view key = override.substr(0, override.find('=') + 1);
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const std::string& other) { return other.starts_with(key); });
}

}  // namespace

std::string text_of(const FilePlace& place) {
  const std::string file = printable(place.file, std::string::npos);
  return place.line > 0 ? fmt::format("{}:{}", file, place.line) : file;
}

std::string text_of_values(const Written& setting) { return joined(setting.values, ","); }

bool is_on(const Written& setting) {
  if (setting.values.empty()) return true;
  constexpr std::array<std::string_view, 8> off{"false", "no", "off", "0", "none", "null", "~", ""};
  return !contains(off, lower(text_of_values(setting)));
}

std::optional<Written> copy_of(const Written* setting) {
  return setting == nullptr ? std::nullopt : std::optional(*setting);
}

bool is_null(const Written& setting) {
  // Python's None and the nulls of YAML. "none" is a choice of many settings.
  constexpr std::array<std::string_view, 6> null{"None", "null", "Null", "NULL", "~", ""};
  return !setting.values.empty() && contains(null, text_of_values(setting));
}

std::optional<std::int64_t> product_of(std::int64_t x, std::int64_t y) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(x, y, &product) ? std::nullopt : std::optional(product);
}

bool is_zero(const Written& setting) {
  const std::string text = text_of_values(setting);
  return !text.empty() && text.find_first_not_of("0.") == std::string::npos;
}

bool lacks_value(const Written& setting) {
  const bool of_command = setting.as_written.starts_with("--") || setting.as_written.ends_with('=');
  return of_command && setting.unknown.empty() && text_of_values(setting).empty();
}

bool is_allocator_variable(std::string_view name) {
  name.remove_prefix(name.rfind('.') + 1);
  return name == "PYTORCH_CUDA_ALLOC_CONF" || name == "PYTORCH_ALLOC_CONF";
}

void take_allocator(const Written& setting, RunBuilder& builder) {
  std::string text = "," + lower(text_of_values(setting)) + ",";
  std::erase_if(text, [](char c) { return c == ' ' || c == '\'' || c == '"'; });
  for (const std::string_view value : {"true", "false"}) {
    if (text.find(fmt::format(",expandable_segments:{},", value)) != std::string::npos)
      builder.choose("memory.expandable_segments", std::string(value), &setting);
  }
}

RunBuilder::RunBuilder(std::string file, std::string framework, std::string software)
    : file_(std::move(file)) {
  run_.framework = std::move(framework);
  run_.software = std::move(software);
}

void RunBuilder::remark(LaunchRemarkKind kind, std::string text, const Written* from) {
  const FilePlace at = from == nullptr ? FilePlace{file_, 0} : from->at;
  run_.remarks.push_back({kind, std::move(text), at, ""});
}

void RunBuilder::put(std::vector<LaunchSetting>& list, std::string_view field, std::string value,
                     const Written* from) {
  LaunchSetting setting{std::string(field), std::move(value), from == nullptr ? "" : from->as_written,
                        from == nullptr ? FilePlace{file_, 0} : from->at};
  LaunchSetting* const earlier = find_setting(list, field);
  if (earlier == nullptr) {
    list.push_back(std::move(setting));
    return;
  }
  if (from != nullptr && !earlier->written.empty() && earlier->value != setting.value)
    remark(LaunchRemarkKind::implied,
           fmt::format("{} takes the place of {} ({})", printable(setting.written),
                       printable(earlier->written), text_of(earlier->at)),
           from);
  *earlier = std::move(setting);
}

void RunBuilder::set(std::string_view field, std::string value, const Written* from) {
  const StrategyField* const known = field_named(field);
  EXPECTS(known != nullptr);
  std::string rule = checked(*known, value);
  if (rule.empty()) return put(run_.strategy, field, std::move(value), from);
  problems_.push_back({from == nullptr ? file_ + ": " + std::string(field) : where_written(*from), rule});
}

void RunBuilder::choose(std::string_view choice, std::string value, const Written* from) {
  put(run_.stack, choice, std::move(value), from);
}

void RunBuilder::member(std::string_view path, Json value, const Written* from) {
  const JsonPointer pointer = pointer_of(path);
  Json& member = members_[pointer];
  if (from != nullptr && written_.contains(pointer.to_string()) && member != value)
    remark(LaunchRemarkKind::implied,
           fmt::format("{} takes the place of the value before it ({})", printable(from->as_written),
                       member.dump()),
           from);
  member = std::move(value);
  if (from != nullptr) written_.insert_or_assign(pointer.to_string(), where_written(*from));
}

void RunBuilder::name_model(std::string name, const Written* from) {
  run_.model_name = std::move(name);
  named_by_ = from == nullptr ? std::nullopt : std::optional(*from);
}

void RunBuilder::name_absent_model(std::string name, const Written* from) {
  name_model(std::move(name), from);
  absent_ = true;
}

void RunBuilder::imply(std::string sentence, const Written* from) {
  remark(LaunchRemarkKind::implied, std::move(sentence), from);
}

void RunBuilder::assume(std::string sentence, const Written* from) {
  remark(LaunchRemarkKind::assumed, std::move(sentence), from);
}

void RunBuilder::idle(const Written& setting, bool by_pattern) {
  remark(LaunchRemarkKind::idle, flag_as_written(setting), &setting);
  run_.remarks.back().by_pattern = by_pattern;
}

void RunBuilder::leave_out(const Written& setting, std::string_view what) {
  std::string text = printable(setting.as_written);
  if (!what.empty()) text.append(": ").append(what);
  remark(LaunchRemarkKind::unmodelled, std::move(text), &setting);
}

void RunBuilder::unknown(const Written& setting, const std::vector<std::string_view>& known) {
  // A letter more, less or other: forks have flags of their own, whose names are farther away.
  constexpr std::size_t shortest_slip = 8;
  const std::string_view near = nearest(setting.name, known);
  if (setting.name.size() >= shortest_slip && !near.empty() && is_slip(setting.name, near)) {
    problems_.push_back({where_written(setting), fmt::format("is not known (did you mean '{}'?)", near)});
    return;
  }
  // "embed_layernorm" is none of "qk_layernorm": a name that is meant starts alike.
  const bool alike =
      !near.empty() && near.substr(0, near.find('_')) == setting.name.substr(0, setting.name.find('_'));
  leave_out(setting, alike ? fmt::format("not known (nearest: {})", near) : "not known");
}

void RunBuilder::unresolved(std::string sentence, FilePlace at, std::string field) {
  run_.remarks.push_back(
      {LaunchRemarkKind::unresolved, std::move(sentence), std::move(at), std::move(field)});
}

void RunBuilder::unresolved(const Written& setting, std::string_view field) {
  run_.remarks.push_back({LaunchRemarkKind::unresolved,
                          fmt::format("{}: {}", printable(setting.as_written), setting.unknown), setting.at,
                          std::string(field)});
}

void RunBuilder::problem(const Written& setting, std::string rule) {
  Problem problem{where_written(setting), std::move(rule)};
  if (!contains(problems_, problem)) problems_.push_back(std::move(problem));
}

void RunBuilder::refuse_empty(const Written& setting, std::string_view field) {
  if (open_conditions_.empty()) return problem(setting, "needs a value (is a variable empty or unset?)");
  Written open = setting;
  open.unknown = open_conditions_;
  unresolved(open, field.empty() ? setting.name : field);
}

void RunBuilder::switch_to(std::string_view target, bool on, const Written& setting) {
  const std::size_t equals = target.find('=');
  const std::string_view name = target.substr(0, equals);
  const bool of_strategy = field_named(name) != nullptr;
  if (equals != std::string_view::npos) {
    if (!on) return;
    const std::string value(target.substr(equals + 1));
    if (of_strategy) return set(name, value, &setting);
    return choose(name, value, &setting);
  }
  if (of_strategy) return set(name, on ? "yes" : "no", &setting);
  choose(name, on ? "true" : "false", &setting);
}

bool RunBuilder::take(const LaunchKey& key, const Written& setting) {
  if (key.use == LaunchUse::own) return false;
  if (key.use == LaunchUse::idle) {
    idle(setting);
    return true;
  }
  if (!setting.unknown.empty()) {
    const std::string_view target = key.target.substr(0, key.target.find('='));
    if (key.use == LaunchUse::member) drop_member(target);  // it takes the place of a value before it
    if (key.use != LaunchUse::unmodelled) unresolved(setting, target);
    return true;
  }
  // A switch is on without a value, and those of Megatron-LM set many members.
  const StrategyField* const field = key.use == LaunchUse::field ? field_named(key.target) : nullptr;
  const bool is_valued = field != nullptr && !std::holds_alternative<Member<bool>>(field->member);
  if (is_valued && lacks_value(setting)) {
    refuse_empty(setting, key.target);
    return true;
  }
  if (is_null(setting)) return true;
  switch (key.use) {
    case LaunchUse::own:
    case LaunchUse::idle: break;
    case LaunchUse::field:
      set(key.target, setting.values.empty() ? "yes" : text_of_values(setting), &setting);
      break;
    case LaunchUse::on: switch_to(key.target, is_on(setting), setting); break;
    case LaunchUse::off: switch_to(key.target, !is_on(setting), setting); break;
    case LaunchUse::choice: choose(key.target, choice_text(setting), &setting); break;
    case LaunchUse::member: {
      const std::size_t equals = key.target.find('=');
      if (equals == std::string_view::npos) {
        member(key.target, setting.values.empty() ? Json(true) : json_of_value(text_of_values(setting)),
               &setting);
      } else if (is_on(setting)) {
        member(key.target.substr(0, equals), json_of_value(std::string(key.target.substr(equals + 1))),
               &setting);
      }
      break;
    }
    case LaunchUse::unmodelled:
      if (is_on(setting)) {
        leave_out(setting, key.target);
      } else {
        idle(setting);
      }
      break;
  }
  return true;
}

std::optional<std::string> RunBuilder::value(std::string_view field) const {
  return value_in(run_.strategy, field);
}

std::optional<std::int64_t> RunBuilder::count(std::string_view field) const {
  const std::optional<std::string> text = value(field);
  std::int64_t number = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

std::optional<std::string> RunBuilder::chosen(std::string_view choice) const {
  return value_in(run_.stack, choice);
}

const Json* RunBuilder::member_at(std::string_view path) const {
  const JsonPointer pointer = pointer_of(path);
  return members_.contains(pointer) ? &members_[pointer] : nullptr;
}

void RunBuilder::drop(std::string_view field) {
  std::erase_if(run_.strategy, [&](const LaunchSetting& setting) { return setting.field == field; });
}

void RunBuilder::drop_member(std::string_view path) {
  const JsonPointer pointer = pointer_of(path);
  if (members_.contains(pointer)) members_[pointer.parent_pointer()].erase(pointer.back());
  written_.erase(pointer.to_string());
}

void RunBuilder::take_fp32_as_bf16(const Written* from) {
  set("precision", "bf16", from);
  assume(
      fmt::format("{}: read as BF16, which halves activations and is faster (FP32 products are not modelled)",
                  from == nullptr ? "no 16-bit precision is on" : printable(from->as_written)),
      from);
}

void RunBuilder::finish_model(const LaunchOptions& options) {
  const std::string& name = options.model.empty() ? run_.model_name : options.model;
  if (!name.empty() && !(absent_ && options.model.empty())) {
    std::vector<std::string> overrides = options.overrides;
    std::vector<std::string> of_file;
    add_overrides(members_, "", of_file);
    if (options.model.empty()) {
      for (std::string& override : of_file) {
        if (!sets_key(options.overrides, override)) overrides.push_back(std::move(override));
      }
    }
    ImportedModel imported = import_model(name, overrides);
    run_.assumed = std::move(imported.assumed);
    run_.model = std::move(imported.model);
    return;
  }
  if (!members_.contains("hidden") || !members_.contains("layers")) {
    // Families whose config.json would be refused, by how the last part of a name starts.
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> families{
        {{"gpt-neo-", "GPT-Neo"}, {"bert-", "BERT"}, {"t5-", "T5"}, {"bart-", "BART"}}};
    const std::string last = lower_case(name.substr(name.rfind('/') + 1));
    const auto family = std::find_if(families.begin(), families.end(),
                                     [&](const auto& it) { return last.starts_with(it.first); });
    if (absent_)
      unresolved(
          family == families.end()
              ? fmt::format("{} is not a known model: give --model and its config.json", printable(name))
              : fmt::format("{} models are not modelled: give --model NAME of a model of the size of {}",
                            family->second, printable(name)),
          named_by_ ? named_by_->at : FilePlace{file_, 0}, "model");
    return;
  }
  Document document{.file = printable(file_, std::string::npos),
                    .root = members_,
                    .overridden = written_,
                    .overrides = {},
                    .origins = {},
                    .problems = {}};
  document.root["format"] = 1;
  document.root["source"] = fmt::format("{}, arguments of {}", document.file, run_.framework);
  run_.model = model_with(std::move(document), options.overrides);
  run_.model->name = printable(std::filesystem::path(file_).stem().string());
}

LaunchedRun RunBuilder::finish(const LaunchOptions& options) {
  try {
    finish_model(options);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) {
      const bool of_name =
          named_by_ && options.model.empty() && problem.where.find(run_.model_name) != std::string::npos;
      const std::string in_model = printable(file_, std::string::npos) + ": /";
      if (of_name)
        problems_.push_back({where_written(*named_by_),
                             fmt::format("names a model that Headroom does not have: '{}' {}; give --model",
                                         printable(run_.model_name), problem.rule)});
      else if (problem.rule == "is missing" && problem.where.starts_with(in_model))
        problems_.push_back(
            {file_, fmt::format("does not say the model's {0}: give --set {0}=VALUE, or --model",
                                problem.where.substr(in_model.size()))});
      else
        problems_.push_back(problem);
    }
  }
  finish_stages();
  if (!problems_.empty()) throw InputError(std::move(problems_));
  drop_absent_parts(run_);
  const auto place = [](const LaunchSetting& setting) { return field_named(setting.field); };
  std::stable_sort(run_.strategy.begin(), run_.strategy.end(),
                   [&](const LaunchSetting& x, const LaunchSetting& y) { return place(x) < place(y); });
  return std::move(run_);
}

}  // namespace headroom
