"""Validates JSON files against a JSON Schema: validate_schemas.py SCHEMA FILE...

Prints every violation as "file: /field: what is wrong" and exits with 1 if there was one, with 2 if the
schema is not one or a file cannot be read.
"""
import json
import sys

import jsonschema


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


def main(arguments):
    if len(arguments) < 2:
        print("usage: validate_schemas.py SCHEMA FILE...", file=sys.stderr)
        return 2
    schema_path, *paths = arguments
    schema = read(schema_path)
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
