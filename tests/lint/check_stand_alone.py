#!/usr/bin/env python3
"""Compiles public headers by themselves, without writing an object: a third of them, drawn by what they hold, and all
that the last commit touched.

    check_stand_alone.py BUILD [--sources]    BUILD holds compile_commands.json of a build without unity files

--sources: all headers, and each source, of which one in a unity file may lean on what another one includes
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def compile_alone(call):
    """What the compiler said if it refused the file."""
    arguments, folder = call
    done = subprocess.run([*arguments, "-fsyntax-only"], cwd=folder, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def drawn(headers):
    """A third, another one of each state of the tree, and those of the last commit."""
    state = zlib.crc32(b"".join(header.read_bytes() for header in headers))
    done = subprocess.run(["git", "show", "--name-only", "--format="], cwd=ROOT, capture_output=True, text=True)
    touched = {ROOT / name for name in done.stdout.split()}
    return [header for i, header in enumerate(headers) if (i + state) % 3 == 0 or header in touched]


def calls(build, sources):
    """The compiler's arguments, and where it is called, for each file."""
    commands = json.loads(pathlib.Path(build, "compile_commands.json").read_text())
    commands = [command for command in commands if command["file"].startswith(f"{ROOT}/src/")]
    if not commands:
        sys.exit(f"{build}/compile_commands.json names no source under {ROOT}/src")
    for command in commands:
        arguments = [word for word in shlex.split(command["command"]) if word != "-c" and not word.endswith("ccache")]
        output = arguments.index("-o")
        del arguments[output:output + 2]
        if sources:
            yield arguments, command["directory"]
    # A header as one of a user, who knows only include/.
    headers = sorted(ROOT.glob("include/headroom/**/*.hpp"))
    for header in headers if sources else drawn(headers):
        yield [arguments[0], "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-pragma-once-outside-header",
               f"-I{ROOT}/include", "-x", "c++", str(header)], ROOT


def main(build, sources=""):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(compile_alone, calls(build, sources == "--sources")))
    refused = list(filter(None, said))
    print(*refused, sep="\n", end="")
    print(f"{len(said) - len(refused)} of {len(said)} files stand alone")
    sys.exit(bool(refused))


if __name__ == "__main__":
    main(*sys.argv[1:])
