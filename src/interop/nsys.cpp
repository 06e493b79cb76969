#include "interop/nsys.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/error.hpp"
#include "interop/nvtx_range.hpp"
#include "interop/profile_work.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

constexpr std::size_t most_nsys_events = 20'000'000;  // of which something is kept: a gigabyte
constexpr std::int64_t push_pop_range = 59;           // an event's type [nsys, ENUM_NSYS_EVENT_TYPE]
constexpr std::int64_t device_to_device = 8;          // a copy's kind [CUPTI, CUpti_ActivityMemcpyKind]
constexpr std::int64_t default_domain = 0;
constexpr std::uint64_t most_ranks_of_a_group = 1 << 20;
constexpr std::uint64_t most_message_bytes = std::uint64_t{1} << 48;

// Names are of string ids, process and thread are packed into one number of which the process is all but the last 24 bits
// [nsys, "Serialized process and thread identifiers"].
constexpr int thread_bits = 24;

class NsysReader {
 public:
  explicit NsysReader(const SqliteDatabase& database) : database_(database) {}

  ProfileEvents read() {
    if (database_.columns_of("StringIds").empty())
      throw InputError(
          database_.file(),
          "is a database and no export of Nsight Systems: it has no table StringIds, which `nsys "
          "export --type sqlite` writes");
    read_kernels();
    if (events_.kernels.empty())
      throw InputError(database_.file(),
                       "holds no kernels of a GPU: record with `nsys profile --trace=cuda,nvtx`");
    read_copies();
    read_launches();
    read_ranges();
    finish_collectives();
    read_device();
    return std::move(events_);
  }

 private:
  // A call of NCCL, whose ranks are known once all communicators are.
  struct NcclCall {
    std::string name;
    std::uint64_t communicator = 0;
    std::uint64_t bytes = 0;
    friend bool operator<(const NcclCall& x, const NcclCall& y) {
      return std::tie(x.name, x.communicator, x.bytes) < std::tie(y.name, y.communicator, y.bytes);
    }
  };
  struct Communicator {
    std::uint64_t size = 0;
    std::set<std::uint64_t> ranks;  // that were seen
  };

  // "t.start, t.end, ..." of a table's columns, in quotes; NULL for those that need not be there and are not.
  std::string select(const std::string& table, std::initializer_list<const char*> needed,
                     std::initializer_list<const char*> optional = {}) const {
    const std::vector<std::string> columns = database_.columns_of(table);
    const auto is_there = [&](const char* name) {
      return std::find(columns.begin(), columns.end(), name) != columns.end();
    };
    std::string list;
    const auto add = [&](const std::string& term) { list += (list.empty() ? "" : ", ") + term; };
    for (const char* name : needed) {
      if (!is_there(name))
        throw InputError(
            database_.file(),
            fmt::format("has no column {} in its table {}: nsys of 2021 and later writes it", name, table));
      add(fmt::format("t.\"{}\"", name));
    }
    for (const char* name : optional) add(is_there(name) ? fmt::format("t.\"{}\"", name) : "NULL");
    return list;
  }

  void count() {
    if (++kept_ > most_nsys_events)
      throw InputError(database_.file(),
                       fmt::format("holds more than {} million kernels, launches and ranges: "
                                   "record fewer steps",
                                   most_nsys_events / 1'000'000));
  }

  template <class Map, class Key>
  static std::int32_t place_in(Map& map, const Key& key) {
    return map.try_emplace(key, static_cast<std::int32_t>(map.size())).first->second;
  }

  std::int32_t name_of(std::string_view name) {
    const auto [place, fresh] =
        names_.try_emplace(std::string(name), static_cast<std::int32_t>(events_.names.size()));
    if (fresh) events_.names.push_back(place->first);
    return place->second;
  }

  // Of kernels and launches of one process, since each counts its own.
  std::int64_t correlation_of(std::int64_t global, std::int64_t correlation) {
    const std::int64_t process = place_in(processes_, global >> thread_bits);
    return process << 32 | (correlation & 0xffffffff);
  }

  // Microseconds of a span in nanoseconds; nothing where it ends before it begins.
  static std::optional<double> span_of(std::optional<std::int64_t> start, std::optional<std::int64_t> end) {
    if (!start || !end || *start < 0 || *end < *start) return std::nullopt;
    return static_cast<double>(*end - *start) / 1e3;
  }

  void read_kernels() {
    if (database_.columns_of("CUPTI_ACTIVITY_KIND_KERNEL").empty()) return;
    const std::string columns =
        select("CUPTI_ACTIVITY_KIND_KERNEL", {"start", "end", "correlationId", "globalPid", "demangledName"},
               {"deviceId"});
    SqliteRows rows =
        database_.rows("SELECT " + columns +
                       ", s.value FROM CUPTI_ACTIVITY_KIND_KERNEL t LEFT JOIN StringIds s ON s.id = "
                       "t.\"demangledName\"");
    while (rows.next()) {
      const auto span = span_of(rows.integer(0), rows.integer(1));
      if (!span) continue;
      count();
      if (events_.kernels.empty()) device_ = rows.integer(5).value_or(0);
      const std::int64_t correlation =
          correlation_of(rows.integer(3).value_or(0), rows.integer(2).value_or(-1));
      launched_.insert(correlation);
      events_.kernels.push_back(
          {.correlation = correlation, .name = name_of(rows.text(6)), .microseconds = *span});
    }
  }

  void read_copies() {
    if (database_.columns_of("CUPTI_ACTIVITY_KIND_MEMCPY").empty()) return;
    SqliteRows rows = database_.rows(
        "SELECT " + select("CUPTI_ACTIVITY_KIND_MEMCPY", {"start", "end", "bytes", "copyKind"}) +
        " FROM CUPTI_ACTIVITY_KIND_MEMCPY t");
    while (rows.next()) {
      const auto span = span_of(rows.integer(0), rows.integer(1));
      const std::int64_t bytes = rows.integer(2).value_or(0);
      if (!span || bytes <= 0 || rows.integer(3) != device_to_device) continue;
      count();
      events_.kernels.push_back(
          {.name = name_of("memcpy"), .microseconds = *span, .copied_bytes = static_cast<double>(bytes)});
    }
  }

  void read_launches() {
    if (database_.columns_of("CUPTI_ACTIVITY_KIND_RUNTIME").empty()) return;
    SqliteRows rows = database_.rows(
        "SELECT " + select("CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "globalTid", "correlationId"}) +
        " FROM CUPTI_ACTIVITY_KIND_RUNTIME t");
    while (rows.next()) {
      const auto start = rows.integer(0);
      const auto thread = rows.integer(1);
      const auto correlation = rows.integer(2);
      if (!start || !thread || !correlation) continue;
      const std::int64_t key = correlation_of(*thread, *correlation);
      if (!launched_.contains(key)) continue;
      count();
      events_.launches[key] = {place_in(threads_, *thread), static_cast<double>(*start) / 1e3};
    }
  }

  PayloadSchemas read_schemas() const {
    PayloadSchemas schemas;
    if (database_.columns_of("NVTX_PAYLOAD_SCHEMA_ENTRIES").empty()) return schemas;
    SqliteRows rows = database_.rows(
        "SELECT " +
        select("NVTX_PAYLOAD_SCHEMA_ENTRIES", {"domainId", "schemaId", "type", "name"}, {"offset"}) +
        " FROM NVTX_PAYLOAD_SCHEMA_ENTRIES t");
    std::size_t fields = 0;
    while (rows.next() && ++fields < 100'000) {
      schemas[{rows.integer(0).value_or(0), rows.integer(1).value_or(0)}].push_back(
          {.name = std::string(rows.text(3)),
           .type = rows.integer(2).value_or(0),
           .offset = rows.integer(4).value_or(0)});
    }
    return schemas;
  }

  void read_ranges() {
    if (database_.columns_of("NVTX_EVENTS").empty()) return;
    const PayloadSchemas schemas = read_schemas();
    const std::string columns = select("NVTX_EVENTS", {"start", "end", "eventType", "globalTid", "text"},
                                       {"textId", "domainId", "binaryData"});
    const std::string text = columns.find("\"textId\"") == std::string::npos ? "NULL" : "t.\"textId\"";
    SqliteRows rows = database_.rows("SELECT " + columns +
                                     ", s.value FROM NVTX_EVENTS t LEFT JOIN StringIds s ON s.id = " + text);
    while (rows.next()) {
      const auto start = rows.integer(0);
      const auto end = rows.integer(1);
      const auto thread = rows.integer(3);
      if (!span_of(start, end) || rows.integer(2) != push_pop_range || !thread) continue;
      const std::string_view own = rows.text(4);
      ProfiledOperator it{.thread = place_in(threads_, *thread),
                          .begin = static_cast<double>(*start) / 1e3,
                          .end = static_cast<double>(*end) / 1e3};
      const NvtxText marked = nvtx_text(own.empty() ? rows.text(8) : own);
      const NcclPayload payload = nccl_payload(rows.bytes(7), schemas);
      if (payload.communicator && payload.ranks && payload.rank) {
        Communicator& group = communicators_[*payload.communicator];
        group.size = std::max(group.size, std::min(*payload.ranks, most_ranks_of_a_group));
        group.ranks.insert(*payload.rank);
      }
      const bool is_nccl = payload.communicator && payload.message_bytes;
      // Ranges of other libraries lie within those of operators, and tell no sizes.
      if (!is_nccl && rows.integer(6).value_or(default_domain) != default_domain) continue;
      count();
      it.name = name_of(marked.name);
      if (is_nccl) {
        it.collective =
            place_in(calls_of_nccl_, NcclCall{.name = std::string(marked.name),
                                              .communicator = *payload.communicator,
                                              .bytes = std::min(*payload.message_bytes, most_message_bytes)});
      } else if (is_read(marked.name) && !marked.sizes.empty()) {
        it.call = call_of(marked);
      }
      events_.operators.push_back(it);
    }
  }

  std::int32_t call_of(const NvtxText& marked) {
    const auto [place, fresh] = calls_.try_emplace(fmt::format("{} {}", marked.name, marked.sizes),
                                                   static_cast<std::int32_t>(events_.calls.size()));
    if (fresh)
      events_.calls.push_back(
          {.name = std::string(marked.name), .sizes = sizes_in(marked.sizes), .types = {}, .values = {}});
    return place->second;
  }

  // Messages are what one rank sends, but of an all-reduce the whole tensor. A group lies within a node where the database,
  // which is of one machine, has seen each of its ranks come up.
  void finish_collectives() {
    events_.collectives.resize(calls_of_nccl_.size());
    for (const auto& [call, place] : calls_of_nccl_) {
      const auto found = communicators_.find(call.communicator);
      const Communicator group = found == communicators_.end() ? Communicator{} : found->second;
      const bool whole = collective_named(call.name) == SampleKind::all_reduce;
      const auto bytes = static_cast<std::int64_t>(call.bytes);
      const auto ranks = static_cast<std::int64_t>(group.size);
      const std::int64_t most = std::numeric_limits<std::int64_t>::max() / std::max<std::int64_t>(ranks, 1);
      events_.collectives[static_cast<std::size_t>(place)] = {
          .name = call.name,
          .type = "Byte",
          .elements_in = whole ? bytes : std::min(bytes, most) * ranks,
          .ranks = ranks,
          .nodes = ranks > 0 && group.ranks.size() == group.size ? 1 : 0};
    }
  }

  void read_device() {
    if (!database_.columns_of("TARGET_INFO_GPU").empty()) {
      SqliteRows rows = database_.rows("SELECT " + select("TARGET_INFO_GPU", {"id", "name"}, {"clockRate"}) +
                                       " FROM TARGET_INFO_GPU t");
      while (rows.next()) {
        if (!events_.device.empty() && rows.integer(0) != device_) continue;
        events_.device = printable(rows.text(1));
        const std::int64_t hertz = rows.integer(2).value_or(0);
        events_.environment = hertz > 0 ? fmt::format("GPU clock {} MHz", hertz / 1'000'000) : "";
      }
    }
    if (database_.columns_of("META_DATA_EXPORT").empty()) return;
    SqliteRows rows = database_.rows("SELECT " + select("META_DATA_EXPORT", {"name", "value"}) +
                                     " FROM META_DATA_EXPORT t");
    while (rows.next()) {
      if (rows.text(0) != "EXPORT_PRODUCT_VERSION") continue;
      events_.environment += fmt::format("{}Nsight Systems {}", events_.environment.empty() ? "" : ", ",
                                         printable(rows.text(1)));
      return;
    }
  }

  const SqliteDatabase& database_;
  ProfileEvents events_;
  std::int64_t device_ = 0;  // of the first kernel
  std::size_t kept_ = 0;
  std::unordered_map<std::string, std::int32_t> names_, calls_;
  std::unordered_map<std::int64_t, std::int32_t> processes_, threads_;
  std::unordered_set<std::int64_t> launched_;
  std::map<NcclCall, std::int32_t> calls_of_nccl_;
  std::map<std::uint64_t, Communicator> communicators_;
};

}  // namespace

ProfileEvents read_nsys(const SqliteDatabase& database) { return NsysReader(database).read(); }

}  // namespace headroom
