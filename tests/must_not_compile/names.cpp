#include "headroom/core/names.hpp"

#include <array>

using namespace headroom;

enum class Named { first, second };
enum class Nameless { only };

template <>
inline constexpr std::array<Spelling<Named>, 1> headroom::spellings<Named>{{{Named::first, "first"}}};

#if defined(enumerator_without_spelling)
constexpr auto name = name_of(Named::second);
#elif defined(type_without_spellings)
constexpr auto name = name_of(Nameless::only);
#else
constexpr auto name = name_of(Named::first);
#endif
