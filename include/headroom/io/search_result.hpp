// What a shard of a search found, as the rows of a part file.
#pragma once

#include <string>
#include <vector>

#include "headroom/io/part_file.hpp"

namespace headroom {

// First the counts, then every candidate.
std::vector<std::string> write_result(const SearchResult& result);

// The same to the last bit; `base` lends the strategies what no space sets. Throws InputError.
SearchResult read_result(PartReader& part, const Strategy& base);

}  // namespace headroom
