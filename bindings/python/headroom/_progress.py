"""Progress of a long question: a line on a terminal, a widget-free line in a notebook."""

from __future__ import annotations

import os
import sys
import time

_PATIENCE = 1.0  # seconds before anything shows, as the program waits


def describe(progress):
    """Return progress as a line of text."""
    parts = [str(progress.get("step", "working"))]
    done, of = progress.get("done"), progress.get("of")
    if done is not None and of:
        parts.append(f"{done} of {of}")
    elif done is not None:
        parts.append(str(done))
    if progress.get("decided") is not None:
        parts.append(f"{100 * progress['decided']:.0f}% decided")
    if progress.get("best_iteration_seconds") is not None:
        parts.append(f"best {progress['best_iteration_seconds']:.4g} s")
    return ", ".join(parts)


class _Silent:
    def show(self, progress):
        pass

    def close(self):
        pass


class _Called(_Silent):
    def __init__(self, function):
        self._function = function

    def show(self, progress):
        self._function(progress)


class _Terminal(_Silent):
    def __init__(self, stream):
        self._stream = stream
        self._start = time.monotonic()
        self._shown = False

    def show(self, progress):
        if time.monotonic() - self._start < _PATIENCE:
            return
        try:
            width = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            width = 80
        self._stream.write("\r\x1b[K" + describe(progress)[: width - 1])
        self._stream.flush()
        self._shown = True

    def close(self):
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


class _Notebook(_Silent):
    def __init__(self):
        self._start = time.monotonic()
        self._handle = None

    def show(self, progress):
        if time.monotonic() - self._start < _PATIENCE:
            return
        from IPython.display import HTML, display

        from ._notebook import escape

        line = HTML(f"<small>{escape(describe(progress))}</small>")
        if self._handle is None:
            self._handle = display(line, display_id=True)
        else:
            self._handle.update(line)

    def close(self):
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(""))


def in_notebook():
    """Return whether cells of a notebook show what is displayed."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return bool(shell) and hasattr(shell, "kernel")


def viewer(progress):
    """Return what shows progress: `progress` itself is None (automatic), a bool or a callable."""
    if callable(progress):
        return _Called(progress)
    if progress is False:
        return _Silent()
    if in_notebook():
        return _Notebook()
    if sys.stderr is not None and sys.stderr.isatty():
        return _Terminal(sys.stderr)
    return _Silent()
