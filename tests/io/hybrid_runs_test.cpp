#include <doctest/doctest.h>

#include "headroom/io/run_cases.hpp"
#include "headroom/io/runs_file.hpp"
#include "messages.hpp"

namespace headroom {
namespace {

// A run of four layers, with more members of its model.
MeasuredRun hybrid(const std::string& members) {
  return parse_runs(R"([{"id": "mine", "gpu": "A100-SXM4-80GB",
   "model": {"layers": 4, "hidden": 2048, "heads": 16, "vocab": 50257, "seq_len": 2048, "gated_mlp": false, )" +
                        members + R"(},
   "parallel": {"tp": 1, "pp": 2, "dp": 4}, "batch": {"global": 64, "micro": 2}, "recompute": "none",
   "measured": {"iteration_time_s": 1.23}}])",
                    "r.json")
      .front();
}

}  // namespace

TEST_CASE("a run of layers of one part has the kinds of its letters, and says what those lack") {
  const std::string mamba = R"("mamba": {"heads": 64, "head_dim": 64, "state": 128})";
  const std::string experts = R"("moe": {"experts": 8, "topk": 2, "moe_ffn": 512, "latent": 256})";
  const RunCases cases = cases_of({hybrid(mamba + ", " + experts + R"(, "hybrid_pattern": "ME*E")")},
                                  std::nullopt, std::nullopt);
  REQUIRE(cases.measurements.cases.size() == 1);
  const Transformer& model = cases.measurements.cases[0].request.model;
  REQUIRE(model.layer_kinds.size() == 3);
  CHECK(model.layer_kinds[0].name == "mamba");
  CHECK(model.layer_kinds[0].architecture.mixers.mamba ==
        Mamba{.heads = 64, .head_size = 64, .groups = 8, .state_size = 128});
  CHECK(model.layer_kinds[1].architecture.experts->latent == 256);
  CHECK(model.layer_kinds[1].architecture.activation == Activation::squared_relu);
  CHECK(model.layer_kinds[2].architecture.parts == LayerParts::mixer);
  CHECK(model.layer_runs == std::vector<LayerRun>{{0, 1}, {1, 1}, {2, 1}, {1, 1}});

  const auto reasons = [&](const std::string& members) {
    return text_of(cases_of({hybrid(members)}, std::nullopt, std::nullopt).skipped.at(0));
  };
  CHECK(reasons(R"("hybrid_pattern": "M-*-")") == "not stated: model.mamba");
  CHECK(reasons(mamba) == "not stated: model.hybrid_pattern");
  CHECK(reasons(mamba + R"(, "hybrid_pattern": "M-")") ==
        "not stated: model.hybrid_pattern of as many letters as layers");
  const std::vector<Problem> mistakes = hybrid(R"("hybrid_pattern": "MQ")").mistakes;
  REQUIRE(mistakes.size() == 1);
  CHECK(mistakes[0].where == "/model/hybrid_pattern");
  CHECK(contains(mistakes[0].rule, "must be of the letters M, G, *, - and E, with | between stages"));
}

TEST_CASE("a run of Nemotron's family leaves at 16 bits what its recipes do, unless it says which modules") {
  MeasuredRun run = hybrid(R"("mamba": {"heads": 64, "head_dim": 64, "state": 128}, "hybrid_pattern": "ME*E",
      "moe": {"experts": 8, "topk": 2, "moe_ffn": 512, "latent": 256})");
  run.device = "B200-SXM-180GB";
  run.mtp_layers = 1;
  const auto modules = [&](const char* recipe) {
    run.recipe = recipe;
    const RunCases cases = cases_of({run}, std::nullopt, std::nullopt);
    REQUIRE(cases.measurements.cases.size() == 1);
    return names_of(cases.measurements.cases[0].request.strategy.precision_scope.bf16_modules);
  };
  using Names = std::vector<std::string_view>;
  CHECK(modules("nvfp4") == Names{"attention", "latent_proj", "mtp"});
  CHECK(modules("mxfp8") == Names{"mtp"});
  CHECK(modules("bf16") == Names{});
  run.bf16_modules = {PrecisionModule::experts};
  CHECK(modules("nvfp4") == Names{"experts"});
}

TEST_CASE("a run whose experts keep what they save in pages runs them by the op fuser") {
  const auto of = [](const std::string& members) {
    return hybrid("\"name\": \"mine\"}, " + members + R"(, "offload": {"weights": false)").settings;
  };
  const RunSettings paged = of(R"("moe_run": {"paged_stash": true})");
  CHECK(paged.clamp_kernel == Fusion::fused);
  CHECK(paged.expert_bias_kernel == Fusion::fused);
  CHECK_FALSE(of(R"("moe_run": {"paged_stash": false})").clamp_kernel.has_value());
  const RunSettings stated =
      of(R"("moe_run": {"paged_stash": true}, "settings": {"clamp_kernel": "unfused"})");
  CHECK(stated.clamp_kernel == Fusion::unfused);
  CHECK(stated.expert_bias_kernel == Fusion::fused);
}

}  // namespace headroom
