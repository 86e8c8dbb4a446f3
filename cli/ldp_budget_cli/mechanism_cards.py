"""The card of a mechanism: what it is, when to use it, its parameters, an example and its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget.sdk.parameters import Flag

from .examples import example_options, example_text
from .tables import field_lines, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ldp_budget.sdk.mechanism import Mechanism
    from ldp_budget.sdk.parameters import Field

USES = {
    "gaussian": "numbers under a limit with δ > 0, above all many reports of one user",
    "laplace": "numbers without δ: the standard mechanism",
    "staircase": "numbers without δ: less noise than laplace at a large ε",
    "bounded-laplace": "numbers that must stay in their range; a mean of them is biased",
    "bounded-staircase": "numbers that must stay in their range, at a large ε; a mean of them is biased",
    "randomized-response": "questions with the answers yes and no",
    "unary-encoding": "probabilities p and q of your own; else prefer sue, oue or subset-selection",
    "sue": "many answers that are all frequent, in reports of one bit for each answer",
    "oue": "many answers, most of them rare, in reports of one bit for each answer",
    "random-substitution": "few answers: up to about 1.5 (e^ε + 1)",
    "subset-selection": "more answers than about 1.5 (e^ε + 1), with the least error",
    "matrix-substitution": "a channel of your own, as a matrix of probabilities",
    "cms": "words or URLs: more answers than you can list",
    "hcms": "words or URLs, in reports of a few bytes",
    "one-bit-mean": "the mean of a number, from one bit of each user",
    "d-bit-flip": "a histogram of buckets; with --memoize in repeated rounds",
    "rappor": "the same answer in every round, from a memoized Bloom filter",
    "declared": "a guarantee of another library: it is charged only",
}
"""The uses that each built-in mechanism suits."""


def card_lines(mechanism: type[Mechanism], row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the card. `row` is the row of the mechanism in `mechanisms --json`."""
    fields = {"name": mechanism.name, "aliases": row["aliases"], "definition": mechanism.summary}
    if mechanism.name in USES:
        fields["use for"] = USES[mechanism.name]
    width = terminal_width()
    yield from field_lines({name: value for name, value in fields.items() if value}, width)
    yield "parameters"
    yield from field_lines({_spelt(field): _described(field) for field in mechanism.fields.values()}, width, 2)
    checked = row["checked"] + (f": {row['proved']}" if row["proved"] else "")
    yield from field_lines(
        {"checked": checked, "plugin": f"{row['plugin']} {row['plugin_version']}", "source": mechanism.source}, width
    )
    yield ""
    options = example_options(mechanism, (name for name, field in mechanism.fields.items() if not field.derived))
    yield example_text(f"calibrate {mechanism.name} {options}".strip())


def _spelt(field: Field[Any]) -> str:
    return f"--{field.name.replace('_', '-')}"


def _described(field: Field[Any]) -> str:
    """Return the help of a field with its range, and its default if it has one."""
    kind = "" if isinstance(field, Flag) else f": {field.expected}"
    default = "" if field.default is None or isinstance(field, Flag) else f" [default: {field.default}]"
    return f"{field.help}{kind}{default}{' (required)' if field.required else ''}"
