"""The questions: a function for each command of the program."""

from __future__ import annotations

from . import _replies
from ._ask import Question, arguments_of, path_or_text, plain
from ._replies import Entry

# Arguments that say what is trained where, and not how.
_NOT_STRATEGY = ("model", "system", "software", "global_batch", "sequence", "devices")


def question_of(command, positional, options):
    """Return the question of a call: `files`, `disk` and `strategy` are no flags."""
    options = dict(options)
    files = {str(name): plain(each) for name, each in (options.pop("files", None) or {}).items()}
    disk = options.pop("disk", True)
    strategy = options.pop("strategy", None)
    if isinstance(strategy, Entry):
        given = strategy.arguments.items()
        strategy = {name: value for name, value in given if name not in _NOT_STRATEGY}
    arguments = arguments_of({**positional, **options}, files, strategy)
    return Question(command, arguments, files, disk)


def _asked(kind, command, positional, options, progress):
    answer = question_of(command, positional, options).run(progress)
    # Another format than JSON was asked for: its text.
    return answer.text if answer.value is None else kind(answer)


def ask(command, *, progress=None, **arguments):
    """Ask any command of the program.

    Parameters
    ----------
    command : str
        The command, such as ``"trace"`` or ``"list fields"``.
    progress : bool or callable, optional
        As in `plan`.
    **arguments
        Its flags, with underscores, and its positional arguments by name.

    Returns
    -------
    Reply or str
        The reply, or the text where the command prints no JSON.
    """
    return _asked(_replies.Reply, command, {}, arguments, progress)


def plan(model=None, *, progress=None, **options):
    """Find the fastest strategies that fit a model, a system, GPUs and a batch.

    Parameters
    ----------
    model : str, path, dict or configuration, optional
        Model's name (`models`), file or launch script; the content of a model file or of a
        ``config.json``; or an object with ``to_dict()``, such as a configuration of transformers.
    progress : bool or callable, optional
        By default, progress shows on a terminal and in a notebook after a second. False: never.
        A callable takes a dict with ``step``, ``done``, ``of``, ``decided`` and
        ``best_iteration_seconds``, those that are known, some ten times a second.
    **options
        Flags of ``headroom plan``, with underscores: ``system``, ``devices`` (or ``gpus``),
        ``global_batch``, ``software``, ``top``, ``time_limit="10s"`` and all others of
        ``headroom plan --help-all``. Lists stand for several values. A dict stands for a file's
        content, and in ``set`` for overrides. ``strategy`` is a dict of flags or an entry of a
        plan, ``files`` a dict of texts by file name, ``disk=False`` keeps the library from reading
        and writing files.

    Returns
    -------
    Plan
        Its ``best`` is the fastest entry. If nothing fits, ``fits`` is False.

    Raises
    ------
    InputError
        If arguments break rules; ``problems`` lists all of them.

    Examples
    --------
    >>> import headroom as hr
    >>> found = hr.plan("llama-3-70b", system="dgx-h100-80g", gpus=64)  # doctest: +SKIP
    >>> found.best.launch("megatron").write("launch")  # doctest: +SKIP
    """
    return _asked(_replies.Plan, "plan", {"model": model}, options, progress)


def estimate(model=None, *, progress=None, **options):
    """Predict memory of each pipeline rank, whether it fits, and time of an iteration.

    Parameters
    ----------
    model, progress
        As in `plan`.
    **options
        Flags of ``headroom estimate``, with underscores: ``system``, ``tensor_parallel``,
        ``pipeline_parallel``, ``micro_batch``, ``recompute``, ... as in `plan`.

    Returns
    -------
    Estimate
        Its ``fits`` is False, and ``infeasible`` says why, if the strategy does not fit.

    Raises
    ------
    InputError
        If arguments break rules; ``problems`` lists all of them.
    """
    return _asked(_replies.Estimate, "estimate", {"model": model}, options, progress)


def explain(model=None, *, progress=None, **options):
    """Show what each op stores and why, in symbols and in bytes.

    Parameters
    ----------
    model, progress
        As in `plan`.
    **options
        Flags of ``headroom explain``, with underscores.

    Returns
    -------
    Explanation
    """
    return _asked(_replies.Explanation, "explain", {"model": model}, options, progress)


def compare(model=None, to="", *, progress=None, **options):
    """Compare two strategies for one model, term by term.

    Parameters
    ----------
    model, progress
        As in `plan`.
    to : str or dict
        Flags of the other side where it differs: ``"--sp --recompute selective"`` or
        ``{"sequence_parallel": True, "recompute": "selective"}``.
    **options
        Flags of ``headroom compare``, with underscores: those of the first side.

    Returns
    -------
    Comparison
    """
    if not isinstance(to, str):
        to = _as_flags(plain(to))
    return _asked(_replies.Comparison, "compare", {"model": model, "to": to}, options, progress)


def _as_flags(values):
    import shlex

    words = []
    for name, value in values.items():
        flag = ("-" if len(name) == 1 else "--") + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not False and value is not None:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            words += [flag, shlex.quote(text)]
    return " ".join(words)


def frontier(model=None, *, progress=None, **options):
    """Find what to recompute of a layer at each memory budget: memory against time.

    Parameters
    ----------
    model, progress
        As in `plan`.
    **options
        Flags of ``headroom frontier``, with underscores.

    Returns
    -------
    Frontier
    """
    return _asked(_replies.Frontier, "frontier", {"model": model}, options, progress)


def check(script, *, progress=None, **options):
    """Check a launch script or configuration before its job starts.

    Parameters
    ----------
    script : str, path or list of them
        Launch files, or files of any kind that Headroom reads. ``files`` may hold their texts.
    progress
        As in `plan`.
    **options
        Flags of ``headroom check``, with underscores.

    Returns
    -------
    Check
        Its ``outcome`` says whether the job starts, its ``findings`` name the rules it breaks.
    """
    scripts = plain(script)
    scripts = scripts if isinstance(scripts, list) else [scripts]
    return _asked(_replies.Check, "check", {"files": scripts}, options, progress)


def calibrate(samples=None, *, progress=None, **options):
    """Fit a system's rates to measured samples or runs.

    Parameters
    ----------
    samples : str, path, data frame, or list of them, optional
        Samples: JSON of ``headroom-measure``, CSV, output of nccl-tests, or a data frame with the
        columns of that CSV.
    progress
        As in `plan`.
    **options
        Flags of ``headroom calibrate``, with underscores: ``base``, ``profile``, ``from_runs``.

    Returns
    -------
    Calibration
        Its ``system`` is the fitted system.
    """
    files = dict(options.pop("files", None) or {})
    if samples is not None:
        many = samples if isinstance(samples, (list, tuple)) else [samples]
        samples = [path_or_text(each, f"samples-{i}.csv", files) for i, each in enumerate(many)]
    options["files"] = files
    return _asked(_replies.Calibration, "calibrate", {"samples": samples}, options, progress)


def validate(*, progress=None, **options):
    """Compare predictions with measured runs: the signed error of each.

    Parameters
    ----------
    progress
        As in `plan`.
    **options
        Flags of ``headroom validate``, with underscores: ``runs``, ``samples``, ``group_by``, ...

    Returns
    -------
    Validation
        Its ``status`` is 4 if an error is out of tolerance.
    """
    return _asked(_replies.Validation, "validate", {}, options, progress)


def memory(log, *, progress=None, **options):
    """Tell from a log why a run went out of memory, and what mends it.

    Parameters
    ----------
    log : str or path
        The log's path, or its text (of more than one line).
    progress
        As in `plan`.
    **options
        Flags of ``headroom memory``, with underscores.

    Returns
    -------
    MemoryReport
    """
    files = dict(options.pop("files", None) or {})
    options["files"] = files
    positional = {"log": path_or_text(log, "run.log", files)}
    return _asked(_replies.MemoryReport, "memory", positional, options, progress)


def models(**options):
    """Return all models: ``models().names``, ``models()["llama-3-8b"]``."""
    return _asked(_replies.Listing, "list models", {}, options, False)


def systems(**options):
    """Return all systems: ``systems().names``, ``systems()["dgx-h100-80g"]``."""
    return _asked(_replies.Listing, "list systems", {}, options, False)


def software(**options):
    """Return all training stacks: ``software().names``, ``software()["torchtitan-2025"]``."""
    return _asked(_replies.Listing, "list software", {}, options, False)
