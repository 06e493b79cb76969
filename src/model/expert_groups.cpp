#include "headroom/model/expert_groups.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace headroom {
namespace {

// A part of the experts by groups: those that it holds whole, and at its two ends those of which it holds
// some experts.
struct Part {
  double experts = 0;
  double whole = 0;
  std::array<double, 2> some{};  // experts of the part in such a group; 0: there is none
};

Part part_between(double first, double last, double group) {
  const double before = std::floor(first / group);
  const double after = std::ceil(last / group);
  Part part{.experts = last - first};
  if (after - before <= 1) {  // within one group
    if (part.experts < group) {
      part.some[0] = part.experts;
    } else {
      part.whole = 1;
    }
    return part;
  }
  part.some[0] = std::fmod(group - std::fmod(first, group), group);
  part.some[1] = std::fmod(last, group);
  part.whole = std::round((part.experts - part.some[0] - part.some[1]) / group);
  return part;
}

// Returns the probability that none of a token's experts is in the part. Its cases are whether the two groups
// that are partly in the part were met, and how many groups outside the part were. If a group is wholly in
// the part, meeting it means an expert of the part.
double odds_of_none(const ExpertChoice& choice, const Part& part) {
  const double group = choice.experts / choice.groups;
  const double others = choice.groups - part.whole - (part.some[0] > 0 ? 1 : 0) - (part.some[1] > 0 ? 1 : 0);
  const auto counts = static_cast<std::size_t>(std::min(choice.groups_per_token, choice.per_token)) + 1;
  // Index: the two partly held groups that were met, as bits; then the number of other groups met.
  std::array<std::vector<double>, 4> odds;
  odds.fill(std::vector<double>(counts, 0.0));
  odds[0][0] = 1;
  // From many groups to few, so that each result goes to a place that was already used.
  const auto choose = [&](double chosen, std::size_t met, std::size_t beside) {
    const double now = odds[met][beside];
    if (now == 0) return;
    const std::array<bool, 2> met_some{(met & 1U) != 0, (met & 2U) != 0};
    const auto others_met = static_cast<double>(beside);
    const double groups = others_met + (met_some[0] ? 1 : 0) + (met_some[1] ? 1 : 0);
    const bool open = groups < choice.groups_per_token;
    const double left = (open ? choice.experts : choice.groups_per_token * group) - chosen;
    if (!open) {
      const double of_part = (met_some[0] ? part.some[0] : 0) + (met_some[1] ? part.some[1] : 0);
      odds[met][beside] = now * std::max(left - of_part, 0.0) / left;
      return;
    }
    double stay = left - part.experts;
    for (std::size_t side = 0; side < part.some.size(); ++side) {
      if (part.some[side] == 0 || met_some[side]) continue;
      const double of_group = group - part.some[side];
      stay -= of_group;
      odds[met | (std::size_t{1} << side)][beside] += now * of_group / left;
    }
    const double of_others = (others - others_met) * group;
    stay -= of_others;
    if (of_others > 0) odds[met][beside + 1] += now * of_others / left;
    odds[met][beside] = now * std::max(stay, 0.0) / left;
  };
  for (double chosen = 0; chosen < choice.per_token; ++chosen) {
    for (std::size_t met = odds.size(); met-- > 0;) {
      for (std::size_t beside = counts; beside-- > 0;) choose(chosen, met, beside);
    }
  }
  double none = 0;
  for (const std::vector<double>& row : odds) {
    for (const double each : row) none += each;
  }
  return none;
}

}  // namespace

double parts_met(const ExpertChoice& choice, double parts) {
  if (choice.groups_per_token >= choice.groups) {
    double none = 1;  // that a part has none of them
    for (double chosen = 0; chosen < choice.per_token; ++chosen) {
      none *= std::max(0.0, choice.experts - choice.experts / parts - chosen) / (choice.experts - chosen);
    }
    return parts * (1 - none);
  }
  const double size = choice.experts / parts;
  const double group = choice.experts / choice.groups;
  // Parts repeat where their edges coincide with those of groups. All parts are alike if one size divides the
  // other.
  const bool alike = std::fmod(size, group) == 0 || std::fmod(group, size) == 0;
  if (alike) return parts * (1 - odds_of_none(choice, part_between(0, size, group)));
  double met = 0;
  for (double i = 0; i < parts; ++i) {
    met += 1 - odds_of_none(choice, part_between(i * size, std::min((i + 1) * size, choice.experts), group));
  }
  return met;
}

}  // namespace headroom
