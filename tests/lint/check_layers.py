"""Checks that folders are layers: prints what breaks a rule, one line each, and exits 1 if anything does.

usage: check_layers.py <repository>
"""

import re
import sys
from pathlib import Path

# Lowest first. An include goes to the file's own layer or to one named earlier, never later.
LAYERS = ["core", "expr", "model", "hardware", "parallel", "schedule", "memory", "time", "plan",
          "search", "calibrate", "io", "interop", "answer", "report", "cli", "harness"]

# Core to answer are arithmetic on values, which must also compile to WebAssembly: all of it but the readers of files.
# Threads are for search alone.
PURE = [layer for layer in LAYERS[:LAYERS.index("answer") + 1] if layer not in ("io", "interop")]
THREAD_HEADERS = {"thread", "mutex", "shared_mutex", "future", "condition_variable", "atomic", "stop_token",
                  "semaphore", "latch", "barrier"}
IMPURE_HEADERS = {"iostream", "fstream", "filesystem"} | THREAD_HEADERS

# Headers that the build writes: of no layer, and included by cli alone.
GENERATED = {"commit.hpp"}

LONGEST_FILE = 500
CODE = {".hpp", ".cpp", ".h", ".cu", ".py", ".cmake", ".txt", ""}

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    """Yields (line number, '<' or '"', name) of each include."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1], match[2]


def layer_of_include(name, source, src):
    """The layer an include with quotes goes to, None if it is no file of ours."""
    parts = name.split("/")
    if parts[0] == "headroom":
        return parts[1] if len(parts) >= 3 else None
    if (source.parent / name).is_file():  # an internal header beside the source
        return source.parent.name
    return parts[0] if (src / name).is_file() else None


def check_file(path, root):
    relative = path.relative_to(root)
    public = relative.parts[0] == "include"
    layer = relative.parts[2 if public else 1]
    if layer not in LAYERS:
        yield f"{relative}: '{layer}' is not a layer; the layers are {', '.join(LAYERS)}"
        return
    for number, kind, name in includes(path):
        where = f"{relative}:{number}"
        if kind == "<":
            if public and not re.fullmatch(r"[a-z_0-9]+", name):
                yield f"{where}: a public header includes <{name}>, which is not a standard C++ header"
            allowed = THREAD_HEADERS if layer == "search" else set()
            if layer in PURE and name in IMPURE_HEADERS - allowed:
                yield f"{where}: {layer} includes <{name}>; core to answer have no streams, threads or files"
            continue
        if layer == "cli" and name in GENERATED:
            continue
        target = layer_of_include(name, path, root / "src")
        if target not in LAYERS:
            yield f'{where}: "{name}" is no file of a layer'
        elif public and not name.startswith("headroom/"):
            yield f'{where}: a public header includes "{name}", which is not public'
        elif LAYERS.index(target) > LAYERS.index(layer):
            yield f"{where}: {layer} includes {name}; {target} is a later layer"


def check_source_has_header(path, root):
    """A source implements one header, public or internal. cli has none: a file per subcommand, and main. The topics of
    rules share one, and so do the parts of the shell, the readers of launch files and what writes them."""
    relative = path.relative_to(root / "src")
    header = (root / "include/headroom" / relative).with_suffix(".hpp")
    if relative.parts[:2] in (("parallel", "rules"), ("interop", "shell"), ("interop", "launch_in"), ("interop", "launch_out")):
        return
    if relative.parts[0] != "cli" and not header.is_file() and not path.with_suffix(".hpp").is_file():
        yield f"src/{relative}: has no header include/headroom/{relative.with_suffix('.hpp')}"


def check_length(path, root):
    lines = len(path.read_text().splitlines())
    if lines > LONGEST_FILE:
        yield f"{path.relative_to(root)}: {lines} lines; is it two things? (at most {LONGEST_FILE})"


def problems(root):
    def files(folder, pattern):
        return sorted(path for path in (root / folder).rglob(pattern) if path.is_file())

    sources = files("src", "*.cpp")
    for path in files("include", "*.hpp") + files("src", "*.hpp") + sources:
        yield from check_file(path, root)
    for path in sources:
        yield from check_source_has_header(path, root)
    for folder in ["include", "src", "tests", "benchmarks", "cmake", "scripts"]:
        for path in files(folder, "*"):
            if path.suffix in CODE:
                yield from check_length(path, root)
    yield from check_length(root / "CMakeLists.txt", root)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(problems(Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
