"""Sweeps in parts give the bytes of one machine, whatever happens to workers and files."""

import concurrent.futures
import json
import os
import pathlib
import signal
import tempfile
import unittest
from unittest import mock

import headroom as hr
from headroom import _executors
from support import needs, printed

MODEL = "llama-3-8b"
VARY = {"tensor_parallel": [1, 2, 3, 4, 8], "sequence": "2048:8192:x2"}


class OneThread:
    """An executor of tasks that are done at once."""

    def __init__(self, run=None):
        self._run = run
        self.submitted = []

    def submit(self, function, *arguments):
        self.submitted.append(arguments[-1])
        future = concurrent.futures.Future()
        try:
            if self._run:
                self._run(arguments[-1], len(self.submitted))
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


class Job:
    """A future like submitit's: it can be asked, but not waited for."""

    def __init__(self, result):
        self._result = result
        self._asked = 0

    def done(self):
        self._asked += 1
        return self._asked > 1

    def result(self):
        return self._result


class Jobs:
    def submit(self, function, *arguments):
        return Job(function(*arguments))


def kill_worker_once(mark, *arguments):
    """Run a shard; the first worker to come here dies as a machine does."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return SHARD(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)


SHARD = _executors.run_shard


class KillsOnce:
    """A process pool one of whose workers is killed; made again by calling this again."""

    def __init__(self, mark):
        self._mark = mark
        self.made = 0

    def __call__(self):
        self.made += 1
        pool = concurrent.futures.ProcessPoolExecutor(2)
        submit = pool.submit
        pool.submit = lambda function, *arguments: submit(kill_worker_once, self._mark, *arguments)
        return pool


class Sweeps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.whole = hr.sweep(MODEL, vary=VARY)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.output = self.folder / "rows.jsonl"

    def rows(self):
        return [json.loads(line) for line in self.output.read_text().splitlines()]

    def assert_whole(self, reply):
        self.assertEqual(reply.json, self.whole.json)
        self.assertEqual(reply.status, self.whole.status)

    def test_one_call_gives_the_bytes_of_the_program(self):
        text = printed("sweep", MODEL, "--vary", "tensor_parallel=1,2,3,4,8",
                       "--vary", "sequence=2048:8192:x2", "--format", "json")
        self.assertEqual(self.whole.json + "\n", text)

    def test_any_number_of_parts_on_any_executor_gives_the_same_bytes(self):
        for shards in (1, 2, 7, 40):
            self.assert_whole(hr.sweep(MODEL, vary=VARY, executor=OneThread(), shards=shards))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.assert_whole(hr.sweep(MODEL, vary=VARY, executor=pool, shards=5))
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            self.assert_whole(hr.sweep(MODEL, vary=VARY, executor=pool, shards=5))
        self.assert_whole(hr.sweep(MODEL, vary=VARY, executor=Jobs(), shards=3))
        self.assert_whole(hr.sweep(MODEL, vary=VARY, shards=3))

    def test_a_search_at_each_point(self):
        vary = {"devices": [8, 16]}
        whole = hr.sweep(MODEL, vary=vary, search=True)
        self.assertEqual(whole.kind, "plan")
        parts = hr.sweep(MODEL, vary=vary, search=True, executor=OneThread(), shards=2)
        self.assertEqual(parts.json, whole.json)

    def test_other_formats_are_text(self):
        text = hr.sweep(MODEL, vary=VARY, executor=OneThread(), shards=3, format="csv")
        self.assertEqual(text, hr.sweep(MODEL, vary=VARY, format="csv"))

    def test_a_model_may_be_an_object(self):
        model = hr.ask("estimate", model=MODEL, t=8).model.to_dict()
        root = pathlib.Path(__file__).resolve().parents[2]
        model = json.loads((root / f"models/{MODEL}.json").read_text())
        parts = hr.sweep(model, vary=VARY, executor=OneThread(), shards=3)
        self.assertEqual(parts.rows, self.whole.rows)

    def test_rows_come_as_parts_finish(self):
        executor = OneThread()
        rows = hr.sweep(MODEL, vary=VARY, executor=executor, shards=5, stream=True,
                        output=self.output)
        first = next(rows)
        self.assertEqual(first.verdict, first.flat()["verdict"])
        self.assertEqual(len(self.rows()), 3)  # a part of 15 rows in 5
        rest = list(rows)
        self.assertEqual(1 + len(rest), self.whole.points)
        self.assert_whole(rows.result())
        self.assertEqual(self.rows(), self.whole.to_dict()["rows"])

    def test_it_resumes_from_whole_parts(self):
        def stops(shard, submitted):
            if submitted > 2:
                raise hr.InputError([("", "stopped")])

        with self.assertRaises(hr.InputError):
            hr.sweep(MODEL, vary=VARY, executor=OneThread(stops), shards=5, output=self.output)
        parts = sorted((self.folder / "rows.jsonl.parts").glob("part-*"))
        self.assertEqual(len(parts), 2)
        parts[1].write_text(parts[1].read_text()[:-20])  # as a lost disk leaves it
        again = OneThread()
        self.assert_whole(hr.sweep(MODEL, vary=VARY, executor=again, shards=5, output=self.output))
        self.assertEqual(again.submitted, ["2/5", "3/5", "4/5", "5/5"])
        self.assertEqual(self.rows(), self.whole.to_dict()["rows"])
        last = OneThread()
        self.assert_whole(hr.sweep(MODEL, vary=VARY, executor=last, shards=5, output=self.output))
        self.assertEqual(last.submitted, [])

    def test_it_does_not_resume_from_another_sweep(self):
        hr.sweep(MODEL, vary=VARY, executor=OneThread(), shards=2, output=self.output)
        for other in (dict(shards=3), dict(shards=2, t=2)):
            vary = {"sequence": [2048]} if "t" in other else VARY
            with self.assertRaises(hr.InputError) as raised:
                hr.sweep(MODEL, vary=vary, executor=OneThread(), output=self.output, **other)
            self.assertEqual(raised.exception.problems[0].field, "output")

    def test_a_part_that_fails_is_tried_again_and_not_for_ever(self):
        def once(shard, submitted):
            if submitted == 1:
                raise OSError("the node is gone")

        executor = OneThread(once)
        self.assert_whole(hr.sweep(MODEL, vary=VARY, executor=executor, shards=3))
        self.assertEqual(sorted(executor.submitted), ["1/3", "1/3", "2/3", "3/3"])

        def always(shard, submitted):
            if shard == "2/3":
                raise OSError("the node is gone")

        executor = OneThread(always)
        with self.assertRaises(hr.SweepError) as raised:
            hr.sweep(MODEL, vary=VARY, executor=executor, shards=3, retries=2)
        self.assertEqual((raised.exception.shard, raised.exception.attempts), ("2/3", 3))
        self.assertEqual(executor.submitted.count("2/3"), 3)

    def test_a_mistake_of_the_caller_is_not_tried_again(self):
        executor = OneThread()
        with self.assertRaises(hr.InputError):
            hr.sweep(MODEL, vary={"nothing": [1]}, executor=executor, shards=3)
        self.assertLessEqual(len(executor.submitted), 3)

    def test_a_killed_process_breaks_the_pool_and_not_the_sweep(self):
        factory = KillsOnce(str(self.folder / "killed"))
        self.assert_whole(hr.sweep(MODEL, vary=VARY, executor=factory, shards=5))
        self.assertEqual(factory.made, 2)

    def test_a_broken_process_pool_is_made_again(self):
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            with self.assertRaises(concurrent.futures.BrokenExecutor):
                pool.submit(os._exit, 1).result()
            self.assert_whole(hr.sweep(MODEL, vary=VARY, executor=pool, shards=3))

    def test_ctrl_c_leaves_whole_parts(self):
        done = []

        def progress(value):
            done.append(value)
            if value.get("done") == 2:
                raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            hr.sweep(MODEL, vary=VARY, executor=OneThread(), shards=5, output=self.output,
                     progress=progress)
        self.assertEqual(len(list((self.folder / "rows.jsonl.parts").glob("part-*"))), 2)
        self.assertEqual(done[-1], {"step": "part", "done": 2, "of": 5})

    def test_temporary_parts_are_removed(self):
        with mock.patch("tempfile.tempdir", str(self.folder)):
            hr.sweep(MODEL, vary=VARY, executor=OneThread(), shards=2)
            rows = hr.sweep(MODEL, vary=VARY, executor=OneThread(), shards=2, stream=True)
            next(rows)
            rows.close()
        self.assertEqual([each for each in self.folder.iterdir() if "sweep" in each.name], [])


class Dask(unittest.TestCase):
    @needs("distributed")
    def test_four_processes_one_of_them_killed(self):
        import distributed

        whole = hr.sweep(MODEL, vary=VARY)
        with distributed.LocalCluster(
            n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None,
            silence_logs=50,
        ) as cluster, distributed.Client(cluster) as client:
            workers = client.run(os.getpid)
            rows = hr.sweep(MODEL, vary=VARY, executor=client, shards=15, stream=True)
            next(rows)
            victim = next(iter(workers.values()))
            os.kill(victim, signal.SIGKILL)
            self.assertEqual(rows.result().json, whole.json)
            self.assertNotIn(victim, client.run(os.getpid).values())


if __name__ == "__main__":
    unittest.main()
