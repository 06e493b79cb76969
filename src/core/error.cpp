#include "headroom/core/error.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace headroom {
namespace {

std::string one_line_each(const std::vector<Problem>& problems) {
  std::string text;
  for (const auto& [where, rule] : problems) {
    if (!text.empty()) text += '\n';
    text += where.empty() ? rule : where + ": " + rule;
  }
  return text;
}

std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t substituted = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

InputError::InputError(std::vector<Problem> problems)
    : std::runtime_error(one_line_each(problems)), problems_(std::move(problems)) {}

InputError::InputError(std::string where, std::string rule)
    : InputError(std::vector<Problem>{{std::move(where), std::move(rule)}}) {}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  constexpr std::size_t longest_worth_comparing = 64;
  if (word.size() > longest_worth_comparing) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string_view found = nearest(word, candidates);
  return found.empty() ? std::string() : " (did you mean '" + std::string(found) + "'?)";
}

}  // namespace headroom
