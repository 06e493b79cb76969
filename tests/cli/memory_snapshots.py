#!/usr/bin/env python3
"""Opens memory snapshots that estimate writes with Python's own pickle, and holds them to what estimate says.

Also has memory read snapshots as PyTorch writes them, of every protocol of pickles.

usage: memory_snapshots.py --bin DIR
"""
import argparse
import gzip
import json
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

ON_H100 = ["--system", "dgx-h100-80g"]
PLANS = [
    ["llama-3-8b", *ON_H100, "-t", "2", "--sp", "-p", "2", "-d", "2", "--zero", "1", "--global-batch", "64"],
    ["llama-3-8b", *ON_H100, "--software", "torchtitan-2025", "-d", "8", "--zero", "3", "--global-batch", "16"],
    ["gpt3-175b", *ON_H100, "-t", "8", "-p", "8", "-m", "3", "--sp", "--recompute", "selective", "--global-batch", "512"],
    ["mixtral-8x7b", *ON_H100, "-t", "2", "--sp", "-d", "8", "--expert-parallel", "8", "--global-batch", "16"],  # does not fit
    ["llama-3-8b", *ON_H100, "--software", "torchtitan-2025", "-d", "8", "--zero", "3", "--global-batch", "8",
     "--set-software", "memory.expandable_segments=true"],
]
SEGMENT_KEYS = {"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream",
                "segment_type", "segment_pool_id", "is_expandable", "frames", "blocks"}
BLOCK_KEYS = {"address", "size", "requested_size", "state", "frames"}
EVENT_KEYS = {"action", "addr", "size", "stream", "time_us", "frames"}
FRAME_KEYS = {"name", "filename", "line"}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", type=Path, required=True)
    program = (parser.parse_args().bin / "headroom").resolve()
    with tempfile.TemporaryDirectory() as folder:
        for plan in PLANS:
            check_plan(program, plan, Path(folder) / "plan.pickle")
        check_protocols(program, Path(folder))
    print(f"{len(PLANS)} snapshots")


def run(program, *arguments, codes=(0,)):
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode in codes, done.stderr
    return done


def check_plan(program, plan, file):
    done = run(program, "estimate", *plan, "--no-suggestions", "--format", "json", "--snapshot", file, codes=(0, 3))
    allocator = json.loads(done.stdout)["memory"]["allocator"]
    with file.open("rb") as stream:
        snapshot = pickle.load(stream)
    assert set(snapshot) == {"segments", "device_traces", "allocator_settings", "external_annotations"}
    blocks = check_segments(snapshot["segments"])
    assert sum(segment["total_size"] for segment in snapshot["segments"]) == allocator["reserved_bytes"]
    assert peak(snapshot["device_traces"][0], blocks) == allocator["allocated_bytes"]
    read = json.loads(run(program, "memory", file, *plan, "--format", "json").stdout)
    assert read["peak"]["allocated_bytes"] == allocator["allocated_bytes"]
    assert read["reserved_bytes"] == allocator["reserved_bytes"]
    assert read["account"]["unmatched_bytes"] == 0 and not read["account"]["missing"], read["account"]


def check_segments(segments):
    """Blocks of tensors, by address."""
    allocated = {}
    for segment in segments:
        assert set(segment) == SEGMENT_KEYS
        end = segment["address"]
        for block in segment["blocks"]:
            assert set(block) == BLOCK_KEYS and block["address"] == end and block["requested_size"] <= block["size"]
            end += block["size"]
            if block["state"] == "active_allocated":
                allocated[block["address"]] = block["requested_size"]
                assert block["frames"] and all(set(frame) == FRAME_KEYS for frame in block["frames"])
        assert end == segment["address"] + segment["total_size"]
        active = [block for block in segment["blocks"] if block["state"] == "active_allocated"]
        assert segment["allocated_size"] == sum(block["size"] for block in active) == segment["active_size"]
    return allocated


def peak(trace, alive):
    """The most that tensors take at once, in multiples of 512 bytes. Goes from the end back to the start."""
    def rounded(size):
        return max(512, -(-size // 512) * 512)

    now = most = sum(map(rounded, alive.values()))
    for event in reversed(trace):
        assert set(event) == EVENT_KEYS
        if event["action"] == "alloc":
            assert alive.pop(event["addr"]) == event["size"]
            now -= rounded(event["size"])
        elif event["action"] == "free_completed":
            assert event["addr"] not in alive
            alive[event["addr"]] = event["size"]
            now += rounded(event["size"])
        most = max(most, now)
    return most


def check_protocols(program, folder):
    frames = [{"name": "forward", "filename": "/job/mlp.py", "line": 7}]
    mib = 1 << 20
    blocks = [{"address": 140 << 40, "size": 4 * mib, "requested_size": 4 * mib, "state": "active_allocated", "frames": frames},
              {"address": (140 << 40) + 4 * mib, "size": 16 * mib, "requested_size": 0, "state": "inactive", "frames": []}]
    segment = {"device": 0, "address": 140 << 40, "total_size": 20 * mib, "allocated_size": 4 * mib, "active_size": 4 * mib,
               "requested_size": 4 * mib, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
               "is_expandable": False, "frames": [], "blocks": blocks}
    trace = [{"action": "alloc", "addr": (140 << 40) + 4 * mib, "size": 8 * mib, "stream": 0, "frames": frames, "time_us": 1 << 50,
              "compile_context": "N/A", "user_metadata": ""}]
    trace += [{**trace[0], "action": action} for action in ("free_requested", "free_completed", "snapshot")]
    snapshot = {"segments": [segment], "device_traces": [trace, []],
                "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "garbage_collection_threshold": 0.0,
                                       "expandable_segments": False, "roundup_power2_divisions": {"1": 0}},
                "external_annotations": []}
    replies = set()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        file = folder / f"protocol{protocol}.pickle"
        file.write_bytes(pickle.dumps(snapshot, protocol))
        replies.add(run(program, "memory", file, "--format", "json").stdout)
        file.write_bytes(gzip.compress(pickle.dumps(snapshot, protocol)))
        replies.add(run(program, "memory", file, "--format", "json").stdout)
    assert len(replies) == 1, replies
    reply = json.loads(replies.pop())
    assert reply["peak"] == {"event": 1, "allocated_bytes": 12 * mib, "reserved_bytes": 20 * mib}, reply
    assert [block["life"] for block in reply["blocks"]] == ["activation", "state"], reply
    hostile = folder / "hostile.pickle"
    hostile.write_bytes(pickle.dumps({"segments": print, "device_traces": []}))
    assert "STACK_GLOBAL" in run(program, "memory", hostile, codes=(2,)).stderr


if __name__ == "__main__":
    sys.exit(main())
