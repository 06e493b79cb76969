// Arithmetic and conversions of counts, which are std::int64_t.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace headroom {

// Largest count of anything: GPUs, layers, sequences, tokens of a sequence.
inline constexpr std::int64_t most_count = std::numeric_limits<std::int32_t>::max();

// Returns the count as an index into a container. Expects no negative count.
constexpr std::size_t index(std::int64_t count) { return static_cast<std::size_t>(count); }
template <class Enumerator>
requires std::is_enum_v<Enumerator>
constexpr std::size_t index(Enumerator enumerator) { return static_cast<std::size_t>(enumerator); }

// Returns the count as a double, exact up to 2^53.
constexpr double real(std::int64_t count) { return static_cast<double>(count); }

// Returns x / y, rounded up. Expects no negative x and a positive y.
constexpr std::int64_t ceiling(std::int64_t x, std::int64_t y) { return x / y + (x % y > 0 ? 1 : 0); }

// Returns the smallest multiple of `unit` that is at least `value`.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) { return ceiling(value, unit) * unit; }

// Returns the divisors of a count, ascending. Expects a count of at least 1.
std::vector<std::int64_t> divisors(std::int64_t whole);

}  // namespace headroom
