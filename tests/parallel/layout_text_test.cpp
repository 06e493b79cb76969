#include "headroom/parallel/layout_text.hpp"

#include <doctest/doctest.h>

#include "headroom/parallel/stage_layout.hpp"

namespace headroom {
namespace {

WrittenLayout layout_of(std::string_view text) { return std::get<WrittenLayout>(read_layout(text)); }
bool is_none(std::string_view text) { return std::holds_alternative<std::string>(read_layout(text)); }

}  // namespace

TEST_CASE("layout text: stages between bars, repeats written out, commas dropped") {
  // DeepSeek-V3's 61 layers in 32 stages [Megatron-Bridge, recipes/deepseek].
  const WrittenLayout deepseek = layout_of("Et|(tt|)*30mL");
  CHECK(deepseek.stage_layers.size() == 32);
  CHECK(deepseek.stage_layers.front() == 1);
  CHECK(deepseek.stage_layers[30] == 2);
  CHECK(deepseek.stage_layers.back() == 0);
  CHECK(deepseek.mtp_layers == 1);
  CHECK(deepseek.mtp_beside_loss);
  CHECK_FALSE(layout_of("Et*3|(tt|)*29,m|L").mtp_beside_loss);
  CHECK(layout_of("Et*2|(t|tt|)*2L").stage_layers == std::vector<std::int64_t>{2, 1, 2, 1, 2, 0});
  CHECK(layout_of("Ettt|(tt|)*2,m|L").stage_layers == std::vector<std::int64_t>{3, 2, 2, 0, 0});
  CHECK(layout_of("E|*2tL").stage_layers == std::vector<std::int64_t>{0, 0, 1});
  CHECK(layout_of("EL").stage_layers == std::vector<std::int64_t>{0});
}

TEST_CASE("layout text: what megatron_layout() writes is read") {
  const std::vector<std::int64_t> layers{7, 8, 8, 9, 8, 0};
  CHECK(layout_of(megatron_layout(layers, 2)).stage_layers == layers);
  CHECK(layout_of(megatron_layout(layers, 2)).mtp_layers == 2);
}

TEST_CASE("layout text: what is no layout") {
  for (const char* const text : {"",
                                 "nonsense",
                                 "t*3|L",
                                 "Et*3",
                                 "E(t|L",
                                 "Et)L",
                                 "Et*L",
                                 "Et*999999999999L",
                                 "EtEL",
                                 "EtLL",
                                 "Emt|L",
                                 "E(((((((((t)))))))))L",
                                 "E(t*9999)*9999L",
                                 "Et*-1L",
                                 "7,8*14,7",
                                 "t*8|t*8",
                                 "Et*8|t*8",
                                 "t*8|t*8,L",
                                 "Et*8|x,L",
                                 "E(t*2|,tL",
                                 "Et)*2,L",
                                 "E((t|)*2)*2,L",
                                 "Et*2|((t|)*2tt|)*2L",
                                 "Et*0,L",
                                 "Et*x,L",
                                 "Et*999999999999999999999,L",
                                 "E(t*99999|)*99999,L",
                                 "EtL|L"})
    CHECK_MESSAGE(is_none(text), text);
}

}  // namespace headroom
