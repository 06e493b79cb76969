#!/usr/bin/env python3
"""Plays the recorded session of an MCP client and compares what the server answers with what it answered then.

usage: mcp_session.py --bin FOLDER [--update]

mcp_session.jsonl has the messages in order: "> " of the client, "< " of the server. --update records the answers anew.
"""

import argparse
import json
import pathlib
import sys

from clients import Mcp

RECORDED = pathlib.Path(__file__).with_name("mcp_session.jsonl")


def is_notification(line):
    """Whether a line is the one kind of message that no answer follows."""
    try:
        message = json.loads(line)
    except ValueError:
        return False
    return isinstance(message, dict) and "id" not in message and "method" in message


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--update", action="store_true")
    given = parser.parse_args()
    recorded = RECORDED.read_text(encoding="utf-8").splitlines()
    client = Mcp(given.bin + "/headroom", "--at-once", "1")
    played = []
    for request in (line[2:] for line in recorded if line.startswith("> ")):
        client.send(request)
        played.append("> " + request)
        if not is_notification(request):
            played.append("< " + client.line())
    rest, code = client.close()
    if rest or code != 0:
        print(f"exit code {code}, and unasked: {rest}", file=sys.stderr)
        return 1
    if given.update:
        RECORDED.write_text("\n".join(played) + "\n", encoding="utf-8")
        return 0
    wrong = [(old, new) for old, new in zip(recorded, played) if old != new]
    for old, new in wrong:
        at = next((i for i, (x, y) in enumerate(zip(old, new)) if x != y), min(len(old), len(new)))
        print(f"recorded: ...{old[max(0, at - 60):at + 200]}\nanswered: ...{new[max(0, at - 60):at + 200]}\n", file=sys.stderr)
    print(f"{len(played)} messages, {len(wrong)} differ")
    return 1 if wrong or len(recorded) != len(played) else 0


if __name__ == "__main__":
    sys.exit(main())
