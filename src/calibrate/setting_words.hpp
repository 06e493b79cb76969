// What the words of a run say that its training stack overlaps or compiles, where they are the names of launch flags.
#pragma once

#include <string_view>

#include "headroom/calibrate/published_source.hpp"

namespace headroom {

// Of "overlap_grad_sync, ub_tp_comm_overlap false; p2p overlap": the overlaps that flags of Megatron-LM, NeMo and torchtitan set, and
// nothing of other prose. "compile", "torch.compile" and "eager" say how kernels are launched. The words between two of , ; ( ) or
// line ends belong together, and false, off, no, not, without or disabled among them turns theirs off. Of caveats only what
// they say of compiling counts, over the other words.
RunSettings settings_of_words(std::string_view words, std::string_view caveats);

}  // namespace headroom
