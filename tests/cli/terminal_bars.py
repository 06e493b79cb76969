#!/usr/bin/env python3
"""Bars on a terminal are Unicode's blocks where its locale has them, and of ASCII elsewhere."""
import argparse
import os
import pty
import subprocess
import sys
import unittest

ESTIMATE = ["estimate", "gpt3-175b", "-t", "8", "-p", "8", "--sp", "--global-batch", "64", "--no-suggestions"]
program = None


def printed(*flags, columns=120, **environment):
    """What the program prints on a terminal, without colours."""
    ours, theirs = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LC_") and name not in ("LANG", "TERM")}
    process = subprocess.Popen([program, *ESTIMATE, *flags, "--columns", str(columns), "--color", "never"], stdout=theirs, stderr=subprocess.DEVNULL,
                               env={**kept, "TERM": "xterm", **environment})
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    process.wait()
    return text.decode()


class Bars(unittest.TestCase):
    def test_blocks_where_the_locale_has_them(self):
        text = printed(LANG="en_US.UTF-8")
        self.assertIn("█", text)
        self.assertNotIn("##", text)
        self.assertIn("of capacity", text.split("PP rank 0 has")[0])

    def test_ascii_elsewhere(self):
        for environment in ({"LANG": "C"}, {"LC_ALL": "C", "LANG": "en_US.UTF-8"}, {},
                            {"LANG": "en_US.UTF-8", "TERM": "dumb"}):
            text = printed(**environment)
            self.assertTrue(text.isascii(), environment)
            self.assertIn("##", text)

    def test_ascii_in_a_pipe(self):
        done = subprocess.run([program, *ESTIMATE], capture_output=True, env={**os.environ, "LC_ALL": "en_US.UTF-8"}, check=False)
        self.assertTrue(done.stdout.isascii())

    def test_no_row_is_wider_than_the_screen(self):
        for columns in (60, 80, 100, 120):
            for line in printed("--timeline", columns=columns, LANG="C.UTF-8").splitlines():
                self.assertLessEqual(len(line), columns, line)

    def test_a_bar_is_as_long_as_its_share(self):
        for line in printed(LANG="C.UTF-8").splitlines():
            if line.startswith(("weights ", "GEMMs ")):
                share = float(next(word for word in line.split() if word.endswith("%"))[:-1])
                bar = line.split()[-1]
                eighths = 8 * bar.count("█") + sum("▏▎▍▌▋▊▉".index(mark) + 1 for mark in bar if mark != "█")
                self.assertAlmostEqual(eighths / 8 / 40, share / 100, delta=0.003, msg=line)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    arguments, rest = parser.parse_known_args()
    program = os.path.join(arguments.bin, "headroom")
    unittest.main(argv=[sys.argv[0], *rest])
