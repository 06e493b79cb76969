// Models from config.json files of the Hugging Face hub: each of a published model has the parameters that were published.
#include "headroom/interop/hugging_face.hpp"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "interop/hub_folder.hpp"

namespace headroom {
namespace {

using tests::HubFolder;
using tests::imported;
using tests::problems_of;

// Whether both have the same layers, ends and sizes, as far as tables tell.
void check_same(const ImportedModel& hub, const std::string& ours) {
  CAPTURE(ours);
  const Transformer model = read_model(ours);
  CHECK(parameter_counts(hub.model) == parameter_counts(model));
  Transformer same_kernels = hub.model;  // which no config.json has
  same_kernels.architecture.kernels = model.architecture.kernels;
  const ModelLayers x = layers_of(same_kernels);
  const ModelLayers y = layers_of(model);
  REQUIRE(x.kinds.size() == y.kinds.size());
  const KindCounts counts = counts_of(x);
  for (std::size_t i = 0; i < x.kinds.size(); ++i) {
    CHECK(x.kinds[i].ops.ops().size() == y.kinds[i].ops.ops().size());
    CHECK(counts[i] == counts_of(y)[i]);
  }
}

}  // namespace

TEST_CASE("hub: a llama without what its class has defaults for is Llama 2 7B") {
  const ImportedModel model = imported(R"({"model_type": "llama", "max_position_embeddings": 131072})");
  check_same(model, "llama-2-7b");
  CHECK(model.model.name == "Some-Model-8B");
  CHECK(model.model.sequence == 4096);
  const auto tells = [&](const char* what) {
    return std::any_of(model.assumed.begin(), model.assumed.end(),
                       [&](const HubAssumption& it) { return it.sentence.find(what) != std::string::npos; });
  };
  CHECK(tells("what the file leaves out is as its model type has it: hidden_size 4096, "));
  CHECK(tells("tie_word_embeddings false"));
  CHECK(tells("sequence is 4096"));
  CHECK(tells("kernels.attention is flash"));
}

TEST_CASE("hub: members of another meaning are those of the model file") {
  check_same(imported(R"({"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
    "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256,
    "rope_scaling": {"rope_type": "llama3"}, "hidden_act": "silu", "torch_dtype": "bfloat16"})"),
             "llama-3-70b");
  check_same(imported(R"({"model_type": "gpt2"})"), "gpt2-small");
  check_same(imported(R"({"model_type": "mistral", "sliding_window": 4096, "num_hidden_layers": 32})"),
             "mistral-7b");
  check_same(imported(R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
    "use_sliding_window": false, "sliding_window": 131072, "max_window_layers": 28})"),
             "qwen2.5-7b");
  check_same(imported(R"({"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
    "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128})"),
             "qwen3-8b");
  check_same(imported(R"({"model_type": "nemotron", "hidden_size": 18432, "intermediate_size": 73728,
    "num_hidden_layers": 96, "num_attention_heads": 96, "num_key_value_heads": 8})"),
             "nemotron-4-340b");
  check_same(imported(R"({"model_type": "phi3", "hidden_size": 5120, "intermediate_size": 17920,
    "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 10, "vocab_size": 100352,
    "sliding_window": null})"),
             "phi-4");
}

TEST_CASE("hub: layers of several kinds, as lists, patterns and first layers") {
  check_same(imported(R"({"model_type": "gemma2"})"), "gemma-2-2b");
  check_same(imported(R"({"model_type": "gemma3", "vision_config": {}, "text_config": {
    "model_type": "gemma3_text", "hidden_size": 3840, "intermediate_size": 15360, "num_hidden_layers": 48,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "sliding_window": 1024}})"),
             "gemma-3-12b");
  check_same(imported(R"({"model_type": "gpt_oss", "num_hidden_layers": 24, "num_local_experts": 32})"),
             "gpt-oss-20b");
  const ImportedModel listed = imported(R"({"model_type": "gpt_oss", "num_hidden_layers": 3,
    "layer_types": ["full_attention", "full_attention", "sliding_attention"]})");
  CHECK(listed.model.layer_runs == std::vector<LayerRun>{{0, 2}, {1, 1}});
  CHECK(listed.model.layer_kinds[0].architecture.window == 0);
  CHECK(listed.model.layer_kinds[1].architecture.window == 128);
}

TEST_CASE("hub: what lists and numbers of layers cannot be is refused") {
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  for (const char* const count : {"0", "-1", "100001", "1000000000"}) {
    const std::string rule =
        std::string("num_hidden_layers: must be an integer from 1 to 100000 (found ") + count + ")\n";
    const std::string key = std::string(R"(", "num_hidden_layers": )") + count;
    CHECK(contains(problems_of(R"({"model_type": "llama)" + key + "}"), rule));
    // Lists are not held to a number of layers that cannot be.
    for (const char* const lists :
         {R"(qwen3 "layer_types": ["full_attention", "sliding_attention"])",
          R"(qwen3_moe "mlp_only_layers": [0, 3])", R"(llama4_text "moe_layers": [1])"}) {
      const std::string text = lists;
      const std::size_t space = text.find(' ');
      const std::string problems =
          problems_of(R"({"model_type": ")" + text.substr(0, space) + key + "," + text.substr(space) + "}");
      CHECK(contains(problems, rule));
      CHECK(std::count(problems.begin(), problems.end(), '\n') == 1);
    }
  }
  const std::string no_number =
      problems_of(R"({"model_type": "qwen3", "num_hidden_layers": "2", "layer_types": ["full_attention"]})");
  CHECK(contains(no_number, "num_hidden_layers: must be an integer\n"));
  CHECK(std::count(no_number.begin(), no_number.end(), '\n') == 1);
  CHECK(contains(problems_of(R"({"model_type": "gpt2", "n_layer": 0})"), "n_layer: must be an integer from"));
  CHECK(contains(
      problems_of(R"({"model_type": "qwen3", "num_hidden_layers": 1, "layer_types": ["linear_attention"]})"),
      "layer_types: must be of full_attention, sliding_attention: 'linear_attention' is not modelled"));
  CHECK(contains(
      problems_of(R"({"model_type": "gpt_oss", "num_hidden_layers": 3, "layer_types": ["full_attention"]})"),
      "layer_types: must be of the model's 3 layers (found 1)"));
  CHECK(contains(problems_of(R"({"model_type": "llama4_text", "num_hidden_layers": 8, "moe_layers": [99]})"),
                 "moe_layers: must be of the layers 0 to 7 (found 99)"));
  CHECK(
      contains(problems_of(R"({"model_type": "qwen3_moe", "num_hidden_layers": 2, "mlp_only_layers": [-1]})"),
               "mlp_only_layers: must be of the layers 0 to 1 (found -1)"));
}

TEST_CASE("hub: mixtures of experts and latent attention") {
  const auto shared_width = [](const char* shared) {
    const std::string text = std::string(R"({"model_type": "deepseek_v3")") + shared + "}";
    return imported(text).model.layer_kinds[1].architecture.experts->shared_feedforward;
  };
  CHECK(shared_width("") == 2048);
  CHECK(shared_width(R"(, "n_shared_experts": null)") == 0);

  const auto groups = [](const char* of_file) {
    const std::string text = std::string(R"({"model_type": "deepseek_v3")") + of_file + "}";
    const Experts experts = *imported(text).model.layer_kinds[1].architecture.experts;
    return std::pair{experts.groups, experts.groups_per_token};
  };
  CHECK(groups("") == std::pair<std::int64_t, std::int64_t>{8, 4});
  CHECK(groups(R"(, "n_group": null, "topk_group": null)") == std::pair<std::int64_t, std::int64_t>{1, 1});
  CHECK(groups(R"(, "n_group": 16, "topk_group": 2)") == std::pair<std::int64_t, std::int64_t>{16, 2});

  check_same(imported(R"({"model_type": "mixtral"})"), "mixtral-8x7b");
  check_same(imported(R"({"model_type": "deepseek_v3", "num_nextn_predict_layers": 1})"), "deepseek-v3");
  check_same(imported(R"({"model_type": "kimi_k2", "vocab_size": 163840, "num_attention_heads": 64,
    "n_routed_experts": 384, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1})"),
             "kimi-k2");
  check_same(imported(R"({"model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944,
    "num_hidden_layers": 27, "num_attention_heads": 16, "vocab_size": 102400, "q_lora_rank": null,
    "first_k_dense_replace": 1, "moe_intermediate_size": 1408, "num_experts_per_tok": 6})"),
             "deepseek-v2-lite");
  check_same(imported(R"({"model_type": "deepseek_v2", "hidden_size": 5120, "intermediate_size": 12288,
    "num_hidden_layers": 60, "num_attention_heads": 128, "num_key_value_heads": 128, "vocab_size": 102400,
    "first_k_dense_replace": 1, "moe_intermediate_size": 1536, "n_routed_experts": 160,
    "num_experts_per_tok": 6, "topk_method": "group_limited_greedy", "n_group": 8, "topk_group": 3})"),
             "deepseek-v2");
  check_same(imported(R"({"model_type": "qwen3_moe", "num_hidden_layers": 48, "head_dim": 128,
    "norm_topk_prob": true, "mlp_only_layers": []})"),
             "qwen3-30b-a3b");
  check_same(imported(R"({"model_type": "glm4_moe", "head_dim": 128, "attention_bias": true,
    "num_nextn_predict_layers": 1})"),
             "glm-4.5-air");
  check_same(imported(R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text"}})"),
             "llama-4-scout");
}

TEST_CASE("hub: layers of one part, by a pattern or a list of words, and by names of either version") {
  check_same(imported(R"({"model_type": "nemotron_h"})"), "nemotron-h-8b");
  check_same(imported(R"({"model_type": "nemotron_h", "hidden_size": 2688, "intermediate_size": 1856,
                          "num_hidden_layers": 52, "num_key_value_heads": 2, "attention_head_dim": 128,
                          "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
                          "mamba_num_heads": 64, "mamba_n_groups": 8, "n_routed_experts": 128,
                          "num_experts_per_tok": 6, "moe_intermediate_size": 1856,
                          "moe_shared_expert_intermediate_size": 3712})"),
             "nemotron-3-nano-30b-a3b");
  const Transformer listed = imported(R"({"model_type": "nemotron_h", "moe_latent_size": 1024,
                          "layers_block_type": ["mamba", "moe", "attention", "moe"]})")
                                 .model;
  CHECK(listed.layers == 4);
  REQUIRE(listed.layer_kinds.size() == 3);
  CHECK(listed.layer_kinds[1].architecture.experts->latent == 1024);
  CHECK(listed.layer_kinds[2].architecture.parts == LayerParts::mixer);
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(contains(problems_of(R"({"model_type": "nemotron_h", "hybrid_override_pattern": "MXM"})"),
                 "hybrid_override_pattern: must be of the letters M, G, *, - and E, with | between stages"));
  CHECK(contains(problems_of(R"({"model_type": "nemotron_h", "num_hidden_layers": 50})"),
                 "num_hidden_layers: must be the 52 layers that are described"));
  CHECK(
      contains(problems_of(R"({"model_type": "nemotron_h", "use_bias": true})"), "use_bias: must be false"));
}

TEST_CASE("hub: mixers of the delta rule, by an interval, a list of words, or a list of numbers") {
  check_same(imported(R"({"model_type": "qwen3_next"})"), "qwen3-next-80b-a3b");
  check_same(imported(R"({"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text",
                          "hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 64,
                          "num_attention_heads": 24, "linear_num_value_heads": 48}})"),
             "qwen3.5-27b");
  check_same(imported(R"({"model_type": "kimi_linear", "hidden_size": 2304, "intermediate_size": 9216,
                          "num_hidden_layers": 27, "num_experts": 256, "num_experts_per_token": 8,
                          "moe_intermediate_size": 1024, "first_k_dense_replace": 1, "num_shared_experts": 1,
                          "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
                          "v_head_dim": 128, "mla_use_nope": true,
                          "linear_attn_config": {"num_heads": 32, "head_dim": 128, "kda_layers":
                            [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26],
                            "full_attn_layers": [4, 8, 12, 16, 20, 24, 27]}})"),
             "kimi-linear-48b-a3b");
  const auto lists = [](const std::string& kda, const std::string& full) {
    return problems_of(R"({"model_type": "kimi_linear", "num_hidden_layers": 4, "num_experts": 256,
      "num_experts_per_token": 8, "moe_intermediate_size": 1024, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
      "qk_rope_head_dim": 64, "v_head_dim": 128, "linear_attn_config": {"kda_layers": )" +
                       kda + R"(, "full_attn_layers": )" + full + "}}");
  };
  const auto mentions = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(lists("[1, 2, 3]", "[4]").empty());
  CHECK(mentions(lists("[1, 2, 5]", "[4]"), "kda_layers: must be of the layers 1 to 4 (found 5)"));
  CHECK(mentions(lists("[1, 2, 2]", "[4]"), "kda_layers: names layer 2 twice"));
  CHECK(mentions(lists("[1, 2]", "[4]"), "full_attn_layers: must be the layers that kda_layers leaves out"));
  CHECK(mentions(lists("[1.5]", "[4]"), "kda_layers: must be a list of integers"));
  CHECK(mentions(problems_of(R"({"model_type": "kimi_linear"})"), "kda_layers: is missing"));
  const Transformer listed = imported(R"({"model_type": "qwen3_next", "num_hidden_layers": 3,
      "layer_types": ["linear_attention", "linear_attention", "full_attention"]})")
                                 .model;
  REQUIRE(listed.layer_kinds.size() == 2);
  CHECK(listed.layer_kinds[0].architecture.mixers.gated_delta_net->heads == 32);
  CHECK(has_attention(listed.layer_kinds[1].architecture));
}

TEST_CASE(
    "hub: the whole model of a text part says whether embeddings are tied, and a type whether it has one") {
  const std::string part = R"("text_config": {"model_type": "qwen3_5_text", "mtp_num_hidden_layers": 1})";
  const ImportedModel tied =
      imported(R"({"model_type": "qwen3_5", "tie_word_embeddings": true, )" + part + "}");
  CHECK(tied.model.architecture.tied_embeddings);
  CHECK_FALSE(imported(R"({"model_type": "qwen3_5", )" + part + "}").model.architecture.tied_embeddings);
  CHECK(std::any_of(tied.assumed.begin(), tied.assumed.end(),
                    [](const auto& it) { return it.field == "mtp_layers"; }));
  CHECK(problems_of(R"({"model_type": "qwen3_5", "text_config": null})")
            .find("text_config: must be an object") != std::string::npos);
}

TEST_CASE("hub: a model type that is not modelled is refused by its name, and so is what a type cannot be") {
  const auto unknown = [](const std::string& type) {
    return problems_of(R"({"model_type": ")" + type + "\"}");
  };
  CHECK(unknown("no-such-type").find("'no-such-type' is not modelled; these are: llama, mistral, ") !=
        std::string::npos);
  CHECK(unknown("qwen9_moe").find("'qwen9_moe' is not modelled; these of near names are: qwen, qwen2, ") !=
        std::string::npos);
  CHECK(
      unknown("step3").find("'step3' is not modelled: its queries go through a shared low-rank projection") !=
      std::string::npos);
  CHECK(problems_of(R"({"model_type": "opt", "word_embed_proj_dim": 512})").find("/word_embed_proj_dim") !=
        std::string::npos);
  CHECK(problems_of(R"({"model_type": "llama", "hidden_size": "big", "num_hidden_layers": 1.5})")
            .find("/num_hidden_layers: must be an integer") != std::string::npos);
  CHECK(problems_of(R"({"model_type": "llama", "hidden_act": "tanh"})").find("'tanh' is not modelled") !=
        std::string::npos);
}

TEST_CASE("hub: sizes that cannot be are refused by the keys of the file") {
  const auto problem = [](const std::string& members) {
    return problems_of(R"({"model_type": "deepseek_v3", )" + members + "}");
  };
  CHECK(problem(R"("first_k_dense_replace": 62)")
            .find("/first_k_dense_replace: must be an integer from 0 to 61 (found 62)") != std::string::npos);
  CHECK(problem(R"("num_nextn_predict_layers": -1)")
            .find("/num_nextn_predict_layers: must be an integer from 0 to 64") != std::string::npos);
  CHECK(
      problem(R"("hidden_size": 18446744073709551615)").find("/hidden_size: must be an integer from 1 to") !=
      std::string::npos);
  CHECK(problem(R"("n_routed_experts": 12)").find("/n_group: ") != std::string::npos);
  CHECK(problems_of(R"({"model_type": "llama", "num_key_value_heads": 5})")
            .find("/num_attention_heads: must be divisible by key_value_heads") != std::string::npos);
  CHECK(problems_of(R"({"model_type": "gemma3_text", "sliding_window_pattern": 0})")
            .find("/sliding_window_pattern: must be an integer from 1") != std::string::npos);
  CHECK(problems_of(R"({"hidden_size": 4096})")
            .find("/model_type: must be there, and say of which type the model is: llama, ") !=
        std::string::npos);
  CHECK(problems_of(R"({"text_config": {"hidden_size": 4096}})")
            .find("/text_config/model_type: must be there") != std::string::npos);
}

TEST_CASE(
    "hub: what a file says of attention in chunks is taken, and what a flag says is not told as assumed") {
  const auto chunk = [](const char* members) {
    const std::string text = std::string(R"({"model_type": "llama4_text")") + members + "}";
    const Transformer model = imported(text).model;
    return std::pair{model.layer_kinds[0].architecture.attention_chunk,
                     model.layer_kinds.back().architecture.attention_chunk};
  };
  CHECK(chunk("") == std::pair<std::int64_t, std::int64_t>{8192, 0});
  CHECK(chunk(R"(, "attention_chunk_size": 1024)") == std::pair<std::int64_t, std::int64_t>{1024, 0});
  CHECK(chunk(R"(, "attention_chunk_size": null)") == std::pair<std::int64_t, std::int64_t>{0, 0});
  const HubFolder hub(R"({"model_type": "llama"})");
  const auto about = [&](const std::vector<std::string>& overrides, const std::string& field) {
    const std::vector<HubAssumption> assumed = import_model(hub.file(), overrides).assumed;
    return std::any_of(assumed.begin(), assumed.end(),
                       [&](const HubAssumption& it) { return it.field == field; });
  };
  CHECK(about({}, "sequence"));
  CHECK_FALSE(about({"sequence=8192"}, "sequence"));
  CHECK(about({"sequence=8192"}, "kernels.attention"));
}

TEST_CASE("hub: a file that is written from an import is the model that was read") {
  const HubFolder hub(R"({"model_type": "deepseek_v3"})");
  const Transformer model = read_any_model(hub.folder(), {"sequence=8192"});
  CHECK(model.sequence == 8192);
  CHECK(model.source.find("; kernels.attention is flash") != std::string::npos);
  Transformer read = parse_model(write_model(model), "Some-Model-8B.json");
  CHECK(read == model);
}

TEST_CASE("hub: a model trains at the same length by its name and by its config.json") {
  const ImportedModel llama =
      imported(R"({"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
      "num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 80, "vocab_size": 128256,
      "max_position_embeddings": 131072})");
  CHECK(llama.model.sequence == read_any_model("meta-llama/Llama-3.1-70B").sequence);
  const auto told = [](const ImportedModel& model) {
    const auto found = std::find_if(model.assumed.begin(), model.assumed.end(),
                                    [](const HubAssumption& it) { return it.field == "sequence"; });
    return found == model.assumed.end() ? std::string() : found->sentence;
  };
  CHECK(told(llama) == "sequence is 8192, as llama-3-70b trains, which has the same layers");
  const ImportedModel qwen =
      imported(R"({"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
      "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 36, "head_dim": 128,
      "vocab_size": 151936, "max_position_embeddings": 40960})");
  CHECK(qwen.model.sequence == read_any_model("Qwen/Qwen3-8B").sequence);
  // Of another shape nothing is known.
  const ImportedModel other =
      imported(R"({"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
      "num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 81, "vocab_size": 128256,
      "max_position_embeddings": 131072})");
  CHECK(other.model.sequence == 4096);
  CHECK(told(other).starts_with("sequence is 4096: config.json has no length of training sequences"));
}

TEST_CASE("hub: known names are models that are compiled in") {
  CHECK(read_any_model("meta-llama/Llama-3.1-70B") == read_model("llama-3-70b"));
  CHECK(read_any_model("meta-llama/Llama-3.1-70B-Instruct") == read_model("llama-3-70b"));
  CHECK(read_any_model("Qwen/Qwen3-30B-A3B-Instruct-2507") == read_model("qwen3-30b-a3b"));
  CHECK(read_any_model("google/gemma-3-27b-it") == read_model("gemma-3-27b"));
  CHECK(read_any_model("deepseek-ai/DeepSeek-V3-Base") == read_model("deepseek-v3"));
  CHECK(read_any_model("gpt3-175b") == read_model("gpt3-175b"));
  CHECK_THROWS_AS(read_any_model("meta-llama/Llama-9"), InputError);
}

}  // namespace headroom
