// Detail of op tables, and the index that stands for no value, op or buffer.
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"

namespace headroom {

// `paper` rows are those of K22 section 4.1; `exact` rows are the small buffers that the paper leaves out.
enum class Detail : std::uint8_t { paper, exact };

// The index of a value, op or buffer that does not exist.
inline constexpr int nowhere = -1;

template <>
inline constexpr std::array<Spelling<Detail>, 2> spellings<Detail>{{
    {Detail::paper, "paper"},
    {Detail::exact, "exact"},
}};

}  // namespace headroom
