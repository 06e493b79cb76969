// std::from_chars of a double, which some standard libraries lack (libc++ before 20).
#pragma once

#include <charconv>

namespace headroom {

std::from_chars_result decimal_from_chars(const char* first, const char* last, double& value);

namespace detail {

// By std::strtod, which reads more and another decimal point in other locales than C's: this program sets none.
std::from_chars_result decimal_by_strtod(const char* first, const char* last, double& value);

}  // namespace detail
}  // namespace headroom
