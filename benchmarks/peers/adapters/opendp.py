"""OpenDP: measurements of one person's value, their combinators, and its privacy filter."""

from __future__ import annotations

import math
from typing import Any

from work import Collector, NotOfferedError

IMPORTS = ("opendp.prelude",)
MISSING: dict[str, str] = {}


def _prelude() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    return dp


def _number(dp: Any) -> tuple[Any, Any]:
    return dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


def _coin(dp: Any, epsilon: float) -> Any:
    return dp.m.make_randomized_response_bool(prob=math.exp(epsilon) / (1 + math.exp(epsilon)))


def calibrate() -> dict[str, Any]:
    dp = _prelude()

    def sigma(epsilon: float, delta: float) -> float:
        def noise(scale: float) -> Any:
            concentrated = dp.m.make_gaussian(*_number(dp), scale)
            return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(concentrated), delta)

        return float(dp.binary_search_param(noise, d_in=1.0, d_out=(epsilon, delta), T=float))

    return {"": sigma}


def compose() -> dict[str, Any]:
    dp = _prelude()

    def made(kind: str, size: float) -> Any:
        if kind == "rr":
            return _coin(dp, size)
        return (dp.m.make_laplace if kind == "laplace" else dp.m.make_gaussian)(*_number(dp), size)

    def concentrated(kind: str, size: float) -> Any:
        one = made(kind, size)
        return one if kind == "gaussian" else dp.c.make_pureDP_to_zCDP(one)

    def whole(reports: Any) -> Any:
        return 1 if all(kind == "rr" for kind, _, _ in reports) else 1.0

    def pure(delta: float, reports: Any) -> float:
        if any(kind == "gaussian" for kind, _, _ in reports):
            raise NotOfferedError("Gaussian noise has no pure ε")
        ones = [one for kind, size, count in reports for one in [made(kind, size)] * count]
        return float(dp.c.make_composition(ones).map(whole(reports)))

    def zcdp(delta: float, reports: Any) -> float:
        ones = [one for kind, size, count in reports for one in [concentrated(kind, size)] * count]
        total = dp.c.make_zCDP_to_approxDP(dp.c.make_composition(ones))
        return float(dp.c.make_fix_delta(total, delta).map(whole(reports))[0])

    return {"pure ε": pure, "zCDP": zcdp}


def spend() -> dict[str, Any]:
    dp = _prelude()
    made: dict[float, Any] = {}

    def account(capacity: float) -> Any:
        space = dp.atom_domain(T=bool), dp.discrete_distance(), dp.max_divergence()
        odometer = dp.c.make_fully_adaptive_composition(*space)
        queryable = dp.c.make_privacy_filter(odometer, d_in=1, d_out=float(capacity))(True)

        def accepted(epsilon: float) -> bool:
            if epsilon not in made:
                made[epsilon] = _coin(dp, epsilon)
            try:
                queryable(made[epsilon])
            except dp.OpenDPException as error:
                if "exhausted" not in str(error):
                    raise
                return False
            return True

        return accepted

    return {"filter": account}


def collect(mechanism: str, shape: dict[str, int], epsilon: float) -> Collector:
    dp = _prelude()
    answers = shape["answers"]
    if mechanism in ("oue", "rappor"):
        raise NotOfferedError("flips every bit of a vector with one probability, and hashes nothing")
    if mechanism not in ("rr", "grr"):
        raise NotOfferedError("no such mechanism")
    odds = math.exp(epsilon)
    if mechanism == "rr":
        coin = _coin(dp, epsilon)
        promised, draw = coin.map(1), lambda value: int(coin(bool(value)))
    else:
        chosen = dp.m.make_randomized_response(categories=list(range(answers)), prob=odds / (odds + answers - 1))
        promised, draw = chosen.map(1), chosen
    reason = "debiases bit vectors only"
    return Collector(
        epsilon=float(promised),
        randomize=lambda values, secrets: [draw(value) for value in values],
        rows=lambda reports: [[report] for report in reports],
        reasons={"aggregate": reason, "estimate": reason},
    )
