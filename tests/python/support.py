"""What the tests of the Python package share.

The environment names the package of the source tree (PYTHONPATH), its library (HEADROOM_LIBRARY)
and the program that it is compared with (HEADROOM_PROGRAM).
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("HEADROOM_PROGRAM", str(ROOT / "build/release/bin/headroom"))


def printed(*arguments, **options):
    """Return what the program prints."""
    done = subprocess.run(
        [PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    return done.stdout


def needs(*modules):
    """Skip a test, visibly, where a module is not installed."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


def notebook_code(path):
    """Return the code of a notebook's cells."""
    cells = json.loads(path.read_text())["cells"]
    return "\n".join("".join(each["source"]) for each in cells if each["cell_type"] == "code")
