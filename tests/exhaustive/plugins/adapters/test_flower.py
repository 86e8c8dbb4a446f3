"""Flower's `LocalDpMod`: charged by its noise and twice its clipping norm, not by its statement.

The library cannot be installed with the service's packages. So the formula is compared with objects of a stand-in
for its class, and in the longer run against the library itself, in an environment of its own.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath
import pytest

from ldp_budget import InvalidParameter, NotSupported, guarantee_of
from ldp_budget.guarantees import Gaussian, Guarantee, Unbounded, from_json
from ldp_budget.registry.third_party import charged_for

ROOT = Path(__file__).resolve().parents[4]
HOME = "flwr.clientapp.mod.localdp_mod"
NAMES = ("clipping_norm", "sensitivity", "epsilon", "delta")


class LocalDpMod:
    """As the library's class looks to the adapter."""

    def __init__(self, **stated: Any) -> None:
        vars(self).update(stated)


LocalDpMod.__module__ = HOME


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType(HOME)
    module.LocalDpMod = LocalDpMod  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, HOME, module)
    return module


def mod(**changed: Any) -> LocalDpMod:
    return LocalDpMod(**{"clipping_norm": 1.0, "sensitivity": 2.0, "epsilon": 1.0, "delta": 1e-5, **changed})


def drawn(draw: random.Random) -> dict[str, float]:
    return {
        "clipping_norm": 10 ** draw.uniform(-2, 2),
        "sensitivity": 10 ** draw.uniform(-2, 2),
        "epsilon": 10 ** draw.uniform(-2, 1),
        "delta": 10 ** draw.uniform(-12, -0.5),
    }


def hold(found: Guarantee, stated: dict[str, float]) -> None:
    """Two updates, each of norm C, are 2C apart; (ε, δ) is that of normal noise of the mod's σ between them."""
    with mpmath.workdps(60):
        clip, sensitivity, epsilon, delta = (mpmath.mpf(stated[name]) for name in NAMES)
        mu = 2 * clip * epsilon / (sensitivity * mpmath.sqrt(2 * mpmath.log(1.25 / delta)))
        if not isinstance(found, Gaussian):
            assert isinstance(found, Unbounded)
            assert mu > 1e6
            return
        assert mu <= mpmath.mpf(str(found.mu)) <= mu * (1 + mpmath.mpf(10) ** -11)
        if found.bound is None:
            assert mu > 1000  # beyond any ε
            return
        ours, slack = mpmath.mpf(str(found.bound)), mpmath.mpf(str(found.slack))
        assert ours >= epsilon
        upper = mpmath.erfc((ours / mu - mu / 2) / mpmath.sqrt(2)) / 2
        lower = mpmath.erfc((ours / mu + mu / 2) / mpmath.sqrt(2)) / 2
        assert upper - mpmath.exp(ours) * lower <= slack <= delta * (1 + mpmath.mpf(10) ** -9)


def test_guarantee_is_of_the_noise_and_twice_the_norm(library: ModuleType) -> None:
    draw = random.Random("flower")
    for _ in range(100):
        stated = drawn(draw)
        hold(guarantee_of(LocalDpMod(**stated)), stated)


def test_guarantee_by_once_the_norm_would_be_half_the_loss(library: ModuleType) -> None:
    assert 1.0 <= guarantee_of(mod()).epsilon < 1.0 + 1e-9
    assert 1.6 < guarantee_of(mod(sensitivity=1.0)).epsilon < 1.7


def test_guarantee_without_noise_is_unbounded(library: ModuleType) -> None:
    for silent in (mod(sensitivity=0.0), mod(epsilon=math.inf), mod(delta=1.25), mod(delta=3.0)):
        assert guarantee_of(silent) == Unbounded()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"clipping_norm": math.nan}, "clipping_norm must be a number: got NaN"),
        ({"clipping_norm": 0.0}, "clipping_norm must be a finite number > 0: got 0.0"),
        ({"clipping_norm": math.inf}, "clipping_norm must be a finite number > 0: got inf"),
        ({"epsilon": 0.0}, "no finite noise at an epsilon or delta of 0"),
        ({"delta": 0.0}, "no finite noise at an epsilon or delta of 0"),
        ({"epsilon": -1.0}, "epsilon must be a number >= 0: got -1.0"),
        ({"sensitivity": "1"}, "sensitivity must be a number: got a builtins.str"),
        ({"__call__": print}, "this LocalDpMod has other attributes"),
    ],
)
def test_overwritten_attribute_is_refused(library: ModuleType, changed: dict[str, Any], told: str) -> None:
    with pytest.raises(NotSupported, match=told):
        guarantee_of(mod(**changed))


def test_other_object_of_flower_is_refused_by_name(library: ModuleType) -> None:
    class Strategy:
        __module__ = HOME
        __qualname__ = "Strategy"

    library.Strategy = Strategy  # type: ignore[attr-defined]
    with pytest.raises(NotSupported, match="Strategy is not a LocalDpMod"):
        guarantee_of(Strategy())

    class Mine(LocalDpMod):
        pass

    with pytest.raises(NotSupported, match="Mine is a user-defined subclass of flwr"):
        guarantee_of(Mine(**vars(mod())))


def test_object_of_that_name_without_the_library_is_unknown() -> None:
    with pytest.raises(InvalidParameter, match="LocalDpMod"):
        guarantee_of(mod())


def test_source_states_what_is_not_covered(library: ModuleType) -> None:
    made = charged_for(mod())
    assert made is not None
    assert "what is sent with the arrays is in the clear" in made.source


# -- the library itself ---------------------------------------------------------------------------------------------

SCRIPT = """
import json, sys
from flwr.clientapp.mod import LocalDpMod
from ldp_budget_adapters import guarantee_of, source_of
for line in sys.stdin:
    made = LocalDpMod(**json.loads(line))
    print(json.dumps([guarantee_of(made).to_json(), source_of(made)]))
"""


def test_installed_library_is_read_in_the_same_way(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    # The pip that is there serves it: one of its own would take longer to install than to run.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"]
    asked = [*pip, "flwr>=1.20", "pluggy>=1.4"]
    had = subprocess.run(asked, capture_output=True, text=True)
    if had.returncode:
        pytest.skip(f"flwr cannot be had here: {had.stderr.strip()[-200:]}")
    draw = random.Random("flower itself")
    stated = [drawn(draw) for _ in range(1000)]
    rooms = os.pathsep.join(str(ROOT / room) for room in ("accountant", "plugins"))
    done = subprocess.run(
        [python, "-c", SCRIPT],
        input="\n".join(map(json.dumps, stated)),
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": rooms, "FLWR_TELEMETRY_ENABLED": "0"},
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(stated)
    for line, each in zip(lines, stated, strict=True):
        promise, source = json.loads(line)
        assert source.startswith("flwr 1.")
        hold(from_json(promise), each)
