"""`ldp-budget`, its help, and `calibrate`: what it prints, and how it refuses."""

from __future__ import annotations

import json
import math

import pytest

import ldp_budget
from command_line import CommandLine

# -- calibrate -----------------------------------------------------------------------------------------------


def test_calibrate_json_equals_the_python_result(command: CommandLine) -> None:
    printed = command.json("calibrate", "oue", "--epsilon", "1", "--domain-size", "7", "--users", "944")
    oue = ldp_budget.mechanism("oue").calibrate(epsilon=1, domain_size=7)
    assert printed == json.loads(json.dumps(oue.describe(944)))
    assert printed["mechanism"] == "oue"
    assert printed["parameters"] == {"p": 0.5, "q": pytest.approx(1 / (math.e + 1))}
    assert (printed["guarantee"]["epsilon"], printed["guarantee"]["delta"]) == (1, 0)
    assert printed["utility"]["std_error"] > 0
