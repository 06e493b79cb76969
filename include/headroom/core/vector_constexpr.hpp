// constexpr for functions that make vectors, where the standard library's vectors can be made in constant expressions:
// libc++ has them from 15.
#pragma once

#include <vector>

#ifdef __cpp_lib_constexpr_vector
#define HEADROOM_VECTOR_CONSTEXPR constexpr
#else
#define HEADROOM_VECTOR_CONSTEXPR inline
#endif
