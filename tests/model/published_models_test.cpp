// Parameters of models as published, all of them and those that a token meets. The counts are those of each model's published
// configuration, worked out apart from this program; of Mixtral 8x22B, instantiation gave the same.
#include <string>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/memory/state.hpp"

namespace headroom {
namespace {

struct Published {
  const char* name;
  double all;
  double active;
  double active_without_embedding;
};

constexpr Published published[] = {
    {"mixtral-8x7b", 46'702'792'704, 12'879'925'248, 12'748'853'248},
    {"mixtral-8x22b", 140'620'634'112, 39'152'031'744, 38'955'423'744},
    {"deepseek-v2", 235'741'434'880, 21'375'800'320, 20'851'512'320},
    {"deepseek-v2-lite", 15'706'484'224, 2'661'150'208, 2'451'435'008},
    {"deepseek-v3", 671'026'419'200, 37'552'297'472, 36'625'618'432},
    {"qwen2.5-0.5b", 494'032'768, 494'032'768, 494'032'768},
    {"qwen2.5-7b", 7'615'616'512, 7'615'616'512, 7'070'619'136},
    {"qwen2.5-14b", 14'770'033'664, 14'770'033'664, 13'991'465'984},
    {"qwen2.5-32b", 32'763'876'352, 32'763'876'352, 31'985'308'672},
    {"qwen2.5-72b", 72'706'203'648, 72'706'203'648, 71'460'495'360},
    {"qwen3-0.6b", 596'049'920, 596'049'920, 596'049'920},
    {"qwen3-1.7b", 1'720'574'976, 1'720'574'976, 1'720'574'976},
    {"qwen3-4b", 4'022'468'096, 4'022'468'096, 4'022'468'096},
    {"qwen3-8b", 8'190'735'360, 8'190'735'360, 7'568'405'504},
    {"qwen3-14b", 14'768'307'200, 14'768'307'200, 13'990'394'880},
    {"qwen3-32b", 32'762'123'264, 32'762'123'264, 31'984'210'944},
    {"qwen3-30b-a3b", 30'532'122'624, 3'353'032'704, 3'041'867'776},
    {"qwen3-235b-a22b", 235'093'634'560, 22'190'763'520, 21'568'433'664},
    {"gpt-oss-20b", 20'914'757'184, 4'187'440'704, 3'608'307'264},
    {"gpt-oss-120b", 116'829'156'672, 5'711'982'912, 5'132'849'472},
    {"llama-3.2-1b", 1'235'814'400, 1'235'814'400, 1'235'814'400},
    {"llama-3.2-3b", 3'212'749'824, 3'212'749'824, 3'212'749'824},
    {"llama-4-scout", 107'769'861'120, 17'172'894'720, 16'138'408'960},
    {"llama-4-maverick", 400'711'848'960, 17'184'691'200, 16'150'205'440},
    {"gemma-2-2b", 2'614'341'888, 2'614'341'888, 2'614'341'888},
    {"gemma-2-9b", 9'241'705'984, 9'241'705'984, 9'241'705'984},
    {"gemma-2-27b", 27'227'128'320, 27'227'128'320, 27'227'128'320},
    {"gemma-3-1b", 999'885'952, 999'885'952, 999'885'952},
    {"gemma-3-4b", 3'880'263'168, 3'880'263'168, 3'880'263'168},
    {"gemma-3-12b", 11'766'034'176, 11'766'034'176, 11'766'034'176},
    {"gemma-3-27b", 27'009'346'304, 27'009'346'304, 27'009'346'304},
    {"nemotron-4-340b", 341'029'195'776, 341'029'195'776, 336'310'603'776},
    {"kimi-k2", 1'026'408'232'448, 32'861'500'928, 31'687'095'808},
    {"glm-4.5", 352'797'829'024, 33'632'266'144, 32'856'319'904},
    {"glm-4.5-air", 106'852'251'264, 13'424'129'664, 12'803'372'672},
    {"phi-3-mini", 3'821'079'552, 3'821'079'552, 3'722'578'944},
    {"phi-4", 14'659'507'200, 14'659'507'200, 14'145'704'960},
    {"mistral-7b", 7'241'732'096, 7'241'732'096, 7'110'660'096},
    {"mistral-nemo-12b", 12'247'782'400, 12'247'782'400, 11'576'693'760},
    {"mistral-large-2", 122'610'069'504, 122'610'069'504, 122'207'416'320},
    {"nemotron-h-8b", 8'100'852'736, 8'100'852'736, 7'563'981'824},
    {"nemotron-h-47b", 46'791'554'816, 46'791'554'816, 45'717'812'992},
    {"nemotron-h-56b", 56'324'350'464, 56'324'350'464, 55'250'608'640},
    {"nemotron-3-nano-30b-a3b", 31'577'940'288, 3'580'076'352, 3'227'754'816},
    {"nemotron-3-super-120b-a12b", 120'668'707'840, 12'770'237'440, 12'233'366'528},
    {"qwen3-next-80b-a3b", 79'674'391'296, 3'874'929'408, 3'563'764'480},
    {"qwen3.5-27b", 26'895'998'464, 26'895'998'464, 25'624'600'064},
    {"kimi-linear-48b-a3b", 49'122'681'728, 3'484'459'904, 3'106'972'544},
    {"mistral-small-24b", 23'572'403'200, 23'572'403'200, 22'901'314'560},
};

}  // namespace

TEST_CASE("published models: parameters, all and active, to the last one") {
  for (const Published& row : published) {
    CAPTURE(row.name);
    const ParameterCounts counts = parameter_counts(read_model(row.name));
    CHECK(counts.all == row.all);
    CHECK(counts.active == row.active);
    CHECK(counts.active_without_embedding == row.active_without_embedding);
  }
}

// The projection, three normalizations and a layer; embedding and output layer are the model's.
TEST_CASE("published models: parameters of multi-token prediction, beside the model's") {
  CHECK(parameter_counts(read_model("deepseek-v3")).predictors == 11'610'068'224);
  CHECK(parameter_counts(read_model("glm-4.5")).predictors == 3'988'069'792);
  CHECK(parameter_counts(read_model("glm-4.5-air")).predictors == 2'375'059'584);
  CHECK(parameter_counts(read_model("kimi-k2")).predictors == 0);
}

TEST_CASE("published models: a dense model's parameters are all active") {
  const ParameterCounts counts = parameter_counts(read_model("gpt3-175b"));
  CHECK(counts.active == counts.all);
  CHECK(counts.active_without_embedding == counts.all);  // tied embeddings
}

}  // namespace headroom
