// Reads overlap and compilation of a run's training stack from its words, if these are names of launch flags.
#pragma once

#include <string_view>

#include "headroom/calibrate/published_source.hpp"

namespace headroom {

// Reads the overlaps that flags of Megatron-LM, NeMo and torchtitan set, such as "overlap_grad_sync,
// ub_tp_comm_overlap false; p2p overlap", and ignores other prose. "compile", "torch.compile" and "eager" say
// how kernels are launched. Words between two of , ; ( ) or line ends belong together; false, off, no, not,
// without or disabled among them turns their setting off. Of caveats, only words about compilation count, and
// they override the others.
RunSettings settings_of_words(std::string_view words, std::string_view caveats);

}  // namespace headroom
