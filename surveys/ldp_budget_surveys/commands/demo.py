"""`ldp-budget demo`: one real survey from the choice of ε to the estimate, with the commands for each step."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, NamedTuple

import click

from ldp_budget_cli.output import counted
from ldp_budget_cli.tables import print_table

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


class _Files(NamedTuple):
    """The files of the demo, in its folder."""

    folder: str

    def of(self, name: str) -> str:
        """Return the path of a file."""
        return os.path.join(self.folder, name)

    def typed(self, name: str) -> str:
        """Return the path as a shell takes it."""
        return shlex.quote(self.of(name))


@click.command()
@click.option(
    "--out", default="ldp-budget-demo", metavar="FOLDER", show_default=True, help="Write the files to FOLDER."
)
@click.option("--epsilon", default="2", metavar="NUMBER", show_default=True, help="The privacy loss ε of one poll.")
def demo(out: str, epsilon: str) -> None:
    """Walk through an opinion poll: 944 respondents of the American National Election Study 1996.

    Each step shows the commands for it. They use the files and a ledger in FOLDER, so you can type them afterwards.

    \b
    Example:
      ldp-budget demo
    """
    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.registry.collections import Collection

    _check(epsilon)
    files, rows = _Files(out), _survey()
    click.echo(f"1. The question: party identification, {len(PARTIES)} answers, {len(rows)} respondents.")
    os.makedirs(out, exist_ok=True)
    _copy_survey(files)
    click.echo(f"   The answers: {files.of('answers.csv')}. The commands use their own ledger:")
    _show_command(f"export LDP_BUDGET_LEDGER={files.typed('budget.db')}")
    _plan()
    poll = Collection("party", _choose(epsilon, len(rows)), PARTIES)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [f"lifetime={LIFETIME}", f"day={epsilon}"])
        accepted = _charge(accountant, poll, [user for user, _ in rows], epsilon, files)
        answers = [answer for (_, answer), charged in zip(rows, accepted, strict=True) if charged]
        if not answers:
            click.echo(
                f"\n5. Refused users send nothing, so there is no report: one poll may cost ε = {LIFETIME} at most. "
                f"Try: ldp-budget demo --epsilon {LIFETIME}"
            )
            return
        _randomize(poll, answers, files)
        _estimate(poll, answers, files)
        _refuse(accountant, poll, rows[accepted.index(True)][0])
    click.echo("\nNext: type the commands above, in their order. Then use a survey of your own: ldp-budget --help")


def _check(epsilon: str) -> None:
    """Raise `InvalidParameter` for a wrong ε, before anything is printed."""
    from ldp_budget.registry.plugins import mechanism

    mechanism("oue")(epsilon=epsilon, domain_size=len(PARTIES))


def _show_command(command: str) -> None:
    click.echo(f"   $ {command}")


def _survey() -> list[tuple[str, str]]:
    """Return (respondent, party) of the survey that is shipped with the package."""
    import csv
    from importlib.resources import files

    with (files("ldp_budget_surveys") / "data" / SURVEY).open(encoding="utf-8") as file:
        return [(row["respondent"], row["party"]) for row in csv.DictReader(file)]


def _copy_survey(files: _Files) -> None:
    """Write the answers of the survey, and the names of the parties."""
    from importlib import resources

    with open(files.of("answers.csv"), "wb") as file:
        file.write((resources.files("ldp_budget_surveys") / "data" / SURVEY).read_bytes())
    with open(files.of("parties.txt"), "w", encoding="utf-8") as names:
        names.write("".join(f"{party}\n" for party in PARTIES))


def _plan() -> None:
    from ldp_budget.accounting.plans import largest_epsilon
    from ldp_budget.registry.plugins import mechanism

    click.echo(f"\n2. The plan: the largest ε of one poll, if all polls of a user fit ε = {LIFETIME}, δ = {DELTA}.")
    _show_command(
        f"ldp-budget plan oue --domain-size {len(PARTIES)} --reports {POLLS[1]} --total-epsilon {LIFETIME} "
        f"--total-delta {DELTA}"
    )

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
    from ldp_budget.sdk.frequency_oracle import FrequencyMechanism

    from ..planning.ranking import rank_frequency

    click.echo(f"\n3. The choice: the predicted standard error of a share at ε = {epsilon}, best first.")
    _show_command(f"ldp-budget compare --epsilon {epsilon} --domain-size {len(PARTIES)} --users {users}")
    rows = rank_frequency(epsilon, len(PARTIES), users)
    print_table(
        ("mechanism", "std error"), [(row["mechanism"], f"{100 * row['mean_std_error']:.1f} %") for row in rows]
    )
    chosen = mechanism(rows[0]["mechanism"])
    assert issubclass(chosen, FrequencyMechanism)
    best = chosen.for_answers(epsilon, len(PARTIES))
    parameters = ", ".join(f"{name} = {value:.4g}" for name, value in best.parameters.items())
    click.echo(f"   The demo takes {best.name}: {parameters}.")
    return best


def _charge(accountant: Accountant, poll: Collection, users: list[str], epsilon: str, files: _Files) -> list[bool]:
    """Charge each user; returns which of them were accepted. No other user may be randomized."""
    receipts = [accountant.spend(user, poll.mechanism, key=f"party/{user}") for user in users]
    policy = " and ".join(f"{limit.period} ε = {limit.epsilon}" for limit in accountant.policy().limits)
    accepted = [bool(receipt) for receipt in receipts]
    spent = sum(accepted)
    click.echo(f"\n4. The ledger: policy {policy}. Charged {spent} users, refused {len(receipts) - spent}.")
    _show_command(f"ldp-budget policy set default --limit lifetime={LIFETIME} --limit day={epsilon}")
    _show_command(
        f"ldp-budget collection add party {poll.mechanism.name} --epsilon {epsilon} \\\n"
        f"     --categories {files.typed('parties.txt')}"
    )
    return accepted


def _randomize(poll: Collection, answers: list[str], files: _Files) -> None:
    from ldp_budget.reports.report_file import ReportWriter

    with ReportWriter(files.of("party.reports"), poll, charged=True) as writer:
        writer.write(poll.mechanism.randomize(poll.read_values(answers)))
    click.echo(f"\n5. The client randomizes each answer: {len(answers)} reports in {files.of('party.reports')}.")
    click.echo("   With --spend, the command charges each user first:")
    _show_command(
        f"ldp-budget randomize party {files.typed('answers.csv')} --column party \\\n"
        f"     --user-column respondent --spend --out {files.typed('mine.reports')}"
    )


def _estimate(poll: Collection, answers: list[str], files: _Files) -> None:
    from ldp_budget.reports.estimation import estimate_files, made_consistent

    result = made_consistent(estimate_files(poll, (files.of("party.reports"),)))
    low, high = result.interval()
    n = result.reports
    truth = [answers.count(party) / n for party in PARTIES]
    click.echo("\n6. The consistent estimate with 95 % confidence intervals, and the truth, which no server sees:")
    click.echo("   The command reads the file that the command of step 5 writes:")
    _show_command(f"ldp-budget estimate party {files.typed('mine.reports')}")
    rows = [
        (party, *(f"{100 * share:.1f} %" for share in (estimate, lowest / n, highest / n, true)))
        for party, estimate, lowest, highest, true in zip(
            PARTIES, result.shares.tolist(), low.tolist(), high.tolist(), truth, strict=True
        )
    ]
    print_table(("answer", "share", "low", "high", "truth"), rows)
    missed = sum(
        not lowest <= n * true <= highest
        for lowest, highest, true in zip(low.tolist(), high.tolist(), truth, strict=True)
    )
    click.echo(
        f"   {counted(missed, 'interval misses', 'intervals miss')} the truth: a 95 % interval misses it once in 20 times."
    )
    _picture(poll, result, truth, files.of("party.png"))


def _picture(poll: Collection, result: CountEstimate, truth: list[float], path: str) -> None:
    from ldp_budget.reports.estimation import estimate_row

    from .estimate_plot import plot_estimate

    try:
        plot_estimate(poll, estimate_row(poll, result), path, truth=truth)
    except click.ClickException as error:
        click.echo(f"   (no picture: {error.message})")
    else:
        click.echo(f"   The same as a picture: {path}")


def _refuse(accountant: Accountant, poll: Collection, user: str) -> None:
    from ldp_budget_cli.limit_figures import receipt_lines

    again = accountant.spend(user, poll.mechanism, key=f"party/{user}")
    click.echo(
        f"\n7. A retry of {user} with the same key: {again.status}, repeated = {again.repeated}. Nothing is charged twice."
    )
    more = accountant.spend(user, poll.mechanism)
    click.echo(f"   A second poll of {user} today:")
    _show_command(f"ldp-budget spend {user} party")
    for line in receipt_lines(more):
        click.echo(f"   {line}")
