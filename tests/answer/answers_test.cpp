// Every question asked of the library has the answer that the program prints for the same request as JSON.
#include <string>

#include <doctest/doctest.h>

#include "answer/printed_by.hpp"
#include "headroom/answer/compare.hpp"
#include "headroom/answer/estimate.hpp"
#include "headroom/answer/explain.hpp"
#include "headroom/answer/frontier.hpp"
#include "headroom/answer/plan.hpp"
#include "headroom/answer/sweep.hpp"
#include "headroom/answer/trace.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/report/estimate.hpp"
#include "headroom/report/frontier.hpp"
#include "headroom/report/sweep.hpp"
#include "headroom/report/trace.hpp"

namespace headroom {
namespace {

// gpt-22b on 16 GPUs with a batch of 16 sequences.
Request gpt_22b() {
  Request request{.workload = {.global_batch = 16, .sequence = 2048}};
  request.model = read_model("gpt-22b");
  request.system = read_system("dgx-a100-80g");
  request.software = read_software("megatron-2022");
  request.strategy = {.tensor_parallel = 8, .pipeline_parallel = 2, .sequence_parallel = true};
  return request;
}

constexpr const char* layout = " gpt-22b -t 8 -p 2 --global-batch 16 --sp";

}  // namespace

TEST_CASE("answers: estimate, with what would help and the cost of a training run") {
  EstimateQuestion question{.request = gpt_22b(), .training = {.tokens = 300e9}};
  question.request.strategy.micro_batch = 4;
  const EstimateReply reply = answer(question);
  const std::string arguments = std::string("estimate") + layout + " -b 4 --tokens 300B";
  const EstimateWords words{
      .estimate =
          "headroom estimate gpt-22b --system dgx-a100-80g --global-batch 16 -t 8 -p 2 -d 1 -b 4 --sp",
      .plan = "headroom plan gpt-22b --system dgx-a100-80g --devices 16 --global-batch 16"};
  CHECK(render(reply, words, Format::json) == printed_by(arguments + " --format json"));
  CHECK(render(reply, words, Format::table) == printed_by(arguments));

  const Json json = json_of(arguments);
  const Plan& plan = account(reply.evaluation);
  CHECK(json["memory"]["peak_bytes"] == peak(plan).count());
  CHECK(json["time"]["iteration_seconds"] == plan.timing->iteration.total.count());
  CHECK(json["time"]["interval"]["low_seconds"] == reply.interval->low.count());
  CHECK(json["budget"]["days"] == reply.cost->predicted.days);
  REQUIRE(!reply.alternatives.empty());
  REQUIRE(json["alternatives"].size() == reply.alternatives.size());
  CHECK(json["alternatives"][0]["peak_bytes"] == peak(reply.alternatives[0].plan).count());
}

TEST_CASE("answers: the schedule of an estimate") {
  const EstimateReply reply =
      answer(EstimateQuestion{.request = gpt_22b(), .with_alternatives = false, .with_schedule = true});
  CHECK(render(reply, {}, Format::table) ==
        printed_by(std::string("estimate") + layout + " --timeline --no-suggestions"));
  // Every microbatch passes both ranks forward and backward.
  CHECK(reply.trace->steps.size() == 2 * 2 * 16);
}

TEST_CASE("answers: compare") {
  CompareQuestion question{.before = gpt_22b(), .after = gpt_22b()};
  question.after.strategy.recompute.policy = RecomputePolicy::full;
  const CompareReply reply = answer(question);
  const Json json = json_of(std::string("compare") + layout + " --to '--recompute full'");
  REQUIRE(!reply.time.empty());
  const auto check = [&](const Json& part, const std::vector<ComparedTerm>& terms) {
    CHECK(part.size() == terms.size());
    for (const ComparedTerm& term : terms) {
      CHECK(part[term.name]["before"] == term.before);
      CHECK(part[term.name]["after"] == term.after);
    }
  };
  check(json["time"], reply.time);
  check(json["memory"], reply.memory);
}

TEST_CASE("answers: explain") {
  const Request request = gpt_22b();
  const ExplainReply reply = answer(
      ExplainQuestion{.model = request.model, .strategy = request.strategy, .workload = request.workload});
  const Json json = json_of(std::string("explain") + layout);
  CHECK(json["layer"]["stored_bytes"] == reply.kinds.front().kept.value);
  REQUIRE(json["ops"].size() >= reply.kinds.front().ops.size());
  for (std::size_t i = 0; i < reply.kinds.front().ops.size(); ++i) {
    CHECK(json["ops"][i]["name"] == reply.kinds.front().ops[i].name);
    CHECK(json["ops"][i]["stored_bytes"] == reply.kinds.front().ops[i].kept.value);
  }
}

TEST_CASE("answers: frontier, with budgets and windows") {
  const FrontierReply reply =
      answer(FrontierQuestion{.request = gpt_22b(), .budgets = {40_GiB, 80_GiB}, .window = true});
  const std::string arguments =
      std::string("frontier") + layout + " --budget '40 GiB,80 GiB' --recompute-window";
  CHECK(render(reply, Format::json) == printed_by(arguments + " --format json"));
  CHECK(render(reply, Format::table) == printed_by(arguments));
  const Json json = json_of(arguments);
  REQUIRE(json["points"].size() == reply.points.size());
  for (std::size_t i = 0; i < reply.points.size(); ++i) {
    CHECK(json["points"][i]["iteration_seconds"] == reply.points[i].point.iteration.count());
    CHECK(json["points"][i]["staged_seconds"] == reply.points[i].staged.iteration.count());
  }
}

TEST_CASE("answers: plan, and why not another strategy") {
  Request base = gpt_22b();
  base.strategy = {};
  AskedStrategy why{.strategy = {.tensor_parallel = 4, .data_parallel = 4}, .problems = {}};
  const PlanReply reply =
      answer(PlanQuestion{.base = base, .space = {.breadth = Breadth::wide, .devices = 16}, .why = why});
  const Json json = json_of("plan gpt-22b --devices 16 --global-batch 16 --why '-t 4 -d 4'");
  CHECK(json["evaluated"] == reply.result.evaluated);
  CHECK(json["feasible"] == reply.result.feasible);
  REQUIRE(!reply.accounts.empty());
  REQUIRE(json["plans"].size() == reply.accounts.size());
  for (std::size_t i = 0; i < reply.accounts.size(); ++i) {
    const Plan& plan = account(reply.accounts[i].evaluation);
    CHECK(json["plans"][i]["time"]["iteration_seconds"] == plan.timing->iteration.total.count());
    CHECK(json["plans"][i]["memory"]["peak_bytes"] == peak(plan).count());
    CHECK(plan.request.strategy == reply.result.plans[i].strategy);
  }
  REQUIRE(json["pareto"].size() == reply.result.pareto.size());
  CHECK(json["pareto"].back()["peak_bytes"] == reply.result.pareto.back().peak.count());
  REQUIRE(reply.inquiry);
  CHECK(json["why"]["peak_bytes"] == peak(account(*reply.inquiry->evaluation)).count());
  CHECK(json["why"]["against_best"]["time"]["iteration_seconds"]["after"] ==
        reply.inquiry->against_best->time.back().after);
  CHECK(json["why"]["neighbours"].size() == reply.inquiry->remedies.size());
}

TEST_CASE("answers: the best plan's routing is that of its estimate") {
  Request base = gpt_22b();
  base.model = with_layers(read_model("mixtral-8x7b"), 4);
  base.strategy = {};
  const Space space{.devices = 8, .expert_parallel = {.only = {8}}};
  const PlanReply reply = answer(PlanQuestion{.base = base, .space = space});
  REQUIRE(reply.accounts.size() > 1);
  const EstimateReply& best = reply.accounts.front();
  REQUIRE(best.routing.has_value());
  const Routing& routing = *best.routing;
  CHECK(routing.steps == 1000);
  CHECK(routing.layers == 4);
  REQUIRE(routing.loads.size() == 3);
  CHECK(routing.loads[0].peak == peak(account(best.evaluation)));
  CHECK(routing.loads[1].memory_load > 1);
  CHECK(routing.loads[1].peak > routing.loads[0].peak);
  CHECK(routing.loads[2].peak > routing.loads[1].peak);
  // A rank's layers average out; each layer's busiest rank does not.
  CHECK(routing.loads[1].time_load > routing.loads[1].memory_load);
  CHECK_FALSE(reply.accounts[1].routing.has_value());
}

TEST_CASE("answers: the chance to run out of memory grows with steps, spread and memory in use") {
  Request base = gpt_22b();
  base.model = with_layers(read_model("mixtral-8x7b"), 4);
  base.strategy = {.data_parallel = 8, .expert_parallel = 8, .data_sharding = DataSharding::zero1};
  base.workload = {.global_batch = 32, .sequence = 4096};
  const auto routing = [&](double tokens, MoeBalancing balancing, double memory) {
    Request request = base;
    request.workload.moe_imbalance.balancing = balancing;
    const Plan even = account(evaluate(request));
    request.system.memory = memory * peak(even);
    const EstimateReply reply = estimated(evaluate(request), {});
    Training training;
    training.tokens = tokens;
    return *routing_of(account(reply.evaluation), training);
  };
  using enum MoeBalancing;
  const Routing usual = routing(0, aux_loss, 1.15);
  CHECK(usual.out_of_memory > 0);
  CHECK(usual.out_of_memory < 1);
  CHECK(routing(1e12, aux_loss, 1.15).out_of_memory > usual.out_of_memory);
  CHECK(routing(1e12, aux_loss, 1.15).steps == static_cast<std::int64_t>(std::ceil(1e12 / (32 * 4096))));
  CHECK(routing(0, loss_free, 1.15).out_of_memory < usual.out_of_memory);
  CHECK(routing(0, aux_loss, 1.5).out_of_memory < usual.out_of_memory);
  CHECK(usual.out_of_memory_early > usual.out_of_memory);
  CHECK(routing(0, loss_free, 1.15).out_of_memory_early == doctest::Approx(usual.out_of_memory_early));
}

TEST_CASE("answers: a strategy for other devices than the plan's breaks a rule") {
  Request base = gpt_22b();
  base.strategy = {};
  const InquiryReply reply =
      answer(InquiryQuestion{.base = base, .space = {.devices = 16}, .strategy = {.tensor_parallel = 8}});
  REQUIRE(reply.problems.size() == 1);
  CHECK(reply.problems[0].rule == "makes it 8 GPUs, not 16");
  CHECK(!reply.evaluation);
  CHECK(!reply.nearest.empty());
}

TEST_CASE("answers: plan of several numbers of devices, and an inverse question") {
  Request base = gpt_22b();
  base.strategy = {};
  const PlanReply several =
      answer(PlanQuestion{.base = base, .space = {.devices = 8}, .device_counts = {8, 16}});
  const Json json = json_of("plan gpt-22b --devices 8,16 --global-batch 16");
  REQUIRE(json["plans"].size() == several.result.plans.size());
  CHECK(json["plans"][0]["memory"]["peak_bytes"] == several.result.plans[0].peak.count());

  const PlanReply found =
      answer(PlanQuestion{.base = base,
                          .space = {.devices = 8},
                          .find = Question{.extreme = Extreme::max_sequence, .step = 128}});
  const Json of_found = json_of("plan gpt-22b --devices 8 --global-batch 16 --find max-sequence");
  REQUIRE(found.found->value);
  CHECK(of_found["found"]["value"] == *found.found->value);
  CHECK(of_found["sequence"] == found.base.workload.sequence);
  CHECK(!unanswered(found));
}

TEST_CASE("answers: the fewest GPUs by a deadline") {
  Request base = gpt_22b();
  base.strategy = {};
  const PlanReply reply =
      answer(PlanQuestion{.base = base, .training = {.tokens = 20e9}, .deadline = Seconds(30 * 86400.0)});
  const Json json = json_of("plan gpt-22b --global-batch 16 --tokens 20B --deadline 30d");
  REQUIRE(reply.found->value);
  CHECK(json["found"]["value"] == *reply.found->value);
  CHECK(json["found"]["within_seconds"] == reply.found->question.within->count());
  REQUIRE(!reply.plan_outlooks.empty());
  const Outlook& best = reply.plan_outlooks.front();
  REQUIRE(best.training);
  CHECK(best.training->predicted.days <= 30);
  CHECK(best.training->low.days < best.training->predicted.days);
  CHECK(best.training->high.days > best.training->predicted.days);
  const nlohmann::json& budget = json["plans"][0]["budget"];
  CHECK(budget["days"] == best.training->predicted.days);
  CHECK(budget["interval"]["low"]["days"] == best.training->low.days);
  CHECK(budget["interval"]["high"]["days"] == best.training->high.days);
}

TEST_CASE("answers: higher odds of a deadline take as many GPUs or more, and the best plan has them") {
  Request base = gpt_22b();
  base.strategy = {};
  PlanQuestion question{
      .base = base, .training = {.tokens = 20e9}, .deadline = Seconds(30 * 86400.0), .odds = {}};
  std::int64_t fewest = answer(question).found->value.value();
  for (const double odds : {0.8, 0.99, 0.9999}) {
    question.odds = odds;
    const PlanReply reply = answer(question);
    REQUIRE(reply.found->value);
    CHECK(*reply.found->value >= fewest);
    fewest = *reply.found->value;
    REQUIRE((reply.in_time && reply.in_time->odds));
    CHECK(reply.in_time->asked == odds);
    CHECK(*reply.in_time->odds >= odds);
    CHECK(*reply.in_time->odds ==
          odds_within(reply.result.plans.front().iteration, reply.in_time->limit, reply.spread->spread));
  }
  const Json json = json_of("plan gpt-22b --global-batch 16 --tokens 20B --deadline 30d --odds 99.99%");
  CHECK(json["found"]["value"] == fewest);
  CHECK(json["in_time"]["asked_odds"] == doctest::Approx(0.9999));
  CHECK(json["in_time"]["odds"] >= 0.9999);
}

TEST_CASE("answers: the interval of each plan, on its Pareto front too, is that of its estimate") {
  Request base = gpt_22b();
  base.strategy = {};
  const PlanReply reply = answer(PlanQuestion{.base = base, .space = {.devices = 8}});
  const Json json = json_of("plan gpt-22b --devices 8 --global-batch 16");
  REQUIRE(reply.plan_outlooks.size() == reply.result.plans.size());
  for (std::size_t i = 0; i < reply.accounts.size(); ++i) {
    CHECK(reply.plan_outlooks[i].iteration == reply.accounts[i].interval);
  }
  REQUIRE(json["pareto"].size() == reply.pareto_outlooks.size());
  for (std::size_t i = 0; i < reply.pareto_outlooks.size(); ++i) {
    const auto& [low, high] = reply.pareto_outlooks[i].iteration;
    CHECK(low < reply.result.pareto[i].iteration);
    CHECK(reply.result.pareto[i].iteration < high);
    CHECK(json["pareto"][i]["interval"]["low_seconds"] == low.count());
    CHECK(json["pareto"][i]["interval"]["high_seconds"] == high.count());
  }
}

TEST_CASE("answers: the points of a sweep, and of one that searches") {
  const Json rows = json_of(std::string("sweep") + layout + " --vary micro_batch=1,2 --tokens 1e9")["rows"];
  const Json plans = json_of(
      "sweep plan gpt-22b --global-batch 16 --vary devices=8,16 --tokens 1e9 --price-per-gpu-hour 2")["rows"];
  for (std::size_t i = 0; i < 2; ++i) {
    PointQuestion question{.request = gpt_22b(), .space = {}, .training = {.tokens = 1e9}};
    question.request.strategy.micro_batch = i == 0 ? 1 : 2;
    PointQuestion searched{.request = gpt_22b(),
                           .space = Space{.breadth = Breadth::wide, .devices = i == 0 ? 8 : 16},
                           .training = {.tokens = 1e9, .price_per_device_hour = 2}};
    searched.request.strategy = {};
    const SweepRow row = answer(question);
    const SweepRow plan = answer(searched);
    for (const SweepFigure& figure : sweep_figures) {
      const std::string name(figure.name);
      CHECK(rows[i].contains(name) == (row.figures.*figure.figure).has_value());
      if (rows[i].contains(name)) CHECK(rows[i][name] == *(row.figures.*figure.figure));
      CHECK(plans[i].contains(name) == (plan.figures.*figure.figure).has_value());
      if (plans[i].contains(name)) CHECK(plans[i][name] == *(plan.figures.*figure.figure));
    }
    REQUIRE(plan.strategy);
    CHECK(plans[i]["strategy"] == flags_of(*plan.strategy, FlagNames::letters));
  }
}

TEST_CASE("answers: a whole sweep, with points that break rules and that do not fit") {
  // What the program calls the sweep and puts above its rows is of its command line; the rows are the answer.
  SweepQuestion question{
      .head = {.arguments = {"gpt-22b", "--pipeline-parallel=2", "--global-batch=16", "--sequence-parallel"},
               .grid = read_grid({"tensor_parallel=1,7,8", "micro_batch=1:4:1"}, {})},
      .at = {}};
  question.at = varied({.request = gpt_22b(), .space = {}}, question.head.grid);
  const SweepReply reply = answer(question);
  const std::string arguments =
      "sweep gpt-22b -p 2 --global-batch 16 --sp --vary tensor_parallel=1,7,8 --vary micro_batch=1:4:1";
  REQUIRE(reply.rows.size() == 12);
  CHECK(fits(reply));
  CHECK(!fits(reply.rows[0]));
  CHECK(fits(reply.rows[8]));
  // A library names the field, the program its flag.
  REQUIRE(!reply.rows[4].problems.empty());
  CHECK(reply.rows[4].problems[0].where == "tensor_parallel");
  const Json rows = json_of(arguments)["rows"];
  REQUIRE(rows.size() == reply.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SweepRow row = reply.rows[i];
    for (Problem& problem : row.problems) problem = by_flag(problem);
    CHECK(Json::parse(json_line(reply.head, static_cast<std::int64_t>(i), row)) == rows[i]);
  }
  // Where no row has a problem, so is the CSV.
  question.head.grid = read_grid({"tensor_parallel=4,8", "micro_batch=1,2"}, {});
  question.at = varied({.request = gpt_22b(), .space = {}}, question.head.grid);
  CHECK(render(answer(question), Format::csv) ==
        printed_by(
            "sweep gpt-22b -p 2 --global-batch 16 --sp --vary tensor_parallel=4,8 --vary micro_batch=1,2 "
            "--format csv"));
}

TEST_CASE("answers: a sweep of what is no field, and of values that a field cannot have") {
  CHECK_THROWS_WITH_AS(varied({.request = gpt_22b(), .space = {}}, read_grid({"hidden=1,2"}, {})),
                       "vary hidden: is no field of a strategy or a workload", InputError);
  SweepQuestion question{.head = {.grid = read_grid({"tensor_parallel=8,x"}, {})}, .at = {}};
  question.at = varied({.request = gpt_22b(), .space = {}}, question.head.grid);
  const SweepReply reply = answer(question);
  CHECK(reply.rows[0] == row_of(evaluate(gpt_22b())));
  CHECK(problem_text(reply.rows[1]) == "tensor_parallel: must be a whole number, not 'x'");
}

TEST_CASE("answers: trace") {
  const TraceReply reply = answer(TraceQuestion{.request = gpt_22b()});
  std::string text;
  chrome_trace(reply.trace, [&](const std::string& part) { text += part; });
  CHECK(text == printed_by(std::string("trace") + layout));
}

}  // namespace headroom
