"""Makes the vectors that every client agrees on: what Python's own clients make of given bytes.

    python clients/vectors/make.py

writes a file for each case of `tests/client_cases.py`: the program, and for answers, secrets and streams the report.
Half of the streams force what is rare: ties with a threshold, the low bytes at, next to and far from it, and words
that repeat.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1] / "tests"))

from client_cases import CASES, vectors  # noqa: E402 - from the folder above

COUNT = 40


def made(name: str, count: int = COUNT) -> dict[str, Any]:
    """The program of a case and `count` vectors."""
    mechanism = CASES[name]
    definition = {
        "format": "ldp-budget client",
        "version": 1,
        "context": mechanism.fingerprint,
        **mechanism.client_program().to_json(),
    }
    rows = [
        {
            "answer": answer if isinstance(answer, float) or answer < 2**53 else str(answer),
            "secret": None if secret is None else secret.hex(),
            "stream": stream.hex(),
            "report": report.hex(),
        }
        for answer, secret, stream, report in vectors(name, count)
    ]
    return {"definition": definition, "vectors": rows}


def write(folder: Path, count: int = COUNT) -> None:
    """A file for each case."""
    for name in CASES:
        lines = json.dumps(made(name, count), indent=None, separators=(",", ":")).replace('{"answer"', '\n{"answer"')
        (folder / f"{name.replace(' ', '-')}.json").write_text(f"{lines}\n")


if __name__ == "__main__":
    write(FOLDER / "cases")
