"""Checks what schemas say to each other: check_references.py SCHEMA...

Every reference names something that is there, every definition is referred to, and one that is shared is referred to
from two places at least. Prints what is wrong and exits with 1 if there is something.
"""
import sys
from collections import Counter
from pathlib import Path

from validate_schemas import SHARED, read


def references(value):
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref":
                yield item
            else:
                yield from references(item)


def names_something(schema, pointer):
    for token in pointer.removeprefix("#/").split("/"):
        if not isinstance(schema, dict) or token not in schema:
            return False
        schema = schema[token]
    return True


def main(paths):
    schemas = {Path(path).name: read(path) for path in paths}
    uses = Counter()
    mistakes = []
    for name, schema in schemas.items():
        for reference in references(schema):
            file, _, pointer = reference.partition("#")
            file = file or name
            if file not in schemas or not names_something(schemas[file], "#" + pointer):
                mistakes.append(f"{name}: {reference}: is not there")
            uses[file, pointer.split("/")[2]] += 1
    for name, schema in schemas.items():
        least = 2 if name == SHARED else 1
        for definition in schema.get("$defs", {}):
            if uses[name, definition] < least:
                mistakes.append(f"{name}: /$defs/{definition}: is referred to {uses[name, definition]} times")
    print("\n".join(mistakes))
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
