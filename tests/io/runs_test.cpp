#include <doctest/doctest.h>

#include "headroom/io/run_cases.hpp"
#include "headroom/io/runs_file.hpp"
#include "least_run.hpp"
#include "messages.hpp"

namespace headroom {
namespace {

using tests::minimal;
using tests::mistakes_in;

std::string runs_mistake(const std::string& part, const std::string& replacement) {
  return mistakes_in(with(minimal, part, replacement));
}
MeasuredRun changed_run(const std::string& part, const std::string& replacement) {
  return parse_runs(with(minimal, part, replacement), "r.json").front();
}

}  // namespace

TEST_CASE("the least of a runs file") {
  const std::vector<MeasuredRun> runs = parse_runs(minimal, "r.json");
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].name == "mine");
  CHECK(runs[0].iteration == Seconds(1.23));
  CHECK_FALSE(runs[0].sequence_parallel.has_value());
  const RunCases cases = cases_of(runs, std::nullopt, std::nullopt);
  REQUIRE(cases.measurements.cases.size() == 1);
  CHECK(cases.measurements.cases[0].request.system.name == "dgx-a100-80g");
  CHECK(cases.measurements.targets.empty());
  CHECK(cases.skipped.empty());
}

TEST_CASE("null is not published, words are not read, sharding may be named") {
  CHECK(changed_run("\"recompute\": \"none\"", "\"recompute\": null").recompute == std::nullopt);
  CHECK_NOTHROW(changed_run("\"recompute\"", "\"caveats\": \"guessed\", \"num_gpus\": 8, \"recompute\""));
  CHECK(changed_run("\"tp\": 1", "\"tp\": 1, \"fsdp\": \"FULL_SHARD\"").fully_sharded);
  CHECK_FALSE(changed_run("\"tp\": 1", "\"tp\": 1, \"fsdp\": false").fully_sharded);
}

TEST_CASE("the name of a sharding says whose stack a run is of, and the name of its software of which year") {
  const auto stack = [](const std::string& members) {
    const std::string sharded = with(minimal, "\"tp\": 1", "\"tp\": 1, \"fsdp\": \"FSDP2\"");
    return parse_runs(with(sharded, "\"recompute\"", members + "\"recompute\""), "r.json")
        .front()
        .sharding_stack;
  };
  CHECK(stack("") == "torchtitan-2025");
  CHECK(stack("\"software\": \"torchtitan Dec 2024, torch 2.6-dev\", ") == "torchtitan-2024");
  CHECK(stack("\"software\": \"torchtitan June 2025\", ") == "torchtitan-2025");
  CHECK(stack("\"software\": \"KempnerForge of 2026\", ") == "kempnerforge-2026");
  CHECK(stack("\"software\": \"PyTorch of 2024\", ") == "torchtitan-2025");
  CHECK(stack("\"software\": \"llm-foundry / Composer, 2023\", ") == "llm-foundry-2023");
}

TEST_CASE("a measured time takes precedence over a derived one") {
  CHECK(changed_run("\"measured\"", "\"derived\": {\"iteration_time_s\": 9}, \"measured\"").iteration ==
        Seconds(1.23));
  CHECK(changed_run("\"measured\": {\"iteration_time_s\": 1.23}",
                    "\"derived\": {\"iteration_time_s\": 9}, \"measured\": {\"iteration_time_s\": null}")
            .iteration == Seconds(9));
}

TEST_CASE("CUDA graphs of a run, by Megatron-Core's words") {
  const auto graphs = [](const std::string& value) {
    return changed_run("\"recompute\"", "\"cuda_graphs\": " + value + ", \"recompute\"");
  };
  CHECK_FALSE(graphs("null").cuda_graphs.has_value());
  CHECK(graphs("\"none\"").cuda_graphs == CudaGraphs::none);
  CHECK(graphs("false").cuda_graphs == CudaGraphs::none);
  CHECK(graphs(R"({"impl": "local", "scope": ["full_iteration"]})").cuda_graphs ==
        CudaGraphs::full_iteration);
  const MeasuredRun layers = graphs(R"({"impl": "transformer_engine", "scope": ["attn", "mamba"]})");
  CHECK(layers.cuda_graphs == CudaGraphs::layers);
  CHECK(layers.cuda_graph_modules == std::vector<GraphModule>{GraphModule::attn, GraphModule::mamba});
  const RunCases cases = cases_of({layers}, std::nullopt, std::nullopt);
  REQUIRE(cases.measurements.cases.size() == 1);
  CHECK(cases.measurements.cases[0].request.software.cuda_graphs == CudaGraphs::layers);
  const std::string rule =
      "r.json: /0/cuda_graphs: must be false, none, full_iteration, or an object with impl and scope";
  for (const char* wrong : {"\"some\"", "{}", "3", "{\"impl\": 3}", "[]"}) {
    CHECK(runs_mistake("\"recompute\"", "\"cuda_graphs\": " + std::string(wrong) + ", \"recompute\"") ==
          rule);
  }
}

TEST_CASE("a run without software is of the stack that its title names") {
  const auto stack = [](const std::string& title, const std::string& software) {
    return changed_run("\"recompute\"",
                       "\"source\": {\"title\": \"" + title + "\"}, " + software + "\"recompute\"")
        .sharding_stack;
  };
  CHECK(stack("Llama 3 405B (Meta)", "") == "meta-2024");
  CHECK(stack("Llama 3 405B (Meta)", R"("software": "torchtitan 2024", )") == "torchtitan-2024");
  CHECK_FALSE(stack("Some model", "").has_value());
}

TEST_CASE("biases, clamps and scaled positions are those of the run or of its embedded model") {
  const auto named = [](const std::string& name) {
    return changed_run("\"layers\": 24, \"hidden\": 2048, \"heads\": 16",
                       "\"layers\": 36, \"hidden\": 2880, \"heads\": 64, \"name\": \"" + name + "\"");
  };
  CHECK(named("gpt-oss-120b").linear_bias == true);
  CHECK(named("gpt-oss-120b").clamped_activation == true);
  CHECK(named("gpt-oss-120b").scaled_rotary == true);
  CHECK_FALSE(named("llama-3-8b").clamped_activation.has_value());
  CHECK(changed_run("\"heads\"", "\"clamped_activation\": true, \"heads\"").clamped_activation == true);
  CHECK_FALSE(named("llama-3-8b").linear_bias.has_value());
  CHECK_FALSE(named("anything").linear_bias.has_value());
  CHECK(changed_run("\"heads\"", "\"linear_bias\": false, \"heads\"").linear_bias == false);
}

TEST_CASE("mistakes of a runs file are named by row and field") {
  CHECK(message_of([] { return parse_runs("{}", "r.json"); }) == "r.json: must be a list of runs");
  CHECK(message_of([] { return parse_runs("[]", "r.json"); }) == "r.json: holds no runs");
  CHECK(contains(mistakes_in("[3]"), "r.json: /0: must be an object"));
  CHECK(runs_mistake("\"id\": \"mine\", ", "") == "r.json: /0/id: is missing");
  CHECK(contains(runs_mistake("\"tp\": 1", "\"tp\": 1.5"), "r.json: /0/parallel/tp: must be an integer"));
  CHECK(contains(runs_mistake("\"tp\": 1", "\"tp\": 0"), "r.json: /0/parallel/tp: must be an integer"));
  CHECK(contains(runs_mistake("1.23", "-1"),
                 "r.json: /0/measured/iteration_time_s: must be a number above zero"));
  CHECK(contains(runs_mistake("\"recompute\"", "\"recomputed\""),
                 "r.json: /0/recomputed: unknown key (did you mean 'recompute'?)"));
  CHECK(contains(runs_mistake("\"heads\": 16", "\"heads\": 16, \"norm\": \"batch\""),
                 "r.json: /0/model/norm: must be rms or layer (found \"batch\")"));
  CHECK(contains(runs_mistake("\"recompute\"", "\"stack\": \"megatron-2030\", \"recompute\""),
                 "r.json: /0/stack: "));
}

TEST_CASE("a run without a system is skipped, unless one is given") {
  std::vector<MeasuredRun> runs = parse_runs(minimal, "r.json");
  runs[0].device = "P100-SXM2-16GB";
  const RunCases without = cases_of(runs, std::nullopt, std::nullopt);
  REQUIRE(without.skipped.size() == 1);
  CHECK(without.skipped[0].reasons == std::vector<std::string>{"no system has its GPU, P100-SXM2-16GB"});
  CHECK(cases_of(runs, "dgx-a100-40g", "megatron-2021").measurements.cases.at(0).request.software.name ==
        "megatron-2021");
  CHECK_THROWS_AS(cases_of(runs, "dgx-h900", std::nullopt), InputError);
}

TEST_CASE("a run that lacks something is skipped, and the others are predicted") {
  const auto without = [](const std::string& part) {
    return parse_runs(with(minimal, part, ""), "r.json").front();
  };
  CHECK(without(", \"gated_mlp\": false").lacking == std::vector<std::string>{"model.gated_mlp"});
  CHECK(without("\"layers\": 24, ").lacking == std::vector<std::string>{"model.layers"});
  CHECK(changed_run("\"dp\": 4", "\"dp\": null").lacking == std::vector<std::string>{"parallel.dp"});
  CHECK(without("\"batch\": {\"global\": 64, \"micro\": 2},").lacking == std::vector<std::string>{"batch"});
  MeasuredRun lacking = without(", \"gated_mlp\": false");
  lacking.dtype = "fp8 (hybrid)";
  lacking.device = "P100";
  const RunCases cases =
      cases_of({parse_runs(minimal, "r.json").front(), lacking}, std::nullopt, std::nullopt);
  CHECK(cases.measurements.cases.size() == 1);
  REQUIRE(cases.skipped.size() == 1);
  CHECK(text_of(cases.skipped[0]) ==
        "not stated: model.gated_mlp; not stated: precision.recipe; no system has its GPU, P100");
}

TEST_CASE("a model may be a name, with a sequence of its own or the batch's") {
  const std::string named = with(minimal,
                                 "{\"layers\": 24, \"hidden\": 2048, \"heads\": 16, \"vocab\": 50257, "
                                 "\"seq_len\": 2048, \"gated_mlp\": false}",
                                 "\"llama-2-7b\"");
  const MeasuredRun run = parse_runs(named, "r.json").front();
  REQUIRE(run.model);
  CHECK(run.model->name == "llama-2-7b");
  CHECK(run.sequence == run.model->sequence);
  CHECK(run.lacking.empty());
  CHECK(
      parse_runs(with(named, "\"micro\": 2", "\"micro\": 2, \"seq_len\": 1024"), "r.json").front().sequence ==
      1024);
  CHECK(contains(mistakes_in(with(named, "llama-2-7b", "llama-2-7")), "r.json: /0/model: "));
}

TEST_CASE("what other members say of overlap, dtypes, head size and stack") {
  const MeasuredRun run = changed_run(
      "\"recompute\"",
      R"("stack": "megatron-core-2025", "overlap_flags": {"grad_reduce": true, "param_gather": false, "tp_comm": true, "p2p": true},
         "precision": {"grad_reduce_dtype": "bf16", "recipe": "bf16"},
         "optimizer": {"name": "adam", "main_params": "fp32", "exp_avg": "bf16", "exp_avg_sq": "fp32"},
         "filled": [{"member": "stack"}], "recompute")");
  CHECK(run.stack == "megatron-core-2025");
  CHECK(run.settings.overlap_grad_reduce == true);
  CHECK(run.settings.overlap_param_gather == false);
  CHECK(run.settings.overlap_tensor_parallel == TensorOverlap::full);
  CHECK(run.settings.overlap_p2p == true);
  CHECK(run.settings.gradient_dtype == Dtype::bf16);
  CHECK(run.exp_avg == MomentDtype::bf16);
  CHECK(run.unmodelled.empty());
  CHECK(cases_of({run}, std::nullopt, std::nullopt).measurements.cases.at(0).request.software.name ==
        "megatron-core-2025");
  const MeasuredRun own = changed_run(
      "\"recompute\"",
      R"("overlap_flags": {"tp_comm": false}, "settings": {"overlap_tensor_parallel": "none"}, "recompute")");
  CHECK(own.settings.overlap_tensor_parallel == TensorOverlap::none);
  CHECK(changed_run("\"heads\": 16", "\"heads\": 16, \"head_dim\": 192").head_size == 192);
}

TEST_CASE("a run trains the adapters that it states, or those of recipes where its mode alone says so") {
  const auto of = [](const std::string& member) {
    return changed_run("\"recompute\"", member + ", \"recompute\"").lora;
  };
  CHECK(of("\"training_mode\": \"pretrain\"") == Lora{});
  CHECK(of("\"training_mode\": \"LoRA\"") == Lora{.rank = 16, .targets = {"linear_qkv"}});
  CHECK(of("\"training_mode\": \"LoRA\", \"lora\": {\"rank\": 8}") == Lora{.rank = 8});
  CHECK(of("\"lora\": {\"rank\": 8, \"targets\": [\"q_proj\", \"v_proj\"]}") ==
        Lora{.rank = 8, .targets = {"q_proj", "v_proj"}});
}

TEST_CASE("what is not modelled yet is told by its members") {
  const auto of = [](const std::string& member) {
    return changed_run("\"recompute\"", member + ", \"recompute\"").unmodelled;
  };
  const auto of_model = [](const std::string& member) {
    return changed_run("\"heads\"", member + ", \"heads\"").unmodelled;
  };
  using Texts = std::vector<std::string>;
  CHECK(of("\"offload\": {\"weights\": true}") == Texts{"offloading to the host"});
  CHECK(of("\"offload\": {\"activations_layers\": 8, \"optimizer\": \"cpu\"}") ==
        Texts{"offloading to the host"});
  CHECK(of("\"offload\": \"none\"").empty());
  CHECK(of("\"offload\": {\"activations_layers\": 8, \"weights\": false}").empty());
  CHECK(changed_run("\"recompute\"", "\"offload\": {\"activations_layers\": 8}, \"recompute\"").offload ==
        Offload{.layers = 8});
  CHECK(of("\"precision\": {\"recipe\": \"nvfp4\", \"bf16_layers\": [0, 14], \"fp8_attention\": true}")
            .empty());
  CHECK(of_model("\"moe\": null").empty());
  CHECK(of_model("\"window\": 128, \"attention_sinks\": true, \"qk_norm\": true").empty());
}

TEST_CASE("what a run says of attention and experts is read, and what latent attention lacks is told") {
  const auto of_model = [](const std::string& members) {
    return changed_run("\"heads\"", members + ", \"heads\"");
  };
  const std::string experts = R"("moe": {"experts": 8, "topk": 2, "moe_ffn": 512, "router_bias": true)";
  const MeasuredRun latent =
      of_model(experts + R"(, "q_lora": 1536, "kv_lora": 512, "qk_nope": 128, "qk_rope": 64, "v_head": 96})");
  CHECK(latent.latent_attention == LatentAttention{.q_rank = 1536,
                                                   .kv_rank = 512,
                                                   .nope_head_size = 128,
                                                   .rope_head_size = 64,
                                                   .value_head_size = 96});
  CHECK(latent.experts->router_bias);
  CHECK(latent.experts->groups_per_token == 1);
  const auto limited = of_model(experts + R"(, "groups": 4, "group_topk": 2})").experts;
  CHECK(limited->groups == 4);
  CHECK(limited->groups_per_token == 2);
  CHECK(latent.lacking.empty());
  CHECK(of_model(experts + ", \"qk_nope\": 128}").latent_attention == std::nullopt);
  CHECK(of_model(experts + ", \"kv_lora\": 512}").lacking ==
        std::vector<std::string>{"model.moe.qk_nope", "model.moe.qk_rope", "model.moe.v_head"});
  const MeasuredRun windowed =
      of_model(R"("window": 128, "full_attention_every": 2, "attention_sinks": true, "qk_norm": true)");
  CHECK(windowed.window == 128);
  CHECK(windowed.full_attention_every == 2);
  CHECK(windowed.attention_sinks);
  CHECK(windowed.qk_norm);
  const std::string predicts = "\"moe_run\": {\"dispatcher\": \"alltoall\", \"mtp_layers\": 1}, ";
  CHECK(changed_run("\"recompute\"", predicts + "\"recompute\"").mtp_layers == 1);
  const std::string sends = "\"moe_run\": {\"dispatcher\": \"flex (deepep)\"}, ";
  CHECK(changed_run("\"recompute\"", sends + "\"recompute\"").dispatcher == "flex (deepep)");
  CHECK(of_model(experts + ", \"capacity_factor\": 1.5}").experts->capacity_factor == 1.5);
  const std::string pads = "\"moe_run\": {\"capacity_factor\": 1.5, \"pad_to_capacity\": true}, ";
  CHECK(changed_run("\"recompute\"", pads + "\"recompute\"").moe_pad_to_capacity);
  CHECK_FALSE(changed_run("\"recompute\"", predicts + "\"recompute\"").moe_pad_to_capacity);
  CHECK(changed_run("\"tp\": 1", "\"tp\": 1, \"cp\": 2, \"cp_comm_type\": \"a2a\"").cp_comm == "a2a");
}

TEST_CASE("a run with a recipe is one of that precision, on a device that has it") {
  const std::string recipe =
      R"("precision": {"recipe": "delayed", "fp8_param_gather": true}, "dtype": "fp8 hybrid", )";
  MeasuredRun run = changed_run("\"recompute\"", recipe + "\"recompute\"");
  run.zero_stage = 1;
  run.device = "H100-SXM5-80GB";
  const RunCases cases = cases_of({run}, std::nullopt, std::nullopt);
  REQUIRE(cases.measurements.cases.size() == 1);
  const Strategy& strategy = cases.measurements.cases[0].request.strategy;
  CHECK(strategy.precision == Precision::fp8_delayed);
  CHECK(strategy.fp8_param_gather);
  run.device = "A100-SXM4-80GB";
  const RunCases refused = cases_of({run}, std::nullopt, std::nullopt);
  CHECK(refused.measurements.cases.empty());
  REQUIRE(refused.skipped.size() == 1);
  CHECK(contains(text_of(refused.skipped[0]), "the GPU has no fp8_delayed GEMMs"));
}

TEST_CASE("a run says which layers stay in BF16, and whether attention is in FP8") {
  const std::string recipe =
      R"("precision": {"recipe": "tensorwise", "bf16_layers": [1, 2], "bf16_modules": ["linear_qkv"],
          "fp8_attention": true}, )";
  MeasuredRun run = changed_run("\"recompute\"", recipe + "\"recompute\"");
  run.device = "H100-SXM5-80GB";
  run.flash_attention = true;
  const RunCases cases = cases_of({run}, std::nullopt, std::nullopt);
  REQUIRE(cases.measurements.cases.size() == 1);
  CHECK(cases.measurements.cases[0].request.strategy.precision_scope ==
        PrecisionScope{.bf16_layers_at_start = 1,
                       .bf16_layers_at_end = 2,
                       .attention = true,
                       .bf16_modules = PrecisionModule::linear_qkv});
  for (const char* const wrong : {"1", "[1]", "[1, 2, 3]", "[1, -1]", "[1, 0.5]", "[1, 100001]"}) {
    CAPTURE(wrong);
    const std::string member = std::string(R"("precision": {"bf16_layers": )") + wrong + "}, ";
    CHECK_FALSE(changed_run("\"recompute\"", member + "\"recompute\"").mistakes.empty());
  }
}

TEST_CASE("a source is told by its key, never by its title") {
  const auto with_source = [](const std::string& source) {
    return with(minimal, "\"gpu\"", "\"source\": " + source + ", \"gpu\"");
  };
  const auto read = [&](const std::string& source) {
    return cases_of(parse_runs(with_source(source), "r.json"), std::nullopt, std::nullopt).measurements;
  };
  const Measurements titled = read(R"({"title": "our rerun of the SC21 configurations"})");
  CHECK(titled.targets.empty());
  CHECK(titled.cases.at(0).source == "'our rerun of the SC21 configurations'");
  CHECK(titled.cases.at(0).request.software.name == "megatron-2022");
  CHECK(read(R"({"title": "SC21"})").targets.empty());
  const Measurements keyed = read(R"({"key": "sc21", "title": "anything"})");
  REQUIRE(keyed.targets.size() == 1);
  CHECK(keyed.targets[0].worst == 0.06);
  CHECK(keyed.cases.at(0).source == "SC21");
  CHECK(keyed.cases.at(0).request.software.name == "megatron-2021");
  CHECK(keyed.cases.at(0).request.strategy.gradient_dtype == Dtype::half);
  CHECK(
      contains(mistakes_in(with_source(R"({"key": "sc2"})")),
               "r.json: /0/source/key: names no published source (see: headroom list sources) (did you mean "
               "'sc21'?)"));
}

TEST_CASE("a title that is a label is not judged by that source's target") {
  // One keyed run beside one that only calls itself so.
  std::vector<MeasuredRun> runs = parse_runs(minimal, "r.json");
  runs.push_back(runs.front());
  runs[0].key = "sc21";
  runs[1].source = "SC21";
  const Measurements made = cases_of(runs, std::nullopt, std::nullopt).measurements;
  REQUIRE(made.cases.size() == 2);
  CHECK(made.cases[0].source != made.cases[1].source);
}

TEST_CASE("a run's own settings are read") {
  const MeasuredRun run =
      changed_run("\"recompute\"",
                  "\"settings\": {\"gradient_dtype\": \"half\", \"positions\": \"alibi\"}, \"recompute\"");
  CHECK(run.settings.gradient_dtype == Dtype::half);
  CHECK(run.settings.positions == Positions::alibi);
  CHECK(contains(runs_mistake("\"recompute\"", "\"settings\": {\"gradient_dtype\": \"fp8\"}, \"recompute\""),
                 "r.json: /0/settings/gradient_dtype: must be half or fp32 or bf16 or fp16"));
}

}  // namespace headroom
