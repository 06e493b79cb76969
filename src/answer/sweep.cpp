#include "headroom/answer/sweep.hpp"

#include <algorithm>

#include "headroom/answer/choice.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/io/spreads_file.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/plan/interval.hpp"
#include "headroom/search/confirm.hpp"
#include "headroom/search/given_values.hpp"
#include "headroom/search/widen.hpp"
#include "io/row_reader.hpp"

namespace headroom {
namespace {

// The values of a point, as JSON has them.
Json values_of_point(const Grid& grid, std::int64_t point) {
  const std::vector<std::string> fields = fields_of(grid);
  const std::vector<std::string> values = point_of(grid, point);
  Json json = Json::object();
  for (std::size_t i = 0; i < fields.size(); ++i) json[fields[i]] = scalar(values[i]);
  return json;
}

Edits edits_at(const std::string& flags, const std::string& where) {
  std::optional<Edits> edits = edits_of_flags(flags);
  if (!edits) throw InputError(where, "must be flags of a strategy");
  Strategy strategy;
  Workload workload;
  for (const Edit& edit : *edits) {
    const std::string rule = apply(edit, strategy, workload);
    if (!rule.empty()) throw InputError(where, flag_of(edit.field) + " " + rule);
  }
  return std::move(*edits);
}

}  // namespace

bool fits(const SweepRow& row) { return row.verdict && *row.verdict != Verdict::does_not_fit; }

bool fits(const SweepReply& reply) {
  return std::any_of(reply.rows.begin(), reply.rows.end(), [](const SweepRow& row) { return fits(row); });
}

std::string problem_text(const SweepRow& row) {
  std::string text;
  for (const auto& [where, rule] : row.problems) {
    text += (text.empty() ? "" : "; ") + (where.empty() ? rule : where + ": " + rule);
  }
  return text;
}

SweepRow row_of(const Evaluation& evaluation, const Training& training) {
  const Plan& plan = account(evaluation);
  SweepRow row{.verdict = plan.verdict,
               .strategy = {},
               .figures = {.devices = static_cast<double>(devices(plan.request.strategy)),
                           .peak_rank = static_cast<double>(plan.peak_rank),
                           .peak_bytes = peak(plan).count(),
                           .headroom_bytes = headroom_of(plan).count()},
               .problems = {}};
  if (plan.timing) {
    const Throughput& rates = plan.timing->throughput;
    const Seconds iteration = plan.timing->iteration.total;
    const Spread spread = iteration_spread(plan.request, embedded_spreads()).spread;
    const auto [low, high] = iteration_interval(iteration, spread);
    row.figures.iteration_seconds = iteration.count();
    row.figures.low_iteration_seconds = low.count();
    row.figures.high_iteration_seconds = high.count();
    row.figures.mfu = rates.mfu;
    row.figures.hfu = rates.hfu;
    row.figures.tokens_per_second = rates.tokens_per_second;
    row.figures.tokens_per_second_per_device = rates.tokens_per_second_per_device;
    if (training.tokens > 0) {
      const auto [predicted, low_cost, high_cost] =
          training_interval(training_on(training, plan.request.system), plan.request.workload, iteration,
                            {low, high}, devices(plan.request.strategy));
      row.figures.days = predicted.days;
      row.figures.low_days = low_cost.days;
      row.figures.high_days = high_cost.days;
      row.figures.price = predicted.price;
      row.figures.low_price = low_cost.price;
      row.figures.high_price = high_cost.price;
      row.figures.kilowatt_hours = predicted.kilowatt_hours;
      if (predicted.goodput) row.figures.goodput = predicted.goodput->productive;
    }
  }
  return row;
}

SweepRow row_of(const Request& base, const SearchResult& result, const Training& training) {
  const Candidate* const candidate = !result.plans.empty() ? &result.plans.front()
                                     : result.nearest      ? &*result.nearest
                                                           : nullptr;
  SweepRow row{
      .verdict = {}, .strategy = {}, .figures = {}, .problems = {{"", "no layout of the space is legal"}}};
  if (candidate != nullptr) {
    Request request = base;
    request.strategy = candidate->strategy;
    row = row_of(settled(evaluate(request)), training);
    row.strategy = edits_of(candidate->strategy, base.software, base.model);
  }
  row.figures.evaluated = static_cast<double>(result.evaluated);
  row.figures.feasible = static_cast<double>(result.feasible);
  return row;
}

SweepRow answer(const PointQuestion& question, const Watch& watch) {
  const auto& [request, space, training, by] = question;
  if (!space) return row_of(settled(evaluate(request)), training);
  if (std::vector<Problem> problems = value_illegalities(request, *space); !problems.empty())
    throw InputError(std::move(problems));
  const SearchOptions options{.watch = watch};
  SearchResult result = search(request, *space, options);
  widen(result, request, *space, options);
  if (result.undecided) return {};
  const bool chooses = request.system.performance && by == RankedBy::preference;
  confirm(result, {.plans = chooses ? compared_plans : 1, .pareto = 0}, request, *space, 1);
  if (chooses && !result.plans.empty())
    choose(result.plans, result.pareto, request, *space, {.by = by, .measured = {}});
  return row_of(request, result, training);
}

PointAt varied(PointQuestion base, const Grid& grid) {
  std::vector<std::string> fields;
  std::vector<Problem> problems;
  for (const std::string& name : fields_of(grid)) {
    const StrategyField* const field = find_field(name);
    if (field == nullptr) problems.push_back({"vary " + name, "is no field of a strategy or a workload"});
    fields.emplace_back(field == nullptr ? "" : field->name);
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return [base = std::move(base), fields = std::move(fields)](const std::vector<std::string>& values) {
    EXPECTS(values.size() == fields.size());
    PointQuestion point = base;
    std::vector<Problem> broken;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string rule =
          apply({.field = fields[i], .value = values[i]}, point.request.strategy, point.request.workload);
      if (!rule.empty()) broken.push_back({fields[i], rule});
    }
    if (!broken.empty()) throw InputError(std::move(broken));
    return point;
  };
}

SweepRow row_at(const Grid& grid, const PointAt& at, std::int64_t point, const Watch& watch) {
  try {
    return answer(at(point_of(grid, point)), watch);
  } catch (const InputError& error) {
    return {.verdict = {}, .strategy = {}, .figures = {}, .problems = error.problems()};
  }
}

SweepReply answer(const SweepQuestion& question) {
  SweepReply reply{.head = question.head, .rows = {}};
  for (std::int64_t point = 0; point < point_count(question.head.grid); ++point) {
    reply.rows.push_back(row_at(question.head.grid, question.at, point));
  }
  return reply;
}

SweepRow parse_row(const SweepHead& head, std::int64_t point, const std::string& text,
                   const std::string& where) {
  RowReader reader(text, where);
  SweepRow row;
  if (reader.take_object("point") != values_of_point(head.grid, point)) {
    throw InputError(where + ": /point",
                     "must hold the values of point " + std::to_string(point) + ", which belongs here");
  }
  const std::string verdict = reader.take_text("verdict").value_or("");
  row.verdict = from_name<Verdict>(verdict);
  if (!verdict.empty() && !row.verdict) {
    throw InputError(where + ": /verdict", "must be fits, marginal or does_not_fit");
  }
  for (const auto& [name, figure] : sweep_figures) row.figures.*figure = reader.take_number(name);
  if (const auto flags = reader.take_text("strategy")) row.strategy = edits_at(*flags, where + ": /strategy");
  if (auto problem = reader.take_text("problem"); problem && !problem->empty()) {
    row.problems.push_back({"", std::move(*problem)});
  }
  reader.finish();
  if (!row.verdict && row.problems.empty()) throw InputError(where, "must have a verdict or a problem");
  return row;
}

}  // namespace headroom
