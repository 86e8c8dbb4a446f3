"""The client programs of *tick all that apply*: ticked sets and asked options."""

from __future__ import annotations

from math import gcd
from typing import Any

from .client_program import Program, answers, uint, whole
from .tick_sets import TickSets, hit_weights, running, starts

MOST_TICKS = 20

MOST_ITEMS = 255


def set_program(options: int, most: int, size: int, least: int, high: int) -> Program:
    """Return the program of ticked sets; the report is an ascending row of `size` items, dummies from d on.

    Parameters:
        options: d, the number of options.
        most: m, the most ticks, and the number of dummies.
        size: k, the items of a report, at most d.
        least: t, the own items from which a report is the likelier one.
        high: 2**64·π.
    """
    weights = hit_weights(most, options, size)
    upper, lower = (_reduced(part) for part in (weights[least:], weights[:least]))
    steps: list[tuple[str, Any]] = [
        ("likelier", ["bit", whole(high)]),
        ("upper", ["below", whole(sum(upper))]),
        ("lower", ["below", whole(sum(lower))]),
        ("drawn", ["subset", options, size]),
        ("order", ["shuffle", "places"]),
        ("turns", ["shuffle", "slots"]),
    ]
    left, items = "value", []
    for slot in range(most, 0, -1):
        first, largest = ["at", "starts", slot - 1], f"largest{slot}"
        steps.append((largest, ["sub", ["rank", first, left], 1]))
        steps.append((f"left{slot - 1}", ["sub", left, ["at", first, largest]]))
        left = f"left{slot - 1}"
        items.append(["where", ["ge", largest, 1], ["sub", largest, 1], options + slot - 1])
    steps += [("own", ["list", *items]), ("held", ["sort", "own"])]
    others = "drawn"
    for slot in range(most):
        steps.append((f"others{slot}", ["add", others, ["ge", others, ["at", "held", slot]]]))
        others = f"others{slot}"
    hits = ["where", "likelier", ["add", least, ["rank", "uppers", "upper"]], ["rank", "lowers", "lower"]]
    row: list[Any] = [["at", others, ["at", "order", place]] for place in range(size)]
    for place in range(min(most, size)):
        row[place] = ["where", ["lt", place, "hits"], ["at", "own", ["at", "turns", place]], row[place]]
    steps += [("hits", hits), ("report", ["sort", ["list", *row]])]
    tables = {
        "starts": [[whole(each) for each in row] for row in starts(options, most)],
        "uppers": [whole(each) for each in running(upper)],
        "lowers": [whole(each) for each in running(lower)],
        "places": list(range(size)),
        "slots": list(range(most)),
    }
    return Program(answers(TickSets(options, most)), tuple(steps), uint("report", options + most - 1, size), tables)


def _reduced(weights: list[int]) -> list[int]:
    return [each // gcd(*weights) for each in weights]


def asked_program(options: int, asked: int, keep: int) -> Program:
    """Return the program of asked options; the report is a row of 2·option + bit.

    Parameters:
        options: d, the number of options.
        asked: s, the options of a report.
        keep: 2**64·π.
    """
    steps: tuple[tuple[str, Any], ...] = (
        ("asked", ["subset", options, asked]),
        ("kept", ["bit", whole(keep)]),
        ("other", ["below", whole(2**asked - 1)]),
        ("cell", ["join", ["and", ["shr", "value", "asked"], 1]]),
        ("shown", ["where", "kept", "cell", ["add", "other", ["ge", "other", "cell"]]]),
        ("report", ["add", ["mul", 2, "asked"], ["and", ["shr", "shown", "places"], 1]]),
    )
    layout = uint("report", 2 * options - 1, asked)
    return Program(answers(TickSets(options, options)), steps, layout, {"places": list(range(asked))})
