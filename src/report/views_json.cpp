#include "report/views_json.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "report/explain_json.hpp"

namespace headroom {
namespace {

std::int64_t whole_us(Seconds time) { return std::llround(time.count() * 1e6); }

std::set<std::int64_t> shown_ranks(std::int64_t ranks, std::int64_t peak_rank) {
  std::set<std::int64_t> shown{peak_rank};
  const std::int64_t places = std::min(ranks, most_shown_ranks);
  for (std::int64_t i = 0; i < places; ++i) shown.insert(places == 1 ? 0 : i * (ranks - 1) / (places - 1));
  return shown;
}

// The end of what is shown: of the iteration, or the start of the first pass that is one too many.
Seconds shown_until(const Trace& trace, const std::set<std::int64_t>& ranks) {
  std::vector<Seconds> starts;
  for (const ReplayedStep& event : trace.steps)
    if (ranks.contains(event.rank)) starts.push_back(event.start);
  if (std::ssize(starts) <= most_shown_passes) return trace.end;
  const auto last = starts.begin() + most_shown_passes;
  std::nth_element(starts.begin(), last, starts.end());
  return *last;
}

// f: forward, b: backward, w: weight gradients; as a capital the pass of a pair that is drawn below.
char letter_of(const Step& step) {
  const char letter = step.pass == Pass::forward ? 'f' : step.pass == Pass::backward ? 'b' : 'w';
  const bool below = step.beside && step.pass == Pass::backward;
  return below ? static_cast<char>(std::toupper(letter)) : letter;
}

// Distinct levels of memory, in the order in which they first occur.
class Levels {
 public:
  std::size_t index_of(Bytes level) {
    const auto [entry, added] = places_.try_emplace(level.count(), places_.size());
    if (added) levels_.push_back(number(level));
    return entry->second;
  }
  OrderedJson json() && { return std::move(levels_); }

 private:
  std::map<double, std::size_t> places_;
  OrderedJson levels_ = OrderedJson::array();
};

// Columns of one rank's passes.
class RankColumns {
 public:
  RankColumns(std::int64_t rank, const ResidentMemory& resident)
      : json_{{"pipeline_rank", rank}}, resident_(resident) {}

  void add(const ReplayedStep& event, const StepActivations& alive, Levels& levels) {
    passes_ += letter_of(event.step);
    microbatch_.push_back(event.step.microbatch);
    chunk_.push_back(event.step.chunk);
    const std::int64_t start = whole_us(event.start);
    start_.push_back(start);
    recompute_.push_back(whole_us(event.recompute_end) - start);
    duration_.push_back(whole_us(event.end) - start);
    highest_.push_back(levels.index_of(held(alive.highest)));
    after_.push_back(levels.index_of(held(alive.after)));
    recomputes_ = recomputes_ || event.recompute_end > event.start;
  }

  OrderedJson json(Levels& levels) && {
    json_["resident"] = levels.index_of(held({}));
    json_["passes"] = passes_;
    json_["microbatch"] = std::move(microbatch_);
    json_["virtual_stage"] = std::move(chunk_);
    json_["start_us"] = std::move(start_);
    if (recomputes_) json_["recompute_us"] = std::move(recompute_);
    json_["duration_us"] = std::move(duration_);
    json_["highest"] = std::move(highest_);
    json_["after"] = std::move(after_);
    return std::move(json_);
  }

 private:
  // In the order in which plan adds up a rank's total, to the same last bit.
  [[nodiscard]] Bytes held(const Activations& alive) const {
    return resident_.state + total(alive) + resident_.reserved;
  }

  OrderedJson json_;
  ResidentMemory resident_;
  std::string passes_;
  std::vector<std::int64_t> microbatch_;
  std::vector<std::int64_t> chunk_;
  std::vector<std::int64_t> start_;
  std::vector<std::int64_t> recompute_;
  std::vector<std::int64_t> duration_;
  std::vector<std::size_t> highest_;
  std::vector<std::size_t> after_;
  bool recomputes_ = false;
};

// What ranks do outside their passes, and what they exchange within them.
OrderedJson spans_json(const Trace& trace, const std::set<std::int64_t>& ranks, Seconds until) {
  OrderedJson json = OrderedJson::array();
  for (const TraceSpan& span : trace.spans) {
    if (!ranks.contains(span.rank) || span.start > until || span.end <= span.start) continue;
    if (std::ssize(json) == most_shown_passes) break;
    json.push_back({{"name", span.name},
                    {"pipeline_rank", span.rank},
                    {"start_us", whole_us(span.start)},
                    {"duration_us", whole_us(span.end) - whole_us(span.start)},
                    {"collective", span.collective}});
  }
  return json;
}

OrderedJson rung_json(const Rung& rung) {
  OrderedJson json{{"sequence_parallel", rung.sequence_parallel},
                   {"recompute", name_of(rung.recompute)},
                   {"activation_bytes", number(rung.activations)},
                   {"peak_bytes", number(rung.peak)},
                   {"verdict", name_of(rung.verdict)}};
  if (rung.iteration) json["iteration_seconds"] = rung.iteration->count();
  return json;
}

OrderedJson point_json(const FrontierPoint& point) {
  const Strategy strategy{.recompute = point.recompute};
  return {{"peak_bytes", number(point.peak)},
          {"iteration_seconds", point.iteration.count()},
          {"recompute", to_json(strategy)["recompute"]}};
}

// What the reply around it has already.
OrderedJson layer_json(const ExplainReply& layer) {
  OrderedJson json = explain_json(layer);
  for (const char* shared : {"format", "model", "parameters", "strategy", "workload", "detail"})
    json.erase(shared);
  return json;
}

}  // namespace

OrderedJson schedule_json(const Trace& trace, std::int64_t peak_rank) {
  const std::set<std::int64_t> shown = shown_ranks(std::ssize(trace.resident), peak_rank);
  const Seconds until = shown_until(trace, shown);
  std::map<std::int64_t, RankColumns> columns;
  for (const std::int64_t rank : shown)
    columns.try_emplace(rank, rank, trace.resident[static_cast<std::size_t>(rank)]);
  Levels levels;
  std::vector<std::size_t> next(trace.resident.size(), 0);
  for (const ReplayedStep& event : trace.steps) {
    const auto rank = static_cast<std::size_t>(event.rank);
    const StepActivations& alive = trace.activations[rank][next[rank]++];
    if (const auto place = columns.find(event.rank); place != columns.end() && event.start < until)
      place->second.add(event, alive, levels);
  }
  OrderedJson ranks = OrderedJson::array();
  for (auto& [rank, column] : columns) ranks.push_back(std::move(column).json(levels));
  return {{"iteration_seconds", trace.end.count()},       {"shown_seconds", until.count()},
          {"pipeline_ranks", std::ssize(trace.resident)}, {"passes", std::ssize(trace.steps)},
          {"levels_bytes", std::move(levels).json()},     {"ranks", std::move(ranks)},
          {"spans", spans_json(trace, shown, until)}};
}

OrderedJson views_json(const Views& views, std::int64_t peak_rank) {
  OrderedJson ladder = OrderedJson::array();
  for (const Rung& rung : views.ladder) ladder.push_back(rung_json(rung));
  OrderedJson json{{"ladder", std::move(ladder)}};
  for (const FrontierPoint& point : views.frontier) json["frontier"].push_back(point_json(point));
  if (views.layer) json["layer"] = layer_json(*views.layer);
  if (views.schedule) json["schedule"] = schedule_json(*views.schedule, peak_rank);
  return json;
}

}  // namespace headroom
