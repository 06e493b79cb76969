#!/usr/bin/env python3
"""Compiles each source by itself, without writing an object.

    check_sources_stand_alone.py BUILD FOLDER    BUILD holds compile_commands.json of a build without unity files
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def compile_alone(command):
    """The source, and what the compiler said if it refused it."""
    arguments = [word for word in shlex.split(command["command"]) if word != "-c" and not word.endswith("ccache")]
    output = arguments.index("-o")
    del arguments[output:output + 2]
    done = subprocess.run([*arguments, "-fsyntax-only"], cwd=command["directory"], capture_output=True, text=True)
    return command["file"], done.stderr if done.returncode else ""


def main(build, folder):
    folder = str(pathlib.Path(folder).resolve()) + "/"
    commands = json.loads(pathlib.Path(build, "compile_commands.json").read_text())
    commands = [command for command in commands if command["file"].startswith(folder)]
    if not commands:
        sys.exit(f"{build}/compile_commands.json names no source under {folder}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        refused = [said for _, said in pool.map(compile_alone, commands) if said]
    print(*refused, sep="\n", end="")
    print(f"{len(commands) - len(refused)} of {len(commands)} sources stand alone")
    sys.exit(bool(refused))


if __name__ == "__main__":
    main(*sys.argv[1:])
