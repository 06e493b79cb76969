// What the words of a run say that its training stack overlaps, where they are the names of launch flags.
#pragma once

#include <string_view>

#include "headroom/calibrate/published_source.hpp"

namespace headroom {

// Of "overlap_grad_sync, ub_tp_comm_overlap false; p2p overlap": the overlaps that Megatron-LM's and NeMo's flags set, and
// nothing of other prose. The words between two of , ; ( ) or line ends belong together, and false, off, no, not, without
// or disabled among them turns theirs off.
RunSettings overlap_of_words(std::string_view words);

}  // namespace headroom
