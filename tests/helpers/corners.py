"""Extreme parameters of mechanisms, and a check that the mechanism works there; see plugins/test_extreme_parameters.py.

From the description of its fields alone: the smallest and the largest value of each, those just inside of them, and
plain ones. A case is the name of a mechanism and parameters. Cases are run in a process of their own, which ends
itself where one does not end (`faulthandler`); so a hang, or a crash, is a finding too, and says where it was.
"""

from __future__ import annotations

import faulthandler
import itertools
import json
import math
import os
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ldp_budget
from ldp_budget.composition.filters import epsilon_of_rho
from ldp_budget.errors import InvalidParameter, LdpBudgetError, NotSupported
from ldp_budget.guarantees import Memoised, Unbounded, ZeroConcentrated, from_json
from ldp_budget.sdk.domain import Categories, Interval
from ldp_budget.sdk.estimates import CountEstimate, MeanEstimate
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.parameters import MOST_TEXT, Choice, Field, Flag, Integer, Matrix, Real, Text
from ldp_budget_verify.exact import VIOLATED, verify

SECONDS = 30.0
"""Of computing, for everything that a case asks."""
_HANGS = 90.0
"""Of waiting, on a machine that may have other things to do."""
_MEMORY = 12 * 2**30
"""To be addressed; of the cells of a large sketch few are touched."""

_PLAIN = ("1", "0.5", "0.25", "2", "0.75", "0")
_PLAIN_COUNTS = (2, 3, 8, 16, 1)
_MATRICES: tuple[list[list[str]], ...] = (
    [["0.75", "0.25"], ["0.25", "0.75"]],
    [["1", "0"], ["0", "1"]],
    [["0.5", "0.5"], ["0.5", "0.5"]],
    [["1e-300", "0.5"], ["1", "0.5"]],
    [["0.2", "0.6"], ["0.3", "0.3"], ["0.5", "0.1"]],
    [["0.5000000001", "0.5"], ["0.4999999999", "0.5"]],
    [[str((1.0 + 9 * (row == column)) / 109) for column in range(100)] for row in range(100)],
)

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """The result of a case: "answered", "refused" (then `text` is the error) or "wrong" (then it says how)."""

    outcome: str
    text: str
    seconds: float


# -- which cases there are ------------------------------------------------------------------------------------


def corners_of(field: Field[Any]) -> list[Any]:
    """The ends of a field's range and what lies just inside of them, in what JSON can hold."""
    if isinstance(field, Real):
        return _ends_of(field)
    if isinstance(field, Integer):
        low = 0 if field.at_least is None else field.at_least
        high = 10**18 if field.at_most is None else field.at_most
        return sorted({low, low + 1, min(1000, high), high - 1, high} - {low - 1})
    if isinstance(field, Choice):
        return list(field.choices)
    if isinstance(field, Matrix):
        return list(_MATRICES)
    if isinstance(field, Text):
        return ["an appendix", "x", "x" * MOST_TEXT]
    return [True, False] if isinstance(field, Flag) else []


def _ends_of(field: Real) -> list[str]:
    """Decimals at the ends; so near to an open one as they are taken, and as doubles still show."""
    ends: list[str] = []
    for bound, inward in ((field.at_least, 1), (field.above, 1), (field.at_most, -1), (field.below, -1)):
        if bound is not None:
            ends += _beside(str(bound), inward)
    if field.at_least is None and field.above is None:
        ends += ["-1e400", "-1e308", "0", "1e-400"]
    if field.at_most is None and field.below is None:
        ends += ["1e308", "1e400"]
    return [text for text in dict.fromkeys(ends) if _takes(field, text)]


def _beside(bound: str, inward: int) -> list[str]:
    number = ldp_budget.guarantees.fixed_point.decimal(bound)
    if not number:
        sign = "" if inward > 0 else "-"
        return ["0", *(f"{sign}1e-{digits}" for digits in (499_999, 999, 300, 17, 9))]
    whole = number == 1
    near = [str(float(number) * (1 - inward * -1e-12))]
    return [bound, *near, *(("0." + "9" * digits) for digits in (17, 40, 400) if whole and inward < 0)]


def _takes(field: Field[Any], value: Any) -> bool:
    try:
        field.parse(value)
    except LdpBudgetError:
        return False
    return True


def plain_values(field: Field[Any]) -> list[Any]:
    """Ordinary values of a field."""
    if isinstance(field, Integer):
        return [count for count in _PLAIN_COUNTS if _takes(field, count)]
    if isinstance(field, Real):
        return [text for text in _PLAIN if _takes(field, text)] or [str(field.at_least)]
    return corners_of(field)[:1]


def plain_cases(cls: type[Mechanism]) -> list[Parameters]:
    """Plain parameters for every set of fields that can be declared together, found by trying; defaults left out."""
    chance = random.Random(cls.name)
    optional = [name for name, field in cls.fields.items() if not field.required and _may_be_given(field)]
    always = [name for name, field in cls.fields.items() if field.required]
    found = []
    for count in range(len(optional) + 1):
        for some in itertools.combinations(optional, count):
            case = _plain_case(cls, [*always, *some], chance)
            found += [] if case is None else [case]
    return found


def _may_be_given(field: Field[Any]) -> bool:
    """True if it is left out by default, and there are values of it here."""
    return field.default is None and bool(plain_values(field))


def _plain_case(cls: type[Mechanism], names: list[str], chance: random.Random) -> Parameters | None:
    options = {name: plain_values(cls.fields[name]) for name in names}
    for _ in range(60):
        case = {name: chance.choice(values) for name, values in options.items()}
        try:
            cls(**case)
        except LdpBudgetError:
            continue
        return case
    return None


def cases_of(cls: type[Mechanism], together: int) -> list[Parameters]:
    """Each plain case with every `together` fields at their corners, all others as they were."""
    ways = plain_cases(cls)
    cases: dict[str, Parameters] = {}
    for way in ways:
        extra = [name for name, field in cls.fields.items() if field.default is not None]
        for names in itertools.combinations([*way, *extra], together):
            for values in itertools.product(*(corners_of(cls.fields[name]) for name in names)):
                case = {**way, **dict(zip(names, values, strict=True))}
                cases[json.dumps(case, sort_keys=True)] = case
    return list(cases.values())


# -- what a case must answer ----------------------------------------------------------------------------------


class WrongAnswer(Exception):  # noqa: N818 - reads as what it is
    """Return the wrong results of a mechanism."""


def expect(true: bool, otherwise: str) -> None:
    if not true:
        raise WrongAnswer(otherwise)


def run(name: str, parameters: Parameters) -> tuple[str, str]:
    """The outcome of a case and what there is to say."""
    cls = ldp_budget.mechanism(name)
    try:
        made = cls(**parameters)
    except InvalidParameter as error:
        expect(error.option in cls.fields and bool(error.expected), f"the refusal names no field: {error}")
        return "refused", str(error)[:200]
    _promises(made)
    _says(made)
    _comes_back(made)
    _collects(made)
    found = verify(made)
    expect(found.verdict != VIOLATED and found.estimator != VIOLATED, f"verify: {found.problems}")
    return "answered", found.verdict


def _promises(made: Mechanism) -> None:
    guarantee = made.guarantee
    amounts = guarantee.amounts()
    for amount in amounts:
        expect(amount is None or (amount.is_finite() and amount >= 0), f"the guarantee costs {amounts}")
    expect(guarantee.costs() is not None, "no costs")
    if isinstance(guarantee, Unbounded):
        return
    declared = getattr(made, "epsilon", None)
    # What is promised of memoised reports to any inputs is more than what one report loses.
    if declared is not None and not getattr(made, "any_inputs", False):
        # The loss of memoised reports is that of the dearest one: the one after the last point of a long curve.
        loss = guarantee.curve[0] if isinstance(guarantee, Memoised) else (guarantee.loss() or [None])[0]
        if isinstance(guarantee, ZeroConcentrated):
            loss = epsilon_of_rho(guarantee.rho, made.delta)  # type: ignore[attr-defined]
        expect(loss is not None and loss <= declared, f"promised is {loss}, declared was epsilon = {declared}")


_NOT_A_NUMBER = re.compile(r"(?<![a-z])(nan|inf|infinity)(?![a-z])", re.IGNORECASE)
_PROBABILITIES = {"p", "q", "f", "flip", "keep", "other"}


def _says(made: Mechanism) -> None:
    for users in (None, 1, 10**6):
        described = made.describe(users)
        found = re.search(r".{0,60}\b(NaN|Infinity)\b", json.dumps(described))
        expect(found is None, f"describe({users}) says {found}")
    for note in made.notes:
        expect(not _NOT_A_NUMBER.search(note), f"a note says {note}")
    for name in _PROBABILITIES & set(made.parameters):
        expect(0 <= made.parameters[name] <= 1, f"the probability {name} is {made.parameters[name]}")


def _comes_back(made: Mechanism) -> None:
    again = type(made)(**json.loads(json.dumps(made.declared)))
    expect(again == made and again.fingerprint == made.fingerprint, "what was declared does not come back")
    stored = json.loads(json.dumps(made.guarantee.to_json()))
    expect(from_json(stored) == made.guarantee, "the guarantee does not come back")


def _collects(made: Mechanism) -> None:
    try:
        domain = made.domain
    except NotSupported:
        return
    if domain is None:
        return
    for values in _users(domain):
        reports = made.randomize(np.array(values), secrets=[bytes([user] * 32) for user in range(len(values))])
        expect(len(reports) == len(values), f"{len(values)} users gave {len(reports)} reports")
        _estimates(made, domain, reports)


def _users(domain: Categories | Interval) -> Iterator[list[Any]]:
    if isinstance(domain, Categories):
        yield from ([domain.size - 1], [0, 1, domain.size - 1, 0, 1])
    else:
        lower, upper = domain.ends
        yield from ([upper], [lower, lower / 2 + upper / 2, upper, upper])


def _estimates(made: Any, domain: Any, reports: Any) -> None:
    try:
        if isinstance(domain, Categories) and (not domain.listed or domain.size > 10**4):
            try:
                found = made.estimate(reports, candidates=[0, 1])
            except TypeError:
                found = made.estimate(reports)
        else:
            found = made.estimate(reports)
    except NotSupported as error:
        # Few reports, or few bits, cannot always tell answers apart; it must be said in words.
        expect(len(str(error)) > 20, f"estimate: {error!r}")
        return
    low, high = found.interval()
    if isinstance(found, CountEstimate):
        figures: Any = [found.counts, found.std_errors, low, high]
        centre, least, most = found.counts, 0.0, float(found.reports)
    else:
        assert isinstance(found, MeanEstimate)
        figures, centre = [found.mean, found.std_error, low, high], found.mean
        least, most = found.ends or (-np.inf, np.inf)
    expect(all(np.isfinite(figure).all() for figure in figures), f"an estimate is not finite: {figures}")
    expect(bool((np.asarray(figures[1]) >= 0).all()), "a standard error is negative")
    # Counts are whole, and an interval may say so where the estimate is off by a ten-thousandth of a user.
    slack = 1e-9 * (np.abs(low) + np.abs(high)) + (1e-4 if isinstance(found, CountEstimate) else 0.0)
    possible = np.clip(
        centre, least, most
    )  # an interval has no impossible value, and the unbiased estimate may be one
    expect(
        bool(((low - slack <= possible) & (possible <= high + slack)).all()), "an estimate is outside its interval"
    )


# -- running them ---------------------------------------------------------------------------------------------


def run_all(cases: Iterable[tuple[str, Parameters]]) -> list[tuple[str, Parameters, Answer]]:
    """Every case with its answer; those that hang or crash as well."""
    left, done = list(cases), []
    while left:
        answers, last_words = _run_some(left)
        done += [(*case, answer) for case, answer in zip(left, answers, strict=False)]
        left = left[len(answers) :]
        if left:
            done.append((*left.pop(0), Answer("wrong", f"did not end: {last_words}", math.inf)))
    return done


def _run_some(cases: list[tuple[str, Parameters]]) -> tuple[list[Answer], str]:
    """The answers up to the first case that does not end, and the last words of the process."""
    process = subprocess.run(
        [sys.executable, "-W", "error", str(Path(__file__))],
        input="\n".join(json.dumps(case) for case in cases),
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    return [Answer(*json.loads(line)) for line in process.stdout.splitlines()], process.stderr[-1500:]


def main() -> None:
    """Runs the cases on stdin, a JSON array [name, parameters] a line, and prints an answer for each."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for line in sys.stdin:
        name, parameters = json.loads(line)
        faulthandler.dump_traceback_later(_HANGS, exit=True)
        started = time.process_time()
        try:
            outcome, text = run(name, parameters)
        except WrongAnswer as wrong:
            outcome, text = "wrong", str(wrong)[:400]
        except Exception as error:  # every error is a finding
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            where = "" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
            outcome, text = "wrong", f"{type(error).__name__} in {where}: {error}"[:400]
        seconds = time.process_time() - started
        faulthandler.cancel_dump_traceback_later()
        if seconds > SECONDS:
            outcome, text = "wrong", f"took {seconds:.1f} s ({outcome})"
        print(json.dumps([outcome, text, seconds]), flush=True)


if __name__ == "__main__":
    main()
