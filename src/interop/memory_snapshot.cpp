#include "headroom/interop/memory_snapshot.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/error.hpp"
#include "interop/byte_source.hpp"
#include "interop/pickle.hpp"
#include "io/command_files.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

constexpr std::size_t longest_frame_name = 1024;                    // of a C++ function; the rest is cut
constexpr std::uint64_t largest_snapshot = std::uint64_t{1} << 36;  // an endless device is refused

// Addresses are below 2^60, and sizes at most 2^46, so that sums of two do not overflow.
constexpr std::int64_t most_address = std::int64_t{1} << 60;
constexpr std::int64_t most_size = std::int64_t{1} << 46;

// Turns the pickle's dictionaries into a snapshot. Places in messages are as "/segments/3/size".
class SnapshotReading {
 public:
  SnapshotReading(const Pickle& pickle, const std::string& file) : pickle_(pickle), file_(file) {}

  MemorySnapshot run() && {
    const PickleValue& root = pickle_.root;
    if (root.kind == PickleKind::list) {  // _snapshot() of PyTorch 1.x: segments alone
      read_segments(root, "");
      return std::move(snapshot_);
    }
    expect(root, PickleKind::dict, "", "a dictionary with segments and device_traces");
    const PickleValue* const segments = find(root, "segments");
    const PickleValue* const traces = find(root, "device_traces");
    if (segments == nullptr && traces == nullptr) fail("", "must have segments and device_traces");
    if (segments != nullptr) read_segments(*segments, "/segments");
    if (traces != nullptr) read_traces(*traces);
    if (const PickleValue* const settings = find(root, "allocator_settings");
        settings != nullptr && settings->kind == PickleKind::dict) {
      snapshot_.settings.configuration =
          printable(text_or(*settings, "PYTORCH_CUDA_ALLOC_CONF", ""), longest_frame_name);
      snapshot_.settings.expandable =
          integer_or(*settings, "expandable_segments", 0, "/allocator_settings") != 0;
    }
    return std::move(snapshot_);
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& rule) const {
    throw InputError(place.empty() ? file_ : file_ + ": " + place, rule);
  }
  void expect(const PickleValue& value, PickleKind kind, const std::string& place, const char* what) const {
    if (value.kind != kind) fail(place, fmt::format("must be {}", what));
  }
  [[nodiscard]] const std::vector<PickleValue>& list(const PickleValue& value,
                                                     const std::string& place) const {
    if (value.kind != PickleKind::list && value.kind != PickleKind::tuple) fail(place, "must be a list");
    return pickle_.items(value);
  }
  // Calls read(item, place) for each item of a list of dictionaries.
  template <class Read>
  void each(const PickleValue& value, const std::string& place, const Read& read) {
    const std::vector<PickleValue>& items = list(value, place);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].kind != PickleKind::dict) fail(fmt::format("{}/{}", place, i), "must be a dictionary");
      // A pickle may hold one list or dictionary many times over: what is read of it may be far larger.
      if (++read_dictionaries_ > most_dictionaries) {
        fail(place, fmt::format("makes more than {} segments, blocks, events and frames: record fewer "
                                "(max_entries of _record_memory_history)",
                                most_dictionaries));
      }
      read(items[i], i);
    }
  }

  // Returns the member of a dictionary, or null.
  [[nodiscard]] const PickleValue* find(const PickleValue& dict, std::string_view key) const {
    if (pickle_.items(dict).size() > 2 * most_members)
      fail("", fmt::format("must have dictionaries of at most {} members", most_members));
    return pickle_.find(dict, key);
  }

  [[nodiscard]] std::optional<std::int64_t> integer(const PickleValue& dict, std::string_view key,
                                                    std::string_view place) const {
    const PickleValue* const value = find(dict, key);
    if (value == nullptr || value->kind == PickleKind::none) return std::nullopt;
    if (value->kind != PickleKind::integer && value->kind != PickleKind::boolean)
      fail(fmt::format("{}/{}", place, key), "must be a whole number");
    return value->integer;
  }
  [[nodiscard]] std::int64_t integer_or(const PickleValue& dict, std::string_view key, std::int64_t otherwise,
                                        std::string_view place) const {
    return integer(dict, key, place).value_or(otherwise);
  }
  // A size or an address.
  [[nodiscard]] std::int64_t bytes_or(const PickleValue& dict, std::string_view key,
                                      std::optional<std::int64_t> otherwise, const std::string& place) const {
    std::optional<std::int64_t> value = integer(dict, key, place);
    if (!value) value = otherwise;
    if (!value) fail(place, fmt::format("must have {}", key));
    const bool is_size = key.find("size") != std::string_view::npos;
    if (*value < 0 || *value > (is_size ? most_size : most_address)) {
      fail(fmt::format("{}/{}", place, key),
           fmt::format("must be from 0 to 2^{}, not {}", is_size ? 46 : 60, *value));
    }
    return *value;
  }
  [[nodiscard]] std::string text_or(const PickleValue& dict, std::string_view key,
                                    std::string_view otherwise) const {
    const PickleValue* const value = find(dict, key);
    return value != nullptr && value->kind == PickleKind::text ? pickle_.text(*value)
                                                               : std::string(otherwise);
  }

  std::uint32_t frame_of(const PickleValue& value, std::string_view place) {
    const auto known = frame_places_.find(value.place);
    if (known != frame_places_.end()) return known->second;
    SnapshotFrame frame{.name = printable(text_or(value, "name", "?"), longest_frame_name),
                        .file = printable(text_or(value, "filename", "?"), longest_frame_name),
                        .line = integer_or(value, "line", 0, place)};
    const auto [at, is_new] =
        frames_.try_emplace(std::move(frame), static_cast<std::uint32_t>(snapshot_.frames.size()));
    if (is_new) snapshot_.frames.push_back(at->first);
    frame_places_.emplace(value.place, at->second);
    return at->second;
  }

  // Returns the stack of a block or an event. Absent frames are an empty stack.
  std::uint32_t stack_of(const PickleValue& dict, const std::string& place) {
    const PickleValue* frames = find(dict, "frames");
    if (frames == nullptr) {  // PyTorch 2.0 has them in the first element of "history"
      const PickleValue* const history = find(dict, "history");
      if (history == nullptr || history->kind != PickleKind::list || pickle_.items(*history).empty())
        return 0;
      const PickleValue& first = pickle_.items(*history).front();
      if (first.kind == PickleKind::dict) frames = find(first, "frames");
    }
    if (frames == nullptr || frames->kind == PickleKind::none) return 0;
    if (frames->kind == PickleKind::list) {
      const auto known = stack_places_.find(frames->place);
      if (known != stack_places_.end()) return known->second;
    }
    std::vector<std::uint32_t> stack;
    each(*frames, place + "/frames",
         [&](const PickleValue& frame, std::size_t) { stack.push_back(frame_of(frame, place)); });
    const auto [at, is_new] =
        stacks_.try_emplace(std::move(stack), static_cast<std::uint32_t>(snapshot_.stacks.size()));
    if (is_new) snapshot_.stacks.push_back(at->first);
    stack_places_.emplace(frames->place, at->second);
    return at->second;
  }

  void read_segments(const PickleValue& segments, const std::string& at) {
    each(segments, at, [&](const PickleValue& dict, std::size_t i) {
      const std::string place = fmt::format("{}/{}", at, i);
      SnapshotSegment segment{.device = integer_or(dict, "device", 0, place),
                              .address = bytes_or(dict, "address", std::nullopt, place),
                              .size = bytes_or(dict, "total_size", std::nullopt, place),
                              .stream = integer_or(dict, "stream", 0, place),
                              .small = text_or(dict, "segment_type", "large") == "small",
                              .expandable = integer_or(dict, "is_expandable", 0, place) != 0,
                              .stack = stack_of(dict, place),
                              .blocks = {}};
      if (const PickleValue* const pool = find(dict, "segment_pool_id");
          pool != nullptr && pool->kind == PickleKind::tuple) {
        const std::vector<PickleValue>& parts = pickle_.items(*pool);
        if (parts.size() == 2 && parts[0].kind == PickleKind::integer && parts[1].kind == PickleKind::integer)
          segment.pool = {parts[0].integer, parts[1].integer};
      }
      if (segment.device < 0 || segment.device >= most_devices)
        fail(place + "/device", fmt::format("must be from 0 to {}", most_devices - 1));
      read_blocks(dict, place, segment);
      snapshot_.segments.push_back(std::move(segment));
    });
  }

  void read_blocks(const PickleValue& dict, const std::string& at, SnapshotSegment& segment) {
    const PickleValue* const blocks = find(dict, "blocks");
    if (blocks == nullptr) return;
    std::int64_t address = segment.address;
    each(*blocks, at + "/blocks", [&](const PickleValue& of, std::size_t i) {
      const std::string place = fmt::format("{}/blocks/{}", at, i);
      SnapshotBlock block{.address = bytes_or(of, "address", address, place),
                          .size = bytes_or(of, "size", std::nullopt, place),
                          .stack = stack_of(of, place)};
      block.requested = std::min(block.size, bytes_or(of, "requested_size", block.size, place));
      const std::string state = text_or(of, "state", "");
      const std::optional<SnapshotState> known = from_name<SnapshotState>(state);
      if (!known)
        fail(place + "/state",
             "must be active_allocated, active_pending_free, active_awaiting_free or inactive");
      block.state = *known;
      if (block.address < address || block.address + block.size > segment.address + segment.size)
        fail(place, "must lie within its segment, after the block before it");
      address = block.address + block.size;
      segment.blocks.push_back(block);
    });
  }

  void read_traces(const PickleValue& traces) {
    const std::vector<PickleValue>& devices = list(traces, "/device_traces");
    if (std::ssize(devices) > most_devices)
      fail("/device_traces", fmt::format("must be of at most {} devices", most_devices));
    for (std::size_t device = 0; device < devices.size(); ++device) {
      std::vector<SnapshotEvent>& trace = snapshot_.traces.emplace_back();
      const std::string at = fmt::format("/device_traces/{}", device);
      each(devices[device], at, [&](const PickleValue& dict, std::size_t i) {
        const std::string place = fmt::format("{}/{}", at, i);
        SnapshotEvent event{
            .action = from_name<SnapshotAction>(text_or(dict, "action", "")).value_or(SnapshotAction::other)};
        const bool has_size = event.action != SnapshotAction::other;
        const char* const address = event.action == SnapshotAction::oom ? "device_free" : "addr";
        const std::optional<std::int64_t> none = has_size ? std::nullopt : std::optional<std::int64_t>(0);
        event.address = has_size ? bytes_or(dict, address, none, place) : 0;
        event.size = has_size ? bytes_or(dict, "size", none, place) : 0;
        event.stream = integer_or(dict, "stream", 0, place);
        event.time_us = integer_or(dict, "time_us", 0, place);
        event.stack = stack_of(dict, place);
        trace.push_back(event);
      });
    }
  }

  static constexpr std::int64_t most_devices = 1024;
  static constexpr std::size_t most_dictionaries = std::size_t{1} << 24;
  static constexpr std::size_t most_members = 64;  // of a segment, block, event or frame

  const Pickle& pickle_;
  const std::string& file_;
  MemorySnapshot snapshot_;
  std::size_t read_dictionaries_ = 0;
  // By place in the pickle, and by content.
  std::unordered_map<std::uint64_t, std::uint32_t> frame_places_;
  std::unordered_map<std::uint64_t, std::uint32_t> stack_places_;
  std::map<SnapshotFrame, std::uint32_t> frames_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> stacks_{{{}, 0}};
};

MemorySnapshot read_from(ByteSource& source, const std::string& file) {
  source.allow(largest_snapshot);
  const Pickle pickle = read_pickle(source, file);
  return SnapshotReading(pickle, file).run();
}

}  // namespace

bool is_pickle(const std::string& path) {
  if (!is_regular_file(path)) return false;
  ByteSource source(path);
  std::string start(3, '\0');
  source.sgetn(start.data(), std::ssize(start));
  using namespace std::string_view_literals;
  // Protocol 2 and later; 0; 1. Logs of Ray begin with "(learner pid=...)".
  constexpr std::array starts{"\x80"sv, "(dp"sv, "(lp"sv, "}q\0"sv, "]q\0"sv};
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view it) { return start.starts_with(it); });
}

MemorySnapshot read_snapshot(const std::string& path) {
  ByteSource source(path);
  return read_from(source, path);
}

MemorySnapshot parse_snapshot(std::string_view bytes, const std::string& file) {
  ByteSource source(bytes, file);
  return read_from(source, file);
}

}  // namespace headroom
