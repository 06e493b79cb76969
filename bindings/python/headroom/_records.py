"""Objects of JSON with their members as attributes."""

from __future__ import annotations

import difflib
import json

_NO_WRAP = (str, int, float, bool, type(None))


def wrapped(value, owner=None):
    """Return a value of JSON with its objects as records."""
    if isinstance(value, _NO_WRAP):
        return value
    if isinstance(value, list):
        return [wrapped(each) for each in value]
    return Record(value)


def flat(value, prefix=""):
    """Return an object's numbers, texts and lists of them by path: ``{"memory.peak_bytes": 1}``."""
    row = {}
    for key, each in value.items():
        if isinstance(each, dict):
            row.update(flat(each, f"{prefix}{key}."))
        elif not (isinstance(each, list) and any(isinstance(x, (dict, list)) for x in each)):
            row[prefix + key] = each
    return row


def frame(rows):
    """Return rows as a data frame of pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_pandas() needs pandas: install it beside headroom") from error
    return pandas.DataFrame(rows)


class Record:
    """An object of a reply: members are attributes (``memory.peak_bytes``) and keys alike.

    Members win over methods of a dict: there is ``keys()``, but no ``values()`` or ``items()``.
    """

    __slots__ = ("_data",)
    _is_record = True

    def __init__(self, data):
        object.__setattr__(self, "_data", data)

    def __getattr__(self, name):
        if name.startswith("__") or name == "_data":  # pickle asks before there is data
            raise AttributeError(name)
        try:
            return wrapped(self._data[name])
        except KeyError:
            near = difflib.get_close_matches(name, self._data, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"{type(self).__name__} has no member {name!r}{hint}") from None

    def __setattr__(self, name, value):
        raise AttributeError(f"replies cannot be changed; {name!r} was not set")

    def __getitem__(self, key):
        return wrapped(self._data[key])

    def __iter__(self):
        return iter(self._data)

    def __len__(self):
        return len(self._data)

    def __contains__(self, key):
        return key in self._data

    def keys(self):
        """Return the names of the members."""
        return self._data.keys()

    def get(self, key, default=None):
        """Return a member, or `default` where there is none."""
        return wrapped(self._data[key]) if key in self._data else default

    def to_dict(self):
        """Return the object as plain dicts and lists, a copy."""
        return json.loads(json.dumps(self._data))

    def __dir__(self):
        return sorted({*super().__dir__(), *(key for key in self._data if key.isidentifier())})

    def __eq__(self, other):
        if isinstance(other, Record):
            return self._data == other._data
        return self._data == other if isinstance(other, dict) else NotImplemented

    __hash__ = None

    def __repr__(self):
        return f"{type(self).__name__}({self._summary()})"

    def _summary(self):
        shown = []
        for key, value in self._data.items():
            if isinstance(value, dict):
                text = "{...}" if value else "{}"
            elif isinstance(value, list):
                text = f"[{len(value)}]"
            else:
                text = repr(value)
                text = text if len(text) <= 40 else text[:36] + "...'"
            shown.append(f"{key}={text}")
            if len(shown) == 8 and len(self._data) > 8:
                shown.append("...")
                break
        return ", ".join(shown)

    def _repr_html_(self):
        from ._notebook import table

        return table(self._data)

    def __reduce__(self):
        return type(self), (self._data,)
