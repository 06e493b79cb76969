// How torchtitan cuts a model into pipeline stages [torchtitan/distributed/pipeline_parallel.py, pipeline_llm;
// before v0.2 torchtitan/parallelisms/pipeline_llama.py].
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/reading.hpp"
#include "interop/launch_in/titan_parts.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

constexpr std::int64_t most_stages = 1 << 16;

// "DualPipeV" or "Interleaved1F1B" of torch.distributed.pipelining.
std::string schedule_named(const std::string& name) {
  const std::string word = lower_case(name);
  if (word == "1f1b") return "1f1b";
  if (word == "gpipe") return "gpipe";
  if (word == "interleaved1f1b" || word == "interleaved_1f1b") return "interleaved";
  if (word == "loopedbfs" || word == "interleavedgpipe" || word == "flexibleinterleaved1f1b")
    return "looped-bfs";
  if (word == "zbvzerobubble") return "zero-bubble-v";
  if (word == "dualpipev") return "dualpipe-v";
  return {};
}

// Names of torch.distributed.pipelining's schedules that have no counterpart here.
bool is_of_pytorch(const std::string& name) {
  constexpr std::array<std::string_view, 5> others{"interleavedzerobubble", "pipelineschedulesingle",
                                                   "pipelineschedulemulti", "flexible_interleaved_1f1b",
                                                   "_pipelinescheduleruntime"};
  return contains(others, std::string_view(lower_case(name)));
}

const Written* find(TreeRun& run, const std::string& name) {
  return run.find({"parallelism." + name, "experimental." + name});
}

// The values of a list, which may stand in one setting or in one for each item.
std::vector<std::string> items_of(TreeRun& run, const std::string& name) {
  std::vector<std::string> items;
  const auto add = [&](const Written& setting) {
    const std::string text = text_of_values(setting);
    for (const std::string_view part : parts_of(text, ','))
      items.emplace_back(part.substr(std::min(part.find_first_not_of(" \"'"), part.size())));
  };
  if (const Written* const whole = find(run, name)) add(*whole);
  for (std::int64_t i = 0; i < most_stages; ++i) {
    const Written* const one = find(run, fmt::format("{}.{}", name, i));
    if (one == nullptr) break;
    add(*one);
  }
  return items;
}

bool is_layer(std::string_view module) { return module.starts_with("layers."); }

// Layers of each stage by the modules that are listed for it; empty: none are.
std::vector<std::int64_t> listed_stages(TreeRun& run, const Written** from) {
  std::vector<std::int64_t> stages;
  for (std::int64_t i = 0; i < most_stages; ++i) {
    const std::string name = fmt::format("module_fqns_per_model_part.{}", i);
    const Written* const one = find(run, name);
    const std::vector<std::string> modules = items_of(run, name);
    if (modules.empty()) break;
    if (*from == nullptr) *from = one;
    stages.push_back(std::count_if(modules.begin(), modules.end(), is_layer));
  }
  return stages;
}

// By the first layer of each stage but the first: "layers.8", "layers.16".
std::vector<std::int64_t> split_stages(TreeRun& run, std::int64_t layers, const Written** from) {
  const std::string name = "pipeline_parallel_split_points";
  const std::vector<std::string> points = items_of(run, name);
  std::vector<std::int64_t> stages;
  std::int64_t before = 0;
  for (const std::string& point : points) {
    const auto layer = is_layer(point) ? whole_count(point.substr(point.find('.') + 1)) : std::nullopt;
    if (!layer || *layer <= before || *layer >= layers) return {};
    stages.push_back(*layer - before);
    before = *layer;
  }
  if (points.empty()) return {};
  *from = find(run, name);
  if (*from == nullptr) *from = find(run, name + ".0");
  stages.push_back(layers - before);
  return stages;
}

// As many on each stage, where the embedding and the output count as layers of the ends; the first have what is over.
std::vector<std::int64_t> shared_stages(std::int64_t layers, std::int64_t count, std::int64_t first_less,
                                        std::int64_t last_less) {
  const std::int64_t all = layers + first_less + last_less;
  std::vector<std::int64_t> stages;
  for (std::int64_t i = 0; i < count; ++i)
    stages.push_back(all / count + (i < all % count ? 1 : 0) - (i == 0 ? first_less : 0) -
                     (i + 1 == count ? last_less : 0));
  return stages;
}

}  // namespace

void take_titan_stages(TreeRun& run, const RunScale& scale) {
  if (scale.pipeline <= 1 || scale.pipeline > most_stages) return;  // another rule refuses the latter
  RunBuilder& builder = run.builder();
  const Written* const schedule = find(run, "pipeline_parallel_schedule");
  std::string name = schedule == nullptr ? "1f1b" : schedule_named(text_of_values(*schedule));
  if (name.empty()) {
    const std::string written = text_of_values(*schedule);
    if (is_of_pytorch(written) || find(run, "pipeline_parallel_schedule_csv") != nullptr)
      builder.leave_out(*schedule, "not modelled: read as 1F1B");
    else
      builder.problem(*schedule, fmt::format("must be 1F1B, GPipe, Interleaved1F1B, LoopedBFS, "
                                             "InterleavedZeroBubble, ZBVZeroBubble or DualPipeV, not '{}'",
                                             printable(written)));
    name = "1f1b";
  }
  const bool loops = name != "1f1b" && name != "gpipe";
  const std::int64_t layers = scale.layers.value_or(0);
  const auto less = [&](const char* end) {
    const std::string key = fmt::format("pipeline_parallel_{}_stage_less_layers", end);
    return std::clamp<std::int64_t>(run.count({"parallelism." + key}).value_or(1), 0, layers);
  };
  const bool is_old = builder.software() == "torchtitan-2024";  // the ends are as long as the others
  const std::int64_t first_less = less("first");
  const std::int64_t last_less = less("last");
  const auto of_stage = run.count("parallelism.pipeline_parallel_layers_per_stage");
  const Written* from = run.find("parallelism.pipeline_parallel_layers_per_stage");
  std::int64_t count = scale.pipeline * (loops ? 2 : 1);
  if (of_stage && *of_stage > 0 && layers > 0) count = 1 + (layers + first_less + last_less - 1) / *of_stage;
  std::vector<std::int64_t> stages = listed_stages(run, &from);
  if (stages.empty()) stages = split_stages(run, layers, &from);
  const bool listed = !stages.empty();
  if (listed) count = static_cast<std::int64_t>(stages.size());
  const bool is_whole = count % scale.pipeline == 0 && (loops || count == scale.pipeline);
  if (!is_whole) {
    builder.refuse(
        {.fields = {"pipeline_parallel", "schedule"},
         .rule = fmt::format(
             "must make {}, not {}",
             loops ? fmt::format("a multiple of {} stages: pipeline_parallel_degree", scale.pipeline)
                   : fmt::format("{} stages: pipeline_parallel_degree, with {}", scale.pipeline, name),
             count),
         .source = "torchtitan, torchtitan/distributed/pipeline_parallel.py",
         .written = from == nullptr ? "" : from->as_written,
         .at = from == nullptr ? FilePlace{} : from->at});
    count = scale.pipeline * (loops ? 2 : 1);
  }
  if (loops) {
    builder.set("virtual_pipeline", std::to_string(count / scale.pipeline),
                from != nullptr ? from : schedule);
    if (from == nullptr)
      builder.imply(fmt::format("{} has two stages on each rank where no layers of a stage are written",
                                text_of_values(*schedule)),
                    schedule);
  }
  builder.set("schedule", name, schedule);
  if (!is_whole || layers == 0 || count > layers || (is_old && !listed)) return;
  if (!listed) stages = shared_stages(layers, count, first_less, last_less);
  if (stages.front() < 0 || stages.back() < 0)
    return builder.refuse(
        {.fields = {"pipeline_parallel"},
         .rule = fmt::format("must leave pipeline_parallel_first_stage_less_layers ({}) and "
                             "pipeline_parallel_last_stage_less_layers ({}) room on a stage",
                             first_less, last_less),
         .source = "torchtitan, torchtitan/distributed/pipeline_parallel.py",
         .written = "",
         .at = {}});
  if (std::all_of(stages.begin(), stages.end(), [&](std::int64_t each) { return each == stages.front(); }))
    return;
  builder.set("stage_layers", fmt::format("{}", fmt::join(stages, ",")), from);
  if (!listed && from == nullptr)
    builder.imply(fmt::format("stages have {} layers: the embedding and the output count as one each",
                              fmt::join(stages, ", ")));
}

}  // namespace headroom
