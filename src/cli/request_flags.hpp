// The flags that say what is asked: a model, a system, a strategy and a workload.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/flags.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom::cli {

struct RequestFlags {
  std::string model;
  std::vector<std::string> overrides;
  FlagText attention;
  FlagText sequence;
  FlagText detail;

  FlagText tensor_parallel;
  FlagText pipeline_parallel;
  FlagText virtual_pipeline;
  FlagText data_parallel;
  FlagText devices;
  FlagText micro_batch;
  FlagText global_batch;
  FlagText schedule;
  FlagText stage_layers;
  bool sequence_parallel = false;
  bool store_gathered = false;
  bool keep_outputs = false;
  bool distributed_optimizer = false;
  FlagText gradients;

  FlagText recompute;
  FlagText recompute_layers;
  FlagText recompute_method;
  FlagText recompute_ops;
  bool recompute_window = false;
  bool shard_checkpoint = false;
};

void add_request_flags(Command command, RequestFlags& flags);
// The parts of them that a search leaves as they are: the model; the layout, where recomputation is what is searched;
// and of that what is kept beside activations.
void add_model_flags(Command command, RequestFlags& flags);
void add_layout_flags(Command command, RequestFlags& flags);
void add_kept_flags(Command command, RequestFlags& flags);

// How a model is read, given its name or file and what is overridden; by default read_model().
using ReadModel = std::function<Transformer(const std::string&, const std::vector<std::string>&)>;

// The request that the flags make of a model; its system is left to the caller. Every mistake is added to `problems`.
Request read_request(const RequestFlags& flags, std::vector<Problem>& problems, const ReadModel& read = {});

}  // namespace headroom::cli
