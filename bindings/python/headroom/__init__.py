"""Headroom plans memory and throughput of LLM training runs.

>>> import headroom as hr
>>> hr.plan("llama-3-70b", system="dgx-h100-80g", gpus=64).best.launch()  # doctest: +SKIP
"""

from ._errors import (
    HeadroomError,
    InputError,
    InternalError,
    NothingFits,
    Problem,
    StackChanged,
    SweepError,
)
from ._launches import Launch
from ._questions import (
    ask,
    calibrate,
    check,
    compare,
    estimate,
    explain,
    frontier,
    memory,
    models,
    plan,
    software,
    systems,
    validate,
)
from ._records import Record
from ._replies import (
    Calibration,
    Check,
    Comparison,
    Entry,
    Estimate,
    Explanation,
    Frontier,
    Listing,
    MemoryReport,
    Plan,
    Reply,
    Sweep,
    Validation,
)
from ._sweeps import Row, SweepRows, sweep

__all__ = [
    "Calibration",
    "Check",
    "Comparison",
    "Entry",
    "Estimate",
    "Explanation",
    "Frontier",
    "HeadroomError",
    "InputError",
    "InternalError",
    "Launch",
    "Listing",
    "MemoryReport",
    "NothingFits",
    "Plan",
    "Problem",
    "Record",
    "Reply",
    "Row",
    "StackChanged",
    "Sweep",
    "SweepError",
    "SweepRows",
    "Validation",
    "ask",
    "calibrate",
    "check",
    "compare",
    "estimate",
    "explain",
    "frontier",
    "memory",
    "models",
    "plan",
    "software",
    "sweep",
    "systems",
    "validate",
]


def __getattr__(name):
    if name == "__version__":  # the library is loaded when it is first needed
        from ._library import version

        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
