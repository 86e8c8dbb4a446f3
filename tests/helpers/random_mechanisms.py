"""Random parameters for every built-in mechanism: what the checks of promises are run over."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import ldp_budget
from ldp_budget import InvalidParameter, Mechanism

Draw = Callable[[random.Random], dict[str, Any]]


def epsilon(rng: random.Random, low: float = 0.02, high: float = 8.0) -> str:
    """A loss spread evenly over the orders of magnitude, as a short decimal."""
    return f"{math.exp(rng.uniform(math.log(low), math.log(high))):.5g}"


def probability(rng: random.Random, low: float = 0.02, high: float = 0.98) -> str:
    return f"{rng.uniform(low, high):.4f}"


def some_range(rng: random.Random) -> dict[str, Any]:
    lower = round(rng.uniform(-100, 100), 3)
    return {"lower": lower, "upper": round(lower + math.exp(rng.uniform(-3, 6)), 3)}


def two_coins(rng: random.Random) -> dict[str, Any]:
    kinds = [
        {"epsilon": epsilon(rng)},
        {"truth": probability(rng), "yes": probability(rng)},
        {"p": probability(rng, 0.55), "q": probability(rng, 0.02, 0.5)},
    ]
    return rng.choice(kinds)


def substitution(rng: random.Random) -> dict[str, Any]:
    size = rng.choice([2, 3, 5, 10, 128, 10**6])
    draws = rng.randint(1, min(4, size - 1))
    target = rng.choice(
        [{"epsilon": epsilon(rng)}, {"gamma": f"{rng.uniform(1.2, 40):.4g}"}, {"rho1": 0.05, "rho2": 0.5}]
    )
    sampling = rng.choice(["replacement", "distinct"])
    return {**target, "domain_size": size, "draws": draws, "sampling": sampling, "ordered": rng.random() < 0.5}


def matrix(rng: random.Random) -> dict[str, Any]:
    size = rng.randint(2, 5)
    columns = []
    for own in range(size):
        weights = [rng.randint(1, 20) + (40 if report == own else 0) for report in range(size)]
        columns.append([f"{weight}/{sum(weights)}" for weight in weights])
    return {"matrix": [list(row) for row in zip(*columns, strict=True)]}


def rappor(rng: random.Random) -> dict[str, Any]:
    p = rng.uniform(0.05, 0.45)
    hashes = rng.randint(1, 3)
    shape = {"bits": rng.choice([32, 64, 128]), "hashes": hashes, "cohorts": rng.choice([1, 4, 32])}
    if rng.random() < 0.5:
        return {**shape, "f": probability(rng, 0.1, 0.9), "p": f"{p:.4f}", "q": f"{rng.uniform(p + 0.1, 0.98):.4f}"}
    one = float(epsilon(rng, 0.2, 3))
    return {**shape, "epsilon": f"{one:.5g}", "epsilon_lifetime": f"{one * rng.uniform(1.2, 3):.5g}"}


def bits(rng: random.Random) -> dict[str, Any]:
    buckets = rng.choice([2, 3, 5, 8, 100])
    chosen = rng.randint(1, min(buckets, 8))
    return {"epsilon": epsilon(rng), "buckets": buckets, "bits": chosen, "memoize": rng.random() < 0.5}


def one_bit(rng: random.Random) -> dict[str, Any]:
    found = {"epsilon": epsilon(rng, 0.05), "maximum": rng.choice([1, 10, 77])}
    return found if rng.random() < 0.5 else {**found, "rounding": 1, "flip": rng.choice(["0", "0.1", "0.25"])}


def gaussian(rng: random.Random) -> dict[str, Any]:
    delta = f"{10 ** rng.uniform(-30, -2):.4g}"
    return {"epsilon": epsilon(rng), "delta": delta, "method": rng.choice(["tail", "exact"]), **some_range(rng)}


def loloha(rng: random.Random) -> dict[str, Any]:
    lifetime = float(epsilon(rng, 0.2, 6))
    shape = {"domain_size": rng.choice([2, 7, 128, 10**6]), "hashes": rng.choice([1, 16, 64])}
    found = {
        **shape,
        "epsilon_lifetime": f"{lifetime:.4g}",
        "epsilon_first": f"{lifetime * rng.uniform(0.1, 0.9):.3g}",
    }
    return found if rng.random() < 0.5 else {**found, "g": rng.choice([2, 3, 8, 33])}


DRAWS: dict[str, Draw] = {
    "gaussian": gaussian,
    "laplace": lambda rng: {"epsilon": epsilon(rng), **some_range(rng)},
    "staircase": lambda rng: {"epsilon": epsilon(rng, 0.1), **some_range(rng)},
    "bounded-laplace": lambda rng: {"epsilon": epsilon(rng), **some_range(rng)},
    "bounded-staircase": lambda rng: {"epsilon": epsilon(rng), "gamma": probability(rng), **some_range(rng)},
    "randomized-response": two_coins,
    "unary-encoding": lambda rng: {
        "p": probability(rng, 0.5),
        "q": probability(rng, 0.02, 0.48),
        "domain_size": rng.choice([2, 7, 128]),
    },
    "sue": lambda rng: {"epsilon": epsilon(rng), "domain_size": rng.choice([2, 7, 128, 10**9])},
    "oue": lambda rng: {"epsilon": epsilon(rng), "domain_size": rng.choice([2, 7, 128, 10**9])},
    "random-substitution": substitution,
    "one-sided": lambda rng: {"g": probability(rng)},
    "subset-selection": lambda rng: {"epsilon": epsilon(rng), "domain_size": rng.choice([3, 10, 100])},
    "pgr": lambda rng: {"epsilon": epsilon(rng), "domain_size": rng.choice([2, 7, 100, 1000])},
    "hybrid": lambda rng: {"epsilon": epsilon(rng), **some_range(rng)},
    "random-threshold": lambda rng: {"epsilon": epsilon(rng), **some_range(rng)},
    "rounded-response": lambda rng: {"epsilon": epsilon(rng), **some_range(rng)},
    "square-wave": lambda rng: {"epsilon": epsilon(rng), **some_range(rng), "bins": rng.choice([2, 10, 256])},
    "matrix-substitution": matrix,
    "rappor": rappor,
    "cms": lambda rng: {"epsilon": epsilon(rng), "hashes": rng.choice([1, 16, 64]), "width": rng.choice([16, 256])},
    "hcms": lambda rng: {"epsilon": epsilon(rng), "hashes": rng.choice([1, 16, 64]), "width": rng.choice([16, 256])},
    "one-bit-mean": one_bit,
    "d-bit-flip": bits,
    "loloha": loloha,
    "heavy-hitters": lambda rng: {
        "epsilon": epsilon(rng),
        "length": rng.choice([1, 2, 5, 21]),
        "hashes": rng.choice([1, 16]),
    },
    "olh": lambda rng: {
        "epsilon": epsilon(rng),
        "domain_size": rng.choice([2, 100, 10**9]),
        "functions": rng.choice([16, 64]),
    },
    "grid": lambda rng: {
        "epsilon": epsilon(rng),
        "items": rng.choice([2, 3, 8, 16]),
        "domain_size": rng.choice([2, 5]),
        "asked": rng.choice([None, 1, 2]),
    },
    "ticks": lambda rng: {
        "epsilon": epsilon(rng),
        "domain_size": rng.choice([2, 4, 10, 40]),
        "at_most": rng.choice([1, 2, 3]),
        "pairs": rng.choice([False, True]),
    },
}


def random_mechanisms(name: str, count: int, seed: int = 1) -> list[Mechanism]:
    """`count` mechanisms called `name`, with parameters that go together."""
    rng = random.Random(f"{name} {seed}")
    found: list[Mechanism] = []
    while len(found) < count:
        try:
            found.append(ldp_budget.mechanism(name)(**DRAWS[name](rng)))
        except InvalidParameter:
            continue
    return found
