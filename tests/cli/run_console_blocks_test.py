"""run_console_blocks.py can fail: documents with right and wrong output, and what it says of each."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from run_console_blocks import check_file


class RunConsoleBlocks(unittest.TestCase):
    def check(self, text, *, commands=1, wrong=0, name="test.console", update=False):
        """Runs a file of this text, expects these counts and returns the file's text afterwards."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_text(text)
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(check_file(path, None, update, folder), (commands, wrong))
            return path.read_text()

    def test_right_output(self):
        self.check("A comment.\n\n$ echo a; echo b\na\nb\n\n$ echo c\nc\n", commands=2)

    def test_wrong_output(self):
        self.check("$ echo a\nb\n", wrong=1)

    def test_missing_output(self):
        self.check("$ echo a\n", wrong=1)

    def test_output_that_is_not_expected(self):
        self.check("$ printf 'a\\nb\\n'\na\n", wrong=1)

    def test_only_the_wrong_command_counts(self):
        self.check("$ echo a\na\n$ echo b\nc\n", commands=2, wrong=1)

    def test_lines_that_are_too_wide(self):
        self.check("$ printf %100s | tr ' ' x\n" + "x" * 100 + "\n")
        self.check("$ printf %101s | tr ' ' x\n" + "x" * 101 + "\n", wrong=1)
        self.check("$ printf %101s | tr ' ' x # --format csv\n" + "x" * 101 + "\n")

    def test_dots_stand_for_any_lines(self):
        self.check("$ seq 9\n1\n...\n8\n9\n")
        self.check("$ seq 2\n1\n...\n2\n")
        self.check("$ seq 9\n1\n...\n8\n", wrong=1)

    def test_dots_are_no_wildcard_within_a_line(self):
        self.check("$ echo a.c\na.c\n")
        self.check("$ echo abc\na.c\n", wrong=1)

    def test_exit_status(self):
        self.check("$ exit 2\n[exit 2]\n")
        self.check("$ exit 2\n", wrong=1)
        self.check("$ exit 2\n[exit 3]\n", wrong=1)
        self.check("$ true\n[exit 2]\n", wrong=1)

    def test_stderr_comes_after_stdout(self):
        self.check("$ echo error >&2; echo output; exit 1\noutput\nerror\n[exit 1]\n")

    def test_scratch_lasts_from_command_to_command(self):
        self.check("$ echo a >$SCRATCH/file\n$ cat $SCRATCH/file\na\n", commands=2)

    def test_a_command_over_several_lines(self):
        self.check("$ echo a \\\n    b\na b\n")

    def test_only_console_blocks_of_markdown_are_run(self):
        text = "```sh\n$ exit 1\n```\n$ not code\n```console\n$ echo a\na\n```\n"
        self.check(text, name="test.md")
        self.check(text.replace("\na\n", "\nb\n"), name="test.md", wrong=1)

    def test_update_writes_what_differs_and_nothing_else(self):
        before = "# Title\n```console\n$ seq 3\n1\n...\n3\n\n$ seq 2\n1\n$ exit 2\n```\nText\n"
        after = "# Title\n```console\n$ seq 3\n1\n...\n3\n\n$ seq 2\n1\n2\n$ exit 2\n[exit 2]\n```\nText\n"
        self.assertEqual(self.check(before, name="test.md", commands=3, wrong=2, update=True), after)
        self.check(after, name="test.md", commands=3)


if __name__ == "__main__":
    unittest.main()
