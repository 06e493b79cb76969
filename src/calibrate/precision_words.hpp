// The precision that the words of a run name, where it states no recipe.
#pragma once

#include <optional>
#include <string_view>

#include "headroom/model/precision.hpp"

namespace headroom {

// Of "fp8 (TE delayed scaling, per-tensor)" or "float8 (dynamic tensorwise)": what words that name a type of 8 or 4 bits say
// beside it of how it is scaled. Transformer Engine named alone is its delayed scaling [DelayedScaling, the default of
// fp8_autocast on Hopper], an all-gather in float8 is tensorwise [torchao, enable_fsdp_float8_all_gather], and a name alone is
// that of a precision. None where no word tells; bf16 where no type of fewer than 16 bits is named.
std::optional<Precision> precision_of_words(std::string_view words);

}  // namespace headroom
