"""The C library: one function that takes a question in JSON and returns a reply in JSON."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib

from ._errors import InternalError

_API = 1  # HEADROOM_API of bindings/c/headroom.h
_WATCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)


def library_path():
    """Return the path of the library: $HEADROOM_LIBRARY, or the file beside this package."""
    given = os.environ.get("HEADROOM_LIBRARY")
    return given or str(pathlib.Path(__file__).with_name("libheadroom_c.so"))


@functools.lru_cache(maxsize=None)
def _load(path):
    try:
        # ctypes releases the GIL for the length of each call.
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"the library of Headroom cannot be loaded: {error}. Install the wheel, or set "
            "HEADROOM_LIBRARY to the path of libheadroom_c.so",
            path=path,
        ) from error
    library.headroom_api.argtypes = []
    library.headroom_api.restype = ctypes.c_int
    if library.headroom_api() != _API:
        raise ImportError(
            f"{path} has API {library.headroom_api()}; this package needs API {_API}", path=path
        )
    library.headroom_version.argtypes = []
    library.headroom_version.restype = ctypes.c_char_p
    # The reply's type is a bare pointer: ctypes would copy a c_char_p and lose what is to be freed.
    library.headroom_ask.argtypes = [ctypes.c_char_p, ctypes.c_size_t, _WATCH, ctypes.c_void_p]
    library.headroom_ask.restype = ctypes.c_void_p
    library.headroom_free.argtypes = [ctypes.c_void_p]
    library.headroom_free.restype = None
    return library


def load():
    """Return the library, loaded on the first call."""
    return _load(library_path())


def version():
    """Return the version of the library."""
    return load().headroom_version().decode()


def ask_text(question, watch=None):
    """Return the reply to a question, both as text in JSON.

    Parameters
    ----------
    question : str
        The question.
    watch : callable, optional
        Called with the progress (bytes of JSON) by threads of the library; true ends the work.
    """
    library = load()

    def called(_, progress):
        # An exception cannot pass through C++: watch must not raise.
        return 1 if watch(progress) else 0

    callback = _WATCH(called) if watch else _WATCH()
    data = question.encode()
    reply = library.headroom_ask(data, len(data), callback, None)
    if not reply:
        raise MemoryError("no memory left for the reply of Headroom")
    try:
        return ctypes.string_at(reply).decode()
    except UnicodeDecodeError as error:
        raise InternalError(f"the reply is no UTF-8: {error}") from error
    finally:
        library.headroom_free(reply)
