#include "headroom/parallel/legality.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "headroom/core/contains.hpp"
#include "headroom/parallel/known_layers.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "parallel/rules/rows.hpp"

namespace headroom {
namespace {

// Returns all topics, in the order in which problems are reported.
const std::vector<const Topic*>& topics() {
  static const auto all = [] {
    std::vector<const Topic*> list;
    for (const auto of_file :
         {rules::of_ranks, rules::of_pipeline, rules::of_recompute, rules::of_state, rules::of_precision,
          rules::of_stack, rules::of_launchers, rules::of_torch_launchers}) {
      for (const Topic& topic : of_file()) list.push_back(&topic);
    }
    return list;
  }();
  return all;
}

// Returns the topics of a set. The lists are built once, since a search asks for them a million times.
const std::vector<const Topic*>& topics_of(const RuleSet& set) {
  static const auto lists = [] {
    std::array<std::vector<const Topic*>, std::size_t{all_whose + 1} * (all_reads + 1)> of_sets;
    for (unsigned whose = 0; whose <= all_whose; ++whose) {
      for (unsigned reads = 0; reads <= all_reads; ++reads) {
        auto& of_set = of_sets[std::size_t{whose} * (all_reads + 1) + reads];
        std::copy_if(topics().begin(), topics().end(), std::back_inserter(of_set), [&](const Topic* topic) {
          return RuleSet{whose, reads}.has(*topic);
        });
      }
    }
    return of_sets;
  }();
  return lists[std::size_t{set.whose} * (all_reads + 1) + set.reads];
}

// Returns the text of a rule with the values of a case.
std::string text_of(const Rule& rule, const RuleCase& it) {
  const std::vector<std::string> values = rule.shown != nullptr ? rule.shown(it) : std::vector<std::string>();
  std::string text;
  std::string_view rest = rule.text;
  for (const std::string& value : values) {
    const std::size_t hole = rest.find("{}");
    EXPECTS(hole != std::string_view::npos);
    text += rest.substr(0, hole);
    text += value;
    rest.remove_prefix(hole + 2);
  }
  EXPECTS(rest.find("{}") == std::string_view::npos);
  return text += rest;
}

Problem problem_of(const Rule& rule, const RuleCase& it) {
  return {std::string(rule.field.empty() ? it.field : rule.field), text_of(rule, it)};
}

// Returns whether the user set the field that a launcher refuses.
bool is_waived(const Topic& topic, const Rule& rule, const RuleCase& it) {
  return topic.whose == Whose::launcher && it.insisted != nullptr &&
         contains(*it.insisted, rule.field.empty() ? it.field : rule.field);
}

// Calls broken(rule, case) for each rule that does not hold, until that returns false.
template <class Broken>
void visit_broken(const Asked& asked, const RuleSet& set, const Broken& broken) {
  LayerTables tables(asked);
  const RuleCase strategy{asked, tables};
  bool goes_on = true;
  for (const Topic* const topic : topics_of(set)) {
    const auto visit = [&](const RuleCase& it) {
      for (const Rule& rule : topic->rules) {
        if (goes_on && !rule.holds(it) && !is_waived(*topic, rule, it)) goes_on = broken(rule, it);
      }
    };
    topic->each(strategy, visit);
    if (!goes_on) return;
  }
}

}  // namespace

const ModelLayers& LayerTables::of_model() {
  if (!of_model_) of_model_ = std::make_shared<const ModelLayers>(layers_of(asked_.model));
  return *of_model_;
}

const ModelLayers& LayerTables::of_strategy() {
  if (asked_.known != nullptr) return *asked_.known->of(asked_.strategy);
  if (!of_strategy_) {
    of_strategy_ =
        std::make_shared<const ModelLayers>(layers_of(asked_.model, asked_.strategy, asked_.software));
  }
  return *of_strategy_;
}

std::span<const Topic* const> rule_topics() { return topics(); }

std::vector<BrokenRule> broken_rules(const Asked& asked, const RuleSet& rules) {
  std::vector<BrokenRule> broken;
  visit_broken(asked, rules, [&](const Rule& rule, const RuleCase& it) {
    broken.push_back({&rule, problem_of(rule, it)});
    return true;
  });
  return broken;
}

std::vector<Problem> problems_of(const Asked& asked, const RuleSet& rules) {
  std::vector<Problem> problems;
  visit_broken(asked, rules, [&](const Rule& rule, const RuleCase& it) {
    problems.push_back(problem_of(rule, it));
    return true;
  });
  return problems;
}

bool holds(const Asked& asked, const RuleSet& rules) {
  bool all = true;
  visit_broken(asked, rules, [&](const Rule&, const RuleCase&) { return all = false; });
  return all;
}

std::optional<Problem> first_problem(const Asked& asked, const RuleSet& rules, std::string_view but) {
  std::optional<Problem> first;
  visit_broken(asked, rules, [&](const Rule& rule, const RuleCase& it) {
    if ((rule.field.empty() ? it.field : rule.field) != but) first = problem_of(rule, it);
    return !first;
  });
  return first;
}

std::vector<Problem> illegalities(const Transformer& model, const Strategy& strategy,
                                  const Workload& workload, const Software& software) {
  return problems_of({model, strategy, workload, software}, rules_of(Whose::mechanism));
}

std::vector<Problem> stack_illegalities(const Software& software, const Strategy& strategy) {
  return problems_of({{}, strategy, {}, software}, rules_of(Whose::stack));
}

std::vector<Problem> system_illegalities(const System& system, const Strategy& strategy, Whose whose) {
  return problems_of({{}, strategy, {}, {}, &system}, rules_of(whose));
}

std::vector<Problem> launcher_gaps(const Software& software, const Transformer& model,
                                   const Strategy& strategy, const Workload& workload) {
  return problems_of({model, strategy, workload, software}, rules_of(Whose::launcher));
}

}  // namespace headroom
