#include "cli/notes.hpp"

#include <fmt/format.h>

#include "cli/console.hpp"
#include "headroom/io/remarks.hpp"

namespace headroom::cli {

void tell_once(const std::vector<std::string>& sentences) {
  for (const std::string& sentence : sentences) {
    if (console().said.insert(sentence).second) say(fmt::format("note: {}", sentence));
  }
}

void note_reading(std::string_view kind, const std::string& source,
                  const std::vector<std::string>& overrides) {
  tell_once(remarks_on(kind, source, overrides));
}

}  // namespace headroom::cli
