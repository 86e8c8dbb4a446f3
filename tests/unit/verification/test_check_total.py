"""`clients/check/check_total.py`: its functions enclose the truth, and it accepts no false claim."""

from __future__ import annotations

import ast
import random
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from checker_vectors import CHECKERS, code_lines, random_list, totals, verdict
from ldp_budget import compose
from ldp_budget.errors import NotSupported
from ldp_budget_verify.shipped_checkers import checker
from ldp_budget_verify.total_certificate import certificate, written

CHECK = checker("check_total")
PRECISE = mpmath.mp.clone()
PRECISE.dps = 160


def _real(x: Fraction) -> Any:
    return PRECISE.mpf(x.numerator) / x.denominator


@pytest.mark.parametrize(
    ("name", "most"), [("check_total.py", 160), ("check_law.py", 445), ("check.py", 25)], ids=lambda x: str(x)
)
def test_checker_source_is_short_and_without_floats(name: str, most: int) -> None:
    source = (CHECKERS / name).read_text()
    assert code_lines(source) <= most
    for node in ast.walk(ast.parse(source)):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float | complex))
        assert not (isinstance(node, ast.Name) and node.id == "float")
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            assert all(each.partition(".")[0] in sys.stdlib_module_names for each in names)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data", "expected"), totals(), ids=[name for name, _, _ in totals()])
def test_check_total_vector_has_its_verdict(name: str, data: bytes, expected: str) -> None:
    assert verdict(CHECK, data) == expected


@pytest.mark.parametrize("x", ["0", "1e-30", "0.37", "1", "7.5", "99.5", "250", "-0.2", "-3.7", "-60"])
def test_exp_encloses_the_exponential(x: str) -> None:
    low, high = CHECK.exp(Fraction(x))
    assert low <= PRECISE.exp(_real(Fraction(x))) * CHECK.ONE <= high
    assert (high - low) << 200 <= high + (1 << 202)


@pytest.mark.parametrize("z", ["-15", "-14.9", "-8", "-1", "-1e-9", "0", "1e-9", "0.3", "3", "14.9", "15"])
def test_normal_encloses_the_distribution_function(z: str) -> None:
    units = int(Fraction(z) * CHECK.ONE)
    low, high = CHECK.normal(units, False), CHECK.normal(units, True)
    assert low <= PRECISE.ncdf(PRECISE.mpf(units) / CHECK.ONE) * CHECK.ONE <= high
    assert high - low < 1 << 32


@pytest.mark.parametrize(
    ("mu", "y"),
    [("1", "1"), ("0.5", "3"), ("5", "60"), ("10", "150"), ("12", "190"), ("0.01", "0.02"), ("2", "-3"), ("2", "-50"),
     ("20", "400"), ("3", "20"), ("0.1", "-3"), ("0.1", "1.4"), ("0.1", "1.6"), ("40", "0")],
)  # fmt: skip
def test_gaussian_delta_is_just_above_the_truth(mu: str, y: str) -> None:
    m, at = _real(Fraction(mu)), _real(Fraction(y))
    truth = PRECISE.ncdf(m / 2 - at / m) - PRECISE.exp(at) * PRECISE.ncdf(-m / 2 - at / m)
    found = PRECISE.mpf(CHECK.gaussian(Fraction(mu), Fraction(y))) / CHECK.ONE
    assert truth <= found <= truth * (1 + PRECISE.mpf("1e-8")) + PRECISE.mpf("1e-48")


def _honest(claim: dict[str, Any], rng: random.Random) -> None:
    """Assert that a certificate is refused at an ε just below the product's lower bound, whatever its hints are."""
    lower = claim.pop("lower")
    if lower > 0:
        hints = {
            "grid": rng.choice([claim["grid"], "0.07", "0.3", "1", "7/10"]),
            "bits": rng.choice([claim["bits"], 64, 192]),
            "tail": rng.choice([claim["tail"], "0", "0.0001"]),
        }
        below = format(Decimal(lower) * Decimal("0.9999999"), ".12f")
        assert verdict(CHECK, written({**claim, **hints, "epsilon": below})) == "refused"


def _random_lists(count: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        charges, delta = random_list(rng)
        total = compose(charges, delta=delta, rule="exact")
        try:
            claim = certificate(charges, delta=delta)
        except NotSupported:
            pytest.fail(f"no certificate of {charges} at {delta}")
        assert total.lower <= float(claim["epsilon"]) <= total.epsilon * 1.001
        _honest({**claim, "lower": total.lower}, rng)


@pytest.mark.slow
def test_check_total_random_lists_none_accepted_below_the_lower_bound() -> None:
    _random_lists(5, seed=31)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(20))
def test_check_total_thousand_random_lists_none_accepted_below_the_lower_bound(seed: int) -> None:
    _random_lists(50, seed=seed)


def _stronger(claim: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A claim that is false, or malformed."""
    charges = [dict(charge) for charge in claim["charges"]]
    charge = rng.choice(charges)
    kind = rng.choice(("epsilon", "delta", "count", "loss", "hint"))
    if kind == "epsilon":
        return {**claim, "epsilon": format(Decimal(claim["epsilon"]) * Decimal(rng.randrange(10, 998)) / 1000, "f")}
    if kind == "delta":
        return {**claim, "delta": format(Decimal(claim["delta"]) * Decimal(rng.randrange(0, 98)) / 100, "f")}
    if kind == "count":
        charge["count"] = rng.choice(
            [0, -charge["count"], charge["count"] * 2 + 1, 10**12, str(charge["count"]), True]
        )
        if charge["count"] is True and claim["charges"][charges.index(charge)]["count"] == 1:
            charge["count"] = False
    elif kind == "loss":
        name = "mu" if "mu" in charge else "bound"
        charge[name] = rng.choice(
            [format(Decimal(charge[name]) * Decimal("1.2"), "f"), f"-{charge[name]}", "NaN", "1e-3"]
        )
    else:
        name = rng.choice(("grid", "bits", "tail"))
        return {**claim, name: rng.choice([None, -1, 0.5, "x", "-1", "1e-9", " 1", [], {}, "∞", 10**30, "10" * 99])}
    return {**claim, "charges": charges}


def _refused(count: int, seed: int) -> None:
    rng = random.Random(seed)
    made = []
    for _ in range(1 + count // 100):
        charges, delta = random_list(rng)
        lower = compose(charges, delta=delta, rule="exact").lower
        claim = certificate(charges, delta=delta)
        if lower > 0 and Decimal(claim["epsilon"]) * Decimal("0.998") < Decimal(lower):
            made.append(claim)
    found = 0
    while found < count:
        lie = _stronger(rng.choice(made), rng)
        if not _may_be_true(lie):
            found += 1
            assert verdict(CHECK, written(lie)) == "refused", lie


def _may_be_true(claim: dict[str, Any]) -> bool:
    """True if the product does not contradict a well-formed claim."""
    counts = [charge["count"] for charge in claim["charges"]]
    if not all(type(count) is int and count > 0 for count in counts):
        return False
    try:
        charges = [(_guarantee(charge), charge["count"]) for charge in claim["charges"]]
    except ValueError:
        return False
    texts = [value for charge in claim["charges"] for value in charge.values()]
    if any(text == "1e-3" for text in texts) or not isinstance(claim["grid"], str):
        return False
    return compose(charges, delta=claim["delta"], rule="exact").lower <= float(
        claim["epsilon"]
    ) and _hints_are_well_formed(claim)


def _hints_are_well_formed(claim: dict[str, Any]) -> bool:
    return verdict(CHECK, written({**claim, "epsilon": "1000000", "delta": "0.999"})) == "proved"


@pytest.mark.slow
def test_check_total_stronger_claims_and_broken_hints_are_refused() -> None:
    _refused(12, seed=7)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(10))
def test_check_total_thousand_stronger_claims_and_broken_hints_are_refused(seed: int) -> None:
    _refused(100, seed=seed)


@pytest.mark.slow
def test_check_total_flipped_bits_never_prove_a_smaller_total() -> None:
    data = next(data for name, data, _ in totals() if name == "50 reports of oue")
    rng = random.Random(3)
    for _ in range(300):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            claim, _ = CHECK.check(bytes(changed))
        except Exception:
            continue
        [charge] = claim["charges"]
        # What is accepted must be true: at most these reports, at no smaller ε and δ; a smaller list needs less.
        assert compose([(_guarantee(charge), charge["count"])], delta=claim["delta"], rule="exact").lower <= float(
            claim["epsilon"]
        )


def _guarantee(charge: dict[str, Any]) -> Any:
    from ldp_budget.guarantees import from_json

    return from_json({name: value for name, value in charge.items() if name != "count"})
