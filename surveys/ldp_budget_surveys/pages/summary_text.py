"""The facts of a survey in plain words: the sections of its page, without any markup."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ldp_budget.sdk.domain import Categories, Interval

from .summary_blocks import (
    Block,
    Cell,
    Code,
    Contact,
    Facts,
    Grid,
    Meter,
    Note,
    Section,
    at_most,
    certainty,
    loss,
    percent,
    plural,
    whole,
)
from .summary_charts import in_unit, margin_of_fakes, mean_blocks, shares
from .summary_design import OUTSIDE, group_blocks, how_weighted, population, two_way_section, within_bounds
from .summary_protection import protection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ldp_budget.registry.collections import Collection

    from .ledger_facts import Charges, LedgerState, LimitUse, PolicyUse
    from .survey_summary import Question, Subject, Summary, Weighting


# -- results -------------------------------------------------------------------------------------------------


def _results(question: Question, summary: Summary) -> Section:
    """Return the estimates of a question as bars, or the reason why there are none."""
    row = question.row
    if row is None:
        return Section("result", question.text, tuple(_without_answers(question, summary)))
    asked, people = row.get("asked", row["reports"]), row["reports"]
    of = (
        f"{whole(asked)} of the {whole(people)} who answered were asked this, chosen at random."
        if asked != people
        else f"{plural(people, 'answer')}."
    )
    blocks: list[Block] = [Note(f"{of} {_how(row, summary.weighting)}")]
    if "answers" in row:
        inside, moved = within_bounds(row["answers"]) if summary.weighting else (row["answers"], False)
        blocks.append(shares(question.text, inside))
        blocks += [OUTSIDE] if moved else []
        if row["answers"] and all(each["share_high"] - each["share_low"] >= 0.5 for each in row["answers"]):
            blocks.append(Note("Too few answers: every interval is wider than half of all answers.", True))
        blocks += margin_of_fakes(row)
    else:
        blocks += mean_blocks(question, row)
    if summary.weighting is not None:
        blocks += group_blocks(question, row, summary.weighting.by)
    return Section("result", question.text, tuple(blocks))


def _how(row: Mapping[str, Any], weighting: Weighting | None) -> str:
    """Return what the bars and the lines are."""
    interval = "95 % confidence interval, which includes"
    if weighting is None:
        bar = f"The bar is the estimated share among the {whole(row['reports'])} who answered. The line is its"
        return f"{bar if 'answers' in row else 'The line is the'} {interval} the noise that protects the answers."
    return (
        f"The estimates are for {population(weighting)}. The line is the {interval} the chance of the sample and the noise "
        "that protects the answers."
    )


def _without_answers(question: Question, summary: Summary) -> Iterator[Block]:
    if summary.answered:
        yield Note("This question has no answers: the people who answered were asked others.")
    elif summary.files:
        yield Note("No person answered: the report files hold no report.", True)
    else:
        yield Note("There are no answers yet. When they arrive, this page shows the share of each answer.")


_MOST_OPTIONS = 50
"""The most answers that a list of options names."""


# -- people and budget ---------------------------------------------------------------------------------------


def _asked(summary: Summary) -> Section:
    subject = summary.subject
    rows = [
        ("Survey", subject.title),
        ("Organization", subject.organisation or "not stated"),
        ("Contact", Contact(subject.contact) if subject.contact else "not stated"),
        ("Purpose", subject.purpose or "not stated"),
        *(row for at, each in _each(subject) for row in _question_rows(at, each, len(subject.questions))),
    ]
    if subject.asked < len(subject.questions):
        rows.append(("Choice", f"each person answers {subject.asked} of {len(subject.questions)}, chosen at random"))
    charges = summary.charges
    if charges is not None and charges.first is not None:
        first, last = charges.first[:10], str(charges.last)[:10]
        rows.append(("Asked", f"on {first} (UTC)" if first == last else f"from {first} to {last} (UTC)"))
    return Section("asked", "Who asked", (Facts(tuple(rows)),))


def _each(subject: Subject) -> Iterator[tuple[int, Question]]:
    return iter(enumerate(subject.questions, 1))


def _question_rows(at: int, question: Question, of: int) -> Iterator[tuple[str, str]]:
    yield _numbered("Question", at, of), question.text
    options = _options(question.collection)
    if options:
        options += in_unit(question)
        yield _numbered("Answers to question", at, of) if of > 1 else "Possible answers", options


def _options(collection: Collection) -> str:
    """Return the answers to choose from, or the range of numbers; empty if answers are not listed."""
    domain = collection.mechanism.domain
    if isinstance(domain, Interval):
        return f"a number from {domain.lower:f} to {domain.upper:f}"
    if not isinstance(domain, Categories) or not domain.listed:
        return ""
    if collection.categories is None:
        return f"a whole number from 0 to {domain.size - 1}"
    more = len(collection.categories) - _MOST_OPTIONS
    return ", ".join(collection.categories[:_MOST_OPTIONS]) + (f" and {whole(more)} more" if more > 0 else "")


def _numbered(word: str, at: int, of: int) -> str:
    return word if of == 1 else f"{word} {at}"


def _participation(summary: Summary) -> Section:
    invited, answered = summary.invited, summary.answered
    rows = [
        ("Invited", "not stated" if invited is None else plural(invited, "person", "people")),
        ("Answered", _answered(summary) + (f" ({_rate(summary)} of the invited)" if _rate(summary) else "")),
        ("Refused by the privacy budget", _refused(summary)),
    ]
    charges, blocks = summary.charges, list[Block]()
    if charges is not None:
        people = f"{plural(charges.accounts, 'account')} for {plural(charges.reports, 'report')}"
        rows.append(("Charged in the ledger", people))
        missing = max(answered - charges.reports, summary.uncharged)
        if missing > 0:
            blocks.append(
                Note(
                    f"The ledger did not charge at least {whole(missing)} of the {whole(answered)} answers. For these, "
                    "no limit below was checked.",
                    True,
                )
            )
    weighting = summary.weighting
    described = "the people who answered; no weights to a population are applied"
    rows.append(("Described by the estimates", described if weighting is None else population(weighting)))
    return Section("participation", "Who answered", (Facts(tuple(rows)), *blocks))


def people_who_answered(summary: Summary) -> int:
    """Return how many people answered at most: each account counts once, although it may have sent several reports."""
    charges = summary.charges
    return min(summary.answered, charges.accounts) if charges and charges.accounts else summary.answered


def _answered(summary: Summary) -> str:
    reports, people = summary.answered, people_who_answered(summary)
    return whole(reports) if people == reports else f"{plural(reports, 'report')} of {plural(people, 'account')}"


def _rate(summary: Summary) -> str:
    invited, people = summary.invited, people_who_answered(summary)
    return percent(people / invited) if invited and people <= invited else ""


def _refused(summary: Summary) -> str:
    if summary.refused is not None:
        return whole(summary.refused)
    known = None if summary.ledger is None else summary.ledger.refused
    return "not stated" if known is None else f"{plural(known, 'request')}, over all surveys in the ledger"


def _budget(summary: Summary) -> Section:
    guarantee = summary.subject.guarantee.describe()
    delta = "" if not guarantee["delta"] else f", δ = {guarantee['delta']:g}"
    rows = [("One response costs", f"at most ε = {loss(guarantee['epsilon'])}{delta}")]
    if guarantee.get("lifetime_epsilon") is not None:
        rows.append(("All repeated responses together cost", f"at most ε = {loss(guarantee['lifetime_epsilon'])}"))
    charges, blocks = summary.charges, list[Block]()
    about = "Each response uses up a part of a person's privacy budget, measured in ε. The ledger refuses what is over a limit."
    if charges is None:
        why = "This page was made without a ledger" if summary.ledger is None else "The ledger failed its check"
        blocks.append(Note(f"{why}, so this page states no limit and no total.", True))
    elif not charges.accounts:
        rows += [
            (f"Planned limit for each account (policy {each.name})", _limits_text(each)) for each in charges.policies
        ]
        blocks.append(Note("The ledger has no charge for this survey, so no limit was checked.", bool(summary.files)))
    else:
        rows += list(_limits(charges))
        rows.append(("Used for this survey", f"at most ε = {loss(charges.largest)} by any one account"))
        rows.append(
            ("Used in all", f"at most ε = {loss(charges.largest_total)} by any one account, all surveys added up")
        )
        blocks += _meters(charges)
    return Section("budget", "Privacy budget: promised and used", (Note(about), Facts(tuple(rows)), *blocks))


def _limits(charges: Charges) -> Iterator[tuple[str, str]]:
    for policy in charges.policies:
        name = (
            "Limit for each account"
            if len(charges.policies) == 1
            else f"Limit for each account (policy {policy.name})"
        )
        yield name, _limits_text(policy)
        if policy.raised is not None:
            yield (
                "Limits raised since the first answer",
                f"on {', '.join(policy.raised)}" if policy.raised else "never",
            )


def _limits_text(policy: PolicyUse) -> str:
    return "; ".join(map(_limit_text, policy.limits)) or "none"


def _limit_text(limit: LimitUse) -> str:
    delta = "" if not limit.delta else f" at δ = {limit.delta:g}"
    when = "in all" if limit.period == "lifetime" else f"a {limit.period}"
    return f"ε = {limit.epsilon:f}{delta} {when}" + ("" if limit.rule == "basic" else f" (rule {limit.rule})")


def _meters(charges: Charges) -> Iterator[Meter]:
    """Yield the most that one account has used of each limit that never begins again."""
    for policy in charges.policies:
        for limit in policy.limits:
            if limit.largest is not None and limit.epsilon:
                used = min(1.0, limit.largest / float(limit.epsilon))
                shown = f"ε = {loss(limit.largest)} of {limit.epsilon:f} ({percent(used, 'up')})"
                yield Meter("Largest total of one account, of the limit", used, shown)


# -- promises and record ------------------------------------------------------------------------------------


def _promises(summary: Summary) -> Section:
    subject, weighting = summary.subject, summary.weighting
    name, organization = subject.charged_as, subject.organisation or "The organization"
    verify = Code("ldp-budget ledger verify --expect HEAD")
    rows: tuple[tuple[Cell, ...], ...] = (
        (
            f"One response reveals at most ε = {loss(subject.guarantee.describe()['epsilon'])}.",
            "The program that randomizes",
            Code(
                f"ldp-budget audit {name}"
                if len(subject.questions) == 1
                else f"ldp-budget collection show {name} --client"
            ),
        ),
        ("No account is charged beyond its limits.", "The ledger", Code("ldp-budget ledger verify")),
        ("No charge was removed or changed later.", "The ledger's hash chain, and all who noted its head", verify),
        ("The estimates follow from the reports.", organization, Code(f"ldp-budget estimate {name} FILES")),
        *(
            (("The weights and totals describe the population.", organization, "Compare them with their source"),)
            if weighting is not None and (weighting.weights or weighting.totals)
            else ()
        ),
        ("Each respondent is a real person with one account.", organization, "Not by mathematics: ask who invites"),
    )
    return Section("promises", "Who guarantees what", (Grid(("Promise", "Kept by", "How to check"), rows),))


def _record(summary: Summary) -> Section:
    ledger, rows, blocks = summary.ledger, list[tuple[str, Cell]](), list[Block]()
    if ledger is not None:
        rows.append(("Ledger head", "no entry yet" if ledger.head is None else Code(ledger.head)))
        verified = {
            True: f"passed: no problem in {_entries(ledger)}",
            False: f"FAILED: {plural(len(ledger.problems), 'problem')}",
            None: "not run for this page",
        }
        rows.append(("Verification", verified[ledger.ok]))
        if ledger.verified_at is not None and ledger.verified_head is not None:
            rows.append(("Verified", f"{ledger.verified_at:%Y-%m-%d %H:%M} UTC, up to the head"))
            rows.append(("Verified head", Code(ledger.verified_head)))
        if ledger.ok is False:
            blocks.append(
                Note("The ledger failed its verification. Do not rely on the limits and totals above.", True)
            )
    weighting, estimate = summary.weighting, f"ldp-budget estimate {summary.subject.charged_as} FILES"
    if weighting is not None:
        rows.append(("Results estimated with", Code(estimate + weighting.options)))
        if weighting.table is not None:
            rows.append(("Two-way table estimated with", Code(estimate + weighting.table_options)))
    rows += [
        ("Report files", ", ".join(summary.files) or "none"),
        ("Made", f"{summary.made_at:%Y-%m-%d %H:%M} UTC, with ldp-budget {version('ldp-budget')}"),
    ]
    return Section("record", "Record", (Facts(tuple(rows)), *blocks))


def _entries(ledger: LedgerState) -> str:
    """Return the entries of a ledger by their kinds."""
    others = ledger.entries - ledger.charges - ledger.policies
    if others < 0 or not ledger.charges + ledger.policies:  # it grew while the page was made, or counts no kinds
        return plural(ledger.entries, "entry", "entries")
    policies = "1 policy" if ledger.policies == 1 else f"{whole(ledger.policies)} versions of policies"
    parts = [plural(ledger.charges, "charge")]
    parts += [policies] if ledger.policies else []
    parts += [plural(others, "other entry", "other entries")] if others else []
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def sections(summary: Summary) -> list[Section]:
    """Return the parts of the page, in order: the results first."""
    weighting = summary.weighting
    design = [] if weighting is None else [*two_way_section(summary, weighting), how_weighted(summary, weighting)]
    return [
        *(_results(each, summary) for each in summary.subject.questions),
        *design,
        _asked(summary),
        _participation(summary),
        _budget(summary),
        protection(summary),
        _promises(summary),
        _record(summary),
    ]


def warnings(summary: Summary) -> list[str]:
    """Return the sentences at the top of the page that change how it must be read."""
    said = []
    if summary.ledger is not None and summary.ledger.ok is False:
        said.append("Do not rely on this report: the ledger failed its check.")
    said += [f"{each}." for each in summary.twins]
    if any(each.collection.sandbox for each in summary.subject.questions):
        said.append("Made from a sandbox: nothing here counts.")
    return said


def _loss_label(summary: Summary) -> str:
    return "Loss of one response" + (", all answers together" if summary.subject.asked > 1 else "")


def key_figures(summary: Summary) -> list[tuple[str, str, str]]:
    """Return the figures at the top: each a label, a number and a remark."""
    invited, ledger = summary.invited, summary.ledger
    of_invited = f"{_rate(summary)} of {whole(invited)} invited" if invited and _rate(summary) else "of respondents"
    guarantee = summary.subject.guarantee.describe()
    epsilon, delta = guarantee["epsilon"], guarantee["delta"]
    sure = "no bound is promised"
    if epsilon is not None:
        sure = f"ε says how much a response reveals: a guess of 50 % rises to at most {certainty(epsilon)}"
    sure += f", but for δ = {delta:g}" if delta else ""
    figures = [("Answers", whole(summary.answered), of_invited), (_loss_label(summary), at_most(epsilon), sure)]
    if summary.charges is not None and summary.charges.accounts:
        figures.append(("Largest total", at_most(summary.charges.largest_total), "of one account, all surveys"))
    if ledger is not None:
        said = {True: "passed", False: "FAILED", None: "not run"}[ledger.ok]
        figures.append(("Ledger check", said, _entries(ledger)))
    return figures
