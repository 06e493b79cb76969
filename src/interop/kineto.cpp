#include "interop/kineto.hpp"

#include <istream>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/error.hpp"
#include "interop/kineto_event.hpp"
#include "interop/profile_work.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

constexpr std::size_t most_events = 20'000'000;  // of which something is kept: a gigabyte
constexpr std::size_t largest_event = std::size_t{64} << 20;
constexpr std::string_view event_list = "traceEvents";

class EventReader {
 public:
  explicit EventReader(const std::string& file) : file_(file) {}

  void read(const Json& event) {
    if (text_at(event, "ph") != "X") return;
    const std::string category = text_at(event, "cat");
    const Json* args = member(event, "args");
    if (args == nullptr) return;
    const auto begin = number_at(event, "ts");
    const auto duration = number_at(event, "dur");
    if (!begin || !duration) return;
    if (category == "kernel" || category == "Kernel") {
      read_kernel(event, *args, *duration);
    } else if (category == "cpu_op" || category == "Operator") {
      read_operator(event, *args, *begin, *begin + *duration);
    } else if (category == "cuda_runtime" || category == "cuda_driver" || category == "Runtime") {
      if (text_at(event, "name").find("Launch") == std::string::npos) return;
      const std::int64_t correlation = count_at(*args, "correlation", -1);
      if (correlation >= 0) events_.launches[correlation] = {thread_of(event), *begin};
    } else {
      return;
    }
    if (++kept_ > most_events)
      throw InputError(file_,
                       fmt::format("holds more than {} million kernels, launches and operators: record "
                                   "fewer steps",
                                   most_events / 1'000'000));
  }

  void read_member(const std::string& key, const Json& value) {
    const auto add = [&](const char* what, const std::string& version) {
      if (version.empty()) return;
      events_.environment += fmt::format("{}{} {}", events_.environment.empty() ? "" : ", ", what, version);
    };
    if (key == "deviceProperties" && value.is_array()) devices_ = value;
    if (key == "distributedInfo") add("NCCL", printable(text_at(value, "nccl_version")));
    if (key == "cuda_runtime_version" && value.is_number_integer())
      add("CUDA runtime", std::to_string(value.get<std::int64_t>()));
    if (key == "cuda_driver_version" && value.is_number_integer())
      add("driver for CUDA", std::to_string(value.get<std::int64_t>()));
  }

  ProfileEvents take() {
    for (const Json& device : devices_) {
      if (count_at(device, "id", -1) == device_) events_.device = text_at(device, "name");
    }
    return std::move(events_);
  }

 private:
  std::int32_t name_of_event(const Json& event) {
    const auto [place, fresh] =
        names_.try_emplace(text_at(event, "name"), static_cast<std::int32_t>(events_.names.size()));
    if (fresh) events_.names.push_back(place->first);
    return place->second;
  }

  std::int32_t thread_of(const Json& event) {
    const Json* process = member(event, "pid");
    const Json* thread = member(event, "tid");
    const std::string key = fmt::format("{} {}", process != nullptr ? process->dump() : "",
                                        thread != nullptr ? thread->dump() : "");
    return threads_.try_emplace(key, static_cast<std::int32_t>(threads_.size())).first->second;
  }

  void read_kernel(const Json& event, const Json& args, double duration) {
    ProfiledKernel kernel{.correlation = count_at(args, "correlation", -1),
                          .name = name_of_event(event),
                          .microseconds = duration};
    if (events_.kernels.empty()) device_ = count_at(args, "device", -1);
    if (std::optional<CollectiveCall> recorded = collective_call(args)) {
      CollectiveCall& call = *recorded;
      const std::string key =
          fmt::format("{} {} {} {} {} {} {}", call.name, call.type, call.elements_in, call.elements_out,
                      call.ranks, fmt::join(call.first_ranks, ","), call.uneven);
      const auto [place, fresh] =
          collectives_.try_emplace(key, static_cast<std::int32_t>(events_.collectives.size()));
      if (fresh) events_.collectives.push_back(std::move(call));
      kernel.collective = place->second;
    }
    events_.kernels.push_back(kernel);
  }

  void read_operator(const Json& event, const Json& args, double begin, double end) {
    ProfiledOperator it{.thread = thread_of(event), .name = name_of_event(event), .begin = begin, .end = end};
    const std::string& name = events_.names[static_cast<std::size_t>(it.name)];
    if (is_read(name) && member(args, "Input Dims") != nullptr) it.call = call_of(name, args);
    events_.operators.push_back(it);
  }

  std::int32_t call_of(const std::string& name, const Json& args) {
    std::string key = name;
    for (const char* what : {"Input Dims", "Input type", "Concrete Inputs"}) {
      if (const Json* value = member(args, what))
        key += value->dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    const auto [place, fresh] = calls_.try_emplace(key, static_cast<std::int32_t>(events_.calls.size()));
    if (fresh) events_.calls.push_back(operator_call(name, args));
    return place->second;
  }

  const std::string& file_;
  ProfileEvents events_;
  Json devices_ = Json::array();
  std::int64_t device_ = -1;  // of the kernels
  std::size_t kept_ = 0;
  std::unordered_map<std::string, std::int32_t> names_, threads_, calls_, collectives_;
};

// Builds one event, or one other member of the file, at a time and hands it on.
class EventParser final : public nlohmann::json_sax<Json> {
 public:
  EventParser(ByteSource& source, const std::string& file, EventReader& reader)
      : source_(source), file_(file), reader_(reader) {
    source_.allow(largest_event);
  }

  [[nodiscard]] bool found_events() const { return found_; }

  bool null() override { return place(nullptr); }
  bool boolean(bool value) override { return place(value); }
  bool number_integer(number_integer_t value) override { return place(value); }
  bool number_unsigned(number_unsigned_t value) override { return place(value); }
  bool number_float(number_float_t value, const string_t&) override { return place(value); }
  bool string(string_t& value) override { return place(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // only in the binary formats

  bool start_object(std::size_t) override {
    if (depth_++ > 0) return open(Json::object());
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0) refuse_other();
    ++depth_;
    if (depth_ == 2 && key_ == event_list) {
      found_ = true;
      return true;
    }
    return open(Json::array());
  }
  bool end_object() override { return close(); }
  bool end_array() override {
    if (depth_ == 2 && open_.empty()) {  // of the events
      --depth_;
      return true;
    }
    return close();
  }

  bool key(string_t& key) override {
    if (depth_ == 1) {
      key_ = key;
    } else {
      keys_.back() = key;
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    const std::string_view message(exception.what());
    if (depth_ == 0 && position <= 1) refuse_other();
    if (message.find("unexpected end of input") != std::string_view::npos ||
        message.find("missing closing quote") != std::string_view::npos)
      throw InputError(
          file_, fmt::format("is cut off after {} event{}: the profiler did not finish writing it", count_,
                             count_ == 1 ? "" : "s"));
    if (message.find("out_of_range") != std::string_view::npos)
      throw InputError(file_, fmt::format("has a number out of range after event {}", count_));
    throw InputError(file_, fmt::format("is not JSON: byte {}, after event {}", position, count_));
  }

 private:
  [[noreturn]] void refuse_other() const {
    throw InputError(
        file_,
        "is no profile: a JSON object with \"traceEvents\", as PyTorch's profiler writes it, may "
        "be gzipped, or a database that `nsys export --type sqlite` writes");
  }

  bool in_events() const { return key_ == event_list; }

  bool place(Json value) {
    if (depth_ == 0) refuse_other();
    if (open_.empty()) {
      value_ = std::move(value);
      return hand_on();
    }
    Json* const node = open_.back();
    if (node->is_array()) {
      node->push_back(std::move(value));
    } else {
      (*node)[keys_.back()] = std::move(value);
    }
    return true;
  }

  bool open(Json container) {
    if (depth_ > deepest_nesting)
      throw InputError(file_, fmt::format("is nested deeper than {} levels", deepest_nesting));
    if (open_.empty()) {
      value_ = std::move(container);
      open_.push_back(&value_);
    } else {
      Json* const node = open_.back();
      Json* inner = nullptr;
      if (node->is_array()) {
        inner = &node->emplace_back(std::move(container));
      } else {
        inner = &((*node)[keys_.back()] = std::move(container));
      }
      open_.push_back(inner);
    }
    keys_.emplace_back();
    return true;
  }

  bool close() {
    --depth_;
    if (open_.empty()) return true;  // the file's object
    open_.pop_back();
    keys_.pop_back();
    return open_.empty() ? hand_on() : true;
  }

  bool hand_on() {
    if (in_events() && depth_ == 2) {
      ++count_;
      reader_.read(value_);
    } else {
      reader_.read_member(key_, value_);
    }
    source_.allow(largest_event);
    return true;
  }

  ByteSource& source_;
  const std::string& file_;
  EventReader& reader_;
  std::size_t depth_ = 0;
  std::size_t count_ = 0;
  bool found_ = false;
  std::string key_;  // of the file's object
  Json value_;
  std::vector<Json*> open_;
  std::vector<std::string> keys_;
};

}  // namespace

ProfileEvents read_kineto(ByteSource& source, const std::string& file) {
  EventReader reader(file);
  EventParser parser(source, file, reader);
  std::istream stream(&source);
  Json::sax_parse(stream, &parser);
  if (!parser.found_events()) throw InputError(file, "is no profile: it has no list \"traceEvents\"");
  return reader.take();
}

}  // namespace headroom
