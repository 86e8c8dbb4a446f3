"""Side tables of an estimate as people have them: separators, quotes, weight 0, rounded totals, texts that look alike."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget import InvalidParameter, NotSupported
from ldp_budget.reports.public_attributes import PublicAttributes, count_combinations
from ldp_budget_surveys.designs.moments import Moments, moments_of_counts
from ldp_budget_surveys.designs.raking import rake, read_totals, scaled_totals
from ldp_budget_surveys.designs.side_tables import read_table_rows
from ldp_budget_surveys.designs.survey_estimates import DesignOptions, weightless
from ldp_budget_surveys.designs.weights import equal_weights, table_weights

ROWS = [{"region": "north", "weight": "1"}, {"region": "south", "weight": "2"}]


def written(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    place = folder / "side.csv"
    place.write_text(text, encoding=encoding, newline="")
    return place


def moments(*combinations: tuple[str, ...], columns: tuple[str, ...] = ("region",)) -> Moments:
    return moments_of_counts(count_combinations([PublicAttributes.of(columns, combinations)]), columns)


@pytest.mark.parametrize(
    "text",
    [
        "region,weight\nnorth,1\nsouth,2\n",
        "region;weight\r\nnorth;1\r\nsouth;2\r\n",
        "sep=;\r\nregion;weight\r\nnorth;1\r\nsouth;2\r\n",
        "\ufeffregion\tweight\nnorth\t1\n\n \t \nsouth\t2\n",
        'region,weight\n"north", 1\u00a0\nsouth\u200b,2\n',
    ],
)
def test_side_table_has_the_same_rows_in_every_layout(tmp_path: Path, text: str) -> None:
    assert read_table_rows(written(tmp_path, text), "weights") == ROWS


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('region,weight\nnorth,1\n"south,2\n', r"row 3: a quote is not closed\. Add the missing"),
        ("region,weight\nnorth,1,\n", "3 in row 2"),
        ("region,region\nnorth,1\n", "distinct columns"),
        ("$FL2@(#) SPSS DATA FILE", r"an SPSS file.*pandas\.read_spss"),
    ],
)
def test_side_table_with_an_error_says_what_to_do(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        read_table_rows(written(tmp_path, text), "weights")


# -- weights -----------------------------------------------------------------------------------------------------


def test_weight_zero_is_a_weight_of_no_report() -> None:
    everyone = moments(("north",), ("south",), ("west",))
    rows = [*ROWS, {"region": "west", "weight": "0.0"}]
    assert weightless(everyone, DesignOptions(weights=rows)) == {("west",)}
    assert weightless(everyone, DesignOptions()) == frozenset()


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "1_0", "x", "1e-31"])
def test_weight_that_is_no_weight_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match=r"(A weight of 0 leaves reports out|underscores)"):
        table_weights(moments(("north",)), [{"region": "north", "weight": text}])


# -- totals ------------------------------------------------------------------------------------------------------


def totals(**variables: dict[str, object]) -> list[dict[str, str]]:
    return [
        {"variable": variable, "value": value, "total": str(total)}
        for variable, of in variables.items()
        for value, total in of.items()
    ]


@given(st.lists(st.integers(1, 999), min_size=2, max_size=6), st.sampled_from([1, 100]))
def test_rounded_percentages_are_scaled_to_their_whole(parts: list[int], whole: int) -> None:
    digits = 1 if whole == 100 else 3
    shares = {f"g{at}": round(whole * part / sum(parts), digits) for at, part in enumerate(parts)}
    if not all(shares.values()):
        return
    found = read_totals(totals(g=shares))["g"]
    assert math.isclose(math.fsum(found.values()), whole, rel_tol=1e-6)
    assert len(scaled_totals(totals(g=shares))) == (abs(math.fsum(shares.values()) - whole) > 1e-6 * whole)


def test_rounded_totals_of_several_variables_are_scaled_with_a_note() -> None:
    rows = totals(sex={"f": 51.0, "m": 48.9}, age={"young": 33.4, "middle": 33.3, "old": 33.3})
    assert scaled_totals(rows) == ["the totals of sex add up to 99.9: scaled to 100"]
    people = totals(sex={"f": 5100, "m": 4900}, age={"young": 5001, "old": 4990})
    assert scaled_totals(people) == ["the totals of age add up to 9991: scaled to 10000"]
    assert scaled_totals(totals(sex={"f": 5100, "m": 4900})) == []
    with pytest.raises(InvalidParameter, match="the same number of people"):
        read_totals(totals(sex={"f": 5100, "m": 4900}, age={"young": 5001, "old": 4000}))


@pytest.mark.parametrize(
    ("total", "why"),
    [("51,5", "decimal point: 51.5"), ("51 %", "without %"), ("1,234,567", "Write 1234567"), ("x", "numbers from 0")],
)
def test_total_that_is_no_number_says_what_to_write(total: str, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        read_totals(totals(sex={"f": total, "m": "48.5"}))


# -- raking ------------------------------------------------------------------------------------------------------


def two_by_two(counts: list[int]) -> Moments:
    cells = [("f", "y"), ("f", "o"), ("m", "y"), ("m", "o")]
    each = [cell for cell, count in zip(cells, counts, strict=True) for _ in range(count)]
    return moments(*each, columns=("sex", "age"))


def test_raking_that_converges_slowly_reaches_its_totals() -> None:
    everyone = two_by_two([1, 3000, 3000, 1])
    wanted = read_totals(totals(sex={"f": 51, "m": 49}, age={"y": 50.9, "o": 49.1}))
    weights = rake(everyone, wanted, equal_weights(everyone))
    cells = {
        cell: weight * count
        for cell, weight, count in zip(everyone.cells, weights.values, everyone.counts, strict=True)
    }
    assert np.isclose(sum(value for cell, value in cells.items() if cell[0] == "f"), 51, rtol=1e-9)
    assert np.isclose(sum(value for cell, value in cells.items() if cell[1] == "y"), 50.9, rtol=1e-9)


def test_raking_without_a_solution_ends() -> None:
    everyone = two_by_two([5, 0, 0, 5])
    with pytest.raises(NotSupported, match="does not converge"):
        rake(everyone, read_totals(totals(sex={"f": 60, "m": 40}, age={"y": 50, "o": 50})), equal_weights(everyone))
