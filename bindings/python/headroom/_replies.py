"""Replies: what each question returns."""

from __future__ import annotations

import json
import re
import shlex
import warnings

from ._ask import Answer, Question
from ._errors import InputError, NothingFits, StackChanged
from ._launches import Launch
from ._records import Record, flat, frame, wrapped

_DOES_NOT_FIT = 3


class Reply(Record):
    """A reply: members of the program's JSON as attributes and keys.

    Attributes
    ----------
    json : str
        The exact text that the command prints with ``--format json``.
    status : int
        Exit code of the command: 0 done and fits, 3 nothing fits, 4 out of tolerance.
    messages : list of str
        What the command notes on standard error.
    """

    __slots__ = ("_answer",)
    _rows = ()  # the member that is a list of rows, by preference

    def __init__(self, answer):
        super().__init__(answer.value)
        object.__setattr__(self, "_answer", answer)

    @property
    def json(self):
        """The exact text of the reply."""
        return self._answer.text

    @property
    def status(self):
        """Exit code of the command."""
        return self._answer.status

    @property
    def messages(self):
        """Notes of the command."""
        return list(self._answer.messages)

    @property
    def fits(self):
        """Whether anything fits."""
        return self.status != _DOES_NOT_FIT

    def to_pandas(self):
        """Return the rows of the reply as a data frame; nested members are named ``a.b``."""
        for name in self._rows:
            if name in self._data:
                rows = self._data[name]
                return frame([flat(row) if isinstance(row, dict) else {name: row} for row in rows])
        return frame([flat(self._data)])

    def save(self, path):
        """Write the reply's JSON to a file, for ``headroom report`` and others."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.json + "\n")

    def html(self):
        """Return the reply as a page of HTML, as ``headroom report`` draws it."""
        files = {"reply.json": self.json}
        return Question("report", {"reply": "reply.json"}, files).run(progress=False).text

    def _repr_html_(self):
        from ._notebook import framed, table

        if not self._drawn:
            return table(self._data)
        try:
            return framed(self.html())
        except InputError:  # a reply that report does not draw
            return table(self._data)

    _drawn = False

    def __reduce__(self):
        answer = self._answer
        question = answer.question
        asked = (question.command, question.arguments, question.files, question.disk)
        return _restored, (type(self), asked, answer.status, answer.messages, answer.text)


def _restored(kind, asked, status, messages, text):
    return kind(Answer(Question(*asked), status, messages, json.loads(text), text))


def launch_of(question, launcher):
    """Return the launch of an estimate's question."""
    asked = question.with_arguments(launch=launcher or True)
    reply = Estimate(asked.run())
    return Launch(reply._data["launch"], reply)


class Estimate(Reply):
    """Memory of each pipeline rank, whether it fits, and time of an iteration."""

    __slots__ = ()
    _drawn = True

    def launch(self, launcher=None):
        """Return the launch of this strategy.

        Parameters
        ----------
        launcher : str, optional
            ``"megatron"``, ``"torchtitan"``, ...; the training stack's own by default.

        Returns
        -------
        Launch
        """
        own = self._data.get("launch")
        if own and launcher in (None, own.get("launcher")):
            return Launch(own, self)
        return launch_of(self._answer.question, launcher)

    def html(self):
        """Return the reply as a page of HTML, with schedule, layer and frontier drawn."""
        if "views" in self._data:
            return super().html()
        return Reply.html(Estimate(self._answer.question.with_arguments(views=True).run(False)))

    def to_pandas(self):
        """Return a row for each pipeline rank."""
        return frame([flat(rank) for rank in self._data["memory"]["ranks"]])


def arguments_of_command(command):
    """Return the arguments in the text of a command that the program printed.

    Its model comes first and its other words are flags and their values, so that a word behind a
    flag is the flag's value unless it is a flag itself.
    """
    words = shlex.split(command)[2:]
    arguments = {}
    flag = None
    for word in words:
        if word.startswith("-") and not re.match(r"-[0-9.]", word):
            flag, equals, value = word.lstrip("-").partition("=")
            flag = flag.replace("-", "_")
            given = value if equals else True
        elif flag is None:
            arguments["model"] = word
            continue
        else:
            given = word
        earlier = arguments.get(flag)
        if earlier is None or earlier is True:
            arguments[flag] = given
        else:  # a repeated flag
            arguments[flag] = [*(earlier if isinstance(earlier, list) else [earlier]), given]
    return arguments


class Entry(Record):
    """A strategy of a plan: strategy, memory, time and throughput as predicted."""

    __slots__ = ("_plan",)

    def __init__(self, data, plan):
        super().__init__(data)
        object.__setattr__(self, "_plan", plan)

    @property
    def _question(self):
        asked = self._plan._answer.question
        arguments = arguments_of_command(self._data["command"])
        # An object is no name on the command line: what was given counts.
        for name in ("model", "system", "software"):
            if isinstance(asked.arguments.get(name), dict):
                arguments[name] = asked.arguments[name]
        return Question("estimate", arguments, asked.files, asked.disk)

    @property
    def arguments(self):
        """Arguments of ``estimate`` for this strategy, by flag."""
        return dict(self._question.arguments)

    def estimate(self, *, progress=None, **options):
        """Return the whole estimate of this strategy.

        Parameters
        ----------
        progress : bool or callable, optional
            As in `plan`.
        **options
            Further arguments of `estimate`.

        Returns
        -------
        Estimate
        """
        return Estimate(self._question.with_arguments(**options).run(progress))

    def launch(self, launcher=None):
        """Return the launch of this strategy.

        Parameters
        ----------
        launcher : str, optional
            ``"megatron"``, ``"torchtitan"``, ...; the training stack's own by default.

        Returns
        -------
        Launch

        Warns
        -----
        StackChanged
            If the plan's training stack cannot be started by `launcher`. The best entry of a plan
            is then planned anew on the newest stack that can. Name a stack with ``software=`` to
            plan on it from the start.
        """
        try:
            return launch_of(self._question, launcher)
        except InputError as error:
            stack = self._plan._stack_for(error) if self._is_best() else None
            if stack is None:
                raise
        anew = Plan(self._plan._answer.question.with_arguments(software=stack).run())
        warnings.warn(
            f"{launcher} does not run {self._plan._data['software']['name']}: this launch is the "
            f"best plan on {stack} (plan on it with software={stack!r})",
            StackChanged,
            stacklevel=2,
        )
        return launch_of(anew.best._question, launcher)

    def _is_best(self):
        return self._data is self._plan._data["plans"][0]

    def __reduce__(self):
        return type(self), (self._data, self._plan)


class Plan(Reply):
    """The fastest strategies that fit, best first."""

    __slots__ = ()
    _drawn = True

    @property
    def plans(self):
        """Entries, the best of each layout, fastest first."""
        return [Entry(each, self) for each in self._data["plans"]]

    @property
    def pareto(self):
        """Entries that no other beats in both memory and time."""
        return [Entry(each, self) for each in self._data.get("pareto", [])]

    @property
    def best(self):
        """The fastest entry. Raises NothingFits if no strategy fits."""
        if self._data["plans"]:
            return self.plans[0]
        if self._data.get("stopped"):
            raise NothingFits("the search was stopped before it found a strategy that fits", self)
        obstacle = self._data.get("obstacle")
        raise NothingFits("no strategy fits" + (f": {obstacle}" if obstacle else ""), self)

    def __getitem__(self, key):
        return getattr(self, key) if key in ("plans", "pareto") else super().__getitem__(key)

    def to_pandas(self):
        """Return a row for each entry of `plans`."""
        rows = []
        for each in self._data["plans"]:
            row = flat(each["strategy"])
            row.update({k: v for k, v in flat(each).items() if not k.startswith("strategy.")})
            rows.append(row)
        return frame(rows)

    def _stack_for(self, error):
        """Return the newest stack that a refused launcher runs, as the rule names them."""
        rules = " ".join(rule for field, rule in error.problems if field == "launch")
        if not rules or "software" in self._answer.question.arguments:
            return None
        listed = Question("list software", {}).run(False).value["software"]
        own = self._data["software"]["name"]
        words = re.findall(r"[\w.@-]+", rules)
        names = [each["name"] for each in listed if each["name"] != own and each["name"] in words]
        return max(names, key=words.index) if names else None


class Comparison(Reply):
    """Two strategies, term by term."""

    __slots__ = ()
    _drawn = True

    def to_pandas(self):
        """Return a row for each term of time and memory."""
        rows = [
            {"of": group, "term": term, **flat(values)}
            for group in ("time", "memory")
            for term, values in self._data.get(group, {}).items()
            if isinstance(values, dict)
        ]
        return frame(rows)


class Frontier(Reply):
    """What to recompute at each memory budget."""

    __slots__ = ()
    _drawn = True
    _rows = ("points",)


class Explanation(Reply):
    """What each op stores and why, in symbols and in bytes."""

    __slots__ = ()

    def to_pandas(self):
        """Return a row for each op."""
        kinds = self._data.get("layer_kinds")
        if kinds is None:
            return frame([flat(op) for op in self._data.get("ops", [])])
        rows = [
            {"kind": kind.get("name"), **flat(op)} for kind in kinds for op in kind.get("ops", [])
        ]
        return frame(rows)


class Sweep(Reply):
    """A row for each point of a grid."""

    __slots__ = ()
    _drawn = True

    def to_pandas(self):
        """Return a row for each point, with the varied fields as the first columns."""
        return frame([row_of_point(row) for row in self._data["rows"]])


def row_of_point(row):
    """Return a row of a sweep, flat: the varied fields, then what was predicted."""
    values = {k: v for k, v in flat(row).items() if not k.startswith("point.")}
    return {**row["point"], **values}


class Check(Reply):
    """What is wrong with a launch script, and what would help."""

    __slots__ = ()
    _rows = ("findings",)


class Validation(Reply):
    """Predictions against measured runs."""

    __slots__ = ()
    _rows = ("rows",)


class Calibration(Reply):
    """A system fitted to measurements; ``system`` can be given to all questions."""

    __slots__ = ()
    _rows = ("errors",)


class MemoryReport(Reply):
    """Why a run went out of memory, and what mends it."""

    __slots__ = ()
    _rows = ("remedies",)


class Listing(Reply):
    """Models, systems or training stacks: a sequence of records that also finds them by name."""

    __slots__ = ()

    @property
    def _entries(self):
        return next(value for value in self._data.values() if isinstance(value, list))

    @property
    def names(self):
        """Names, in the order of the list."""
        return [each["name"] for each in self._entries]

    def __iter__(self):
        return iter([wrapped(each) for each in self._entries])

    def __len__(self):
        return len(self._entries)

    def __contains__(self, name):
        return name in self.names

    def __getitem__(self, key):
        if isinstance(key, (int, slice)):
            return wrapped(self._entries[key])
        for each in self._entries:
            if each["name"] == key:
                return wrapped(each)
        raise KeyError(key)

    def to_pandas(self):
        """Return a row for each entry."""
        return frame([flat(each) for each in self._entries])

    def _summary(self):
        return f"{len(self)}: {', '.join(self.names[:4])}, ..."
