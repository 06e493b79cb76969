#include "headroom/answer/brief.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "headroom/answer/estimate.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom {
namespace {

// Returns the edits in the order of the table, but for the sequence, by which tokens of a batch are counted.
Edits edits_in_order(const std::string& flags) {
  std::optional<Edits> edits = edits_of_flags(flags);
  if (!edits) {
    throw InputError("flags", "must be flags of a strategy or workload, each with its value: '" + flags +
                                  "' are not. Example: '-t 8 --sp --global-batch 64'");
  }
  const auto place = [](const Edit& edit) {
    return edit.field == "sequence" ? -1 : find_field(edit.field) - strategy_fields.data();
  };
  std::stable_sort(edits->begin(), edits->end(),
                   [&](const Edit& x, const Edit& y) { return place(x) < place(y); });
  return std::move(*edits);
}

bool sets(const Edits& edits, std::string_view field) {
  return std::any_of(edits.begin(), edits.end(), [&](const Edit& edit) { return edit.field == field; });
}

// Reads the flags over the defaults of the stack, as `headroom estimate` does.
void read_flags(const std::string& flags, Request& request) {
  const Edits edits = edits_in_order(flags);
  Strategy& strategy = request.strategy;
  strategy = with_stack_defaults({}, request.software, request.model);
  request.workload.sequence = request.model.sequence;
  std::vector<Problem> problems;
  for (const Edit& edit : edits) {
    if (std::string rule = apply(edit, strategy, request.workload); !rule.empty())
      problems.push_back(by_flag({edit.field, std::move(rule)}));
    if (edit.field == "optimizer") strategy.optimizer = without_idle_moments(strategy.optimizer);
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  if (!sets(edits, "main_params_dtype"))
    strategy.optimizer.main_params = default_main_params(strategy, request.software, request.model);
  if (!sets(edits, "schedule")) use_default_schedule(strategy, request.software);
  if (!sets(edits, "data_sharding")) strategy.data_sharding = default_sharding(request.software, strategy);
  if (!sets(edits, "global_batch")) request.workload.global_batch = default_global_batch(strategy);
}

}  // namespace

BriefReply answer(const BriefQuestion& question) {
  Request request;
  request.system = read_system(question.system);
  request.software =
      read_software(question.software.empty() ? request.system.default_software : question.software);
  request.model = with_attention(read_model(question.model), request.software.attention_kernel);
  read_flags(question.flags, request);

  const EstimateReply reply = answer(EstimateQuestion{.request = request, .with_alternatives = false});
  const Plan& plan = account(reply.evaluation);
  BriefReply brief{.fits = fits(reply),
                   .verdict = std::string(name_of(plan.verdict)),
                   .devices = devices(plan.request.strategy),
                   .peak = peak(plan),
                   .capacity = plan.request.system.memory,
                   .peak_rank = plan.peak_rank};
  if (plan.timing) {
    brief.iteration = plan.timing->iteration.total;
    brief.tokens_per_second = plan.timing->throughput.tokens_per_second;
    brief.mfu = plan.timing->throughput.mfu;
  }
  if (reply.interval) {
    brief.iteration_low = reply.interval->low;
    brief.iteration_high = reply.interval->high;
  }
  return brief;
}

}  // namespace headroom
