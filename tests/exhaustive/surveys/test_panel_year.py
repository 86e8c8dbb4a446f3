"""A year of a panel of 20,000 in a sandbox: no user above a sliding limit, and estimates as precise as planned."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from command_line import CommandLine
from ldp_budget import Accountant, mechanism
from ldp_budget.sampling import SeededStream, rng
from ldp_budget.sdk.share_laws import AnswerLaw
from ldp_budget_surveys.designs.differences import difference, groups
from ldp_budget_surveys.designs.moments import Moments
from ldp_budget_surveys.designs.strata import Design
from ldp_budget_surveys.designs.survey_estimates import ROUND, DesignOptions, weights_for
from ldp_budget_surveys.designs.weighted_means import Survey

REGIONS = ("city", "land")
PARTS = np.array([0.6, 0.4])
"""The parts of the panel in each region."""
SHARES = (np.array([0.02, 0.30]), np.array([0.02, 0.35]))
"""The share of yes in each region, in each of two periods."""
TOTALS = [
    {"variable": "region", "value": name, "total": str(part)} for name, part in zip(REGIONS, PARTS, strict=True)
]


class Covered(NamedTuple):
    """Whether the intervals of each replication cover: of the level of a period, and of the change."""

    level: Any
    change: Any


def replications(number: int, group: int, refusals: tuple[float, float], *, epsilon: str, seed: int) -> Covered:
    """Return which of some replications cover.

    Parameters:
        number: the number of replications.
        group: the members of a phase.
        refusals: the part that refuses in each region; 2 % of the members leave in each period.
        epsilon: the ε of a report.
        seed: of the draws.
    """
    rng, made = np.random.default_rng(seed), mechanism("randomized-response")(epsilon=epsilon)
    (_, no), (_, yes) = made.contributions(np.array([0, 1], np.uint8))
    p = made.parameters["p"]
    law = AnswerLaw(type(made.contribution_law)(*(np.asarray(part)[1:] for part in made.contribution_law)))
    options = DesignOptions(totals=TOTALS, strata=("region",), rotate=12)
    cells = tuple((name, period) for name in REGIONS for period in "12")
    truths = [float(PARTS @ shares) for shares in SHARES]
    found = []
    for _ in range(number):
        rows = []
        for place in range(len(REGIONS)):
            for period, shares in enumerate(SHARES):
                size = int(PARTS[place] * group * 0.98**period)
                answered = rng.binomial(size, 1 - refusals[place])
                held = rng.binomial(answered, shares[place])
                ones = rng.binomial(held, p) + rng.binomial(answered - held, 1 - p)
                rows.append(
                    (answered, ones * yes + (answered - ones) * no, ones * yes**2 + (answered - ones) * no**2)
                )
        counts, sums, squares = (np.array(each, np.float64) for each in zip(*rows, strict=True))
        moments = Moments(("region", ROUND), cells, counts, sums[:, None], squares[:, None])
        weights = weights_for(moments, options, rounds=True)
        survey = Survey(moments, weights, Design((ROUND, "region")), law)
        each = groups(survey, ROUND)
        low, high = each["1"].interval()
        change = difference(survey, each["2"], each["1"])
        down, up = change.interval()
        found.append((low[0] <= truths[0] <= high[0], down[0] <= truths[1] - truths[0] <= up[0]))
    return Covered(*np.array(found).T)


MEMBERS, WEEKS = 20_000, 52
MONDAY = date(2026, 1, 5)
HEALTH = """
[survey]
name = "health"
epsilon = 1
rotate = 12
every = "week"
rounds = 52
tags = ["purpose:research"]

[[question]]
name = "smoke"
kind = "yes-no"
tags = ["attribute:health"]
"""
LIMITS = {
    "lifetime": Decimal(12),
    "78d": Decimal("1.6"),
    "attribute:health:78d": Decimal(1),
    "purpose:ads:28d": Decimal("0.5"),
}
ADS = mechanism("randomized-response")(epsilon="0.25")


class Model:
    """The plain model: all charges of each user with their day, their ε and their tags."""

    def __init__(self) -> None:
        self.charges: defaultdict[str, list[tuple[date, Decimal, frozenset[str]]]] = defaultdict(list)

    def total(self, user: str, limit: str, day: date) -> Decimal:
        """The ε that a limit counts on a day: of all charges with its tag, or without tags, in its days."""
        scope, _, period = limit.rpartition(":")
        first = date.min if period == "lifetime" else day - timedelta(days=int(period[:-1]) - 1)
        within = [(epsilon, tags) for at, epsilon, tags in self.charges[user] if first <= at <= day]
        return sum((epsilon for epsilon, tags in within if not scope or not tags or scope in tags), Decimal(0))

    def spend(self, user: str, day: date, epsilon: Decimal, tags: frozenset[str]) -> bool:
        """Charge a user if all limits that count the charge hold it."""
        counting = [each for each in LIMITS if ":" not in each or not tags or each.rpartition(":")[0] in tags]
        if any(self.total(user, each, day) + epsilon > LIMITS[each] for each in counting):
            return False
        self.charges[user].append((day, epsilon, tags))
        return True


@pytest.fixture
def panel(command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    source: Iterator[int] = iter(range(100_000))
    monkeypatch.setattr(rng, "_cryptographic_stream", lambda: SeededStream(next(source)))
    (tmp_path / "health.toml").write_text(HEALTH, encoding="utf-8")
    command("ledger", "init", "--sandbox")
    limits = [word for name, epsilon in LIMITS.items() for word in ("--limit", f"{name}={epsilon}")]
    command("--at", "2026-01-01", "policy", "set", "default", *limits)
    command("--at", "2026-01-01", "survey", "add", tmp_path / "health.toml")
    return command


def test_year_of_a_panel_has_no_user_above_a_sliding_limit(panel: CommandLine, tmp_path: Path) -> None:
    chance, model = np.random.default_rng(45), Model()
    users = np.array([f"m{number:05d}" for number in range(MEMBERS)])
    land = chance.random(MEMBERS) < 0.4
    smokes = chance.random(MEMBERS) < np.where(land, 0.3, 0.1)
    stays = np.ones(MEMBERS, np.bool_)
    answered, refused, asked = 0, 0, 0
    for week in range(WEEKS):
        monday = MONDAY + timedelta(weeks=week)
        day = monday + timedelta(days=int(chance.integers(0, 5)))
        # Advertising asks a random part, at any time: these charges compete for the limit of all charges.
        some = np.sort(chance.choice(users[stays], 1000, replace=False)).tolist()
        accepted = spend(panel, monday, some)
        expected = {user for user in some if model.spend(user, monday, Decimal("0.25"), frozenset({"purpose:ads"}))}
        assert accepted == expected
        # 10 and 30 % refuse to answer, and 1 % leave for good.
        willing = stays & (chance.random(MEMBERS) > np.where(land, 0.1, 0.3))
        table = tmp_path / "week.csv"
        with open(table, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["user", "smoke", "region"])
            for place in np.flatnonzero(willing):
                writer.writerow([users[place], "yes" if smokes[place] else "no", "land" if land[place] else "city"])
        given = "--user-column", "user", "--public", "region", "--spend", "--refused-to", tmp_path / "refused.csv"
        found = panel.json(
            "--at", day, "randomize", "health", table, *given, "--out", tmp_path / f"{week:02d}.reports"
        )
        out = {
            row["user"] for row in csv.DictReader((tmp_path / "refused.csv").read_text(encoding="utf-8").splitlines())
        }
        turn = turns(panel, users[willing].tolist(), day)
        tags = frozenset({"purpose:research", "attribute:health"})
        assert out == {user for user in turn if not model.spend(user, day, Decimal(1), tags)}
        assert found["asked"] == len(turn) == found["reports"] + found["refused"]
        asked, answered, refused = asked + found["asked"], answered + found["reports"], refused + found["refused"]
        stays &= chance.random(MEMBERS) > 0.01
    assert answered + refused == asked > 40_000
    assert refused > 100, "no limit was ever reached, so nothing was tried"
    check_limits(panel, model)
    check_estimates(panel, [tmp_path / f"{week:02d}.reports" for week in range(WEEKS - 12, WEEKS)], smokes, land)


def spend(panel: CommandLine, day: date, users: list[str]) -> set[str]:
    at = datetime(day.year, day.month, day.day, tzinfo=UTC)
    with Accountant(panel.ledger, sandbox=True, clock=lambda: at) as accountant:
        found = accountant.spend_many(users, ADS, tags=["purpose:ads"])
    return set(users) - set(found.refused_users)


def turns(panel: CommandLine, users: list[str], day: date) -> list[str]:
    from ldp_budget_surveys.rotation import Rotation

    with Accountant(panel.ledger, sandbox=True) as accountant:
        survey: Any = accountant.collection("health")
        rotation = Rotation.of(accountant, survey.survey, accountant.policy("default"))
    assert rotation is not None
    asked = rotation.turns(users, rotation.period_on(day))
    return [user for user, turn in zip(users, asked, strict=True) if turn]


def check_limits(panel: CommandLine, model: Model) -> None:
    """No user is above a sliding limit on any day, the ledger agrees with the model, and it verifies."""
    above = [
        (user, limit, day)
        for user, charges in model.charges.items()
        for limit, capacity in LIMITS.items()
        for day, _, _ in charges
        if model.total(user, limit, day) > capacity
    ]
    assert above == []
    last = MONDAY + timedelta(weeks=WEEKS)
    at = datetime(last.year, last.month, last.day, tzinfo=UTC)
    with Accountant(panel.ledger, sandbox=True, clock=lambda: at) as accountant:
        for user in sorted(model.charges)[::50]:
            limits = {str(row.get("scope") or "") + ":" + row["period"]: row for row in rows(accountant, user)}
            for name in LIMITS:
                row = limits[name if ":" in name else f":{name}"]
                assert Decimal(str(row["spent"]["epsilon"])) == model.total(user, name, last), (user, name)
    assert panel.json("ledger", "verify")["ok"]


def rows(accountant: Accountant, user: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = accountant.balance(user).to_row()["limits"]
    return found


def check_estimates(panel: CommandLine, files: list[Path], smokes: Any, land: Any) -> None:
    """The level, the changes and a regression of the last turn are near the truth; the draws have a seed."""
    found = panel.json("estimate", "health", *files, "--by-round", "--strata", "region")["smoke"]
    level = {row["answer"]: row for row in found["answers"]}["yes"]
    # The land refuses less, so without weights it has more than its part of the reports.
    parts = np.array([0.9 * land.mean(), 0.7 * (1 - land.mean())])
    truth = float(parts / parts.sum() @ [smokes[land].mean(), smokes[~land].mean()])
    assert abs(level["share"] - truth) < 4 * level["share_std_error"]
    assert level["share_std_error"] < 0.012
    changes = [row for row in found["differences"] if row["answer"] == "yes"]
    assert len(changes) == 11
    assert sum(row["low"] <= 0 <= row["high"] for row in changes) >= 9, "the truth does not change"
    fitted = panel.json("regress", "health", *files, "smoke ~ region", "--independent")
    slope = next(row for row in fitted["coefficients"] if "land" in row["name"])
    share = [smokes[where].mean() for where in (land, ~land)]
    odds = float(np.log(share[0] / (1 - share[0])) - np.log(share[1] / (1 - share[1])))
    assert slope["low"] < odds < slope["high"]
    assert slope["low"] > 0


def test_splitting_has_at_least_48_times_the_variance_of_rotation() -> None:
    """ε = 1 of each of 20,000 members in 52 weeks, a share of 10 %; the estimates of 20,000 replications."""
    chance, share, number = np.random.default_rng(52), 0.1, 20_000
    variances = []
    for epsilon, asked in (("1", MEMBERS // WEEKS), (str(Decimal(1) / WEEKS)[:12], MEMBERS)):
        made = mechanism("randomized-response")(epsilon=epsilon)
        p, q = made.parameters["p"], made.parameters["q"]
        held = chance.binomial(asked, share, number)
        ones = chance.binomial(held, p) + chance.binomial(asked - held, q)
        estimates = (ones / asked - q) / (p - q)
        assert abs(estimates.mean() - share) < 5 * estimates.std() / number**0.5
        variances.append(estimates.var())
    assert variances[1] / variances[0] >= 48


@pytest.mark.parametrize("refusals", [(0.1, 0.1), (0.3, 0.3), (0.3, 0.1)], ids=str)
@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_intervals_of_level_and_change_cover_with_refusals_and_drop_out(
    refusals: tuple[float, float], epsilon: str
) -> None:
    found = replications(1000, MEMBERS // 12, refusals, epsilon=epsilon, seed=45)
    assert 0.93 <= found.level.mean() <= 0.97
    assert 0.93 <= found.change.mean() <= 0.97
