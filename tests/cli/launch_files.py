#!/usr/bin/env python3
"""Launches of random best plans: every file parses, and simple rules of the launchers hold of what is written.

The rules here are read from the files alone, by other code than the program's. --count N draws N plans.
"""
import argparse
import ast
import json
import random
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python before 3.11
    tomllib = None
try:
    import yaml
except ImportError:
    yaml = None

MODELS = ["llama-3-8b", "llama-3-70b", "gpt3-13b", "mixtral-8x7b", "qwen3-30b-a3b", "qwen3-8b", "qwen2.5-7b", "deepseek-v2-lite",
          "deepseek-v3", "gpt-oss-20b", "nemotron-h-8b", "gpt2-xl", "glm-4.5-air", "phi-4"]
SYSTEMS = ["dgx-a100-80g", "dgx-h100-80g", "dgx-h200-141g", "dgx-b200-180g", "gb200-nvl72"]
LAUNCHERS = {
    "megatron-core-2025": ["megatron", "bridge", "nemo"],
    "megatron-2022": ["megatron", "nanotron"],
    "nemo-2025": ["bridge", "megatron", "nemo"],
    "torchtitan-2025": ["torchtitan"],
    "torchtitan-2024": ["torchtitan"],
    "zero-bubble-2023": ["zero-bubble"],
    "deepspeed-2025": ["deepspeed", "trainer", "accelerate", "llama-factory", "axolotl"],
    "hf-trainer": ["accelerate", "trainer", "llama-factory", "axolotl"],
}


def arrays_of(script):
    """Words of the arrays of a script, as bash reads them."""
    words = []
    for body in re.findall(r"^[A-Z_]+=\(\n(.*?)^\)", script, re.M | re.S):
        words += shlex.split(body)
    return words


def flags_of(words):
    flags = {}
    name = None
    for word in words:
        if word.startswith("--"):
            name = word
            flags[name] = []
        elif "=" in word and name is None:
            key, value = word.split("=", 1)
            flags[key] = [value]
        elif name:
            flags[name].append(word)
    return flags


class LaunchFiles(unittest.TestCase):
    binary = None
    count = 12
    seed = 1

    def run_program(self, *arguments):
        return subprocess.run([self.binary, *arguments], capture_output=True, text=True, timeout=600)

    def check_file(self, name, text):
        if name.endswith(".sh"):
            done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        elif name.endswith(".json"):
            json.loads(text)
        elif name.endswith(".toml") and tomllib:
            tomllib.loads(text)
        elif name.endswith(".py"):
            ast.parse(text)
        elif name.endswith(".yaml") and yaml:
            self.assertIsInstance(yaml.safe_load(text), dict)

    def check_megatron(self, launch, strategy, workload, gpus, blackwell):
        flags = flags_of(arrays_of(launch["files"]["launch.sh"]))
        one = lambda name, default=1: int(flags.get(name, [default])[0])
        t, p, c = (one(f"--{x}-parallel-size") for x in ("tensor-model", "pipeline-model", "context"))
        self.assertEqual(gpus % (t * p * c), 0)
        d = gpus // (t * p * c)
        self.assertEqual(one("--global-batch-size") % (one("--micro-batch-size") * d), 0)
        self.assertGreaterEqual(one("--max-position-embeddings"), one("--seq-length"))
        self.assertEqual("--num-query-groups" in flags, "--group-query-attention" in flags)
        if c > 1:
            self.assertEqual(one("--seq-length") % (2 * c), 0)
        if "moe_act" in flags.get("--recompute-modules", []):
            self.assertIn("--moe-grouped-gemm", flags)
        if "--num-experts" in flags and t > 1:
            self.assertIn("--sequence-parallel", flags)
        if "--overlap-param-gather" in flags:
            self.assertIn("--overlap-grad-reduce", flags)
            self.assertIn("--use-distributed-optimizer", flags)
        if "--tp-comm-overlap" in flags:
            self.assertIn("--sequence-parallel", flags)
        if (t > 1 or c > 1) and not blackwell and "--use-megatron-fsdp" not in flags:
            self.assertEqual(launch["environment"].get("CUDA_DEVICE_MAX_CONNECTIONS"), "1")
        layout = flags.get("--pipeline-model-parallel-layout", [None])[0]
        if layout:
            unrolled = re.sub(r"\(([^()]*)\)\*(\d+)", lambda m: m[1] * int(m[2]), layout)
            unrolled = re.sub(r"(\w)\*(\d+)", lambda m: m[1] * int(m[2]), unrolled).replace(",", "")
            self.assertEqual(len(unrolled.split("|")) % p, 0)
            self.assertEqual(unrolled.count("t"), one("--num-layers"))
            self.assertEqual(unrolled.count("m"), one("--mtp-num-layers", 0))
            self.assertTrue(unrolled.startswith("E") and unrolled.endswith("L"))
        if flags.get("--recompute-granularity") == ["full"]:
            self.assertIn("--recompute-method", flags)
            self.assertIn("--recompute-num-layers", flags)
            self.assertNotEqual(flags.get("--cuda-graph-impl"), ["transformer_engine"])
        if "--optimizer-cpu-offload" in flags:
            self.assertIn("--use-precision-aware-optimizer", flags)
        if flags.get("--cp-comm-type") == ["a2a+p2p"]:
            sizes = [int(size) for size in flags["--hierarchical-context-parallel-sizes"]]
            self.assertEqual(sizes[0] * sizes[1], c)

    def check_titan(self, launch, gpus):
        config = tomllib.loads(launch["files"]["headroom.toml"])
        parallel, training = config["parallelism"], config["training"]
        get = lambda name: parallel.get(name + "_degree", 1)
        t, p, c = get("tensor_parallel"), get("pipeline_parallel"), get("context_parallel")
        shards, copies = get("data_parallel_shard"), get("data_parallel_replicate")
        self.assertEqual(shards * copies * t * p * c, gpus)
        self.assertEqual(training["seq_len"] % (2 * t * c), 0)
        self.assertEqual(training["global_batch_size"] % (training["local_batch_size"] * shards * copies), 0)
        if p > 1:
            self.assertEqual(training["local_batch_size"] % parallel["pipeline_parallel_microbatch_size"], 0)
        etp = get("expert_tensor_parallel")
        self.assertIn(etp, (1, t))
        self.assertEqual(shards * c * t % (get("expert_parallel") * etp), 0)

    def check_deepspeed(self, launch, gpus):
        config = json.loads(launch["files"]["ds_config.json"])
        t = config.get("tensor_parallel", {}).get("autotp_size", 1)
        batch = config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"] * (gpus // t)
        if launch["launcher"] == "deepspeed" or t == 1:
            self.assertEqual(config["train_batch_size"], batch)
        else:  # a Trainer would multiply by all GPUs
            self.assertNotIn("train_batch_size", config)
        zero = config["zero_optimization"]
        self.assertIn(zero["stage"], range(4))
        if zero.get("offload_optimizer", {}).get("ratio", 1) < 1 or "offload_param" in zero:
            self.assertEqual(zero["stage"], 3)

    def test_random_plans(self):
        draw = random.Random(self.seed)
        done = tries = 0
        while done < self.count:
            tries += 1
            self.assertLess(tries, 20 * self.count, "hardly any plan is found")
            software = draw.choice(sorted(LAUNCHERS))
            launcher = draw.choice(LAUNCHERS[software])
            model, system, gpus = draw.choice(MODELS), draw.choice(SYSTEMS), draw.choice([1, 4, 8, 16, 32, 64])
            command = ["plan", model, "--system", system, "--software", software, "--devices", str(gpus), "--launch", launcher,
                       "--use-all-devices", "--fast", "--top", "1", "--format", "json"]
            with self.subTest(command=" ".join(command)):
                result = self.run_program(*command)
                if result.returncode == 3:
                    continue  # nothing fits
                self.assertEqual(result.returncode, 0, result.stderr)
                plan = json.loads(result.stdout)["plans"][0]
                codes = [warning["code"] for warning in plan.get("warnings", [])]
                self.assertNotIn("no_launcher_flag", codes)
                launch = plan["launch"]
                self.assertEqual(launch["launcher"], launcher)
                for name, text in launch["files"].items():
                    self.check_file(name, text)
                if launcher == "megatron":
                    self.check_megatron(launch, plan["strategy"], plan, gpus, system in ("dgx-b200-180g", "gb200-nvl72"))
                if launcher == "torchtitan" and tomllib:
                    self.check_titan(launch, gpus)
                if "ds_config.json" in launch["files"]:
                    self.check_deepspeed(launch, gpus)
                done += 1

    def test_folder(self):
        command = ["estimate", "llama-3-8b", "--system", "dgx-h100-80g", "-t", "2", "--sp", "-d", "4", "--zero", "1", "--global-batch",
                   "64", "--software", "megatron-core-2025", "--launch-dir"]
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "new"
            self.assertEqual(self.run_program(*command, folder).returncode, 0)
            self.assertEqual(sorted(path.name for path in folder.iterdir()), ["launch.sh"])
            text = (folder / "launch.sh").read_text()
            self.assertEqual(self.run_program(*command, folder).returncode, 0)  # the same again
            (folder / "launch.sh").write_text("mine\n")
            refused = self.run_program(*command, folder)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("launch.sh", refused.stderr)
            self.assertEqual((folder / "launch.sh").read_text(), "mine\n")
            # Of several files none is written where one is in the way.
            other = Path(scratch) / "several"
            other.mkdir()
            (other / "pretrain_bridge.py").write_text("mine\n")
            self.assertEqual(self.run_program(*command, other, "--launch", "bridge").returncode, 2)
            self.assertEqual([path.name for path in other.iterdir()], ["pretrain_bridge.py"])
            self.assertIn("--tensor-model-parallel-size 2", text)

    def test_config_says_the_model(self):
        """The config.json of a launch is read back as the model that it was written for."""
        for model in ("llama-3-8b", "gpt2-xl", "qwen2.5-7b", "qwen3-8b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"):
            with self.subTest(model=model), tempfile.TemporaryDirectory() as scratch:
                said = ["--system", "dgx-h100-80g", "--software", "deepspeed-2025", "-d", "8", "--zero", "3", "--global-batch", "8",
                        "--format", "json", "--no-suggestions"]
                first = json.loads(self.run_program("estimate", model, *said, "--launch").stdout)
                path = Path(scratch) / "config.json"
                path.write_text(first["launch"]["files"]["config.json"])
                second = json.loads(self.run_program("estimate", path, *said, "--sequence",
                                                     str(first["workload"]["sequence"])).stdout)
                names = ("hidden", "feedforward", "heads", "key_value_heads", "head_size", "vocabulary", "experts", "latent_attention",
                         "tied_embeddings", "qkv_bias", "qk_norm", "activation", "normalization", "positions", "mtp_layers")
                for name in names:
                    if name != "experts":
                        self.assertEqual(first["model"].get(name), second["model"].get(name), name)
                self.assertEqual(first["memory"]["peak_bytes"], second["memory"]["peak_bytes"])

    def test_other_launchers(self):
        refused = self.run_program("estimate", "llama-3-8b", "--system", "dgx-h100-80g", "-d", "8", "--software", "torchtitan-2025",
                                   "--launch", "megatron")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("megatron-core-2025", refused.stderr)
        self.assertEqual(self.run_program("estimate", "--launch", "bridge", "llama-3-8b", "--system", "dgx-h100-80g", "--software",
                                          "nemo-2025", "-t", "2", "--sp", "-d", "4", "--zero", "1").returncode, 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    own, rest = parser.parse_known_args()
    LaunchFiles.binary, LaunchFiles.count, LaunchFiles.seed = own.bin / "headroom", own.count, own.seed
    unittest.main(argv=[sys.argv[0], *rest])
