#include "headroom/search/obstacle.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headroom/search/feasibility.hpp"

namespace headroom {
namespace {

// Returns "TP 3", "TP 3 or 5", "TP up to 4" or "any TP".
std::string sizes_text(const char* name, const Counts& counts) {
  if (counts.only.empty() && counts.most > 0)
    return std::string(name) + " up to " + std::to_string(counts.most);
  if (counts.only.empty()) return std::string("any ") + name;
  std::string text = name;
  for (std::size_t i = 0; i < counts.only.size(); ++i) {
    const char* before = i == 0 ? " " : i + 1 == counts.only.size() ? " or " : ", ";
    text += before + std::to_string(counts.only[i]);
  }
  return text;
}

std::optional<Problem> obstacle_of_experts(const Transformer& model, const Counts& ranks) {
  const auto divides = [&](std::int64_t y) {
    return !any_layer(
        model, [y](const Architecture& layer) { return layer.experts && layer.experts->count % y != 0; });
  };
  if (!any_experts(model)) {
    if (allows(ranks, 1)) return {};
    return Problem{"expert_parallel", "needs a model with experts"};
  }
  if (ranks.only.empty() || std::any_of(ranks.only.begin(), ranks.only.end(), divides)) return {};
  return Problem{"expert_parallel",
                 "must divide the experts of each layer (" + sizes_text("EP", ranks) + ")"};
}

// Returns whether the ranks of experts divide the GPUs of a pipeline rank.
bool lays_experts(const Transformer& model, const Space& space, std::int64_t tensor, std::int64_t stage) {
  if (!any_experts(model)) return true;
  const bool said = space.expert_tensor_parallel != Counts{};
  const std::vector<std::int64_t> tensors = divisors(said ? stage : tensor);
  return std::any_of(tensors.begin(), tensors.end(), [&](std::int64_t z) {
    const std::vector<std::int64_t> ranks = divisors(stage / z);
    return allows(space.expert_tensor_parallel, z) &&
           std::any_of(ranks.begin(), ranks.end(),
                       [&](std::int64_t y) { return allows(space.expert_parallel, y); });
  });
}

// Returns whether a search chooses the value of a field.
bool search_chooses(std::string_view field) {
  return std::any_of(space_fields.begin(), space_fields.end(),
                     [&](const SpaceField& it) { return it.field == field; });
}

}  // namespace

std::optional<Problem> obstacle(const Request& base, const Space& space) {
  if (auto problem = obstacle_of_experts(base.model, space.expert_parallel)) return problem;
  const Counts tensor = tensor_parallel_of(base, space);
  const Counts context = context_parallel_of(base, space);
  bool t_divides = false;
  bool tc_divides = false;
  bool tp_divides = false;
  bool tpd_makes = false;
  bool experts_divide = false;
  for (const std::int64_t t : divisors(space.devices)) {
    if (!allows(tensor, t)) continue;
    t_divides = true;
    for (const std::int64_t c : divisors(space.devices / t)) {
      if (!allows(context, c)) continue;
      tc_divides = true;
      for (const std::int64_t p : divisors(space.devices / t / c)) {
        if (!allows(space.pipeline_parallel, p)) continue;
        tp_divides = true;
        const std::int64_t d = space.devices / t / c / p;
        if (!allows(space.data_parallel, d)) continue;
        tpd_makes = true;
        if (!lays_experts(base.model, space, t, t * c * d)) continue;
        experts_divide = true;
        if (base.workload.global_batch % d != 0) continue;
        const std::vector<std::int64_t> sizes = divisors(base.workload.global_batch / d);
        if (std::any_of(sizes.begin(), sizes.end(),
                        [&](std::int64_t b) { return allows(space.micro_batch, b); })) {
          return {};
        }
      }
    }
  }
  const std::string devices = std::to_string(space.devices);
  const std::string t = sizes_text("TP", tensor);
  // Context parallelism is mentioned only if it was asked for.
  const bool asked = !space.context_parallel.only.empty();
  const std::string tc = asked ? t + " x " + sizes_text("CP", context) : t;
  const std::string flags = asked ? "`tensor_parallel` and `context_parallel`" : "`tensor_parallel`";
  const std::string tp = tc + " x " + sizes_text("PP", space.pipeline_parallel);
  if (!t_divides) return Problem{"tensor_parallel", "must divide the GPUs (" + t + ": " + devices + ")"};
  if (!tc_divides) {
    return Problem{"context_parallel",
                   "times `tensor_parallel` must divide the GPUs (" + tc + ": " + devices + ")"};
  }
  if (!tp_divides) {
    return Problem{"pipeline_parallel",
                   "times " + flags + " must divide the GPUs (" + tp + ": " + devices + ")"};
  }
  const std::string d = sizes_text("DP", space.data_parallel);
  if (!tpd_makes) {
    const std::string times = asked ? "times `tensor_parallel`, `context_parallel` and `pipeline_parallel`"
                                    : "times `tensor_parallel` and `pipeline_parallel`";
    return Problem{"data_parallel", times + " must make the GPUs (" + tp + " x " + d + ": " + devices + ")"};
  }
  if (!experts_divide) {
    // So are the ranks of an expert, and of a pipeline.
    std::string ranks = sizes_text("EP", space.expert_parallel);
    if (space.expert_tensor_parallel != Counts{})
      ranks += " x " + sizes_text("ETP", space.expert_tensor_parallel);
    std::string stage = devices + " GPUs";
    if (space.pipeline_parallel != Counts{}) stage += " / " + sizes_text("PP", space.pipeline_parallel);
    return Problem{"expert_parallel",
                   "times `expert_tensor_parallel` must divide the GPUs of each pipeline rank (" + ranks +
                       ": " + stage + ")"};
  }
  return Problem{"global_batch", "must be a multiple of `micro_batch` times `data_parallel` (" +
                                     std::to_string(base.workload.global_batch) + " on " + devices +
                                     " GPUs with " + tp + " x " + d + ", " +
                                     sizes_text("MBS", space.micro_batch) + ")"};
}

std::optional<Problem> broken_rule(const Request& base, const Space& space) {
  std::vector<std::pair<Problem, std::int64_t>>
      broken;  // first problem of each field, and how many there are
  bool any_legal = false;
  visit_layouts(
      base, space,
      [&](const Strategy&) {
        any_legal = true;
        return false;
      },
      [&](const Problem& problem) {
        const auto known = std::find_if(broken.begin(), broken.end(),
                                        [&](const auto& it) { return it.first.where == problem.where; });
        if (known == broken.end()) {
          broken.emplace_back(problem, 1);
        } else {
          ++known->second;
        }
      });
  if (any_legal || broken.empty()) return std::nullopt;
  // A rule of what the search does not choose stands in the way of all; of the others, the one that most layouts break.
  const auto weight = [](const auto& it) { return std::pair(!search_chooses(it.first.where), it.second); };
  return std::max_element(broken.begin(), broken.end(),
                          [&](const auto& x, const auto& y) { return weight(x) < weight(y); })
      ->first;
}

std::int64_t most_model_parallel(const Request& base, const Space& space) {
  std::int64_t most = 0;
  visit_layouts(
      base, leanest(base, space),
      [&](const Strategy& layout) {
        most = std::max(most, devices_of_replica(layout));
        return true;
      },
      [](const Problem&) {});
  return most;
}

}  // namespace headroom
