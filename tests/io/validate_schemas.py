"""Validates JSON files against a JSON Schema: validate_schemas.py SCHEMA FILE...

Prints every violation as "file: /field: what is wrong" and exits with 1 if there was one, with 2 if the
schema is not one or a file cannot be read.
"""
import json
import sys
from pathlib import Path

import jsonschema

SHARED = "defs.schema.json"  # beside the schemas that refer to it


def unique_members(pairs):
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object gives a key twice")
    return members


def no_constant(name):
    raise ValueError(f"{name} is not JSON")


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file, object_pairs_hook=unique_members, parse_constant=no_constant)
    except (OSError, ValueError) as error:
        print(f"{path}: {error}", file=sys.stderr)
        raise SystemExit(2) from error


def read_schema(path):
    """A schema with what it shares with others inside it, so that no reference leaves it."""
    schema = read(path)
    shared = read(Path(path).with_name(SHARED))["$defs"]
    own = schema.get("$defs", {})
    if both := own.keys() & shared.keys():
        raise SystemExit(f"{path}: /$defs: {', '.join(sorted(both))} would hide what {SHARED} has")
    schema["$defs"] = {**shared, **own}
    return with_local_references(schema)


def with_local_references(value):
    if isinstance(value, list):
        return [with_local_references(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: item.removeprefix(SHARED) if key == "$ref" else with_local_references(item) for key, item in value.items()
    }


def main(arguments):
    if len(arguments) < 2:
        print("usage: validate_schemas.py SCHEMA FILE...", file=sys.stderr)
        return 2
    schema_path, *paths = arguments
    schema = read_schema(schema_path)
    kind = jsonschema.validators.validator_for(schema)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        print(f"{schema_path}: {error.json_path}: {error.message}", file=sys.stderr)
        return 2

    violations = 0
    for path in paths:
        for error in sorted(kind(schema).iter_errors(read(path)), key=lambda error: error.json_path):
            field = "".join(f"/{token}" for token in error.absolute_path)
            print(f"{path}: {field or '/'}: {error.message}", file=sys.stderr)
            violations += 1
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
