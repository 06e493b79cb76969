"""Asks the library, in a thread, so that Ctrl-C and progress reach the one who asked."""

from __future__ import annotations

import json
import operator
import os
import pathlib
import threading
from collections.abc import Iterator, KeysView, Mapping, ValuesView

from . import _library
from ._errors import InputError, InternalError
from ._progress import viewer

_ALIASES = {"gpus": "devices"}
_TICK = 0.1  # seconds; the library reports progress as often


def plain(value):
    """Return a value as JSON knows it: text, numbers, lists and dicts."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode()
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy, a column of pandas
        return plain(value.tolist())
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [plain(each) for each in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(each) for each in value)
    if isinstance(value, (Iterator, KeysView, ValuesView)):
        return [plain(each) for each in value]
    try:
        return operator.index(value)
    except TypeError:
        return str(value)  # a torch dtype in a configuration, say


def _is_hugging_face(value):
    return isinstance(value, Mapping) and ("model_type" in value or "architectures" in value)


def _take_model(value, files):
    # The library knows a config.json by its content; it finds it among the files of the question.
    converted = plain(value)
    from_object = hasattr(value, "to_dict") and not hasattr(value, "_is_record")
    if isinstance(converted, dict) and (from_object or _is_hugging_face(converted)):
        name = "config.json"
        while name in files:  # the caller's own
            name = "model-" + name
        files[name] = converted
        return name
    return converted


def arguments_of(options, files, strategy=None):
    """Return keyword arguments as those of a question; configurations are added to `files`."""
    merged = {}
    for source in (strategy or {}, options):
        for name, value in source.items():
            name = _ALIASES.get(name, name)
            if value is None:
                continue
            if name in merged and source is options:
                raise InputError([(name, "is given twice: also in strategy")])
            merged[name] = _take_model(value, files) if name == "model" else plain(value)
    return merged


class Question:
    """A command with its arguments: plain values, so that it can be pickled and asked elsewhere."""

    def __init__(self, command, arguments, files=None, disk=True):
        self.command = command
        self.arguments = arguments
        self.files = dict(files or {})
        self.disk = disk

    def text(self):
        """Return the question as JSON."""
        value = {"command": self.command, "arguments": self.arguments}
        if self.files:
            value["files"] = self.files
        if not self.disk:
            value["disk"] = False
        return json.dumps(value)

    def with_arguments(self, command=None, drop=(), **changes):
        """Return the question with other arguments."""
        arguments = {k: v for k, v in self.arguments.items() if k not in drop}
        arguments.update(changes)
        return Question(command or self.command, arguments, self.files, self.disk)

    def run(self, progress=None):
        """Return the answer. Raises InputError and InternalError."""
        return answer_of(_call(self.text(), progress), self)


class Answer:
    """What the library says: exit status, notes, and JSON (parsed, and its text) or text."""

    def __init__(self, question, status, messages, value, text):
        self.question = question
        self.status = status
        self.messages = messages
        self.value = value  # None where the command prints no JSON
        self.text = text


def _members(text):
    """Yield key, value and exact text of each member of an object in JSON."""
    decoder = json.JSONDecoder()

    def skip(at):
        while text[at] in " \t\r\n":
            at += 1
        return at

    at = skip(text.index("{") + 1)
    while text[at] != "}":
        key, at = decoder.raw_decode(text, at)
        start = skip(skip(at) + 1)  # behind the colon
        value, at = decoder.raw_decode(text, start)
        yield key, value, text[start:at]
        at = skip(at)
        if text[at] == ",":
            at = skip(at + 1)


def answer_of(text, question=None):
    """Return the library's response as an Answer. Raises InputError and InternalError."""
    try:
        members = {key: (value, exact) for key, value, exact in _members(text)}
        status = members["status"][0]
    except (ValueError, IndexError, KeyError) as error:
        raise InternalError(f"the response is not what was expected: {text[:200]!r}") from error
    messages = members.get("messages", ([], ""))[0]
    if "reply" in members:
        value, exact = members["reply"]
        return Answer(question, status, messages, value, exact)
    errors = members.get("errors", ([], ""))[0]
    problems = [(error.get("field", ""), error.get("rule", "")) for error in errors]
    if status == 2:
        raise InputError(problems, messages)
    if errors or status == 1:
        rules = [": ".join(filter(None, problem)) for problem in problems]
        raise InternalError("\n".join(rules + messages) or "the library failed without a message")
    return Answer(question, status, messages, None, members.get("text", ("", ""))[0])


def _call(question, progress):
    """Ask in a thread of its own: this one stays awake for Ctrl-C and shows progress."""
    stop = threading.Event()
    ended = threading.Event()
    latest = []
    outcome = {}

    def watch(text):
        latest[:] = [text]
        return stop.is_set()

    def work():
        try:
            outcome["reply"] = _library.ask_text(question, watch)
        except BaseException as error:  # raised below, in the thread that asked
            outcome["error"] = error
        finally:
            ended.set()

    view = viewer(progress)
    worker = threading.Thread(target=work, name="headroom")
    interrupted = None
    worker.start()
    try:
        while not ended.is_set():
            try:
                ended.wait(_TICK)
                if latest and interrupted is None:
                    view.show(json.loads(latest[0]))
            except BaseException as error:  # Ctrl-C, or the caller's own function failed
                interrupted = interrupted or error
                stop.set()
    finally:
        view.close()
    worker.join()
    if interrupted is not None:
        raise interrupted
    if "error" in outcome:
        raise outcome["error"]
    return outcome["reply"]


def path_or_text(source, name, files):
    """Return the path of a file, or the name under which its text was added to `files`."""
    if isinstance(source, str) and ("\n" in source or not source):
        files[name] = source
        return name
    if hasattr(source, "to_csv"):  # a data frame
        files[name] = source.to_csv(index=False)
        return name
    return os.fspath(pathlib.Path(source)) if not isinstance(source, Mapping) else plain(source)
