"""Client programs: from the same bytes they draw exactly the reports of the client in Python."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ldp_budget
from client_cases import CASES, Bytes, Recorder, interpreted, vectors
from ldp_budget.sdk.client_program import Program


def test_cases_include_every_mechanism_with_a_client() -> None:
    named = {mechanism.name for mechanism in CASES.values()}
    assert {entry.name for entry in ldp_budget.mechanisms()} - named <= {"declared", "discrete-gaussian"}


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("name", CASES)
def test_program_draws_the_reports_of_the_client(name: str) -> None:
    for answer, secret, data, report in vectors(name, 60):
        stream = Recorder(Bytes(data))
        assert interpreted(name, answer, secret, stream) == report
        assert stream.read_so_far == data


@pytest.mark.parametrize("name", CASES)
def test_program_round_trips_through_json(name: str) -> None:
    program = CASES[name].client_program()
    text = json.dumps(program.to_json())
    assert Program.from_json(json.loads(text)) == program
    assert "." not in json.dumps(program.steps), "whole numbers alone"


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_program_layout_describes_the_reports(name: str) -> None:
    mechanism = CASES[name]
    program = mechanism.client_program()
    answer, secret, _, report = next(vectors(name, 1))
    row = mechanism.randomize([answer], secrets=secret)
    found = np.frombuffer(report, program.report["dtype"]).reshape(1, *program.report["shape"])
    assert (found.dtype, found.shape) == (row.dtype.newbyteorder("<"), row.shape)
    assert program.size == len(report)
