"""Reference cases of everyday questions: values of independent calculations with 40 digits, found by the product to ten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldp_budget import mechanism
from ldp_budget.sdk.confidence_intervals import binomial_ends
from ldp_budget_surveys.designs.moments import moments_of
from ldp_budget_surveys.designs.questions import AskedQuestion, table_law
from ldp_budget_surveys.designs.two_way import paired
from ldp_budget_surveys.designs.weighted_means import MeansEstimate, Survey
from ldp_budget_surveys.designs.weights import equal_weights
from ldp_budget_surveys.regression.channels import report_likelihood
from ldp_budget_surveys.regression.likelihood import MultinomialModel
from ldp_budget_surveys.regression.linear import linear
from ldp_budget_surveys.regression.sample import Sample

CASES: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data" / "reference_cases.json").read_text("utf-8"))
WITHOUT_COUNTERPART = {
    (
        "two-way-small-cells",
        "intervals",
    ): "their test has Cornish and Fisher's first term; ours has the gamma law, and a step",
    ("regression-logistic", "log_likelihood"): "no command prints a likelihood; its maximum is the coefficients",
}
"""The values that the product does not print, and why. All others are in a test below."""


def grr(epsilon: float, answers: int) -> Any:
    return mechanism("grr").calibrate(epsilon=epsilon, domain_size=answers)


def to_ten_digits(expected: Any) -> Any:
    return pytest.approx(np.array(expected), rel=1e-10, abs=1e-13)


def tick_values() -> dict[str, Any]:
    case = CASES["ticks-10-3"]
    given, expected = case["parameters"], case["expected"]
    made: Any = mechanism("ticks")(epsilon=given["epsilon"], domain_size=given["d"], at_most=given["m"])
    assert made.design == (given["k"], given["t"])
    law, reports = made.chances, np.array(case["reports"], np.uint8)
    found = made.estimate(reports)
    ends = [binomial_ends(count, len(reports), 0.95) for count in expected["counts"]]
    return {
        **dict(zip(("p", "q", "both", "one", "none"), law, strict=False)),
        "counts": found.support,
        "shares": found.shares,
        "population_std_errors": [(law.variance(share) / len(reports)) ** 0.5 for share in found.shares],
        "clopper_pearson_95_of_the_share_unclipped": (np.array(ends) - law.other) / law.gap,
        "co_occurrence_of_options_0_and_1": found.pairs(0, 1).share,
    }


def sample_of(data: Any, *columns: str) -> tuple[Any, Sample]:
    ones = np.ones(len(data["report"]))
    x = np.column_stack((ones, *(data[name] for name in columns)))
    return x, Sample.of(ones, data["weight"], np.array(data["stratum"]), np.array(data["cluster"]))


def linear_values() -> dict[str, Any]:
    case = CASES["regression-linear"]
    given, data = case["parameters"], case["data"]
    z = grr(given["epsilon"], given["d"]).contributions(np.array(data["report"], np.uint8))[:, given["target"]]
    x, sample = sample_of(data, "x1", "x2")
    fit = linear(x, z, sample, ("one", "x1", "x2"))
    errors = np.sqrt(fit.covariance.diagonal())
    return {"coefficients": fit.values, "std_errors": errors, "degrees_of_freedom": fit.freedom}


def logistic_values() -> dict[str, Any]:
    case = CASES["regression-logistic"]
    given, data = case["parameters"], case["data"]
    likelihood = report_likelihood(grr(given["epsilon"], given["d"]), np.array(data["report"], np.uint8))
    x, sample = sample_of(data, "x")
    model = MultinomialModel(likelihood, x, sample, ("one", "x"))
    found = model.coefficients(0.95)
    return {
        "coefficients_by_answer": [[each.estimate for each in found]],
        "std_errors_design": [[each.std_error for each in found]],
        "std_errors_model": [model.model_errors()],
        "degrees_of_freedom": model.freedom,
    }


def table_of(case: Any) -> MeansEstimate:
    given, data = case["parameters"], case["data"]
    made = [grr(given["epsilon_each"], given[name]) for name in ("rows", "columns")]
    asked = [AskedQuestion(str(place), each, tuple("abcd"), place) for place, each in enumerate(made)]
    reports = (np.array(data[name], np.uint8) for name in ("first", "second"))
    moments = moments_of(paired(*(each.contributions(some) for each, some in zip(made, reports, strict=True))))
    return Survey(moments, equal_weights(moments), law=table_law(*asked)).means()


def table_values() -> dict[str, Any]:
    rows, columns, cells = np.split(table_of(CASES["two-way-small-cells"]).values, [2, 6])
    return {"rows": rows, "columns": columns, "cells": cells.reshape(2, 4)}


ANSWERS = {
    "ticks-10-3": tick_values,
    "regression-linear": linear_values,
    "regression-logistic": logistic_values,
    "two-way-small-cells": table_values,
}


@pytest.mark.parametrize("name", CASES)
def test_values_of_a_reference_case_are_found_to_ten_digits(name: str) -> None:
    found = ANSWERS[name]()
    for key, expected in CASES[name]["expected"].items():
        if (name, key) not in WITHOUT_COUNTERPART:
            assert np.asarray(found[key]) == to_ten_digits(expected), key


def test_intervals_of_small_cells_are_near_those_of_another_expansion() -> None:
    case = CASES["two-way-small-cells"]
    low, high = (end[6:].reshape(2, 4) for end in table_of(case).interval())
    ends = np.array(case["expected"]["intervals"])
    assert np.abs(np.stack((low, high), axis=2) - ends).max() < 0.007
    # Half a step on both sides makes ours the wider ones.
    assert (high - low > ends[:, :, 1] - ends[:, :, 0]).all()
