#include "headroom/parallel/strategy_fields.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "headroom/core/joined.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/layout_text.hpp"

namespace headroom {
namespace {

std::string dashed(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

bool is_among(std::string_view name, const std::vector<std::string_view>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return fmt::format("{}", value); }
std::string text_of(const MoeImbalance& value) {
  if (value.load == ExpertLoad::balanced && value.factor != 1) return text_of(value.factor);
  return std::string(name_of(value.load));
}
std::string text_of(const Fraction& value) { return text_of(value.value); }
std::string text_of(const PrecisionModules& value) {
  std::string text;
  for (const std::string_view name : names_of(value)) text.append(text.empty() ? "" : ",").append(name);
  return text;
}
std::string text_of(bool value) { return value ? "yes" : "no"; }
std::string text_of(const std::string& value) { return value; }
template <class E>
std::string text_of(const E& value) {
  return std::string(name_of(value));
}
template <class T>
std::string text_of(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ",") + text_of(value);
  return text;
}

// Returns the layers of stages as text, with runs of equal counts shortened: "7,8*14,7".
std::string text_of(const std::vector<std::int64_t>& values) {
  std::string text;
  for (std::size_t first = 0; first < values.size();) {
    std::size_t end = first;
    while (end < values.size() && values[end] == values[first]) ++end;
    const bool worth_it = end - first > 2;
    if (!text.empty()) text += ',';
    text += std::to_string(values[first]);
    if (worth_it) text += '*' + std::to_string(end - first);
    first = worth_it ? end : first + 1;
  }
  return text;
}

// Each read() parses a text into a value. It returns the rule that the text breaks, or an empty string.
std::string read(std::string_view text, std::int64_t& value, std::int64_t least) {
  return read_count(text, value, least);
}

std::string read(std::string_view text, MoeImbalance& value, std::int64_t least) {
  value = {.balancing = value.balancing};
  if (const auto load = from_name<ExpertLoad>(text)) {
    value.load = *load;
    return {};
  }
  const std::string rule = read_number(text, value.factor, static_cast<double>(least));
  return rule.empty() ? rule
                      : "must be balanced, typical or worst, or a number of at least 1" + not_this(text);
}

std::string read(std::string_view text, Fraction& value, std::int64_t) {
  const std::string rule = read_number(text, value.value, 0);
  return rule.empty() && value.value <= 1 ? rule : "must be a number between 0 and 1" + not_this(text);
}

std::string read(std::string_view text, PrecisionModules& value, std::int64_t) {
  value = {};
  for (const std::string_view part : parts_of(text)) {
    PrecisionModule module{};
    std::string rule = read_name(part, module);
    if (!rule.empty()) return rule;
    value.insert(module);
  }
  return {};
}

std::string read(std::string_view text, bool& value, std::int64_t) {
  if (text != "yes" && text != "no" && text != "true") return "must be yes or no" + not_this(text);
  value = text != "no";
  return {};
}

std::string read(std::string_view text, Dtype& value, std::int64_t) {
  const std::optional<Dtype> found = from_name<Dtype>(text);
  if (found && is_floating(*found)) {
    value = *found;
    return {};
  }
  return "must be one of " + joined(dtypes_that<is_floating>) + not_this(text);
}

template <class E>
std::string read(std::string_view text, E& value, std::int64_t) {
  return read_name(text, value);
}

std::string read(std::string_view text, std::vector<std::int64_t>& values, std::int64_t least) {
  values.clear();
  for (const std::string_view part : parts_of(text)) {
    const std::size_t star = part.find('*');
    std::int64_t value = 0;
    std::int64_t times = 1;
    std::string rule = read(part.substr(0, star), value, least);
    if (rule.empty() && star != std::string_view::npos) rule = read(part.substr(star + 1), times, 1);
    if (!rule.empty()) return rule;
    // Each stage except the two at the ends holds a layer.
    if (times > most_layers + 2 - static_cast<std::int64_t>(values.size())) {
      return "must name at most " + std::to_string(most_layers + 2) + " stages";
    }
    values.insert(values.end(), static_cast<std::size_t>(times), value);
  }
  return {};
}

std::string read(std::string_view text, std::vector<std::string>& values, std::int64_t) {
  values.clear();
  for (const std::string_view part : parts_of(text)) {
    if (part.empty()) return "must be names with a comma between each two" + not_this(text);
    values.emplace_back(part);
  }
  return {};
}

std::string read_stage_layers(std::string_view text, std::vector<std::int64_t>& values, std::int64_t least) {
  if (text == even_stages) {
    values.clear();
    return {};
  }
  if (auto layers = megatron_stages(text)) {
    values = std::move(*layers);
    return {};
  }
  if (text.find_first_of("EtLM|") == std::string_view::npos) return read(text, values, least);
  return "must be the layers of each stage, such as 7,8*14,7, or a layout of Megatron-Core, such as "
         "'Et*7|(t*8|)*14,t*7,L'" +
         not_this(text);
}

}  // namespace

ScheduleKind implied_schedule(std::int64_t virtual_pipeline) {
  return virtual_pipeline > 1 ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward;
}

bool always_told(const StrategyField& field) {
  const bool rare = field.name == "virtual_pipeline" || field.name == "context_parallel";
  return field.group == FieldGroup::layout && !field.letter.empty() && !rare;
}

std::int64_t least_in_files(const StrategyField& field) {
  const auto* const member = std::get_if<Member<std::int64_t>>(&field.member);
  if (member == nullptr || !field.json.starts_with("strategy/")) return field.least;
  return std::min(field.least, member->in({}, {}));
}

const StrategyField* find_field(std::string_view name) {
  const std::string asked = dashed(name);
  const auto known = [&](const StrategyField& field) {
    return asked == dashed(field.name) || (!name.empty() && name == field.letter) ||
           is_among(asked, aliases_of(field));
  };
  const auto found = std::find_if(strategy_fields.begin(), strategy_fields.end(), known);
  return found == strategy_fields.end() ? nullptr : found;
}

std::string flag_of(std::string_view name) { return std::string(2, '-') + dashed(name); }

Problem by_flag(const Problem& problem) {
  Problem result = problem;
  const auto is_field = [](const std::string& name) {
    const StrategyField* const field = find_field(name);
    return field != nullptr && field->name == name;
  };
  if (is_field(result.where)) result.where = flag_of(result.where);
  for (std::size_t from = result.rule.find('`'); from != std::string::npos;) {
    const std::size_t end = result.rule.find('`', from + 1);
    if (end == std::string::npos) break;
    const std::string name = result.rule.substr(from + 1, end - from - 1);
    if (is_field(name)) {
      const std::string flag = flag_of(name);
      result.rule.replace(from, end - from + 1, flag);
      from = result.rule.find('`', from + flag.size());
    } else {
      from = end;  // this backquote may open the next name
    }
  }
  return result;
}

std::string short_flag_of(const StrategyField& field) {
  EXPECTS(!field.letter.empty());
  return std::string(field.letter.size() == 1 ? 1 : 2, '-').append(field.letter);
}

std::vector<std::string_view> aliases_of(const StrategyField& field) {
  return field.aliases.empty() ? std::vector<std::string_view>() : parts_of(field.aliases);
}

std::string value_of(const StrategyField& field, const Strategy& strategy, const Workload& workload) {
  return std::visit([&](const auto& member) { return text_of(member.in(strategy, workload)); }, field.member);
}

std::string plain_value(const StrategyField& field, const std::string& text, Workload workload) {
  Strategy strategy;
  return set_value(field, text, strategy, workload).empty() ? value_of(field, strategy, workload) : text;
}

std::string set_value(const StrategyField& field, std::string_view text, Strategy& strategy,
                      Workload& workload) {
  if (field.name == "global_batch") return read_global_batch(text, workload.sequence, workload.global_batch);
  if (field.name == "stage_layers") return read_stage_layers(text, strategy.stage_layers, field.least);
  return std::visit(
      [&](const auto& member) { return read(text, member.of(strategy, workload), field.least); },
      field.member);
}

}  // namespace headroom
