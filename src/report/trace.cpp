#include "headroom/report/trace.hpp"

#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace headroom {
namespace {

double microseconds(Seconds time) { return time.count() * 1e6; }

// Writes events, one a line, in parts: the whole text, let alone a document, may be larger than memory.
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

void write_names(EventWriter& out, std::int64_t ranks) {
  out.write(R"({{"ph":"M","pid":0,"name":"process_name","args":{{"name":"pipeline"}}}})");
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    out.write(R"({{"ph":"M","pid":0,"tid":{0},"name":"thread_name","args":{{"name":"rank {0}"}}}})", rank);
    out.write(R"({{"ph":"M","pid":0,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})",
              rank);
  }
}

// `arguments` are the members of a JSON object.
void write_span(EventWriter& out, std::string_view name, std::int64_t rank, Seconds start, Seconds end,
                std::string_view arguments) {
  if (end <= start) return;
  out.write(R"({{"ph":"X","pid":0,"tid":{},"name":{},"ts":{},"dur":{},"args":{{{}}}}})", rank,
            nlohmann::json(name).dump(), microseconds(start), microseconds(end) - microseconds(start),
            arguments);
}

void write_spans(EventWriter& out, const ReplayedStep& event) {
  const std::string arguments = fmt::format(R"("microbatch":{},"virtual_stage":{}{})", event.step.microbatch,
                                            event.step.chunk, event.stored ? R"(,"stored":true)" : "");
  write_span(out, "recompute", event.rank, event.start, event.recompute_end, arguments);
  write_span(out, name_of(event.step.pass), event.rank, event.recompute_end, event.end, arguments);
  write_span(out, "transfer", event.rank, event.end, event.sent, arguments);
}

// The memory of one rank over time, written where it changes.
class MemoryCounter {
 public:
  MemoryCounter(EventWriter& out, std::int64_t rank, const ResidentMemory& resident)
      : out_(out), rank_(rank), resident_(resident), last_(bytes({})) {
    write(Seconds(0));
  }

  void step(const ReplayedStep& event, const StepActivations& alive) {
    EXPECTS(alive.step == event.step);
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
  [[nodiscard]] Bytes bytes(const Activations& alive) const {
    return resident_.state + total(alive) + resident_.reserved;
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

void chrome_trace(const Trace& trace, const std::function<void(const std::string& text)>& write) {
  EXPECTS(trace.activations.size() == trace.resident.size());
  EventWriter out(write);
  write_names(out, std::ssize(trace.resident));
  std::vector<MemoryCounter> counters;
  for (const ResidentMemory& resident : trace.resident)
    counters.emplace_back(out, std::ssize(counters), resident);
  std::vector<std::size_t> steps_done(trace.resident.size(), 0);
  for (const ReplayedStep& event : trace.steps) {
    write_spans(out, event);
    const auto rank = static_cast<std::size_t>(event.rank);
    const std::vector<StepActivations>& activations = trace.activations[rank];
    EXPECTS(steps_done[rank] < activations.size());
    counters[rank].step(event, activations[steps_done[rank]++]);
  }
  for (const TraceSpan& span : trace.spans) write_span(out, span.name, span.rank, span.start, span.end, "");
  for (MemoryCounter& counter : counters) counter.finish(trace.end);
  out.finish();
}

}  // namespace headroom
