#!/usr/bin/env python3
"""What the program advises for flags of other programs (src/cli/other_name_tables.hpp) it takes: on every stack what is said of
stacks, and each flag beside what it needs.
"""
import argparse
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLES = (ROOT / "src/cli/other_name_tables.hpp").read_text()
STACKS = sorted(file.stem for file in (ROOT / "presets/software").glob("*.json"))
DENSE, EXPERTS = "llama-3-8b", "mixtral-8x7b"
H100 = ("--system", "dgx-h100-80g")

# What stands for N in the advice about a field of a file.
NUMBERS = {"experts.count": 16, "experts.per_token": 1, "experts.groups": 4, "experts.groups_per_token": 1, "experts.latent": 1024,
           "layer_kinds.mamba.mamba.heads": 64, "layer_kinds.mamba.mamba.head_size": 32, "layer_kinds.mamba.mamba.groups": 4,
           "layer_kinds.mamba.mamba.state_size": 64, "mtp_layers": 1, "max_positions": 16384, "layers": 16, "hidden": 2048,
           "feedforward": 8192, "heads": 16, "key_value_heads": 4, "vocabulary": 50000, "devices_per_node": 4,
           "head_size": 64, "sequence": 4096, "tied_embeddings": "true", "window": 1024, "experts.feedforward": 2048,
           "experts.shared_feedforward": 2048, "latent_attention.q_rank": 1024, "latent_attention.kv_rank": 256}
KEYS = re.findall(r'\{"(\w+)", "([\w.]+)"\}', (ROOT / "src/io/other_keys.hpp").read_text())

# A command for each flag that the advice names without a field of a file.
COMMANDS = {"--offload-layers": ("estimate", DENSE, *H100, "--offload-layers", "2"),
            "--bf16-modules": ("estimate", DENSE, *H100, "--precision", "fp8", "--bf16-modules", "attention"),
            "--devices": ("plan", DENSE, *H100, "--global-batch", "8", "--devices", "8"),
            "--global-batch": ("estimate", DENSE, "--global-batch", "8"),
            "--micro-batch": ("estimate", DENSE, "--micro-batch", "2", "--global-batch", "8"),
            "--data-parallel": ("estimate", DENSE, "--data-parallel", "8", "--global-batch", "8"),
            "--virtual-pipeline": ("estimate", DENSE, "-p", "4", "--virtual-pipeline", "2"),
            "--microbatch-group-size": ("estimate", DENSE, *H100, "-p", "4", "-m", "2", "--microbatch-group-size", "8"),
            "--stage-layers": ("estimate", DENSE, *H100, "-p", "8", "--stage-layers", "3,4*6,5"),
            "--shard-size": ("estimate", DENSE, "-d", "8", "--software", "torchtitan-2025", "--shard-size", "4"),
            "--recompute": ("estimate", DENSE, "--recompute", "full"),
            "--software": ("estimate", DENSE, "--software", "megatron-2022"),
            "--system": ("estimate", DENSE, *H100),
            "--tokens": ("estimate", DENSE, "--tokens", "1T"),
            "--sequence": ("estimate", DENSE, "--sequence", "2048")}

# What a flag needs beside itself that is another name of one with its value.
BESIDE = {"--precision=nvfp4": (DENSE, "--system", "dgx-b200-180g"), "--precision": (DENSE, *H100),
          "--bf16-modules": ("deepseek-v3", *H100, "--precision", "fp8"), "--moe-dispatcher": (EXPERTS, "-d", "8", "--expert-parallel", "8"),
          "--base-dtype": (DENSE, "--lora-rank", "8"), "--data-sharding": (DENSE, "-d", "8", "--software", "torchtitan-2025")}


def rows(kind):
    """The two texts of each row of a table."""
    for row in re.findall(kind + r'\{\s*("[^}]*")\s*\}', TABLES):
        flag, text = re.fullmatch(r'"([^"]*)"\s*,\s*((?:"[^"]*"\s*)+)', row).groups()
        yield flag, "".join(re.findall(r'"([^"]*)"', text))


def overrides(rule):
    """--set FIELD=VALUE and its like, each value that is named."""
    for flag, field, value, other in re.findall(r"(--set[a-z-]*) ([\w.]+)=(\w+)(?: or (\w+))?", rule):
        for each in filter(None, (value, other)):
            yield flag, field, each


class AdvisedFlags(unittest.TestCase):
    program = ""

    def accepts(self, *words):
        with self.subTest(words=" ".join(words)):
            done = subprocess.run([self.program, *words], capture_output=True, text=True, check=False)
            self.assertIn(done.returncode, (0, 3), done.stderr)  # 3: it does not fit, which is an answer

    def test_fields_of_files(self):
        for flag, rule in rows("Otherwise"):
            for option, field, value in overrides(rule):
                model = EXPERTS if field.startswith("experts.") else "nemotron-h-8b" if field.startswith("layer_kinds.") else DENSE
                with self.subTest(advice=f"{flag} is {rule}"):
                    setting = f"{field}={NUMBERS[field] if value == 'N' else value}"
                for stack in STACKS if option == "--set-software" else [""]:
                    software = ("--software", stack) if stack else ()
                    self.accepts("estimate", EXPERTS if stack else model, *software, option, setting)

    def test_keys_of_models(self):
        for field in sorted({ours for _, ours in KEYS}):
            model = EXPERTS if field.startswith("experts.") else "deepseek-v3" if field.startswith("latent") else DENSE
            self.accepts("estimate", model, "--set", f"{field}={NUMBERS[field]}")
        for theirs, ours in KEYS:
            flag = "--" + theirs.replace("_", "-")
            done = subprocess.run([self.program, "estimate", DENSE, flag], capture_output=True, text=True, check=False)
            if ours != "sequence":  # which is a flag here
                self.assertIn(f"{flag}: is a field of the model: use --set {ours}=N", done.stderr)

    def test_flags(self):
        for flag, rule in rows("Otherwise"):
            advised = [option for option in re.findall(r"--[a-z][a-z0-9-]*", rule) if not option.startswith("--set")]
            for option in advised:
                self.assertIn(option, COMMANDS, f"{flag} is {rule}: add a command that takes it")
                self.accepts(*COMMANDS[option])

    def test_other_names(self):
        for flag, own in rows("OtherName"):
            if own and "=" not in own:
                words = COMMANDS[own]
                at = words.index(own) if own in words else words.index("--system")
                self.accepts(*words[:at], flag, *words[at + 1:])
            else:
                name = own.split("=")[0]
                self.accepts("estimate", *BESIDE.get(own, BESIDE.get(name, (EXPERTS,))), flag)

    def test_advice_is_given(self):
        for flag, rule in rows("Otherwise"):
            with self.subTest(flag=flag):
                done = subprocess.run([self.program, "estimate", DENSE, flag], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"{flag}: {rule}", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=Path, required=True)
    AdvisedFlags.program = str(parser.parse_args().bin / "headroom")
    unittest.main(argv=sys.argv[:1])
