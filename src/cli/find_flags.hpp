// The flags of plan that ask an inverse question: what to find, and by when.
#pragma once

#include "cli/flags.hpp"
#include "headroom/plan/capacity.hpp"
#include "headroom/search/find.hpp"

namespace headroom::cli {

struct FindFlags {
  FlagText find;
  FlagText step;
  FlagText most_iteration;
  FlagText deadline;
  FlagText odds;
};

void add_find_flags(Command command, FindFlags& flags);

// What the search's own flags give, of which a question replaces one.
struct Givens {
  FlagText devices;
  FlagText global_batch;
  FlagText sequence;
};

// The question that is asked, if any. Where a search needs what is not given, or is given what it looks for, as with
// every other mistake that is added to `problems`.
std::optional<Question> read_question(const FindFlags& flags, const Givens& givens, const Training& training,
                                      std::vector<Problem>& problems);

std::optional<double> read_odds(const FindFlags& flags, std::vector<Problem>& problems);

std::optional<Seconds> read_deadline(const FindFlags& flags, std::vector<Problem>& problems);

}  // namespace headroom::cli
