// The points of a sweep as requests: a varied field is a flag put behind those that all points have, and read by what
// reads the flag.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/capacity_flags.hpp"
#include "cli/request_flags.hpp"
#include "cli/space_flags.hpp"
#include "cli/system_flags.hpp"
#include "headroom/answer/sweep.hpp"

namespace headroom::cli {

struct PointFlags {
  RequestFlags request;
  SystemFlags system;
  SpaceFlags space;  // of a search
  CapacityFlags capacity;
  bool exact = false;  // of a search
};

// The flags of estimate, or those of plan that say what is searched.
void add_point_flags(Command command, SweepKind kind, PointFlags& flags);

// What a varied field changes.
enum class FieldKind : std::uint8_t {
  model_name,
  model_field,
  system_name,
  system_field,
  software_name,
  software_field,
  training,  // a flag of what a training run takes
  flag
};

struct Field {
  FieldKind kind = FieldKind::flag;
  std::string prefix;  // of its argument: "--sequence=", "--set-system=memory=", "" for the model
  friend bool operator==(const Field&, const Field&) = default;
};

// The fields of these names: a flag's long name with underscores, or a field of a model, a system or a stack. Throws
// InputError for names that are none, suggesting the nearest.
std::vector<Field> find_fields(SweepKind kind, const std::vector<std::string>& names);

// What a file or name was last read as, so that reading the same again costs nothing.
template <class T>
class LastRead {
 public:
  using Read = T (*)(const std::string& source, const std::vector<std::string>& overrides);

  const T& read(const std::string& source, const std::vector<std::string>& overrides, Read read_file) {
    if (!value_ || source != source_ || overrides != overrides_) {
      value_.reset();
      value_ = read_file(source, overrides);
      source_ = source;
      overrides_ = overrides;
    }
    return *value_;
  }

 private:
  std::string source_;
  std::vector<std::string> overrides_;
  std::optional<T> value_;
};

// Reads points one after the other, on one thread. A file that was read for the point before is kept.
class PointReader {
 public:
  explicit PointReader(SweepKind kind);

  // Throws InputError with what is wrong with the arguments.
  PointQuestion read(const std::vector<std::string>& arguments);

 private:
  SweepKind kind_;
  std::unique_ptr<PointFlags> flags_ = std::make_unique<PointFlags>();
  ArgumentReader reader_;  // bound to the flags
  LastRead<Transformer> model_;
  LastRead<System> system_;
  LastRead<Software> software_;
};

}  // namespace headroom::cli
