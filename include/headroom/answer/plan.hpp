// Question of `headroom plan`: the best strategies of a space, with everything that the answer shows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/answer/choice.hpp"
#include "headroom/answer/estimate.hpp"
#include "headroom/answer/inquiry.hpp"
#include "headroom/search/confirm.hpp"
#include "headroom/search/limits.hpp"
#include "headroom/search/search.hpp"
#include "headroom/search/variants.hpp"

namespace headroom {

// A strategy in question, and the rules that it is known to break.
struct AskedStrategy {
  Strategy strategy;
  std::vector<Problem> problems;
  std::optional<Software> software = std::nullopt;  // if another stack than the plan's is in question
};

struct PlanQuestion {
  Request base;  // its strategy has the fields that the space does not set
  Space space;
  // Lists to search the space with, every combination of them. An empty list means the value of base and
  // space.
  std::vector<std::int64_t> device_counts;
  std::vector<std::int64_t> global_batches;
  std::vector<Offer> offers;
  std::optional<std::int64_t> around_batch;  // global batch around which the others lie
  std::optional<Question> find;              // an inverse question, whose answer is then planned
  bool default_batch = false;                // no global batch was named; the default is used
  Training training;
  // Time by which the training must end. Asks for the fewest GPUs that are fast enough. Expects tokens, and
  // no other extreme.
  std::optional<Seconds> deadline;
  // Probability that an iteration takes no longer than `deadline` or `find` asks. Without it, the predicted
  // time must not.
  std::optional<double> odds;
  std::optional<AskedStrategy> why;                   // a strategy whose faults are asked for
  WhichViews views = WhichViews::none;                // add what a page shows of the best plan
  bool with_launch = false;                           // return a whole launch of the best plan
  std::optional<LaunchTarget> target = std::nullopt;  // of the launch; absent: the stack's own launcher
  bool use_all_devices = false;                       // even if fewer GPUs train faster
  // Of plans that predictions cannot tell apart. Takes effect where one request is searched to its end and no
  // iteration time is asked for.
  ChoiceQuestion choice;
  Shown shown;                // plans and Pareto points to confirm
  std::size_t accounts = 10;  // number of best plans with a full account; both of the first two have one
};

// Request and space to search. For an inverse question, these are the ones of its answer, or the nearest ones
// if nothing meets it.
struct PlanTask {
  Request base;
  Space space;
  Compared comparison;
  std::optional<Found> found;
};

// GPUs that the plans leave idle, since fewer than asked for train faster.
struct IdleDevices {
  std::int64_t asked = 0;
  std::optional<Seconds> with_all;  // iteration of the best plan on all GPUs, if one fits
  std::int64_t with_all_batch = 0;  // its global batch, which by default follows the number of GPUs
  friend bool operator==(const IdleDevices&, const IdleDevices&) = default;
};

// Throughput of a global batch on the system and the GPUs of the best plan.
struct BatchRate {
  std::int64_t global_batch = 0;
  std::optional<double> tokens_per_second;  // absent: nothing fits
  friend bool operator==(const BatchRate&, const BatchRate&) = default;
};

// Uncertainty of a plan's time and, if tokens are given, of the cost of a training run.
struct Outlook {
  IterationInterval iteration;
  std::optional<TrainingInterval> training;
  friend bool operator==(const Outlook&, const Outlook&) = default;
};

// Whether an iteration of the best plan meets a time limit.
struct InTime {
  Seconds limit;                // longest iteration time allowed
  std::optional<double> asked;  // probability that was asked for
  std::optional<double> odds;   // probability of the best plan, if there is one
  friend bool operator==(const InTime&, const InTime&) = default;
};

struct PlanReply {
  Request base;  // in a comparison, has system, stack and batch of the best plan
  Space space;
  Compared comparison;
  std::vector<Variant> variants;  // variants of the comparison, by index
  std::optional<Found> found;
  bool default_batch = false;
  Training training;  // on the system of the best plan
  SearchResult result;
  std::vector<EstimateReply> accounts;    // of the first plans
  std::optional<PlanChoice> choice;       // if plans were chosen among
  std::optional<InTime> in_time;          // if a time was asked for
  std::optional<IterationSpread> spread;  // of the time of each plan, if time is known
  std::vector<Outlook> plan_outlooks;     // of each plan
  std::vector<Outlook> pareto_outlooks;   // of each point of the Pareto front
  // Rates of several global batches: the best, then the one that the others lie around, or the smallest and
  // the largest.
  std::vector<BatchRate> batch_rates;
  std::int64_t batches_without_plan = 0;  // on the best plan's system and GPUs
  std::optional<std::size_t> cheapest;    // index of a plan, if plans have prices and it is not the first
  std::optional<BlockedChange> blocked;   // change of the best plan that memory rules out
  std::optional<NarrowerPlan> in_fp8;     // the best plan in FP8, if no precision was asked for
  std::vector<LeftOut> left_out;          // the best plan with changes that were not searched
  std::optional<Problem> obstacle;        // if no layout is legal: the size that divides nothing
  std::vector<Found> relief;              // if nothing fits: changes that would help
  bool nearest_lacks_host = false;        // `nearest` lacks host memory
  bool offloading_fits = false;  // if nothing fits: whether offloading to the host makes something fit
  bool uneven_fits = false;      // if nothing fits: whether a layout left out of the search fits
  // if nothing fits: weight-sharding stacks on which something does
  std::vector<std::string> sharding_stacks;
  std::optional<IdleDevices> idle;
  std::optional<InquiryReply> inquiry;
};

// Step that the watch of an answer is told of once its plans are found and confirmed.
inline constexpr std::string_view explaining = "explaining the answer";

// Answers in one call. Throws InputError as find() and search() do. If the watch of the options stops it, the reply has
// what was found so far (SearchResult::undecided): plans that are confirmed, and nothing that needs a finished search.
PlanReply answer(const PlanQuestion& question, const SearchOptions& options = {});

// Steps of answer(), for callers that search part of a space, or read the strategy in question only once the
// task is known.
PlanTask task_of(const PlanQuestion& question, const Watch& watch = {});
SearchResult search(const PlanTask& task, const SearchOptions& options);
PlanReply reply_to(const PlanQuestion& question, PlanTask task, SearchResult result,
                   const std::optional<AskedStrategy>& why, const SearchOptions& options);

// Return the variant and the system of a candidate.
const Variant& variant_of(const PlanReply& reply, const Candidate& candidate);
const System& system_of(const PlanReply& reply, const Candidate& candidate);
// Returns the training run of a candidate, at the price of its system.
Training training_of(const PlanReply& reply, const Candidate& candidate);

// Returns how much longer a plan takes per token than the best one, as a fraction: 0.05.
double slower_by(const PlanReply& reply, const Candidate& candidate);

double tokens_per_second(const PlanReply& reply, const Candidate& candidate);

// Returns the fastest plan if it is marginal and therefore not the best; else null.
const Candidate* faster_but_marginal(const PlanReply& reply);

// Return whether several GPU counts, batches, systems, or any of these, are compared.
bool compares_devices(const PlanReply& reply);
bool compares_batches(const PlanReply& reply);
bool compares_systems(const PlanReply& reply);
bool compares(const PlanReply& reply);

// Returns by which part of the best possible time of the usual space the best plan may be slower, if its search was
// stopped and that is known.
std::optional<double> gap(const PlanReply& reply);

// Returns whether an inverse question was asked that nothing meets; the plans then only come nearest.
bool unanswered(const PlanReply& reply);

}  // namespace headroom
