"""``python -m headroom COMMAND ...`` runs the program that the wheel carries."""

import os
import pathlib
import sys


def program():
    """Return the path of the program: $HEADROOM_PROGRAM, or the file beside this package."""
    given = os.environ.get("HEADROOM_PROGRAM")
    return given or str(pathlib.Path(__file__).with_name("headroom"))


def main():
    """Become the program: its output, exit code and Ctrl-C are those of the command line."""
    path = program()
    try:
        os.execv(path, [path, *sys.argv[1:]])
    except OSError as error:
        print(
            f"headroom: error: {path}: cannot be run ({error.strerror}): install the wheel, or set "
            "HEADROOM_PROGRAM to the program's path",
            file=sys.stderr,
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
