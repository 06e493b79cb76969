"""Each question gives the reply that the program prints, with members as attributes."""

import json
import pathlib
import pickle
import tempfile
import unittest
import warnings

import headroom as hr
from support import ROOT, needs, printed


class Questions(unittest.TestCase):
    def assert_same(self, reply, *arguments):
        self.assertEqual(reply.json + "\n", printed(*arguments, "--format", "json", cwd=ROOT))

    def test_replies_are_the_bytes_of_the_program(self):
        self.assert_same(hr.plan("llama-3-8b", devices=8), "plan", "llama-3-8b", "--devices", "8")
        self.assert_same(hr.estimate("gpt3-175b", t=8, p=8, sp=True),
                         "estimate", "gpt3-175b", "-t", "8", "-p", "8", "--sp")
        self.assert_same(hr.explain("gpt3-175b", t=8), "explain", "gpt3-175b", "-t", "8")
        self.assert_same(hr.frontier("llama-3-8b", t=8), "frontier", "llama-3-8b", "-t", "8")
        self.assert_same(hr.validate(), "validate")
        self.assert_same(hr.models(), "list", "models")
        self.assert_same(hr.systems(), "list", "systems")
        self.assert_same(hr.software(), "list", "software")

    def test_the_other_side_of_compare_is_a_dict_or_flags(self):
        arguments = ["compare", "gpt3-175b", "-t", "8", "-p", "8",
                     "--to", "--sp --recompute selective"]
        for to in ("--sp --recompute selective", {"sp": True, "recompute": "selective"}):
            self.assert_same(hr.compare("gpt3-175b", to, t=8, p=8), *arguments)

    def test_gpus_are_devices(self):
        self.assertEqual(hr.plan("llama-3-8b", gpus=8).json, hr.plan("llama-3-8b", devices=8).json)

    def test_what_is_none_or_false_is_not_given(self):
        given = hr.estimate("llama-3-8b", t=8, sp=False, system=None)
        self.assertEqual(given.json, hr.estimate("llama-3-8b", t=8).json)

    def test_a_strategy_is_a_dict_of_flags(self):
        apart = hr.estimate("llama-3-8b", strategy={"t": 8, "sp": True})
        self.assertEqual(apart.json, hr.estimate("llama-3-8b", t=8, sp=True).json)
        with self.assertRaises(hr.InputError) as raised:
            hr.estimate("llama-3-8b", strategy={"t": 8}, t=4)
        self.assertEqual(raised.exception.problems[0].field, "t")

    def test_overrides_are_a_dict(self):
        self.assertEqual(hr.estimate("llama-3-8b", t=8, set={"layers": 16}).model.layers, 16)

    def test_another_format_is_text(self):
        text = hr.estimate("llama-3-8b", t=8, format="csv")
        self.assertEqual(text, printed("estimate", "llama-3-8b", "-t", "8", "--format", "csv"))

    def test_any_command_can_be_asked(self):
        self.assertIn("tensor_parallel", [each.name for each in hr.ask("list fields").fields])
        self.assertEqual(hr.ask("schema", name="plan").type, "object")

    def test_a_model_is_a_path(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "small.json"
            path.write_text((ROOT / "models/llama-3-8b.json").read_text())
            self.assertEqual(hr.estimate(path, t=8).model.hidden, 4096)

    def test_a_model_is_the_content_of_its_file(self):
        model = json.loads((ROOT / "models/llama-3-8b.json").read_text())
        named = hr.estimate("llama-3-8b", t=8)
        self.assertEqual(hr.estimate(model, t=8).memory, named.memory)
        best = hr.plan(model, devices=8).best
        self.assertEqual(best.estimate().memory, best.memory)

    CONFIG = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
        "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
        "num_hidden_layers": 32, "vocab_size": 128256, "max_position_embeddings": 8192,
        "rope_theta": 500000.0, "tie_word_embeddings": False, "hidden_act": "silu",
        "rms_norm_eps": 1e-5, "attention_bias": False, "mlp_bias": False,
    }

    def test_what_a_reply_holds_is_asked_again(self):
        reply = hr.estimate("llama-3-8b", system="dgx-h100-80g", devices=8, t=2)
        again = hr.estimate(reply.model, system=reply.system, software=reply.software, devices=8, t=2,
                            disk=False)
        self.assertEqual(again.model.name, "llama-3-8b")
        self.assertEqual(again.system.name, "dgx-h100-80g")
        self.assertEqual(again.memory, reply.memory)
        self.assertEqual(again.time, reply.time)

    def test_odd_values_are_values(self):
        asked = hr.sweep("llama-3-8b", devices=8, vary={"sequence": (s for s in (1024, 2048))})
        self.assertEqual(asked.json, hr.sweep("llama-3-8b", devices=8, vary={"sequence": [1024, 2048]}).json)
        self.assertEqual(hr.estimate(b"llama-3-8b", devices=8).model.name, "llama-3-8b")

    def test_a_model_is_a_configuration_of_transformers(self):
        class Config:
            def to_dict(self):
                return Questions.CONFIG

        for model in (Config(), dict(self.CONFIG)):
            reply = hr.estimate(model, t=8)
            self.assertEqual((reply.model.hidden, reply.model.key_value_heads), (4096, 8))

    def test_check_takes_a_path_or_files(self):
        script = ROOT / "examples/train_dense.sh"
        by_path = hr.check(script)
        text = hr.check("train.sh", files={"train.sh": script.read_text()})
        self.assertEqual(by_path.outcome, "starts")
        self.assertEqual(text.estimate.memory, by_path.estimate.memory)

    def test_memory_takes_the_text_of_a_log(self):
        log = (
            "step 3\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
            "GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free. Including "
            "non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory "
            "70.00 GiB is allocated by PyTorch, and 5.00 GiB is reserved by PyTorch but "
            "unallocated.\n"
        )
        self.assertEqual(hr.memory(log).asked_bytes, 2 << 30)


class Replies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = hr.plan("llama-3-8b", system="dgx-h100-80g", gpus=16)
        cls.estimate = hr.estimate("llama-3-8b", t=8)

    def test_members_are_attributes_and_keys(self):
        reply = self.estimate
        self.assertEqual(reply.memory.peak_bytes, reply["memory"]["peak_bytes"])
        self.assertEqual(reply.memory.ranks[0].pipeline_rank, 0)
        self.assertEqual(reply.to_dict(), json.loads(reply.json))
        self.assertIn("memory", reply)
        self.assertIn("memory", dir(reply))
        self.assertEqual(reply.get("nothing", 7), 7)
        with self.assertRaisesRegex(AttributeError, "did you mean 'memory'"):
            reply.memry
        with self.assertRaises(AttributeError):
            reply.memory = 1

    def test_replies_are_values(self):
        again = hr.estimate("llama-3-8b", t=8)
        self.assertEqual(again, self.estimate)
        self.assertNotEqual(again, hr.estimate("llama-3-8b", t=4))
        copy = pickle.loads(pickle.dumps(self.plan))
        self.assertEqual((copy, copy.json, copy.status), (self.plan, self.plan.json, 0))
        self.assertEqual(copy.best.estimate().memory, self.plan.best.memory)
        self.assertLess(len(repr(self.plan)), 400)

    def test_the_best_entry_is_estimated_again(self):
        for entry in (self.plan.best, self.plan.plans[1], self.plan.pareto[-1]):
            again = entry.estimate()
            self.assertEqual(again.strategy, entry.strategy)
        self.assertEqual(self.plan.best.estimate().time, self.plan.best.time)

    def test_an_entry_is_a_strategy_for_another_system(self):
        best = self.plan.best
        moved = hr.estimate("llama-3-8b", system="dgx-b200-180g", strategy=best)
        self.assertEqual(moved.system.name, "dgx-b200-180g")
        self.assertEqual(moved.strategy.tensor_parallel, best.strategy.tensor_parallel)

    def test_nothing_fits_is_a_reply(self):
        none = hr.estimate("gpt3-175b")
        self.assertEqual((none.status, none.fits, none.memory.verdict), (3, False, "does_not_fit"))
        plan = hr.plan("gpt3-175b", devices=1)
        self.assertFalse(plan.fits)
        with self.assertRaises(hr.NothingFits) as raised:
            plan.best
        self.assertIs(raised.exception.reply, plan)

    def test_a_launch_is_written_once(self):
        launch = self.plan.best.launch("megatron")
        self.assertIsInstance(launch, hr.Launch)
        with tempfile.TemporaryDirectory() as folder:
            files = launch.write(pathlib.Path(folder) / "run")
            self.assertEqual(launch.write(pathlib.Path(folder) / "run"), files)
            self.assertEqual(files[0].read_text(), launch.files[files[0].name])
            files[0].write_text("mine")
            with self.assertRaises(hr.InputError):
                launch.write(pathlib.Path(folder) / "run")
            self.assertEqual(files[0].read_text(), "mine")

    def test_a_launcher_of_another_stack_is_planned_for_and_said(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            launch = self.plan.best.launch("torchtitan")
        self.assertEqual([each.category for each in caught], [hr.StackChanged])
        self.assertEqual(launch.launcher, "torchtitan")
        self.assertTrue(launch.estimate.software.name.startswith("torchtitan"))
        pinned = hr.plan("llama-3-8b", system="dgx-h100-80g", gpus=16,
                         software="megatron-core-2025")
        with self.assertRaises(hr.InputError):
            pinned.best.launch("torchtitan")

    def test_pages(self):
        for reply in (self.plan, self.estimate):
            page = reply._repr_html_()
            self.assertIn("<iframe sandbox", page)
            self.assertIn("&lt;!doctype html&gt;", page)
        self.assertIn("<table>", hr.explain("gpt3-175b", t=8)._repr_html_())

    @needs("pandas")
    def test_rows_are_data_frames(self):
        plans = self.plan.to_pandas()
        self.assertEqual(len(plans), len(self.plan.plans))
        self.assertEqual(plans["time.iteration_seconds"][0], self.plan.best.time.iteration_seconds)
        self.assertEqual(len(self.estimate.to_pandas()), 1)
        rows = hr.sweep("llama-3-8b", vary={"tensor_parallel": [1, 2, 4]}).to_pandas()
        self.assertEqual(list(rows["tensor_parallel"]), [1, 2, 4])
        self.assertEqual(list(hr.models().to_pandas()["name"]), hr.models().names)
        for reply in (hr.explain("gpt3-175b"), hr.frontier("gpt3-175b", t=8, p=8),
                      hr.compare("gpt3-175b", "--sp", t=8, p=8), hr.validate()):
            self.assertGreater(len(reply.to_pandas()), 1)


class Errors(unittest.TestCase):
    def test_a_stopped_search_is_not_one_in_which_nothing_fits(self):
        stopped = hr.plan("deepseek-v3", devices=65536, threads=1, time_limit="0.001s")
        with self.assertRaisesRegex(hr.NothingFits, "stopped"):
            stopped.best

    def test_all_problems_are_fields_and_rules(self):
        with self.assertRaises(hr.InputError) as raised:
            hr.estimate("gpt3-175b", t=5)
        problems = raised.exception.problems
        self.assertGreater(len(problems), 1)
        self.assertEqual({problem.field for problem in problems}, {"tensor_parallel"})
        self.assertIn("96 % 5", problems[0].rule)
        self.assertIsInstance(raised.exception, ValueError)
        copy = pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual((copy.problems, str(copy)), (problems, str(raised.exception)))

    def test_unknown_arguments_are_the_librarys_errors(self):
        with self.assertRaises(hr.InputError):
            hr.plan("llama-3-8b", devicez=8)

    def test_a_missing_library_is_an_import_error(self):
        from headroom import _library

        with self.assertRaisesRegex(ImportError, "HEADROOM_LIBRARY"):
            _library._load("/nowhere/libheadroom_c.so")

    def test_a_broken_response_is_an_internal_error(self):
        from headroom._ask import answer_of

        for text in ("", "{}", '{"status": 1, "errors": [], "messages": ["x"]}', '{"status": 0'):
            with self.assertRaises(hr.InternalError):
                answer_of(text)
        kept = answer_of('{"status": 0, "reply": {"b" :1.50}, "messages": ["n"]}')
        self.assertEqual((kept.text, kept.value, kept.messages), ('{"b" :1.50}', {"b": 1.5}, ["n"]))


if __name__ == "__main__":
    unittest.main()
