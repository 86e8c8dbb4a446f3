"""Makes the vectors that every client agrees on: what Python's own clients make of given bytes.

    python clients/vectors/make.py

writes a file for each case of `tests/helpers/client_cases.py`: the program, and for answers, secrets and streams the report.
Half of the streams force what is rare: ties with a threshold, the low bytes at, next to and far from it, and words
that repeat.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ldp_budget.sdk.client_program import Program

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1] / "tests" / "helpers"))

from client_cases import CASES, CONTEXT, corners, corners_program, vectors  # noqa: E402 - from the folder above
from ldp_budget.sdk.client_program import VERSION  # noqa: E402

COUNT = 40


def made(name: str, count: int = COUNT) -> dict[str, Any]:
    """The program of a case and `count` vectors."""
    mechanism = CASES[name]
    return _file(mechanism.client_program(), mechanism.fingerprint, vectors(name, count))


def _file(program: Program, context: str, rows: Iterable[tuple[Any, bytes | None, bytes, bytes]]) -> dict[str, Any]:
    definition = {"format": "ldp-budget client", "version": VERSION, "context": context, **program.to_json()}
    written = [
        {
            "answer": answer if isinstance(answer, float | str) or answer < 2**53 else str(answer),
            "secret": None if secret is None else secret.hex(),
            "stream": stream.hex(),
            "report": report.hex(),
        }
        for answer, secret, stream, report in rows
    ]
    return {"definition": definition, "vectors": written}


def write(folder: Path, count: int = COUNT) -> None:
    """A file for each case, and one for the program that has what they lack."""
    files = {name.replace(" ", "-"): made(name, count) for name in CASES}
    files["corners"] = _file(corners_program(), CONTEXT, corners(count))
    for name, file in files.items():
        text = json.dumps(file, separators=(",", ":")).replace('{"answer"', '\n{"answer"')
        (folder / f"{name}.json").write_text(f"{text}\n")


if __name__ == "__main__":
    write(FOLDER / "cases")
