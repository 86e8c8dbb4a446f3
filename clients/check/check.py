#!/usr/bin/env python3
"""Check a file that proves itself:   python check.py FILE

FILE is the certificate of a total, which `check_total.py` checks, or a public definition, which `check_law.py` checks.
The three programs must be in one folder. They need the standard library of Python and nothing else.
"""

import json
import runpy
import sys
from pathlib import Path

CHECKERS = {"ldp-budget total": "check_total.py", "ldp-budget client": "check_law.py"}


def checker_of(data):
    """The name of the checker for a file with these bytes; None if there is none."""
    try:
        return CHECKERS.get(json.loads(data)["format"])
    except (LookupError, RecursionError, TypeError, ValueError):
        return None


if __name__ == "__main__":
    try:
        with open(sys.argv[1], "rb") as file:
            name = checker_of(file.read(2**24))  # the checker refuses a larger file
    except (IndexError, OSError) as error:
        sys.exit(f"REFUSED: {error!r}")
    if name is None:
        sys.exit("REFUSED: neither a certificate nor a public definition")
    runpy.run_path(str(Path(__file__).with_name(name)), run_name="__main__")
