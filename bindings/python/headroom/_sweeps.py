"""Sweeps: on this machine, or in parts on an executor."""

from __future__ import annotations

import json

from ._executors import finished_shards, run_shard
from ._parts import Parts
from ._progress import viewer
from ._questions import question_of
from ._replies import Sweep, row_of_point
from ._records import Record

_SHARDS = 32


class Row(Record):
    """A point of a sweep: ``point`` has the varied fields, the rest is what was predicted."""

    __slots__ = ()

    def flat(self):
        """Return the row as one flat dict, the varied fields first."""
        return row_of_point(self._data)


class SweepRows:
    """Rows of a sweep as they come; `result` is the whole sweep."""

    def __init__(self, question, executor, output, shards, retries, progress, output_format):
        self._format = output_format
        self._question = question
        self._executor = executor
        self._shards = shards
        self._retries = retries
        self._progress = progress
        self._parts = Parts(question, shards, output)
        self._result = None
        self._rows = self._stream()

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._rows)

    def _finished(self, missing):
        if self._executor is not None:
            return finished_shards(
                self._question, self._shards, missing, self._executor, self._retries
            )
        asked = self._question
        return (
            (each, run_shard(asked.command, asked.arguments, asked.files, asked.disk, shard))
            for each in missing
            for shard in [f"{each}/{self._shards}"]
        )

    def _stream(self):
        parts = self._parts
        view = viewer(self._progress)
        try:
            whole = list(parts.whole)
            missing = [each for each in range(1, self._shards + 1) if each not in parts.whole]
            for shard in whole:
                yield from self._records(json.loads(parts.whole[shard])["rows"])
            finished = self._finished(missing)
            try:
                for shard, text in finished:
                    rows = parts.add(shard, text)
                    view.show({"step": "part", "done": len(parts.whole), "of": self._shards})
                    yield from self._records(map(json.loads, rows))
            finally:
                finished.close()
            self._result = self._merged()
            parts.finish()
        finally:
            view.close()
            parts.close()

    @staticmethod
    def _records(rows):
        return (Row(row) for row in rows)

    def _merged(self):
        arguments = {"parts": self._parts.paths(), "format": self._format}
        merging = self._question.with_arguments("merge", drop=self._question.arguments, **arguments)
        merging.disk = True  # the parts are files of this package's own
        answer = merging.run(progress=False)
        answer.question = self._question
        return answer.text if answer.value is None else Sweep(answer)

    def result(self):
        """Return the sweep, after all rows that are left.

        Returns
        -------
        Sweep
            What one machine's `sweep` returns, byte for byte.
        """
        for _ in self:
            pass
        return self._result

    def close(self):
        """End the work; whole parts stay beside the output, if there is one."""
        self._rows.close()
        self._parts.close()


def sweep(
    model=None,
    *,
    vary=None,
    search=False,
    executor=None,
    output=None,
    shards=None,
    retries=3,
    stream=False,
    progress=None,
    **options,
):
    """Evaluate a grid of models, systems and strategies.

    Parameters
    ----------
    model
        As in `plan`.
    vary : dict
        Fields and their values, the last one fastest: ``{"tensor_parallel": [1, 2, 4],
        "sequence": "1024:65536:x2"}``.
    search : bool
        Search for the best strategy at each point, as ``headroom sweep plan`` does.
    executor : concurrent.futures.Executor or callable, optional
        Where to work: an executor of ``concurrent.futures``, Dask (or its client), mpi4py,
        submitit, or a function that makes one. By default, the threads of this process.
    output : str or path, optional
        File of rows, one line of JSON each. Rows are appended as parts finish, and stand in the
        order of the points at the end. Whole parts are kept in the folder ``OUTPUT.parts``, from
        which the same call resumes.
    shards : int, optional
        Number of parts (32). A part is what a lost worker loses.
    retries : int
        How many times a part, or an executor that broke, is tried again.
    stream : bool
        Return rows as they come.
    progress
        As in `plan`.
    **options
        Flags of ``headroom sweep``, with underscores. On an executor, ``threads`` is 1 unless
        given: the threads of a task.

    Returns
    -------
    Sweep or SweepRows
        With `stream`, an iterator of rows whose ``result()`` is the sweep.

    Raises
    ------
    InputError
        If arguments break rules that all points share.
    SweepError
        If a part failed on every attempt.
    """
    command = "sweep plan" if search else "sweep"
    question = question_of(command, {"model": model, "vary": vary}, options)
    if executor is None and output is None and shards is None and not stream:
        answer = question.run(progress)
        return answer.text if answer.value is None else Sweep(answer)
    output_format = question.arguments.pop("format", "json")
    if executor is not None:
        question.arguments.setdefault("threads", 1)
    _name_files(question)
    rows = SweepRows(question, executor, output, shards or _SHARDS, retries, progress,
                     output_format)
    return rows if stream else rows.result()


def _name_files(question):
    # Parts name their inputs by file; merging reads them again under that name.
    for name in ("model", "system", "software"):
        value = question.arguments.get(name)
        if isinstance(value, dict):
            question.files[f"{name}.json"] = value
            question.arguments[name] = f"{name}.json"
