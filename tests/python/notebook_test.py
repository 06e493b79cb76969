"""The notebook runs from its first cell to its last, and its answers are the program's."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from support import ROOT, needs, printed

NOTEBOOK = ROOT / "examples/python/first_plans.ipynb"


@needs("nbconvert", "ipykernel", "matplotlib", "pandas")
class Notebook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute",
                 "--output-dir", folder, "--output", "executed", str(NOTEBOOK)],
                check=True, cwd=ROOT, stderr=subprocess.PIPE,
                env={**os.environ, "IPYTHONDIR": folder, "MPLCONFIGDIR": folder},
            )
            cls.cells = json.loads((pathlib.Path(folder) / "executed.ipynb").read_text())["cells"]
        cls.outputs = [output for cell in cls.cells for output in cell.get("outputs", [])]

    def text(self):
        return "".join("".join(each.get("text", "")) for each in self.outputs)

    def test_every_errand_is_drawn(self):
        pictures = [each for each in self.outputs if "image/png" in each.get("data", {})]
        self.assertEqual(len(pictures), 3)
        frames = ["".join(each["data"]["text/html"]) for each in self.outputs
                  if "text/html" in each.get("data", {})]
        self.assertEqual(len([each for each in frames if "<iframe sandbox" in each]), 1)

    def test_answers_are_the_programs(self):
        checked = json.loads(printed("check", "examples/train_dense.sh", "--format", "json",
                                     cwd=ROOT))
        seconds = checked["estimate"]["time"]["iteration_seconds"]
        self.assertIn(f"{seconds:.3f} s", self.text())
        self.assertRegex(self.text(), re.compile("^fits$", re.MULTILINE))
        self.assertIn("--tensor-model-parallel-size 8", self.text())

    def test_no_outputs_are_kept_in_the_source(self):
        cells = json.loads(NOTEBOOK.read_text())["cells"]
        self.assertEqual([each.get("outputs") for each in cells if each.get("outputs")], [])


if __name__ == "__main__":
    unittest.main()
