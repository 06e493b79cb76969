#include "headroom/report/compare.hpp"

#include "report/compare_json.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

OrderedJson terms_json(const std::vector<ComparedTerm>& terms) {
  OrderedJson json = OrderedJson::object();
  for (const ComparedTerm& term : terms) {
    json[term.name] = {{"before", number(term.before)},
                       {"after", number(term.after)},
                       {"difference", number(term.after - term.before)}};
  }
  return json;
}

OrderedJson side_json(const Plan& plan) {
  OrderedJson json{{"system", plan.request.system.name},
                   {"software", plan.request.software.name},
                   {"strategy", to_json(plan.request.strategy)},
                   {"workload", to_json(plan.request.workload, plan.request.strategy)},
                   {"verdict", name_of(plan.verdict)},
                   {"peak_rank", plan.peak_rank}};
  if (plan.timing) json["mfu"] = plan.timing->throughput.mfu;
  return json;
}

std::string relative(const ComparedTerm& term) {
  if (term.before == 0) return term.after == 0 ? "" : "new";
  return fmt::format("{:+.1f}%", 100 * (term.after / term.before - 1));
}

// Leaves out terms that neither plan has.
Table terms_table(const std::vector<ComparedTerm>& terms, const char* title, double unit, int digits) {
  Table table{.columns = {{title, Align::left}, {"before"}, {"after"}, {"difference"}, {""}}};
  for (const ComparedTerm& term : terms) {
    if (term.before == 0 && term.after == 0) continue;
    std::string name = words(term.name.substr(0, term.name.rfind('_')));
    table.rows.push_back({std::move(name), fmt::format("{:.{}f}", term.before / unit, digits),
                          fmt::format("{:.{}f}", term.after / unit, digits),
                          fmt::format("{:+.{}f}", (term.after - term.before) / unit, digits),
                          relative(term)});
  }
  return table;
}

// "--recompute selective: -22.9% time, +6.52 GiB on the peak rank"
std::string headline(const CompareReply& comparison, const std::string& change) {
  const ComparedTerm& memory = comparison.memory.back();
  std::string text = change + ": ";
  if (!comparison.time.empty()) text += relative(comparison.time.back()) + " time, ";
  return text + fmt::format("{}{} on the peak rank", memory.after >= memory.before ? "+" : "",
                            human(Bytes(memory.after - memory.before)));
}

std::string compare_text(const CompareReply& comparison, const std::string& change, const Style& style) {
  const Plan& before = account(comparison.before);
  const Plan& after = account(comparison.after);
  std::string text = headline(comparison, change) + "\n";
  if (across(before, after)) text += across_text(before, after);
  text += "\n";
  for (const auto& [label, plan] : {std::pair{"before", &before}, std::pair{"after", &after}}) {
    text += fmt::format("{}: {}\n  {}\n  {}\n", label,
                        painted(words(name_of(plan->verdict)), plan->verdict, style),
                        layout_line(plan->request.strategy, plan->request.workload),
                        policy_line(plan->request.strategy, plan->request.software));
  }
  if (!comparison.time.empty()) {
    text += '\n' + render_table(terms_table(comparison.time, "seconds", 1, 3), style);
  }
  return text + '\n' + render_table(terms_table(comparison.memory, "GiB", gibi, 2), style);
}

}  // namespace

OrderedJson terms_json(const CompareReply& comparison) {
  return {{"time", terms_json(comparison.time)}, {"memory", terms_json(comparison.memory)}};
}

std::string render(const CompareReply& comparison, const std::string& change, const Style& style) {
  const Plan& before = account(comparison.before);
  const Plan& after = account(comparison.after);
  switch (style.format) {
    case Format::json:
      return to_text(OrderedJson{{"format", 2},
                                 {"model", to_json(before.request.model, before.request.workload)},
                                 {"system", to_json(before.request.system)},
                                 {"change", change},
                                 {"before", side_json(before)},
                                 {"after", side_json(after)},
                                 {"time", terms_json(comparison.time)},
                                 {"memory", terms_json(comparison.memory)}});
    case Format::csv: {
      Table table{.columns = {{"term", Align::left}, {"before"}, {"after"}, {"difference"}}};
      for (const auto* terms : {&comparison.time, &comparison.memory}) {
        for (const ComparedTerm& term : *terms) {
          table.rows.push_back({term.name, fmt::format("{}", term.before), fmt::format("{}", term.after),
                                fmt::format("{}", term.after - term.before)});
        }
      }
      return to_csv(table);
    }
    case Format::table:
    case Format::markdown: return fitted(compare_text(comparison, change, style), style);
  }
  EXPECTS(!"unknown format");
  return {};
}

}  // namespace headroom
