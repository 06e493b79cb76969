#!/usr/bin/env python3
"""scripts/new, in a copy of the tree: what it writes is read by the program, is refused until it is filled in, and compiles;
a wrong name changes nothing. Then CONTRIBUTING.md's first hour, word for word.

    new_script.py HEADROOM COMPILER
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEEDED = ["CHANGELOG.md", "CMakeLists.txt", "CONTRIBUTING.md", "docs", "include", "models", "presets", "schemas", "scripts",
          "src", "tests"]


def run(folder, *command):
    return subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)


def texts(folder):
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


class Copy:
    def __init__(self, folder):
        self.folder = folder
        for name in NEEDED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(ROOT / name, folder / name)

    def new(self, *words):
        """Starts something; returns what was printed and the texts that changed."""
        before = texts(self.folder)
        done = run(self.folder, "scripts/new", *words)
        assert done.returncode == 0, done
        changed = {name: text.decode() for name, text in texts(self.folder).items() if before.get(name) != text}
        told = set(re.findall(r"^(?:wrote|changed) +(\S+)$", done.stdout, re.MULTILINE))
        assert told == set(changed), (told, set(changed))
        return done.stdout, changed

    def left(self):
        done = run(self.folder, "tests/lint/check_placeholders.py")
        assert done.returncode == bool(done.stdout), done
        return {line.split(":")[0] for line in done.stdout.splitlines()}

    def fill_in(self, files):
        for name in files:
            path = self.folder / name
            path.write_text(path.read_text().replace("FILL IN", "Filled in"))


def try_data(copy, headroom, kind, name, nearest, file, question):
    """The program reads what is written and answers as of what it was made from."""
    _, changed = copy.new(kind, name, "--from", nearest)
    counts = [text for path, text in changed.items() if path in ("tests/io/catalog_test.cpp", "tests/hardware/rates_test.cpp")]
    assert len(counts) == 1, changed.keys()
    assert f'"{name}"' in "".join(text for path, text in changed.items() if path.startswith("tests/")), changed.keys()
    assert name in changed["CHANGELOG.md"], changed.keys()
    sources = re.findall(r'"source": "([^"]*)"', changed[file])
    assert sources and all(source.startswith("FILL IN: ") for source in sources), sources
    assert run(copy.folder, headroom, "check", file).stdout == f"{file}: a valid {file.split('/')[-2].rstrip('s')} file\n"
    answers = [run(copy.folder, headroom, *question(word), "--format", "csv") for word in (file, nearest)]
    assert answers[0].returncode == 0 and answers[0].stdout == answers[1].stdout, answers
    unfilled = {path for path, text in changed.items() if "FILL IN" in text}
    assert unfilled == copy.left() and file in unfilled and "CHANGELOG.md" in unfilled, (unfilled, copy.left())
    copy.fill_in(unfilled)
    assert not copy.left(), copy.left()


def try_part(copy, compiler):
    """Header, source and test compile, and are formatted as the house's are."""
    printed, changed = copy.new("part", "gated_mixer")
    for place in ("expr/symbol.hpp", "docs/hybrids.md", "tests/mutations.toml"):
        assert place in printed, printed
    assert "src/model/parts/gated_mixer.cpp" in changed["CMakeLists.txt"], changed.keys()
    assert "visit(gated_mixer_row, &Mixers::gated_mixer);" in changed["include/headroom/model/parts/mixers.hpp"], changed.keys()
    for source in ("src/model/parts/gated_mixer.cpp", "tests/model/gated_mixer_test.cpp"):
        done = run(copy.folder, compiler, "-std=c++20", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror",
                   "-Iinclude", "-Isrc", "-Itests", "-fsyntax-only", source)
        assert done.returncode == 0, done.stderr
    copy.fill_in(copy.left())
    if shutil.which("clang-format-14"):
        shutil.copy2(ROOT / ".clang-format", copy.folder)
        done = run(copy.folder, "clang-format-14", "--dry-run", "--Werror", *(file for file in changed if file.endswith("pp")))
        assert done.returncode == 0, done.stderr


def try_refusals(copy):
    before = texts(copy.folder)
    for words, said in {("model", "llama-3-8b"): "models/llama-3-8b.json exists",
                        ("system", "l4"): "presets/systems/l4.json exists",
                        ("stack", "own"): "presets/software/own.json exists",
                        ("part", "lightning"): "include/headroom/model/parts/lightning.hpp exists",
                        ("model", "My-Model"): "'My-Model' is no name: write lower case",
                        ("model", "../own"): "'../own' is no name",
                        ("part", "gated-mixer"): "'gated-mixer' is no name: write lower-case words with underscores",
                        ("part", "mixer", "--from", "lightning"): "--from is for data files",
                        ("model", "mine", "--from", "llama-3-8"): "no model 'llama-3-8' in models (did you mean 'llama-3-8b'?)",
                        ("schedule", "mine"): "invalid choice: 'schedule'",
                        ("model",): "required: name"}.items():
        done = run(copy.folder, "scripts/new", *words)
        assert done.returncode == 2 and said in done.stderr and not done.stdout, done
    # A place that is no longer there: nothing is half written.
    (copy.folder / "docs/networks.md").write_text("# Networks\n")
    done = run(copy.folder, "scripts/new", "system", "mine")
    assert done.returncode == 1 and "docs/networks.md no longer has the place" in done.stderr, done
    (copy.folder / "docs/networks.md").write_bytes(before["docs/networks.md"])
    assert texts(copy.folder) == before


def main():
    headroom, compiler = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(pathlib.Path(folder))
        assert not copy.left(), copy.left()
        try_refusals(copy)
        layout = ("-t", "4", "-d", "2", "--sp", "--zero", "1")
        try_data(copy, headroom, "model", "new-model-1.5b", "qwen2.5-7b", "models/new-model-1.5b.json",
                 lambda model: ("estimate", model, "--system", "dgx-h100-80g", *layout))
        try_data(copy, headroom, "stack", "new-stack", "megatron-core-2025", "presets/software/new-stack.json",
                 lambda stack: ("estimate", "llama-3-8b", "--system", "dgx-h100-80g", "--software", stack, *layout))
        for name, nearest in (("new-node", "dgx-h200-141g"), ("new-card", "l40s"), ("new-cluster", "jean-zay-a100-80g")):
            try_data(copy, headroom, "system", name, nearest, f"presets/systems/{name}.json",
                     lambda system: ("estimate", "llama-3-8b", "--system", system, *layout))
        copy.new("system", "scaled", "--from", "l4")  # whose own rates are scaled already
        assert run(copy.folder, headroom, "check", "presets/systems/scaled.json").returncode == 0
        copy.fill_in(copy.left())
        try_part(copy, compiler)
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(pathlib.Path(folder))
        done = run(copy.folder, "tests/cli/run_console_blocks.py", "--bin", headroom.parent, "CONTRIBUTING.md")
        assert done.returncode == 0, done.stdout + done.stderr
        count = int(re.search(r"CONTRIBUTING\.md: (\d+) commands, 0 wrong", done.stdout)[1])
        assert count >= 10, done.stdout
    print("scripts/new and the first hour: fine")


if __name__ == "__main__":
    main()
