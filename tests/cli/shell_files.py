"""Completions and manual pages name every flag that the help does, and the shells and roff accept them.

Shells and groff that this machine lacks are left out.
"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BASH_DRIVER = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_headroom
printf '%s\\n' "${COMPREPLY[@]}"
"""


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def commands(program, words=()):
    """Every command, as the words behind the program's name."""
    yield words
    below = re.search(r"^Commands:\n(.*?)(\n\n|\Z)", run(program, *words, "--help"), re.S | re.M)
    for name in re.findall(r"^  (\S+)", below[1] if below else "", re.M):
        yield from commands(program, (*words, name))


def flags(program, words):
    text = run(program, *words, "--help-all")
    return set(re.findall(r"(--[a-z][a-z0-9-]*)", "\n".join(re.findall(r"^  (-\S+)", text, re.M))))


class ShellFiles(unittest.TestCase):
    program = ""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.files = {}
        for shell in ("bash", "zsh", "fish"):
            cls.files[shell] = Path(cls.folder.name) / shell
            run(cls.program, "completions", shell, "-o", cls.files[shell])
        cls.pages = Path(cls.folder.name) / "man1"
        cls.pages.mkdir()
        run(cls.program, "man", "--all", cls.pages)
        cls.all = list(commands(cls.program))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def complete(self, *words):
        return set(run("bash", "-c", BASH_DRIVER, "bash", self.files["bash"], "headroom", *words,
                       cwd=self.folder.name).split())

    def test_every_flag_is_in_all_of_them(self):
        self.assertGreater(len(self.all), 15)
        bash, zsh, fish = (self.files[shell].read_text() for shell in ("bash", "zsh", "fish"))
        for words in self.all:
            page = (self.pages / ("-".join(("headroom", *words)) + ".1")).read_text().replace("\\-", "-")
            for flag in flags(self.program, words):
                with self.subTest(words=words, flag=flag):
                    self.assertIn(flag, bash)
                    self.assertIn(flag, zsh)
                    self.assertIn(f" -l {flag[2:]}", fish)
                    self.assertIn(flag, page)

    def test_bash_completes_commands_flags_and_values(self):
        self.assertIn("plan", self.complete(""))
        self.assertEqual(self.complete("pl"), {"plan"})
        self.assertEqual(self.complete("list", "mo"), {"models"})
        self.assertIn("--tensor-parallel", self.complete("estimate", "gpt3-175b", "--te"))
        self.assertEqual(self.complete("estimate", "gpt3-175"), {"gpt3-175b"})
        self.assertEqual(self.complete("plan", "--system", "dgx-b"), {"dgx-b200-180g", "dgx-b300"})
        self.assertEqual(self.complete("plan", "--system", "=", "dgx-b"), {"dgx-b200-180g", "dgx-b300"})
        self.assertEqual(self.complete("estimate", "--recompute", ""), {"none", "selective", "full", "ops", "selective_op"})
        self.assertEqual(self.complete("list", "models", "--format", "c"), {"csv"})
        self.assertEqual(self.complete("completions", ""), {"bash", "zsh", "fish"})
        self.assertIn("--vary", self.complete("sweep", "plan", "--va"))
        (Path(self.folder.name) / "mine.json").write_text("{}")
        self.assertEqual(self.complete("check", "mi"), {"mine.json"})

    def test_shells_accept_them(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell):
                with self.subTest(shell=shell):
                    run(shell, "-n", self.files[shell])

    def test_fish_completes_values(self):
        if not shutil.which("fish"):
            self.skipTest("no fish")
        ask = f"source {self.files['fish']}; complete -C 'headroom plan --system dgx-b'"
        self.assertIn("dgx-b200-180g", run("fish", "-N", "-c", ask))

    def test_groff_accepts_the_pages(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        for page in sorted(self.pages.iterdir()):
            with self.subTest(page=page.name):
                done = subprocess.run(["groff", "-man", "-ww", "-z", page], capture_output=True, text=True, check=True)
                self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    arguments = parser.parse_args()
    ShellFiles.program = str(Path(arguments.bin) / "headroom")
    unittest.main(argv=sys.argv[:1])
