// Families of the Hugging Face hub: each of a published model has the parameters that were published, and what a
// config.json says that is not modelled is refused or told.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/memory/state.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "interop/hub_folder.hpp"

namespace headroom {
namespace {

using tests::imported;
using tests::problems_of;

struct Family {
  const char* name;
  double published;
  const char* config;
};

// Counts are those of a model's card or of its files, without buffers and without copies of tied embeddings.
const Family families[] = {
    {"falcon-7b", 6'921'720'704,
     R"({"model_type": "falcon", "alibi": false, "bias": false, "hidden_size": 4544,
      "multi_query": true, "new_decoder_architecture": false, "num_attention_heads": 71,
      "num_hidden_layers": 32, "parallel_attn": true, "vocab_size": 65024})"},  // 7,217,189,760 in its files [tiiuae/falcon-7b], which hold the tied output layer, 65024 x 4544, twice
    {"bloom-7b1", 7'069'016'064,
     R"({"model_type": "bloom", "hidden_size": 4096, "n_layer": 30, "num_attention_heads": 32,
      "vocab_size": 250880, "seq_length": 2048})"},  // bigscience/bloom-7b1, model card
    {"bloom", 176'247'271'424,
     R"({"model_type": "bloom", "n_embed": 14336, "n_layer": 70, "num_attention_heads": 112,
      "vocab_size": 250880, "seq_length": 2048})"},  // bigscience/bloom, model card
    {"starcoder2-3b", 3'030'371'328,
     R"({"model_type": "starcoder2", "hidden_size": 3072, "intermediate_size": 12288,
      "num_hidden_layers": 30, "num_attention_heads": 24, "num_key_value_heads": 2,
      "vocab_size": 49152, "use_bias": true, "sliding_window": 4096})"},  // bigcode/starcoder2-3b, files
    {"starcoder2-7b", 7'173'923'840,
     R"({"model_type": "starcoder2", "hidden_size": 4608, "intermediate_size": 18432,
      "num_hidden_layers": 32, "num_attention_heads": 36, "num_key_value_heads": 4,
      "vocab_size": 49152, "use_bias": true, "sliding_window": 4096})"},  // bigcode/starcoder2-7b, files
    {"command-r", 34'980'831'232, R"({"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528,
      "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": 64,
      "vocab_size": 256000})"},  // CohereForAI/c4ai-command-r-v01, files
    {"command-r-plus", 103'810'674'688,
     R"({"model_type": "cohere", "hidden_size": 12288, "intermediate_size": 33792,
      "num_hidden_layers": 64, "num_attention_heads": 96, "num_key_value_heads": 8,
      "vocab_size": 256000, "use_qk_norm": true})"},  // CohereForAI/c4ai-command-r-plus, files
    {"internlm2-7b", 7'737'708'544,
     R"({"model_type": "internlm2", "bias": false, "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
      "vocab_size": 92544, "tie_word_embeddings": false})"},  // internlm/internlm2-7b, files
    {"internlm2-20b", 19'861'149'696,
     R"({"model_type": "internlm2", "bias": false, "hidden_size": 6144, "intermediate_size": 16384,
      "num_hidden_layers": 48, "num_attention_heads": 48, "num_key_value_heads": 8,
      "vocab_size": 92544})"},  // internlm/internlm2-20b, files
    {"internlm3-8b", 8'804'241'408,
     R"({"model_type": "internlm3", "bias": false, "qkv_bias": false, "head_dim": 128,
      "hidden_size": 4096, "intermediate_size": 10240, "num_hidden_layers": 48,
      "num_attention_heads": 32, "num_key_value_heads": 2, "vocab_size": 128512})"},  // internlm/internlm3-8b-instruct, files
    {"baichuan2-7b", 7'505'973'248,
     R"({"model_type": "baichuan", "hidden_size": 4096, "intermediate_size": 11008,
      "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 125696})"},  // baichuan-inc/Baichuan2-7B-Base, files
    {"baichuan2-13b", 13'896'668'160,
     R"({"model_type": "baichuan", "hidden_size": 5120, "intermediate_size": 13696,
      "num_hidden_layers": 40, "num_attention_heads": 40, "vocab_size": 125696})"},  // baichuan-inc/Baichuan2-13B-Base, files
    {"smollm3-3b", 3'075'098'624, R"({"model_type": "smollm3"})"},  // HuggingFaceTB/SmolLM3-3B, files
    {"minimax-m2", 228'689'764'864,
     R"({"model_type": "minimax_m2", "num_mtp_modules": 3})"},     // MiniMaxAI/MiniMax-M2, files
    {"ernie-0.3b", 360'748'032, R"({"model_type": "ernie4_5"})"},  // baidu/ERNIE-4.5-0.3B-PT, files
    {"ernie-21b-a3b", 21'825'437'888,
     R"({"model_type": "ernie4_5_moe"})"},                         // baidu/ERNIE-4.5-21B-A3B-PT, files
    {"jamba-v0.1", 51'570'323'328, R"({"model_type": "jamba"})"},  // ai21labs/Jamba-v0.1, files
    {"mamba-2.8b", 2'768'345'600,
     R"({"model_type": "mamba", "hidden_size": 2560, "num_hidden_layers": 64, "vocab_size": 50280})"},  // state-spaces/mamba-2.8b-hf, files
    {"codestral-mamba", 7'285'403'648,
     R"({"model_type": "mamba2", "hidden_size": 4096, "num_hidden_layers": 64, "vocab_size": 32768,
      "tie_word_embeddings": false, "n_groups": 8, "num_heads": 128, "head_dim": 64,
      "state_size": 128})"},  // mistralai/Mamba-Codestral-7B-v0.1, files
    {"qwen2-vl-7b", 7'615'616'512,
     R"({"model_type": "qwen2_vl", "hidden_size": 3584, "intermediate_size": 18944,
      "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
      "vocab_size": 152064, "vision_config": {}})"},  // Qwen/Qwen2-7B, files: the text part is its layers
    {"qwen3-vl-8b", 8'190'735'360,
     R"({"model_type": "qwen3_vl", "tie_word_embeddings": false, "vision_config": {},
      "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 4096,
      "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
      "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936}})"},  // Qwen/Qwen3-8B, files: likewise
    {"qwen3-vl-30b-a3b", 30'532'122'624,
     R"({"model_type": "qwen3_vl_moe", "tie_word_embeddings": false, "vision_config": {},
      "text_config": {"model_type": "qwen3_vl_moe_text", "hidden_size": 2048,
      "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
      "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
      "num_experts": 128, "num_experts_per_tok": 8}})"},  // Qwen/Qwen3-30B-A3B, files: likewise
    {"exaone-3.5-7.8b", 7'818'448'896,
     R"({"model_type": "exaone", "hidden_size": 4096, "intermediate_size": 14336, "num_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 102400,
      "tie_word_embeddings": false, "activation_function": "silu"})"},  // LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct, files
    {"exaone-4.0-32b", 32'003'216'384,
     R"({"model_type": "exaone4", "hidden_size": 5120, "intermediate_size": 27392,
      "num_hidden_layers": 64, "num_attention_heads": 40, "num_key_value_heads": 8,
      "head_dim": 128, "vocab_size": 102400, "sliding_window": 4096,
      "sliding_window_pattern": "LLLG"})"},  // LGAI-EXAONE/EXAONE-4.0-32B, files
    {"olmoe-1b-7b", 6'919'161'856,
     R"({"model_type": "olmoe", "intermediate_size": 1024})"},  // allenai/OLMoE-1B-7B-0924, files
    {"olmo-7b", 6'888'095'744, R"({"model_type": "olmo"})"},    // allenai/OLMo-7B-hf, files
    {"olmo3-7b", 7'298'011'136,
     R"({"model_type": "olmo3", "vocab_size": 100278})"},  // allenai/Olmo-3-1025-7B, files
    {"olmo3-32b", 32'233'522'176, R"({"model_type": "olmo3", "vocab_size": 100278, "hidden_size": 5120,
      "intermediate_size": 27648, "num_hidden_layers": 64, "num_attention_heads": 40,
      "num_key_value_heads": 8})"},                        // allenai/Olmo-3-1125-32B, files
    {"dbrx", 131'596'523'520,
     R"({"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len": 32768,
      "vocab_size": 100352, "attn_config": {"kv_n_heads": 8, "clip_qkv": 8},
      "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}})"},  // databricks/dbrx-base, files
    {"phi-3.5-moe", 41'873'153'344, R"({"model_type": "phimoe", "attention_bias": true, "lm_head_bias": true,
      "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 6400})"},  // microsoft/Phi-3.5-MoE-instruct, files
    {"phi-2", 2'779'683'840, R"({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240,
      "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 51200})"},  // microsoft/phi-2, files
    {"gpt-j-6b", 6'053'381'344, R"({"model_type": "gptj"})"},  // EleutherAI/gpt-j-6b, model card
    {"stablelm-3b-4e1t", 2'795'443'200,
     R"({"model_type": "stablelm"})"},  // stabilityai/stablelm-3b-4e1t, model card
    {"stablelm-2-1.6b", 1'644'515'328,
     R"({"model_type": "stablelm", "hidden_size": 2048, "intermediate_size": 5632,
      "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32,
      "use_qkv_bias": true, "vocab_size": 100352})"},  // stabilityai/stablelm-2-1_6b, model card
    {"stablelm-2-12b", 12'143'605'760,
     R"({"model_type": "stablelm", "hidden_size": 5120, "intermediate_size": 13824,
      "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
      "qk_layernorm": true, "use_parallel_residual": true, "vocab_size": 100352,
      "use_qkv_bias": false})"},  // stabilityai/stablelm-2-12b, model card
    {"mpt-7b", 6'649'286'656,
     R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432,
      "no_bias": true, "attn_config": {"alibi": true}, "max_seq_len": 2048, "expansion_ratio": 4})"},  // mosaicml/mpt-7b, files
    {"glm-4-9b-0414", 9'400'279'040, R"({"model_type": "glm4"})"},  // zai-org/GLM-4-9B-0414, files
    {"seed-oss-36b", 36'151'104'512,
     R"({"model_type": "seed_oss", "hidden_size": 5120, "vocab_size": 155136})"},  // ByteDance-Seed/Seed-OSS-36B-Base, files
    {"apertus-8b", 8'053'338'176,
     R"({"model_type": "apertus", "intermediate_size": 21504, "num_key_value_heads": 8})"},  // swiss-ai/Apertus-8B-2509, files
    {"lfm2-1.2b", 1'170'340'608, R"({"model_type": "lfm2", "hidden_size": 2048, "block_ff_dim": 12288,
      "block_auto_adjust_ff_dim": true, "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0,
      "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
      "full_attn_idxs": [2, 5, 8, 10, 12, 14], "conv_L_cache": 3, "vocab_size": 65536})"},  // LiquidAI/LFM2-1.2B, files
    {"lfm2-8b-a1b", 8'339'929'856,
     R"({"model_type": "lfm2_moe", "num_hidden_layers": 24, "layer_types": ["conv", "conv",
      "full_attention", "conv", "conv", "conv", "full_attention", "conv", "conv", "conv",
      "full_attention", "conv", "conv", "conv", "full_attention", "conv", "conv", "conv",
      "full_attention", "conv", "conv", "full_attention", "conv", "conv"]})"},  // LiquidAI/LFM2-8B-A1B, files
    {"deepseek-moe-16b", 16'375'728'128,
     R"({"model_type": "deepseek", "hidden_size": 2048, "intermediate_size": 10944,
      "moe_intermediate_size": 1408, "num_hidden_layers": 28, "num_attention_heads": 16,
      "num_key_value_heads": 16, "n_routed_experts": 64, "n_shared_experts": 2,
      "num_experts_per_tok": 6, "first_k_dense_replace": 1, "vocab_size": 102400})"},  // deepseek-ai/deepseek-moe-16b-base, files
    {"dots.llm1", 142'774'381'696, R"({"model_type": "dots1", "hidden_size": 4096, "intermediate_size": 10944,
      "num_hidden_layers": 62, "num_attention_heads": 32, "num_key_value_heads": 32,
      "head_dim": 128, "n_routed_experts": 128, "n_shared_experts": 2, "num_experts_per_tok": 6,
      "first_k_dense_replace": 1, "vocab_size": 152064, "sliding_window": null})"},  // rednote-hilab/dots.llm1.base, files
    {"starcoder", 15'517'456'384,
     R"({"model_type": "gpt_bigcode", "n_embd": 6144, "n_head": 48, "n_layer": 40, "n_inner": 24576,
      "n_positions": 8192, "vocab_size": 49152, "multi_query": true})"},  // bigcode/starcoder, files
    {"qwen-7b", 7'721'324'544, R"({"model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016,
      "num_hidden_layers": 32, "num_attention_heads": 32, "kv_channels": 128, "vocab_size": 151936,
      "no_bias": true})"},                                                // Qwen/Qwen-7B, files
    {"minicpm-2b", 2'724'880'896, R"({"model_type": "minicpm", "vocab_size": 122753, "hidden_size": 2304,
      "intermediate_size": 5760, "num_hidden_layers": 40, "num_attention_heads": 36,
      "num_key_value_heads": 36})"},  // openbmb/MiniCPM-2B-sft-bf16, files
    {"ling-mini-2.0", 16'255'643'392,
     R"({"model_type": "bailing_moe", "hidden_size": 2048, "intermediate_size": 5120,
      "moe_intermediate_size": 512, "num_hidden_layers": 20, "num_attention_heads": 16,
      "num_key_value_heads": 4, "head_dim": 128, "num_experts": 256, "num_experts_per_tok": 8,
      "num_shared_experts": 1, "first_k_dense_replace": 1, "vocab_size": 157184,
      "use_qk_norm": true, "n_group": 8, "topk_group": 4, "score_function": "sigmoid",
      "moe_router_enable_expert_bias": true, "norm_topk_prob": true})"},  // inclusionAI/Ling-mini-2.0, files
    {"ling-flash-2.0", 102'889'705'216,
     R"({"model_type": "bailing_moe", "hidden_size": 4096, "intermediate_size": 9216,
      "moe_intermediate_size": 1024, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 4, "head_dim": 128, "num_experts": 256, "num_experts_per_tok": 8,
      "num_shared_experts": 1, "first_k_dense_replace": 1, "vocab_size": 157184,
      "use_qk_norm": true, "n_group": 8, "topk_group": 4, "score_function": "sigmoid",
      "moe_router_enable_expert_bias": true, "norm_topk_prob": true})"},  // inclusionAI/Ling-flash-2.0, files
};

double parameters_of(const std::string& config) { return parameter_counts(imported(config).model).all; }

bool tells(const ImportedModel& model, const std::string& what) {
  return std::any_of(model.assumed.begin(), model.assumed.end(),
                     [&](const HubAssumption& it) { return it.sentence.find(what) != std::string::npos; });
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string repeated(const std::string& list, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += (i > 0 ? ", " : "") + list;
  return all;
}

}  // namespace

TEST_CASE("hub families: parameters are within 0.05% of what was published") {
  for (const Family& family : families) {
    CAPTURE(family.name);
    CHECK(std::abs(parameters_of(family.config) / family.published - 1) < 5e-4);
  }
}

TEST_CASE("hub families: Falcon's layers of both generations") {
  const Transformer first = imported(R"({"model_type": "falcon"})").model;
  CHECK(first.key_value_heads == 1);
  CHECK(first.feedforward == 4 * 4544);
  CHECK(first.architecture.residual == ResidualForm::parallel_shared_norm);
  const std::string forty = R"({"model_type": "falcon", "hidden_size": 8192, "num_attention_heads": 128,
      "num_hidden_layers": 60, "new_decoder_architecture": true, "num_kv_heads": 8)";
  CHECK(parameters_of(forty + "}") == 41'303'293'952);
  CHECK(imported(forty + "}").model.architecture.residual == ResidualForm::parallel);
  CHECK(imported(forty + R"(, "num_ln_in_parallel_attn": 1})").model.architecture.residual ==
        ResidualForm::parallel_shared_norm);
  CHECK(imported(R"({"model_type": "falcon", "alibi": true})").model.architecture.positions ==
        Positions::alibi);
  CHECK(imported(R"({"model_type": "falcon", "parallel_attn": false})").model.architecture.residual ==
        ResidualForm::sequential);
}

TEST_CASE("hub families: positions that no key names, and layers without any") {
  CHECK(imported(R"({"model_type": "baichuan"})").model.architecture.positions == Positions::rotary);
  CHECK(imported(R"({"model_type": "baichuan", "hidden_size": 5120, "num_attention_heads": 40})")
            .model.architecture.positions == Positions::alibi);
  CHECK(imported(R"({"model_type": "mpt", "attn_config": {"alibi": false}})").model.architecture.positions ==
        Positions::learned);
  const Transformer smol = imported(R"({"model_type": "smollm3"})").model;
  REQUIRE(smol.layer_kinds.size() == 2);
  CHECK(smol.layer_kinds[1].architecture.positions == Positions::none);
  // Layers that see all tokens have no positions.
  for (const char* const type : {"cohere2", "exaone4"}) {
    const Transformer model = imported(std::string(R"({"model_type": ")") + type + "\"}").model;
    REQUIRE(model.layer_kinds.size() == 2);
    CHECK(model.layer_kinds[0].architecture.window == 4096);
    CHECK(model.layer_kinds[0].architecture.positions == Positions::rotary);
    CHECK(model.layer_kinds[1].architecture.window == 0);
    CHECK(model.layer_kinds[1].architecture.positions == Positions::none);
  }
  const Transformer code = imported(R"({"model_type": "cwm", "num_hidden_layers": 4})").model;
  CHECK(code.layer_runs == std::vector<LayerRun>{{0, 1}, {1, 3}});
}

TEST_CASE("hub families: lightning attention, by a list of numbers or of words") {
  const std::string sizes = R"("hidden_size": 6144, "intermediate_size": 9216, "num_hidden_layers": 80,
      "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 32,
      "num_experts_per_tok": 2, "vocab_size": 200064, )";
  // MiniMaxAI/MiniMax-M1-80k, its files.
  CHECK(parameters_of(R"({"model_type": "minimax_m1", )" + sizes + R"("attn_type_list": [)" +
                      repeated("0, 0, 0, 0, 0, 0, 0, 1", 10) + "]}") == 456'089'655'296);
  const std::string words = repeated("\"linear_attention\"", 7) + ", \"full_attention\"";
  CHECK(parameters_of(R"({"model_type": "minimax", )" + sizes + R"("layer_types": [)" + repeated(words, 10) +
                      "]}") == 456'089'655'296);
  CHECK(has(
      problems_of(R"({"model_type": "minimax_text_01", "num_hidden_layers": 4, "attn_type_list": [0, 1]})"),
      "attn_type_list: must be of the model's 4 layers (found 2)"));
  CHECK(has(
      problems_of(R"({"model_type": "minimax_text_01", "num_hidden_layers": 2, "attn_type_list": [0, 2]})"),
      "attn_type_list: must be a list of 0 and 1 (found 2)"));
  CHECK(has(problems_of(R"({"model_type": "minimax_text_01"})"), "attn_type_list: is missing"));
  const Transformer alternating = imported(R"({"model_type": "minimax", "num_hidden_layers": 4})").model;
  CHECK(has_attention(alternating.layer_kinds[0].architecture));
  CHECK(alternating.layer_kinds[1].architecture.mixers.lightning->heads == 32);
}

TEST_CASE("hub families: Mamba beside attention and alone") {
  const Transformer jamba = imported(R"({"model_type": "jamba", "num_hidden_layers": 8})").model;
  const auto places = [](const Transformer& model, auto rule) {
    std::vector<std::int64_t> found;
    std::int64_t layer = 0;
    for (const LayerRun& run : model.layer_runs) {
      for (std::int64_t i = 0; i < run.count; ++i, ++layer) {
        if (rule(model.layer_kinds[run.kind].architecture)) found.push_back(layer);
      }
    }
    return found;
  };
  CHECK(places(jamba, [](const Architecture& of) { return has_attention(of); }) ==
        std::vector<std::int64_t>{4});
  CHECK(places(jamba, [](const Architecture& of) { return of.experts.has_value(); }) ==
        std::vector<std::int64_t>{1, 3, 5, 7});
  CHECK(jamba.layer_kinds[0].architecture.mixers.mamba1->channels == 8192);
  CHECK(jamba.layer_kinds[0].architecture.mixers.mamba1->step_rank == 256);
  CHECK(has(problems_of(R"({"model_type": "jamba", "attn_layer_offset": 8})"),
            "attn_layer_offset: must be below attn_layer_period (8 >= 8)"));
  const Transformer alone = imported(R"({"model_type": "mamba2"})").model;
  CHECK(alone.architecture.parts == LayerParts::mixer);
  CHECK(alone.architecture.mixers.mamba->chunk_size == 256);
  const Transformer bamba = imported(R"({"model_type": "bamba", "num_hidden_layers": 4, "head_dim": 128,
      "attn_layer_indices": [1]})")
                                .model;
  CHECK(places(bamba, [](const Architecture& of) { return has_attention(of); }) ==
        std::vector<std::int64_t>{1});
  CHECK(bamba.layer_kinds[0].architecture.mixers.mamba->head_size == 64);  // not that of attention
  // ibm-granite/granite-4.0-micro, its files: attention and an MLP as wide as the shared expert.
  CHECK(parameters_of(R"({"model_type": "granitemoehybrid", "hidden_size": 2560, "num_hidden_layers": 40,
      "shared_intermediate_size": 8192, "num_attention_heads": 40, "num_key_value_heads": 8,
      "num_local_experts": 0, "tie_word_embeddings": true, "vocab_size": 100352, "layer_types": [)" +
                      repeated("\"attention\"", 40) + "]}") == 3'402'836'480);
}

TEST_CASE("hub families: numbers for each layer are read where all are the same") {
  const auto hunyuan = [](const std::string& members) {
    return R"({"model_type": "hunyuan_v1_moe", "num_hidden_layers": 2, "num_experts": 64, )" + members + "}";
  };
  const Transformer model =
      imported(hunyuan(R"("moe_topk": [8, 8], "num_shared_expert": [1, 1], "intermediate_size": 3072)"))
          .model;
  CHECK(model.architecture.experts->per_token == 8);
  CHECK(model.architecture.experts->shared_feedforward == 3072);
  CHECK(has(problems_of(hunyuan(R"("moe_topk": [8, 4])")),
            "moe_topk: must be the same in all layers (found 4 and 8)"));
}

TEST_CASE("hub families: keys that contradict each other are refused with both") {
  CHECK(has(problems_of(R"({"model_type": "gpt2", "n_embd": 768, "hidden_size": 1024})"),
            "hidden_size: must be what n_embd is, another name of it (1024 and 768)"));
  CHECK(has(problems_of(R"({"model_type": "olmo3", "num_hidden_layers": 1, "sliding_window": null,
                            "layer_types": ["sliding_attention"]})"),
            "layer_types: has sliding_attention, which sliding_window leaves without a window"));
  CHECK(has(
      problems_of(R"({"model_type": "ernie4_5_moe", "moe_layer_start_index": 5, "moe_layer_end_index": 2})"),
      "moe_layer_end_index: must be at least moe_layer_start_index (2 < 5)"));
  CHECK(has(problems_of(R"({"model_type": "llama", "hidden_size": 4100})"),
            "num_attention_heads: must divide hidden_size where there is no head_dim (4100 % 32 = 4)"));
  CHECK(has(problems_of(R"({"model_type": "exaone4", "sliding_window_pattern": "LGLG"})"),
            "sliding_window_pattern: must be a number of layers, or letters L and one G behind them"));
  CHECK(has(problems_of(R"({"model_type": "lfm2", "num_hidden_layers": 3, "layer_types": ["conv"]})"),
            "layer_types: must be of the model's 3 layers (found 1)"));
}

TEST_CASE("hub families: what is left out is told") {
  CHECK(tells(imported(R"({"model_type": "bloom"})"), "the normalization of the embedding"));
  CHECK(tells(imported(R"({"model_type": "gptj"})"), "the output layer's bias"));
  CHECK(tells(imported(R"({"model_type": "qwen2_vl", "vision_config": {}})"),
              "only the part for text is taken"));
  CHECK(tells(imported(R"({"model_type": "arctic", "parallel_attn_mlp_res": true})"),
              "the dense MLP beside the experts is counted as a shared expert"));
  // Text parts under any of their names, whose tied embeddings the whole decides.
  const Transformer part = imported(R"({"model_type": "internvl_chat", "tie_word_embeddings": true,
      "llm_config": {"model_type": "qwen2"}})")
                               .model;
  CHECK(part.architecture.tied_embeddings);
}

}  // namespace headroom
