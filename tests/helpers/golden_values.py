"""The reference values of tests/data/golden.json, computed from their definitions with mpmath.

    python tests/helpers/golden_values.py

writes the file again: every row from its parameters, to 30 digits. `tests/unit/house/test_golden.py --exhaustive` computes them
too and compares. Only `laplace_delta` shares anything with the package, the vocabulary of `composition_oracle`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import mpmath

FILE = Path(__file__).parents[1] / "data" / "golden.json"
DIGITS = 30

mp = mpmath.mp.clone()
mp.dps = 80
mpf = mp.mpf
Parameters = dict[str, Any]


def number(text: Any) -> Any:
    """Exactly what is written: a decimal, a whole number or a fraction."""
    exact = Fraction(str(text))
    return mpf(exact.numerator) / exact.denominator


def solved(increasing: Callable[[Any], Any], target: Any) -> Any:
    """The positive x where a function reaches its target, between two that enclose it.

    Their magnitudes are bisected until the values at them nearly agree. From there on the function is all but a line,
    and where the line between these values meets the target is nearer than the middle; of an end that stays a second
    time the value is halved (the Illinois rule), which makes the next point fall on its side.
    """
    low, high, step = mpf(1), mpf(1), mpf(2)
    while (below := increasing(low) - target) > 0:
        low, step = low / step, step**2
    while (above := increasing(high) - target) < 0:
        high, step = high * step, step**2
    close, last = mpf(10) ** -(DIGITS + 5), 0
    while high / low - 1 > (close if above - below > abs(target) / 8 else mpf(10) ** -3):
        middle = mp.sqrt(low * high)
        found = increasing(middle) - target
        low, below, high, above = (low, below, middle, found) if found >= 0 else (middle, found, high, above)
    while high / low - 1 > close:
        point = (low * above - high * below) / (above - below)
        point = min(max(point, low * (1 + close / 3)), high * (1 - close / 3))
        found = increasing(point) - target
        side = 1 if found >= 0 else -1
        if side > 0:
            high, above, below = point, found, below / 2 if last == side else below
        else:
            low, below, above = point, found, above / 2 if last == side else above
        last = side
    return mp.sqrt(low * high)


# -- Gaussian noise -------------------------------------------------------------------------------------------


def normal_tail(x: Any) -> Any:
    return mp.erfc(x / mp.sqrt(2)) / 2


def gaussian_delta(epsilon: Any, mu: Any, method: str) -> Any:
    tail = normal_tail(epsilon / mu - mu / 2)
    return tail if method == "tail" else tail - mp.exp(epsilon) * normal_tail(epsilon / mu + mu / 2)


def gaussian_sigma(method: str) -> Callable[[Parameters], Any]:
    def value(row: Parameters) -> Any:
        epsilon, delta = number(row["eps"]), number(row["delta"])
        return number(row["sensitivity"]) / solved(lambda mu: gaussian_delta(epsilon, mu, method), delta)

    return value


def far_sigma(method: str) -> Callable[[Parameters], Any]:
    """The same where ε and δ are doubles near the ends of their range.

    The exact δ is a difference of two numbers that for a small ε agree in twice as many digits as ε has noughts.
    """

    def value(row: Parameters) -> Any:
        noughts = max(0, -math.log10(float(row["eps"]))) if method == "exact" else 0
        with mp.workdps(120 + 2 * math.ceil(noughts)):
            epsilon, delta, sensitivity = (mpf(float(row[name])) for name in ("eps", "delta", "sensitivity"))
            return sensitivity / solved(lambda mu: gaussian_delta(epsilon, mu, method), delta)

    return value


def gaussian_delta_of(method: str) -> Callable[[Parameters], Any]:
    def value(row: Parameters) -> Any:
        return gaussian_delta(number(row["eps"]), number(row["sensitivity"]) / number(row["sigma"]), method)

    return value


def gaussian_compose_delta(row: Parameters) -> Any:
    mu = mp.sqrt(row["k"]) * number(row["sensitivity"]) / number(row["sigma"])
    return gaussian_delta(number(row["eps"]), mu, "exact")


# -- mechanisms -----------------------------------------------------------------------------------------------


def oue(row: Parameters) -> Parameters:
    odds = mp.exp(number(row["eps"]))
    p, q = mpf(1) / 2, 1 / (odds + 1)
    return {
        "p": "0.5",
        "q": q,
        "var_per_n_f0": q * (1 - q) / (p - q) ** 2,
        "var_extra_per_unit_frequency": "1",  # (1 - p - q) / (p - q)
    }


def sue(row: Parameters) -> Parameters:
    root = mp.exp(number(row["eps"]) / 2)
    p, q = root / (root + 1), 1 / (root + 1)
    return {"p": p, "q": q, "var_per_n_f0": q * (1 - q) / (p - q) ** 2}


def bounded_staircase_eps_hat(row: Parameters) -> Any:
    """ln of the odds g of a window whose worst ratio is e^ε: g·Z(centre) = e^ε·Z(edge), Z(w) = w·g + 1 - w."""
    odds, edge = mp.exp(number(row["eps"])), number(row["gamma"])
    centre = min(2 * edge, mpf(1))
    linear = 1 - centre - odds * edge
    if not centre:
        return mp.log(odds)
    return mp.log((mp.sqrt(linear**2 + 4 * centre * odds * (1 - edge)) - linear) / (2 * centre))


def printed_eps_hat(row: Parameters) -> Parameters:
    epsilon, gamma = number(row["eps"]), number(row["gamma"])
    growth = mp.exp(epsilon)
    root = mp.sqrt((gamma * growth) ** 2 + 4 * gamma * (1 - gamma) * growth)
    printed = mp.log(2 * (1 - gamma) * growth / (root - gamma * growth))
    return {"value": printed, "true_eps": epsilon + mp.log(1 / gamma)}


def lext_substitution(row: Parameters) -> Parameters:
    """Distinct draws with weight γ for the own answer and 1 for every other."""
    size, draws, gamma = row["N"], row["l"], number(row["gamma"])
    missed = mp.fprod((size - 1 - j) / (gamma + size - 1 - j) for j in range(draws))
    own = 1 - missed
    other = (draws - own) / (size - 1)
    as_set = own / missed * (size - draws) / draws
    in_order = gamma * mp.fprod((gamma + size - 1 - j) / (size - j) for j in range(1, draws))
    return {
        "amplification_set": as_set,
        "eps_set": mp.log(as_set),
        "amplification_sequence": in_order,
        "eps_sequence": mp.log(in_order),
        "amplification_with_replacement": gamma**draws,
        "pi1": own,
        "pi0": other,
        "total_var_per_n_unbiased": (own * missed + (size - 1) * other * (1 - other)) / (own - other) ** 2,
        "paper_estimator_slope": (gamma + size - 1) / (gamma - 1) / draws * (own - other),
    }


def prob_any_duplicate(row: Parameters) -> Any:
    size, draws, gamma = row["N"], row["l"], number(row["gamma"])
    other = 1 / (gamma + size - 1)
    without = mp.ff(size - 1, draws) * other**draws
    return 1 - without - draws * gamma * mp.ff(size - 1, draws - 1) * other**draws


def rappor_eps_t(row: Parameters) -> Any:
    """All t reports of a bit say the same, at one of the h places where two filters differ, in both directions."""
    turned, reports = number(row["f"]) / 2, row["t"]
    p, q = number(row["p"]), number(row["q"])

    def odds(at_one: Any, at_zero: Any) -> Any:
        first, second = at_one**reports, at_zero**reports
        return ((1 - turned) * first + turned * second) / (turned * first + (1 - turned) * second)

    return row["h"] * (mp.log(odds(q, p)) + mp.log(odds(1 - p, 1 - q)))


def rappor_eps_inf(row: Parameters) -> Any:
    turned = number(row["f"]) / 2
    return 2 * row["h"] * mp.log((1 - turned) / turned)


def dbitflip_memo_pure_caps(row: Parameters) -> Parameters:
    epsilon, buckets, bits = number(row["eps"]), row["k"], row["d"]
    return {
        "single_report_eps": epsilon / 2 if bits == 1 else epsilon,
        "same_change_pattern_cap": bits * epsilon,
        "published_cap": min(bits + 1, buckets) * epsilon,
        "unrestricted_streams": "inf",
    }


def breach_gamma_bound(row: Parameters) -> Any:
    before, after = number(row["rho1"]), number(row["rho2"])
    return after * (1 - before) / (before * (1 - after))


def breach_max_posterior(row: Parameters) -> Any:
    before, gamma = number(row["rho1"]), number(row["gamma"])
    return gamma * before / (gamma * before + 1 - before)


# -- composition ----------------------------------------------------------------------------------------------


def apart(row: Parameters) -> Any:
    """τ, the mass of reports that speak for one of two answers."""
    epsilon = number(row["eps0"])
    odds = mp.exp(epsilon)
    if row["mechanism"] == "rr":
        return mpf(1)
    if row["mechanism"] == "oue":
        return mpf(1) / 2
    if row["mechanism"] == "sue":
        return (odds + 1) / (mp.exp(epsilon / 2) + 1) ** 2
    size = row["d"]
    if row["mechanism"] == "grr":
        return (odds + 1) / (odds + size - 1)
    chosen = row["w"]
    own = chosen * odds / (chosen * odds + size - chosen)
    return own * (size - chosen) / (size - 1) + (1 - own) * chosen / (size - 1)


def equal_reports(row: Parameters) -> Callable[[Any], Any]:
    """δ(ε) of k reports whose loss is ±ε₀ with mass τ and nothing else."""
    epsilon, count, some = number(row["eps0"]), row["k"], apart(row)
    low = some / (1 + mp.exp(epsilon))
    step = {1: some - low, -1: low, 0: 1 - some}
    law = {0: mpf(1)}
    for _ in range(count):
        after: dict[int, Any] = {}
        for (loss, mass), (more, share) in product(law.items(), step.items()):
            after[loss + more] = after.get(loss + more, mpf(0)) + mass * share
        law = after
    return lambda at: mp.fsum(
        mass * -mp.expm1(at - loss * epsilon) for loss, mass in law.items() if loss * epsilon > at
    )


def compose_eps_at_delta(row: Parameters) -> Parameters:
    curve, delta = equal_reports(row), number(row["delta"])
    return {"value": solved(lambda at: -curve(at), -delta), "tau": apart(row)}


def compose_delta_at_eps(row: Parameters) -> Parameters:
    return {"value": equal_reports(row)(number(row["eps"])), "tau": apart(row)}


def kov_delta_i(row: Parameters) -> Any:
    """Kairouz, Oh and Viswanath 2017, theorem 3.3."""
    epsilon, count, i = number(row["eps0"]), row["k"], row["i"]
    terms = (
        mp.binomial(count, flips) * (mp.exp((count - flips) * epsilon) - mp.exp((count - 2 * i + flips) * epsilon))
        for flips in range(i)
    )
    delta = mp.fsum(terms) / (1 + mp.exp(epsilon)) ** count
    return 1 - (1 - number(row.get("delta0", 0))) ** count * (1 - delta)


def murtagh_vadhan_delta(row: Parameters) -> Any:
    losses, target = [number(one) for one in row["eps_list"]], number(row["eps"])
    total = mpf(0)
    for signs in product((0, 1), repeat=len(losses)):
        kept = mp.fsum(loss for loss, sign in zip(losses, signs, strict=True) if sign)
        total += max(mp.exp(kept) - mp.exp(target + mp.fsum(losses) - kept), mpf(0))
    return total / mp.fprod(1 + mp.exp(loss) for loss in losses)


def laplace_delta(row: Parameters) -> Any:
    import composition_oracle as oracle
    from ldp_budget.guarantees import Laplace

    return oracle.true_delta([(Laplace(row["eps0"]), row["k"])])(oracle.mpf(row["eps"]))


def rho_of_response(row: Parameters) -> Any:
    epsilon = number(row["eps"])
    return epsilon * mp.tanh(epsilon / 2)


def rho_of_laplace(row: Parameters) -> Any:
    epsilon = number(row["eps"])
    return epsilon - 1 + mp.exp(-epsilon)


def zcdp_simple(row: Parameters) -> Any:
    rho, delta = number(row["rho"]), number(row["delta"])
    return rho + 2 * mp.sqrt(rho * mp.log(1 / delta))


def zcdp_best_order(row: Parameters) -> Any:
    """Canonne, Kamath and Steinke 2020, corollary 13: the least over the orders, where the derivative is nought."""
    rho, delta = number(row["rho"]), number(row["delta"])

    def epsilon(order: Any) -> Any:
        return rho * order + mp.log(1 / (order * delta)) / (order - 1) + mp.log(1 - 1 / order)

    best = mp.findroot(lambda order: mp.diff(epsilon, order), 1 + mp.sqrt(mp.log(1 / delta) / rho))
    return epsilon(best)


def losses_of(row: Parameters) -> list[Any]:
    listed = row["eps_list"]
    if isinstance(listed, str):
        each, _, count = listed.partition(" x ")
        return [number(each)] * int(count)
    return [number(one) for one in listed]


def filter_whitehouse(row: Parameters) -> Parameters:
    losses, delta = losses_of(row), number(row["delta"])
    squares = mp.fsum(loss**2 for loss in losses)
    return {"value": mp.sqrt(2 * mp.log(1 / delta) * squares) + squares / 2, "basic_sum": mp.fsum(losses)}


def advanced_drv(row: Parameters) -> Any:
    losses, delta = losses_of(row), number(row["delta"])
    squares = mp.fsum(loss**2 for loss in losses)
    return mp.sqrt(2 * mp.log(1 / delta) * squares) + mp.fsum(loss * mp.expm1(loss) for loss in losses)


# -- shuffling ------------------------------------------------------------------------------------------------


def clones(row: Parameters, share: Any) -> Any:
    """δ of Feldman, McMillan and Talwar: a fair coin for every clone among the others, a biased one for oneself."""
    odds, factor = mp.exp(number(row["eps0"])), mp.exp(number(row["eps"]))
    own, others = odds / (odds + 1), row["n"] - 1
    total = mpf(0)
    for count in range(others + 1):
        among = mp.binomial(others, count) * share**count * (1 - share) ** (others - count) / mpf(2) ** count
        for ones in range(count + 2):
            fewer, as_many = mp.binomial(count, ones - 1) if ones else mpf(0), mp.binomial(count, ones)
            first, second = own * fewer + (1 - own) * as_many, (1 - own) * fewer + own * as_many
            total += among * max(first - factor * second, mpf(0))
    return total


def clones_of_2021(row: Parameters) -> Any:
    return clones(row, mp.exp(-number(row["eps0"])))


def strong_clones(row: Parameters) -> Any:
    return clones(row, 2 / (mp.exp(number(row["eps0"])) + 1))


def closed_form_of_2021(row: Parameters) -> Any:
    odds, users, delta = mp.exp(number(row["eps0"])), row["n"], number(row["delta"])
    noise = 8 * mp.sqrt(odds * mp.log(4 / delta)) / mp.sqrt(users) + 8 * odds / users
    return mp.log(1 + (odds - 1) / (odds + 1) * noise)


DEFINITIONS: dict[str, Callable[[Parameters], Any]] = {
    "gaussian_sigma_tail": gaussian_sigma("tail"),
    "gaussian_sigma_exact": gaussian_sigma("exact"),
    "gaussian_sigma_far_tail": far_sigma("tail"),
    "gaussian_sigma_far_exact": far_sigma("exact"),
    "gaussian_delta_tail": gaussian_delta_of("tail"),
    "gaussian_delta_exact": gaussian_delta_of("exact"),
    "gaussian_compose_delta": gaussian_compose_delta,
    "oue": oue,
    "sue": sue,
    "bounded_staircase_eps_hat": bounded_staircase_eps_hat,
    "bounded_staircase_PRINTED_eps_hat_UNSAFE": printed_eps_hat,
    "lext_substitution_exact": lext_substitution,
    "prob_any_duplicate": prob_any_duplicate,
    "rappor_eps_t": rappor_eps_t,
    "rappor_eps_inf": rappor_eps_inf,
    "dbitflip_memo_pure_caps": dbitflip_memo_pure_caps,
    "breach_gamma_bound": breach_gamma_bound,
    "breach_max_posterior": breach_max_posterior,
    "compose_eps_at_delta": compose_eps_at_delta,
    "compose_delta_at_eps": compose_delta_at_eps,
    "kov_delta_i": kov_delta_i,
    "kov_delta_i_approx": kov_delta_i,
    "murtagh_vadhan_delta": murtagh_vadhan_delta,
    "laplace_delta": laplace_delta,
    "zcdp_rho_rr": rho_of_response,
    "zcdp_rho_laplace": rho_of_laplace,
    "zcdp_to_eps_simple": zcdp_simple,
    "zcdp_to_eps_cks_opt": zcdp_best_order,
    "filter_whitehouse_pure": filter_whitehouse,
    "advanced_drv_pure": advanced_drv,
    "shuffle_delta_strongclones_binaryRR": strong_clones,
    "shuffle_delta_clones_FMT21": clones_of_2021,
    "shuffle_eps_closed_FMT21": closed_form_of_2021,
}


def computed(row: dict[str, Any]) -> dict[str, Any]:
    """The row with every figure computed again from its parameters; a note stays."""
    found = DEFINITIONS[row["fn"]](row["params"])
    own = found if isinstance(found, dict) and "value" in found else {"value": found}
    return {**row, **{name: _written(value) for name, value in own.items()}}


def _written(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _written(one) for name, one in value.items()}
    if isinstance(value, str):
        return value
    return mp.nstr(value, DIGITS, strip_zeros=False, min_fixed=-mp.inf, max_fixed=mp.inf)


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))["values"]
    return found


def write() -> None:
    """One row a line."""
    lines = ",\n".join(json.dumps(computed(row), ensure_ascii=False) for row in rows())
    FILE.write_text(f'{{"values": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    write()
