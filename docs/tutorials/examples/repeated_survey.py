"""A survey of two questions in four rounds, on real answers: the estimates of docs/tutorials/repeated-survey.md.

    python docs/tutorials/examples/repeated_survey.py           # cryptographic noise, new in every run
    python docs/tutorials/examples/repeated_survey.py --seed 1  # the page's figures; never for real answers

Every second respondent is in panel a, the others are in panel b. Both are asked for their health and their visits in
every round, each panel with mechanisms of its own, and charged ε = 1 for each answer.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ldp_budget import Accountant, Mechanism, mechanism
from ldp_budget.sdk.estimates import CountEstimate
from ldp_budget_cli.output import print_table

DATA = Path(__file__).parent / "data" / "randhie.csv"
HEALTH = ("excellent", "good", "fair", "poor")
ROUNDS, LIFETIME = 4, 8

Person = dict[str, str]
Rng = np.random.Generator | None


class Question(NamedTuple):
    name: str
    panel: int
    mechanism: Mechanism


class Figure(NamedTuple):
    """An estimate with its 95 % interval, the truth, and `bias`, what the mechanism adds to it on average."""

    collection: str
    rounds: str
    answer: str
    truth: float
    bias: float
    estimate: float
    std_error: float
    low: float
    high: float


class Study(NamedTuple):
    figures: list[Figure]
    spent: Counter[float]
    refused: int
    verified: bool


QUESTIONS = (
    Question("health-a", 0, mechanism("oue")(epsilon=1, domain_size=len(HEALTH))),
    Question("visits-a", 0, mechanism("one-bit-mean")(epsilon=1, maximum=77)),
    Question("health-b", 1, mechanism("grr").calibrate(epsilon=1, domain_size=len(HEALTH))),
    Question("visits-b", 1, mechanism("bounded-staircase")(epsilon=1, lower=0, upper=77)),
)


def people(path: Path = DATA) -> list[Person]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def values(question: Question, panel: Sequence[Person]) -> Any:
    if question.name.startswith("health"):
        return np.array([HEALTH.index(person["health"]) for person in panel])
    return np.array([float(person["visits"]) for person in panel])


def run(panels: Sequence[Person], accountant: Accountant, rng: Rng = None) -> Study:
    """Four rounds, a fifth that must be refused, and what the ledger says afterwards."""
    accountant.set_policy("default", [f"lifetime={LIFETIME}"])
    figures: list[Figure] = []
    refused = 0
    for question in QUESTIONS:
        panel = panels[question.panel :: 2]
        totals = [ask(accountant, question, panel, number, rng) for number in range(1, ROUNDS + 1)]
        for number, total in enumerate(totals, 1):
            figures += compared(question, panel, str(number), total)
        for total in totals[1:]:
            totals[0].merge(total)
        figures += compared(question, panel, "all", totals[0])
    for question in QUESTIONS:
        refused += len(charge(accountant, question, panels[question.panel :: 2], ROUNDS + 1))
    balances = (accountant.balance(person["person"]).limits[0] for person in panels)
    spent = Counter(limit.to_json()["spent"]["epsilon"] for limit in balances)
    return Study(figures, spent, refused, accountant.verify().ok)


def charge(accountant: Accountant, question: Question, panel: Sequence[Person], number: int) -> list[str]:
    """Charge a panel for a round; returns who was refused. The key makes a second try of the same round free."""
    names = [person["person"] for person in panel]
    return accountant.spend_many(names, question.mechanism, key=f"{question.name}/{number}").refused_users


def ask(accountant: Accountant, question: Question, panel: Sequence[Person], number: int, rng: Rng) -> Any:
    """Charge first; who was refused sends nothing."""
    refused = set(charge(accountant, question, panel, number))
    answers = values(question, [person for person in panel if person["person"] not in refused])
    return question.mechanism.aggregate(question.mechanism.randomize(answers, rng=rng))


def compared(question: Question, panel: Sequence[Person], rounds: str, total: Any) -> Iterator[Figure]:
    """The estimates from an aggregate, with the truth that no server sees."""
    answers, result = values(question, panel), question.mechanism.estimate(total)
    if isinstance(result, CountEstimate):
        truth = np.bincount(answers, minlength=len(HEALTH)) / len(answers)
        n = result.reports
        low, high = (end / n for end in result.interval())
        for row in zip(HEALTH, truth, np.zeros(4), result.shares, result.std_errors / n, low, high, strict=True):
            yield Figure(question.name, rounds, *row)
    else:
        mean: Any = result
        bias, _ = error_of_one_report(question.mechanism, answers)
        known = (answers.mean(), bias, mean.mean, mean.std_error, *mean.interval())
        yield Figure(question.name, rounds, "mean", *known)


def error_of_one_report(chosen: Any, answers: Any) -> tuple[float, float]:
    """(bias, MSE) of one report of a numeric mechanism, for answers spread like these."""
    points, counts = np.unique(answers, return_counts=True)
    bias, mse = chosen.prior_error((points, counts))
    return bias, mse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="predictable noise, for a page or a test")
    seed = parser.parse_args().seed
    with Accountant(":memory:") as accountant:
        report(run(people(), accountant, None if seed is None else np.random.default_rng(seed)))


def report(study: Study) -> None:
    shown = [f for f in study.figures if f.rounds in ("1", "all")]
    numbers = [[f"{number:.3f}" for number in (f.truth, f.estimate, f.low, f.high)] for f in shown]
    head = ("collection", "rounds", "answer", "truth", "estimate", "low", "high")
    print_table(head, [(*f[:3], *cells) for f, cells in zip(shown, numbers, strict=True)])
    single = [f for f in study.figures if f.rounds != "all" and not f.bias]
    held = sum(f.low <= f.truth <= f.high for f in single)
    print(f"\n{held} of the {len(single)} intervals of single rounds without bias hold the truth")
    for epsilon, users in study.spent.items():
        print(f"{users} users have spent ε = {epsilon:g}")
    print(f"round {ROUNDS + 1}: {study.refused} requests refused; ledger verified: {study.verified}")


if __name__ == "__main__":
    main()
