// Access to one member of a strategy or of its workload, for tables of their fields.
#pragma once

#include <type_traits>
#include <utility>

#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Reaches one member of a strategy or of its workload.
template <class T>
struct Member {
  T& (*of)(Strategy&, Workload&);
  const T& (*in)(const Strategy&, const Workload&);
};

namespace member_path {

template <auto First, auto... Rest>
constexpr auto& follow(auto& strategy, auto& workload) {
  if constexpr (requires { strategy.*First; }) {
    return ((strategy.*First).*....*Rest);
  } else {
    return ((workload.*First).*....*Rest);
  }
}

}  // namespace member_path

// Returns the member at the end of a path of pointers to members: member<&Strategy::recompute,
// &Recomputation::layers>().
template <auto... Path>
constexpr auto member() {
  using T = std::remove_reference_t<decltype(member_path::follow<Path...>(std::declval<Strategy&>(),
                                                                          std::declval<Workload&>()))>;
  return Member<T>{[](Strategy& strategy, Workload& workload) -> T& {
                     return member_path::follow<Path...>(strategy, workload);
                   },
                   [](const Strategy& strategy, const Workload& workload) -> const T& {
                     return member_path::follow<Path...>(strategy, workload);
                   }};
}

}  // namespace headroom
