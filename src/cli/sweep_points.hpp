// The points of a sweep as requests: a varied field is a flag put behind those that all points have, and read by what
// reads the flag.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/request_flags.hpp"
#include "cli/space_flags.hpp"
#include "cli/system_flags.hpp"
#include "headroom/report/sweep.hpp"

namespace headroom::cli {

struct PointFlags {
  RequestFlags request;
  SystemFlags system;
  SpaceFlags space;  // of a search
};

// The flags of estimate, or those of plan that say what is searched.
void add_point_flags(CLI::App& command, SweepKind kind, PointFlags& flags);

// What a varied field changes.
enum class FieldKind : std::uint8_t {
  model_name,
  model_field,
  system_name,
  system_field,
  software_name,
  flag
};

struct Field {
  FieldKind kind = FieldKind::flag;
  std::string
      prefix;  // of the argument that sets it: "--sequence=", "--set-system=memory=", "" for the model
  friend bool operator==(const Field&, const Field&) = default;
};

// The fields of these names: a flag's long name with underscores, a model's field or a system's field. Throws InputError
// for names that are none, suggesting the nearest.
std::vector<Field> find_fields(SweepKind kind, const std::vector<std::string>& names);

struct PointRequest {
  Request request;
  Space space;
};

// Reads points one after the other, on one thread. A model or system that is the one of the point before is kept.
class PointReader {
 public:
  explicit PointReader(SweepKind kind);

  // Throws InputError with what is wrong with the arguments.
  PointRequest read(const std::vector<std::string>& arguments);

  // What there is to say about a point, in any case.
  SweepRow row(const std::vector<std::string>& arguments);

 private:
  SweepKind kind_;
  std::unique_ptr<PointFlags> flags_ = std::make_unique<PointFlags>();
  std::unique_ptr<CLI::App> parser_ = std::make_unique<CLI::App>();  // bound to the flags
  std::pair<std::vector<std::string>, Transformer> model_;
  std::pair<std::vector<std::string>, System> system_;
  std::pair<std::string, Software> software_;
};

}  // namespace headroom::cli
