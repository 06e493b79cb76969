// The flags that say what is asked: a model, a system, a strategy and a workload.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/flags.hpp"
#include "headroom/interop/hugging_face.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom::cli {

// What a flag of a strategy's field was given.
struct FieldFlag {
  FlagText text;
  std::optional<bool> on;  // of a flag without a value: --sp, --sp=no
};

struct RequestFlags {
  std::string model;
  std::vector<std::string> overrides;
  FlagText attention;
  FlagText detail;
  FlagText devices;
  FlagText recipe;       // cli/recipe_flags.hpp
  bool verbose = false;  // tells all that is assumed of the model
  std::array<FieldFlag, strategy_fields.size()> fields;
  // Of a launch file in place of the model.
  FlagText named_model;
  FlagText run;
  std::vector<std::string> environment;
  std::vector<std::string> script_arguments;
  bool launched = false;
  std::map<std::string, std::string> places;  // "--micro-batch" -> "run.sh:14: --micro-batch-size"

  // The text of a field's flag. Expects the name of a field.
  [[nodiscard]] FlagText& text(std::string_view field);
  [[nodiscard]] const FlagText& text(std::string_view field) const;
};

void add_request_flags(Command command, RequestFlags& flags);
// Parts of them: the model and its batch; all but recomputation, which a search chooses; what else is saved.
void add_model_flags(Command command, RequestFlags& flags);
void add_layout_flags(Command command, RequestFlags& flags);
void add_saved_flags(Command command, RequestFlags& flags);
// Those of a launch file: which of its runs, and what it may leave open, its sequence length and batch.
void add_launch_flags(Command command, RequestFlags& flags);
void add_batch_flags(Command command, RequestFlags& flags);

// The flags whose sizes make a replica.
std::string sizes_of_replica(const Strategy& strategy);

// Says on stderr what is assumed of a model.
void tell(const HubAssumption& assumption);
// The same of all but what the flags say; unless they are verbose, counts what no flag would change.
void tell(const std::vector<HubAssumption>& assumed, const RequestFlags& flags);

// How a model is read, given its name or file and what is overridden; by default import_model(), whose assumptions are told.
using ReadModel = std::function<Transformer(const std::string&, const std::vector<std::string>&)>;

// The request that the flags make of a model; its system is left to the caller. Every mistake is added to `problems`.
Request read_request(const RequestFlags& flags, std::vector<Problem>& problems, const ReadModel& read = {});

}  // namespace headroom::cli
