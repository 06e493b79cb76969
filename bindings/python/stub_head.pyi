# What no schema describes; bindings/python/stubs.py adds the members of replies.
# Names with an underscore exist for type checkers only; at run time these objects are Records.
import os
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, Union, overload

import pandas

__version__: str

class _HasToDict(Protocol):
    def to_dict(self) -> dict[str, Any]: ...

class _Submits(Protocol):
    def submit(self, fn: Any, /, *args: Any) -> Any: ...

class _MakesExecutor(Protocol):
    def get_executor(self) -> Any: ...

Progress = Union[bool, Callable[[dict[str, Any]], object], None]
_Model = Union[str, os.PathLike[str], Mapping[str, Any], _HasToDict, None]
_File = Union[str, os.PathLike[str], Mapping[str, Any], Record, None]
_Values = Union[int, str, Iterable[int], None]
_Executor = Union[_Submits, _MakesExecutor, Callable[[], _Submits], None]

class Problem(NamedTuple):
    field: str
    rule: str

class HeadroomError(Exception): ...

class InputError(HeadroomError, ValueError):
    problems: list[Problem]
    messages: list[str]
    def __init__(
        self, problems: Iterable[tuple[str, str]] = (), messages: Iterable[str] = ()
    ) -> None: ...

class InternalError(HeadroomError, RuntimeError): ...

class NothingFits(HeadroomError, LookupError):
    reply: Plan

class SweepError(HeadroomError, RuntimeError):
    shard: str
    attempts: int

class StackChanged(UserWarning): ...

class Record:
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object) -> bool: ...
    def keys(self) -> KeysView[str]: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def to_dict(self) -> dict[str, Any]: ...

class Reply(Record):
    @property
    def json(self) -> str: ...
    @property
    def status(self) -> int: ...
    @property
    def messages(self) -> list[str]: ...
    @property
    def fits(self) -> bool: ...
    def to_pandas(self) -> pandas.DataFrame: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    def html(self) -> str: ...

class Launch(Record):
    estimate: Estimate
    launcher: str
    command: str
    def write(self, folder: str | os.PathLike[str] = ".") -> list[Path]: ...

class Listing(Reply):
    @property
    def names(self) -> list[str]: ...
    def __iter__(self) -> Iterator[Record]: ...
    def __getitem__(self, key: int | str) -> Record: ...

class SweepRows(Iterator[Row]):
    def __next__(self) -> Row: ...
    def result(self) -> Sweep: ...
    def close(self) -> None: ...

def ask(command: str, *, progress: Progress = None, **arguments: Any) -> Any: ...
def plan(
    model: _Model = None,
    *,
    system: _File = None,
    software: _File = None,
    devices: _Values = None,
    gpus: _Values = None,
    global_batch: _Values = None,
    sequence: int | None = None,
    top: int | None = None,
    time_limit: str | None = None,
    strategy: Mapping[str, Any] | Entry | None = None,
    files: Mapping[str, Any] | None = None,
    disk: bool = True,
    progress: Progress = None,
    **options: Any,
) -> Plan: ...
def estimate(
    model: _Model = None,
    *,
    system: _File = None,
    software: _File = None,
    devices: int | None = None,
    gpus: int | None = None,
    tensor_parallel: int | None = None,
    pipeline_parallel: int | None = None,
    virtual_pipeline: int | None = None,
    context_parallel: int | None = None,
    expert_parallel: int | None = None,
    data_parallel: int | None = None,
    sequence_parallel: bool | None = None,
    micro_batch: int | None = None,
    global_batch: int | str | None = None,
    sequence: int | None = None,
    recompute: str | None = None,
    data_sharding: str | None = None,
    strategy: Mapping[str, Any] | Entry | None = None,
    files: Mapping[str, Any] | None = None,
    disk: bool = True,
    progress: Progress = None,
    **options: Any,
) -> Estimate: ...
def explain(model: _Model = None, *, progress: Progress = None, **options: Any) -> Explanation: ...
def compare(
    model: _Model = None,
    to: str | Mapping[str, Any] = "",
    *,
    progress: Progress = None,
    **options: Any,
) -> Comparison: ...
def frontier(model: _Model = None, *, progress: Progress = None, **options: Any) -> Frontier: ...
@overload
def sweep(
    model: _Model = None,
    *,
    stream: Literal[True],
    vary: Mapping[str, Any] | None = None,
    search: bool = False,
    executor: _Executor = None,
    output: str | os.PathLike[str] | None = None,
    shards: int | None = None,
    retries: int = 3,
    progress: Progress = None,
    **options: Any,
) -> SweepRows: ...
@overload
def sweep(
    model: _Model = None,
    *,
    stream: Literal[False] = False,
    vary: Mapping[str, Any] | None = None,
    search: bool = False,
    executor: _Executor = None,
    output: str | os.PathLike[str] | None = None,
    shards: int | None = None,
    retries: int = 3,
    progress: Progress = None,
    **options: Any,
) -> Sweep: ...
def check(
    script: str | os.PathLike[str] | list[str],
    *,
    progress: Progress = None,
    **options: Any,
) -> Check: ...
def calibrate(samples: Any = None, *, progress: Progress = None, **options: Any) -> Calibration: ...
def validate(*, progress: Progress = None, **options: Any) -> Validation: ...
def memory(
    log: str | os.PathLike[str], *, progress: Progress = None, **options: Any
) -> MemoryReport: ...
def models(**options: Any) -> Listing: ...
def systems(**options: Any) -> Listing: ...
def software(**options: Any) -> Listing: ...
