#include "headroom/parallel/stage_layout.hpp"

#include <algorithm>
#include <numeric>
#include <variant>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "headroom/parallel/layout_text.hpp"

namespace headroom {
namespace {

// As Megatron-Core reads a layout: commas dropped, (x)*n unrolled, then each letter before *n; layers between bars.
std::vector<std::int64_t> layers_read_from(const std::string& layout) {
  std::string plain;
  for (const char c : layout) {
    if (c != ',') plain += c;
  }
  const auto number_at = [&](std::size_t& i) {
    std::int64_t number = 0;
    while (i < plain.size() && plain[i] >= '0' && plain[i] <= '9') number = 10 * number + (plain[i++] - '0');
    return number;
  };
  std::string unrolled;
  for (std::size_t i = 0; i < plain.size();) {
    if (plain[i] != '(') {
      unrolled += plain[i++];
      continue;
    }
    const std::size_t close = plain.find(')', i);
    const std::string inside = plain.substr(i + 1, close - i - 1);
    i = close + 2;  // behind the asterisk
    for (std::int64_t n = number_at(i); n > 0; --n) unrolled += inside;
  }
  plain = unrolled;
  std::vector<std::int64_t> layers{0};
  bool loss = false;
  for (std::size_t i = 0; i < plain.size();) {
    const char letter = plain[i++];
    std::int64_t times = 1;
    if (i < plain.size() && plain[i] == '*') times = number_at(++i);
    if (letter == '|') layers.push_back(0);
    if (letter == 't') layers.back() += times;
    if (letter == 'L') loss = true;
  }
  CHECK(plain.front() == 'E');
  CHECK((loss && plain.back() == 'L'));
  return layers;
}

double heaviest(const std::vector<std::int64_t>& layers, const EndLoads& ends) {
  double most = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double beside = (i == 0 ? ends.first : 0) + (i + 1 == layers.size() ? ends.last : 0);
    most = std::max(most, static_cast<double>(layers[i]) + beside);
  }
  return most;
}

// The least heaviest load of all ways to lay the layers, at least one on each stage.
double least_heaviest(std::int64_t layers, std::int64_t stages, const EndLoads& ends) {
  double best = 1e9;
  std::vector<std::int64_t> by_stage(static_cast<std::size_t>(stages), 1);
  const auto place = [&](auto& self, std::size_t stage, std::int64_t left) -> void {
    if (stage + 1 == by_stage.size()) {
      by_stage[stage] = left;
      best = std::min(best, heaviest(by_stage, ends));
      return;
    }
    const auto after = static_cast<std::int64_t>(by_stage.size() - stage) - 1;
    for (by_stage[stage] = 1; by_stage[stage] <= left - after; ++by_stage[stage]) {
      self(self, stage + 1, left - by_stage[stage]);
    }
  };
  place(place, 0, layers);
  return best;
}

}  // namespace

TEST_CASE("stage layout: even where every virtual stage has as many layers") {
  const auto of = [](std::int64_t layers, std::int64_t p, std::int64_t m) {
    return stage_layout(layers, {.pipeline_parallel = p, .virtual_pipeline = m});
  };
  CHECK(of(96, 8, 3) == StageLayout::even);
  CHECK(of(126, 16, 1) == StageLayout::uneven);
  CHECK(of(96, 8, 5) == StageLayout::uneven);
  Strategy given{.pipeline_parallel = 2, .stage_layers = {5, 3}};
  CHECK(stage_layout(8, given) == StageLayout::uneven);
  given.stage_layers = {4, 4};
  CHECK(stage_layout(8, given) == StageLayout::even);
}

TEST_CASE("stage layout: without loads at the ends, layers lie as they do where nothing is said") {
  for (const std::int64_t layers : {8, 9, 13, 100, 126}) {
    for (const std::int64_t stages : {1, 2, 4, 7, 8}) {
      CHECK(balanced_layers(layers, stages, {}) == layers_by_stage(layers, {.pipeline_parallel = stages}));
    }
  }
}

TEST_CASE("stage layout: no way to cut unlike layers has a lighter heaviest stage") {
  CHECK(rc::check([] {
    const auto stages = *rc::gen::inRange<std::size_t>(1, 5);
    const auto layers = *rc::gen::inRange<std::size_t>(stages, 12);
    const EndLoads ends{.first = *rc::gen::element(0.0, 1.3), .last = *rc::gen::element(0.0, 0.4, 3.7)};
    std::vector<double> loads;
    for (std::size_t i = 0; i < layers; ++i) loads.push_back(*rc::gen::element(0.5, 1.0, 2.7));
    const auto heaviest_of = [&](const std::vector<std::int64_t>& by_stage) {
      double most = 0;
      std::size_t next = 0;
      for (std::size_t stage = 0; stage < stages; ++stage) {
        double load = (stage == 0 ? ends.first : 0) + (stage + 1 == stages ? ends.last : 0);
        for (std::int64_t i = 0; i < by_stage[stage]; ++i) load += loads[next++];
        most = std::max(most, load);
      }
      return most;
    };
    double least = 1e9;
    std::vector<std::int64_t> by_stage(stages, 1);
    const auto place = [&](auto& self, std::size_t stage, std::size_t left) -> void {
      if (stage + 1 == stages) {
        by_stage[stage] = static_cast<std::int64_t>(left);
        least = std::min(least, heaviest_of(by_stage));
        return;
      }
      for (std::size_t taken = 1; taken + (stages - stage - 1) <= left; ++taken) {
        by_stage[stage] = static_cast<std::int64_t>(taken);
        self(self, stage + 1, left - taken);
      }
    };
    place(place, 0, layers);
    const std::vector<std::int64_t> balanced =
        balanced_layers(loads, static_cast<std::int64_t>(stages), ends);
    RC_ASSERT(std::accumulate(balanced.begin(), balanced.end(), std::int64_t{0}) ==
              static_cast<std::int64_t>(layers));
    RC_ASSERT(*std::min_element(balanced.begin(), balanced.end()) >= 1);
    RC_ASSERT(heaviest_of(balanced) <= least * (1 + 1e-9));
  }));
}

TEST_CASE("stage layout: heavy layers share a stage with fewer others") {
  const std::vector<double> loads{1, 1, 1, 1, 1, 1, 3, 3};
  CHECK(balanced_layers(loads, 2, {}) == std::vector<std::int64_t>{6, 2});
  CHECK(balanced_layers(loads, 4, {}) == std::vector<std::int64_t>{3, 3, 1, 1});
  CHECK(balanced_layers(loads, 4, {.last = 3}) == std::vector<std::int64_t>{3, 3, 1, 1});
}

TEST_CASE("stage layout: the last stage makes room for the head") {
  // 128,256 x 4096 against 218 million weights a layer: the head is worth 2.4 layers.
  const EndLoads llama = end_loads(read_model("llama-3-8b"));
  CHECK(llama.first == 0);
  CHECK(llama.last > 1.8);
  CHECK(llama.last < 2.5);
  CHECK(balanced_layers(32, 4, {.last = 2.4}) == std::vector<std::int64_t>{8, 9, 9, 6});
}

TEST_CASE(
    "stage layout: no way to lay the layers has a lighter heaviest stage, and one more makes none lighter") {
  CHECK(rc::check([] {
    const auto stages = *rc::gen::inRange<std::int64_t>(1, 6);
    const auto layers = *rc::gen::inRange<std::int64_t>(stages, 14);
    const EndLoads ends{.first = *rc::gen::element(0.0, 0.5, 1.0, 2.3),
                        .last = *rc::gen::element(0.0, 0.4, 1.0, 3.7)};
    const std::vector<std::int64_t> balanced = balanced_layers(layers, stages, ends);
    RC_ASSERT(std::accumulate(balanced.begin(), balanced.end(), std::int64_t{0}) == layers);
    RC_ASSERT(*std::min_element(balanced.begin(), balanced.end()) >= 1);
    RC_ASSERT(heaviest(balanced, ends) == least_heaviest(layers, stages, ends));
    const std::vector<std::int64_t> deeper = balanced_layers(layers + 1, stages, ends);
    for (std::size_t i = 0; i < balanced.size(); ++i) RC_ASSERT(deeper[i] >= balanced[i]);
  }));
}

TEST_CASE("stage layout: Megatron's string is read back as the layers of each stage") {
  const std::vector<std::int64_t> llama{7, 8, 8, 8, 7};
  CHECK(megatron_layout(llama) == "Et*7|(t*8|)*3,t*7,L");
  CHECK(megatron_layout(llama, 1) == "Et*7|(t*8|)*3,t*7,mL");
  const std::vector<std::int64_t> bare{0, 1, 2, 2, 0};
  CHECK(megatron_layout(bare) == "E|t|(t*2|)*2,L");
  CHECK(rc::check([] {
    const auto count = *rc::gen::inRange<std::size_t>(1, 9);
    const auto layers =
        *rc::gen::container<std::vector<std::int64_t>>(count, rc::gen::inRange<std::int64_t>(0, 13));
    RC_ASSERT(layers_read_from(megatron_layout(layers)) == layers);
    RC_ASSERT(std::get<WrittenLayout>(read_layout(megatron_layout(layers))).stage_layers == layers);
    RC_ASSERT(std::get<WrittenLayout>(read_layout(megatron_layout(layers, 1))).stage_layers == layers);
  }));
}

TEST_CASE("stage layout: the layers of the end ranks say all where ranks between and chunks are alike") {
  const std::vector<std::int64_t> ends{7, 8, 8, 6};
  CHECK(end_ranks(ends, 4) == EndRanks{.first = 7, .last = 6});
  const std::vector<std::int64_t> chunks{3, 4, 2, 3, 4, 2};
  CHECK(end_ranks(chunks, 3) == EndRanks{.first = 6, .last = 4});
  const std::vector<std::int64_t> lighter_end{4, 4, 4, 4, 4, 3};
  CHECK(end_ranks(lighter_end, 3) == std::nullopt);
  const std::vector<std::int64_t> two{5, 3};
  CHECK(end_ranks(two, 2) == EndRanks{.first = 5, .last = 3});
}

TEST_CASE("stage layout: the layers of the end ranks make the stages that they were told of") {
  using Layers = std::vector<std::int64_t>;
  const auto stages = [](const EndRanks& ends, std::int64_t layers, std::int64_t p, std::int64_t m) {
    return layers_with_ends(ends, layers, p, m);
  };
  for (const auto& [by_stage, ranks] : {std::pair{Layers{7, 8, 8, 6}, 4},
                                        {Layers{3, 4, 2, 3, 4, 2}, 3},
                                        {Layers{4, 5, 5, 4, 5, 5}, 3},
                                        {Layers{17, 15}, 2}}) {
    const std::int64_t layers = std::accumulate(by_stage.begin(), by_stage.end(), std::int64_t{0});
    const std::optional<EndRanks> ends = end_ranks(by_stage, ranks);
    REQUIRE(ends);
    CHECK(std::get<Layers>(stages(*ends, layers, ranks, std::ssize(by_stage) / ranks)) == by_stage);
  }
  CHECK(std::get<Layers>(stages({.first = 2}, 8, 4, 1)) == Layers{2, 2, 2, 2});
  CHECK(std::get<Layers>(stages({.last = 5}, 32, 4, 1)) == Layers{9, 9, 9, 5});
  CHECK(std::get<std::string>(stages({.first = 7, .last = 6}, 32, 4, 1)) ==
        "must leave a multiple of the 2 other ranks of `pipeline_parallel`, not 19 of 32 layers");
  CHECK(std::get<std::string>(stages({.first = 7, .last = 7}, 32, 4, 2)) ==
        "must give each rank a multiple of `virtual_pipeline` 2, not 7 layers");
  CHECK(std::get<Layers>(stages({.first = 16, .last = 16}, 32, 2, 1)) == Layers{16, 16});
  CHECK(std::get<std::string>(stages({.first = 17, .last = 16}, 32, 2, 1)) ==
        "must add up to the 32 layers, not 33: `pipeline_parallel` has no other ranks");
  CHECK(std::get<std::string>(stages({.first = 7}, 32, 1, 1)) ==
        "must add up to the 32 layers, not 7: `pipeline_parallel` has no other ranks");
  CHECK(std::get<std::string>(stages({.first = 16, .last = 16}, 32, 1, 1)) ==
        "needs `pipeline_parallel` of at least 2 for two end ranks");
}

}  // namespace headroom
