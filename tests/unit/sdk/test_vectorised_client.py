"""The vectorised client against the reference interpreter: the same bytes and refusals for every program."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from generated_programs import Generator, odd_definition
from ldp_budget.errors import InvalidParameter
from ldp_budget.sampling import Stream, open_stream
from ldp_budget.sdk.client_program import Program
from ldp_budget.sdk.interpreter import StreamDraws, run
from ldp_budget.sdk.value_ranges import ValueRanges
from ldp_budget.sdk.vectorised_client import VectorisedClient

SECRET = bytes(range(16))
SEEDS = st.integers(0, 2**32)
ENDLESS = {"subset", "geometric", "laplace", "normal"}
"""Draws that wait for a byte that is not the same."""
UINT = {"dtype": "<u8", "shape": [], "parts": [["uint", "report", 8, 1]]}
FIVE = {"kind": "answer", "count": 5, "text": False}


def generated(seed: int) -> Program:
    """A random program of the specified form, every other one with numbers at the ends of all ranges."""
    for place in count(seed, 2):
        definition = Generator(place).definition() if seed % 2 else odd_definition(random.Random(place))
        with suppress(ValueError):  # some have a part of the report that no program has
            return Program.from_json({key: definition[key] for key in ("input", "steps", "report", "tables", "memo")})
    raise AssertionError


def reported(call: Any) -> bytes | str:
    """The bytes of reports, or that they were refused."""
    try:
        found = call()
    except ValueError:
        return "refused"
    return found if isinstance(found, bytes) else bytes(found.tobytes())


@given(SEEDS, st.integers(0, 3), st.integers(0, 2**20))
def test_vectorised_client_with_one_user_gives_the_interpreter_bytes_or_refusal(
    program_seed: int, value: int, seed: int
) -> None:
    program = generated(program_seed)
    client = VectorisedClient(program, context="c")
    value %= client.last + 1
    one = reported(lambda: run(program, value, StreamDraws(open_stream(seed), SECRET, "c")))
    assert reported(lambda: client(np.array([value]), open_stream(seed), SECRET)) == one


@given(SEEDS, st.lists(st.integers(0, 3), max_size=9), st.integers(0, 2**20))
def test_vectorised_client_with_lots_of_one_gives_the_bytes_of_users_in_turn(
    program_seed: int, values: list[int], seed: int
) -> None:
    program = generated(program_seed)
    client = VectorisedClient(program, context="c", lot=1)
    values = [value % (client.last + 1) for value in values]
    stream = open_stream(seed)
    turns = reported(lambda: b"".join(run(program, value, StreamDraws(stream, SECRET, "c")) for value in values))
    assert reported(lambda: client(values, open_stream(seed), [SECRET] * len(values))) == turns


class Same(Stream):
    """Delivers one byte for ever, so that all users draw the same, in any order."""

    def __init__(self, byte: int) -> None:
        self.byte = byte

    def read(self, count: int) -> bytes:
        return bytes([self.byte]) * count


@given(SEEDS, st.lists(st.integers(0, 3), min_size=2, max_size=9), st.sampled_from([0, 2]))
def test_vectorised_client_with_many_users_of_equal_bytes_gives_the_reports_of_each_alone(
    program_seed: int, values: list[int], byte: int
) -> None:
    program = generated(program_seed)
    assume(not ENDLESS & {step[0] for _, step in program.steps if isinstance(step, list)})
    client = VectorisedClient(program, context="c")
    values = [value % (client.last + 1) for value in values]

    def report_of(value: int) -> bytes | str:
        return reported(lambda: run(program, value, StreamDraws(Same(byte), SECRET, "c")))

    alone = [report_of(value) for value in values]
    together = reported(lambda: client(np.array(values), Same(byte), SECRET))
    assert together == ("refused" if "refused" in alone else b"".join(map(bytes, alone)))  # type: ignore[arg-type]


@given(SEEDS, st.integers(0, 2**20))
def test_value_ranges_of_any_run_hold_all_its_values(program_seed: int, seed: int) -> None:
    from ldp_budget.sdk.interpreter import evaluate, known_of

    program = generated(program_seed)
    try:
        ranges = ValueRanges(program)
    except ValueError:
        return  # no fixed lengths, or a step that always fails
    known = known_of(program, seed % 4 % (ranges.of_name["value"][1] + 1))
    draws = StreamDraws(open_stream(seed), SECRET, "c")
    for name, expression in program.steps:
        try:
            known[name] = evaluate(expression, known, draws)
        except ValueError:
            return
        low, high = ranges.of_name[name]
        found = known[name] if isinstance(known[name], list) else [known[name]]
        assert low <= min(found, default=low)
        assert max(found, default=high) <= high
        assert ranges.sizes[name] == (len(found) if isinstance(known[name], list) else None)


def program_of(*steps: tuple[str, Any], tables: dict[str, Any] | None = None, **more: Any) -> Program:
    return Program(more.pop("given", FIVE), steps, more.pop("report", UINT), tables or {}, **more)


def test_vectorised_client_with_a_column_that_is_used_again_leaves_it_unchanged() -> None:
    program = program_of(
        ("a", ["belows", 100, 3]),
        ("b", "a"),
        ("c", ["sort", "a"]),
        ("report", ["add", ["at", "b", 0], ["mul", 1000, ["add", ["at", "c", 0], ["mul", 1000, ["at", "b", 2]]]]]),
    )
    many = VectorisedClient(program)(np.arange(5), open_stream(1))
    drawn = np.frombuffer(many.tobytes(), "<u8")
    first, least, last = drawn % 1000, drawn // 1000 % 1000, drawn // 1000000
    assert (least <= np.minimum(first, last)).all()
    assert (least < first).any()


def test_vectorised_client_with_lengths_that_depend_on_the_answer_runs_users_in_turn() -> None:
    program = program_of(("bits", ["bits", str(2**63), "value"]), ("report", ["join", "bits"]))
    stream = open_stream(3)
    turns = b"".join(run(program, value, StreamDraws(stream)) for value in range(5))
    assert VectorisedClient(program)(np.arange(5), open_stream(3)).tobytes() == turns


@pytest.mark.parametrize("values", [[5], [-1], [0, 7], [0.5]])
def test_vectorised_client_with_a_value_outside_the_input_refuses_it(values: list[Any]) -> None:
    client = VectorisedClient(program_of(("report", ["mul", 2, "value"])))
    with pytest.raises(ValueError, match="values must be"):
        client(np.array(values), open_stream(1))


def test_vectorised_client_with_a_memo_needs_a_secret() -> None:
    client = VectorisedClient(program_of(("report", ["kept_top", "a", "value", 9]), memo="value"))
    with pytest.raises(InvalidParameter, match="secrets"):
        client(np.arange(5), open_stream(1))
    alike = client(np.array([3, 3, 4]), open_stream(1), [SECRET] * 3)
    assert (client(np.array([3, 3, 4]), open_stream(2), SECRET) == alike).all()
    assert alike[0] == alike[1] != alike[2]


def test_vectorised_client_with_numbers_beyond_64_bits_is_exact() -> None:
    program = program_of(
        ("huge", ["where", ["lt", "value", 9], ["shl", ["add", "value", 1], 300], str(2**64)]),
        ("report", ["add", ["shr", ["mul", "huge", "huge"], 600], ["mod", "huge", 1009]]),
    )
    expected = [(v + 1) ** 2 + ((v + 1) << 300) % 1009 for v in range(5)]
    assert VectorisedClient(program)(np.arange(5), open_stream(1)).tolist() == expected


def test_vectorised_client_with_a_number_of_more_than_4096_bits_refuses_it() -> None:
    client = VectorisedClient(program_of(("big", ["shl", "value", 4095]), ("report", ["parity", "big"])))
    assert client(np.array([0, 1]), open_stream(1)).tolist() == [0, 1]
    with pytest.raises(ValueError, match="4096 bits"):
        client(np.array([0, 2]), open_stream(1))


def test_vectorised_client_with_a_choice_of_huge_constants_is_exact() -> None:
    program = program_of(("one", ["where", ["lt", "value", 2], 7, str(2**64)]), ("report", ["shr", "one", 1]))
    assert VectorisedClient(program)(np.arange(4), open_stream(1)).tolist() == [3, 3, 2**63, 2**63]
