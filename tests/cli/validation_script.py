#!/usr/bin/env python3
"""scripts/validation: writes the table, keeps what is written by hand, and tells when one of the two is missing."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN = "<!-- scripts/validation writes this table, all but a cause -->\n"
HEADING = "| group | rows | x | x | x | x | cause |\n|---|---|---|---|---|---|---|\n"
TABLE = "| own runs, dense, memory | 1 | | | | | kept \\| words |\n"
GONE = "| another | 1 | | | | | nobody's |\n"


def run(headroom, documents, *more):
    return subprocess.run([ROOT / "scripts/validation", ROOT / "examples/my-runs.json", "--headroom", headroom,
                           "--documents", documents, *more], capture_output=True, text=True, check=False)


def main():
    headroom = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        document = folder / "validation.md"
        narrow = folder / "precision.md"
        page = folder / "page.html"
        document.write_text("above\n" + BEGIN + HEADING + TABLE + "<!-- to here -->\nbelow\n")
        narrow.write_text(BEGIN + "<!-- to here -->\n")
        done = run(headroom, folder, "--check")
        assert done.returncode == 1 and "its table is another" in done.stderr, done
        done = run(headroom, folder, "--page", page)
        text = document.read_text()
        assert done.returncode == 1 and "no cause is written for: own runs" in done.stderr, done  # 1.3 s, -6.04%
        assert text.startswith("above\n" + BEGIN + "| group | rows | median") and text.endswith("<!-- to here -->\nbelow\n"), text
        assert "| kept \\| words |\n" in text and "| own runs, dense | 1 | 6.0% | -6.0%" in text, text
        assert text.index("dense | 1 |") < text.index("memory | 1 |"), text  # the worse first
        assert narrow.read_text().count("\n|") == 2, narrow.read_text()  # none of these runs in fewer than 16 bits
        assert page.read_text().startswith("<!DOCTYPE html>")
        document.write_text(text.replace("1 of 1 |  |", "1 of 1 | invented |"))
        assert run(headroom, folder, "--check").returncode == 0
        assert run(headroom, folder).returncode == 0 and "invented" in document.read_text()
        document.write_text(document.read_text().replace("<!-- to here -->", GONE + "<!-- to here -->"))
        done = run(headroom, folder)
        assert done.returncode == 1 and "no longer a group: another: nobody's" in done.stderr, done


main()
