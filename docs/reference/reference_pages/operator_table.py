"""The operators and the kinds of their arguments in the specification of client programs."""

from __future__ import annotations

from collections.abc import Iterator

from ldp_budget.sdk.client_program import OPERATORS
from ldp_budget.sdk.operator_forms import EACH, FORMS, HUGE, RANGES, VECTORS

KINDS = {
    "draw": "Drawn from the random stream. A draw is always at the top of a step.",
    "memo": "Drawn from the secret: the same result for the same secret. Also at the top of a step.",
    "hash": "Public hash functions. The seed is a text, not an expression. Words are 8 bytes, little-endian.",
    "each": "Applied number by number. Vectors of one length are combined place by place; a number is combined with "
    "every place.",
    "whole": "Applied to whole vectors.",
}


def operators() -> Iterator[str]:
    """The kinds of arguments, and every operator with its meaning, by what it does with its arguments."""
    yield from ("", "Each operator has the kinds of its arguments and of its result: a number, a vector, or", "")
    for wanted in dict.fromkeys(wanted for form in FORMS.values() for wanted in form.takes):
        if wanted not in ("number", "vector"):
            yield f"- *{wanted.replace('...', 'numbers')}*: {_meaning(wanted)}"
    for kind, text in KINDS.items():
        yield from ("", text, "")
        for name, operator in OPERATORS.items():
            if operator.kind == kind:
                takes, gives = FORMS[name]
                call = " ".join((name, *(operator.arguments or ("…",))))
                kinds = f"*{', '.join(takes).replace('...', 'numbers')} → {gives}*"
                yield f"- `{call}` ({kinds}): {operator.sentence.replace('**', '^')}"
    yield ""


def _meaning(wanted: str) -> str:
    if wanted == "text":
        return "at most 200 ASCII characters from space to tilde; no expression"
    if wanted == "...":
        return "any number of numbers"
    what = "a number" if wanted in ("number", "each") else ""
    if wanted in RANGES:
        what = " to ".join(map(_number, RANGES[wanted]))
        what = f"numbers from {what}" if wanted in VECTORS else f"a number from {what}"
    if wanted in VECTORS:
        return "a vector" + (f" of {what}" if what else "")
    return what + (", or a vector of such numbers" if wanted in EACH else "")


def _number(number: int) -> str:
    """A number as a power of two where it is one, or next to one."""
    for power, less in ((number, ""), (number + 1, " - 1")):
        if power >= 2**10 and power & (power - 1) == 0:
            return f"2^{power.bit_length() - 1}{less}"
    return f"-2^{(-number).bit_length() - 1}" if number < 0 and -number != HUGE else str(number)
