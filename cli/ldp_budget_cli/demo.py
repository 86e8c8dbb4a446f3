"""`ldp-budget demo`: one real survey from the choice of ε to the estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .output import print_table

if TYPE_CHECKING:
    from ldp_budget.accountant import Accountant
    from ldp_budget.collection import Collection
    from ldp_budget.estimates import CountEstimate

SURVEY = "anes96.csv"
PARTIES = (
    "strong-democrat",
    "weak-democrat",
    "lean-democrat",
    "independent",
    "lean-republican",
    "weak-republican",
    "strong-republican",
)
POLICY = ("lifetime=2", "day=1")


@click.command()
@click.option(
    "--out", default="ldp-budget-demo", metavar="FOLDER", show_default=True, help="Where to write the files."
)
@click.option("--epsilon", default="1", metavar="NUMBER", show_default=True, help="Privacy loss of one report.")
def demo(out: str, epsilon: str) -> None:
    """Walk through an opinion poll: 944 respondents of the American National Election Study 1996."""
    import os

    from ldp_budget.accountant import Accountant
    from ldp_budget.collection import Collection
    from ldp_budget.registry import mechanism

    oue = mechanism("oue").calibrate(epsilon=epsilon, domain_size=len(PARTIES))
    poll = Collection("party", oue, PARTIES)
    rows = _survey()
    os.makedirs(out, exist_ok=True)
    click.echo(f"1. The question: party identification, {len(PARTIES)} answers, {len(rows)} respondents.\n")
    _choose(epsilon, len(rows))
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", list(POLICY))
        accepted = _charge(accountant, poll, [user for user, _ in rows])
        answers = [answer for (_, answer), paid in zip(rows, accepted, strict=True) if paid]
        if not answers:
            raise click.ClickException(f"--epsilon: expected at most the day limit of {POLICY[1]}; found {epsilon}")
        _randomize(poll, answers, os.path.join(out, "party.reports"))
        _estimate(poll, answers, out)
        _refuse(accountant, poll, rows[0][0])


def _survey() -> list[tuple[str, str]]:
    """(respondent, party) of the survey that is shipped with the package."""
    import csv
    from importlib.resources import files

    with (files(__package__) / "data" / SURVEY).open(encoding="utf-8") as file:
        return [(row["respondent"], row["party"]) for row in csv.DictReader(file)]


def _choose(epsilon: str, users: int) -> None:
    from ldp_budget.registry import mechanism

    click.echo(f"2. Which mechanism, at epsilon {epsilon}? The predicted standard error of a share:")
    rows = []
    for name in ("oue", "sue"):
        candidate = mechanism(name).calibrate(epsilon=epsilon, domain_size=len(PARTIES))
        parameters = ", ".join(f"{key} = {value:.4f}" for key, value in candidate.parameters.items())
        rows.append((name, parameters, f"{100 * candidate.utility(users)['std_error']:.1f} %"))
    print_table(("mechanism", "parameters", "std error"), rows)


def _charge(accountant: Accountant, poll: Collection, users: list[str]) -> list[bool]:
    accepted = [bool(accountant.spend(user, poll.mechanism, key=f"party/{user}")) for user in users]
    click.echo(
        f"\n3. Policy: {' and '.join(POLICY)}. Charged {sum(accepted)} users, refused {accepted.count(False)}."
    )
    return accepted


def _randomize(poll: Collection, answers: list[str], path: str) -> None:
    from ldp_budget.reports import ReportWriter

    with ReportWriter(path, poll) as writer:
        writer.write(poll.mechanism.randomize(poll.read_values(answers)))
    click.echo(f"\n4. Each answer randomized by its own user; {len(answers)} reports in {path}.")


def _estimate(poll: Collection, answers: list[str], out: str) -> None:
    import os

    from ldp_budget.estimates import CountEstimate

    from .estimate import estimate_files

    result = estimate_files(poll, (os.path.join(out, "party.reports"),))
    assert isinstance(result, CountEstimate)
    low, high = result.interval()
    n = result.reports
    truth = [answers.count(party) / n for party in PARTIES]
    click.echo("\n5. What the server sees, with 95 % intervals, beside the truth it never sees:")
    rows = [
        (party, *(f"{100 * share:.1f} %" for share in (estimate, lowest / n, highest / n, true)))
        for party, estimate, lowest, highest, true in zip(
            PARTIES, result.shares.tolist(), low.tolist(), high.tolist(), truth, strict=True
        )
    ]
    print_table(("answer", "share", "low", "high", "truth"), rows)
    _picture(poll, result, truth, os.path.join(out, "party.png"))


def _picture(poll: Collection, result: CountEstimate, truth: list[float], path: str) -> None:
    from .plots import plot_estimate

    try:
        plot_estimate(poll, result, path, truth)
    except click.ClickException as error:
        click.echo(f"   (no picture: {error.message})")
    else:
        click.echo(f"   The same as a picture: {path}")


def _refuse(accountant: Accountant, poll: Collection, user: str) -> None:
    again = accountant.spend(user, poll.mechanism, key=f"party/{user}")
    click.echo(
        f"\n6. {user} retries with the same key: {again.status}, repeated = {again.repeated}; "
        "nothing is charged twice."
    )
    more = accountant.spend(user, poll.mechanism)
    click.echo(f"   {user} is asked once more today: {more.explain()}.")
