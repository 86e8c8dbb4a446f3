"""The plugin tutorial: the list of hooks agrees with the code, and so does the discrete Gaussian's guarantee.

`test_docs.py` runs its blocks.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
from doc_blocks import blocks
from ldp_budget import FrequencyMechanism, Mechanism, NumericMechanism
from ldp_budget.guarantees import ZeroConcentrated
from ldp_budget.registry import hookspecs

TUTORIALS = Path(__file__).resolve().parents[3] / "docs" / "tutorials"


def test_discrete_gaussian_of_the_tutorial_has_the_divergence_that_it_states() -> None:
    """D_α ≤ ρα at several orders, with equality at integers (Canonne, Kamath and Steinke 2020, section 2.3)."""
    page = (TUTORIALS / "plugin-guarantees.md").read_text(encoding="utf-8")
    [code] = [block.text for block in blocks(page) if "class DiscreteGaussian" in block.text]
    names: dict[str, Any] = {"__name__": "tutorial", "ldp_budget": ldp_budget}
    exec(compile(code, "plugin-guarantees.md", "exec"), names)
    promise = names["DiscreteGaussian"](sigma=2, sensitivity=3).guarantee
    assert isinstance(promise, ZeroConcentrated)
    first, second = ([-((y - x) ** 2) / 8 for y in range(-60, 64)] for x in (0, 3))
    mass = math.fsum(map(math.exp, first))
    for order in (1.25, 1.5, 2.0, 3.0, 5.0):
        moment = math.fsum(math.exp(order * p + (1 - order) * q) for p, q in zip(first, second, strict=True)) / mass
        rate = math.log(moment) / (order - 1) / order
        assert rate <= float(promise.rho) * (1 + 1e-12)
        assert rate > 0.99 * float(promise.rho)


# -- every hook -----------------------------------------------------------------------------------------------


def hooks() -> list[str]:
    """The exact signature of each hook that the page must list."""
    plugins = (
        hookspecs.register_mechanisms,
        hookspecs.register_commands,
        hookspecs.guarantee_of,
        hookspecs.source_of,
    )
    found = [f"{hook.__name__}{_signature(hook)}" for hook in plugins]
    for owner in (Mechanism, FrequencyMechanism, NumericMechanism):
        names = {**owner.__annotations__, **vars(owner)}
        # Every class has `fields` of its own, which no class writes down but the first.
        own = (name for name in names if name != "fields" or owner is Mechanism)
        found += [_described(owner, name) for name in own if not name.startswith("_")]
    return found


def _described(owner: type[Mechanism], name: str) -> str:
    member = vars(owner).get(name)
    if isinstance(member, property):
        return f"@property {name}{_signature(member.fget)}"
    if isinstance(member, functools.cached_property):
        return f"@property {name}{_signature(member.func)}"
    if isinstance(member, classmethod):
        return f"@classmethod {name}{_signature(member.__func__)}"
    if inspect.isfunction(member):
        return f"{name}{_signature(member)}"
    if name in owner.fields:
        return f"{name}: a field"
    return f"{name}: {owner.__annotations__[name]}"


def _signature(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "")


@pytest.mark.slow
def test_every_hook_is_listed_with_its_exact_signature_and_nothing_else_is() -> None:
    section = (TUTORIALS / "plugin-hooks.md").read_text(encoding="utf-8").partition("\n## Every hook\n")[2]
    listed = re.findall(r"^- `([^`]+)`", section, flags=re.MULTILINE)
    assert sorted(listed) == sorted(hooks())
