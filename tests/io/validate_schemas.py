"""Validates JSON files against the schema that the program prints: validate_schemas.py PROGRAM SCHEMA FILE...

Prints every violation as "file: /field: what is wrong" and exits with 1 if there was one, with 2 if the
schema is not one or a file cannot be read.
"""
import json
import subprocess
import sys

import jsonschema


def unique_members(pairs):
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object gives a key twice")
    return members


def no_constant(name):
    raise ValueError(f"{name} is not JSON")


def parse(text):
    return json.loads(text, object_pairs_hook=unique_members, parse_constant=no_constant)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file.read())
    except (OSError, ValueError) as error:
        print(f"{path}: {error}", file=sys.stderr)
        raise SystemExit(2) from error


def schema_names(program):
    return subprocess.run([program, "schema"], capture_output=True, text=True, check=True).stdout.split()


def schema_of(program, name):
    """The schema of this name, which is one."""
    printed = subprocess.run([program, "schema", name], capture_output=True, text=True, check=True).stdout
    schema = parse(printed)
    jsonschema.validators.validator_for(schema).check_schema(schema)
    return schema


def main(arguments):
    if len(arguments) < 3:
        print("usage: validate_schemas.py PROGRAM SCHEMA FILE...", file=sys.stderr)
        return 2
    program, name, *paths = arguments
    schema = schema_of(program, name)
    kind = jsonschema.validators.validator_for(schema)

    violations = 0
    for path in paths:
        for error in sorted(kind(schema).iter_errors(read(path)), key=lambda error: error.json_path):
            field = "".join(f"/{token}" for token in error.absolute_path)
            print(f"{path}: {field or '/'}: {error.message}", file=sys.stderr)
            violations += 1
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
