"""The table of operators in the specification of client programs."""

from __future__ import annotations

from collections.abc import Iterator

from ldp_budget.sdk.client_program import OPERATORS

KINDS = {
    "draw": "Drawn from the random stream. A draw is always at the top of a step.",
    "memo": "Drawn from the secret: the same result for the same secret. Also at the top of a step.",
    "hash": "Public hash functions. The seed is a text, not an expression. Words are 8 bytes, little-endian.",
    "each": "Applied number by number. Vectors of one length are combined place by place; a number is combined with "
    "every place.",
    "whole": "Applied to whole vectors.",
}


def operators() -> Iterator[str]:
    """Every operator with its meaning, by what it does with its arguments."""
    for kind, text in KINDS.items():
        yield from ("", text, "", "| operator | meaning |", "| --- | --- |")
        for name, operator in OPERATORS.items():
            if operator.kind == kind:
                yield f"| `{' '.join((name, *(operator.arguments or ('…',))))}` | {operator.sentence} |"
    yield ""
