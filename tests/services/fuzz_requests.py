#!/usr/bin/env python3
"""Sends mutated requests over HTTP and through MCP: each must be answered, within its limits, by a server that lives on.

usage: fuzz_requests.py --bin FOLDER [--requests 100000] [--seed 1]

Half of the requests go each way, several at once. Limits: 10 s for an answer (the servers end searches after 1 s), 2 GiB of
memory, and the number of open files that a server had at first. The same seed sends the same requests.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import random
import sys
import threading
import time

from clients import Http, Mcp

LONGEST_SECONDS = 10
MOST_MEMORY_KIB = 2 << 20
AT_ONCE = 8

SEEDS = [
    {"command": "estimate", "arguments": {"model": "llama-3-8b", "t": 2, "devices": 8, "no_suggestions": True}},
    {"command": "estimate", "arguments": {"model": {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
                                                    "intermediate_size": 2048, "vocab_size": 32000, "model_type": "llama",
                                                    "max_position_embeddings": 2048}, "devices": 4}},
    {"command": "explain", "arguments": {"model": "gpt-22b", "tensor_parallel": 8, "sequence_parallel": True}},
    {"command": "plan", "arguments": {"model": "llama-2-7b", "devices": 8, "global_batch": 64, "fast": True}},
    {"command": "check", "arguments": {"files": "run.sh", "system": "dgx-h100-80g"},
     "files": {"run.sh": "N=4\ntorchrun pretrain_gpt.py --num-layers $N --hidden-size 512 --num-attention-heads 8 "
                         "--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8\n"}},
    {"command": "check", "arguments": {"files": "c.toml"}, "files": {"c.toml": "[training]\nlocal_batch_size = 1\n"}},
    {"command": "memory", "arguments": {"log": "l"}, "files": {"l": "CUDA out of memory. Tried to allocate 2.00 GiB"}},
    {"command": "list systems", "arguments": {"format": "csv"}},
    {"command": "sweep", "arguments": {"model": "llama-3-8b", "vary": {"sequence": [1024, 2048]}, "devices": 8}},
    {"command": "compare", "arguments": {"model": "llama-3-8b", "devices": 8, "to": "--sp"}},
]
ODD = ["0", "-1", "1e308", "9223372036854775807", "1e-9", "null", "true", '""', "[]", "{}", '"\\u0000"', '"\\ud800"', '"--help"',
       '"/etc/passwd"', "[[[[1]]]]", '{"a": {"a": 1}}', '"' + "x" * 5000 + '"', "1.5", '"1,2,4"', '"8;16"']


def mutated(rng):
    text = json.dumps(rng.choice(SEEDS))
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        kind = rng.randrange(7)
        at = rng.randrange(len(text) + 1)
        if kind == 0:
            text = text[:at]
        elif kind == 1:
            text = text[:at] + chr(rng.choice([0, 9, 34, 92, 123, 125, 91, 93, 0x7f, 0xe9, 0x4e2d, rng.randrange(1, 127)])) + text[at + 1:]
        elif kind == 2:
            text = text[:at] + text[at:at + rng.randrange(40)] * rng.randrange(2, 5) + text[at:]
        elif kind in (3, 4):  # a value gives way to an odd one
            colons = [i for i, c in enumerate(text) if c == ":"]
            if colons:
                at = rng.choice(colons) + 1
                end = min((i for i in (text.find(",", at), text.find("}", at)) if i > 0), default=len(text))
                text = text[:at] + rng.choice(ODD) + text[end:]
        elif kind == 5:
            text = text.replace(rng.choice(['"t"', '"devices"', '"model"', '"files"']), rng.choice(['"pipeline_parallel"', '"set"', '"x"', '"threads"']))
        else:
            text = text[:at] + "[" * rng.choice([10, 1000]) + text[at:]
    return text.encode("utf-8", "surrogatepass")


def memory_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def over_http(server, requests):
    host = server.address.removeprefix("http://")
    slowest = [0.0]

    stop = threading.Event()

    def ask(body):
        if stop.is_set():
            return 0
        try:
            return answered(body)
        except Exception:
            stop.set()
            print(f"over HTTP: {body[:600]}", file=sys.stderr)
            raise

    def answered(body):
        begin = time.monotonic()
        connection = http.client.HTTPConnection(host, timeout=60)
        connection.request("POST", "/v1/ask", body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        envelope = json.loads(reply.read())
        connection.close()
        slowest[0] = max(slowest[0], time.monotonic() - begin)
        if slowest[0] == time.monotonic() - begin and slowest[0] > LONGEST_SECONDS:
            print(f"slow: {body[:300]}", file=sys.stderr)
        assert reply.status in (200, 400, 503) and envelope["status"] in (0, 2, 3, 130), (reply.status, body, envelope)
        return reply.status

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(ask, requests)), slowest[0]


def over_mcp(client, requests):
    """Calls of tools with mutated arguments, all sent before the first is awaited."""
    answered = []  # ids; none where the message itself cannot be read
    failed = []

    def read():
        while len(answered) < len(requests):
            line = client.line()
            if not line:
                return
            reply = json.loads(line)
            answered.append(reply["id"])
            if "error" not in reply and "content" not in reply["result"]:
                failed.append(line)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for i, body in enumerate(requests):
        try:
            question = json.loads(body)
            arguments = question["arguments"]
            name = question["command"] if isinstance(question["command"], str) else "plan"
        except (ValueError, KeyError, TypeError, RecursionError):
            name, arguments = "estimate", body.decode("utf-8", "replace")
        client.send(json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call",
                                "params": {"name": name, "arguments": arguments}}))
    reader.join()
    named = [each for each in answered if each is not None]
    return len(requests) - len(answered) + len(named) - len(set(named)), failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    program = given.bin + "/headroom"

    server = Http(program, "--time-limit", "1s")
    files = f"/proc/{server.process.pid}/fd"
    server.get("/health")
    open_files = len(os.listdir(files))
    statuses, slowest = over_http(server, [mutated(rng) for _ in range(given.requests // 2)])
    time.sleep(0.5)
    http_memory, left_open = memory_kib(server.process.pid), len(os.listdir(files)) - open_files
    http_end = server.close()

    client = Mcp(program, "--time-limit", "1s")
    lost = 0
    failed = []
    batch = 1000
    for _ in range(max(1, given.requests // 2 // batch)):
        client.asked = 0
        missing, wrong = over_mcp(client, [mutated(rng) for _ in range(min(batch, given.requests // 2))])
        lost += missing
        failed += wrong
    mcp_memory = memory_kib(client.process.pid)
    rest, mcp_end = client.close()

    answered = {status: statuses.count(status) for status in sorted(set(statuses))}
    print(f"HTTP: {answered}, slowest {slowest:.1f} s, {http_memory // 1024} MiB, {left_open} files left open")
    print(f"MCP: {lost} lost, {len(failed)} neither result nor error, {mcp_memory // 1024} MiB")
    held = (slowest < LONGEST_SECONDS and max(http_memory, mcp_memory) < MOST_MEMORY_KIB and left_open <= 0 and
            not lost and not failed and not rest and (http_end, mcp_end) == (0, 0) and len(answered) > 1)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
