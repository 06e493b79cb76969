"""Parts of a sweep on disk: which are whole, and the file of rows that a user reads meanwhile."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import tempfile

from . import _library
from ._errors import InputError


def rows_of_part(text):
    """Return the lines of a part's rows, as they were written."""
    lines = text.split("\n")[1:]
    return [line[:-1] if line.endswith(",") else line for line in lines if line.startswith("{")]


def is_whole(text, shard, shards):
    """Return whether a part is whole, and that of this shard."""
    try:
        part = json.loads(text)
        return (part["shard"], part["of"]) == (shard, shards) and isinstance(part["rows"], list)
    except (ValueError, KeyError, TypeError):
        return False


def write_whole(path, text):
    """Write a file so that it is whole whenever it exists."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


class Parts:
    """The folder of parts of one sweep, and its file of rows.

    The parts are those of ``headroom sweep --shard``: ``headroom merge`` takes them, too.
    """

    def __init__(self, question, shards, output=None):
        self._shards = shards
        self._output = None if output is None else pathlib.Path(output).absolute()
        self._temporary = output is None
        if self._temporary:
            self._folder = pathlib.Path(tempfile.mkdtemp(prefix="headroom-sweep-"))
        else:
            self._folder = self._output.with_name(self._output.name + ".parts")
            self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._claim(question)
            self.whole = {
                shard: text
                for shard in range(1, shards + 1)
                if (text := self._read(shard)) is not None
            }
            self._start_rows()
        except BaseException:
            self.close()
            raise

    def path(self, shard):
        """Return the path of a part."""
        return self._folder / f"part-{shard:05}-of-{self._shards:05}.json"

    def paths(self):
        """Return the paths of all parts, in order."""
        return [str(self.path(shard)) for shard in range(1, self._shards + 1)]

    def add(self, shard, text):
        """Keep a part and append its rows to the output. Returns the rows' lines."""
        write_whole(self.path(shard), text if text.endswith("\n") else text + "\n")
        self.whole[shard] = text
        rows = rows_of_part(text)
        if self._output is not None:
            with open(self._output, "a", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in rows)
        return rows

    def finish(self):
        """Write the output's rows in the order of the points."""
        if self._output is None:
            return
        rows = [rows_of_part(self.whole[shard]) for shard in range(1, self._shards + 1)]
        lines = []
        for i in range(max(map(len, rows))):  # part I has every N-th point
            lines += [part[i] for part in rows if i < len(part)]
        write_whole(self._output, "".join(line + "\n" for line in lines))

    def close(self):
        """Remove the folder if it was a temporary one."""
        if self._temporary:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _claim(self, question):
        asked = {"headroom": _library.version(), "shards": self._shards}
        asked["question"] = hashlib.sha256(question.text().encode()).hexdigest()
        note = self._folder / "question.json"
        if not note.exists():
            write_whole(note, json.dumps(asked) + "\n")
            return
        try:
            found = json.loads(note.read_text(encoding="utf-8"))
        except ValueError:
            found = None
        if found != asked:
            rule = (
                f"{self._folder} holds parts of another sweep, version or number of shards: "
                "choose another output, or delete that folder"
            )
            raise InputError([("output", rule)])

    def _read(self, shard):
        try:
            text = self.path(shard).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        return text if is_whole(text, shard, self._shards) else None

    def _start_rows(self):
        if self._output is None:
            return
        lines = [line for text in self.whole.values() for line in rows_of_part(text)]
        write_whole(self._output, "".join(line + "\n" for line in lines))
