// The cells of a measured table, without its header.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace headroom::tests {

inline std::vector<std::vector<std::string>> csv_rows(const std::string& path) {
  std::ifstream lines(path);
  std::string line;
  std::getline(lines, line);
  std::vector<std::vector<std::string>> rows;
  while (std::getline(lines, line)) {
    std::istringstream all(line);
    auto& cells = rows.emplace_back();
    for (std::string cell; std::getline(all, cell, ',');) cells.push_back(cell);
  }
  return rows;
}

}  // namespace headroom::tests
