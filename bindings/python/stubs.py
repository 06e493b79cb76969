#!/usr/bin/env python3
"""Prints the package's stubs, __init__.pyi: replies as the library's own schemas describe them.

    bindings/python/stubs.py > bindings/python/headroom/__init__.pyi

Needs the package and its library (PYTHONPATH, HEADROOM_LIBRARY). scripts/wheel puts the stubs into
the wheel; no copy is kept in the source tree.
"""

import keyword
import pathlib
import re
import sys
import textwrap

import headroom as hr

HEAD = pathlib.Path(__file__).resolve().with_name("stub_head.pyi")  # what no schema describes

# Reply and schema.
REPLIES = [
    ("Plan", "plan"),
    ("Estimate", "estimate"),
    ("Comparison", "compare"),
    ("Frontier", "frontier"),
    ("Explanation", "explain"),
    ("Sweep", "sweep"),
    ("Check", "check"),
    ("Validation", "validate"),
    ("Calibration", "calibrate_samples"),
    ("MemoryReport", "memory"),
]
TYPES = {
    "integer": "int",
    "number": "float",
    "string": "str",
    "boolean": "bool",
    "null": "None",
    "array": "list[Any]",
    "object": "Record",
}
# Objects that have a class of their own at run time.
OWN = {("Plan", "plan"): "Entry", ("Plan", "point"): "Entry", ("Sweep", "sweep_row"): "Row"}


class Writer:
    def __init__(self):
        self.classes = {}  # name: lines of its body

    def add_reply(self, name, schema):
        definitions = schema.get("$defs", {})
        extra = BODIES.get(name, "")
        taken = set(re.findall(r"def (\w+)", extra)) | set(dir(hr.Reply))
        lines = self._members(schema, name, definitions, taken)
        self.classes[f"{name}(Reply)"] = [f'"""{DOCS[name]}"""', *extra.splitlines(), *lines]

    def _members(self, schema, owner, definitions, taken):
        required = set(schema.get("required", ()))
        lines = []
        for key, each in schema.get("properties", {}).items():
            if key in taken or not key.isidentifier() or keyword.iskeyword(key):
                continue
            kind = self._type(each, owner, key, definitions)
            lines.append(f"{key}: {kind}")
            about = self._described(each, definitions)
            if key not in required:
                about = ("Only where it applies. " + about).strip()
            if about:
                quoted = about.replace("\\", "\\\\").replace('"', "'")
                lines += textwrap.wrap(f'"""{quoted}"""', 92)
        return lines

    @staticmethod
    def _described(schema, definitions):
        if "description" in schema:
            return schema["description"]
        name = schema.get("$ref", "").rpartition("/")[2]
        return definitions.get(name, {}).get("description", "")

    def _type(self, schema, owner, key, definitions):
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            own = OWN.get((owner, name))
            if own and own != "Entry":
                self._class(own, definitions[name], owner, definitions, "Record")
            if own:
                return own
            target = definitions[name]
            if target.get("properties"):
                return self._class("_" + camel(name), target, owner, definitions)
            return self._type(target, owner, name, definitions)
        if "const" in schema:
            return type(schema["const"]).__name__
        if "enum" in schema:
            texts = [each for each in schema["enum"] if isinstance(each, str)]
            if len(texts) != len(schema["enum"]):
                return "Any"
            return "Literal[" + ", ".join(f'"{each}"' for each in texts) + "]"
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                kinds = [self._type(each, owner, key, definitions) for each in schema[choice]]
                return union(kinds)
        kinds = schema.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        return union([self._simple(kind, schema, owner, key, definitions) for kind in kinds])

    def _simple(self, kind, schema, owner, key, definitions):
        if kind == "array" and isinstance(schema.get("items"), dict):
            return f"list[{self._type(schema['items'], owner, key, definitions)}]"
        if kind == "object" and schema.get("properties"):
            return self._class(f"_{owner.lstrip('_')}{camel(key)}", schema, owner, definitions)
        return TYPES[kind]

    def _class(self, name, schema, owner, definitions, base="Record"):
        title = f"{name}({base})"
        if title not in self.classes:
            self.classes[title] = []  # it may hold itself
            extra = BODIES.get(name, "")
            taken = set(re.findall(r"def (\w+)", extra)) | set(dir(hr.Record))
            lines = self._members(schema, name, definitions, taken)
            self.classes[title] = [*extra.splitlines(), *lines]
        return name


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def union(kinds):
    kinds = list(dict.fromkeys(kinds))
    if not kinds or "Any" in kinds:
        return "Any"
    return kinds[0] if len(kinds) == 1 else f"Union[{', '.join(kinds)}]"


DOCS = {name: (getattr(hr, name).__doc__ or "").strip().splitlines()[0] for name, _ in REPLIES}
BODIES = {
    "Plan": (
        "@property\ndef plans(self) -> list[Entry]: ...\n"
        "@property\ndef pareto(self) -> list[Entry]: ...\n"
        "@property\ndef best(self) -> Entry: ..."
    ),
    "Estimate": "def launch(self, launcher: str | None = None) -> Launch: ...",
    "Row": "def flat(self) -> dict[str, Any]: ...",
    "Entry": (
        "@property\ndef arguments(self) -> dict[str, Any]: ...\n"
        "def estimate(self, *, progress: Progress = None, **options: Any) -> Estimate: ...\n"
        "def launch(self, launcher: str | None = None) -> Launch: ..."
    ),
}


def stubs():
    """Return the text of the stubs."""
    writer = Writer()
    for name, schema in REPLIES:
        writer.add_reply(name, hr.ask("schema", name=schema).to_dict())
    definitions = hr.ask("schema", name="plan").to_dict()["$defs"]
    writer._class("Entry", definitions["plan"], "Plan", definitions)
    text = [HEAD.read_text(encoding="utf-8")]
    for title, lines in writer.classes.items():
        text.append(f"class {title}:\n{textwrap.indent(chr(10).join(lines or ['...']), '    ')}\n")
    return "\n".join(text)


if __name__ == "__main__":
    sys.stdout.write(stubs())
