"""The plugin tutorial: the list of hooks agrees with the code, and so does the discrete Gaussian's guarantee.

`test_page_blocks.py` runs its blocks.
"""

from __future__ import annotations

import inspect
import math
import re
from pathlib import Path
from typing import Any

import ldp_budget
from doc_blocks import blocks
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


def test_every_hook_is_listed_with_its_exact_signature_and_nothing_else_is() -> None:
    plugins = (
        hookspecs.register_mechanisms,
        hookspecs.register_commands,
        hookspecs.guarantee_of,
        hookspecs.source_of,
    )
    listed = re.findall(r"^- `([^`]+)`", (TUTORIALS / "plugin-publish.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == [hook.__name__ + str(inspect.signature(hook)).replace("'", "") for hook in plugins]
