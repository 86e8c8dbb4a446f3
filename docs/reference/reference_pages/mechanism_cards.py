"""The cards of the mechanisms: an overview, and the generated part of each card, its names and parameters.

The rest of a card is written by hand, in `docs/reference/mechanisms/NAME.md`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ldp_budget.registry.plugins import registry
from ldp_budget.sdk import parameters as fields
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.numeric_mechanism import NumericMechanism

from .python_pages import toctree

FOLDER = Path(__file__).parents[1] / "mechanisms"
LEADING = "grr"
"""The alias under which its mechanism is documented: the field's name for it."""


def mechanisms() -> dict[str, type[Mechanism]]:
    """Every mechanism, by the name of its card."""
    return {names_of(mechanism)[0]: mechanism for mechanism, _ in registry().items()}


def names_of(mechanism: type[Mechanism]) -> list[str]:
    """The name of the mechanism's card, then its other names."""
    return sorted((mechanism.name, *mechanism.aliases), key=LEADING.__ne__)


def missing() -> list[str]:
    """The mechanisms without a card."""
    return [name for name in mechanisms() if not (FOLDER / f"{name}.md").exists()]


def cards() -> dict[str, Iterator[str]]:
    """The generated part of each card, by its path."""
    assert not missing(), f"write docs/reference/mechanisms/NAME.md, like oue.md, for: {', '.join(missing())}"
    return {f"mechanisms/{name}.md": parameters(mechanism) for name, mechanism in mechanisms().items()}


def parameters(mechanism: type[Mechanism]) -> Iterator[str]:
    """The names of a mechanism, how its guarantee is checked, and a line for each parameter."""
    others = names_of(mechanism)[1:]
    yield ""
    if others:
        yield from (f"Other names: {', '.join(f'`{other}`' for other in others)}.", "")
    yield from (_row(field) for field in mechanism.fields.values())
    yield ""


def _row(field: fields.Field[Any]) -> str:
    unit = getattr(field, "unit", "")
    value = re.sub("^a number |^a whole number from |^one of ", "", field.expected) + (f", in {unit}" if unit else "")
    return f"- `--{field.name.replace('_', '-')}` ({given(field)}; {value}): {field.help}"


def given(field: fields.Field[Any]) -> str:
    """If a field must be given, and its default."""
    if field.required:
        return "required"
    if isinstance(field, fields.Flag):
        return "off by default"
    if field.default is not None:
        return f"default {field.default}"
    return "derived" if field.derived else "optional"


# -- the overview --------------------------------------------------------------------------------------------------


def overview() -> Iterator[str]:
    """The lines of mechanisms/index.md."""
    yield from (
        "# Mechanisms",
        "",
        "A card for each mechanism. [The guide](../../guides/choosing-a-mechanism.md) helps to choose one; [the table of "
        "proofs](../../evidence/proofs.md) says for which parameters a guarantee is proved.",
        "",
        "`--epsilon` is the privacy loss of one report, the natural logarithm of a ratio of probabilities. `lower`, `upper`, "
        "`maximum`, `sensitivity`, `scale` and `sigma` are in the unit of the users' values.",
        "",
        "The option `--domain-size 7` is the keyword `domain_size=7` in Python. A *derived* parameter replaces a target: build "
        "the mechanism from it in place of calibrating it. Seeds (`rng=1`) are for tests only. n is the number of users, and "
        "C_v that of the reports that support the answer v.",
    )
    kinds = {
        "Answers": lambda cls: issubclass(cls, FrequencyMechanism),
        "Numbers": lambda cls: issubclass(cls, NumericMechanism),
        "Others": lambda cls: True,
    }
    left = dict(mechanisms())
    for title, fits in kinds.items():
        named = {name: cls for name, cls in left.items() if fits(cls)}
        left = {name: cls for name, cls in left.items() if name not in named}
        if named:
            yield from ("", f"## {title}", "")
            for name, cls in named.items():
                others = ", ".join(f"`{other}`" for other in names_of(cls)[1:])
                yield f"- [{name}]({name}.md){f' ({others})' if others else ''}: {inspect.cleandoc(cls.summary)}"
    yield from toctree("*")
