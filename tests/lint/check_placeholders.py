#!/usr/bin/env python3
"""Names each line that scripts/new left to be filled in, and fails if there is any.

    check_placeholders.py [REPOSITORY]    by default its own
"""
import pathlib
import sys

MARK = "FILL IN"
PLACES = ("CHANGELOG.md", "CMakeLists.txt", "docs", "include", "models", "presets", "schemas", "src", "tests")
OWN = {"tests/lint/check_placeholders.py", "tests/cli/new_script.py"}  # which speak of the mark


def left(root):
    for place in PLACES:
        files = [root / place] if (root / place).is_file() else sorted((root / place).rglob("*"))
        for file in files:
            name = file.relative_to(root).as_posix()
            if not file.is_file() or name in OWN or "__pycache__" in name:
                continue
            for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
                if MARK.encode() in line:
                    yield f"{name}:{number}: {line.decode(errors='replace').strip()[:100]}"


if __name__ == "__main__":
    found = list(left(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]))
    for line in found:
        print(line)
    sys.exit(bool(found))
