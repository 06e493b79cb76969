// The flags of daily use of each command that has too many for one screen. `--help` shows them, in this order.
// Other commands show all of theirs.
#pragma once

#include <array>
#include <string_view>

namespace headroom::cli {

struct DailyFlags {
  std::string_view command;
  std::string_view flags;  // by their last long name, between spaces
};

inline constexpr std::array daily_flags{
    DailyFlags{"headroom plan",
               "--system --devices --global-batch --sequence --software --recipe --set "
               "--precision --tensor-parallel --pipeline-parallel --micro-batch --recompute "
               "--fast --find --deadline --tokens --why --top --launch --html --verbose --format"},
    DailyFlags{"headroom estimate",
               "--system --devices --tensor-parallel --pipeline-parallel --virtual-pipeline "
               "--context-parallel --expert-parallel --sequence-parallel --micro-batch "
               "--global-batch --sequence --recompute --data-sharding --precision --software "
               "--tokens --peak --launch --html --verbose --format"},
    DailyFlags{"headroom explain",
               "--tensor-parallel --context-parallel --expert-parallel --sequence-parallel "
               "--data-parallel --micro-batch --sequence --recompute --data-sharding --precision "
               "--detail --system --format"},
    DailyFlags{"headroom compare",
               "--to --system --devices --tensor-parallel --pipeline-parallel --virtual-pipeline "
               "--context-parallel --expert-parallel --sequence-parallel --micro-batch "
               "--global-batch --sequence --recompute --data-sharding --software --html --format"},
    DailyFlags{"headroom frontier",
               "--budget --system --devices --tensor-parallel --pipeline-parallel "
               "--virtual-pipeline --context-parallel --expert-parallel --sequence-parallel "
               "--micro-batch --global-batch --sequence --data-sharding --software --plot "
               "--html --format"},
    DailyFlags{"headroom trace",
               "--output --system --devices --tensor-parallel --pipeline-parallel "
               "--virtual-pipeline --context-parallel --expert-parallel --sequence-parallel "
               "--micro-batch --global-batch --sequence --schedule --recompute --data-sharding"},
    DailyFlags{"headroom sweep",
               "--vary --zip --system --devices --tensor-parallel --pipeline-parallel "
               "--virtual-pipeline --context-parallel --expert-parallel --sequence-parallel "
               "--micro-batch --global-batch --sequence --recompute --data-sharding --html "
               "--format"},
    DailyFlags{"headroom sweep plan",
               "--vary --zip --system --devices --global-batch --sequence --software --precision "
               "--fast --tokens --shard --html --format --output"},
    DailyFlags{"headroom check",
               "--system --devices --run --env --sequence --micro-batch --global-batch --software "
               "--set --tokens --margin --patch --verbose --format"},
    DailyFlags{"headroom memory",
               "--script --pipeline-rank --system --devices --tensor-parallel --pipeline-parallel "
               "--micro-batch --global-batch --sequence --recompute --data-sharding --verbose --format"},
};

}  // namespace headroom::cli
