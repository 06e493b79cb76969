#include "report/found.hpp"

#include "headroom/hardware/system.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

// Why nothing fits, where sizes that do not divide the GPUs are at fault; a full stop where they are not.
std::string no_layout(const Found& found, std::int64_t devices) {
  if (found.obstacle) return ": " + problem_line(*found.obstacle);
  const std::int64_t shared_by = found.most_model_parallel;
  if (shared_by == 0) return fmt::format("; no layout of {} GPUs is legal.", devices);
  if (shared_by == devices) return ".";
  return fmt::format("; TP x PP is at most {} on {} GPUs.", shared_by, devices);
}

// "an iteration of at most 27.18 s with odds of 80% (25.60 s predicted)".
std::string bounded_iteration(Seconds within, const std::optional<InTime>& in_time) {
  if (!in_time || !in_time->asked) return fmt::format("an iteration of at most {}", human(within));
  return fmt::format("an iteration of at most {} with odds of {:.4g}% ({} predicted)", human(in_time->limit),
                     100 * *in_time->asked, human(within));
}

std::string fewest_devices(const Found& found, const System& system, const std::optional<InTime>& asked) {
  const auto& question = found.question;
  const auto& value = found.value;
  const std::int64_t least = found.least;
  const std::string limit = question.within ? bounded_iteration(*question.within, asked) : std::string();
  const std::int64_t host = host_size(system);
  const char* const word = system.devices_per_host ? "host" : "node";
  const std::string parts = least < host ? fmt::format("parts of a {} that divide it, ", word) : "";
  const std::string tried = fmt::format("tried: {}whole {}s of {}", parts, word, host);
  const std::string bound =
      least > 1 ? fmt::format("; fewer than {} cannot hold the model's state{}", least,
                              question.within ? " or compute that fast at their full peak" : "")
                : "";
  if (!value && found.obstacle) {
    return fmt::format("No layout is legal on any number of GPUs up to {} ({}{}): {}", question.most, tried,
                       bound, problem_line(*found.obstacle));
  }
  if (!value && question.within)
    return fmt::format("No plan on up to {} GPUs fits and has {} ({}{}).", question.most, limit, tried,
                       bound);
  if (!value)
    return fmt::format("Nothing fits on any number of GPUs up to {} ({}{}).", question.most, tried, bound);
  return fmt::format("{} the fewest on which anything fits{} ({}{}).",
                     *value == 1 ? "1 GPU is" : fmt::format("{} GPUs are", *value),
                     limit.empty() ? "" : " with " + limit, tried, bound);
}

// Where not everything was.
std::string looked_at(const Question& question) {
  std::string text = question.step > 1 ? fmt::format("in multiples of {}", question.step) : "";
  if (question.most < Question{}.most)
    text += fmt::format("{}up to {}", text.empty() ? "" : " ", question.most);
  return text.empty() ? text : " (" + text + ")";
}

// Of a model that was made deeper; nothing where all are alike.
std::string layers_of_kinds(const Transformer& model) {
  std::string text;
  for (std::size_t kind = 0; kind < model.layer_kinds.size(); ++kind) {
    std::int64_t layers = 0;
    for (const LayerRun& run : model.layer_runs) layers += run.kind == kind ? run.count : 0;
    text += fmt::format("{}{} '{}'", text.empty() ? ": " : ", ", layers, model.layer_kinds[kind].name);
  }
  return text.empty() ? text : text + ", in the model's order, which goes on as it ends";
}

// Of a question whose search was stopped.
std::string furthest_so_far(const Found& found) {
  if (found.micro_batch)
    return fmt::format("A microbatch of {} is the largest found to fit so far.", *found.micro_batch);
  if (!found.value) return "Nothing was found to fit so far.";
  switch (found.question.extreme) {
    case Extreme::min_devices: return fmt::format("{} GPUs are the fewest found so far.", *found.value);
    case Extreme::max_batch:
      return fmt::format("A global batch of {} sequences is the largest found to fit so far.", *found.value);
    case Extreme::max_sequence:
      return fmt::format("Sequences of {} tokens are the longest found to fit so far.", *found.value);
    case Extreme::max_layers: return fmt::format("{} layers are the most found to fit so far.", *found.value);
  }
  EXPECTS(!"unknown extreme");
  return {};
}

std::string largest_batch(const Found& found, std::int64_t devices, const std::optional<InTime>& asked) {
  const auto& [question, value, least, micro_batch, at_least, stopped, obstacle, most_model_parallel] = found;
  if (micro_batch) {
    return fmt::format(
        "Memory does not bound the global batch: however many microbatches follow each other, a pipeline "
        "keeps no more alive than fill it. A limit on the time of an iteration does.\nThe largest microbatch "
        "that fits is {}.",
        *micro_batch);
  }
  const std::string in_time =
      question.within ? " in " + bounded_iteration(*question.within, asked) : std::string();
  if (!value) {
    return fmt::format("No global batch fits{}{}{}", in_time, looked_at(question), no_layout(found, devices));
  }
  if (at_least) {
    return fmt::format(
        "A global batch of {} sequences fits{}; larger ones were not looked at, since no pipeline is "
        "given more microbatches.",
        *value, in_time);
  }
  return fmt::format("A global batch of {} sequences is the largest that fits{}{}.", *value, in_time,
                     looked_at(question));
}

}  // namespace

std::string problem_line(const Problem& problem) {
  const auto [flag, rule] = by_flag(problem);
  // Rules of launchers start with what they refuse.
  return (rule.starts_with(flag) ? rule : flag + " " + rule) + ".";
}

std::string found_text(const Found& found, const Request& base, std::int64_t devices,
                       const std::optional<InTime>& in_time) {
  const auto& [question, value, least, micro_batch, at_least, stopped, obstacle, most_model_parallel] = found;
  if (stopped) return furthest_so_far(found);
  switch (question.extreme) {
    case Extreme::min_devices: return fewest_devices(found, base.system, in_time);
    case Extreme::max_batch: return largest_batch(found, devices, in_time);
    case Extreme::max_sequence:
      if (!value) {
        return fmt::format("No sequence fits{}{}", looked_at(question), no_layout(found, devices));
      }
      return fmt::format("Sequences of {} tokens are the longest that fit{}.", *value, looked_at(question));
    case Extreme::max_layers:
      if (!value) {
        return fmt::format("No depth fits{}{}", looked_at(question), no_layout(found, devices));
      }
      return fmt::format("A model of this width fits with up to {} layers{}{}.", *value, looked_at(question),
                         layers_of_kinds(base.model));
  }
  EXPECTS(!"unknown extreme");
  return {};
}

OrderedJson found_json(const Found& found) {
  const auto& [question, value, least, micro_batch, at_least, stopped, obstacle, most_model_parallel] = found;
  OrderedJson json{{"find", name_of(question.extreme)},
                   {"value", value ? OrderedJson(*value) : OrderedJson()},
                   {"step", question.step},
                   {"least", least},
                   {"most", question.most}};
  if (question.within) json["within_seconds"] = question.within->count();
  if (micro_batch) json["micro_batch"] = *micro_batch;
  if (at_least) json["at_least"] = true;
  if (stopped) json["stopped"] = true;
  if (obstacle) json["obstacle"] = problem_line(*obstacle);
  if (most_model_parallel > 0) json["most_model_parallel"] = most_model_parallel;
  return json;
}

}  // namespace headroom
