#!/usr/bin/env python3
"""--plot FILE.png goes through rsvg-convert: what it makes is written, and without it nothing is.

A script stands for rsvg-convert; where the real one is installed, it draws one picture."""
import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ESTIMATE = ["estimate", "gpt3-175b", "-t", "8", "-p", "8", "--sp", "--global-batch", "64", "--recompute", "selective", "--no-suggestions"]
SIGNATURE = b"\x89PNG\r\n\x1a\n"
program = None


class Pictures(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="it's $HOME ")))
        self.picture = self.folder / "plan.png"

    def enterContext(self, context):  # of Python 3.11
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def converter(self, script):
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "rsvg-convert").write_text(script)
        (tools / "rsvg-convert").chmod(0o755)
        return f"{tools}:{os.environ['PATH']}"

    def draw(self, path, arguments=ESTIMATE, flag="--plot"):
        environment = {**os.environ, "PATH": path, "TMPDIR": str(self.folder)}
        return subprocess.run([program, *arguments, flag, self.picture], capture_output=True, text=True, env=environment, check=False)

    def test_what_the_converter_makes_is_written(self):
        path = self.converter("#!/bin/sh\nprintf '\\211PNG\\r\\n\\032\\n'; for last; do :; done; cat \"$last\"\n")
        done = self.draw(path)
        self.assertEqual(done.returncode, 0, done.stderr)
        written = self.picture.read_bytes()
        self.assertTrue(written.startswith(SIGNATURE + b"<svg"))
        self.assertTrue(written.endswith(b"</svg>\n"))
        self.assertEqual(list(self.folder.glob("headroom-*")), [])

    def test_a_report_too(self):
        path = self.converter("#!/bin/sh\nprintf '\\211PNG\\r\\n\\032\\n'\n")
        reply = self.folder / "reply.json"
        subprocess.run([program, *ESTIMATE, "--format", "json", "-o", reply], check=True, stderr=subprocess.DEVNULL)
        done = self.draw(path, ["report", reply], "-o")
        self.assertEqual((done.returncode, self.picture.read_bytes()), (0, SIGNATURE), done.stderr)

    def test_a_converter_that_fails_leaves_the_old_picture(self):
        self.picture.write_text("old")
        done = self.draw(self.converter("#!/bin/sh\nprintf '\\211PNG\\r\\n\\032\\n'; exit 1\n"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("plan.png: cannot be drawn: rsvg-convert failed", done.stderr)
        self.assertEqual(self.picture.read_text(), "old")
        self.assertEqual(list(self.folder.glob("headroom-*")), [])

    def test_without_a_folder_for_the_drawing(self):
        done = subprocess.run([program, *ESTIMATE, "--plot", self.picture], capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": self.converter("#!/bin/sh\nexit 0\n"), "TMPDIR": str(self.folder / "none")})
        self.assertEqual(done.returncode, 2)
        self.assertIn("TMPDIR: must be a folder", done.stderr)

    def test_without_a_converter_nothing_is_asked(self):
        for arguments, flag in [(ESTIMATE, "--plot"), (["report", "reply.json"], "-o")]:
            done = self.draw(str(self.folder), arguments, flag)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("needs rsvg-convert (package librsvg2-bin)", done.stderr)
            self.assertFalse(self.picture.exists())

    @unittest.skipUnless(shutil.which("rsvg-convert"), "rsvg-convert is not installed")
    def test_the_real_converter(self):
        done = self.draw(os.environ["PATH"])
        self.assertEqual(done.returncode, 0, done.stderr)
        written = self.picture.read_bytes()
        width, height = struct.unpack(">II", written[16:24])
        self.assertTrue(written.startswith(SIGNATURE) and width >= 1000 and height >= 500, (width, height))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    program = os.path.join(parser.parse_args().bin, "headroom")
    sys.argv[1:] = []
    unittest.main()
