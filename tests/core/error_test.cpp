#include "headroom/core/error.hpp"

#include <doctest/doctest.h>

namespace headroom {
namespace {

const std::vector<std::string_view> policies{"none", "selective", "full", "ops"};

}  // namespace

TEST_CASE("error: every problem is a line") {
  const std::vector<Problem> problems{{"models/x.json: /hidden", "is missing"},
                                      {"--micro-batch", "must be at least 1, not 0"}};
  const InputError error(problems);
  CHECK(std::string(error.what()) ==
        "models/x.json: /hidden: is missing\n--micro-batch: must be at least 1, not 0");
  CHECK(error.problems() == problems);
}

TEST_CASE("error: a problem of no particular place is its rule") {
  CHECK(std::string(InputError("", "no subcommand").what()) == "no subcommand");
}

TEST_CASE("error: one problem") {
  const InputError error("--sequence", "must be at least 1, not 0");
  CHECK(error.problems() == std::vector<Problem>{{"--sequence", "must be at least 1, not 0"}});
}

TEST_CASE("error: the nearest of some words") {
  CHECK(nearest("selectve", policies) == "selective");
  CHECK(nearest("slective", policies) == "selective");
  CHECK(nearest("selective", policies) == "selective");
  CHECK(nearest("ful", policies) == "full");
  CHECK(nearest("fulll", policies) == "full");
}

TEST_CASE("error: of two words as near the first is suggested") {
  CHECK(nearest("cat", {"bat", "hat"}) == "bat");
}

TEST_CASE("error: no word is near when too much would have to change") {
  CHECK(nearest("everything", policies).empty());
  CHECK(nearest("selective", {}).empty());
  CHECK(nearest(std::string(1000, 'f'), policies).empty());
}

TEST_CASE("error: a suggestion") {
  CHECK(did_you_mean("selectve", policies) == " (did you mean 'selective'?)");
  CHECK(did_you_mean("everything", policies).empty());
}

}  // namespace headroom
