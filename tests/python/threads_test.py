"""Long questions: Ctrl-C, progress, time limits, threads, and the GIL."""

import concurrent.futures
import os
import pathlib
import pty
import signal
import subprocess
import sys
import threading
import time
import unittest

import headroom as hr
from support import PROGRAM

# A search of minutes, which tests end.
LONG = dict(devices=[4096, 8192, 16384], global_batch=16384, try_offload=True,
            precision=["bf16", "fp8"])
SOON = 30  # seconds, on a machine that is busy with other tests

INTERRUPTED = """
import headroom as hr
from threads_test import LONG
print("started", flush=True)
try:
    hr.plan("deepseek-v3", system="dgx-h100-80g", **LONG)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    print(hr.estimate("llama-3-8b", t=8).fits)
"""


class Threads(unittest.TestCase):
    def test_ctrl_c_raises_keyboard_interrupt_and_leaves_a_library_that_works(self):
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True,
            cwd=pathlib.Path(__file__).parent,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)  # a search that nothing stops must not outlive its test
        self.assertEqual(process.stdout.readline(), "started\n")
        time.sleep(1.5)
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=60)[0], "interrupted\nTrue\n")
        self.assertLess(time.monotonic() - asked, SOON)
        self.assertEqual(process.returncode, 0)

    def test_progress_is_a_dict(self):
        seen = []
        hr.plan("deepseek-v3", system="dgx-h100-80g", time_limit="2s", progress=seen.append, **LONG)
        self.assertGreater(len(seen), 3)
        self.assertTrue(all(isinstance(each, dict) and "step" in each for each in seen), seen[:3])

    def test_what_a_progress_function_raises_ends_the_search(self):
        def fails(progress):
            raise LookupError("enough")

        asked = time.monotonic()
        with self.assertRaisesRegex(LookupError, "enough"):
            hr.plan("deepseek-v3", system="dgx-h100-80g", progress=fails, **LONG)
        self.assertLess(time.monotonic() - asked, SOON)

    def test_progress_shows_on_a_terminal_after_a_second(self):
        code = (
            "import headroom as hr\n"
            "hr.plan('deepseek-v3', system='dgx-h100-80g', devices=2048, time_limit={!r})\n"
        )
        for limit, shows in (("3s", True), ("0.2s", False)):
            outer, inner = pty.openpty()
            process = subprocess.Popen([sys.executable, "-c", code.format(limit)], stderr=inner)
            os.close(inner)
            drawn = b""
            while True:
                try:
                    read = os.read(outer, 1000)
                except OSError:  # the terminal's other end is closed
                    break
                drawn += read
            os.close(outer)
            self.assertEqual(process.wait(), 0)
            if shows:
                self.assertTrue(drawn.endswith(b"\r\x1b[K"), drawn[-200:])
            else:
                self.assertEqual(drawn, b"")

    def test_a_time_limit_gives_the_best_so_far(self):
        found = hr.plan("deepseek-v3", system="dgx-h100-80g", time_limit="2s", **LONG)
        self.assertEqual(found.stopped, "time_limit")

    def test_eight_threads_get_what_one_gets(self):
        models = ["llama-3-8b", "gpt3-175b", "llama-3-70b", "mixtral-8x7b"]
        models = [name for name in models if name in hr.models()]

        def asked(i):
            return hr.estimate(models[i % len(models)], t=1 + i % 2, sp=True, p=1 + i // 4 % 2).json

        alone = [asked(i) for i in range(32)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(asked, range(32))), alone)

    def test_other_threads_run_during_a_search(self):
        counted = 0
        ended = threading.Event()

        def count():
            nonlocal counted
            while not ended.is_set():
                counted += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        start = time.monotonic()
        hr.plan("deepseek-v3", system="dgx-h100-80g", time_limit="2s", progress=False, **LONG)
        seconds = time.monotonic() - start
        ended.set()
        thread.join()
        self.assertGreater(counted, 100 * seconds)

    def test_the_module_runs_the_program(self):
        environment = {**os.environ, "HEADROOM_PROGRAM": PROGRAM}
        for arguments in (["estimate", "llama-3-8b", "-t", "8"], ["estimate", "nothing"],
                          ["estimate", "gpt3-175b"], ["--version"]):
            module = subprocess.run([sys.executable, "-m", "headroom", *arguments],
                                    capture_output=True, env=environment)
            program = subprocess.run([PROGRAM, *arguments], capture_output=True)
            self.assertEqual((module.returncode, module.stdout, module.stderr),
                             (program.returncode, program.stdout, program.stderr))
        environment["HEADROOM_PROGRAM"] = str(pathlib.Path("/nowhere/headroom"))
        lost = subprocess.run([sys.executable, "-m", "headroom"], capture_output=True,
                              env=environment, text=True)
        self.assertEqual(lost.returncode, 1)
        self.assertIn("HEADROOM_PROGRAM", lost.stderr)


if __name__ == "__main__":
    unittest.main()
