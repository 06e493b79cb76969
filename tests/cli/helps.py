"""Help that one can take in: --help fits a screen, --help-all has every flag, and their examples run.

Each example of --help-all is run as it stands, in a folder that holds the files that examples name.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 46
WIDTH = 80

# Files that examples name, and what they are copies of.
FILES = {
    "my-model.json": "models/gpt3-175b.json",
    "my-cluster.json": "presets/systems/dgx-a100-80g.json",
    "my-runs.json": "examples/my-runs.json",
    "train.sh": "examples/train_dense.sh",
    "snapshot.pickle": "tests/fuzz/corpus/snapshot/protocol4.pickle",
    "trace.json.gz": "tests/fuzz/corpus/profile/step.json.gz",
    "all_reduce.txt": "tests/fuzz/corpus/samples/nccl_tests.txt",
    "Qwen3-8B/config.json": "tests/fuzz/corpus/hub/qwen-7b.json",
}
LOGS = ("slurm-1234.out", "rank3.log")
OUT_OF_MEMORY = """\
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.10 GiB of \
which 512.00 MiB is free. Including non-PyTorch memory, this process has 78.50 GiB memory in use. Of the allocated \
memory 70.25 GiB is allocated by PyTorch, and 5.00 GiB is reserved by PyTorch but unallocated.
"""


def run(program, *words, columns=None):
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    if columns:
        environment["COLUMNS"] = str(columns)
    return subprocess.run([program, *words], capture_output=True, text=True, check=True, env=environment).stdout


def commands(program, words=()):
    """Every command, as the words behind the program's name."""
    yield words
    below = re.search(r"^Commands:\n(.*?)(\n\n|\Z)", run(program, *words, "--help"), re.S | re.M)
    for name in re.findall(r"^  (\S+)", below[1] if below else "", re.M):
        yield from commands(program, (*words, name))


def flags_of(text):
    """The long flags that rows of a help begin with."""
    return set(re.findall(r"--[a-z][a-z0-9-]*", " ".join(re.findall(r"^  (-\S+)", text, re.M))))


def flags_of_page(program, words):
    """Those of the manual page."""
    page = run(program, "man", *words).replace("\\-", "-")
    return set(re.findall(r"--[a-z][a-z0-9-]*", "\n".join(re.findall(r"^\.TP\n(.*)$", page, re.M))))


def daily_flags():
    """The table of daily flags, by command."""
    source = (ROOT / "src/cli/daily_flags.hpp").read_text()
    return {tuple(command.split()[1:]): re.findall(r"--[a-z-]+", flags)
            for command, flags in re.findall(r'DailyFlags\{"([^"]+)",(.*?)\}', source, re.S)}


def products():
    """Times of matrix products, invented, as a table that rates are fitted to."""
    sizes = (256, 1024, 4096)
    rows = [(m, n, k, 0.004 + m * n * k * 8e-12) for m in sizes for n in sizes for k in sizes]
    return "m,n,k,milliseconds\n" + "".join(f"{m},{n},{k},{time:.6f}\n" for m, n, k, time in rows)


def examples(text):
    """The commands under 'Examples:', each on one line."""
    found = re.search(r"^Examples:\n(.*?)(\n\n|\Z)", text, re.S | re.M)
    joined = re.sub(r" \\\n +", " ", found[1]) if found else ""
    return [line.strip() for line in joined.splitlines()]


class Helps(unittest.TestCase):
    program = ""

    @classmethod
    def setUpClass(cls):
        cls.all = list(commands(cls.program))

    def test_help_fits_a_screen(self):
        self.assertGreater(len(self.all), 25)
        for words in self.all:
            with self.subTest(words=words):
                lines = run(self.program, *words, "--help").splitlines()
                self.assertLessEqual(len(lines), MOST_LINES)
                self.assertEqual([line for line in lines if len(line) > WIDTH], [])

    def test_no_line_is_wider_than_the_screen(self):
        for columns in (60, 80, 100):
            for words in self.all:
                for help_flag in ("--help", "--help-all"):
                    with self.subTest(words=words, help_flag=help_flag, columns=columns):
                        lines = run(self.program, *words, help_flag, columns=columns).splitlines()
                        self.assertEqual([line for line in lines if len(line) > columns], [])

    def test_daily_flags_are_flags_of_their_command(self):
        table = daily_flags()
        self.assertGreater(len(table), 5)
        for words, flags in table.items():
            with self.subTest(words=words):
                self.assertEqual(len(flags), len(set(flags)))
                whole = flags_of(run(self.program, *words, "--help-all"))
                self.assertLessEqual(set(flags), whole)
                text = run(self.program, *words, "--help")
                self.assertLessEqual(set(flags), flags_of(text))
                rest = int(re.search(r"--help-all lists the other (\d+) flags by topic", text)[1])
                rows = re.findall(r"^  -\S", run(self.program, *words, "--help-all"), re.M)
                self.assertEqual(rest, len(rows) - len(flags))

    def test_help_all_has_every_flag(self):
        for words in self.all:
            with self.subTest(words=words):
                self.assertEqual(flags_of(run(self.program, *words, "--help-all")), flags_of_page(self.program, words))

    def test_examples_run(self):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            for name, source in FILES.items():
                (place / name).parent.mkdir(exist_ok=True)
                shutil.copy(ROOT / source, place / name)
            for name in LOGS:
                (place / name).write_text(OUT_OF_MEMORY)
            (place / "products.csv").write_text(products())
            for name in (".zfunc", ".config/fish/completions", ".local/share/man/man1"):
                (place / name).mkdir(parents=True)
            environment = {**os.environ, "HOME": folder,
                           "PATH": f"{Path(self.program).parent}{os.pathsep}{os.environ['PATH']}"}
            ran = 0
            for words in self.all:
                for example in examples(run(self.program, *words, "--help-all")):
                    if "| man " in example and not shutil.which("man"):
                        continue
                    ran += 1
                    if "serve --http" in example:  # it serves until it is told to end
                        example = "timeout --preserve-status 2 " + example.replace(":8080", ":0")
                    with self.subTest(example=example):
                        done = subprocess.run(["bash", "-ec", example], cwd=folder, env=environment,
                                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
                        self.assertEqual((done.returncode, done.stderr if done.returncode else ""), (0, ""))
            self.assertGreater(ran, 30)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    arguments = parser.parse_args()
    Helps.program = str(Path(arguments.bin).resolve() / "headroom")
    unittest.main(argv=sys.argv[:1])
