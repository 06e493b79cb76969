// A launch file's own text, changed so that it starts another strategy.
#include "headroom/interop/launch_patch.hpp"

#include <string>

#include <doctest/doctest.h>

#include "interop/unified_diff.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

std::string example(const std::string& name) { return (tests::source_dir() / "examples" / name).string(); }

// The diff of an example after edits, without its heading; empty if there is none.
std::string patch(const std::string& name, const Edits& edits) {
  const std::string file = example(name);
  const LaunchedRun run = read_launched_run(file);
  const auto text = patched_launch(file, run, {}, edits);
  if (!text) return "";
  const std::string diff = unified_diff(name, launch_text(file), *text);
  return diff.substr(diff.find("@@"));
}

// Only the lines that change.
std::string changed(const std::string& name, const Edits& edits) {
  const std::string diff = patch(name, edits);
  std::string lines;
  for (std::size_t at = 0; at < diff.size(); at = diff.find('\n', at) + 1) {
    if (diff[at] == '-' || diff[at] == '+') lines += diff.substr(at, diff.find('\n', at) + 1 - at);
  }
  return lines;
}

}  // namespace

TEST_CASE("a patch of a script changes the variable that a flag reads") {
  CHECK(changed("train_dense.sh", {{"tensor_parallel", "4"}}) == "-TP=2\n+TP=4\n");
  CHECK(changed("train_dense.sh", {{"pipeline_parallel", "1"}, {"micro_batch", "4"}}) ==
        "-PP=2\n+PP=1\n-  --micro-batch-size 1\n+  --micro-batch-size 4\n");
}

TEST_CASE("a patch of a script adds a flag beside others, and takes one out") {
  CHECK(changed("train_dense.sh", {{"context_parallel", "2"}}) == "+  --context-parallel-size 2\n");
  CHECK(changed("train_dense.sh", {{"virtual_pipeline", "2"}}) ==
        "+  --num-virtual-stages-per-pipeline-rank 2\n");
  CHECK(changed("train_dense.sh", {{"recompute", "full"}}) ==
        "+  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1\n");
  CHECK(changed("train_dense.sh", {{"data_sharding", "none"}}) == "-  --use-distributed-optimizer\n");
}

TEST_CASE("a patch of a configuration keeps its keys, signs and comments") {
  CHECK(changed("torchtitan-llama3-70b.toml", {{"tensor_parallel", "4"}, {"data_parallel", "32"}}) ==
        "-data_parallel_shard_degree = 16\n-tensor_parallel_degree = 8\n"
        "+data_parallel_shard_degree = 32\n+tensor_parallel_degree = 4\n");
  CHECK(changed("torchtitan-llama3-70b.toml", {{"recompute", "none"}}) ==
        "-mode = \"full\"\n+mode = \"none\"\n");
  CHECK(changed("axolotl-qlora.yaml", {{"recompute", "none"}}) ==
        "-gradient_checkpointing: true\n+gradient_checkpointing: false\n");
}

TEST_CASE("a policy of recomputation does not leave what belongs to another one") {
  const auto patched = [](const std::string& flags, const Edits& edits) {
    const std::string text =
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
        "--num-attention-heads 32 "
        "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 64 --bf16 "
        "--vocab-size 32000 " +
        flags;
    const LaunchOptions options{.text = text + "\n"};
    return patched_launch("run.sh", read_launched_run("run.sh", options), options, edits);
  };
  const std::string modules = "--recompute-granularity selective --recompute-modules core_attn mlp";
  CHECK_FALSE(patched(modules, {{"recompute", "none"}}));
  CHECK_FALSE(patched("", {{"recompute", "full"}, {"recompute_layers", "8"}}));
  CHECK(patched("", {{"recompute", "full"}}));
}

TEST_CASE("uneven stages become a layout in the place of the flag of virtual stages") {
  const auto patched = [](const std::string& script, const Edits& edits) {
    const LaunchOptions options{.text = script};
    return patched_launch("run.sh", read_launched_run("run.sh", options), options, edits).value_or("");
  };
  const std::string model =
      "--num-layers 30 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 "
      "--max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 16 --vocab-size 32000 --bf16 ";
  const std::string start = "torchrun --nproc_per_node 8 pretrain_gpt.py " + model;
  const std::string pipeline = "--pipeline-model-parallel-size ";
  const std::string layout = "--pipeline-model-parallel-layout ";
  CHECK(patched(start + pipeline + "4\n", {{"stage_layers", "7,8,8,7"}}) ==
        start + layout + "\"Et*7|(t*8|)*2,t*7,L\" " + pipeline + "4\n");
  const auto is_refused = [](const std::string& script) {
    return !read_launched_run("run.sh", LaunchOptions{.text = script}).refusals.empty();
  };
  CHECK(is_refused(start + pipeline + "4\n"));
  CHECK_FALSE(is_refused(patched(start + pipeline + "4\n", {{"stage_layers", "7,8,8,7"}})));
  // Nothing may be quoted between quotes.
  const std::string variable = "\"\ntorchrun --nproc_per_node 8 pretrain_gpt.py " + model + "$PARALLEL\n";
  CHECK(patched("PARALLEL=\"" + pipeline + "4" + variable, {{"stage_layers", "7,8,8,7"}}) ==
        "PARALLEL=\"" + layout + "Et*7|(t*8|)*2,t*7,L " + pipeline + "4" + variable);
  const std::string virtual_stages = "--num-virtual-stages-per-pipeline-rank 2 ";
  CHECK(patched(start + virtual_stages + pipeline + "4\n", {{"stage_layers", "3,4*6,3"}}) ==
        start + layout + "\"Et*3|(t*4|)*6,t*3,L\" " + pipeline + "4\n");
  CHECK(patched(start + pipeline + "4\n", {{"virtual_pipeline", "2"}, {"stage_layers", "3,4*6,3"}}) ==
        start + layout + "\"Et*3|(t*4|)*6,t*3,L\" " + pipeline + "4\n");
  const std::string stages_of_2 = layout + "\"Et*3|(t*4|)*6,t*3,L\"";
  CHECK(patched(start + pipeline + "4 --num-virtual-stages-per-pipeline-rank=2\n",
                {{"stage_layers", "3,4*6,3"}}) == start + pipeline + "4 " + stages_of_2 + "\n");
  CHECK(patched("VP=2\n" + start + pipeline + "4 \\\n  --num-virtual-stages-per-pipeline-rank $VP  # two\n",
                {{"stage_layers", "3,4*6,3"}}) ==
        "VP=2\n" + start + pipeline + "4 \\\n  " + stages_of_2 + "  # two\n");
  const std::string apart = start + pipeline + "4 --num-virtual-stages-per-pipeline-rank \\\n  2\n";
  CHECK(patched(apart, {{"stage_layers", "3,4*6,3"}}) == "");
  const std::string ends = "--account-for-embedding-in-pipeline-split ";
  CHECK(patched(start + ends + pipeline + "4\n", {{"stage_layers", "7,8,8,7"}}) ==
        start + layout + "\"Et*7|(t*8|)*2,t*7,L\" " + pipeline + "4\n");
  // A shell that reads a text twice needs quotes in it.
  const std::string twice = "CMD=\"" + start;
  CHECK(patched(twice + pipeline + "4\"\neval $CMD\n", {{"stage_layers", "7,8,8,7"}}) ==
        twice + layout + "'Et*7|(t*8|)*2,t*7,L' " + pipeline + "4\"\neval $CMD\n");
  const std::string dropping = "shopt -s nullglob\nARGS=\"" + model + pipeline + "4\"\n";
  CHECK(patched(dropping + "torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS\n",
                {{"stage_layers", "7,8,8,7"}}) == "");
  // The other flags of stages exclude a layout.
  CHECK(patched(start + pipeline + "4 --decoder-first-pipeline-num-layers 6\n",
                {{"stage_layers", "7,8,8,7"}}) == "");
}

TEST_CASE("a patch leaves the other runs of a script as they were") {
  const std::string settings =
      " --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 "
      "--micro-batch-size 1 --global-batch-size 16 --vocab-size 32000 --bf16 ";
  const auto run = [&](const std::string& layers, const std::string& parallel) {
    return "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers " + layers + settings + parallel + "\n";
  };
  const auto patched = [](const std::string& script) {
    const LaunchOptions options{.text = script};
    const LaunchedRun read = read_launched_run("run.sh", options);
    CHECK(read.runs == 2);
    return patched_launch("run.sh", read, options, {{"pipeline_parallel", "2"}});
  };
  const std::string four = "--pipeline-model-parallel-size 4";
  CHECK(patched(run("24", four) + run("32", four)) ==
        run("24", "--pipeline-model-parallel-size 2") + run("32", four));
  CHECK_FALSE(patched("P=4\n" + run("24", "--pipeline-model-parallel-size $P") +
                      run("32", "--pipeline-model-parallel-size $P")));
}

TEST_CASE("a command ends a line earlier without its last setting, and lines keep their ends") {
  const auto patched = [](const std::string& end) {
    const std::string text =
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --bf16 "
        "--num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 --vocab-size 32000 \\" +
        end + "  --micro-batch-size 2 --global-batch-size 64 \\" + end + "  --use-distributed-optimizer" +
        end;
    const LaunchOptions options{.text = text};
    const LaunchedRun run = read_launched_run("run.sh", options);
    return patched_launch("run.sh", run, options, {{"data_sharding", "none"}}).value_or("");
  };
  CHECK(patched("\n").ends_with(" \\\n  --micro-batch-size 2 --global-batch-size 64\n"));
  CHECK(patched("\r\n").ends_with(" \\\r\n  --micro-batch-size 2 --global-batch-size 64\r\n"));
}

TEST_CASE("a strategy that the file cannot say has no patch") {
  CHECK(patch("axolotl-qlora.yaml", {{"pipeline_parallel", "2"}}).empty());
  CHECK(patch("axolotl-qlora.yaml", {{"micro_batch", "4"}}).empty());  // it states accumulation
  CHECK(patch("torchtitan-llama3-70b.toml", {{"pipeline_parallel", "2"}, {"data_parallel", "8"}}).empty());
  CHECK(patch("train_dense.sh", {{"split_hidden", "yes"}}).empty());
}

TEST_CASE(
    "a unified diff has three lines of context, joins hunks that touch, and says where a last line does not "
    "end") {
  CHECK(unified_diff("f", "a\n", "a\n").empty());
  CHECK(unified_diff("f", "1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nx\n6\n7\n8\n") ==
        "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
  CHECK(unified_diff("f", "", "a") == "--- f\n+++ f\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n");
  const std::string far = unified_diff("f", "a\n1\n2\n3\n4\n5\n6\n7\nb\n", "x\n1\n2\n3\n4\n5\n6\n7\ny\n");
  CHECK(far == "--- f\n+++ f\n@@ -1,4 +1,4 @@\n-a\n+x\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+y\n");
  const std::string near = unified_diff("f", "a\n1\n2\n3\n4\n5\n6\nb\n", "x\n1\n2\n3\n4\n5\n6\ny\n");
  CHECK(near == "--- f\n+++ f\n@@ -1,8 +1,8 @@\n-a\n+x\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+y\n");
}

}  // namespace headroom
