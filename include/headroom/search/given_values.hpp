// The values that a search is given and that no strategy can have: a module that the model lacks, a size that does not divide
// the heads. They are the user's mistakes, told before a search, by the rules that a single strategy is held to.
#pragma once

#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/search/variants.hpp"

namespace headroom {

// Returns the rules that a field of the request breaks under every choice of the space, or else those that a listed value of the
// space breaks whatever the other fields are. Of listed sizes some may divide what they must: they are refused where none does. Each rule
// reads as illegalities() has it for the first such strategy. The number of GPUs and the batch play no part: whether sizes make up the
// GPUs is for obstacle() to say.
std::vector<Problem> value_illegalities(const Request& base, const Space& space);

// Whether the request's model and sequence are those that are searched, or an inverse question asks for them.
enum class ModelSize : std::uint8_t { given, asked };

// Throws InputError with the rules that the first offer of a comparison breaks, unless another breaks none. The sizes of a strategy are
// not checked where the model's own size is asked for.
void check_values(const Request& base, const Space& space, const Compared& comparison, ModelSize size);

}  // namespace headroom
