// Models that are known by their names on the hub alone.
#include "interop/hub_published.hpp"

#include <cmath>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/interop/hugging_face.hpp"
#include "headroom/memory/state.hpp"

namespace headroom {
namespace {

struct PublishedCount {
  const char* name;
  double parameters;  // of the safetensors files on the model's page
};

TEST_CASE("published names have the published numbers of parameters, within 0.1%") {
  const PublishedCount cases[] = {{"bigscience/bloom-560m", 559'214'592},
                                  {"bigscience/bloom-7b1", 7'069'016'064},
                                  {"tiiuae/falcon-7b", 6'921'720'704},
                                  {"google/gemma-2b", 2'506'172'416},
                                  {"google/gemma-7b-it", 8'537'680'896},
                                  {"microsoft/phi-2", 2'779'683'840},
                                  {"EleutherAI/pythia-6.9b-deduped", 6'857'302'016},
                                  {"EleutherAI/pythia-12b", 11'846'072'320},
                                  {"EleutherAI/gpt-neox-20b", 20'554'567'680},
                                  {"bigcode/starcoder2-3b", 3'030'371'328},
                                  {"bigcode/starcoder2-7b", 7'173'923'840},
                                  {"deepseek-ai/deepseek-llm-7b-chat", 6'910'365'696},
                                  {"Qwen/Qwen1.5-7B", 7'721'324'544},
                                  {"facebook/opt-1.3b", 1'315'758'080},
                                  {"HuggingFaceTB/SmolLM2-135M", 134'515'008},
                                  {"Qwen/Qwen2.5-1.5B-Instruct", 1'543'714'304},
                                  {"mistralai/Mistral-7B-v0.3", 7'248'023'552},
                                  {"codellama/CodeLlama-13b-hf", 13'015'864'320},
                                  {"upstage/SOLAR-10.7B-v1.0", 10'731'524'096},
                                  {"ibm-granite/granite-3.1-8b-instruct", 8'170'848'256},
                                  {"internlm/internlm2-7b", 7'737'708'544},
                                  {"CohereForAI/c4ai-command-r-v01", 34'980'831'232},
                                  {"mosaicml/mpt-7b", 6'649'286'656},
                                  {"databricks/dbrx-instruct", 131'596'523'520},
                                  {"Qwen/Qwen1.5-MoE-A2.7B", 14'315'784'192},
                                  {"Qwen/Qwen2-57B-A14B-Instruct", 57'409'011'712},
                                  {"Qwen/Qwen3-Coder-480B-A35B-Instruct", 480'154'875'392},
                                  {"ByteDance-Seed/Seed-OSS-36B-Base", 36'151'104'512},
                                  {"internlm/internlm3-8b-instruct", 8'804'241'408},
                                  {"mistralai/Codestral-22B-v0.1", 22'247'282'688},
                                  {"tiiuae/Falcon3-7B-Base", 7'455'550'464},
                                  {"microsoft/Phi-3.5-MoE-instruct", 41'873'153'344},
                                  {"ai21labs/Jamba-v0.1", 51'570'323'328}};
  for (const PublishedCount& one : cases) {
    CAPTURE(one.name);
    const Transformer model = read_any_model(one.name);
    const double counted = parameter_count(model);
    CAPTURE(counted);
    CHECK(std::abs(counted / one.parameters - 1) < 0.001);
  }
}

TEST_CASE("every published configuration is a model, under its own name") {
  std::set<std::string> names;
  for (const PublishedConfig& row : published_configs()) {
    CAPTURE(row.name);
    CHECK(names.insert(std::string(row.name)).second);
    CHECK(published_config(row.name) == &row);
    CHECK(read_any_model(std::string(row.name)).name == row.name);
  }
}

TEST_CASE("a name that only starts like a published one is not taken for it") {
  CHECK_THROWS_AS(read_any_model("acme/falcon-7b-pruned"), InputError);
  CHECK_THROWS_AS(read_any_model("acme/falcon-70b"), InputError);
}

}  // namespace
}  // namespace headroom
