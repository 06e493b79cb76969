"""What can go wrong, as exceptions with fields."""

from __future__ import annotations

import typing


class Problem(typing.NamedTuple):
    """A rule that an input breaks.

    Attributes
    ----------
    field : str
        Name of the argument, or the place in a file; empty where no single field is at fault.
    rule : str
        What is wrong, with the numbers.
    """

    field: str
    rule: str

    def __str__(self):
        return f"{self.field}: {self.rule}" if self.field else self.rule


class HeadroomError(Exception):
    """Base of all errors of this package."""


class InputError(HeadroomError, ValueError):
    """The question breaks rules: all of them are listed at once.

    Attributes
    ----------
    problems : list of Problem
        Rules that are broken.
    messages : list of str
        Notes of the library about the inputs.
    """

    def __init__(self, problems=(), messages=()):
        self.problems = [Problem(*problem) for problem in problems]
        self.messages = list(messages)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self):  # so that a worker of a pool can raise it in the process that asked
        return type(self), ([tuple(problem) for problem in self.problems], self.messages)


class InternalError(HeadroomError, RuntimeError):
    """The library failed. Please report it with the question that you asked."""


class NothingFits(HeadroomError, LookupError):
    """A plan has no best entry, because no strategy fits.

    Attributes
    ----------
    reply : Plan
        The plan; it says what stands in the way (``obstacle``, ``nearest``, ``rejected``).
    """

    def __init__(self, message, reply=None):
        self.reply = reply
        super().__init__(message)

    def __reduce__(self):
        return type(self), (str(self), self.reply)


class SweepError(HeadroomError, RuntimeError):
    """A part of a sweep failed on every attempt.

    Attributes
    ----------
    shard : str
        The part, such as ``"3/32"``.
    attempts : int
        Number of times that it was submitted.
    """

    def __init__(self, message, shard="", attempts=0):
        self.shard = shard
        self.attempts = attempts
        super().__init__(message)

    def __reduce__(self):
        return type(self), (str(self), self.shard, self.attempts)


class StackChanged(UserWarning):
    """A launch was planned on another training stack: the launcher does not run the plan's."""
