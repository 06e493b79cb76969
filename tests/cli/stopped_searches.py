#!/usr/bin/env python3
"""Long searches on a terminal, interrupted, and with a time limit: what they print is a true plan.

usage: stopped_searches.py --bin DIR
"""
import argparse
import json
import os
import pty
import shlex
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

LONG = ["plan", "deepseek-v3", "--system", "dgx-h100-80g", "--devices", "2048", "--global-batch", "16384"]
SHORT = ["plan", "llama-3-8b", "--system", "dgx-h100-80g", "--devices", "64"]
PATIENCE = 300  # seconds, of a machine that has other things to do


class Terminal:
    """A program whose stderr is a terminal, and what it writes there."""

    def __init__(self, program, arguments):
        ours, theirs = pty.openpty()
        self.out = tempfile.TemporaryFile()
        self.process = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=self.out, stderr=theirs)
        os.close(theirs)
        self.fd = ours
        self.text = ""

    def read(self):
        try:
            piece = os.read(self.fd, 4096).decode(errors="replace")
        except OSError:  # the other end is closed
            piece = ""
        self.text += piece
        return piece

    def wait_for(self, words):
        while words not in self.text and self.read():
            pass
        return words in self.text

    def finish(self):
        while self.read():
            pass
        os.close(self.fd)
        code = self.process.wait(PATIENCE)
        self.out.seek(0)
        out = self.out.read().decode()
        self.out.close()
        return code, out


class StoppedSearches(unittest.TestCase):
    program = ""

    def run_program(self, *arguments):
        return subprocess.run([self.program, *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE)

    def check_plan(self, text, stopped):
        """What was stopped has a plan that an estimate by its own command confirms."""
        reply = json.loads(text)
        self.assertEqual(reply["stopped"], stopped)
        self.assertIn("gap", reply)
        self.assertGreaterEqual(reply["decided"], 0)
        self.assertNotIn("blocked_by_memory", reply)
        self.assertNotIn("left_out", reply)
        best = reply["plans"][0]
        command = shlex.split(best["command"])
        estimate = self.run_program(*command[1:], "--format", "json", "--no-suggestions")
        self.assertEqual(estimate.returncode, 0, estimate.stderr)
        alone = json.loads(estimate.stdout)
        self.assertIn(alone["memory"]["verdict"], ("fits", "marginal"))
        self.assertEqual(alone["memory"]["verdict"], best["memory"]["verdict"])
        self.assertEqual(alone["time"]["iteration_seconds"], best["time"]["iteration_seconds"])
        return reply

    def test_a_terminal_changes_no_answer(self):
        alone = self.run_program(*SHORT)
        terminal = Terminal(self.program, SHORT)
        code, out = terminal.finish()
        self.assertEqual((code, out), (alone.returncode, alone.stdout))
        self.assertEqual(alone.stderr, "")
        if terminal.text:  # whatever was shown is gone
            self.assertTrue(terminal.text.endswith("\r\x1b[K"), terminal.text)

    def test_best_so_far_and_one_interrupt(self):
        terminal = Terminal(self.program, [*LONG, "--format", "json"])
        self.assertTrue(terminal.wait_for("best so far"), terminal.text)
        terminal.process.send_signal(signal.SIGINT)
        code, out = terminal.finish()
        self.assertEqual(code, 0, terminal.text)
        self.assertRegex(terminal.text, r"best so far [0-9.]+ m?s \(TP \d+ x (CP \d+ x )?PP \d+ x DP \d+\)")
        self.assertTrue(terminal.text.endswith("\r\x1b[K"), terminal.text)
        self.check_plan(out, "interrupted")

    def test_two_interrupts(self):
        terminal = Terminal(self.program, LONG)
        self.assertTrue(terminal.wait_for("best so far"), terminal.text)
        terminal.process.send_signal(signal.SIGINT)
        caught = 1 << (signal.SIGINT - 1)
        while terminal.process.poll() is None:  # until the first one was noted
            status = Path(f"/proc/{terminal.process.pid}/status").read_text()
            masks = [line for line in status.splitlines() if line.startswith("SigCgt:")]
            if not masks or not int(masks[0].split()[1], 16) & caught:
                break
            time.sleep(0.001)
        terminal.process.send_signal(signal.SIGINT)
        code, out = terminal.finish()
        if code == 0:
            return  # it was that quick
        self.assertEqual((code, out), (-signal.SIGINT, ""))

    def test_an_interrupt_without_a_terminal(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "plan.json"
            process = subprocess.Popen([self.program, *LONG, "--format", "json", "-o", str(file)], stderr=subprocess.PIPE)
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            self.assertIn(process.wait(PATIENCE), (0, 3))
            process.stderr.close()
            reply = json.loads(file.read_text())
            self.assertEqual(reply["stopped"], "interrupted")
            self.assertEqual([path.name for path in Path(folder).iterdir()], ["plan.json"])

    def test_time_limit(self):
        done = self.run_program(*LONG, "--time-limit", "1500ms", "--format", "json")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        self.assertEqual(done.stderr, "")
        if done.returncode == 0:
            reply = self.check_plan(done.stdout, "time_limit")
            if reply["gap"] is not None:
                self.assertGreaterEqual(reply["gap"], 0)

    def test_a_time_limit_that_leaves_no_time(self):
        done = self.run_program(*LONG, "--time-limit", "1ms")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("stopped after 1 ms: 0% of the usual strategies decided", done.stdout)
        self.assertIn("Nothing that fits was found before the search ran out of time.", done.stdout)
        found = self.run_program(*LONG[:-2], "--find", "max-sequence", "--time-limit", "1ms")
        self.assertEqual(found.returncode, 3, found.stderr)
        self.assertIn("Nothing was found to fit so far.", found.stdout)

    def test_a_time_limit_that_is_not_reached(self):
        self.assertEqual(self.run_program(*SHORT, "--time-limit", "1d").stdout, self.run_program(*SHORT).stdout)

    def test_sweep(self):
        grid = ["sweep", "plan", "deepseek-v3", "--system", "dgx-h100-80g", "--global-batch", "16384", "--vary",
                "devices=8,2048", "--threads", "1"]
        done = self.run_program(*grid, "--format", "json", "--time-limit", "1500ms")
        reply = json.loads(done.stdout)
        self.assertEqual(reply["stopped"], "time_limit")
        self.assertLess(len(reply["rows"]), reply["points"])
        table = self.run_program(*grid, "--time-limit", "1ms")
        self.assertIn("stopped after 1 ms: 0 of 2 points", table.stdout)

    def test_frontier(self):
        asked = ["frontier", "deepseek-v3", "--system", "dgx-h100-80g", "-p", "8", "--expert-parallel", "64", "-d", "128",
                 "--global-batch", "2048"]
        done = self.run_program(*asked, "--time-limit", "1ms", "--format", "json")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        reply = json.loads(done.stdout)
        self.assertEqual(reply["stopped"], "time_limit")
        self.assertGreater(len(reply["points"]), 0)

    def test_limits_that_are_none(self):
        for limit in ("10", "0s", "-1s", "soon", ""):
            done = self.run_program(*SHORT, "--time-limit", limit)
            self.assertEqual((done.returncode, done.stdout), (2, ""), limit)
            self.assertIn("--time-limit", done.stderr)
        done = self.run_program(*SHORT, "--time-limit", "10s", "--shard", "1/2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--time-limit: does not go with --shard", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    StoppedSearches.program = str(arguments.bin / "headroom")
    unittest.main(argv=["stopped_searches.py", *rest])
