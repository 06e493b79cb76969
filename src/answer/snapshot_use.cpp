#include "headroom/answer/snapshot_use.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "answer/block_lives.hpp"
#include "answer/snapshot_match.hpp"
#include "headroom/answer/snapshot.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/core/error.hpp"
#include "headroom/plan/allocator_use.hpp"

namespace headroom {
namespace {

// A block is temporary if the longest life is more than this many times its own.
constexpr std::int64_t longest_over_temporary = 10;

// Last two parts of a path.
std::string_view end_of_path(std::string_view path) {
  const std::size_t last = path.rfind('/');
  if (last == std::string_view::npos || last == 0) return path;
  const std::size_t before = path.rfind('/', last - 1);
  return before == std::string_view::npos ? path : path.substr(before + 1);
}

bool is_python(const SnapshotFrame& frame) { return frame.file.ends_with(".py"); }
// A frame of PyTorch itself says little of a tensor.
bool is_of_torch(const SnapshotFrame& frame) {
  return frame.file.starts_with("torch/") || frame.file.find("/torch/") != std::string::npos;
}
bool is_of_headroom(const SnapshotFrame& outermost) {
  return outermost.file == "microbatch" || outermost.file == "iteration";
}

// Names the place of a stack: "weights (attention_qkv)" of Headroom's own, "megatron/transformer/mlp.py:123
// forward" of a run.
std::string place_of_stack(const MemorySnapshot& snapshot, std::uint32_t stack) {
  const std::vector<std::uint32_t>& of = snapshot.stacks[stack];
  if (of.empty()) return {};
  const auto frame = [&](std::size_t i) -> const SnapshotFrame& { return snapshot.frames[of[i]]; };
  if (is_of_headroom(frame(of.size() - 1))) {
    const SnapshotFrame& tensor = frame(0);
    return tensor.file == "buffer" ? tensor.name : tensor.name + " (" + tensor.file + ")";
  }
  const auto first = [&](const auto& suits) {
    std::size_t i = 0;
    while (i < of.size() && !suits(frame(i))) ++i;
    return i;
  };
  std::size_t best = first([](const SnapshotFrame& it) { return is_python(it) && !is_of_torch(it); });
  if (best == of.size()) best = first(is_python);
  if (best == of.size()) best = 0;
  const SnapshotFrame& chosen = frame(best);
  return std::string(end_of_path(chosen.file)) + ":" + std::to_string(chosen.line) + " " + chosen.name;
}

class Grouping {
 public:
  Grouping(const MemorySnapshot& snapshot, const BlockLives& lives, std::int64_t events)
      : snapshot_(snapshot), lives_(lives), events_(events) {}

  std::vector<BlockGroup> groups() {
    struct Group {
      std::int64_t count = 0;
      std::int64_t longest = 0;
    };
    std::map<std::tuple<std::int64_t, std::string_view, bool>, Group> found;
    std::int64_t longest = 0;
    for (const LivingBlock& block : lives_.blocks) {
      if (!is_alive(block, lives_.peak_event)) continue;
      const bool is_state = block.from < 0 && block.to == events_;
      Group& group = found[{block.bytes, place(block.stack), is_state}];
      ++group.count;
      if (is_state) continue;
      group.longest = std::max(group.longest, block.to - block.from);
      longest = std::max(longest, group.longest);
    }
    std::vector<BlockGroup> groups;
    for (const auto& [key, group] : found) {
      const auto& [bytes, where, is_state] = key;
      BlockLife life = BlockLife::unknown;
      if (events_ > 0 && is_state) life = BlockLife::state;
      if (events_ > 0 && !is_state)
        life =
            group.longest < longest / longest_over_temporary ? BlockLife::temporary : BlockLife::activation;
      groups.push_back({.each = bytes, .count = group.count, .place = std::string(where), .life = life});
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [](const BlockGroup& x, const BlockGroup& y) { return total(x) > total(y); });
    return groups;
  }

 private:
  std::string_view place(std::uint32_t stack) {
    const auto [known, is_new] = places_.try_emplace(stack);
    if (is_new) known->second = *names_.insert(place_of_stack(snapshot_, stack)).first;
    return known->second;
  }

  const MemorySnapshot& snapshot_;
  const BlockLives& lives_;
  std::int64_t events_;
  std::set<std::string> names_;
  std::map<std::uint32_t, std::string_view> places_;  // by stack
};

// Devices with segments or events, and what their segments reserve.
std::map<std::int64_t, Bytes> reserved_by_device(const MemorySnapshot& snapshot) {
  std::map<std::int64_t, Bytes> devices;
  for (const SnapshotSegment& segment : snapshot.segments)
    devices[segment.device] += Bytes(real(segment.size));
  for (std::size_t device = 0; device < snapshot.traces.size(); ++device) {
    if (!snapshot.traces[device].empty()) devices.try_emplace(std::int64_t(device));
  }
  return devices;
}

void count_segments(const MemorySnapshot& snapshot, SnapshotUse& use) {
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != use.device) continue;
    ++use.segments;
    use.reserved += Bytes(real(segment.size));
    for (const SnapshotBlock& block : segment.blocks) {
      const Bytes bytes(real(block.size));
      switch (block.state) {
        case SnapshotState::allocated: use.allocated += bytes; break;
        case SnapshotState::awaiting_free: use.awaiting += bytes; break;
        case SnapshotState::inactive: use.largest_free = std::max(use.largest_free, bytes); break;
      }
    }
  }
}

}  // namespace

SnapshotUse snapshot_use(const MemorySnapshot& snapshot, const std::string& file) {
  const std::map<std::int64_t, Bytes> devices = reserved_by_device(snapshot);
  if (devices.empty()) throw InputError(file, "has no segments and no events: the run allocated nothing");
  const auto fullest = std::max_element(devices.begin(), devices.end(),
                                        [](const auto& x, const auto& y) { return x.second < y.second; });
  SnapshotUse use{
      .device = fullest->first, .devices = std::ssize(devices), .groups = {}, .settings = snapshot.settings};
  count_segments(snapshot, use);
  if (index(use.device) < snapshot.traces.size()) {
    const std::vector<SnapshotEvent>& trace = snapshot.traces[index(use.device)];
    use.events = std::ssize(trace);
    use.failures = std::count_if(trace.begin(), trace.end(), [](const SnapshotEvent& event) {
      return event.action == SnapshotAction::oom;
    });
  }
  const BlockLives lives = block_lives(snapshot, use.device);
  use.peak_event = lives.peak_event + 1;
  use.peak = lives.peak;
  use.reserved_at_peak = lives.reserved_at_peak;
  use.groups = Grouping(snapshot, lives, use.events).groups();
  return use;
}

SnapshotReply answer(const SnapshotQuestion& question) {
  SnapshotReply reply{.use = snapshot_use(question.snapshot, question.file)};
  if (!question.request) return reply;
  reply.evaluation = settled(evaluate(*question.request));
  const Plan& plan = account(*reply.evaluation);
  const PlannedSnapshot planned = planned_snapshot(plan, question.rank);
  const SnapshotUse predicted = snapshot_use(planned.snapshot, question.file);
  reply.match = matched(reply.use, predicted, plan, planned.rank);
  return reply;
}

}  // namespace headroom
