// The best strategies of a space and what there is to say about them: the question of `headroom plan`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "headroom/answer/estimate.hpp"
#include "headroom/answer/inquiry.hpp"
#include "headroom/search/confirm.hpp"
#include "headroom/search/limits.hpp"
#include "headroom/search/search.hpp"
#include "headroom/search/variants.hpp"

namespace headroom {

// A strategy that is asked about, and the rules that it is already known to break.
struct AskedStrategy {
  Strategy strategy;
  std::vector<Problem> problems;
  std::optional<Software> software = std::nullopt;  // where another stack than the plan's is asked about
};

struct PlanQuestion {
  Request base;  // its strategy lends what the space does not set
  Space space;
  // Where there are several, the space is searched with each; where there are none, those of base and space are meant.
  std::vector<std::int64_t> device_counts;
  std::vector<std::int64_t> global_batches;
  std::vector<Offer> offers;
  std::optional<std::int64_t> around_batch;  // the global batch that the others lie around
  std::optional<Question> find;              // an inverse question: its answer is what is planned
  bool default_batch = false;                // nobody named its global batch, which is the usual one
  Training training;
  // When the training shall be over: asks for the fewest devices, of which an iteration takes short enough. Expects
  // tokens, and no other extreme.
  std::optional<Seconds> deadline;
  // With which odds an iteration shall take no longer than `deadline` or `find` asks; without them its predicted time shall.
  std::optional<double> odds;
  std::optional<AskedStrategy> why;  // a strategy whose faults are asked for
  bool with_launch = false;          // the flags of the stack's launcher, of the best plan
  bool use_all_devices = false;      // also where fewer of them take less time
  Shown shown;                       // what is confirmed to fit
  std::size_t accounts =
      10;  // how many of the best plans are accounted for in full; of the first two all are
};

// What is searched: the request and space of the question or, where it asks for an extreme, those of the answer to that;
// where nothing meets it, those that come nearest.
struct PlanTask {
  Request base;
  Space space;
  Compared comparison;
  std::optional<Found> found;
};

// Devices that the plans leave idle, since fewer than were asked for train faster.
struct IdleDevices {
  std::int64_t asked = 0;
  std::optional<Seconds> with_all;  // an iteration of the best plan on all of them, if one fits
  std::int64_t with_all_batch = 0;  // its global batch, which by default follows the number of devices
  friend bool operator==(const IdleDevices&, const IdleDevices&) = default;
};

// How a global batch does on the system and the devices of the best plan.
struct BatchRate {
  std::int64_t global_batch = 0;
  std::optional<double> tokens_per_second;  // none: nothing fits
  friend bool operator==(const BatchRate&, const BatchRate&) = default;
};

// What is not certain of a plan's time, and of what a training run takes with it, where tokens are given.
struct Outlook {
  IterationInterval iteration;
  std::optional<TrainingInterval> training;
  friend bool operator==(const Outlook&, const Outlook&) = default;
};

// Whether an iteration of the best plan takes no longer than was asked for.
struct InTime {
  Seconds limit;                // that it may take
  std::optional<double> asked;  // the odds that were asked for
  std::optional<double> odds;   // those of the best plan, where there is one
  friend bool operator==(const InTime&, const InTime&) = default;
};

struct PlanReply {
  Request base;  // of several that are compared, those of the best plan: system, stack and batch
  Space space;
  Compared comparison;
  std::vector<Variant> variants;  // that it makes, by number
  std::optional<Found> found;
  bool default_batch = false;
  Training training;  // on the system of the best plan
  SearchResult result;
  std::vector<EstimateReply> accounts;    // of the first of its plans
  std::optional<InTime> in_time;          // where a time was asked for
  std::optional<IterationSpread> spread;  // of the time of each, where time is known
  std::vector<Outlook> plan_outlooks;     // of each of its plans
  std::vector<Outlook> pareto_outlooks;   // and of each on its Pareto front
  // Of several global batches: the best, then the one that the others lie around, or the least and the most.
  std::vector<BatchRate> batch_rates;
  std::int64_t batches_without_plan = 0;  // beside the best plan's system and devices
  std::optional<std::size_t> cheapest;    // of the plans, where they have prices and it is not the first
  std::optional<BlockedChange> blocked;   // what memory keeps the best plan from
  std::optional<NarrowerPlan> in_fp8;     // the best plan, where no precision was asked for
  std::optional<Problem> obstacle;        // where no layout is legal: the size that divides nothing
  std::vector<Found> relief;              // where nothing fits: what would
  bool nearest_lacks_host = false;        // that what needs least lacks is memory of a host
  bool offloading_fits = false;  // where nothing fits: whether something does with what the host can keep
  bool uneven_fits = false;      // likewise, with layouts that the search left out
  std::vector<std::string> sharding_stacks;  // likewise, on these stacks, which shard weights
  std::optional<IdleDevices> idle;
  std::optional<InquiryReply> inquiry;
};

// The whole reply. Throws InputError as find() and search() do.
PlanReply answer(const PlanQuestion& question, const SearchOptions& options = {});

// Its parts, for who searches a part of the space only or reads the strategy to ask about once the task is known.
PlanTask task_of(const PlanQuestion& question);
SearchResult search(const PlanTask& task, const SearchOptions& options);
PlanReply reply_to(const PlanQuestion& question, PlanTask task, SearchResult result,
                   const std::optional<AskedStrategy>& why, unsigned threads);

// What a candidate of the reply is of.
const Variant& variant_of(const PlanReply& reply, const Candidate& candidate);
const System& system_of(const PlanReply& reply, const Candidate& candidate);
// What a training run takes with it: at the price of its system.
Training training_of(const PlanReply& reply, const Candidate& candidate);

// How much longer a plan takes for a token than the best one: 0.05.
double slower_by(const PlanReply& reply, const Candidate& candidate);

double tokens_per_second(const PlanReply& reply, const Candidate& candidate);

// The fastest plan of all, where it is marginal and so not the best; else null.
const Candidate* faster_but_marginal(const PlanReply& reply);

// Whether several are compared.
bool compares_devices(const PlanReply& reply);
bool compares_batches(const PlanReply& reply);
bool compares_systems(const PlanReply& reply);
bool compares(const PlanReply& reply);

// Whether an inverse question was asked and nothing meets it: what is planned then only comes nearest.
bool unanswered(const PlanReply& reply);

}  // namespace headroom
