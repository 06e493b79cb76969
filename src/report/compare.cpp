#include "headroom/report/compare.hpp"

#include "report/compare_json.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

// A term of both plans, in the unit that its name ends in.
struct Term {
  std::string name;
  double before = 0;
  double after = 0;
};

// Of the fullest rank of each plan; the last is their sum.
std::vector<Term> memory_terms(const Plan& before, const Plan& after) {
  const RankMemory& x = before.ranks[before.peak_rank];
  const RankMemory& y = after.ranks[after.peak_rank];
  const Activations& a = x.activations.at_peak;
  const Activations& b = y.activations.at_peak;
  const auto term = [](const char* name, Bytes from, Bytes to) {
    return Term{name, from.count(), to.count()};
  };
  return {term("weights_bytes", x.state.weights, y.state.weights),
          term("gradients_bytes", x.state.gradients, y.state.gradients),
          term("optimizer_bytes", x.state.optimizer, y.state.optimizer),
          term("layers_bytes", a.layers, b.layers),
          term("embedding_bytes", a.embedding, b.embedding),
          term("head_bytes", a.head, b.head),
          term("outputs_bytes", a.outputs, b.outputs),
          term("replay_bytes", a.replay, b.replay),
          term("reserved_bytes", x.reserved, y.reserved),
          term("peak_bytes", peak(before), peak(after))};
}

// The last is the sum of the others. Empty where time is not known.
std::vector<Term> time_terms(const Plan& before, const Plan& after) {
  std::vector<Term> terms;
  if (!before.timing || !after.timing) return terms;
  const IterationTime& x = before.timing->iteration;
  const IterationTime& y = after.timing->iteration;
  for (const auto& [name, part] : breakdown_parts) {
    terms.push_back(
        {std::string(name) + "_seconds", (x.breakdown.*part).count(), (y.breakdown.*part).count()});
  }
  terms.push_back({"iteration_seconds", x.total.count(), y.total.count()});
  return terms;
}

OrderedJson terms_json(const std::vector<Term>& terms) {
  OrderedJson json = OrderedJson::object();
  for (const Term& term : terms) {
    json[term.name] = {{"before", number(term.before)},
                       {"after", number(term.after)},
                       {"difference", number(term.after - term.before)}};
  }
  return json;
}

OrderedJson side_json(const Plan& plan) {
  OrderedJson json{{"strategy", to_json(plan.request.strategy)},
                   {"workload", to_json(plan.request.workload, plan.request.strategy)},
                   {"verdict", name_of(plan.verdict)},
                   {"peak_rank", plan.peak_rank}};
  if (plan.timing) json["mfu"] = plan.timing->throughput.mfu;
  return json;
}

std::string relative(const Term& term) {
  if (term.before == 0) return term.after == 0 ? "" : "new";
  return fmt::format("{:+.1f}%", 100 * (term.after / term.before - 1));
}

// Terms that neither plan has are left out.
Table terms_table(const std::vector<Term>& terms, const char* title, double unit, int digits) {
  Table table{.columns = {{title, Align::left}, {"before"}, {"after"}, {"difference"}, {""}}};
  for (const Term& term : terms) {
    if (term.before == 0 && term.after == 0) continue;
    std::string name = term.name.substr(0, term.name.rfind('_'));
    for (char& c : name) c = c == '_' ? ' ' : c;
    table.rows.push_back({std::move(name), fmt::format("{:.{}f}", term.before / unit, digits),
                          fmt::format("{:.{}f}", term.after / unit, digits),
                          fmt::format("{:+.{}f}", (term.after - term.before) / unit, digits),
                          relative(term)});
  }
  return table;
}

// "--recompute selective: -22.9% time, +6.52 GiB on the fullest rank"
std::string headline(const StrategyComparison& comparison, const std::vector<Term>& times,
                     const std::vector<Term>& bytes) {
  const Term& memory = bytes.back();
  std::string text = comparison.change + ": ";
  if (!times.empty()) text += relative(times.back()) + " time, ";
  return text + fmt::format("{}{} on the fullest rank", memory.after >= memory.before ? "+" : "",
                            human(Bytes(memory.after - memory.before)));
}

std::string compare_text(const StrategyComparison& comparison, Format format) {
  const Plan& before = account(comparison.before);
  const Plan& after = account(comparison.after);
  const std::vector<Term> times = time_terms(before, after);
  const std::vector<Term> bytes = memory_terms(before, after);
  std::string text = headline(comparison, times, bytes) + "\n\n";
  for (const auto& [label, plan] : {std::pair{"before", &before}, std::pair{"after", &after}}) {
    text += fmt::format("{:<7} {}\n        {}: {}\n", label,
                        layout_line(plan->request.strategy, plan->request.workload),
                        policy_line(plan->request.strategy), name_of(plan->verdict));
  }
  if (!times.empty()) text += '\n' + render_table(terms_table(times, "seconds", 1, 3), format);
  return text + '\n' + render_table(terms_table(bytes, "GiB", gibi, 2), format);
}

}  // namespace

OrderedJson terms_json(const StrategyComparison& comparison) {
  const Plan& before = account(comparison.before);
  const Plan& after = account(comparison.after);
  return {{"time", terms_json(time_terms(before, after))},
          {"memory", terms_json(memory_terms(before, after))}};
}

std::string render(const StrategyComparison& comparison, Format format) {
  const Plan& before = account(comparison.before);
  const Plan& after = account(comparison.after);
  const std::vector<Term> times = time_terms(before, after);
  const std::vector<Term> bytes = memory_terms(before, after);
  switch (format) {
    case Format::json:
      return to_text(OrderedJson{{"format", 1},
                                 {"model", to_json(before.request.model)},
                                 {"system", to_json(before.request.system)},
                                 {"change", comparison.change},
                                 {"before", side_json(before)},
                                 {"after", side_json(after)},
                                 {"time", terms_json(times)},
                                 {"memory", terms_json(bytes)}});
    case Format::csv: {
      Table table{.columns = {{"term", Align::left}, {"before"}, {"after"}, {"difference"}}};
      for (const auto* terms : {&times, &bytes}) {
        for (const Term& term : *terms) {
          table.rows.push_back({term.name, fmt::format("{}", term.before), fmt::format("{}", term.after),
                                fmt::format("{}", term.after - term.before)});
        }
      }
      return to_csv(table);
    }
    case Format::table:
    case Format::markdown: return compare_text(comparison, format);
  }
  EXPECTS(!"unknown format");
  return {};
}

}  // namespace headroom
