// What is not JSON, or not strictly so. Contents are tested in model_test.cpp and system_test.cpp.
#include <filesystem>

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include "headroom/io/check.hpp"
#include "headroom/io/model_file.hpp"
#include "messages.hpp"
#include "scratch_file.hpp"

namespace headroom {
namespace {

std::string json_message(const std::string& text) {
  return message_of([&] { return parse_model(text, "x.json"); });
}

}  // namespace

TEST_CASE("json: an empty file") {
  CHECK(json_message("") == "x.json: is empty");
  CHECK(json_message(" \n\t") == "x.json: is empty");
}

TEST_CASE("json: cut off in the middle") {
  CHECK(contains(json_message("{\n  \"hidden\": 12"), "x.json:2:15: is cut off: "));
  CHECK(contains(json_message("{\"hidden\": \"abc"), "missing closing quote"));
}

TEST_CASE("json: something after the value") {
  CHECK(contains(json_message("{} {}"),
                 "x.json:1:4: is not JSON: while parsing value - unexpected '{'; expected end of"));
}

TEST_CASE("json: a byte order mark") {
  CHECK(json_message("\xEF\xBB\xBF{}") ==
        "x.json: starts with a byte order mark; save it as UTF-8 without one");
}

TEST_CASE("json: UTF-16 is not UTF-8 text") {
  CHECK(json_message(std::string("\xFF\xFE{\0}\0", 6)) == "x.json: is not text: byte 0xff at offset 0");
}

TEST_CASE("json: a binary file") {
  CHECK(json_message(std::string("\x7f"
                                 "ELF\0\0",
                                 6)) == "x.json: is not text: byte 0x7f at offset 0");
  CHECK(json_message(std::string("{\"hidden\"\0: 1}", 14)) == "x.json: is not text: byte 0x00 at offset 9");
}

TEST_CASE("json: ill-formed UTF-8 inside a string") {
  CHECK(json_message("{\"source\": \"caf\xE9\"}") == "x.json: is not text: byte 0xe9 at offset 15");
}

TEST_CASE("json: NaN") {
  CHECK(json_message("{\"hidden\": NaN}") ==
        "x.json:1:12: is not JSON: NaN and Infinity are not numbers there");
}

TEST_CASE("json: minus Infinity") {
  CHECK(contains(json_message("{\"hidden\": -Infinity}"), "x.json:1:13: is not JSON: "));
}

TEST_CASE("json: a number beyond a double") {
  CHECK(json_message("{\"hidden\": 1e999}") == "x.json:1:16: number out of range: 1e999");
}

TEST_CASE("json: comments and trailing commas") {
  CHECK(contains(json_message("{ // sizes\n}"), "x.json:1:3: is not JSON: "));
  CHECK(contains(json_message("{\"a\": [1,]}"), "x.json:1:10: is not JSON: "));
}

TEST_CASE("json: nested without end") {
  CHECK(json_message(std::string(10'000'000, '[')) == "x.json: is nested deeper than 32 levels");
}

TEST_CASE("json: nested in objects without end") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "{\"a\":";
  CHECK(json_message(text) == "x.json: is nested deeper than 32 levels");
}

TEST_CASE("json: a duplicate key is reported beside the other problems") {
  const std::string said =
      json_message(R"({"format": 1, "hidden": 8, "hidden": 9, "kernels": {"qkv": "one", "qkv": "one"}})");
  CHECK(contains(said, "x.json: /hidden: is given twice\n"));
  CHECK(contains(said, "x.json: /kernels/qkv: is given twice\n"));
  CHECK(contains(said, "x.json: /source: is missing\n"));
}

TEST_CASE("json: no object at the top") {
  CHECK(json_message("[1]") == "x.json: must be an object (found a list)");
  CHECK(json_message("null") == "x.json: must be an object (found null)");
  CHECK(json_message("\"hidden\"") == "x.json: must be an object (found \"hidden\")");
}

TEST_CASE("json: keys with slashes are escaped as JSON pointers are") {
  CHECK(contains(json_message(R"({"a/b": 1})"), "x.json: /a~1b: unknown key"));
}

TEST_CASE("json: control characters in keys do not reach the terminal") {
  CHECK(contains(json_message(R"({"\u001b[31m": 1})"), "x.json: /\\x1b[31m: unknown key"));
}

TEST_CASE("json: a thousand problems are not all listed") {
  std::string text = "{\"a\": 0";
  for (int i = 0; i < 1000; ++i) text += ", \"key" + std::to_string(i) + "\": 0";
  const std::string said = json_message(text + "}");
  CHECK(said.ends_with("x.json: has more problems than these"));
  CHECK(said.size() < 5000);
}

TEST_CASE("file: does not exist") {
  CHECK(message_of([] { return check_file("no/such.json"); }) ==
        "no/such.json: cannot be read: No such file or directory");
}

TEST_CASE("file: is a directory") {
  const std::string directory = std::filesystem::temp_directory_path().string();
  CHECK(message_of([&] { return read_model(directory); }) == directory + ": is a directory, not a file");
}

TEST_CASE("file: may not be read") {
  const ScratchFile file("secret.json", "{}");
  std::filesystem::permissions(file.path(), std::filesystem::perms::none);
  if (geteuid() == 0) return;  // root reads everything
  CHECK(message_of([&] { return read_model(file.path()); }) ==
        file.path() + ": cannot be read: Permission denied");
}

TEST_CASE("file: is empty") {
  const ScratchFile file("empty.json");
  CHECK(message_of([&] { return read_model(file.path()); }) == file.path() + ": is empty");
}

TEST_CASE("file: is too large") {
  const ScratchFile file("large.json");
  std::filesystem::resize_file(file.path(), 100'000'000'000);  // sparse: nothing is written, and nothing read
  CHECK(message_of([&] { return read_model(file.path()); }) == file.path() + ": is larger than 64 MiB");
}

TEST_CASE("file: never ends") {
  CHECK(message_of([] { return read_model("/dev/zero"); }) == "/dev/zero: is larger than 64 MiB");
}

TEST_CASE("json: arbitrary bytes are refused, never fatal") {
  CHECK(rc::check("bytes", [](const std::string& bytes) { RC_ASSERT(!json_message(bytes).empty()); }));
}

TEST_CASE("json: a valid file cut or changed anywhere is read or refused, never fatal") {
  const std::string valid = write_model(read_model("llama-3-8b"));
  CHECK(rc::check("cut", [&] {
    RC_ASSERT(!json_message(valid.substr(0, *rc::gen::inRange<std::size_t>(0, valid.size() - 2))).empty());
  }));
  CHECK(rc::check("change", [&] {
    std::string text = valid;
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
    json_message(text);
  }));
}

}  // namespace headroom
