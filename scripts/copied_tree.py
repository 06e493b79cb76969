"""A copy of the tree with a build of its own, for scripts that change sources (mutate, exercise)."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def known_files():
    """Returns the files that git tracks or would track; without git, all files outside build."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
        return {name for name in listed if name and (ROOT / name).is_file()}
    files = (file.relative_to(ROOT) for file in ROOT.rglob("*") if file.is_file())
    return {str(file) for file in files if file.parts[0] != "build" and "__pycache__" not in file.parts}


class CopiedTree:
    def __init__(self, name):
        self.tree = ROOT / "build" / name / "tree"
        self.folder = ROOT / "build" / name / "build"

    def differences(self):
        """Returns the files that the copy lacks, that differ, or that only the copy has."""
        known = known_files()
        copied = {str(file.relative_to(self.tree)) for file in self.tree.rglob("*")
                  if file.is_file() and "__pycache__" not in file.parts}
        return (known ^ copied) | {name for name in known & copied
                                   if (self.tree / name).read_bytes() != (ROOT / name).read_bytes()}

    def restore(self):
        """Makes the copy what the tree is.

        A file that differed gets a new time: with the tree's, Ninja would keep what it built of the other
        text. The others keep theirs, and are not built again.
        """
        known = known_files()
        for name in self.differences():
            there = self.tree / name
            if name not in known:
                there.unlink()
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, there)  # with its mode

    def build(self, *options):
        """Builds the tests. Returns whether they compile, and the output. Options apply to the first configure only."""
        cached = shutil.which("ccache") is not None
        settings = os.environ | ({"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"} if cached else {})
        if not (self.folder / "build.ninja").exists():
            launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if cached else []
            subprocess.run(["cmake", "--preset", "dev", "-B", self.folder, "-DCMAKE_UNITY_BUILD=ON",
                            *options, *launcher],
                           cwd=self.tree, env=settings, stdout=subprocess.DEVNULL, check=True)
        done = subprocess.run(["cmake", "--build", self.folder, "--target", "headroom_tests", "--parallel",
                               str(len(os.sched_getaffinity(0)))],
                              env=settings, capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stdout

    def run_tests(self, *options):
        return subprocess.run([self.folder / "bin/headroom_tests", *options],
                              capture_output=True, text=True, timeout=1800, check=False)
