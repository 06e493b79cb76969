#include "headroom/report/explain.hpp"

#include <algorithm>

#include "report/explain_json.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

// "forward all-gather, backward reduce-scatter"
std::string halves(const Collective& collective) {
  const auto half = [](CollectiveKind kind) {
    std::string text(name_of(kind));
    for (char& c : text) c = c == '_' ? '-' : c;
    return kind == CollectiveKind::none ? std::string("nothing") : text;
  };
  std::string text = fmt::format("forward {}, backward {}", half(forward_kind(collective.name)),
                                 half(backward_kind(collective.name)));
  if (collective.recomputed && forward_kind(collective.name) != CollectiveKind::none) text += ", recomputed";
  if (!(collective.bytes == collective.backward_bytes)) {
    text += fmt::format(" of {}", to_string(Expr(collective.backward_bytes)));
  }
  if (collective.regathers) {
    text += collective.axis == ParallelAxis::context ? ", and forward again for attention's backward pass"
                                                     : ", and again for the weight gradient";
  }
  return text;
}

std::string fate(const ExplainedTensor& tensor) { return tensor.kept ? "saved" : "recomputed"; }

std::vector<std::string> collective_row(const Collective& collective) {
  return {fmt::format("  {}", name_of(collective.name)),
          "(collective)",
          to_string(Expr(collective.bytes)),
          "",
          "",
          halves(collective)};
}

// A row for each op, and below its name one for each tensor after the first.
Table screen_table(const ExplainedTable& explained) {
  Table table{.columns = {{"op", Align::left},
                          {"saves", Align::left},
                          {"bytes", Align::left},
                          {"", Align::right},
                          {"", Align::left},
                          {"because", Align::left}}};
  for (const ExplainedOp& op : explained.ops) {
    for (const Collective& collective : op.before) table.rows.push_back(collective_row(collective));
    const std::string name = op.name + (op.recomputed ? " (recomputed)" : "");
    if (op.tensors.empty()) table.rows.push_back({name, "nothing", "", "", "", ""});
    for (std::size_t i = 0; i < op.tensors.size(); ++i) {
      const ExplainedTensor& tensor = op.tensors[i];
      table.rows.push_back({i == 0 ? name : "", tensor.name, to_string(tensor.bytes.expression),
                            human(Bytes(tensor.bytes.value)), fate(tensor), tensor.why});
    }
    for (const Collective& collective : op.after) table.rows.push_back(collective_row(collective));
  }
  return table;
}

// Table of every saved tensor of the layer and the two ends, one per row.
Table tensor_table(const ExplainReply& explanation) {
  Table table{.columns = {{"part", Align::left},
                          {"op", Align::left},
                          {"tensor", Align::left},
                          {"dtype", Align::left},
                          {"placement", Align::left},
                          {"fate", Align::left},
                          {"size", Align::left},
                          {"size_bytes"},
                          {"why", Align::left}}};
  const auto append = [&](const ExplainedTable& part) {
    for (const ExplainedOp& op : part.ops) {
      for (const ExplainedTensor& tensor : op.tensors) {
        table.rows.push_back({part.name, op.name, tensor.name, std::string(name_of(tensor.dtype)),
                              std::string(name_of(tensor.placement)), fate(tensor),
                              to_string(tensor.bytes.expression), whole(tensor.bytes.value), tensor.why});
      }
    }
  };
  for (const KindPosition position : {KindPosition::first, KindPosition::layer, KindPosition::last}) {
    for (const ExplainedTable& kind : explanation.kinds) {
      if (kind.position == position) append(kind);
    }
  }
  return table;
}

std::string letters_line(const ExplainReply& explanation) {
  std::string text;
  for (const auto& [notation, value] : letters_of(explanation)) {
    if (value) text += fmt::format("{}{} = {:.12g}", text.empty() ? "" : ", ", notation.letter, *value);
  }
  if (!explanation.equalities.empty())
    text += fmt::format("; here {}", fmt::join(explanation.equalities, ", "));
  return text;
}

std::string sum_lines(const ExplainedTable& table) {
  std::string text = fmt::format("{} saves {} = {} a microbatch\n", table.name,
                                 to_string(table.kept.expression), human(Bytes(table.kept.value)));
  if (table.dropped.expression.size() > 0) {
    text += fmt::format("{} recomputes {} = {}\n", table.name, to_string(table.dropped.expression),
                        human(Bytes(table.dropped.value)));
  }
  return text;
}

// Heading of a kind's table if there are several kinds: the number of its layers, and the meaning of its
// letters.
std::string kind_line(const ExplainedTable& kind) {
  std::string text = kind.position == KindPosition::layer
                         ? fmt::format("{} of the layers are '{}'", kind.count, kind.name)
                         : fmt::format("the {} layer{} of multi-token prediction: '{}'", kind.count,
                                       kind.count == 1 ? "" : "s", kind.name);
  for (std::size_t i = 0; i < kind.sizes.size(); ++i) {
    text += fmt::format("{}{} = {:.12g}", i == 0 ? ", with " : ", ", letter_of(kind.sizes[i].letter),
                        kind.sizes[i].value);
  }
  if (!kind.equalities.empty()) text += fmt::format("; here {}", fmt::join(kind.equalities, ", "));
  return text + ":\n";
}

// With --recompute-layers: what the table above does not speak of.
std::string exempt_line(const ExplainedTable& kind, const Recomputation& recompute, bool several) {
  if (recompute.layers == 0) return {};
  if (recompute.method == RecomputeMethod::uniform) {
    return fmt::format("one such saved input serves {} layers\n", recompute.layers);
  }
  return fmt::format("that is the first {} of each stage's layers{}; the others save {} = {}\n",
                     recompute.layers, several ? ", of whatever kind" : "", to_string(kind.plain.expression),
                     human(Bytes(kind.plain.value)));
}

// Lines as a Markdown list; those indented belong to the one before.
std::string as_list(const std::string& lines) {
  std::string list;
  for (std::size_t start = 0; start < lines.size();) {
    const std::size_t end = lines.find('\n', start) + 1;
    const std::string line = lines.substr(start, end - start);
    list += line.starts_with("  ") ? "  - " + line.substr(2) : "- " + line;
    start = end;
  }
  return list;
}

// Tensors that the ends of the model save.
Expr kept_at(const ExplainReply& explanation, KindPosition position) {
  Expr sum;
  for (const ExplainedTable& kind : explanation.kinds) {
    if (kind.position == position) sum += kind.kept.expression;
  }
  return sum;
}

std::string stage_lines(const ExplainReply& explanation) {
  const ExplainedStage& stage = explanation.first_stage;
  const Activations& parts = stage.rank.at_peak;
  std::string text = "First pipeline stage at its peak:\n";
  const auto line = [&](const std::string& what, const std::string& how, Bytes bytes) {
    if (bytes > Bytes(0)) text += fmt::format("  {:<11} {} = {}\n", what, how, human(bytes));
  };
  const std::string in_flight =
      stage.layers_in_flight.expression.size() > 0
          ? fmt::format("{} = {:g} layers in flight", to_string(stage.layers_in_flight.expression),
                        stage.layers_in_flight.value)
          : fmt::format("{} layers, {} virtual stage passes in flight", stage.layers,
                        stage.rank.chunks_in_flight);
  line("layers",
       stage.layer_bytes.expression.size() > 0
           ? fmt::format("{}; {}", in_flight, to_string(stage.layer_bytes.expression))
           : in_flight,
       parts.layers);
  line("embedding",
       fmt::format("{:g} x {}", stage.embedding_copies, to_string(kept_at(explanation, KindPosition::first))),
       parts.embedding);
  const bool predicts = explanation.model.mtp_layers > 0;
  line("head",
       fmt::format("{:g} x {}", stage.head_copies,
                   predicts ? "the head and all of multi-token prediction"
                            : to_string(kept_at(explanation, KindPosition::last))),
       parts.head);
  line("outputs", "sent on, not deallocated", parts.outputs);
  line("recompute", "working set of the layer that is recomputed", parts.recompute);
  return text + fmt::format("  {:<11} {}\n", "together", human(total(parts)));
}

// Of each parameter, and of all that the first rank holds.
std::string state_lines(const ExplainReply& explanation) {
  const bool several = explanation.state.front().of != explanation.state.back().of;
  const auto name = [&](const ExplainedState& row) { return several ? row.of + ": " + row.part : row.part; };
  std::size_t width = 11;
  for (const ExplainedState& row : explanation.state) width = std::max(width, name(row).size());
  std::string text = "Bytes that a rank keeps for each parameter:\n";
  for (const ExplainedState& row : explanation.state) {
    const std::string size = to_string(row.bytes.expression);
    const std::string value = fmt::format("{:.6g}", row.bytes.value);
    text += fmt::format("  {:<{}} {}; {}\n", name(row), width,
                        size == value ? size : fmt::format("{} = {}", size, value), row.what);
  }
  const ModelState& state = explanation.first_rank_state;
  const std::string host =
      state.on_host > Bytes(0) ? fmt::format(", on the host {}", human(state.on_host)) : "";
  return text + fmt::format("  {:<{}} weights {}, gradients {}, optimizer {}{} of {} on the first PP rank\n",
                            "together", width, human(state.weights), human(state.gradients),
                            human(state.optimizer), host, human_count(total(explanation.first_rank)));
}

// In Markdown each line that has no table or list around it is a paragraph.
std::string explain_text(const ExplainReply& explanation, const Style& style) {
  const bool page = style.format == Format::markdown;
  const std::string blank = page ? "\n" : "";
  std::string text = fmt::format(
      "{}{} under tensor {} x pipeline {}: what one rank saves for the backward pass\n{}{}\n{}{}\n",
      page ? "## " : "", explanation.model.name, explanation.strategy.tensor_parallel,
      explanation.strategy.pipeline_parallel, blank, policy_line(explanation.strategy, explanation.software),
      blank, letters_line(explanation));
  for (const ExplainedTable& kind : explanation.kinds) {
    text += '\n';
    const bool beside_others = kind.position == KindPosition::layer && has_several_kinds(explanation);
    if (beside_others || (kind.position == KindPosition::last && !kind.sizes.empty())) {
      text += kind_line(kind) + blank;
    }
    text += render_table(screen_table(kind), style) + blank;
    std::string sums = sum_lines(kind);
    if (kind.position == KindPosition::layer)
      sums += exempt_line(kind, explanation.strategy.recompute, has_several_kinds(explanation));
    text += page ? as_list(sums) : sums;
  }
  const std::string stage = stage_lines(explanation) + state_lines(explanation);
  return text + '\n' + (page ? as_list(stage) : stage);
}

}  // namespace

std::string render(const ExplainReply& explanation, const Style& style) {
  switch (style.format) {
    case Format::json: return to_text(explain_json(explanation));
    case Format::csv: return to_csv(tensor_table(explanation));
    case Format::table:
    case Format::markdown: return fitted(explain_text(explanation, style), style);
  }
  EXPECTS(!"unknown format");
  return {};
}

}  // namespace headroom
