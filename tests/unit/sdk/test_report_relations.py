"""Relations of reports to answers: counts, columns and refused reports, whatever the form of the report."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Pure
from ldp_budget.sdk import FrequencyMechanism, integer, report_relations
from ldp_budget.sdk.client_program import Program, answers, packed, uint, whole

_HALF = whole(2**63)
FORMS = ("row", "answer", "set", "sequence", "marked")


class Made(FrequencyMechanism):
    """A mechanism without `support`, whose reports have one of the forms; its probabilities are of no interest."""

    name = "made-for-relations"
    domain_size = integer("answers", at_least=2, default=5)
    form = integer("place in FORMS", at_least=0, default=0)

    @property
    def guarantee(self) -> Pure:
        return Pure(1)

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        return [(Fraction(3, 4), Fraction(1, 4))]

    def client_program(self) -> Program:
        d = self.domain_size
        steps: dict[str, list[tuple[str, Any]]] = {
            "row": [("report", ["bits", _HALF, d])],
            "answer": [("report", ["below", d])],
            "set": [("report", ["subset", d, 2])],
            "sequence": [("report", ["belows", d, 3])],
            "marked": [
                ("places", ["subset", d, 2]),
                ("marks", ["bits", _HALF, 2]),
                ("report", ["add", ["mul", 2, "places"], "marks"]),
            ],
        }
        form = FORMS[self.form]
        layouts = {
            "row": packed("report", d),
            "answer": uint("report", d - 1),
            "set": uint("report", d - 1, 2),
            "sequence": uint("report", d - 1, 3),
            "marked": uint("report", 2 * d - 1, 2),
        }
        return Program(answers(self.domain), tuple(steps[form]), layouts[form])


@given(st.integers(2, 9), st.sampled_from(range(len(FORMS))), st.integers(0, 40), st.integers(0, 99))
def test_relation_counts_and_columns_agree_for_every_form(size: int, form: int, users: int, seed: int) -> None:
    mechanism = Made(domain_size=size, form=form)
    reports = mechanism.randomize(np.zeros(users, int), rng=seed)
    relation = report_relations.relation_of(mechanism.client_program(), size)
    rows = relation.check(reports)
    each = relation.of_each(rows)
    assert each.shape == (users, size)
    for answer in range(size):
        assert each[:, answer].tolist() == relation.of(rows, answer).tolist()
    count, found = relation.counts(reports)
    assert count == users
    if FORMS[form] == "sequence":
        assert found[1].tolist() == each.sum(axis=0).tolist()
    else:
        assert found.tolist() == [(each == place).sum(axis=0).tolist() for place in range(len(relation.keys))]


@pytest.mark.parametrize("form", range(len(FORMS)), ids=FORMS)
def test_counts_in_small_blocks_are_the_same(form: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = Made(form=form)
    reports = mechanism.randomize(np.zeros(50, int), rng=1)
    whole_run = mechanism.support(reports)[1].tolist()
    monkeypatch.setattr(report_relations, "_BLOCK", 1)
    assert mechanism.support(reports)[1].tolist() == whole_run


@pytest.mark.parametrize(
    ("form", "reports", "message"),
    [
        (0, np.array([[32]], np.uint8), "padding bits"),
        (1, [5], "from 0 to 4: got 5 to 5"),
        (2, [[1, 1]], "distinct answers"),
        (2, [[1, 2], [4, 4]], "distinct answers"),
        (3, [[1, 2]], r"integers of shape \(n, 3\)"),
        (4, [[2, 3]], "distinct buckets"),
        (4, [[0.5, 3]], "must be integers"),
    ],
)
def test_reports_that_no_client_sends_are_refused(form: int, reports: Any, message: str) -> None:
    mechanism = Made(form=form)
    for read in (mechanism.check_reports, mechanism.aggregate, mechanism.contributions):
        with pytest.raises(NotSupported, match=message):
            read(np.asarray(reports))


def test_contributions_of_a_mechanism_without_support_are_unbiased_indicators() -> None:
    mechanism = Made(form=2)
    reports = np.array([[0, 2], [3, 4]])
    expected = (np.array([[1, 0, 1, 0, 0], [0, 0, 0, 1, 1]]) - 0.25) / 0.5
    assert mechanism.contributions(reports).tolist() == expected.tolist()
    assert mechanism.contributions(reports[:0]).shape == (0, 5)
