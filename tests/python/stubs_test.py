"""Type checkers know the replies, and the stubs know what the package has."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import headroom as hr
from support import ROOT, needs, notebook_code

TYPED = """
import concurrent.futures
from pathlib import Path
import headroom as hr

def show(progress: dict[str, object]) -> None: ...

found = hr.plan("llama-3-70b", system="dgx-h100-80g", gpus=64, progress=show)
seconds: float = found.best.time.iteration_seconds
peak: float = found.plans[0].memory.peak_bytes
files: list[Path] = found.best.launch("torchtitan").write("launch")
fits: bool = hr.estimate({"layers": 4}, tensor_parallel=8).fits
with concurrent.futures.ProcessPoolExecutor(2) as pool:
    for row in hr.sweep("llama-3-8b", vary={"sequence": [1, 2]}, executor=pool, stream=True):
        verdict = row.verdict
    names: list[str] = hr.models().names
try:
    hr.check(Path("run.sh"))
except hr.InputError as error:
    field: str = error.problems[0].field
"""

WRONG = """
import headroom as hr
found = hr.plan("llama-3-70b")
a: str = found.best.time.iteration_seconds
b = hr.plan(7.5)
c: int = hr.models().names
d = hr.estimate("x", tensor_parallel="8")
"""


@needs("mypy")
class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        shutil.copytree(ROOT / "bindings/python/headroom", cls.folder / "path/headroom")
        cls.stubs = subprocess.run(
            [sys.executable, str(ROOT / "bindings/python/stubs.py")],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout
        (cls.folder / "path/headroom/__init__.pyi").write_text(cls.stubs)

    def mypy(self, code, *flags):
        path = self.folder / "code.py"
        path.write_text(code)
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--ignore-missing-imports", *flags, str(path)],
            stdout=subprocess.PIPE, text=True, cwd=self.folder,
            env={"MYPYPATH": str(self.folder / "path")},
        )
        return done.returncode, done.stdout

    def test_the_stubs_name_what_the_package_has(self):
        named = set(re.findall(r"^(?:class|def) ([A-Za-z]\w*)", self.stubs, re.MULTILINE))
        self.assertEqual(named - {"Progress"}, set(hr.__all__))

    def test_typed_code_is_accepted(self):
        self.assertEqual(self.mypy(TYPED, "--strict")[0], 0, self.mypy(TYPED, "--strict")[1])

    def test_wrong_code_is_refused(self):
        code, said = self.mypy(WRONG)
        self.assertEqual(code, 1)
        self.assertEqual(sorted(map(int, re.findall(r":(\d+): error", said))), [4, 5, 6, 7], said)

    def test_the_notebook_is_accepted(self):
        code, said = self.mypy(notebook_code(ROOT / "examples/python/first_plans.ipynb"))
        self.assertEqual(code, 0, said)


if __name__ == "__main__":
    unittest.main()
