// One spelling of an option everywhere: enumerator = JSON string = CLI value.
//
// A type takes part by specialising `spellings<E>` with a constexpr array of {enumerator, text}.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "headroom/core/expects.hpp"

namespace headroom {

template <class E>
inline constexpr auto spellings = nullptr;

template <class E>
using Spelling = std::pair<E, std::string_view>;

// Other texts that are read as an enumerator, such as other programs' names. They are never written.
// Specialised like `spellings`.
template <class E>
inline constexpr auto other_spellings = nullptr;

// Returns the text of an enumerator. Expects a spelling of every enumerator.
template <class E>
constexpr std::string_view name_of(E value) {
  for (const auto& [enumerator, text] : spellings<E>) {
    if (enumerator == value) return text;
  }
  EXPECTS(!"enumerator without a spelling");
  return {};
}

// Returns the enumerator that a text names; nothing if it names none.
template <class E>
constexpr std::optional<E> from_name(std::string_view text) {
  for (const auto& [enumerator, spelling] : spellings<E>) {
    if (spelling == text) return enumerator;
  }
  if constexpr (!std::is_null_pointer_v<std::remove_const_t<decltype(other_spellings<E>)>>) {
    for (const auto& [enumerator, spelling] : other_spellings<E>) {
      if (spelling == text) return enumerator;
    }
  }
  return std::nullopt;
}

}  // namespace headroom
