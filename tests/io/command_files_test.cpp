#include "io/command_files.hpp"

#include <string>

#include <doctest/doctest.h>

#include "core/current.hpp"
#include "headroom/core/error.hpp"
#include "io/strict_json.hpp"
#include "io/text.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

std::string on_disk() { return (tests::source_dir() / "README.md").string(); }

}  // namespace

TEST_CASE("files: a text of the question stands in front of the disk's, by any spelling of its name") {
  CommandFiles files({{"run.sh", "of the question"}, {on_disk(), "in front"}});
  const Current<CommandFiles> of_question(files);
  CHECK(read_file("./run.sh") == "of the question");
  CHECK(read_file(on_disk()) == "in front");
  CHECK(kind_of_file("x/../run.sh") == FileKind::regular);
}

TEST_CASE("files: without the disk nothing of it is read, written or told") {
  CommandFiles files({{"run.sh", "of the question"}}, false);
  const Current<CommandFiles> of_question(files);
  CHECK(kind_of_file(on_disk()) == FileKind::none);
  CHECK(kind_of_file("/") == FileKind::none);
  CHECK_THROWS_AS(read_file(on_disk()), InputError);
  CHECK_THROWS_AS(will_write("--output", "/dev/null"), InputError);
}

TEST_CASE("files: those of a thread's command are its own, and the program's are there again behind it") {
  {
    CommandFiles outer({{"a", "outer"}}, true);
    const Current<CommandFiles> of_outer(outer);
    {
      CommandFiles inner({{"a", "inner"}}, true);
      const Current<CommandFiles> of_inner(inner);
      CHECK(read_file("a") == "inner");
    }
    CHECK(read_file("a") == "outer");
  }
  CHECK(command_files().has_disk());
  CHECK(kind_of_file(on_disk()) == FileKind::regular);
}

TEST_CASE("json: members keep the order of the text, and a member that stands twice is refused") {
  CHECK(parse_ordered_json(R"({"b": 1, "a": 2})", "q").dump() == R"({"b":1,"a":2})");
  CHECK_THROWS_AS(parse_ordered_json(R"({"a": 1, "a": 2})", "q"), InputError);
}

}  // namespace headroom
