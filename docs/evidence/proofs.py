"""Write `proofs.md`: what `verify` proves of the built-in mechanism, over a grid of parameters.

    python docs/evidence/proofs.py

Takes some minutes. `tests/unit/docs/test_proof_page.py` compares some rows of the grid, and all of them with `--exhaustive`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import ldp_budget
from ldp_budget import InvalidParameter, Mechanism, verify

PAGE = Path(__file__).with_name("proofs.md")
EPSILONS = ("0.0001", "0.001", "0.01", "0.1", "0.3", "1", "3", "10", "20")
FEW = ("0.0001", "1", "20")
RANGE = {"lower": 0, "upper": 1}

INTRODUCTION = """# What `verify` proves

For which parameters is the promise of a built-in mechanism proved? `ldp-budget audit` proves the same for parameters of
your own. The page is made by `python docs/evidence/proofs.py`, and a test keeps it true.

- **Parameters**: every combination of the values in this cell; ε is one of {epsilons}. Numbers are from 0 to 1.
- **Proved**: how many combinations the mechanism accepts and `verify` proves (`exact`); `30 of 36`, if it leaves some
  unproven. The promise holds for every pair of inputs compared, in fractions of what is drawn (`channel`), or by the
  density of the noise in double precision (`density`). Of answers, every pair is compared, or a proof shows that no
  other pair is easier to distinguish. Hashed answers (`cms`, `hcms`, `rappor`, `loloha`, `heavy-hitters`) are proved
  by answers that share no cell, or by the law of every cell. Of numbers, the values that the mechanism names are
  compared, and the steps of the client program prove all others. Noise of a `sensitivity` alone has no client
  program, so it is unproven.
- **Law**: the client program is proved too: its whole reports, for every pair of answers. For the others, samples and the
  audit are used.

No accepted combination is violated.

| Mechanism | Parameters | Proved | Law |
| --- | --- | ---: | ---: |
"""


class Grid(NamedTuple):
    """A mechanism and the values that each of its parameters takes."""

    name: str
    values: dict[str, tuple[Any, ...]]
    fixed: dict[str, Any] | None = None

    def settings(self) -> Iterator[dict[str, Any]]:
        """Every combination."""
        for row in product(*self.values.values()):
            yield {**(self.fixed or {}), **dict(zip(self.values, row, strict=True))}

    @property
    def words(self) -> str:
        """The values, without the ε that are the same for all."""
        listed = [f"{name} = {', '.join(map(str, row))}" for name, row in self.values.items() if row != EPSILONS]
        return "; ".join([*(["ε"] if EPSILONS in self.values.values() else []), *listed])


MATRICES = tuple(
    [[f"{size}/{2 * size - 1}" if own == row else f"1/{2 * size - 1}" for own in range(size)] for row in range(size)]
    for size in (2, 5, 20, 60)
)

GRIDS = (
    Grid("gaussian", {"epsilon": EPSILONS, "delta": ("1e-3", "1e-9", "1e-30"), "method": ("tail", "exact")}, RANGE),
    Grid("gaussian", {"sigma": ("0.00001", "0.01", "1", "1e3", "1e6")}, RANGE),
    Grid("laplace", {"epsilon": EPSILONS}, RANGE),
    Grid("laplace", {"scale": ("0.001", "0.1", "1", "1e4")}, RANGE),
    Grid("staircase", {"epsilon": EPSILONS}, RANGE),
    Grid("staircase", {"epsilon": FEW, "gamma": (0, "0.1", "0.5", 1)}, RANGE),
    Grid("bounded-laplace", {"epsilon": EPSILONS}, RANGE),
    Grid("bounded-laplace", {"scale": ("0.05", "0.3", "1", "1e4")}, RANGE),
    Grid("bounded-staircase", {"epsilon": EPSILONS}, RANGE),
    Grid("bounded-staircase", {"epsilon": FEW, "gamma": (0, "0.1", "0.5", 1)}, RANGE),
    Grid("randomized-response", {"epsilon": EPSILONS}),
    Grid("one-sided", {"g": ("0.01", "0.3", "0.5", "0.99")}),
    Grid("unary-encoding", {"p": ("0.5", "0.9"), "q": ("0.01", "0.25"), "domain_size": (2, 6, 1000)}),
    Grid("sue", {"epsilon": EPSILONS, "domain_size": (2, 6, 1000, 10**6)}),
    Grid("oue", {"epsilon": EPSILONS, "domain_size": (2, 6, 1000, 10**6)}),
    Grid("random-substitution", {"epsilon": EPSILONS, "domain_size": (2, 6, 1000, 10**6), "draws": (1, 3)}),
    Grid(
        "random-substitution",
        {"epsilon": FEW, "domain_size": (2, 6, 1000, 10**6), "draws": (1, 3), "ordered": (False, True)},
        {"sampling": "distinct"},
    ),
    Grid(
        "random-substitution",
        {"epsilon": FEW, "domain_size": (6, 1000), "draws": (3,)},
        {"ordered": True},
    ),
    Grid("subset-selection", {"epsilon": EPSILONS, "domain_size": (3, 6, 100)}),
    Grid("pgr", {"epsilon": EPSILONS, "domain_size": (2, 6, 1000, 10**6)}),
    Grid("matrix-substitution", {"matrix": MATRICES}),
    Grid("cms", {"epsilon": EPSILONS, "hashes": (1, 64), "width": (8, 256)}),
    Grid("hcms", {"epsilon": EPSILONS, "hashes": (1, 64), "width": (8, 256)}),
    Grid(
        "rappor",
        {"bits": (8, 32, 128), "hashes": (1, 2, 4), "cohorts": (1, 64)},
        {"f": "0.5", "p": "0.25", "q": "0.75"},
    ),
    Grid("d-bit-flip", {"epsilon": EPSILONS, "buckets": (20,), "bits": (1, 4), "memoize": (False, True)}),
    Grid("one-bit-mean", {"epsilon": EPSILONS}, {"maximum": 1}),
    Grid("one-bit-mean", {"epsilon": EPSILONS, "flip": ("0", "0.2")}, {"maximum": 10, "rounding": 1}),
    Grid("hybrid", {"epsilon": EPSILONS}, RANGE),
    Grid("random-threshold", {"epsilon": EPSILONS}, RANGE),
    Grid("square-wave", {"epsilon": EPSILONS}, RANGE),
    Grid("rounded-response", {"epsilon": EPSILONS}, RANGE),
    Grid(
        "loloha",
        {"epsilon_lifetime": ("0.5", "2", "5"), "epsilon_first": ("0.1", "1", "2.5"), "domain_size": (6, 1000)},
        {"hashes": 64},
    ),
    Grid("heavy-hitters", {"epsilon": EPSILONS, "length": (2, 6, 20)}, {"hashes": 16}),
    Grid("olh", {"epsilon": EPSILONS, "domain_size": (2, 1000, 10**6)}),
    Grid("grid", {"epsilon": EPSILONS, "items": (2, 8, 20), "domain_size": (2, 5, 11)}),
    Grid("ticks", {"epsilon": EPSILONS, "domain_size": (4, 10, 100), "at_most": (1, 3, 10)}),
    Grid("ticks", {"epsilon": EPSILONS, "domain_size": (2, 10, 50), "pairs": (False, True)}),
)


def found_for(grid: Grid, settings: dict[str, Any]) -> str:
    """The proof of a combination: "exact" or "exact and law", or the verdict, or "refused"."""
    try:
        made: Mechanism = ldp_budget.mechanism(grid.name)(**settings)
    except InvalidParameter:
        return "refused"
    found = verify(made)
    if found.verdict != "holds":
        return found.verdict
    return "exact and law" if found.program == "holds" else "exact"


def row_of(grid: Grid) -> str:
    """The row of the table."""
    counts = Counter(found_for(grid, settings) for settings in grid.settings())
    accepted = counts.total() - counts["refused"]
    law = counts["exact and law"]
    proved = counts["exact"] + law
    words = "2, 5, 20 and 60 answers" if grid.name == "matrix-substitution" else grid.words
    fixed = "".join(f"; {name} = {value}" for name, value in (grid.fixed or {}).items() if grid.fixed != RANGE)
    cells = (f"`{grid.name}`", words + fixed, proved if proved == accepted else f"{proved} of {accepted}", law)
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    with ProcessPoolExecutor(2) as pool:
        rows = list(pool.map(row_of, GRIDS))
    PAGE.write_text(INTRODUCTION.format(epsilons=", ".join(EPSILONS)) + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
