#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "interop/launch_in/setting.hpp"

namespace headroom {
namespace {

Written written_at(std::int64_t line, std::string name, std::vector<std::string> values) {
  std::string text = "--" + name;
  for (const std::string& value : values) text += " " + value;
  return {std::move(name), std::move(values), std::move(text), {"run.sh", line}, ""};
}

TEST_CASE("a run is built from fields, choices and members, the last of each") {
  RunBuilder builder("run.sh", "Megatron-LM", "megatron-core-2025");
  const LaunchKey size{"tp", LaunchUse::field, "tensor_parallel"};
  CHECK(builder.take(size, written_at(2, "tp", {"4"})));
  CHECK(builder.take(size, written_at(3, "tp", {"8"})));
  builder.take({"sp", LaunchUse::on, "sequence_parallel"}, written_at(4, "sp", {}));
  builder.take({"zero", LaunchUse::on, "data_sharding=zero1"}, written_at(4, "zero", {}));
  builder.take({"no-overlap", LaunchUse::off, "overlap_p2p"}, written_at(5, "no-overlap", {}));
  builder.take({"hidden", LaunchUse::member, "hidden"}, written_at(6, "hidden", {"1024"}));
  builder.take({"gelu", LaunchUse::member, "activation=swiglu"}, written_at(6, "gelu", {"false"}));
  builder.member("feedforward", 4096, nullptr);
  builder.member("heads", 16, nullptr);
  builder.member("layers", 24, nullptr);
  builder.member("vocabulary", 50257, nullptr);
  builder.member("sequence", 2048, nullptr);
  const LaunchedRun run = builder.finish({});
  REQUIRE(run.strategy.size() == 3);
  CHECK(run.strategy[0] == LaunchSetting{"tensor_parallel", "8", "--tp 8", {"run.sh", 3}});
  CHECK(run.strategy[1].value == "yes");
  CHECK(run.strategy[2].value == "zero1");
  REQUIRE(run.stack.size() == 1);
  CHECK(run.stack[0] == LaunchSetting{"overlap_p2p", "false", "--no-overlap", {"run.sh", 5}});
  REQUIRE(run.model);
  CHECK(run.model->hidden == 1024);
  CHECK(run.model->name == "run");
  CHECK(run.model->architecture.activation == Activation::gelu);
  REQUIRE(run.remarks.size() == 1);
  CHECK(run.remarks[0].text == "--tp 8 takes the place of --tp 4 (run.sh:2)");
}

TEST_CASE("problems of a launch file name line and flag") {
  RunBuilder builder("run.sh", "Megatron-LM", "");
  builder.take({"mbs", LaunchUse::field, "micro_batch"}, written_at(14, "mbs", {"two"}));
  builder.take({"hidden", LaunchUse::member, "hidden"}, written_at(15, "hidden-size", {"100"}));
  builder.member("heads", 16, nullptr);
  builder.member("layers", 24, nullptr);
  builder.member("feedforward", 400, nullptr);
  builder.member("vocabulary", 50257, nullptr);
  builder.member("sequence", 2048, nullptr);
  builder.unknown(written_at(16, "num_experta", {"8"}), {"num_experts"});
  builder.unknown(written_at(17, "use_my_fork", {}), {"num_experts"});
  std::vector<Problem> problems;
  try {
    builder.finish({});
  } catch (const InputError& error) {
    problems = error.problems();
  }
  REQUIRE(problems.size() == 3);
  CHECK(problems[0] == Problem{"run.sh:14: --mbs", "must be a whole number, not 'two'"});
  CHECK(problems[1].where == "run.sh:16: --num_experta");
  CHECK(problems[1].rule.find("num_experts") != std::string::npos);
  CHECK(problems[2].where == "run.sh:15: --hidden-size");
}

TEST_CASE("a value that is not known is unresolved where it matters") {
  RunBuilder builder("run.sh", "Megatron-LM", "");
  Written unknown = written_at(3, "tp", {"$3"});
  unknown.unknown = "needs $3";
  builder.take({"tp", LaunchUse::field, "tensor_parallel"}, unknown);
  builder.take({"save", LaunchUse::idle}, unknown);
  const LaunchedRun run = builder.finish({});
  CHECK(run.strategy.empty());
  REQUIRE(run.remarks.size() == 2);
  CHECK(run.remarks[0] ==
        LaunchRemark{LaunchRemarkKind::unresolved, "--tp $3: needs $3", {"run.sh", 3}, "tensor_parallel"});
  CHECK(run.remarks[1].kind == LaunchRemarkKind::idle);
}

TEST_CASE("choices of a stack are spelt as Python and YAML spell them, and the last list of layers holds") {
  RunBuilder builder("recipe.py", "NeMo", "");
  builder.take({"overlap", LaunchUse::choice, "overlap_grad_reduce"}, written_at(1, "overlap", {"True"}));
  builder.take({"shared", LaunchUse::choice, "overlap_shared_experts"}, written_at(2, "shared", {"no"}));
  builder.take({"bucket", LaunchUse::choice, "bucket_parameters"}, written_at(3, "bucket", {"40000000"}));
  builder.take({"fused", LaunchUse::off, "gradient_accumulation=separate"},
               written_at(4, "fused", {"False"}));
  const Written layers = written_at(5, "num-layers", {"3"});
  builder.member("layers", 3, &layers);
  builder.drop_member("layers");
  builder.member("layers", 4, &layers);
  CHECK(builder.chosen("overlap_grad_reduce") == "true");
  CHECK(builder.chosen("overlap_shared_experts") == "false");
  CHECK(builder.chosen("bucket_parameters") == "40000000");
  CHECK(builder.chosen("gradient_accumulation") == "separate");
  CHECK(builder.finish({}).remarks.empty());
}

TEST_CASE("the allocator's variable is a choice of the stack") {
  RunBuilder builder("run.sh", "Megatron-LM", "");
  CHECK(is_allocator_variable("runtime_env.env_vars.PYTORCH_CUDA_ALLOC_CONF"));
  CHECK_FALSE(is_allocator_variable("PYTORCH_CUDA_ALLOC_CONF_OLD"));
  take_allocator(written_at(1, "PYTORCH_ALLOC_CONF", {"max_split_size_mb:128"}), builder);
  CHECK_FALSE(builder.chosen("memory.expandable_segments"));
  take_allocator(written_at(1, "PYTORCH_ALLOC_CONF", {"max_split_size_mb:128, expandable_segments:True"}),
                 builder);
  CHECK(builder.chosen("memory.expandable_segments") == "true");
}

TEST_CASE("a name with another first letter is no slip of the pen") {
  RunBuilder builder("run.sh", "Megatron-LM", "");
  builder.unknown(written_at(1, "patch_size", {"16"}), {"batch_size"});
  const LaunchedRun run = builder.finish({});
  REQUIRE(run.remarks.size() == 1);
  CHECK(run.remarks[0].kind == LaunchRemarkKind::unmodelled);
}

}  // namespace
}  // namespace headroom
