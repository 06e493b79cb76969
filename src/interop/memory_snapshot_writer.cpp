#include "headroom/interop/memory_snapshot_writer.hpp"

#include <optional>

#include "interop/pickle_writer.hpp"

namespace headroom {
namespace {

// Items of a list that a viewer takes as arguments of one call [Python, Lib/pickle.py, _BATCHSIZE].
constexpr std::size_t items_of_run = 1000;

class SnapshotPickle {
 public:
  SnapshotPickle(const MemorySnapshot& snapshot, const std::function<void(const std::string&)>& write)
      : snapshot_(snapshot), pickle_(write) {}

  void run() && {
    pickle_.begin_dict();
    list("segments", snapshot_.segments, [&](const SnapshotSegment& it) { segment(it); });
    list("device_traces", snapshot_.traces, [&](const std::vector<SnapshotEvent>& trace) {
      items(trace, [&](const SnapshotEvent& it) { event(it); });
    });
    pickle_.text("allocator_settings");
    settings();
    list("external_annotations", std::vector<int>{}, [](int) {});
    pickle_.end_dict();
    pickle_.finish();
  }

 private:
  template <class Items, class Write>
  void items(const Items& items, const Write& write) {
    pickle_.begin_list();
    std::size_t count = 0;
    for (const auto& item : items) {
      if (++count % items_of_run == 0) pickle_.next_run();
      write(item);
    }
    pickle_.end_list();
  }
  template <class Items, class Write>
  void list(std::string_view key, const Items& of, const Write& write) {
    pickle_.text(key);
    items(of, write);
  }
  void integer(std::string_view key, std::int64_t value) {
    pickle_.text(key);
    pickle_.integer(value);
  }
  void text(std::string_view key, std::string_view value) {
    pickle_.text(key);
    pickle_.text(value);
  }
  void boolean(std::string_view key, bool value) {
    pickle_.text(key);
    pickle_.boolean(value);
  }

  void segment(const SnapshotSegment& segment) {
    std::int64_t allocated = 0;
    std::int64_t active = 0;
    std::int64_t requested = 0;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == SnapshotState::inactive) continue;
      active += block.size;
      if (block.state == SnapshotState::allocated) allocated += block.size;
      if (block.state == SnapshotState::allocated) requested += block.requested;
    }
    pickle_.begin_dict();
    integer("device", segment.device);
    integer("address", segment.address);
    integer("total_size", segment.size);
    integer("allocated_size", allocated);
    integer("active_size", active);
    integer("requested_size", requested);
    integer("stream", segment.stream);
    text("segment_type", segment.small ? "small" : "large");
    pickle_.text("segment_pool_id");
    pickle_.pair(segment.pool[0], segment.pool[1]);
    boolean("is_expandable", segment.expandable);
    frames(segment.stack);
    list("blocks", segment.blocks, [&](const SnapshotBlock& it) { block(it); });
    pickle_.end_dict();
  }

  void block(const SnapshotBlock& block) {
    pickle_.begin_dict();
    integer("address", block.address);
    integer("size", block.size);
    integer("requested_size", block.requested);
    text("state", name_of(block.state));
    frames(block.stack);
    pickle_.end_dict();
  }

  void event(const SnapshotEvent& event) {
    pickle_.begin_dict();
    text("action", name_of(event.action));
    integer(event.action == SnapshotAction::oom ? "device_free" : "addr", event.address);
    integer("size", event.size);
    integer("stream", event.stream);
    integer("time_us", event.time_us);
    frames(event.stack);
    pickle_.end_dict();
  }

  // Equal stacks, and equal frames in them, are written once.
  void frames(std::uint32_t stack) {
    pickle_.text("frames");
    stacks_.resize(snapshot_.stacks.size());
    if (stacks_[stack]) return pickle_.again(*stacks_[stack]);
    items(snapshot_.stacks[stack], [&](std::uint32_t of) { frame(of); });
    stacks_[stack] = pickle_.remember();
  }
  void frame(std::uint32_t of) {
    frames_.resize(snapshot_.frames.size());
    if (frames_[of]) return pickle_.again(*frames_[of]);
    const SnapshotFrame& frame = snapshot_.frames[of];
    pickle_.begin_dict();
    text("name", frame.name);
    text("filename", frame.file);
    integer("line", frame.line);
    pickle_.end_dict();
    frames_[of] = pickle_.remember();
  }

  // Those of PyTorch 2.4, with its defaults [PyTorch, c10/cuda/CUDAAllocatorConfig.h].
  void settings() {
    pickle_.begin_dict();
    text("PYTORCH_CUDA_ALLOC_CONF", snapshot_.settings.configuration);
    integer("max_split_size", -1);
    pickle_.text("garbage_collection_threshold");
    pickle_.real(0);
    boolean("expandable_segments", snapshot_.settings.expandable);
    integer("pinned_num_register_threads", 1);
    boolean("release_lock_on_cudamalloc", false);
    boolean("pinned_use_cuda_host_register", false);
    pickle_.text("roundup_power2_divisions");
    pickle_.begin_dict();
    for (int power = 0; power < 16; ++power) integer(std::to_string(1 << power), 0);
    pickle_.end_dict();
    pickle_.end_dict();
  }

  const MemorySnapshot& snapshot_;
  PickleWriter pickle_;
  std::vector<std::optional<std::uint32_t>> stacks_;  // numbers of those that were written
  std::vector<std::optional<std::uint32_t>> frames_;
};

}  // namespace

void write_snapshot(const MemorySnapshot& snapshot,
                    const std::function<void(const std::string& bytes)>& write) {
  SnapshotPickle(snapshot, write).run();
}

}  // namespace headroom
