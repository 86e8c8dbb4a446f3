"""`ldp-budget demo`: one real survey from the choice of ε to the estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .tables import print_table

if TYPE_CHECKING:
    from decimal import Decimal

    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.guarantees import Guarantee
    from ldp_budget.registry.collections import Collection
    from ldp_budget.sdk.estimates import CountEstimate
    from ldp_budget.sdk.mechanism import Mechanism

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
POLLS = (4, 12, 52)
LIFETIME = 8
DELTA = "1e-6"


@click.command()
@click.option(
    "--out", default="ldp-budget-demo", metavar="FOLDER", show_default=True, help="Where to write the files."
)
@click.option("--epsilon", default="2", metavar="NUMBER", show_default=True, help="Privacy loss of one poll.")
def demo(out: str, epsilon: str) -> None:
    """Walk through an opinion poll: 944 respondents of the American National Election Study 1996."""
    import os

    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.registry.collections import Collection

    rows = _survey()
    click.echo(f"1. The question: party identification, {len(PARTIES)} answers, {len(rows)} respondents.")
    _plan()
    poll = Collection("party", _choose(epsilon, len(rows)), PARTIES)
    os.makedirs(out, exist_ok=True)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [f"lifetime={LIFETIME}", f"day={epsilon}"])
        accepted = _charge(accountant, poll, [user for user, _ in rows])
        answers = [answer for (_, answer), charged in zip(rows, accepted, strict=True) if charged]
        if not answers:
            click.echo(
                f"\n5. Refused users send nothing, so there is no report: one poll may cost ε = {LIFETIME} at most. "
                f"Try: ldp-budget demo --epsilon {LIFETIME}"
            )
            return
        _randomize(poll, answers, os.path.join(out, "party.reports"))
        _estimate(poll, answers, out)
        _refuse(accountant, poll, rows[accepted.index(True)][0])


def _survey() -> list[tuple[str, str]]:
    """Return (respondent, party) of the survey that is shipped with the package."""
    import csv
    from importlib.resources import files

    with (files(__package__) / "data" / SURVEY).open(encoding="utf-8") as file:
        return [(row["respondent"], row["party"]) for row in csv.DictReader(file)]


def _plan() -> None:
    from ldp_budget.accounting.policies import largest_epsilon
    from ldp_budget.registry.plugins import mechanism

    click.echo(f"\n2. The plan: what may each poll of a user cost, so that all fit ε = {LIFETIME}, δ = {DELTA}?")

    def guarantee(epsilon: Decimal) -> Guarantee:
        return mechanism("oue")(epsilon=epsilon, domain_size=len(PARTIES)).guarantee

    rules = ("basic", "zcdp", "exact")
    rows = []
    for polls in POLLS:
        found = [largest_epsilon(guarantee, polls, LIFETIME, DELTA, rule) for rule in rules]
        rows.append((polls, *(f"ε = {each:.3f}" for each in found if each is not None)))
    print_table(("polls", *rules), rows)


def _choose(epsilon: str, users: int) -> Mechanism:
    """Return the mechanism with the least predicted error."""
    from ldp_budget.registry.plugins import mechanism
    from ldp_budget.registry.ranking import rank_frequency
    from ldp_budget.sdk.frequency_oracle import FrequencyMechanism

    click.echo(f"\n3. The choice: the predicted standard error of a share at ε = {epsilon}, best first.")
    rows = rank_frequency(epsilon, len(PARTIES), users)
    print_table(
        ("mechanism", "std error"), [(row["mechanism"], f"{100 * row['mean_std_error']:.1f} %") for row in rows]
    )
    chosen = mechanism(rows[0]["mechanism"])
    assert issubclass(chosen, FrequencyMechanism)
    best = chosen.for_answers(epsilon, len(PARTIES))
    parameters = ", ".join(f"{name} = {value:.4g}" for name, value in best.parameters.items())
    click.echo(f"   {best.name} it is: {parameters}.")
    return best


def _charge(accountant: Accountant, poll: Collection, users: list[str]) -> list[bool]:
    """Charge each user; returns which of them were accepted. No other user may be randomized."""
    receipts = [accountant.spend(user, poll.mechanism, key=f"party/{user}") for user in users]
    policy = " and ".join(f"{limit.period} ε = {limit.epsilon}" for limit in accountant.policy().limits)
    accepted = [bool(receipt) for receipt in receipts]
    spent = sum(accepted)
    click.echo(f"\n4. The ledger: policy {policy}. Charged {spent} users, refused {len(receipts) - spent}.")
    return accepted


def _randomize(poll: Collection, answers: list[str], path: str) -> None:
    from ldp_budget.reports.report_file import ReportWriter

    with ReportWriter(path, poll, charged=True) as writer:
        writer.write(poll.mechanism.randomize(poll.read_values(answers)))
    click.echo(f"\n5. Each answer randomized by its own user; {len(answers)} reports in {path}.")


def _estimate(poll: Collection, answers: list[str], out: str) -> None:
    import os

    from ldp_budget.reports.estimation import estimate_files
    from ldp_budget.sdk.estimates import CountEstimate

    result = estimate_files(poll, (os.path.join(out, "party.reports"),))
    assert isinstance(result, CountEstimate)
    low, high = result.interval()
    n = result.reports
    truth = [answers.count(party) / n for party in PARTIES]
    click.echo("\n6. What the server sees, with 95 % intervals, beside the truth it never sees:")
    rows = [
        (party, *(f"{100 * share:.1f} %" for share in (estimate, lowest / n, highest / n, true)))
        for party, estimate, lowest, highest, true in zip(
            PARTIES, result.shares.tolist(), low.tolist(), high.tolist(), truth, strict=True
        )
    ]
    print_table(("answer", "share", "low", "high", "truth"), rows)
    _picture(poll, result, truth, os.path.join(out, "party.png"))


def _picture(poll: Collection, result: CountEstimate, truth: list[float], path: str) -> None:
    from ldp_budget.reports.estimation import estimate_row

    from .plots.charts import plot_estimate

    try:
        plot_estimate(poll, estimate_row(poll, result), path, truth=truth)
    except click.ClickException as error:
        click.echo(f"   (no picture: {error.message})")
    else:
        click.echo(f"   The same as a picture: {path}")


def _refuse(accountant: Accountant, poll: Collection, user: str) -> None:
    again = accountant.spend(user, poll.mechanism, key=f"party/{user}")
    click.echo(
        f"\n7. {user} retries with the same key: {again.status}, repeated = {again.repeated}; "
        "nothing is charged twice."
    )
    more = accountant.spend(user, poll.mechanism)
    click.echo(f"   {user} is asked once more today: {more.explain()}.")
