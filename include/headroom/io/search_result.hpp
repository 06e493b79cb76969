// Results of a shard of a search, as the rows of a part file.
#pragma once

#include <string>
#include <vector>

#include "headroom/io/part_file.hpp"

namespace headroom {

// Returns the counts first, then every candidate.
std::vector<std::string> write_result(const SearchResult& result);

// Returns the result that write_result() wrote, to the last bit. `base` supplies the fields of strategies
// that no search space sets. Throws InputError.
SearchResult read_result(PartReader& part, const Strategy& base);

}  // namespace headroom
