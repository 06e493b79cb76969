#include "headroom/io/remarks.hpp"

#include "document.hpp"

namespace headroom {

std::vector<std::string> remarks_on(std::string_view kind, const std::string& source) {
  std::vector<std::string> remarks;
  if (std::string name = how_read(source, kind); !name.empty()) remarks.push_back(std::move(name));
  return remarks;
}

}  // namespace headroom
