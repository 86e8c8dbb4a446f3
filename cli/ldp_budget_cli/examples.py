"""Example options of a mechanism, for the help of each command that takes MECHANISM."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ldp_budget.sdk.parameters import Flag

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ldp_budget.sdk.mechanism import Mechanism

EXAMPLE = "oue"
"""The mechanism in the example of a command."""

_VALUES: dict[str, str] = {
    "epsilon": "0.5",
    "delta": "1e-9",
    "domain_size": "7",
    "lower": "0",
    "upper": "10",
    "hashes": "16",
    "width": "256",
    "buckets": "8",
    "bits": "4",
    "p": "0.5",
    "q": "0.25",
    "length": "8",
    "epsilon_lifetime": "2",
    "epsilon_first": "1",
}
"""Values of the usual fields, in the order of an example."""
_ORDER = {name: place for place, name in enumerate(_VALUES)}

_EXAMPLES: dict[str, dict[str, str]] = {
    "rappor": {"bits": "64", "hashes": "2", "cohorts": "8", "f": "0.5", "p": "0.5", "q": "0.75"},
    "matrix-substitution": {"matrix": "matrix.json"},
    "unary-encoding": {"domain_size": "7", "p": "0.5", "q": "0.25"},
    "declared": {"epsilon": "0.3", "source": "'OpenDP 0.16, make_laplace'"},
}
"""The options of mechanisms that those values do not suit."""

_SHOWN = ("epsilon", "delta", "lower", "upper")
"""Fields that an example gives although the mechanism may be built without them."""


def example_options(mechanism: type[Mechanism], offered: Iterable[str]) -> str:
    """Return the options of an example as typed, of the fields that a command offers."""
    chosen = example_values(mechanism)
    names = set(offered)
    words = []
    for name, value in chosen.items():
        if name in names:
            spelling = f"--{name.replace('_', '-')}"
            words.append(spelling if isinstance(mechanism.fields[name], Flag) else f"{spelling} {value}")
    return " ".join(words)


def example_values(mechanism: type[Mechanism]) -> Mapping[str, Any]:
    """Return the values of the example's options, by field."""
    return _EXAMPLES.get(mechanism.name) or _first(mechanism.examples) or _usual(mechanism)


def _first(examples: tuple[Mapping[str, Any], ...]) -> Mapping[str, Any]:
    return examples[0] if examples else {}


def _usual(mechanism: type[Mechanism]) -> dict[str, str]:
    """Return the required fields and the usual ones; a field without a usual value gets its name as a placeholder."""
    return {
        name: _VALUES.get(name, name.upper())
        for name, field in sorted(mechanism.fields.items(), key=lambda item: _ORDER.get(item[0], len(_ORDER)))
        if field.required or (name in _SHOWN and not field.derived)
    }


# -- layout --------------------------------------------------------------------------------------------------

_WIDTH = 74


def example_text(*commands: str) -> str:
    """Return the lines of an example, without the leading `\\b`; a long command continues on the next line."""
    lines = [f"ldp-budget {command}" for command in commands]
    return "\n".join(["Example:", *(f"  {part}" for line in lines for part in _continued(line))])


def _continued(command: str) -> list[str]:
    """Return a command in lines that fit, each but the last with a backslash at its end; options stay whole."""
    parts = [""]
    for piece in re.split(r" (?=--)", command):
        joined = f"{parts[-1]} {piece}".lstrip() if len(parts) == 1 else f"{parts[-1]} {piece}"
        if parts[-1].strip() and len(joined) > _WIDTH - 2:
            parts[-1] += " \\"
            parts.append(f"  {piece}")
        else:
            parts[-1] = joined
    return parts
