"""Runs shards on an executor that may lose workers."""

from __future__ import annotations

import concurrent.futures
import time

from ._ask import Question
from ._errors import InputError, SweepError

_POLL = 0.2  # seconds, for futures that concurrent.futures cannot wait for (submitit's jobs)


def run_shard(command, arguments, files, disk, shard):
    """Return the text of a part. A worker of any kind imports this function by its name."""
    question = Question(command, {**arguments, "shard": shard}, files, disk)
    return question.run(progress=False).text


class _Pool:
    """An executor, made again where that is possible when its processes are lost."""

    def __init__(self, given):
        self._given = given
        self._own = None
        if hasattr(given, "submit") and hasattr(given, "get_executor"):  # a client of Dask
            given = given.get_executor()
        elif not hasattr(given, "submit"):  # a function that makes executors
            given = self._own = given()
        self._now = given

    def submit(self, *arguments):
        return self._now.submit(run_shard, *arguments)

    def renew(self):
        """Replace the executor. Returns False if none can be made."""
        broken = self._now
        if callable(self._given) and not hasattr(self._given, "submit"):
            fresh = self._given()
        elif type(broken) is concurrent.futures.ProcessPoolExecutor:
            fresh = concurrent.futures.ProcessPoolExecutor(
                getattr(broken, "_max_workers", None),
                mp_context=getattr(broken, "_mp_context", None),
                initializer=getattr(broken, "_initializer", None),
                initargs=getattr(broken, "_initargs", ()),
            )
        else:
            return False
        if self._own is not None:
            self._own.shutdown(wait=False)
        self._own = self._now = fresh
        return True

    def close(self):
        if self._own is not None:
            self._own.shutdown(wait=True)


def _first_done(futures):
    """Return those of the futures that are done, at least one."""
    if all(isinstance(future, concurrent.futures.Future) for future in futures):
        first = concurrent.futures.FIRST_COMPLETED
        return concurrent.futures.wait(futures, return_when=first).done
    while True:
        done = [future for future in futures if future.done()]
        if done:
            return done
        time.sleep(_POLL)


def _cancel(futures):
    for future in futures:
        if hasattr(future, "cancel"):
            future.cancel()


def finished_shards(question, shards, missing, executor, retries):
    """Yield shard and text of each missing part, as workers finish them.

    A shard whose worker is lost is submitted again, `retries` times at most; so is the executor
    made anew where it breaks as a whole. InputError is the caller's own mistake and ends the work.
    """
    pool = _Pool(executor)
    asked = (question.command, question.arguments, question.files, question.disk)
    attempts = dict.fromkeys(missing, 0)
    renewals = 0
    pending = {}

    def submit(shard):
        attempts[shard] += 1
        pending[pool.submit(*asked, f"{shard}/{shards}")] = shard

    def failed(shard, error):
        raise SweepError(
            f"part {shard} of {shards} failed {attempts[shard]} times, last with: {error!r}",
            f"{shard}/{shards}",
            attempts[shard],
        ) from error

    try:
        waiting = list(missing)
        while waiting or pending:
            try:
                while waiting:
                    submit(waiting[0])
                    waiting.pop(0)
                broken = None
            except concurrent.futures.BrokenExecutor as error:
                attempts[waiting[0]] -= 1
                broken = error
            done = _first_done(list(pending)) if pending and broken is None else []
            for future in sorted(done, key=pending.get):
                shard = pending.pop(future)
                try:
                    text = future.result()
                except InputError:
                    raise
                except concurrent.futures.BrokenExecutor as error:
                    waiting.append(shard)
                    broken = error
                except concurrent.futures.CancelledError as error:
                    # Dask cancels what a scheduler has forgotten: as good as a lost worker.
                    if attempts[shard] > retries:
                        failed(shard, error)
                    waiting.append(shard)
                except Exception as error:
                    if attempts[shard] > retries:
                        failed(shard, error)
                    waiting.append(shard)
                else:
                    yield shard, text
            if broken is not None:
                # Every shard in the pool fails with it, so that none of them is to blame alone.
                waiting += pending.values()
                pending.clear()
                renewals += 1
                if renewals > retries or not pool.renew():
                    failed(waiting[0], broken)
    finally:
        _cancel(pending)
        pool.close()
