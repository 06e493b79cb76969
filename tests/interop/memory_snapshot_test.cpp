// Memory snapshots and the pickles that hold them: what is written is read again, and nothing is executed.
#include "headroom/interop/memory_snapshot.hpp"

#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/interop/memory_snapshot_writer.hpp"
#include "interop/pickle.hpp"

namespace headroom {
namespace {

using namespace std::string_literals;

Pickle pickle_of(const std::string& bytes) {
  std::stringbuf buffer(bytes);
  return read_pickle(buffer, "test.pickle");
}

std::string refusal(const std::string& bytes) {
  try {
    pickle_of(bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string written(const MemorySnapshot& snapshot) {
  std::string all;
  write_snapshot(snapshot, [&](const std::string& bytes) { all += bytes; });
  return all;
}

MemorySnapshot two_blocks() {
  MemorySnapshot snapshot;
  snapshot.frames = {{.name = "forward", .file = "mlp.py", .line = 12},
                     {.name = "step", .file = "train.py", .line = 3}};
  snapshot.stacks = {{}, {0, 1}, {1}};
  snapshot.segments = {{.address = 0x7f0000000000,
                        .size = 20 << 20,
                        .stream = 7,
                        .blocks = {{.address = 0x7f0000000000,
                                    .size = 3 << 20,
                                    .requested = (3 << 20) - 100,
                                    .state = SnapshotState::allocated,
                                    .stack = 1},
                                   {.address = 0x7f0000300000, .size = 17 << 20}}}};
  snapshot.traces = {
      {{.action = SnapshotAction::segment_alloc, .address = 0x7f0000000000, .size = 20 << 20, .stream = 7},
       {.action = SnapshotAction::alloc,
        .address = 0x7f0000000000,
        .size = (3 << 20) - 100,
        .stream = 7,
        .time_us = 1,
        .stack = 1},
       {.action = SnapshotAction::oom,
        .address = 1 << 20,
        .size = std::int64_t{1} << 33,
        .time_us = 2,
        .stack = 2}}};
  snapshot.settings = {.configuration = "expandable_segments:True", .expandable = true};
  return snapshot;
}

}  // namespace

TEST_CASE("memory snapshot: what is written is read again") {
  const MemorySnapshot snapshot = two_blocks();
  CHECK(parse_snapshot(written(snapshot), "test.pickle") == snapshot);
  const MemorySnapshot empty{.traces = {{}}};
  CHECK(parse_snapshot(written(empty), "test.pickle") == empty);
}

TEST_CASE("memory snapshot: longer lists than a viewer takes at once are written in runs") {
  MemorySnapshot snapshot = two_blocks();
  for (int i = 0; i < 2500; ++i) snapshot.traces[0].push_back(snapshot.traces[0][1]);
  CHECK(parse_snapshot(written(snapshot), "test.pickle") == snapshot);
}

TEST_CASE("pickle: reads plain containers of protocols 0 to 4") {
  // {'a': [1, -2, 3.5, None, True], 'b': ('x', 70000, 2**40)} by Python's pickle.dumps.
  const std::string texts[] = {
      "(dp0\nVa\np1\n(lp2\nI1\naI-2\naF3.5\naNaI01\nasVb\np3\n(Vx\np4\nI70000\nL1099511627776L\ntp5\ns."s,
      "\x80\x02}q\x00(X\x01\x00\x00\x00"s
      "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffG@\x0c\x00\x00\x00\x00\x00\x00N\x88"s
      "eX\x01\x00\x00\x00"s
      "bq\x03X\x01\x00\x00\x00xq\x04Jp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x87q\x05u."s,
      "\x80\x04\x95\x3c\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"s
      "a\x94]\x94(K\x01J\xfe\xff\xff\xffG@\x0c\x00\x00\x00\x00\x00\x00N\x88"s
      "e\x8c\x01"s
      "b\x94\x8c\x01x\x94Jp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x87\x94u."s};
  for (const std::string& text : texts) {
    const Pickle pickle = pickle_of(text);
    REQUIRE(pickle.root.kind == PickleKind::dict);
    const PickleValue* const list = pickle.find(pickle.root, "a");
    const PickleValue* const tuple = pickle.find(pickle.root, "b");
    REQUIRE(list != nullptr);
    REQUIRE(tuple != nullptr);
    CHECK(pickle.find(pickle.root, "c") == nullptr);
    const auto& items = pickle.items(*list);
    REQUIRE(items.size() == 5);
    CHECK(items[0].integer == 1);
    CHECK(items[1].integer == -2);
    CHECK(items[2].real == 3.5);
    CHECK(items[3].kind == PickleKind::none);
    CHECK(items[4].kind == PickleKind::boolean);
    CHECK(items[4].integer == 1);
    const auto& last = pickle.items(*tuple);
    REQUIRE(last.size() == 3);
    CHECK(pickle.text(last[0]) == "x");
    CHECK(last[1].integer == 70000);
    CHECK(last[2].integer == std::int64_t{1} << 40);
  }
}

TEST_CASE("pickle: what would run code is refused by name and place") {
  CHECK(refusal("\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94."s)
            .find("byte 19: opcode STACK_GLOBAL is not allowed") != std::string::npos);
  CHECK(refusal("cos\nsystem\n(S'ls'\ntR."s).find("byte 0: opcode GLOBAL is not allowed") !=
        std::string::npos);
  CHECK(refusal("\x80\x02]R."s).find("REDUCE") != std::string::npos);
  CHECK(refusal("\x80\x02]}b."s).find("BUILD") != std::string::npos);
}

TEST_CASE("pickle: damage and excess are named by their byte") {
  CHECK(refusal("\x80\x02}"s).find("byte 3: the pickle is cut off") != std::string::npos);
  CHECK(refusal("").find("cut off") != std::string::npos);
  CHECK(refusal("\x80\x09."s).find("protocol after 5") != std::string::npos);
  CHECK(refusal("\xff"s).find("0xff is no opcode") != std::string::npos);
  CHECK(refusal("e."s).find("mark that is not there") != std::string::npos);
  CHECK(refusal("a."s).find("value that is not there") != std::string::npos);
  CHECK(refusal("K\x01K\x02."s).find("other than one value") != std::string::npos);
  CHECK(refusal("}(K\x01u."s).find("a key without a value") != std::string::npos);
  CHECK(refusal("K\x01(K\x02"
                "e."s)
            .find("no list") != std::string::npos);
  CHECK(refusal("h\x05."s).find("takes value 5") != std::string::npos);
  CHECK(refusal("Nr\xff\xff\xff\x7f."s).find("no room for value") != std::string::npos);
  CHECK(refusal("X\xff\xff\xff\x7f"s).find("a string has 2147483647 bytes") != std::string::npos);
  CHECK(refusal("\x8b\xff\xff\xff\x7f"s).find("a whole number has 2147483647 bytes") != std::string::npos);
  CHECK(refusal("I12x\n."s).find("'12x' is no whole number") != std::string::npos);
}

TEST_CASE("pickle: a list that holds itself ends") {
  const Pickle pickle = pickle_of(
      "\x80\x02]q\x00h\x00"
      "a."s);
  REQUIRE(pickle.items(pickle.root).size() == 1);
  CHECK(pickle.items(pickle.root)[0].place == pickle.root.place);
  CHECK_THROWS_AS(parse_snapshot("\x80\x02]q\x00h\x00"
                                 "a."s,
                                 "test.pickle"),
                  InputError);
}

TEST_CASE("memory snapshot: what is none is refused by field") {
  const auto rule = [](const std::string& bytes) {
    try {
      parse_snapshot(bytes, "test.pickle");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(rule("\x80\x02}."s).find("must have segments and device_traces") != std::string::npos);
  CHECK(rule("\x80\x02K\x01."s).find("must be a dictionary") != std::string::npos);
  CHECK(rule("\x80\x02}(X\x08\x00\x00\x00segments](}eu."s).find("/segments/0: must have address") !=
        std::string::npos);
  MemorySnapshot outside = two_blocks();
  outside.segments[0].blocks[1].size = 18 << 20;
  MemorySnapshot huge = two_blocks();
  huge.segments[0].size = std::int64_t{1} << 47;
  CHECK(rule(written(huge)).find("/segments/0/total_size: must be from 0 to 2^46") != std::string::npos);
  CHECK(rule(written(outside))
            .find("/segments/0/blocks/1: must lie within its segment, after the block before it") !=
        std::string::npos);
}

}  // namespace headroom
