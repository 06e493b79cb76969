"""Checks what the printed schemas hold: check_schemas.py PROGRAM

Every reference names something that is there; every definition of schemas/defs.json and every description of
schemas/descriptions.json is in some schema. Prints what is wrong and exits with 1 if there is something.
"""
import sys
from pathlib import Path

from validate_schemas import read, schema_names, schema_of

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"


def members(value):
    """Every object in a value, itself first."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from members(item)


def names_something(schema, pointer):
    for token in pointer.removeprefix("#/").split("/"):
        if not isinstance(schema, dict) or token not in schema:
            return False
        schema = schema[token]
    return True


def main(program):
    schemas = {name: schema_of(program, name) for name in schema_names(program)}
    mistakes = []
    for name, schema in schemas.items():
        for member in members(schema):
            reference = member.get("$ref")
            if isinstance(reference, str) and not names_something(schema, reference):
                mistakes.append(f"{name}: {reference}: is not there")
    printed = {definition for schema in schemas.values() for definition in schema.get("$defs", {})}
    for definition in read(SCHEMAS / "defs.json")["$defs"]:
        if definition not in printed:
            mistakes.append(f"defs.json: {definition}: nothing refers to it")
    for name, texts in read(SCHEMAS / "descriptions.json").items():
        shown = {member["description"] for member in members(schemas[name]) if isinstance(member.get("description"), str)}
        for field, text in texts.items():
            if text not in shown:
                mistakes.append(f"descriptions.json: {name} {field}: is of no field")
    print("\n".join(mistakes))
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
