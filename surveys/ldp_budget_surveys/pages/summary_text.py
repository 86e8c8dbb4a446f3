"""The facts of a survey in plain words: the sections of its page, without any markup."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ldp_budget.ledger.calendar import days_in
from ldp_budget.sdk.domain import Categories, Interval

from .summary_blocks import Block, Cell, Code, Contact, Facts, Grid, Heading, Meter, Note, Section, Signatures
from .summary_charts import Scale, in_unit, margin_of_fakes, mean_blocks, number_scale, pairs, shares
from .summary_design import group_blocks, how_weighted, population, two_way_section, within_bounds
from .summary_precision import expected_margins, open_answers, with_margins
from .summary_protection import but_for, protection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .ledger_facts import Charges, LedgerState, LimitUse, PolicyUse
    from .survey_summary import Question, Summary
    from .translations import Texts


# -- results -------------------------------------------------------------------------------------------------


def _results(say: Texts, question: Question, summary: Summary) -> Section:
    """Return the estimates of a question as bars, or the reason why there are none."""
    row = question.row
    if row is None:
        return Section("result", question.text, tuple(_without_answers(say, question, summary)))
    asked, people = row.get("asked", row["reports"]), row["reports"]
    of = (
        say("results.chosen", asked=say.whole(asked), people=say.whole(people))
        if asked != people
        else f"{say.count('answers', people)}."
    )
    blocks: list[Block] = [Note(f"{of} {_how(say, row, summary)}"), *_precision(say, row, summary)]
    groups = row.get("groups", ())
    if "answers" in row:
        answers, moved = within_bounds(with_margins(row["answers"], people))
        scale = Scale.of_shares([*row["answers"], *(each for group in groups for each in group["answers"])])
        blocks.append(shares(say, question, question.text, answers, scale))
        blocks += [Note(say("results.outside"))] if moved else []
        if answers and all(each["share_high"] - each["share_low"] >= 0.5 for each in answers):
            blocks.append(Note(say("results.too_few"), True))
        if "pairs" in row:
            label = say("results.pairs", question=question.text)
            blocks += [Heading(label), pairs(say, question, row["pairs"])]
        blocks += margin_of_fakes(say, row)
    else:
        scale = number_scale(question, [row, *groups])
        blocks += mean_blocks(say, question, row, scale)
    if summary.weighting is not None:
        blocks += group_blocks(say, question, row, summary.weighting.by, scale)
    return Section("result", question.text, tuple(blocks))


def _how(say: Texts, row: Mapping[str, Any], summary: Summary) -> str:
    """Return what the bars and the lines are."""
    if summary.weighting is not None:
        return say("results.weighted", population=population(say, summary.weighting))
    return say("results.bar" if "answers" in row else "results.line", people=say.whole(row["reports"]))


def _precision(say: Texts, row: Mapping[str, Any], summary: Summary) -> Iterator[Note]:
    """Yield how many open answers are as precise as the result."""
    number = open_answers(row, weighted=summary.weighting is not None)
    if number is not None:
        yield Note(say("open.weighted" if summary.weighting else "open.plain", answers=say.count("open", number)))


def _without_answers(say: Texts, question: Question, summary: Summary) -> Iterator[Block]:
    if summary.answered:
        yield Note(say("results.not_asked"))
    elif summary.files:
        yield Note(say("results.no_person"), True)
    else:
        yield Note(say("results.planned"))
        yield from expected_margins(say, question, summary.subject, summary.invited)


_MOST_OPTIONS = 50
"""The most answers that a list of options names."""


# -- people and budget ---------------------------------------------------------------------------------------


def _asked(say: Texts, summary: Summary) -> Section:
    subject, unknown = summary.subject, say("not_stated")
    rows: list[tuple[str, Cell]] = [
        (say("asked.survey"), subject.title),
        (say("asked.organization"), subject.organisation or unknown),
        (say("asked.contact"), Contact(subject.contact) if subject.contact else unknown),
        (say("asked.purpose"), subject.purpose or unknown),
    ]
    many = len(subject.questions) > 1
    for at, question in enumerate(subject.questions, 1):
        number = f" {at}" if many else ""
        rows.append((say("asked.question") + number, question.text))
        if options := _options(say, question):
            name = say("asked.answers_to") + number if many else say("asked.options")
            rows.append((name, options + in_unit(question)))
    if subject.asked < len(subject.questions):
        chosen = say("asked.chosen", asked=subject.asked, questions=len(subject.questions))
        rows.append((say("asked.choice"), chosen))
    charges = summary.charges
    if charges is not None and charges.first is not None:
        first, last = say.date(charges.first), say.date(str(charges.last))
        key = "asked.on" if first == last else "asked.from"
        rows.append((say("asked.when"), say(key, first=first, last=last)))
    return Section("asked", say("asked.title"), (Facts(tuple(rows)),))


def _options(say: Texts, question: Question) -> str:
    """Return the answers to choose from, or the range of numbers; empty if answers are not listed."""
    domain, categories = question.collection.mechanism.domain, question.collection.categories
    if isinstance(domain, Interval):
        return say("options.number", low=say.figure(f"{domain.lower:f}"), high=say.figure(f"{domain.upper:f}"))
    if not isinstance(domain, Categories) or not domain.listed:
        return ""
    if categories is None:
        return say("options.whole", most=domain.size - 1)
    more = len(categories) - _MOST_OPTIONS
    listed = ", ".join(map(question.shown, categories[:_MOST_OPTIONS]))
    return listed + (f" {say('options.more', more=say.whole(more))}" if more > 0 else "")


def _participation(say: Texts, summary: Summary) -> Section:
    invited, answered, rate = summary.invited, summary.answered, _rate(say, summary)
    rows = [
        (say("people.invited"), say("not_stated") if invited is None else say.count("people", invited)),
        (
            say("people.answered"),
            _answered(say, summary) + (f" ({say('people.rate', rate=rate)})" if rate else ""),
        ),
        (say("people.refused"), _refused(say, summary)),
    ]
    charges, blocks = summary.charges, list[Block]()
    if charges is not None:
        reports, accounts = say.count("reports", charges.reports), say.count("accounts", charges.accounts)
        rows.append((say("people.charged"), say("people.accounts_for", accounts=accounts, reports=reports)))
        missing = max(answered - charges.reports, summary.uncharged)
        if missing > 0:
            uncharged = say("people.uncharged", missing=say.whole(missing), answered=say.whole(answered))
            blocks.append(Note(uncharged, True))
    weighting = summary.weighting
    described = say("people.themselves") if weighting is None else population(say, weighting)
    rows.append((say("people.described"), described))
    return Section("participation", say("people.title"), (Facts(tuple(rows)), *blocks))


def people_who_answered(summary: Summary) -> int:
    """Return how many people answered at most: each account counts once, although it may have sent several reports."""
    charges = summary.charges
    return min(summary.answered, charges.accounts) if charges and charges.accounts else summary.answered


def _answered(say: Texts, summary: Summary) -> str:
    reports, people = summary.answered, people_who_answered(summary)
    if people == reports:
        return say.whole(reports)
    return say("people.reports_of", reports=say.count("reports", reports), accounts=say.count("accounts", people))


def _rate(say: Texts, summary: Summary) -> str:
    invited, people = summary.invited, people_who_answered(summary)
    return say.percent(people / invited) if invited and people <= invited else ""


def _refused(say: Texts, summary: Summary) -> str:
    if summary.refused is not None:
        return say.whole(summary.refused)
    known = None if summary.ledger is None else summary.ledger.refused
    return say("not_stated") if known is None else say.count("people.requests", known)


def _budget(say: Texts, summary: Summary) -> Section:
    guarantee = summary.subject.guarantee.describe()
    delta = _delta(say, guarantee["delta"])
    rows = [(say("budget.each"), say("budget.at_most", epsilon=say.loss(guarantee["epsilon"])) + delta)]
    if guarantee.get("lifetime_epsilon") is not None:
        rows.append((say("budget.repeated"), say("budget.at_most", epsilon=say.loss(guarantee["lifetime_epsilon"]))))
    charges, blocks = summary.charges, list[Block]()
    if charges is None:
        blocks.append(Note(say("budget.no_ledger" if summary.ledger is None else "budget.failed"), True))
    elif not charges.accounts:
        rows += [(say("budget.planned", policy=each.name), _limits_text(say, each)) for each in charges.policies]
        blocks.append(Note(say("budget.no_charge"), bool(summary.files)))
    else:
        rows += list(_limits(say, charges))
        rows.append((say("budget.survey"), say("budget.survey_used", epsilon=say.loss(charges.largest))))
        rows.append((say("budget.all"), say("budget.all_used", epsilon=say.loss(charges.largest_total))))
        blocks += _meters(say, charges)
    return Section("budget", say("budget.title"), (Note(say("budget.about")), Facts(tuple(rows)), *blocks))


def _delta(say: Texts, delta: Any) -> str:
    return f", δ = {say.figure(f'{delta:g}')}" if delta else ""


def _limits(say: Texts, charges: Charges) -> Iterator[tuple[str, str]]:
    for policy in charges.policies:
        key = "budget.limit" if len(charges.policies) == 1 else "budget.limit_of"
        yield say(key, policy=policy.name), _limits_text(say, policy)
        if policy.raised is not None:
            days = ", ".join(map(say.date, policy.raised))
            yield say("budget.raised"), say("budget.raised_on", days=days) if days else say("budget.never_raised")


def _limits_text(say: Texts, policy: PolicyUse) -> str:
    return "; ".join(_limit_text(say, limit) for limit in policy.limits) or say("none")


def _limit_text(say: Texts, limit: LimitUse) -> str:
    delta = _delta(say, limit.delta)
    rule = "" if limit.rule == "basic" else f" ({say('budget.rule', rule=limit.rule)})"
    amount = f"ε = {say.figure(f'{limit.epsilon:f}')}{delta}"
    days = days_in(limit.period)
    said = say("period.days", amount=amount, days=days) if days else say(f"period.{limit.period}", amount=amount)
    return (f"{limit.scope}: " if limit.scope else "") + said + rule


def _meters(say: Texts, charges: Charges) -> Iterator[Meter]:
    """Yield the most that one account has used of each limit that never begins again."""
    for policy in charges.policies:
        for limit in policy.limits:
            if limit.largest is not None and limit.epsilon:
                used = min(1.0, limit.largest / float(limit.epsilon))
                shown = say(
                    "budget.used_of",
                    spent=say.loss(limit.largest),
                    most=say.figure(f"{limit.epsilon:f}"),
                    share=say.percent(used, "up"),
                )
                scope = f" ({limit.scope})" if limit.scope else ""
                yield Meter(say("budget.largest") + scope, used, shown)


# -- promises and record ------------------------------------------------------------------------------------


def _promises(say: Texts, summary: Summary) -> Section:
    subject, weighting = summary.subject, summary.weighting
    name, organization = subject.charged_as, subject.organisation or say("the_organization").capitalize()
    check = f"audit {name}" if len(subject.questions) == 1 else f"collection show {name} --client"
    loss = say.loss(subject.guarantee.describe()["epsilon"])
    rows: list[tuple[Cell, ...]] = [
        (say("promise.loss", epsilon=loss), say("keeper.program"), Code(f"ldp-budget {check}")),
        (say("promise.limits"), say("keeper.ledger"), Code("ldp-budget ledger verify")),
        (say("promise.charges"), say("keeper.chain"), Code("ldp-budget ledger verify --expect HEAD")),
        (say("promise.estimates"), organization, Code(f"ldp-budget estimate {name} FILES")),
    ]
    if weighting is not None and (weighting.weights or weighting.totals):
        rows.append((say("promise.weights"), organization, say("keeper.source")))
    rows.append((say("promise.people"), organization, say("keeper.invitations")))
    header = tuple(map(say, ("column.promise", "column.keeper", "column.how_to_check")))
    return Section("promises", say("promise.title"), (Grid(header, tuple(rows)),))


def _record(say: Texts, summary: Summary) -> Section:
    ledger, rows, blocks = summary.ledger, list[tuple[str, Cell]](), list[Block]()
    if ledger is not None:
        rows.append((say("record.head"), say("record.no_entry") if ledger.head is None else Code(ledger.head)))
        rows.append((say("record.verification"), _verification(say, ledger)))
        if ledger.verified_at is not None and ledger.verified_head is not None:
            rows.append((say("record.verified"), say("record.up_to", time=say.moment(ledger.verified_at))))
            rows.append((say("record.verified_head"), Code(ledger.verified_head)))
        if ledger.ok is False:
            blocks.append(Note(say("record.do_not_rely"), True))
    weighting, estimate = summary.weighting, f"ldp-budget estimate {summary.subject.charged_as} FILES"
    if weighting is not None:
        rows.append((say("record.estimated"), Code(estimate + weighting.options)))
        if weighting.table is not None:
            rows.append((say("record.table"), Code(estimate + weighting.table_options)))
    made = say("record.made_with", time=say.moment(summary.made_at), version=version("ldp-budget"))
    rows += [(say("record.files"), ", ".join(summary.files) or say("none")), (say("record.made"), made)]
    signers = (say("signature.survey"), say("signature.privacy"))
    labels = tuple(map(say, ("signature.name", "signature.role", "signature.date", "signature.signature")))
    return Section("record", say("record.title"), (Facts(tuple(rows)), *blocks, Signatures(signers, labels)))


def _verification(say: Texts, ledger: LedgerState) -> str:
    if ledger.ok is None:
        return say("record.not_run")
    if ledger.ok:
        return say("record.passed", entries=_entries(say, ledger))
    return say("record.failed", problems=say.count("problems", len(ledger.problems)))


def _entries(say: Texts, ledger: LedgerState) -> str:
    """Return the entries of a ledger by their kinds."""
    others = ledger.entries - ledger.charges - ledger.policies
    if others < 0 or not ledger.charges + ledger.policies:  # it grew while the page was made, or counts no kinds
        return say.count("entries", ledger.entries)
    parts = [say.count("charges", ledger.charges)]
    parts += [say.count("versions", ledger.policies)] if ledger.policies else []
    parts += [say.count("others", others)] if others else []
    if len(parts) == 1:
        return parts[0]
    return say("and", first=", ".join(parts[:-1]), last=parts[-1])


def sections(say: Texts, summary: Summary) -> list[Section]:
    """Return the parts of the page, in order: the results first."""
    weighting = summary.weighting
    design = (
        []
        if weighting is None
        else [*two_way_section(say, summary, weighting), how_weighted(say, summary, weighting)]
    )
    return [
        *(_results(say, each, summary) for each in summary.subject.questions),
        *design,
        _asked(say, summary),
        _participation(say, summary),
        _budget(say, summary),
        protection(say, summary),
        _promises(say, summary),
        _record(say, summary),
    ]


def warnings(say: Texts, summary: Summary) -> list[str]:
    """Return the sentences at the top of the page that change how it must be read."""
    said = []
    if summary.ledger is not None and summary.ledger.ok is False:
        said.append(say("warning.ledger"))
    said += [say("warning.twins", first=first, second=second) for first, second in summary.twins]
    if any(each.collection.sandbox for each in summary.subject.questions):
        said.append(say("warning.sandbox"))
    return said


def key_figures(say: Texts, summary: Summary) -> list[tuple[str, str, str]]:
    """Return the figures at the top: each a label, a number and a remark."""
    invited, ledger, rate = summary.invited, summary.ledger, _rate(say, summary)
    of_invited = (
        say("figure.of_invited", rate=rate, invited=say.whole(invited)) if invited and rate else say("figure.of")
    )
    guarantee = summary.subject.guarantee.describe()
    epsilon = guarantee["epsilon"]
    sure = say("figure.no_bound") if epsilon is None else say("figure.sure", sure=say.certainty(epsilon))
    label = say("figure.loss_all" if summary.subject.asked > 1 else "figure.loss")
    figures = [
        (say("figure.answers"), say.whole(summary.answered), of_invited),
        (label, _at_most(say, epsilon), sure + but_for(say, guarantee["delta"])),
    ]
    if summary.charges is not None and summary.charges.accounts:
        total = _at_most(say, summary.charges.largest_total)
        figures.append((say("figure.largest"), total, say("figure.largest_of")))
    if ledger is not None:
        said = {True: "figure.passed", False: "figure.failed", None: "figure.not_run"}[ledger.ok]
        figures.append((say("figure.ledger"), say(said), _entries(say, ledger)))
    return figures


def _at_most(say: Texts, epsilon: Any) -> str:
    shown = say.loss(epsilon)
    return shown if shown == say("unbounded") else f"ε ≤ {shown}"
