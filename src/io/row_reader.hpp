// One JSON object on a line, as the rows of a part file are: members are taken one by one, each may be left out, and none
// may be left over.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/strict_json.hpp"

namespace headroom {

class RowReader {
 public:
  // `where` names the row in problems. Throws InputError where the text is no JSON object.
  RowReader(const std::string& text, std::string where);

  // The member of this name, which is then no longer there; none where it is left out. Throw InputError where it is of
  // another type.
  std::optional<Json> take_object(std::string_view key);
  std::optional<double> take_number(std::string_view key);
  std::optional<std::string> take_text(std::string_view key);

  // Throws InputError where a member was not taken.
  void finish() const;

 private:
  std::optional<Json> take(std::string_view key, const char* rule, bool (*allows)(const Json&));

  std::string where_;
  Json json_;
};

}  // namespace headroom
