"""The short notation: a client in Python that is traced to a client program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ldp_budget.errors import InvalidParameter, PluginError
from ldp_budget.sdk import client_notation as notation
from ldp_budget.sdk.client_notation import DRAW_NAMES, FUNCTIONS, Trace
from ldp_budget.sdk.client_program import DRAWS, OPERATORS, Program, answers
from ldp_budget.sdk.domain import Categories
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.interpreter import StreamDraws, run
from ldp_budget.sdk.parameters import integer, real

where: Any = FUNCTIONS["where"]
HALF = 2**63


def program_of(client: Callable[[Any, Any], Any], size: int = 5) -> Program:
    return Trace(client, HALF).program(answers(Categories(size)))


def made(client: Callable[..., Any], **more: Any) -> Any:
    members = {"name": "made", "epsilon": real("loss", above=0), "domain_size": integer("answers", at_least=2)}
    return type("Made", (FrequencyMechanism,), {**members, "client": client, **more})


def test_notation_has_exactly_the_operators_of_client_programs() -> None:
    assert set(FUNCTIONS) | set(DRAW_NAMES) == set(OPERATORS)
    assert set(DRAW_NAMES) == {name for name, each in OPERATORS.items() if each.kind in DRAWS}
    assert all(callable(getattr(notation, name)) for name in FUNCTIONS)


SIGNS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], int]]] = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "sub": (lambda a, b: a - b + 9, lambda a, b: a - b + 9),
    "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "div": (lambda a, b: a // (b + 1), lambda a, b: a // (b + 1)),
    "mod": (lambda a, b: a % (b + 1), lambda a, b: a % (b + 1)),
    "shr": (lambda a, b: a >> b, lambda a, b: a >> b),
    "shl": (lambda a, b: a << b, lambda a, b: a << b),
    "and": (lambda a, b: a & b, lambda a, b: a & b),
    "xor": (lambda a, b: a ^ b, lambda a, b: a ^ b),
    "less": (lambda a, b: a < b, lambda a, b: int(a < b)),
    "more": (lambda a, b: a > b, lambda a, b: int(a > b)),
    "at most": (lambda a, b: a <= b, lambda a, b: int(a <= b)),
    "at least": (lambda a, b: a >= b, lambda a, b: int(a >= b)),
    "same": (lambda a, b: a == b, lambda a, b: int(a == b)),
    "other": (lambda a, b: a != b, lambda a, b: int(a != b)),
    "from the right": (lambda a, b: 2 - a + 9 + b, lambda a, b: 2 - a + 9 + b),
    "negative": (lambda a, b: -a + 9 + b, lambda a, b: -a + 9 + b),
}


@pytest.mark.parametrize("sign", SIGNS)
def test_python_operator_writes_the_operator_of_the_program(sign: str) -> None:
    write, compute = SIGNS[sign]
    program = program_of(lambda value, draw: write(value, value % 3), 7)
    for value in range(7):
        report = run(program, value, StreamDraws(None))  # type: ignore[arg-type]
        assert int.from_bytes(report, "little") == compute(value, value % 3)


def test_term_used_twice_becomes_one_step() -> None:
    def client(value: Any, draw: Any) -> Any:
        found = value
        for _ in range(60):
            found = (found + found) % 5
        return found

    program = program_of(client)
    assert len(program.steps) < 200
    assert run(program, 1, StreamDraws(None)) == bytes([pow(2, 60, 5)])  # type: ignore[arg-type]


def test_draws_are_steps_in_the_order_of_the_calls() -> None:
    def client(value: Any, draw: Any) -> Any:
        coin, first, second = draw.coin(), draw.below(5), draw.below(7)
        return where(coin, second, first)

    assert [name for name, _ in program_of(client).steps] == ["coin", "below", "below2", "report"]


def test_report_has_the_smallest_layout() -> None:
    onehot = FUNCTIONS["onehot"]
    layouts = {
        "|u1": program_of(lambda value, draw: value),
        "<u2": program_of(lambda value, draw: value * 100),
        "<u8": program_of(lambda value, draw: value << 40),
    }
    assert {name: program.report["dtype"] for name, program in layouts.items()} == {name: name for name in layouts}
    assert program_of(lambda value, draw: onehot(value, 5)).report["parts"] == [["packed", "report", 5]]
    assert program_of(lambda value, draw: [value, draw.below(9)]).report["shape"] == [2]


BRANCHES: dict[str, Callable[[Any, Any], Any]] = {
    "if": lambda value, draw: 1 if value == 1 else draw.below(2),
    "and": lambda value, draw: value and draw.coin(),
    "not": lambda value, draw: not value,
    "min": lambda value, draw: min(value, draw.below(2)),
    "for": lambda value, draw: sum(value),
    "in": lambda value, draw: 1 in value,
    "range": lambda value, draw: len(range(value)),
    "int": lambda value, draw: int(value),
    "index": lambda value, draw: [1, 2][value],
}


@pytest.mark.parametrize("branch", BRANCHES)
def test_client_that_branches_is_refused_with_where(branch: str) -> None:
    client = BRANCHES[branch]
    with pytest.raises(PluginError, match=r"write where\(condition, a, b\)"):
        made(lambda self, value, draw: client(value, draw))(epsilon=1, domain_size=4)


WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "nothing": (lambda self, value, draw: None, "returns nothing"),
    "constant": (lambda self, value, draw: 3, "made of value and draws"),
    "fraction": (lambda self, value, draw: value * 0.5, "whole numbers"),
    "division": (lambda self, value, draw: value / 2, "write a // b"),
    "unknown draw": (lambda self, value, draw: draw.dice(6), "it has coin"),
    "too few arguments": (lambda self, value, draw: draw.belows(6), "takes the arguments b, n"),
    "no function": (lambda self, value, draw: value.missing, "AttributeError"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_client_is_refused_by_the_class_and_the_reason(wrong: str) -> None:
    client, why = WRONG[wrong]
    with pytest.raises(PluginError, match=why):
        made(client)(epsilon=1, domain_size=4)


@pytest.mark.parametrize(
    ("client", "why"),
    [
        (lambda self, value, draw: value - draw.below(3), "must not be negative"),
        (lambda self, value, draw: value << 70, r"below 2\*\*64"),
    ],
)
def test_report_out_of_range_is_refused(client: Callable[..., Any], why: str) -> None:
    with pytest.raises(PluginError, match=why):
        _ = made(client)(epsilon=1, domain_size=4).guarantee


def test_draw_beyond_its_range_is_an_error_of_the_fields() -> None:
    kind = made(lambda self, value, draw: draw.subset(self.domain_size, 9)[0])
    assert kind(epsilon=1, domain_size=9)
    with pytest.raises(InvalidParameter, match="domain_size must be such that the client can draw"):
        kind(epsilon=1, domain_size=4)
