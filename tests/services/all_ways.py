#!/usr/bin/env python3
"""Asks random questions of the C library, over HTTP, through MCP and on the command line: all must answer the same.

usage: all_ways.py --bin FOLDER --library FILE [--questions N] [--seed S] [--quick]

The C library and HTTP must give the program's bytes; MCP, which has JSON of its own around the reply, its values. A tenth
of the questions may go wrong on purpose; at least half must have a reply. (Python: tests/python/random_questions.py.)
"""

import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from compare_programs import Questions
from clients import Http, Library, Mcp, raw_reply

SERVED = {"estimate", "explain", "compare", "sweep", "frontier", "plan"}  # not trace, whose replies have no bound
QUICK = SERVED - {"frontier", "plan"}
TOOLS = {"plan", "estimate", "explain", "compare"}


def as_arguments(line):
    """A command line, whose flags are long or have one letter, as the arguments of a question."""
    arguments = {}
    words = line[1:]
    while words:
        word = words.pop(0)
        name = word.lstrip("-").replace("-", "_")
        if not word.startswith("-"):
            arguments["model"] = word
        elif name == "vary":
            field, _, values = words.pop(0).partition("=")
            arguments.setdefault("vary", {})[field] = values
        elif words and (not words[0].startswith("-") or name in ("why", "to")):
            arguments[name] = words.pop(0)
        else:
            arguments[name] = True
    arguments.pop("format", None)
    return arguments


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="no searches, which take seconds each")
    given = parser.parse_args()
    program = given.bin + "/headroom"
    questions = Questions(program, given.seed)
    library, http, mcp = Library(given.library), Http(program, "--time-limit", "600s"), Mcp(program, "--time-limit", "600s")
    mcp.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
    replies = wrong = by_tool = 0
    for _ in range(given.questions):
        line, (code, printed, _said) = questions.asked(QUICK if given.quick else SERVED)
        arguments = as_arguments(line)
        question = {"command": line[0], "arguments": arguments}
        answers = {"C": library.ask(question), "HTTP": http.post("/v1/ask", question)[1]}
        replies += bool(printed)
        for way, text in answers.items():
            envelope = json.loads(text)
            same = envelope["status"] == code and (not printed or raw_reply(text) + "\n" == printed)
            if not same:
                wrong += 1
                print(f"{way}: {envelope['status']}, of the program {code}: headroom {' '.join(line)}\n"
                      f"  {str(envelope.get('errors'))[:300]}", file=sys.stderr)
        if line[0] in TOOLS:
            by_tool += 1
            result = mcp.request("tools/call", {"name": line[0], "arguments": {**arguments, "format": "json"}})
            same = result["isError"] == (code == 2) and (not printed or result["structuredContent"] == json.loads(printed))
            if not same:
                wrong += 1
                print(f"MCP: not as of: headroom {' '.join(line)}", file=sys.stderr)
    ends = mcp.close()[1], http.close()
    print(f"{given.questions} questions, {replies} with a reply, {by_tool} by a tool, {wrong} differ")
    return 1 if wrong or 2 * replies < given.questions or ends != (0, 0) else 0


if __name__ == "__main__":
    sys.exit(main())
