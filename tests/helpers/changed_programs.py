"""Client programs that look alike and leak: good ones with changed steps, and random ones, for the rules of the law.

A rule may refuse a program, or bound it too high. It must never judge one too good: the oracle lists every outcome of
every draw, and no divergence of two answers may be larger than the rule says.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import permutations
from typing import Any

import ldp_budget
from ldp_budget import NotSupported
from ldp_budget.sdk.client_program import OPERATORS, Program, record
from ldp_budget.sdk.interpreter import evaluate, known_of
from ldp_budget_verify.law import Law, Unknown
from ldp_budget_verify.law.all_outcomes import AllOutcomes, law
from ldp_budget_verify.law.rules import RULES

HALF, MOST = str(2**63), str(2**64 // 10 * 9)
QUICK = tuple(rule for rule in RULES if rule is not AllOutcomes)
_OUTCOMES = 3000


# -- the oracle ------------------------------------------------------------------------------------------------------


def listed(program: Program) -> list[dict[bytes, Fraction]] | None:
    """The law of each answer; None if some answer comes to no report, or to too many."""
    try:
        return [law(program, value, _OUTCOMES) for value in range(int(program.input["count"]))]
    except (ArithmeticError, LookupError, NotSupported, TypeError, ValueError, AttributeError):
        return None


def too_good(derived: Law, laws: list[dict[bytes, Fraction]]) -> str:
    """How the derived law is below the listed ones, in words; empty if it bounds them."""
    curves = [_curve(pair) for pair in derived.pairs()]
    curves += [_curve([(q, p) for p, q in pair]) for pair in derived.pairs()]
    for first, second in permutations({frozenset(each.items()): each for each in laws}.values(), 2):
        own = _curve([(first.get(row, Fraction(0)), second.get(row, Fraction(0))) for row in {*first, *second}])
        for slope in own:
            most = max(_divergence(curve, slope) for curve in curves)
            if _divergence(own, slope) > most:
                return f"at λ = {float(slope):.6g} two answers have {float(_divergence(own, slope)):.6g}, not {float(most):.6g}"
        if None in _ratios(first, second) and derived.ratio is not None:
            return "a report rules an answer out"
    return ""


def _ratios(first: dict[bytes, Fraction], second: dict[bytes, Fraction]) -> set[Fraction | None]:
    return {p / second[row] if second.get(row) else None for row, p in first.items() if p}


def _curve(pair: list[tuple[Fraction, Fraction]]) -> dict[Fraction, tuple[Fraction, Fraction]]:
    """(P, Q) by their ratio, 10**30 where Q is zero."""
    sums: dict[Fraction, tuple[Fraction, Fraction]] = {}
    for p, q in pair:
        if p or q:
            ratio = p / q if q else Fraction(10**30)
            a, b = sums.get(ratio, (Fraction(0), Fraction(0)))
            sums[ratio] = a + p, b + q
    return sums


def _divergence(curve: dict[Fraction, tuple[Fraction, Fraction]], slope: Fraction) -> Fraction:
    return sum((p - slope * q for ratio, (p, q) in curve.items() if ratio > slope), Fraction(0))


def verdicts(program: Program, laws: list[dict[bytes, Fraction]]) -> dict[str, str]:
    """For each rule but the list of all outcomes: refused, bounds, or how it is too good."""
    found = {}
    for rule in QUICK:
        try:
            derived = rule(program)  # type: ignore[call-arg]
        except Unknown:
            found[rule.rule] = "refused"
            continue
        found[rule.rule] = too_good(derived, laws) or "bounds"
    return found


# -- good programs ---------------------------------------------------------------------------------------------------


def program(steps: Any, *parts: Any, count: int = 4, tables: Any = None, memo: str = "") -> Program:
    given = {"kind": "answer", "count": count, "text": False}
    return Program(given, tuple(steps), record(list(parts)), tables or {}, memo)


def _built_in() -> list[Program]:
    made = []
    for d in (3, 4, 5):
        given: dict[str, Any] = {"epsilon": 1, "domain_size": d}
        names: list[tuple[str, dict[str, Any]]] = [
            (name, given) for name in ("grr", "sue", "oue", "subset-selection")
        ]
        names.append(("random-substitution", {**given, "draws": 2}))
        names += [("d-bit-flip", {"epsilon": 1, "buckets": d, "bits": k}) for k in (1, 2, d)]
        names.append(("d-bit-flip", {"epsilon": 1, "buckets": d, "bits": 2, "memoize": True}))
        if d > 3:
            ordered = {"sampling": "distinct", "ordered": True}
            names += [("random-substitution", {**given, "draws": k, **ordered}) for k in (2, 3)]
        names.append(("pgr", given))
        names += [("cms", {**given, "hashes": 3, "width": 4}), ("hcms", {**given, "hashes": 2, "width": 4})]
        names.append(
            (
                "rappor",
                {"bits": 3, "hashes": 1, "cohorts": 2, "f": "0.5", "p": "0.25", "q": "0.75", "any_inputs": True},
            )
        )
        names.append(("loloha", {"hashes": 2, "domain_size": d, "epsilon_lifetime": 4, "epsilon_first": 1}))
        for name, fields in names:
            try:
                found = ldp_budget.mechanism(name)(**fields).client_program()
            except ldp_budget.LdpBudgetError:
                continue
            # A few answers of those that an open domain has.
            count = min(int(found.input["count"]), d)
            made.append(replace(found, input={"kind": "answer", "count": count, "text": False}))
    return made


def hadamard(count: int = 5) -> Program:
    turn = ["xor", "code", ["sub", "code", 1]]
    report = ["xor", "word", ["where", ["eq", ["parity", ["and", "word", "code"]], "coin"], turn, 0]]
    steps = [("code", ["add", "value", 1]), ("word", ["below", 8]), ("coin", ["bit", MOST]), ("report", report)]
    return program(steps, ["uint", "report", 1, 1], count=count)


def ticks(options: int = 3, shown: int = 2) -> Program:
    steps = [
        ("drawn", ["belows_from", options - shown + 1, shown]),
        ("places", ["floyd", "drawn", options - shown + 1]),
        ("flips", ["bits", MOST, shown]),
        ("bits", ["xor", ["and", ["shr", "value", "places"], 1], "flips"]),
        ("report", ["add", ["mul", 2, "places"], "bits"]),
    ]
    return program(steps, ["uint", "report", 1, shown], count=1 << options)


def words() -> Program:
    """A cell of a level that is drawn, as heavy hitters are reported."""
    steps = [
        ("turn", ["below", 2]),
        ("kept", ["bit", MOST]),
        ("others", ["below", 2]),
        ("prefix", ["shr", "value", ["at", "shifts", "turn"]]),
        ("cell", ["mod", ["add", "prefix", "turn"], 3]),
        ("shown", ["mod", ["add", "cell", ["where", "kept", 0, ["add", 1, "others"]]], 3]),
    ]
    return program(steps, ["uint", "turn", 1, 1], ["uint", "shown", 1, 1], count=8, tables={"shifts": [0, 1]})


@cache
def good_programs() -> tuple[Program, ...]:
    """Small programs that some rule derives."""
    return (*_built_in(), hadamard(3), hadamard(5), hadamard(7), ticks(), ticks(3, 3), ticks(2, 1), words())


# -- changed programs ------------------------------------------------------------------------------------------------

_SWAPS = [
    ("xor", "eq"),
    ("add", "sub"),
    ("ge", "lt"),
    ("and", "xor"),
    ("mul", "add"),
    ("min", "max"),
    ("at", "first"),
]
_DRAWS = [("bits", "belows"), ("belows", "subset"), ("below", "bit"), ("subset", "belows_from")]


def _spots(x: Any, path: tuple[int, ...] = ()) -> Any:
    yield path
    if isinstance(x, list):
        for place in range(1, len(x)):
            yield from _spots(x[place], (*path, place))


def _number(x: Any) -> int | None:
    if isinstance(x, int):
        return x
    return int(x) if isinstance(x, str) and x.lstrip("-").isdecimal() else None


def _changed(r: random.Random, x: Any, path: tuple[int, ...], names: list[str]) -> Any:
    if path:
        return [*x[: path[0]], _changed(r, x[path[0]], path[1:], names), *x[path[0] + 1 :]]
    if isinstance(x, list):
        if x[0] == "where" and r.random() < 0.5:
            return [x[0], x[1], x[3], x[2]]
        for pair in (*_SWAPS, *_DRAWS):
            if x[0] in pair and r.random() < 0.7:
                return [pair[1 - pair.index(x[0])], *x[1:]]
        inner = x[1:] if not OPERATORS[x[0]].labelled else x[2:]
        return r.choice(
            [r.choice(inner or [0]), [x[0], *reversed(x[1:])] if len(x) == 3 else x, ["xor", x, r.choice(names)]]
        )
    if (n := _number(x)) is not None:
        if abs(n) > 2**53:
            return r.choice([HALF, MOST, str(2**64), "0"])
        return n + r.choice([-1, 1, 2])
    return r.choice([*names, "value"])


def changed(r: random.Random, base: Program) -> Program:
    """A program with one or two changed steps; now and then one more step is sent."""
    steps, parts = [list(step) for step in base.steps], [list(part) for part in base.report["parts"]]
    for _ in range(r.choice([1, 1, 2])):
        place = r.randrange(len(steps))
        names = [name for name, _ in steps[:place]] or ["value"]
        path = r.choice(list(_spots(steps[place][1])))
        if isinstance(steps[place][1], list) and OPERATORS[steps[place][1][0]].labelled and path[:1] == (1,):
            path = (2,)
        steps[place][1] = _changed(r, steps[place][1], path, names)
    if r.random() < 0.2:
        name, _ = r.choice(steps)
        parts.append(["uint", name, 2, r.choice([1, 1, 2, 3, int(base.input["count"])])])
    memo = base.memo if any(isinstance(x, list) and OPERATORS[x[0]].kind == "memo" for _, x in steps) else ""
    tables = dict(base.tables)
    return Program(base.input, tuple((name, x) for name, x in steps), {**base.report, "parts": parts}, tables, memo)


# -- random programs -------------------------------------------------------------------------------------------------


def _expression(r: random.Random, d: int, names: list[str], depth: int = 2) -> Any:
    if depth == 0 or r.random() < 0.25:
        return r.choice([*names, *names, "value", "value", 0, 1, 2, d])
    a, b = (_expression(r, d, names, depth - 1) for _ in range(2))
    op = r.choice(
        ["add", "skip", "skip", "where", "xor", "eq", "put", "at", "sort", "turn", "mul", "and", "parity", "code",
         "onehot", "shr", "first", "ge", "join", "list", "ticks", "div", "mod", "min"]
    )  # fmt: skip
    match op:
        case "skip":
            o = r.choice(names)
            return ["add", o, ["ge", o, "value"]]
        case "where":
            return ["where", r.choice([*names, a]), b, _expression(r, d, names, depth - 1)]
        case "put":
            return ["put", r.choice(names), r.choice([*names, "value", 0]), b]
        case "turn":
            step = ["where", r.choice(names), 0, ["add", 1, r.choice(names)]]
            return ["mod", ["add", r.choice([*names, "value"]), step], d]
        case "code":
            turn = r.choice([["xor", ["add", "value", 1], "value"], ["add", "value", 1], "value"])
            return ["xor", r.choice(names), ["where", r.choice([a, *names]), turn, 0]]
        case "onehot":
            return ["onehot", r.choice(["value", *names]), d]
        case "parity":
            return ["parity", ["and", r.choice(names), r.choice([["add", "value", 1], "value"])]]
        case "ticks":
            return ["and", ["shr", "value", r.choice(names)], 1]
        case "sort" | "first" | "join":
            return [op, a]
    return [op, a, b]


def _draw(r: random.Random, d: int) -> list[Any]:
    t = r.choice([HALF, MOST])
    return r.choice(
        [["bit", t], ["bits", t, d], ["bits", t, 2], ["bits", t, 1], ["below", d - 1], ["below", d], ["below", 2],
         ["below", 8], ["belows", d - 1, 2], ["belows", d - 1, 1], ["subset", d - 1, 2], ["subset", d, 2],
         ["belows_from", d - 1, 2], ["bits_each", ["list", t, HALF]]]
    )  # fmt: skip


class _Lows:
    """The least outcome of each draw, for the lengths of vectors."""

    most_size = 2**20

    def __getattr__(self, name: str) -> Any:
        if name in ("bits", "belows", "belows_from"):
            return lambda *given: [0] * int(given[-1])
        if name == "subset":
            return lambda *given: list(range(int(given[-1])))
        return (lambda row: [0] * len(row)) if name == "bits_each" else (lambda *given: 0)


def random_program(r: random.Random) -> Program:
    """A program of a few draws and steps; most say too much, or nothing. It may raise ValueError or IndexError."""
    d, steps, names = r.choice([3, 4]), list[tuple[str, Any]](), list[str]()
    for _ in range(r.randint(1, 3)):
        steps.append((f"s{len(steps)}", _draw(r, d)))
        names.append(steps[-1][0])
        if steps[-1][1][0] == "belows_from":
            steps.append((f"s{len(steps)}", ["floyd", names[-1], d - 1]))
            names[-1] = steps[-1][0]
    for _ in range(r.randint(1, 4)):
        steps.append((f"s{len(steps)}", _expression(r, d, names)))
        names.append(steps[-1][0])
    sent = dict.fromkeys([names[-1], *r.sample(names, r.choice([0, 0, 0, 1, min(2, len(names))]))])
    bare = program(steps, ["packed", names[-1], 1], count=d)
    known = known_of(bare, 0)
    for name, x in steps:
        known[name] = evaluate(x, known, _Lows())
    parts = [["uint", name, 2, len(known[name]) if isinstance(known[name], list) else 1] for name in sent]
    return program(steps, *parts, count=d)


def judged(r: random.Random, made: Any, count: int) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Judge `count` programs of a maker. Return how many each rule refused or bounded, and those judged too good."""
    found: Counter[tuple[str, str]] = Counter()
    wrong, tries = [], 0
    while found["all", "programs"] < count and tries < 60 * count:
        tries += 1
        try:
            one = made(r)
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
            continue
        laws = listed(one)
        if laws is None or all(each == laws[0] for each in laws):
            continue
        found["all", "programs"] += 1
        for rule, verdict in verdicts(one, laws).items():
            found[rule, verdict if verdict in ("refused", "bounds") else "too good"] += 1
            if verdict not in ("refused", "bounds"):
                wrong.append(f"{rule}: {verdict}: {one.to_json()}")
    return found, wrong


def any_changed(r: random.Random) -> Program:
    """A good program with changed steps."""
    return changed(r, r.choice(good_programs()))
