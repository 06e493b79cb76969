#!/usr/bin/env python3
"""Tests of `headroom serve --http`: addresses, refusals, limits, many questions at once, and its end.

usage: http_service.py --bin FOLDER
"""

import argparse
import concurrent.futures
import json
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

from clients import Http, raw_reply

PROGRAM = ""
ESTIMATE = {"model": "llama-3-8b", "system": "dgx-h100-80g", "tensor_parallel": 2, "devices": 8,
            "no_suggestions": True}


class Service(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Http(PROGRAM, "--time-limit", "5s")

    @classmethod
    def tearDownClass(cls):
        code = cls.server.close()
        assert code == 0, code

    def test_answers_as_the_program(self):
        status, text = self.server.post("/v1/estimate", ESTIMATE)
        program = subprocess.run([PROGRAM, "estimate", "llama-3-8b", "--system", "dgx-h100-80g", "-t", "2", "--devices", "8",
                                  "--no-suggestions", "--format", "json"], capture_output=True, text=True, check=False)
        self.assertEqual(status, 200)
        self.assertEqual(raw_reply(text) + "\n", program.stdout)
        self.assertEqual(json.loads(text)["status"], program.returncode)

    def test_takes_files_of_the_question(self):
        script = "torchrun pretrain_gpt.py --num-layers 12 --hidden-size 4096 --num-attention-heads 32 " \
                 "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64\n"
        status, text = self.server.post("/v1/ask", {"command": "check", "arguments": {"files": "run.sh"},
                                                    "files": {"run.sh": script}})
        self.assertEqual((status, json.loads(text)["status"]), (200, 0))

    def test_reads_and_writes_no_file_of_the_machine(self):
        for question in ({"command": "estimate", "arguments": {"model": "/etc/hostname"}},
                         {"command": "check", "arguments": {"files": "/etc/hostname"}, "disk": True},
                         {"command": "estimate", "arguments": {**ESTIMATE, "output": "/tmp/headroom-must-not-be"}},
                         {"command": "estimate", "arguments": {**ESTIMATE, "html": "/tmp/headroom-must-not-be"}},
                         {"command": "estimate", "arguments": {**ESTIMATE, "launch_dir": "/tmp/headroom-must-not-be"}},
                         {"command": "memory", "arguments": {"log": "/proc/self/environ"}},
                         {"command": "report", "arguments": {"reply": "/etc/passwd"}},
                         {"command": "man", "arguments": {"all": "/tmp"}},
                         {"command": "schema", "arguments": {"all": "/tmp"}},
                         {"command": "serve", "arguments": {"stdio": True}}):
            with self.subTest(question=question):
                status, text = self.server.post("/v1/ask", question)
                self.assertEqual((status, json.loads(text)["status"]), (400, 2), text[:200])
        self.assertFalse(subprocess.run(["ls", "/tmp/headroom-must-not-be"], capture_output=True, check=False).returncode == 0)

    def test_reads_the_database_of_the_question_not_the_disk(self):
        with tempfile.NamedTemporaryFile(suffix=".sqlite") as file:
            sqlite3.connect(file.name).execute("create table t (x)").connection.commit()
            status, text = self.server.post("/v1/ask", {"command": "validate", "arguments": {"profile": file.name},
                                                        "files": {file.name: "SQLite format 3\0"}})
            self.assertEqual(status, 400)
            on_disk = self.server.post("/v1/ask", {"command": "validate", "arguments": {"profile": file.name}})
            self.assertEqual(on_disk[0], 400)
            self.assertNotIn("no table", text)  # which the one on disk would be told

    def test_tells_of_no_file(self):
        def told(path):
            answers = [self.server.post("/v1/estimate", {"model": path, "what_if": "https://a/b/"}),
                       self.server.post("/v1/ask", {"command": "schema", "arguments": {"all": path}}),
                       self.server.post("/v1/ask", {"command": "check", "arguments": {"files": "c.yaml"},
                                                    "files": {"c.yaml": f"base_model: {path}\nmicro_batch_size: 1\n"}})]
            return [text.replace(path, "PATH") for _, text in answers]
        self.assertEqual(told("/etc/passwd"), told("/etc/passxx"))
        self.assertEqual(told("/usr/lib"), told("/usr/lix"))

    def test_describes_itself(self):
        status, text = self.server.get("/openapi.json")
        description = json.loads(text)
        self.assertEqual(status, 200)
        self.assertIn("/v1/plan", description["paths"])
        for path in description["paths"]:
            status, text = self.server.post(path, {"no_such_member": 1})
            self.assertEqual(status, 400, (path, text[:100]))
        for path in ("/health", "/docs/memory", "/schemas/plan", "/help/sweep-plan"):
            self.assertEqual(self.server.get(path)[0], 200, path)

    def test_refuses(self):
        for expected, answer in ((404, self.server.get("/nothing")), (404, self.server.post("/v1/nothing", {})),
                                 (404, self.server.get("/docs/..%2fREADME")), (400, self.server.post("/v1/plan", b"{")),
                                 (415, self.server.post("/v1/plan", {}, {"Content-Type": "text/plain"})),
                                 (403, self.server.post("/v1/plan", {}, {"Origin": "https://example.org"})),
                                 (403, self.server.get("/health", {"Host": "example.org"})),
                                 (403, self.server.get("/health", {"Host": "127.example.org"})),
                                 (411, self.server.begin("/v1/plan", {"Transfer-Encoding": "chunked"})),
                                 (400, self.server.post("/v1/ask", b"")),
                                 (400, self.server.post("/v1/estimate", b'{"model":"m"},"files":{"m":"x"}')),
                                 (400, self.server.post("/v1/estimate", {"model": "llama-3-8b\0x"})),
                                 (400, self.server.post("/v1/ask", {"command": "trace", "arguments": {"model": "llama-3-8b"}})),
                                 (413, self.server.post("/v1/plan", b" " * (9 << 20)))):
            self.assertEqual(answer[0], expected, answer[1][:200])
            json.loads(answer[1])

    def test_ends_a_search_at_its_limit(self):
        begin = time.monotonic()
        status, text = self.server.post("/v1/plan", {"model": "deepseek-v3", "system": "dgx-h100-80g", "devices": "1024,2048,4096,8192",
                                                     "global_batch": "15360"})
        self.assertIn(status, (200, 503), text[:200])
        self.assertLess(time.monotonic() - begin, 30)

    def test_loses_none_of_a_thousand(self):
        expected = self.server.post("/v1/estimate", ESTIMATE)
        with concurrent.futures.ThreadPoolExecutor(1000) as pool:
            answers = set(pool.map(lambda _: self.server.post("/v1/estimate", ESTIMATE), range(1000)))
        self.assertEqual(answers, {expected})

    def test_goes_on_after_clients_that_stay_silent(self):
        host, port = self.server.address.removeprefix("http://").split(":")
        silent = [socket.create_connection((host, int(port))) for _ in range(20)]
        silent[0].sendall(b"POST /v1/plan HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        self.assertEqual(self.server.get("/health")[0], 200)
        for each in silent:
            each.close()


class Start(unittest.TestCase):
    def refused(self, *flags):
        done = subprocess.run([PROGRAM, "serve", *flags], capture_output=True, text=True, timeout=60, check=False,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_needs_one_way(self):
        self.assertIn("--stdio", self.refused())
        self.assertIn("--stdio", self.refused("--stdio", "--http", "0"))

    def test_names_what_is_wrong(self):
        self.assertIn("--http", self.refused("--http", "127.0.0.1:x"))
        self.assertIn("--http", self.refused("--http", "70000"))
        self.assertIn("--http", self.refused("--http", "192.0.2.1:0"))
        self.assertIn("--what-if", self.refused("--http", "0", "--what-if", "/nonexistent"))
        self.assertIn("--at-once", self.refused("--http", "0", "--at-once", "0"))
        self.assertIn("--time-limit", self.refused("--http", "0", "--time-limit", "fast"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    given, rest = parser.parse_known_args()
    PROGRAM = given.bin + "/headroom"
    unittest.main(argv=[sys.argv[0], *rest])
