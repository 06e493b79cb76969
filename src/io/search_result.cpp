#include "headroom/io/search_result.hpp"

#include <limits>

#include "object_reader.hpp"
#include "object_writer.hpp"
#include "searched_members.hpp"

namespace headroom {

// The list of a SearchResult in which a candidate stands.
enum class FoundIn : std::uint8_t { plans, pareto, nearest };

template <>
inline constexpr std::array<Spelling<FoundIn>, 3> spellings<FoundIn>{{
    {FoundIn::plans, "plans"},
    {FoundIn::pareto, "pareto"},
    {FoundIn::nearest, "nearest"},
}};

namespace {

constexpr Range any_count{0, std::numeric_limits<std::int64_t>::max()};

struct Rejection {
  std::string reason;
  std::int64_t count = 0;
};

struct SearchCounts {
  std::int64_t evaluated = 0;
  std::int64_t feasible = 0;
  std::vector<Rejection> rejected;
};

constexpr auto rejection_fields = [](auto& fields, auto& rejection) {
  fields.required("reason", rejection.reason);
  fields.required("count", rejection.count, any_count);
};

constexpr auto count_fields = [](auto& fields, auto& counts) {
  fields.required("evaluated", counts.evaluated, any_count);
  fields.required("feasible", counts.feasible, any_count);
  fields.list("rejected", counts.rejected, rejection_fields);
};

struct ReadCandidate {
  FoundIn in = FoundIn::plans;
  Candidate candidate;
  std::int64_t peak_rank = 0;
  std::optional<std::string> stage_layers;  // as a flag writes them
  std::optional<std::string> recompute_ops;
};

// What a space sets of a strategy, and what a search finds out about it. What does not fit has no time.
constexpr auto found_fields = [](auto& fields, auto& found) {
  auto& [in, candidate, peak_rank, stage_layers, recompute_ops] = found;
  fields.required("in", in);
  searched_members(fields, candidate.strategy, SearchedMembers::all);
  fields.optional("stage_layers", stage_layers);
  fields.optional("recompute_ops", recompute_ops);  // beside the policy selective
  fields.required("verdict", candidate.verdict);
  fields.required("place", candidate.place, any_count);
  fields.required("peak", candidate.peak);
  fields.required("peak_rank", peak_rank, any_count);
  if (in == FoundIn::nearest) return;
  fields.required("iteration", candidate.iteration);
  fields.required("mfu", candidate.mfu);
};

template <class T, class Fields>
T read_row(const PartReader& part, const std::string& text, T value, Fields fields) {
  Document document = read_document(text, part.row_name());
  ObjectReader::read(document, JsonPointer(), value, fields);
  document.finish();
  return value;
}

}  // namespace

std::vector<std::string> write_result(const SearchResult& result) {
  SearchCounts counts{.evaluated = result.evaluated, .feasible = result.feasible, .rejected = {}};
  for (const auto& [reason, count] : result.rejected) counts.rejected.push_back({reason, count});
  std::vector<std::string> rows{ObjectWriter::write(counts, count_fields).dump()};
  const auto add = [&](FoundIn in, const Candidate& candidate) {
    ReadCandidate found{.in = in,
                        .candidate = candidate,
                        .peak_rank = static_cast<std::int64_t>(candidate.peak_rank),
                        .stage_layers = {},
                        .recompute_ops = {}};
    if (!candidate.strategy.recompute.ops.empty()) {
      found.recompute_ops = value_of(*find_field("recompute_ops"), candidate.strategy, {});
      found.candidate.strategy.recompute.policy = RecomputePolicy::selective;
    }
    if (!candidate.strategy.stage_layers.empty())
      found.stage_layers = value_of(*find_field("stage_layers"), candidate.strategy, {});
    rows.push_back(ObjectWriter::write(found, found_fields).dump());
  };
  for (const Candidate& candidate : result.plans) add(FoundIn::plans, candidate);
  for (const Candidate& candidate : result.pareto) add(FoundIn::pareto, candidate);
  if (result.nearest) add(FoundIn::nearest, *result.nearest);
  return rows;
}

SearchResult read_result(PartReader& part, const Strategy& base) {
  std::optional<std::string> text = part.next_row();
  if (!text) throw InputError(part.path(), "lacks the counts of a search");
  const SearchCounts counts = read_row(part, *text, SearchCounts{}, count_fields);
  SearchResult result{.evaluated = counts.evaluated, .feasible = counts.feasible};
  for (const auto& [reason, count] : counts.rejected) result.rejected[reason] += count;
  while ((text = part.next_row())) {
    ReadCandidate found = read_row(part, *text, ReadCandidate{.candidate = {.strategy = base}}, found_fields);
    found.candidate.peak_rank = static_cast<std::size_t>(found.peak_rank);
    if (found.stage_layers) {
      Workload none;
      const std::string broken =
          set_value(*find_field("stage_layers"), *found.stage_layers, found.candidate.strategy, none);
      if (!broken.empty()) throw InputError(part.row_name() + ": /stage_layers", broken);
    }
    if (found.recompute_ops) {
      Workload none;
      set_value(*find_field("recompute_ops"), *found.recompute_ops, found.candidate.strategy, none);
      found.candidate.strategy.recompute.policy = RecomputePolicy::ops;
    }
    switch (found.in) {
      case FoundIn::plans: result.plans.push_back(std::move(found.candidate)); break;
      case FoundIn::pareto: result.pareto.push_back(std::move(found.candidate)); break;
      case FoundIn::nearest: result.nearest = std::move(found.candidate); break;
    }
  }
  return result;
}

}  // namespace headroom
