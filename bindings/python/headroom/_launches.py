"""A launch: the script and configuration that start a strategy."""

from __future__ import annotations

import pathlib

from ._errors import InputError
from ._records import Record


class Launch(Record):
    """What starts a strategy: ``files``, ``environment`` and ``command``."""

    __slots__ = ("estimate",)

    def __init__(self, data, estimate=None):
        super().__init__(data)
        object.__setattr__(self, "estimate", estimate)

    def write(self, folder="."):
        """Write the files to a folder.

        Parameters
        ----------
        folder : str or path
            The folder; it is created if it does not exist.

        Returns
        -------
        list of pathlib.Path
            The files.

        Raises
        ------
        InputError
            If a file exists with different content. Then nothing is written.
        """
        folder = pathlib.Path(folder)
        texts = {folder / name: text for name, text in self._data["files"].items()}
        taken = [
            (str(path), "exists with different content: choose another folder")
            for path, text in texts.items()
            if path.exists() and path.read_text(encoding="utf-8") != text
        ]
        if taken:
            raise InputError(taken)
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        return list(texts)

    def __reduce__(self):
        return type(self), (self._data, self.estimate)

    def __str__(self):
        files = [f"# {name}\n{text}" for name, text in self._data["files"].items()]
        return "\n".join([*files, self._data.get("command", "")])
