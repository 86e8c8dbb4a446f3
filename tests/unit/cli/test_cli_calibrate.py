"""`ldp-budget`, its help, and `calibrate`: what it prints, and how it refuses."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import ldp_budget
from ldp_budget.registry.plugins import registry

if TYPE_CHECKING:
    from command_line import CommandLine

TOY = """
import ldp_budget
from ldp_budget.sdk.parameters import choice, flag, integer, real
from ldp_budget.guarantees import Pure
class Toy(ldp_budget.Mechanism):
    name = "toy"
    aliases = ("plaything",)
    summary = "a toy for tests"
    source = "nowhere"

    epsilon = real("privacy loss of one report", above=0, at_most=9)
    rounds = integer("how many rounds", at_least=1, default=2)
    order = choice("which order", "sorted", "drawn", default="sorted")
    visible = flag("whether the order can be seen")

    @property
    def parameters(self):
        return {"step": float(self.epsilon) / self.rounds}

    @property
    def guarantee(self):
        return Pure(self.epsilon)

@ldp_budget.hookimpl
def register_mechanisms(register):
    register(Toy)
"""


@pytest.fixture
def toy(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A third party's distribution, installed: a mechanism with every kind of field, and no word about options."""
    site = tmp_path_factory.mktemp("site")
    (site / "toy_box.py").write_text(TOY)
    information = site / "toy_box-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-box\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[ldp_budget]\ntoy = toy_box\n")
    monkeypatch.syspath_prepend(site)
    registry.cache_clear()
    yield
    registry.cache_clear()
    sys.modules.pop("toy_box", None)


# -- help ----------------------------------------------------------------------------------------------------


# -- calibrate -----------------------------------------------------------------------------------------------


def test_calibrate_json_equals_the_python_result(command: CommandLine) -> None:
    printed = command.json("calibrate", "oue", "--epsilon", "1", "--domain-size", "7", "--users", "944")
    oue = ldp_budget.mechanism("oue").calibrate(epsilon=1, domain_size=7)
    assert printed == json.loads(json.dumps(oue.describe(944)))
    assert printed["mechanism"] == "oue"
    assert printed["parameters"] == {"p": 0.5, "q": pytest.approx(1 / (math.e + 1))}
    assert (printed["guarantee"]["epsilon"], printed["guarantee"]["delta"]) == (1, 0)
    assert printed["utility"]["std_error"] > 0


# -- a third party's mechanism -------------------------------------------------------------------------------
