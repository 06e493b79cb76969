// Checks the values given to a search for those that no strategy can have, such as a module that the model
// lacks or a size that does not divide the heads. Such mistakes are reported before the search, by the rules
// for a single strategy.
#pragma once

#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/search/variants.hpp"

namespace headroom {

// Returns the rules that a field of the request breaks under every choice of the space. If there are none,
// returns the rules that a listed value of the space breaks whatever the other fields are. A list of sizes is
// rejected only if none of them divides what it must. Each rule reads as illegalities() states it for the
// first such strategy. The number of GPUs and the batch are not considered; obstacle() says whether sizes
// make up the GPUs.
std::vector<Problem> value_illegalities(const Request& base, const Space& space);

// Whether the model and the sequence are given, or an inverse question asks for one of them.
enum class ModelSize : std::uint8_t { given, asked };

// Throws InputError with the rules that the first offer of a comparison breaks, unless another offer breaks
// none. The sizes of a strategy are not checked if the question asks for the size of the model.
void check_values(const Request& base, const Space& space, const Compared& comparison, ModelSize size);

}  // namespace headroom
