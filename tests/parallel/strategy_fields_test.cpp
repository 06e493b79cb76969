// The table of a strategy's fields: each is told and read back.
#include "headroom/parallel/strategy_fields.hpp"

#include <set>

#include <doctest/doctest.h>

#include "headroom/parallel/edits.hpp"
#include "parallel/field_examples.hpp"

namespace headroom {

TEST_CASE("strategy fields: every name, letter and alias is of one field only") {
  std::set<std::string> names;
  for (const StrategyField& field : strategy_fields) {
    CAPTURE(std::string(field.name));
    CHECK(find_field(field.name) == &field);
    CHECK(find_field(flag_of(field.name).substr(2)) == &field);
    CHECK(names.insert(std::string(field.name)).second);
    CHECK(!field.help.empty());
    if (!field.letter.empty()) CHECK(find_field(field.letter) == &field);
    for (const std::string_view alias : aliases_of(field)) CHECK(find_field(alias) == &field);
  }
  CHECK(find_field("") == nullptr);
  CHECK(find_field("tp,tensor-model-parallel-size") == nullptr);
}

TEST_CASE("strategy fields: every field is set from a text, and says that text") {
  REQUIRE(std::size(field_examples) == strategy_fields.size());
  for (std::size_t i = 0; i < strategy_fields.size(); ++i) {
    const StrategyField& field = strategy_fields[i];
    CAPTURE(std::string(field.name));
    REQUIRE(field.name == field_examples[i].field);
    Strategy strategy;
    Workload workload;
    CHECK(value_of(field, strategy, workload) != field_examples[i].value);
    CHECK(set_value(field, field_examples[i].value, strategy, workload).empty());
    CHECK(value_of(field, strategy, workload) == field_examples[i].value);
    // It is the only one that changed.
    for (const StrategyField& other : strategy_fields) {
      if (&other != &field) CHECK(value_of(other, strategy, workload) == value_of(other, {}, {}));
    }
  }
}

TEST_CASE("strategy fields: a text that is no value leaves the field as it was and says the rule") {
  for (const StrategyField& field : strategy_fields) {
    if (std::holds_alternative<Member<std::vector<std::string>>>(field.member))
      continue;  // checked by the model
    CAPTURE(std::string(field.name));
    Strategy strategy;
    Workload workload;
    CHECK(set_value(field, "-7 of them", strategy, workload).find("'-7 of them'") != std::string::npos);
  }
  Strategy strategy;
  Workload workload;
  CHECK(
      set_value(*find_field("recompute"), "selectiv", strategy, workload) ==
      "must be one of none, selective, full, ops, selective_op, not 'selectiv' (did you mean 'selective'?)");
  CHECK(set_value(*find_field("tensor_parallel"), "0", strategy, workload) ==
        "must be between 1 and 2147483647, not '0'");
  CHECK(set_value(*find_field("gradient_dtype"), "int64", strategy, workload) ==
        "must be one of half, fp32, bf16, fp16, not 'int64'");
  CHECK(strategy == Strategy{});
}

TEST_CASE("strategy fields: edits make the strategy that they were taken from") {
  Strategy all{.tensor_parallel = 8,
               .pipeline_parallel = 4,
               .virtual_pipeline = 2,
               .data_parallel = 3,
               .micro_batch = 2,
               .sequence_parallel = true,
               .save_gathered_input = true,
               .recompute = {.policy = RecomputePolicy::full,
                             .method = RecomputeMethod::uniform,
                             .layers = 2,
                             .distribute_saved_activations = true,
                             .window = true,
                             .ops = {}},
               .schedule = ScheduleKind::interleaved,
               .keep_pipeline_outputs = true,
               .data_sharding = DataSharding::zero3,
               .shard_size = 3,
               .no_reshard_after_forward = true,
               .sync_each_batch = true,
               .precision = Precision::mxfp8,
               .precision_scope = {.bf16_layers_at_start = 1,
                                   .bf16_layers_at_end = 2,
                                   .attention = true,
                                   .output_layer = true},
               .fp8_param_gather = true,
               .tp_only_amax_red = true,
               .gradient_dtype = Dtype::half,
               .optimizer = {MainParams::remainder, MomentDtype::bf16, MomentDtype::fp8},
               .step_in_backward = true,
               .stage_layers = {1, 2, 3, 4, 5, 6, 7, 8},
               .overlap_expert_all_to_all = true,
               .microbatch_group_size = 7};
  for (int i = 0; i < 4; ++i) {
    Strategy made;
    Workload workload;
    apply(edits_of(all), made, workload);
    CHECK(made == all);
    CHECK(workload == Workload{});
    if (i == 0) all.recompute = {.policy = RecomputePolicy::ops, .ops = {"gelu", "norm_1"}};
    if (i == 1) all.virtual_pipeline = 1, all.schedule = ScheduleKind::gpipe;
    if (i == 2) all = {};
  }
  CHECK(flags_of(edits_of({})) ==
        "--tensor-parallel 1 --pipeline-parallel 1 --data-parallel 1 --micro-batch 1");
}

TEST_CASE("strategy fields: flags are read back as the edits that they were written of") {
  const Edits edits{{"tensor_parallel", "8"},
                    {"sequence_parallel", "yes"},
                    {"recompute_ops", "gelu,norm_1"},
                    {"recompute_window", "no"},
                    {"stage_layers", "3,4"}};
  CHECK(edits_of_flags(flags_of(edits)) == edits);
  CHECK(edits_of_flags(flags_of(edits, FlagNames::letters)) == edits);
  for (const char* flags : {"", "-t", "8", "--no-such-flag 1", "-t=no 3", "--sp yes"}) {
    CAPTURE(flags);
    CHECK(!edits_of_flags(flags));
  }
}

TEST_CASE("strategy fields: an edit implies what its flag does") {
  Strategy strategy{.virtual_pipeline = 1,
                    .recompute = {.policy = RecomputePolicy::full, .layers = 3, .window = true}};
  Workload workload;
  apply(Edits{{"virtual_pipeline", "2"}, {"recompute", "selective"}}, strategy, workload);
  CHECK(strategy.schedule == ScheduleKind::interleaved);
  CHECK(strategy.recompute == Recomputation{.policy = RecomputePolicy::selective});
  apply(Edits{{"recompute_ops", "gelu"}}, strategy, workload);
  CHECK(strategy.recompute == Recomputation{.policy = RecomputePolicy::ops, .ops = {"gelu"}});
}

TEST_CASE("strategy fields: stages are read from Megatron-Core's layout, virtual stages among them") {
  Workload workload;
  Strategy strategy{.pipeline_parallel = 4};
  CHECK(apply(Edit{"stage_layers", "Et*7|(t*8|)*2,t*7,L"}, strategy, workload).empty());
  CHECK(strategy.stage_layers == std::vector<std::int64_t>{7, 8, 8, 7});
  CHECK(strategy.virtual_pipeline == 1);
  CHECK(apply(Edit{"stage_layers", "Et*3|(t*4|)*6,t*3,L"}, strategy, workload).empty());
  CHECK(strategy.virtual_pipeline == 2);
  CHECK(strategy.schedule == ScheduleKind::interleaved);
  Strategy hybrid{.pipeline_parallel = 2};
  CHECK(apply(Edit{"stage_layers", "M-M*|-M-/*-"}, hybrid, workload).empty());
  CHECK(hybrid.stage_layers == std::vector<std::int64_t>{4, 3});
  CHECK(find_field("pipeline_model_parallel_layout")->name == "stage_layers");
  CHECK(apply(Edit{"stage_layers", "Et*7|x,L"}, strategy, workload) ==
        "must be the layers of each stage, such as 7,8*14,7, or a layout of Megatron-Core, such as "
        "'Et*7|(t*8|)*14,t*7,L', not 'Et*7|x,L'");
}

TEST_CASE("strategy fields: a global batch of tokens is of the sequences that they are") {
  Strategy strategy;
  Workload workload{.global_batch = 1, .sequence = 8192};
  CHECK(apply(Edit{"global_batch", "4M tokens"}, strategy, workload).empty());
  CHECK(workload.global_batch == 512);
  CHECK(apply(Edit{"global_batch", "4M"}, strategy, workload).starts_with("may be 4194304 sequences or"));
  CHECK(workload.global_batch == 512);
}

TEST_CASE("strategy fields: a problem with its fields as flags") {
  CHECK(by_flag({"micro_batch", "must suit `global_batch` and `x` and `recompute` full; `sp` and `"}) ==
        Problem{"--micro-batch", "must suit --global-batch and `x` and --recompute full; `sp` and `"});
  CHECK(by_flag({"a.json: /micro_batch", "no"}) == Problem{"a.json: /micro_batch", "no"});
}

}  // namespace headroom
