#include "headroom/report/trace.hpp"

#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace headroom {
namespace {

double microseconds(Seconds time) { return time.count() * 1e6; }

// Writes events in parts, one per line, since the whole text may be larger than memory.
class EventWriter {
 public:
  explicit EventWriter(const std::function<void(const std::string& text)>& write) : write_(write) {}

  template <class... Values>
  void write(fmt::format_string<Values...> event, Values&&... values) {
    text_ += first_ ? "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" : ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(text_), event, std::forward<Values>(values)...);
    if (text_.size() < part_bytes) return;
    write_(text_);
    text_.clear();
  }
  void finish() { write_(text_ + "\n]}\n"); }

 private:
  static constexpr std::size_t part_bytes = 1 << 16;

  const std::function<void(const std::string& text)>& write_;
  std::string text_;
  bool first_ = true;
};

// Tracks of each rank: what it computes and sends. Below all ranks follow the backward passes that run beside
// a forward pass, and then the collectives of data-parallel ranks.
enum class Track : std::uint8_t { rank, beside, collectives };

std::int64_t number_of(Track track, std::int64_t rank, std::int64_t ranks) {
  return static_cast<std::int64_t>(track) * ranks + rank;
}

void write_names(EventWriter& out, Track track, std::int64_t ranks, std::string_view suffix) {
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t number = number_of(track, rank, ranks);
    out.write(R"({{"ph":"M","pid":0,"tid":{},"name":"thread_name","args":{{"name":"rank {}{}"}}}})", number,
              rank, suffix);
    out.write(R"({{"ph":"M","pid":0,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})",
              number);
  }
}

void write_names(EventWriter& out, const TraceStream& trace, std::int64_t ranks) {
  out.write(R"({{"ph":"M","pid":0,"name":"process_name","args":{{"name":"pipeline"}}}})");
  write_names(out, Track::rank, ranks, "");
  if (trace.beside) write_names(out, Track::beside, ranks, ", beside its forward passes");
  if (trace.collectives) write_names(out, Track::collectives, ranks, ", collectives of DP ranks");
}

// `arguments` are the members of a JSON object.
void write_span(EventWriter& out, std::string_view name, std::int64_t rank, Seconds start, Seconds end,
                std::string_view arguments) {
  if (end <= start) return;
  out.write(R"({{"ph":"X","pid":0,"tid":{},"name":{},"ts":{},"dur":{},"args":{{{}}}}})", rank,
            nlohmann::json(name).dump(), microseconds(start), microseconds(end) - microseconds(start),
            arguments);
}

void write_spans(EventWriter& out, const ReplayedStep& event, std::int64_t ranks) {
  const std::string arguments =
      fmt::format(R"("microbatch":{},"virtual_stage":{}{}{})", event.step.microbatch, event.step.chunk,
                  event.stored ? R"(,"stored":true)" : "", event.step.whole ? R"(,"weights":true)" : "");
  const bool below = event.step.beside && event.step.pass == Pass::backward;
  const std::int64_t track = number_of(below ? Track::beside : Track::rank, event.rank, ranks);
  write_span(out, "recompute", track, event.start, event.recompute_end, arguments);
  write_span(out, name_of(event.step.pass), track, event.recompute_end, event.end, arguments);
  // Both outputs of two passes beside each other are sent at once.
  if (!below) write_span(out, "transfer", track, event.end, event.sent, arguments);
}

// Memory of one rank over time, written when it changes.
class MemoryCounter {
 public:
  MemoryCounter(EventWriter& out, std::int64_t rank, const ResidentMemory& resident)
      : out_(out), rank_(rank), resident_(resident), last_(bytes(Bytes())) {
    write(Seconds(0));
  }

  void step(const ReplayedStep& event, const StepBytes& alive) {
    if (event.step.pass == Pass::backward) {
      const Bytes before = last_;
      set(event.start, bytes(alive.highest));
      if (event.recompute_end > event.start) set(event.recompute_end, before);
    }
    set(event.end, bytes(alive.after));
  }

  void finish(Seconds end) { write(end); }

 private:
  // In the order in which plan adds up a rank's total, to the same last bit.
  [[nodiscard]] Bytes bytes(Bytes activations) const {
    return resident_.state + activations + resident_.reserved;
  }

  void set(Seconds when, Bytes level) {
    if (level == last_) return;
    last_ = level;
    write(when);
  }

  void write(Seconds when) {
    out_.write(R"({{"ph":"C","pid":0,"name":"memory (GiB) rank {}","ts":{},"args":{{"GiB":{}}}}})", rank_,
               microseconds(when), last_.count() / gibi);
  }

  EventWriter& out_;
  std::int64_t rank_;
  ResidentMemory resident_;
  Bytes last_;
};

}  // namespace

void chrome_trace(const TraceStream& trace, const std::function<void(const std::string& text)>& write) {
  EventWriter out(write);
  const std::int64_t ranks = std::ssize(trace.resident);
  write_names(out, trace, ranks);
  std::vector<MemoryCounter> counters;
  for (const ResidentMemory& resident : trace.resident)
    counters.emplace_back(out, std::ssize(counters), resident);
  trace.visit_steps([&](const ReplayedStep& event, const StepBytes& alive) {
    write_spans(out, event, ranks);
    counters[static_cast<std::size_t>(event.rank)].step(event, alive);
  });
  trace.visit_spans([&](const TraceSpan& span) {
    const std::int64_t track =
        number_of(span.collective ? Track::collectives : Track::rank, span.rank, ranks);
    write_span(out, span.name, track, span.start, span.end, "");
  });
  for (MemoryCounter& counter : counters) counter.finish(trace.end);
  out.finish();
}

}  // namespace headroom
