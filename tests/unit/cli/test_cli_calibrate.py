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


OUE = ["oue", "--epsilon", "1", "--domain-size", "7"]
GAUSSIAN = ["gaussian", "--epsilon", "1", "--delta", "0.001"]


@pytest.mark.parametrize(
    ("arguments", "option", "expected", "found"),
    [
        (["oue", "--domain-size", "7"], "--epsilon", "a number > 0", "is missing"),
        (["oue", "--epsilon", "1"], "--domain-size", "a whole number from 2", "is missing"),
        *((["oue", "--epsilon", bad, "--domain-size", "7"], "--epsilon", "a number > 0", f"got {bad}") for bad in
          ("0", "-1", "nan", "inf", "-inf", "1e-600000", "1e600000", "one", "")),
        *((["oue", "--epsilon", "1", "--domain-size", bad], "--domain-size", "a whole number from 2", f"got {bad}")
          for bad in ("1", "0", "-7", "7.5", "nan", "1e30", "seven")),
        *((["gaussian", "--epsilon", "1", "--delta", bad], "--delta", "< 1", f"got {bad}") for bad in
          ("0", "1", "1.5", "-0.1", "nan", "inf")),
        ([*GAUSSIAN, "--method", "best"], "--method", "one of tail, exact", "got best"),
        ([*GAUSSIAN, "--lower", "0", "--upper", "0"], "--upper", "greater than lower, 0", "got 0"),
        ([*GAUSSIAN, "--lower", "0", "--upper", "inf"], "--upper", "a finite number", "got inf"),
        ([*GAUSSIAN, "--lower", "0"], "--upper", "a finite number", "is missing"),
        ([*GAUSSIAN, "--sensitivity", "0"], "--sensitivity", "a number >", "got 0"),
        (["randomized-response"], "--epsilon", "Give --epsilon, or --truth and --yes", "is missing"),
        (["randomized-response", "--truth", "1", "--yes", "0.5"], "--truth", "a number > 0 and < 1", "got 1"),
        ([*OUE, "--users", "0"], "--users", "a whole number >= 1", "got 0"),
        ([*OUE, "--users", "many"], "--users", "integer", "many"),
    ],
)  # fmt: skip
def test_calibrate_with_a_bad_target_names_option_range_and_value(
    command: CommandLine, arguments: list[str], option: str, expected: str, found: str
) -> None:
    message = command.error("calibrate", *arguments, "--json", code=2)
    assert option in message
    assert expected in message
    assert found in message


# -- a third party's mechanism -------------------------------------------------------------------------------
