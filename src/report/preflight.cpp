#include "headroom/report/preflight.hpp"

#include <algorithm>

#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/report/caveats.hpp"
#include "report/allocator.hpp"
#include "report/capacity.hpp"
#include "report/estimate_json.hpp"
#include "report/estimate_lines.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

// "run.sh:14: --micro-batch-size 3: must divide ... [megatron/training/arguments.py:512]"
std::string finding_text(const PreflightFinding& finding) {
  const Problem problem = by_flag(finding.problem);
  const std::string& what = finding.written.empty() ? problem.where : finding.written;
  std::string text = fmt::format("{}: {}: {}", text_of(finding.at), what, problem.rule);
  if (!finding.source.empty()) text += fmt::format(" [{}]", finding.source);
  return text;
}

const Plan* plan_of(const PreflightReply& reply) {
  return reply.estimate ? &account(reply.estimate->evaluation) : nullptr;
}

std::string effect_of(const Alternative& change, const Plan* now) {
  std::string text;
  if (change.plan.timing) {
    const Seconds time = change.plan.timing->iteration.total;
    text = human(time);
    if (now != nullptr && now->timing)
      text += fmt::format(" ({:+.1f}%)", 100 * (time / now->timing->iteration.total - 1));
    text += ", ";
  }
  text += human(peak(change.plan)) + " on the peak rank";
  return change.plan.verdict == Verdict::marginal ? text + ", marginal" : text;
}

std::string changes_heading(const PreflightReply& reply) {
  if (!reply.mended) return "Changes that help, though the job is still refused with them:";
  switch (outcome_of(reply)) {
    case PreflightOutcome::refused:
    case PreflightOutcome::without_model:
    case PreflightOutcome::unread:
    case PreflightOutcome::not_modelled: return "Nearest strategies that are legal and fit:";
    case PreflightOutcome::does_not_fit: return "Changes that make it fit:";
    case PreflightOutcome::starts: return "Changes that would help most:";
  }
  EXPECTS(!"unknown outcome");
  return {};
}

OrderedJson place_json(const FilePlace& at) {
  OrderedJson json{{"file", at.file}};
  if (at.line > 0) json["line"] = at.line;
  return json;
}

OrderedJson settings_json(const std::vector<LaunchSetting>& settings) {
  OrderedJson list = OrderedJson::array();
  for (const LaunchSetting& setting : settings) {
    OrderedJson entry{{"field", setting.field}, {"value", setting.value}};
    if (!setting.written.empty()) entry["written"] = setting.written;
    entry["at"] = place_json(setting.at);
    list.push_back(std::move(entry));
  }
  return list;
}

OrderedJson run_json(const LaunchedRun& run) {
  OrderedJson json{{"framework", run.framework}, {"software", run.software}};
  if (run.devices) json["devices"] = *run.devices;
  if (run.devices_per_node) json["devices_per_node"] = *run.devices_per_node;
  if (run.accumulation) json["accumulation"] = *run.accumulation;
  if (!run.system.empty()) json["system"] = run.system;
  if (!run.model_name.empty()) json["model_name"] = run.model_name;
  if (run.model) json["model"] = to_json(*run.model);
  json["strategy"] = settings_json(run.strategy);
  json["stack"] = settings_json(run.stack);
  OrderedJson remarks = OrderedJson::array();
  for (const LaunchRemark& remark : run.remarks) {
    OrderedJson entry{{"kind", name_of(remark.kind)}, {"text", remark.text}};
    if (!remark.field.empty()) entry["field"] = remark.field;
    entry["at"] = place_json(remark.at);
    remarks.push_back(std::move(entry));
  }
  json["remarks"] = std::move(remarks);
  return json;
}

OrderedJson changes_json(const std::vector<Alternative>& changes) {
  OrderedJson list = OrderedJson::array();
  for (const Alternative& change : changes) {
    OrderedJson entry{{"changes", change_texts(change)}, {"peak_bytes", number(peak(change.plan))}};
    if (change.plan.timing) entry["iteration_seconds"] = change.plan.timing->iteration.total.count();
    list.push_back(std::move(entry));
  }
  return list;
}

// A workflow command's message: %, carriage return and line feed are escaped [GitHub Actions toolkit,
// packages/core/src/command.ts, escapeData; and of properties also colon and comma, escapeProperty].
std::string escaped(std::string_view text, bool property) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '%': result += "%25"; break;
      case '\r': result += "%0D"; break;
      case '\n': result += "%0A"; break;
      case ':': result += property ? "%3A" : ":"; break;
      case ',': result += property ? "%2C" : ","; break;
      default: result += c;
    }
  }
  return result;
}

std::string annotation(std::string_view level, const FilePlace& at, std::string_view message) {
  const std::string line = at.line > 0 ? fmt::format(",line={}", at.line) : std::string();
  return fmt::format("::{} file={}{}::{}\n", level, escaped(at.file, true), line, escaped(message, false));
}

}  // namespace

std::string preflight_text(const PreflightReply& reply, const Style& style) {
  const auto line = [&](const std::string& text) { return in_lines(text, style.columns, 2) + "\n"; };
  std::string text;
  const PreflightOutcome outcome = outcome_of(reply);
  if (!reply.findings.empty()) {
    const bool refused = outcome == PreflightOutcome::refused;
    text += painted(refused ? "Refused" : "Not modelled", false, style) +
            (refused ? ": the job does not start.\n"
                     : ": the job may start, but the stack " + reply.run.software +
                           " as it is modelled does not cover these settings.\n");
    for (const PreflightFinding& finding : reply.findings) text += line("- " + finding_text(finding));
  }
  if (const Plan* const plan = plan_of(reply)) {
    if (reply.estimated_devices)
      text += fmt::format("On {} GPUs it would be:\n", *reply.estimated_devices);
    else if (!reply.findings.empty())
      text += "If it started:\n";
    text += line(verdict_line(*plan, style));
    if (plan->verdict != Verdict::fits)
      text += line("The peak is " + moment_text(*plan, plan->ranks[plan->peak_rank]) + ".");
    text += allocator_line(*plan);
    if (plan->timing) text += time_line(*reply.estimate, *plan, style) + "\n";
    if (reply.estimate->cost) text += training_line(reply.estimate->training, *reply.estimate->cost);
    text += caveats_text(*plan, style);
  }
  if (!reply.changes.empty()) text += changes_heading(reply) + "\n";
  for (const Alternative& change : reply.changes)
    text += line(fmt::format("  {}: {}", changes_text(change), effect_of(change, plan_of(reply))));
  if (reply.changes.empty() && outcome == PreflightOutcome::does_not_fit)
    text += "No two changes of parallelism or recomputation make it fit on the same GPUs.\n";
  return fitted(text, style);
}

std::string preflight_json(const PreflightReply& reply) {
  OrderedJson findings = OrderedJson::array();
  for (const PreflightFinding& finding : reply.findings) {
    findings.push_back({{"field", finding.problem.where},
                        {"rule", finding.problem.rule},
                        {"written", finding.written},
                        {"at", place_json(finding.at)},
                        {"source", finding.source}});
  }
  OrderedJson json{{"format", 2}, {"file", reply.file}, {"outcome", name_of(outcome_of(reply))}};
  if (!reply.run.framework.empty()) json["run"] = run_json(reply.run);
  json["findings"] = std::move(findings);
  if (reply.estimated_devices) json["estimated_devices"] = *reply.estimated_devices;
  if (reply.estimate) json["estimate"] = estimate_json(*reply.estimate);
  json["changes"] = changes_json(reply.changes);
  json["mended"] = reply.mended;
  if (reply.patch) {
    json["patch"] = {{"changes", change_texts(reply.changes[reply.patch->change])},
                     {"diff", reply.patch->diff}};
  }
  return to_text(json);
}

std::string patch_note(const PreflightReply& reply) {
  if (reply.patch) {
    const Alternative& change = reply.changes[reply.patch->change];
    return fmt::format("the patch is {}: {}{}", changes_text(change), effect_of(change, plan_of(reply)),
                       reply.mended ? "" : "; the job is still refused with it");
  }
  if (reply.changes.empty()) return "no patch: no change was found that helps";
  if (reply.run.devices && *reply.run.devices != reply.devices)
    return fmt::format("no patch: the file is for {} GPUs, not {}", *reply.run.devices, reply.devices);
  return fmt::format("no patch: no text of this file was found that makes the change {} and no other",
                     changes_text(reply.changes.front()));
}

std::string preflight_annotations(const PreflightReply& reply) {
  const FilePlace whole{.file = reply.file};
  std::string text;
  for (const PreflightFinding& finding : reply.findings) {
    const Problem problem = by_flag(finding.problem);
    const std::string& what = finding.written.empty() ? problem.where : finding.written;
    text += annotation(finding.modelled ? "error" : "warning", finding.at,
                       (what.empty() ? finding.at.file : what) + ": " + problem.rule);
  }
  if (const Plan* const plan = plan_of(reply)) {
    const bool bad = plan->verdict == Verdict::does_not_fit;
    text += annotation(bad                                  ? "error"
                       : plan->verdict == Verdict::marginal ? "warning"
                                                            : "notice",
                       whole, verdict_line(*plan, Style()));
    if (plan->timing && !bad) text += annotation("notice", whole, time_line(*reply.estimate, *plan, Style()));
  }
  for (const Alternative& change : reply.changes)
    text += annotation("notice", whole,
                       fmt::format("{}: {}{}", changes_text(change), effect_of(change, plan_of(reply)),
                                   reply.mended ? "" : "; the job is still refused with it"));
  return text;
}

}  // namespace headroom
