// The table of rules: each has a case that it alone refuses, and the engine says what reading the table row by row says.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/legality.hpp"
#include "parallel/random_strategies.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

void each_architecture(Transformer& model, void (*change)(Architecture&)) {
  change(model.architecture);
  for (LayerDescription& kind : model.layer_kinds) change(kind.architecture);
}

// What no field of a strategy sets.
const std::map<std::string, void (*)(Request&)>& changes() {
  static const std::map<std::string, void (*)(Request&)> by_name{
      {"+no_micro_batch", [](Request& request) { request.strategy.micro_batch = 0; }},
      {"+negative_lora_rank", [](Request& request) { request.strategy.lora.rank = -1; }},
      {"+three_kv_heads", [](Request& request) { request.model.key_value_heads = 3; }},
      {"+two_mtp_layers", [](Request& request) { request.model.mtp_layers = 2; }},
      {"+weight_copies", [](Request& request) { request.model.architecture.kernels.weight_copies = true; }},
      {"+capacity",
       [](Request& request) {
         each_architecture(request.model, [](Architecture& layer) {
           if (layer.experts) layer.experts->capacity_factor = 1.25;
         });
       }},
      {"+capacity_of_one_kind",
       [](Request& request) {
         request.model.layer_kinds.front().architecture.experts->capacity_factor = 1.25;
       }},
      {"+many_kinds",
       [](Request& request) {
         Transformer& model = request.model;
         model.layer_runs.clear();
         while (model.layer_kinds.size() < most_kinds - most_end_kinds) {
           model.layer_kinds.push_back(model.layer_kinds.front());
           model.layer_kinds.back().name += std::to_string(model.layer_kinds.size());
           model.layer_kinds.back().architecture.window = std::ssize(model.layer_kinds);
         }
         const auto kinds = static_cast<std::int64_t>(model.layer_kinds.size());
         for (std::int64_t i = 0; i < 2 * kinds; ++i)
           model.layer_runs.push_back({static_cast<std::size_t>(i % kinds), 1});
         model.layers = 2 * kinds;
       }},
      {"+layer_graphs", [](Request& request) { request.software.cuda_graphs = CudaGraphs::layers; }},
      {"+overlap_shared_experts", [](Request& request) { request.software.overlap_shared_experts = true; }},
      {"+mxfp4_alone",
       [](Request& request) {
         Device& device = request.system.performance->device;
         device.mxfp4_peak = device.fp4_peak;
         device.fp4_peak.reset();
       }},
      {"+no_host", [](Request& request) { request.system.host.reset(); }},
      {"+tied", [](Request& request) { request.model.architecture.tied_embeddings = true; }},
      {"+layer_graphs", [](Request& request) { request.software.cuda_graphs = CudaGraphs::layers; }},
      {"+graphs_of_moe_and_router",
       [](Request& request) {
         request.software.cuda_graphs = CudaGraphs::layers;
         request.software.cuda_graph_modules = {GraphModule::moe, GraphModule::moe_router};
       }},
      {"+graphs_of_preprocessing",
       [](Request& request) {
         request.software.cuda_graphs = CudaGraphs::layers;
         request.software.cuda_graph_modules = {GraphModule::moe_preprocess};
       }},
      // A stack of the user's own, which lists nothing that it has.
      {"+unlisted", [](Request& request) {
         Software& software = request.software;
         software.schedules.clear();
         software.axes.clear();
         software.cp_comm.clear();
         software.moe_dispatchers.clear();
         software.precisions.clear();
         software.offloads.clear();
         software.sharding.modes = {DataSharding::none, DataSharding::zero1, DataSharding::zero2,
                                    DataSharding::zero3};
       }}};
  return by_name;
}

struct CaseLine {
  std::string line;
  Request request;
  std::string problem;
};

std::vector<std::string> split(const std::string& text, const std::string& between) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(between, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string::npos) return parts;
    at = end + between.size();
  }
}

CaseLine read_case(const std::string& line) {
  const std::vector<std::string> parts = split(line, " | ");
  REQUIRE(parts.size() == 5);
  CaseLine it{.line = line, .request = {}, .problem = parts[4]};
  Request& request = it.request;
  request.software = read_software(parts[1]);
  request.model = with_attention(read_model(parts[0]), request.software.attention_kernel);
  request.system = read_system(parts[2]);
  request.workload = {.global_batch = 192, .sequence = request.model.sequence};
  const std::vector<std::string> edits = split(parts[3], " ");
  for (const std::string& edit : edits) {
    if (edit.starts_with('+')) changes().at(edit)(request);
  }
  const Strategy changed = request.strategy;
  request.strategy = with_stack_defaults(changed, request.software, request.model);
  request.strategy.data_sharding = least_sharding(request.software);
  for (const std::string& edit : edits) {
    const std::size_t equals = edit.find('=');
    if (equals == std::string::npos) continue;
    CHECK(apply({edit.substr(0, equals), edit.substr(equals + 1)}, request.strategy, request.workload) == "");
  }
  return it;
}

std::vector<CaseLine> rule_cases() {
  std::vector<CaseLine> cases;
  std::ifstream file(tests::source_dir() / "tests/parallel/rule_cases.txt");
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.front() != '#') cases.push_back(read_case(line));
  }
  return cases;
}

std::string text_of(const Problem& problem) { return problem.where + ": " + problem.rule; }

TEST_CASE("rules: each has a case that it alone refuses, whose problem it states") {
  std::set<const Rule*> refused;
  for (const CaseLine& it : rule_cases()) {
    CAPTURE(it.line);
    const Asked question = asked(it.request, it.request.strategy);
    std::vector<BrokenRule> broken = broken_rules(question, all_rules);
    if (broken.empty()) broken = broken_rules(question, rules_of(Whose::launcher));
    REQUIRE(!broken.empty());
    CHECK(text_of(broken.front().problem) == it.problem);
    for (const BrokenRule& other : broken) {
      CAPTURE(other.problem.rule);
      CHECK(other.rule == broken.front().rule);
    }
    refused.insert(broken.front().rule);
  }
  for (const Topic* const topic : rule_topics()) {
    for (const Rule& rule : topic->rules) {
      CAPTURE(topic->name);
      CAPTURE(rule.text);
      CHECK_MESSAGE(refused.count(&rule) == 1, "a rule has no line in rule_cases.txt");
      CHECK(!rule.source.empty());
    }
  }
}

// The text of a row, each hole of which is filled by hand.
std::string filled(const Rule& rule, const RuleCase& it) {
  std::string text(rule.text);
  if (rule.shown == nullptr) return text;
  std::size_t from = 0;
  for (const std::string& value : rule.shown(it)) {
    const std::size_t hole = text.find("{}", from);
    text.replace(hole, 2, value);
    from = hole + value.size();
  }
  return text;
}

// What the rows of some topics say, each asked of its cases alone.
std::multiset<std::string> read_rows(const Asked& question, unsigned whose) {
  std::multiset<std::string> problems;
  for (const Topic* const topic : rule_topics()) {
    if ((static_cast<unsigned>(topic->whose) & whose) == 0) continue;
    for (const Rule& rule : topic->rules) {
      LayerTables tables(question);
      topic->each(RuleCase{question, tables}, [&](const RuleCase& it) {
        if (rule.holds(it)) return;
        const std::string field(rule.field.empty() ? it.field : rule.field);
        problems.insert(text_of({field, filled(rule, it)}));
      });
    }
  }
  return problems;
}

std::multiset<std::string> texts_of(const std::vector<Problem>& problems) {
  std::multiset<std::string> texts;
  for (const Problem& problem : problems) texts.insert(text_of(problem));
  return texts;
}

TEST_CASE("rules: of 10,000 random strategies the engine says what each row says by itself") {
  RandomStrategies random(1);
  int legal = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Request request = random.next();
    const Asked question = asked(request, request.strategy);
    CAPTURE(flags_of(random.edits));
    const std::vector<Problem> problems = illegalities(request, request.strategy);
    CHECK(texts_of(problems) == read_rows(question, all_rules.whose));
    CHECK(texts_of(launcher_gaps(request.software, request.model, request.strategy, request.workload)) ==
          read_rows(question, static_cast<unsigned>(Whose::launcher)));
    CHECK(holds(question, all_rules) == problems.empty());
    const std::optional<Problem> first = first_problem(question, all_rules);
    CHECK(first == (problems.empty() ? std::nullopt : std::optional(problems.front())));
    legal += problems.empty() ? 1 : 0;
  }
  CHECK(legal > 1'000);
  CHECK(legal < 9'000);
}

TEST_CASE(
    "rules: those of a layout read no data sharding and no recomputation, those of sharding no "
    "recomputation") {
  RandomStrategies random(2);
  for (int i = 0; i < 10'000; ++i) {
    const Request request = random.next();
    const Strategy other = random.next().strategy;
    Strategy changed = request.strategy;
    changed.recompute = other.recompute;
    const auto say_the_same = [&](Reads reads) {
      const RuleSet rules{.whose = all_whose, .reads = static_cast<unsigned>(reads)};
      return problems_of(asked(request, request.strategy), rules) ==
             problems_of(asked(request, changed), rules);
    };
    CHECK(say_the_same(Reads::sharding));
    changed.data_sharding = other.data_sharding;
    changed.shard_size = other.shard_size;
    changed.no_reshard_after_forward = other.no_reshard_after_forward;
    changed.sync_each_batch = other.sync_each_batch;
    CHECK(say_the_same(Reads::layout));
  }
}

}  // namespace
}  // namespace headroom
