#include "headroom/interop/profile.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "headroom/calibrate/comparison.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/expects.hpp"
#include "interop/kineto.hpp"
#include "interop/nsys.hpp"
#include "interop/nvtx_range.hpp"
#include "interop/profile_work.hpp"
#include "io/command_files.hpp"
#include "io/strict_json.hpp"

namespace headroom {
namespace {

constexpr double longest_kernel = 1e9;  // microseconds
constexpr std::size_t most_shapes = longest_list_of_rows;

// The innermost operator under way at each launch: operators of a thread lie within one another or apart.
class OperatorFinder {
 public:
  explicit OperatorFinder(const ProfileEvents& events) {
    std::vector<std::size_t> order(events.operators.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
      const ProfiledOperator& a = events.operators[x];
      const ProfiledOperator& b = events.operators[y];
      return std::tuple(a.thread, a.begin, -a.end) < std::tuple(b.thread, b.begin, -b.end);
    });
    std::vector<std::pair<KernelLaunch, std::int64_t>> launches;
    launches.reserve(events.launches.size());
    for (const auto& [correlation, launch] : events.launches) launches.emplace_back(launch, correlation);
    std::sort(launches.begin(), launches.end(), [](const auto& x, const auto& y) {
      return std::tuple(x.first.thread, x.first.at, x.second) <
             std::tuple(y.first.thread, y.first.at, y.second);
    });
    std::vector<std::size_t> under_way;
    std::size_t next = 0;
    for (const auto& one : launches) {
      const KernelLaunch& launch = one.first;
      const auto before = [&](const ProfiledOperator& it) {
        return std::pair(it.thread, it.begin) <= std::pair(launch.thread, launch.at);
      };
      for (; next < order.size() && before(events.operators[order[next]]); ++next)
        under_way.push_back(order[next]);
      const auto over = [&](std::size_t i) {
        const ProfiledOperator& it = events.operators[i];
        return it.thread != launch.thread || it.end < launch.at;
      };
      while (!under_way.empty() && over(under_way.back())) under_way.pop_back();
      if (!under_way.empty()) found_[one.second] = under_way.back();
    }
  }

  // Its place in ProfileEvents::operators.
  [[nodiscard]] std::optional<std::size_t> of(const ProfiledKernel& kernel) const {
    const auto found = found_.find(kernel.correlation);
    return found == found_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::unordered_map<std::int64_t, std::size_t> found_;
};

// The kernels of one call of an operator that is read.
struct CalledKernels {
  double microseconds = 0;
  std::size_t count = 0;
  double longest = 0;
  std::int32_t name = 0;  // of the longest, which tells types that the profiler did not record
};

// Times of one shape, under a sample that lacks its own.
struct TimedShape {
  Sample sample;
  std::string what;
  std::vector<double> seconds;
};

class SampleMaker {
 public:
  SampleMaker(const ProfileEvents& events, std::int64_t devices_per_node)
      : events_(events), devices_per_node_(devices_per_node) {
    EXPECTS(devices_per_node >= 1);
  }

  Profile make(const std::string& file) {
    const OperatorFinder finder(events_);
    std::map<std::size_t, CalledKernels> calls;
    for (const ProfiledKernel& kernel : events_.kernels) {
      const auto place = finder.of(kernel);
      const bool read = place && events_.operators[*place].call >= 0;
      const std::int32_t of_its_range = place ? events_.operators[*place].collective : -1;
      if (kernel.copied_bytes > 0) {
        add(work_of_copy(kernel.copied_bytes), kernel.microseconds, 1);
      } else if (kernel.collective >= 0 || of_its_range >= 0) {
        add(collective(kernel.collective >= 0 ? kernel.collective : of_its_range), kernel.microseconds, 1);
      } else if (read) {
        CalledKernels& sum = calls[*place];
        sum.microseconds += kernel.microseconds;
        ++sum.count;
        if (kernel.microseconds >= sum.longest) {
          sum.longest = kernel.microseconds;
          sum.name = kernel.name;
        }
      } else {
        const std::string_view by = place ? name_at(events_.operators[*place].name) : std::string_view();
        add(work_of(name_at(kernel.name), by), kernel.microseconds, 1);
      }
    }
    for (const auto& [place, sum] : calls)
      add(call(events_.operators[place].call, sum), sum.microseconds, sum.count);
    return finish(file);
  }

 private:
  [[nodiscard]] std::string_view name_at(std::int32_t name) const {
    return events_.names[static_cast<std::size_t>(name)];
  }

  const ProfiledWork& collective(std::int32_t place) {
    const auto found = collectives_.find(place);
    if (found != collectives_.end()) return found->second;
    const CollectiveCall& it = events_.collectives[static_cast<std::size_t>(place)];
    return collectives_.emplace(place, work_of(it, devices_per_node_)).first->second;
  }

  ProfiledWork call(std::int32_t place, const CalledKernels& kernels) {
    const OperatorCall& recorded = events_.calls[static_cast<std::size_t>(place)];
    const std::string_view type =
        recorded.types.empty() ? type_in_kernel_name(name_at(kernels.name)) : std::string_view();
    auto found = calls_.find({place, type});
    if (found == calls_.end()) {
      const auto typed = [&] {
        OperatorCall call = recorded;
        if (!type.empty()) call.types.assign(call.sizes.size(), std::string(type));
        return call;
      };
      found = calls_.emplace(std::pair(place, type), work_of(typed())).first;
    }
    const ProfiledWork& work = found->second;
    // Bytes of an operator that takes several kernels go through memory more often.
    if (work.sample && work.sample->kind == SampleKind::streaming && kernels.count > 1)
      return {.work = work.work, .problem = "of operators that take several", .sample = std::nullopt};
    return work;
  }

  void add(const ProfiledWork& work, double microseconds, std::size_t kernels) {
    const bool timed = microseconds > 0 && microseconds < longest_kernel;
    const std::string problem = timed ? work.problem : "without a time";
    ProfilePart& part =
        parts_.try_emplace({work.work, problem}, ProfilePart{.work = work.work, .problem = problem})
            .first->second;
    part.kernels += kernels;
    if (!timed) return;
    part.time += Seconds(microseconds / 1e6);
    if (!work.sample) return;
    std::vector<std::size_t>& alike = by_hash_[shape_hash(*work.sample)];
    const auto same = std::find_if(alike.begin(), alike.end(), [&](std::size_t i) {
      return same_shape(shapes_[i].sample, *work.sample);
    });
    if (same == alike.end()) {
      if (shapes_.size() == most_shapes) return;
      ++part.shapes;
      alike.push_back(shapes_.size());
      shapes_.push_back({*work.sample, work.work, {microseconds / 1e6}});
    } else {
      shapes_[*same].seconds.push_back(microseconds / 1e6);
    }
  }

  Profile finish(const std::string& file) {
    Profile profile;
    profile.samples = {
        .file = file, .device = events_.device, .environment = events_.environment, .samples = {}};
    profile.samples.samples.reserve(shapes_.size());
    for (TimedShape& shape : shapes_) {
      const bool waits = is_collective(shape.sample.kind) || is_exchange(shape.sample.kind);
      const double time =
          waits ? *std::min_element(shape.seconds.begin(), shape.seconds.end()) : median(shape.seconds);
      shape.sample.median = Seconds(time);
      shape.sample.where = fmt::format("{} of {} calls", shape.what, shape.seconds.size());
      profile.samples.samples.push_back(std::move(shape.sample));
    }
    for (auto& [key, part] : parts_) profile.parts.push_back(std::move(part));
    std::stable_sort(
        profile.parts.begin(), profile.parts.end(), [](const ProfilePart& x, const ProfilePart& y) {
          return std::tuple(x.shapes == 0, -x.time.count()) < std::tuple(y.shapes == 0, -y.time.count());
        });
    return profile;
  }

  const ProfileEvents& events_;
  std::int64_t devices_per_node_;
  std::map<std::pair<std::int32_t, std::string_view>, ProfiledWork>
      calls_;  // with the type that kernels tell
  std::unordered_map<std::int32_t, ProfiledWork> collectives_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_hash_;
  std::vector<TimedShape> shapes_;
  std::map<std::pair<std::string, std::string>, ProfilePart> parts_;
};

Profile kineto_profile(ByteSource& source, const std::string& file, std::int64_t devices_per_node) {
  const ProfileEvents events = read_kineto(source, file);
  if (events.kernels.empty())
    throw InputError(file, "holds no kernels of a GPU: record ProfilerActivity.CUDA as well");
  return SampleMaker(events, devices_per_node).make(file);
}

Profile nsys_profile(const SqliteDatabase& database, std::int64_t devices_per_node) {
  const ProfileEvents events = read_nsys(database);
  return SampleMaker(events, devices_per_node).make(database.file());
}

// The first bytes of a regular file, as many as tell an SQLite database.
bool is_database(const std::string& path) {
  if (!is_regular_file(path)) return false;
  const OpenFile file = open_file(path);
  std::string begin(sqlite_magic.size(), '\0');
  return file && std::fread(begin.data(), 1, begin.size(), file.get()) == begin.size() &&
         begin == sqlite_magic;
}

}  // namespace

Profile read_profile(const std::string& path, std::int64_t devices_per_node) {
  if (path.ends_with(".nsys-rep") || path.ends_with(".qdrep"))
    throw InputError(
        path,
        "is a report of Nsight Systems: `nsys export --type sqlite --include-blobs=true` makes a "
        "database of it, which is read");
  if (is_database(path)) return nsys_profile(SqliteDatabase(path), devices_per_node);
  ByteSource source(path);
  return kineto_profile(source, path, devices_per_node);
}

Profile parse_profile(std::string_view text, const std::string& file, std::int64_t devices_per_node) {
  if (text.starts_with(sqlite_magic)) return nsys_profile(SqliteDatabase(text, file), devices_per_node);
  ByteSource source(text, file);
  return kineto_profile(source, file, devices_per_node);
}

}  // namespace headroom
