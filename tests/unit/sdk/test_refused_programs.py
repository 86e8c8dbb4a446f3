"""Programs that the specification does not define, and runs that must fail, in the interpreter of Python."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checker_vectors import VECTORS, refusals
from ldp_budget.sampling import SeededStream
from ldp_budget.sdk.client_program import OPERATORS, Program
from ldp_budget.sdk.interpreter import StreamDraws, run
from ldp_budget.sdk.operator_forms import FORMS, RANGES
from ldp_budget_verify.shipped_checkers import checker


@pytest.mark.parametrize(
    "vector",
    [vector for vector in refusals("forms") if vector["of"] == "program"],
    ids=lambda vector: ascii(vector["name"]),
)
def test_program_of_another_form_is_refused(vector: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        Program.from_json(json.loads(vector["text"]))


@pytest.mark.parametrize("vector", refusals("failures"), ids=lambda vector: vector["name"])
def test_run_that_must_fail_makes_no_report(vector: dict[str, Any]) -> None:
    program = Program.from_json(vector["definition"])
    with pytest.raises(ValueError, match=r"."):
        run(program, vector["answer"], StreamDraws(SeededStream(1), bytes(32), "test"))


@pytest.mark.parametrize("condition", [-1, 2, 3, str(2**64)])
def test_where_with_a_condition_that_is_no_bit_fails(condition: Any) -> None:
    steps = (("report", ["where", condition, 0, 1]),)
    report = {"dtype": "|u1", "shape": [], "parts": [["uint", "report", 1, 1]]}
    program = Program({"kind": "answer", "count": 2, "text": False}, steps, report)
    with pytest.raises(ValueError, match="where must have a choice from 0 to 1"):
        run(program, 0, StreamDraws(SeededStream(1)))


def test_every_operator_has_a_form() -> None:
    assert list(FORMS) == list(OPERATORS)
    for name, operator in OPERATORS.items():
        if operator.arguments is not None:
            assert len(FORMS[name].takes) == len(operator.arguments)
        assert (FORMS[name].takes[0] == "text") == operator.labelled


def test_forms_are_those_of_the_checker() -> None:
    check = checker("check_law")
    assert {name: (list(form.takes), form.gives) for name, form in FORMS.items()} == check.FORMS
    assert check.RANGES == RANGES
    assert {name for name, operator in OPERATORS.items() if operator.kind in ("draw", "memo")} == check.DRAWN


@pytest.mark.slow
def test_refusals_are_those_that_the_maker_writes(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import make_refusals

    monkeypatch.setattr(make_refusals, "FOLDER", tmp_path)
    make_refusals.main()
    assert (tmp_path / "refusals.json").read_text() == (VECTORS / "refusals.json").read_text()


@pytest.mark.parametrize(
    "change",
    [
        *({"report": {"dtype": 1, "shape": [1]}}, {"report": {"dtype": "|u1", "shape": 1}}),
        *({"report": {"dtype": "|u1", "shape": [-1]}}, {"memo": None}, {"memo": 0}, {"input": []}),
    ],
    ids=json.dumps,
)
def test_program_with_another_report_memo_or_input_is_refused(change: dict[str, Any]) -> None:
    parts = [["uint", "report", 1, 1]]
    data = {
        "input": {"kind": "answer", "count": 2, "text": False},
        "steps": [["report", 1]],
        "tables": {},
        "memo": "",
    }
    report = {"dtype": "|u1", "shape": [1], "parts": parts}
    assert Program.from_json({**data, "report": report}).size == 1
    with pytest.raises(ValueError, match=r"must be|must have"):
        Program.from_json(
            {
                **data,
                "report": report,
                **{key: {**report, **each} if key == "report" else each for key, each in change.items()},
            }
        )
