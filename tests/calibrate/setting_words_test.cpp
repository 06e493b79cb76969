#include "calibrate/setting_words.hpp"

#include <doctest/doctest.h>

namespace headroom {

TEST_CASE("setting words: those of compiling say how kernels are launched, and caveats what was otherwise") {
  const auto launches = [](std::string_view words, std::string_view caveats = "") {
    return settings_of_words(words, caveats).launches;
  };
  CHECK(launches("FSDP2 prefetch overlap; torch.compile") == Launches::compiled);
  CHECK(launches("FSDP2+TP8, compile") == Launches::compiled);
  CHECK(launches("--compile.enable") == Launches::compiled);
  CHECK(launches("FSDP2 prefetch overlap; eager") == Launches::eager);
  CHECK(launches("not eager") == Launches::compiled);
  CHECK(launches("FSDP2, torch.compile", "20 steps; compile=false; overlap_grad_reduce") == Launches::eager);
  CHECK(launches("", "without torch.compile") == Launches::eager);
  CHECK_FALSE(launches("FSDP2, eagerly prefetched", "p2p overlap").has_value());
}

TEST_CASE("setting words: Composer's PURE reduces gradients in 16 bits") {
  CHECK(settings_of_words("FSDP FULL_SHARD, mixed precision PURE", "").gradient_dtype == Dtype::half);
  CHECK_FALSE(settings_of_words("FSDP FULL_SHARD, mixed precision DEFAULT", "").gradient_dtype.has_value());
}

TEST_CASE("setting words: caveats say nothing of what overlaps") {
  CHECK(settings_of_words("p2p overlap", "").overlap_p2p == true);
  CHECK_FALSE(settings_of_words("", "p2p overlap").overlap_p2p.has_value());
  CHECK(settings_of_words("FSDP2+TP8, async TP", "").overlap_tensor_parallel == TensorOverlap::full);
}

}  // namespace headroom
