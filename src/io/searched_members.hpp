// The fields of a strategy that a search sets, as members of a JSON object by their names: in parts and in measurements.
#pragma once

#include <type_traits>
#include <variant>
#include <vector>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "object_reader.hpp"

namespace headroom {

// Left out: an object that has a list says so itself, and no search sets how experts are wanted,
// what is offloaded or which modules stay at 16 bits.
template <class T>
inline constexpr bool is_left_out =
    std::is_same_v<T, MoeImbalance> || std::is_same_v<T, Fraction> || std::is_same_v<T, PrecisionModules>;
template <class T>
inline constexpr bool is_left_out<std::vector<T>> = true;

// all: every member is written and must be there. told: what every strategy is told by must be there, and the others are
// as without their flags where they are not.
enum class SearchedMembers : std::uint8_t { all, told };

// `fields` is an ObjectReader or an ObjectWriter.
constexpr auto searched_members = [](auto& fields, auto& strategy, SearchedMembers members) {
  // No search looks for ops.
  constexpr OneOf policies{RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::selective_op,
                           RecomputePolicy::full};
  const auto member = [&](const StrategyField& field, auto& value) {
    const auto take = [&](const auto&... rule) {
      if (members == SearchedMembers::all || always_told(field)) {
        fields.required(field.name, value, rule...);
      } else {
        fields.optional(field.name, value, rule...);
      }
    };
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::int64_t>) {
      take(Range{least_in_files(field), most_count});
    } else if constexpr (std::is_same_v<Value, RecomputePolicy>) {
      take(policies);
    } else if constexpr (!is_left_out<Value>) {
      take();
    }
  };
  Workload none;
  for (const StrategyField& field : strategy_fields) {
    if (!field.searched) continue;
    std::visit(
        [&](const auto& it) {
          if constexpr (std::is_const_v<std::remove_reference_t<decltype(strategy)>>) {
            member(field, it.in(strategy, none));
          } else {
            member(field, it.of(strategy, none));
          }
        },
        field.member);
  }
};

}  // namespace headroom
