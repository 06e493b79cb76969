#include "cli/notes.hpp"

#include <cstdio>
#include <set>

#include <fmt/format.h>

#include "headroom/io/remarks.hpp"

namespace headroom::cli {

void tell_once(const std::vector<std::string>& sentences) {
  static std::set<std::string> said;
  for (const std::string& sentence : sentences) {
    if (said.insert(sentence).second) fmt::print(stderr, "headroom: note: {}\n", sentence);
  }
}

void note_reading(std::string_view kind, const std::string& source,
                  const std::vector<std::string>& overrides) {
  tell_once(remarks_on(kind, source, overrides));
}

}  // namespace headroom::cli
