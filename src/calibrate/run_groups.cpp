#include "headroom/calibrate/run_groups.hpp"

#include "headroom/core/expects.hpp"
#include "headroom/model/precision.hpp"

namespace headroom {
namespace {

std::string kind_text(const Request& request) {
  std::string text = any_experts(request.model) ? "MoE" : "dense";
  for_each_mixer([&](const auto& row, auto mixer) {
    if (any_mixer(request.model, mixer)) text += " " + std::string(row.title);
  });
  if (request.strategy.context_parallel > 1) text += " CP";
  if (request.strategy.data_sharding == DataSharding::zero3) text += " FSDP";
  return text;
}

std::string trait_text(const Request& request, RunTrait trait) {
  switch (trait) {
    case RunTrait::gpu: return request.system.device;
    case RunTrait::model: return request.model.name;
    case RunTrait::precision:
      return is_narrow(request.strategy.precision) ? std::string(row_of(request.strategy.precision).name)
                                                   : "16 bits";
    case RunTrait::kind: return kind_text(request);
  }
  EXPECTS(!"a trait without a text");
  return {};
}

}  // namespace

std::string group_text(const Request& request, const std::vector<RunTrait>& traits) {
  std::string text;
  for (const RunTrait trait : traits) text += (text.empty() ? "" : ", ") + trait_text(request, trait);
  return text;
}

}  // namespace headroom
