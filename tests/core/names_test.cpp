#include "headroom/core/names.hpp"

#include <cstddef>
#include <set>
#include <string_view>

#include <doctest/doctest.h>

#include "headroom/parallel/collectives.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {
namespace {

// Every spelling leads to its enumerator and back, and no two are the same.
template <class E>
constexpr bool round_trips() {
  std::size_t position = 0;
  for (const auto& [enumerator, text] : spellings<E>) {
    if (static_cast<std::size_t>(enumerator) != position++) return false;
    if (name_of(enumerator) != text || from_name<E>(text) != enumerator) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("names: every enumerator is spelled once, in the order of declaration") {
  static_assert(round_trips<Dtype>());
  static_assert(round_trips<Activation>());
  static_assert(round_trips<Normalization>());
  static_assert(round_trips<Positions>());
  static_assert(round_trips<AttentionKernel>());
  static_assert(round_trips<Fusion>());
  static_assert(round_trips<NormKernel>());
  static_assert(round_trips<RotaryKernel>());
  static_assert(round_trips<CrossEntropy>());
  static_assert(round_trips<QkvLinear>());
  static_assert(round_trips<KvSharing>());
  static_assert(round_trips<AttentionLayout>());
  static_assert(round_trips<Placement>());
  static_assert(round_trips<OpKind>());
  static_assert(round_trips<Detail>());
  static_assert(round_trips<Origin>());
  static_assert(round_trips<CollectiveKind>());
  static_assert(round_trips<Conjugate>());
  static_assert(round_trips<RecomputePolicy>());
  static_assert(round_trips<RecomputeMethod>());
  static_assert(round_trips<ScheduleKind>());
  static_assert(round_trips<Verdict>());
}

TEST_CASE("names: the enumerator of 1f1b is spelled as the field spells it") {
  static_assert(from_name<ScheduleKind>("1f1b") == ScheduleKind::one_forward_one_backward);
  static_assert(from_name<ScheduleKind>("zb-h1") == ScheduleKind::zero_bubble_h1);
  static_assert(from_name<ScheduleKind>("zb1p") == ScheduleKind::zero_bubble_h1);
  static_assert(!from_name<ScheduleKind>("zb"));
}

TEST_CASE("names: another word is no enumerator") {
  static_assert(!from_name<RecomputePolicy>("Selective").has_value());
  static_assert(!from_name<RecomputePolicy>("").has_value());
}

}  // namespace headroom
