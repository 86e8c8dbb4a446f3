"""Certificates of totals: the exact total of a fixed list of reports, in a form that needs no trust in this package.

A certificate names the reports, ε, δ and the grid on which `clients/check/check_total.py` proves the claim with whole
numbers. This module chooses the grid. The claim is at most 0.1 % above the certified ε of rule `exact`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget._files import canonical_json
from ldp_budget.composition import compose
from ldp_budget.composition.rules import canonical_charges
from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Approximate, FinitePair, Gaussian, Guarantee, Laplace, Memoised, Pure, SymmetricPair
from ldp_budget.guarantees.fixed_point import canonical, decimal

from .shipped_checkers import checker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from ldp_budget.composition.rules import HasGuarantee

FORMAT, VERSION = "ldp-budget total", 1

_CLOSE, _LATTICE, _LOOSER = "1.0009", "1.000001", ("1.003", "1.01", "1.03", "1.1")
"""Excess of the claimed ε over the exact one: usually, where no loss is rounded, and where nothing else is proved."""
_HALVINGS = 5
_MOST_CELLS = 12_000  # of a grid that all losses are multiples of
_VARIANCE = 0.01  # a grid with this squared step, relative to a report's variance, raises ε by about 0.1 %
_DIGITS = Context(prec=8, rounding=ROUND_CEILING)


def certificate(
    charges: Iterable[tuple[Guarantee | HasGuarantee, int]], *, delta: float | str | Decimal
) -> dict[str, Any]:
    """The certificate of the exact total of `charges` at `delta`, a JSON object that `written` writes.

    Parameters:
        charges: pairs of a mechanism, or a guarantee, and the number of its reports; all fixed beforehand.
        delta: the δ of the total, >= 0 and < 1.

    Raises:
        NotSupported: a guarantee has no loss distribution, or a loss that is unbounded or too large; or no grid
            within the limits of the checker proves the total.
        InvalidParameter: an argument has the wrong type or is out of range.
    """
    listed = canonical_charges(charges)
    total = compose(listed, delta=delta, rule="exact")
    if math.isinf(total.epsilon):
        raise NotSupported("the total has no finite ε, so there is nothing to certify", hint="Use a larger delta.")
    share, rows = decimal(delta), _rows(listed)
    tries = list(_tries(rows, share, decimal(total.epsilon)))
    finest = tries[-1][0]
    for grid, epsilon in [*tries, *((finest, _times(decimal(total.epsilon), looser)) for looser in _LOOSER)]:
        claim = {"format": FORMAT, "version": VERSION, "charges": rows, "epsilon": epsilon}
        claim |= {"delta": _plain(share), "grid": grid, **_precision(share)}
        if _is_proved(claim):
            return claim
    raise NotSupported(
        "the checker proves no ε near the exact one: a loss is too large, or there are too many reports"
    )


def written(claim: dict[str, Any]) -> bytes:
    """The bytes of a certificate: canonical JSON and a newline. The checker accepts no other form."""
    return f"{canonical_json(claim)}\n".encode()


def _is_proved(claim: dict[str, Any]) -> bool:
    try:
        _checker().check(written(claim))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return False
    return True


def _checker() -> ModuleType:
    return checker("check_total")


def _rows(charges: Iterable[tuple[Guarantee, int]]) -> list[dict[str, Any]]:
    """The charges of a certificate: each kind of loss once, sorted."""
    counts = Counter[str]()
    for guarantee, count in charges:
        counts[canonical_json(_row(guarantee))] += count
    return [{**json.loads(row), "count": count} for row, count in sorted(counts.items())]


def _row(guarantee: Guarantee) -> dict[str, Any]:
    """The loss of one report as the format states it."""
    match guarantee:
        case Memoised():  # as rule `exact` composes it
            return {"kind": Pure.kind, "bound": _plain(guarantee.cap)}
        case Gaussian():  # the point that it was calibrated to is no part of its loss
            return {"kind": guarantee.kind, "mu": _plain(guarantee.mu)}
        case FinitePair():
            return guarantee.to_json()
        case Pure() | SymmetricPair() | Approximate() | Laplace():
            stated = {name: _plain(decimal(text)) for name, text in guarantee.to_json().items() if name != "kind"}
            return {"kind": guarantee.kind, **stated}
    raise NotSupported(f"a certificate cannot state a guarantee of kind {guarantee.kind}")


def _plain(number: Decimal) -> str:
    """A decimal without an exponent."""
    return format(Decimal(canonical(number)), "f")


def _times(epsilon: Decimal, share: str) -> str:
    return _plain(_DIGITS.multiply(epsilon, Decimal(share)))


# -- grids -----------------------------------------------------------------------------------------------------


def _precision(delta: Decimal) -> dict[str, Any]:
    """Bits and tail that lose next to nothing at `delta`."""
    exponent = -math.frexp(float(delta))[1] if delta else 0
    return {
        "bits": min(192, max(96, exponent + 76)),
        "tail": _plain(Context(prec=2).multiply(delta, Decimal("1e-7"))),
    }


def _tries(rows: list[dict[str, Any]], delta: Decimal, epsilon: Decimal) -> Iterator[tuple[str, str]]:
    """Grids and the ε to claim on them, the cheapest first."""
    finite = [row for row in rows if row["kind"] != Gaussian.kind]
    reports = sum(row["count"] for row in finite)
    variance = math.fsum(row["count"] * _variance(row) for row in finite)
    spacing = _common(finite)
    if spacing and 24 * math.sqrt(variance) < _MOST_CELLS * spacing:
        for claimed in (_plain(epsilon), _times(epsilon, _LATTICE)):  # the first one is proved if ε is the plain sum
            yield str(spacing), claimed
    variance += math.fsum(row["count"] * float(row["mu"]) ** 2 for row in rows if row["kind"] == Gaussian.kind)
    step = math.sqrt(_VARIANCE * variance / max(1, reports))
    if not delta:
        yield "1", _plain(epsilon)
        step = 5e-4 * float(epsilon) / max(1, reports)
    for _ in range(_HALVINGS):
        yield _plain(Context(prec=2).create_decimal(step or 1)), _times(epsilon, _CLOSE)
        step /= 2


def _common(finite: list[dict[str, Any]]) -> Fraction:
    """The largest number of which all losses are multiples; 0 if there is none, and 1 if there are only Gaussians."""
    if any(row["kind"] in (Laplace.kind, FinitePair.kind) for row in finite):
        return Fraction(0)
    bounds = [Fraction(row["bound"]) for row in finite] or [Fraction(1)]
    below = math.lcm(*(bound.denominator for bound in bounds))
    return Fraction(math.gcd(*(int(bound * below) for bound in bounds)), below)


def _variance(row: dict[str, Any]) -> float:
    """The approximate variance of the loss of one report."""
    if row["kind"] == FinitePair.kind:
        pairs = [(float(Fraction(p)), float(Fraction(q))) for p, q in row["outcomes"]]
        losses = [(p, math.log(p / q)) for p, q in pairs if p and q]
        return max(0.0, sum(p * loss * loss for p, loss in losses) - sum(p * loss for p, loss in losses) ** 2)
    bound, tau = float(Fraction(row["bound"])), float(Fraction(row.get("tau", "1")))
    if row["kind"] == Laplace.kind:
        return 0.6 * bound * bound * min(1.0, 1 / (0.3 + bound))
    mean = tau * bound * math.tanh(bound / 2)
    return max(0.0, tau * bound * bound - mean * mean)
