// What the program prints, for tests that compare it with the library's answers.
#pragma once

#include <array>
#include <cstdio>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace headroom {

using Json = nlohmann::json;

// What `headroom` prints; whatever its exit code, since that says whether something fits.
inline std::string printed_by(const std::string& arguments) {
  FILE* const pipe = popen((HEADROOM_CLI " " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> buffer{};
  for (std::size_t read = 0; (read = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    text.append(buffer.data(), read);
  }
  pclose(pipe);
  return text;
}

inline Json json_of(const std::string& arguments) {
  const std::string text = printed_by(arguments + " --format json");
  const Json json = Json::parse(text, nullptr, false);
  INFO(text);
  REQUIRE(!json.is_discarded());
  return json;
}

}  // namespace headroom
