// Legality of strategies: one table of rules and one engine that checks them.
//
// A rule is a row: the field at fault, the predicate that must hold, the text of the problem with the numbers
// to show, and the source of the rule. A topic groups rules about one thing: the strategy, each kind of
// layer, or each name of a list. src/parallel/rules/ has the topics. src/parallel/legality.cpp lists them in
// the order in which problems are reported. A new rule is a row there and a case in
// tests/parallel/rule_cases.txt that breaks this rule alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

class KnownLayers;
struct Architecture;
struct ModelLayers;
struct Software;
struct System;
struct Transformer;

// A strategy and what it has to run.
struct Asked {
  const Transformer& model;
  const Strategy& strategy;
  const Workload& workload;
  const Software& software;
  const System* system = nullptr;  // null: any system; its rules are not checked
  KnownLayers* known = nullptr;    // of this model and stack, for callers that ask about many strategies
  // Fields that the user set: what a launcher refuses of them is not checked. Null: all is checked.
  const std::vector<std::string>* insisted = nullptr;
};

// Sizes of a kind of layer.
struct LayerSizes {
  std::string_view kind;  // empty if the model has one kind
  std::int64_t feedforward;
  std::int64_t heads;
  std::int64_t key_value_heads;
  std::int64_t head_size;
  const Architecture& architecture;
};

// Op tables of the layers, built when a rule first needs them: as the model describes them, and as the
// strategy runs them on the stack.
class LayerTables {
 public:
  explicit LayerTables(const Asked& asked) : asked_(asked) {}
  const ModelLayers& of_model();
  const ModelLayers& of_strategy();

 private:
  const Asked& asked_;
  std::shared_ptr<const ModelLayers> of_model_;
  std::shared_ptr<const ModelLayers> of_strategy_;
};

// Input of a rule: the strategy and, if its topic has several cases, one of them.
struct RuleCase : Asked {
  LayerTables& tables;
  const LayerSizes* layer = nullptr;
  std::string_view field = {};  // for rows that name no field
  std::string_view name = {};   // name of the listed item, or of the size that is split
  std::string_view why = {};    // ends the problem
  std::int64_t size = 0;        // size that is split
  std::int64_t parts = 1;       // number of parts it is split into
  std::size_t place = 0;        // index in the list
};

struct Rule {
  std::string_view field;  // empty: the field of the case
  bool (*holds)(const RuleCase& it);
  std::string_view text;  // each {} is the next value of `shown`
  std::string_view source;
  std::vector<std::string> (*shown)(const RuleCase& it) = nullptr;
  // Only for rules of launchers that have no flag for the value: sets the value of a launch without it.
  void (*put_usual)(Strategy& strategy) = nullptr;
  // Says only that a launch written by Headroom cannot express the value. A launch file that states it can.
  bool of_words = false;
};

// Origin of a rule. mechanism: no stack can run what breaks it. stack: this stack cannot. launcher: the stack
// can, but its launcher has no flag for it or refuses it. device and host: the system lacks the hardware.
enum class Whose : std::uint8_t { mechanism = 1, stack = 2, device = 4, host = 8, launcher = 16 };

// Fields of a strategy that a rule reads, so that a search checks it once for all strategies that share them.
// layout: all fields except data sharding and recomputation. sharding: data sharding as well. recompute: all.
// names: lists of names, which the op tables of layers must have.
enum class Reads : std::uint8_t { layout = 1, sharding = 2, recompute = 4, names = 8 };

// A reference to a function that takes a case.
class VisitCase {
 public:
  template <class Visit>
  VisitCase(const Visit& visit)  // NOLINT(google-explicit-constructor): any callable is accepted
      : visit_(&visit),
        call_([](const void* on, const RuleCase& it) { (*static_cast<const Visit*>(on))(it); }) {}
  void operator()(const RuleCase& it) const { call_(visit_, it); }

 private:
  const void* visit_;
  void (*call_)(const void* on, const RuleCase& it);
};

struct Topic {
  std::string_view name;
  Whose whose;
  Reads reads;
  // Calls visit(case) for each case that the rules check.
  void (*each)(const RuleCase& it, VisitCase visit);
  std::span<const Rule> rules;
};

// Returns the topics in the order in which problems are reported.
std::span<const Topic* const> rule_topics();

// A set of topics: those with an origin in `whose` that read fields in `reads`. Both are sets of bits.
inline constexpr unsigned all_whose = 31;
inline constexpr unsigned all_reads = 15;
struct RuleSet {
  unsigned whose = all_whose;
  unsigned reads = all_reads;
  [[nodiscard]] constexpr bool has(const Topic& topic) const {
    return (whose & static_cast<unsigned>(topic.whose)) != 0 &&
           (reads & static_cast<unsigned>(topic.reads)) != 0;
  }
};
constexpr RuleSet rules_of(Whose whose) { return {.whose = static_cast<unsigned>(whose)}; }

// All rules except launchers'.
inline constexpr RuleSet all_rules{.whose = all_whose & ~static_cast<unsigned>(Whose::launcher)};
// Rules of mechanism, stack and launcher that a search checks at one level: for each layout, for each data
// sharding of a layout, or for each recomputation.
constexpr RuleSet searched_rules(Reads reads) {
  constexpr unsigned whose = static_cast<unsigned>(Whose::mechanism) | static_cast<unsigned>(Whose::stack) |
                             static_cast<unsigned>(Whose::launcher);
  return {.whose = whose, .reads = static_cast<unsigned>(reads)};
}

// A rule that a strategy breaks.
struct BrokenRule {
  const Rule* rule;
  Problem problem;
};
std::vector<BrokenRule> broken_rules(const Asked& asked, const RuleSet& rules);

// Returns the problems of a strategy, each under its field. Returns none if the strategy is legal.
std::vector<Problem> problems_of(const Asked& asked, const RuleSet& rules);

// Returns whether all rules hold. Builds no texts.
bool holds(const Asked& asked, const RuleSet& rules);

// Returns the first problem that is not about the field `but`.
std::optional<Problem> first_problem(const Asked& asked, const RuleSet& rules, std::string_view but = {});

// Returns problems that no stack could solve.
std::vector<Problem> illegalities(const Transformer& model, const Strategy& strategy,
                                  const Workload& workload, const Software& software);
// Returns what this stack cannot run, though another could.
std::vector<Problem> stack_illegalities(const Software& software, const Strategy& strategy);
// Returns what the GPUs of a system cannot compute (`Whose::device`), or what it lacks a host for
// (`Whose::host`).
std::vector<Problem> system_illegalities(const System& system, const Strategy& strategy, Whose whose);
// Returns what a stack's launcher has no flag for or refuses. An estimate warns about it and a launch names it.
// Searches and suggestions skip it unless the user sets it.
std::vector<Problem> launcher_gaps(const Software& software, const Transformer& model,
                                   const Strategy& strategy, const Workload& workload);

}  // namespace headroom
