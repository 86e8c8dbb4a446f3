"""The vectors of the checkers, random lists of reports, and the size of a checker."""

from __future__ import annotations

import ast
import io
import json
import random
import tokenize
from decimal import Decimal
from pathlib import Path
from typing import Any

from ldp_budget.guarantees import Approximate, Gaussian, Guarantee, Laplace, SymmetricPair

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "clients" / "vectors"
CHECKERS = ROOT / "clients" / "check"


def totals() -> list[tuple[str, bytes, str]]:
    """The name, the bytes and the verdict of each vector of a total."""
    rows = json.loads((VECTORS / "totals.json").read_text())
    return [
        (row["name"], bytes.fromhex(row["bytes"]) if "bytes" in row else row["text"].encode(), row["verdict"])
        for row in rows
    ]


def laws() -> list[tuple[str, dict[str, Any], str]]:
    """The name, the definition and the verdict of each vector of a law."""
    rows = json.loads((VECTORS / "laws.json").read_text())
    return [(row["name"], row["definition"], row["verdict"]) for row in rows]


def refusals(kind: str) -> list[dict[str, Any]]:
    """The vectors of refusals of a kind: forms, guarantees, leaks or failures."""
    rows: list[dict[str, Any]] = json.loads((VECTORS / "refusals.json").read_text())[kind]
    return rows


def verdict(checker: Any, data: bytes) -> str:
    """The verdict of a checker: proved, cannot or refused."""
    try:
        checker.check(data)
    except NotImplementedError:
        return "cannot"
    except Exception:
        return "refused"
    return "proved"


def random_list(rng: random.Random) -> tuple[list[tuple[Guarantee, int]], Decimal]:
    """A random list of one to three kinds of reports, and a δ."""
    charges: list[tuple[Guarantee, int]] = []
    for _ in range(rng.randrange(1, 4)):
        bound, count = Decimal(rng.randrange(50, 1500)) / 1000, rng.randrange(1, 60)
        kind = rng.choice(("pair", "pair", "laplace", "gaussian", "approximate"))
        if kind == "pair":
            charges.append((SymmetricPair(bound, Decimal(rng.randrange(200, 1001)) / 1000), count))
        elif kind == "laplace":
            charges.append((Laplace(bound), count))
        elif kind == "gaussian":
            charges.append((Gaussian(Decimal(rng.randrange(20, 500)) / 1000), count))
        else:
            charges.append((Approximate(bound, "1e-12"), count))
    return charges, rng.choice((Decimal("1e-3"), Decimal("1e-6"), Decimal("1e-9")))


def code_lines(source: str) -> int:
    """The number of lines of code, without blank lines, comments and docstrings."""
    described: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            text = node.body[0]
            described.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in layout:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - described)
