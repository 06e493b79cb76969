// How much of their error the predicted times of two strategies share.
//
// The strategies of one question (model, system, stack, batch) are predicted from the same rates, so they err
// alike. The logarithm of measured over predicted time is modelled as a sum of independent normal errors: one
// of the question, one for each trait, shared by the strategies that are alike in it, and one of each
// strategy alone. Two strategies then differ by the errors of the traits that tell them apart, which is far
// less than the interval of each (plan/interval.hpp). The deviations are data (presets/spreads/);
// scripts/intervals derives them from groups of measured runs that differ in their strategy alone.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Standard deviations of the logarithm of measured over predicted time, by trait.
struct SharedErrors {
  double tensor = 0;
  double context = 0;
  double pipeline = 0;
  double expert = 0;
  double data = 0;
  double micro_batch = 0;
  double recompute = 0;
  double own = 0;  // of each strategy alone
  std::string source;
  friend bool operator==(const SharedErrors&, const SharedErrors&) = default;
};

struct StrategyTrait {
  std::string_view name;  // in JSON and in presets/spreads/
  double SharedErrors::*deviation;
  bool (*alike)(const Strategy& x, const Strategy& y);
};

inline constexpr std::array<StrategyTrait, 7> strategy_traits{{
    {"tensor", &SharedErrors::tensor,
     [](const Strategy& x, const Strategy& y) {
       return x.tensor_parallel == y.tensor_parallel && x.sequence_parallel == y.sequence_parallel;
     }},
    {"context", &SharedErrors::context,
     [](const Strategy& x, const Strategy& y) {
       return x.context_parallel == y.context_parallel && (x.context_parallel == 1 || x.cp_comm == y.cp_comm);
     }},
    {"pipeline", &SharedErrors::pipeline,
     [](const Strategy& x, const Strategy& y) {
       return x.pipeline_parallel == y.pipeline_parallel && x.virtual_pipeline == y.virtual_pipeline &&
              (x.pipeline_parallel == 1 || x.schedule == y.schedule) && x.stage_layers == y.stage_layers;
     }},
    {"expert", &SharedErrors::expert,
     [](const Strategy& x, const Strategy& y) {
       return x.expert_parallel == y.expert_parallel &&
              x.expert_tensor_parallel == y.expert_tensor_parallel && x.moe_dispatcher == y.moe_dispatcher &&
              x.overlap_expert_all_to_all == y.overlap_expert_all_to_all;
     }},
    {"data", &SharedErrors::data,
     [](const Strategy& x, const Strategy& y) {
       return x.data_sharding == y.data_sharding && x.shard_size == y.shard_size &&
              x.no_reshard_after_forward == y.no_reshard_after_forward &&
              x.sync_each_batch == y.sync_each_batch;
     }},
    {"micro_batch", &SharedErrors::micro_batch,
     [](const Strategy& x, const Strategy& y) { return x.micro_batch == y.micro_batch; }},
    {"recompute", &SharedErrors::recompute,
     [](const Strategy& x, const Strategy& y) { return x.recompute == y.recompute; }},
}};

// Returns the names of the traits in which two strategies differ.
std::vector<std::string_view> traits_apart(const Strategy& x, const Strategy& y);

// Returns the standard deviation of the difference of the two strategies' errors. Equal strategies have none.
double deviation_between(const Strategy& x, const Strategy& y, const SharedErrors& errors);

}  // namespace headroom
