"""Raking to known totals: a published table, errors that name the category, and the variance."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget_surveys.designs.moments import Moments, moments_of
from ldp_budget_surveys.designs.raking import rake, read_totals
from ldp_budget_surveys.designs.weighted_means import Survey
from ldp_budget_surveys.designs.weights import Weights, equal_weights, table_weights


def crossed(table: list[list[int]]) -> Moments:
    """Return moments with these numbers of reports, in the rows r0, r1, … and the columns c0, c1, …"""
    rows = [(f"r{r}", f"c{c}") for r, row in enumerate(table) for c, count in enumerate(row) for _ in range(count)]
    return moments_of(np.ones((len(rows), 1)), {"row": [r for r, _ in rows], "column": [c for _, c in rows]})


def totals(rows: list[float], columns: list[float]) -> dict[str, dict[str, float]]:
    return {
        "row": {f"r{place}": total for place, total in enumerate(rows)},
        "column": {f"c{place}": total for place, total in enumerate(columns)},
    }


def test_rake_of_a_published_table_gives_its_fitted_cells() -> None:
    # The example of the article "Iterative proportional fitting" of the English Wikipedia.
    table = [[40, 30, 20, 10], [35, 50, 100, 75], [30, 80, 70, 120], [20, 30, 40, 50]]
    fitted = [
        [64.61, 46.28, 35.42, 3.83],
        [49.95, 68.15, 156.49, 25.37],
        [56.70, 144.40, 145.06, 53.76],
        [28.74, 41.18, 63.03, 17.03],
    ]
    moments = crossed(table)
    raked = rake(moments, totals([150, 300, 400, 150], [200, 300, 400, 100]), equal_weights(moments))
    cells = (raked.values * moments.counts).reshape(4, 4)
    assert np.allclose(cells, fitted, atol=0.06)
    assert np.allclose(cells.sum(axis=1), [150, 300, 400, 150])


def test_rake_on_one_variable_is_post_stratification() -> None:
    moments = crossed([[2, 3], [4, 1]])
    raked = rake(moments, {"row": {"r0": 60, "r1": 40}}, equal_weights(moments))
    assert np.allclose(raked.values, [12, 12, 8, 8])


def test_rake_on_a_cross_meets_each_cell() -> None:
    moments = crossed([[2, 3], [4, 1]])
    wanted = {"row:column": {"r0:c0": 10, "r0:c1": 20, "r1:c0": 30, "r1:c1": 40}}
    assert np.allclose(rake(moments, wanted, equal_weights(moments)).values * moments.counts, [10, 20, 30, 40])


def test_rake_starts_from_the_given_weights() -> None:
    moments = crossed([[1, 1], [1, 1]])
    base = Weights(np.array([1.0, 3.0, 1.0, 3.0]))
    raked = rake(moments, {"row": {"r0": 8, "r1": 8}}, base)
    assert np.allclose(raked.values, [2, 6, 2, 6])


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ({"row": {"r0": 5}}, "none for 'r1'"),
        ({"row": {"r0": 5, "r1": 0}}, "total 0 for 'r1'"),
        ({"row": {"r0": 5, "r1": 5, "r2": 5}}, "no report from 'r2'"),
        ({"sex": {"m": 5}}, "public column"),
    ],
)
def test_rake_without_a_category_names_it(wanted: dict[str, dict[str, float]], named: str) -> None:
    moments = crossed([[2, 3], [4, 1]])
    with pytest.raises(InvalidParameter, match=named):
        rake(moments, wanted, equal_weights(moments))


def test_rake_that_cannot_meet_all_totals_says_so() -> None:
    moments = crossed([[5, 0], [0, 5]])
    with pytest.raises(NotSupported, match="does not converge"):
        rake(moments, totals([60, 40], [30, 70]), equal_weights(moments))


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([{"variable": "a", "value": "x"}], "columns variable, value and total"),
        ([{"variable": "a", "value": "x", "total": "many"}], "'many'"),
        ([{"variable": "a", "value": "x", "total": "1"}] * 2, "two for a x"),
        ([{"variable": v, "value": "x", "total": t} for v, t in (("a", "10"), ("b", "11"))], "11 in b"),
    ],
)
def test_read_totals_of_a_wrong_table_names_the_cell(rows: list[dict[str, str]], named: str) -> None:
    with pytest.raises(InvalidParameter, match=named):
        read_totals(rows)


@pytest.mark.slow
def test_raked_variance_agrees_with_the_jackknife() -> None:
    # The jackknife rakes again without each respondent: it knows nothing of residuals.
    rng = np.random.default_rng(7)
    n = 160
    row, column = rng.integers(2, size=n), rng.integers(3, size=n)
    z = rng.normal(size=n) + 2 * row - column

    def mean(kept: np.ndarray) -> tuple[float, float]:
        moments = moments_of(
            z[kept, None], {"row": [f"r{x}" for x in row[kept]], "column": [f"c{x}" for x in column[kept]]}
        )
        wanted = totals([70, 90], [50, 60, 50])
        found = Survey(moments, rake(moments, wanted, equal_weights(moments))).means()
        return float(found.values[0]), float(found.std_errors[0])

    each = np.array([mean(np.arange(n) != left)[0] for left in range(n)])
    jackknife = ((n - 1) / n * ((each - each.mean()) ** 2).sum()) ** 0.5
    assert mean(np.arange(n) >= 0)[1] == pytest.approx(jackknife, rel=0.06)


@pytest.mark.parametrize("text", ["1e308", "1e-320", "inf", "nan", "-1", "many"])
def test_weights_and_totals_that_overflow_or_vanish_are_refused(text: str) -> None:
    """Two weights of 1e308 add up to infinity, and every estimate would not be a number."""
    moments = moments_of(np.ones((4, 1)), {"row": ["a", "a", "b", "b"]})
    with pytest.raises(InvalidParameter, match=r"weights must be numbers from 1e-30 to 1e\+30: got '"):
        table_weights(moments, [{"row": "a", "weight": text}, {"row": "b", "weight": text}])
    if text != "1e-320":  # a total may be 0
        with pytest.raises(InvalidParameter, match=r"rake must be totals that are numbers from 0 to 1e\+30: got '"):
            read_totals([{"variable": "row", "value": each, "total": text} for each in "ab"])
