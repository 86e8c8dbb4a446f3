"""`ldp-budget survey`: surveys of several questions, from a TOML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ldp_budget.guarantees.fixed_point import printed_up
from ldp_budget_cli.app import open_ledger
from ldp_budget_cli.excel_files import xlsx_option
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.number_types import parse_margin
from ldp_budget_cli.output import json_option, next_step, print_json, print_rows, rows_options
from ldp_budget_cli.tables import print_fields, print_row_table

from .named_surveys import survey_of
from .survey_forms import export, import_
from .survey_plan import panel_option, plan_survey, respondents_option, total_epsilon_option

if TYPE_CHECKING:
    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.accounting.receipts import Receipt
    from ldp_budget.client import Client
    from ldp_budget.registry.collections import Collection

    from ..questionnaires.surveys import Survey


@click.group()
def survey() -> None:
    """Define, show and list surveys: several questions that are charged as one."""


@survey.command("add")
@click.argument("file", type=click.Path(dir_okay=False))
@json_option
@click.pass_context
def add(ctx: click.Context, file: str, as_json: bool) -> None:
    """Store the survey that the TOML FILE defines.

    \b
    [survey]      name, epsilon; optional: title, organisation, contact, purpose,
                  answer (how many questions each person answers, or "all"),
                  rounds, policy, languages,
                  rotate = 12 with every = "week" (each week asks another
                  twelfth of the users)
    [[question]]  name; categories, or lower and upper, or kind = "yes-no";
                  kind = "tick" with categories for tick all that apply:
                  at_most = 3 (or "any"), pairs = true for pairs of options;
                  kind = "scale" with whole lower and upper:
                  report = "mean" (or "shares", "top-box", "nps"), top = 2;
                  optional: text, unit, mechanism, epsilon, languages,
                  tags = ["attribute:health"] for limits with that scope

    [[grid]]      name, items; categories, or whole lower and upper; optional:
                  answer (of how many items each person answers), text,
                  languages, tags

    A survey that no person could ever answer under its policy is refused.

    \b
    Example:
      ldp-budget survey add health.toml
    """
    from ldp_budget.errors import InvalidParameter
    from ldp_budget_cli.app import check_local

    from ..design_prices import design_prices
    from ..questionnaires.survey_collection import survey_collection
    from ..questionnaires.surveys import Survey
    from .collection import check_free, register, stored_as

    try:
        survey = Survey.from_toml(file)
        survey_collection(survey)
        check_free(survey.name)
        ledger = check_local(open_ledger(ctx, create=True), "run `survey add` on the machine of the ledger")
        made = survey_collection(survey, stored_as(ledger, survey.name))
    except InvalidParameter as error:
        raise click.UsageError(str(error) if str(error).startswith(file) else f"{file}: {error}") from None
    _check_affordable(ledger, made)
    _warn_of_missing_translations(survey)
    outcome = register(ledger, made, "survey")
    if as_json:
        print_json(shown_survey(made))
        return
    click.echo(outcome)
    _print_survey(made)
    _note_rotation(ledger, survey)
    for price in design_prices(survey):
        print_note(price)
    next_step(f"ldp-budget randomize {made.name} FILE --user-column USER --spend --out {made.name}.reports")


def _warn_of_missing_translations(survey: Survey) -> None:
    """Print, for each language of the survey, the texts that respondents will read in the original language."""
    from ..questionnaires.survey_questions import CHOICE, TICK

    texts = {name: survey.languages for name in ("title", "purpose") if getattr(survey, name)}
    for question in survey.questions:
        own = {"text": question.text, "categories": question.kind in (CHOICE, TICK)}
        texts |= {f"{name} of {question.name}": question.languages for name, given in own.items() if given}
    for tag in sorted({tag for languages in texts.values() for tag in languages}):
        missing = [name for name, languages in texts.items() if name.partition(" ")[0] not in languages.get(tag, {})]
        if missing:
            print_note(
                f"Warning: languages.{tag} has no {', '.join(missing)}: respondents read the original there. To translate "
                "it, complete the file and add the survey under another name."
            )


def _check_affordable(ledger: Accountant | Client, made: Collection) -> None:
    """Raise a click error if no person could ever answer the survey, or all of its rounds, under its policy."""
    from secrets import token_hex

    from ldp_budget._tags import part_of
    from ldp_budget.composition import compose

    survey = survey_of(made)
    name, cost = survey.policy, f"ε = {printed_up(made.mechanism.guarantee.epsilon)}"
    if name not in {policy.name for policy in ledger.policies()}:
        print_note(
            f"Note: there is no policy {name!r} yet. Set it before the first answer: ldp-budget policy set {name} "
            f"--limit lifetime={survey.epsilon * survey.rounds_each}"
        )
        return
    quoted = ledger.quote(token_hex(16), made, policy=name)
    if quoted.why or quoted.binding:
        raise click.ClickException(
            f"Survey {made.name!r} was not added: no person could answer it under policy {name!r}. One round costs "
            f"{cost}: {_reason(quoted)}. Lower epsilon in the file, or see the policy: ldp-budget policy show {name}"
        )
    for limit in ledger.policy(name).limits_for(None, tuple(made.losses)):
        if limit.period != "lifetime" or survey.rounds_each == 1:
            continue
        loss = part_of(limit.scope, made.losses, made.losses) or made.mechanism.guarantee
        total = compose([(loss, survey.rounds_each)], delta=limit.delta, rule=limit.rule).epsilon
        if total > limit.epsilon:
            raise click.ClickException(
                f"Survey {made.name!r} was not added: its {survey.rounds_each} rounds cost ε = "
                f"{printed_up(total)}, and the {limit.label} limit of policy {name!r} is {limit.epsilon}. Lower epsilon or "
                f"rounds in the file: ldp-budget plan --survey FILE.toml --total-epsilon {limit.epsilon}"
            )


def _note_rotation(ledger: Accountant | Client, survey: Survey) -> None:
    """Print what enforces the rotation of a survey."""
    from ..rotation import enforcing_limit, is_enforced

    if not survey.rotate:
        return
    limits = next((policy.limits for policy in ledger.policies() if policy.name == survey.policy), ())
    print_note(
        f"Rotation: each period ({survey.every}) asks 1 of {survey.rotate} parts of the users, and nobody twice within "
        f"{survey.least_days_between} days. The ledger's key decides who is in which part."
    )
    if not is_enforced(survey, limits):
        print_note(
            f"Note: no limit of policy {survey.policy!r} enforces the rotation yet. Add one: ldp-budget policy set "
            f"{survey.policy} --limit {enforcing_limit(survey)} --limit lifetime={survey.epsilon * survey.rounds_each}"
        )


def _reason(quoted: Receipt) -> str:
    if quoted.binding:
        return f"the limit of {' and '.join(quoted.binding)} is smaller"
    return quoted.why.rstrip(".")


def shown_survey(found: Collection) -> dict[str, Any]:
    """Return the object that `survey show --json` prints."""
    survey, mechanism = survey_of(found), found.mechanism
    rows = []
    for asked, question in zip(survey.slots, mechanism.questions, strict=True):  # type: ignore[attr-defined]
        own, said = question.mechanism, asked.to_json()
        said |= {"items": list(question.asked_items)} if question.asked_items is not None else {}
        bias = own.utility().get("max_bias")
        said |= {"design": own.design_words} if hasattr(own, "design_words") else {}
        row = {**said, "mechanism": own.name, "epsilon": own.guarantee.epsilon, "declared": own.declared}
        rows.append(row if bias is None else {**row, "max_bias": bias})
    return {
        **survey.to_json(),
        "answer": survey.ask,
        "questions": rows,
        "guarantee": mechanism.guarantee.describe(),
        **({"losses": {tag: loss.epsilon for tag, loss in found.losses.items()}} if found.losses else {}),
        "report_bytes": mechanism.row_bytes,  # type: ignore[attr-defined]
        "fingerprint": found.fingerprint,
        "client": found.client,
        "definition": survey.fingerprint,
    }


def survey_loss(found: Collection) -> float:
    """Return the ε of one row of a survey."""
    return found.mechanism.guarantee.epsilon


def _print_survey(found: Collection) -> None:
    row = shown_survey(found)
    questions = row.pop("questions")
    fields = {name: value for name, value in row.items() if name not in ("format", "version", "languages", "losses")}
    if "losses" in row:
        about = [f"{tag.replace('*', 'any other')} ε = {printed_up(loss)}" for tag, loss in row["losses"].items()]
        fields["loss"] = (
            f"{'; '.join(about)}; a linked attribute can be inferred up to ε = {printed_up(survey_loss(found))}"
        )
    fields["answer"] = f"{row['answer']} of {len(questions)} questions"
    if tags := sorted({*row.get("languages", {}), *(tag for each in questions for tag in each.get("languages", {}))}):
        fields["languages"] = ", ".join(tags)
    print_fields(fields)
    click.echo("")
    print_row_table(
        [
            {
                "question": each["name"],
                "text": each.get("text", ""),
                "answers": _answers(each),
                "mechanism": each["mechanism"],
                "ε": each["epsilon"],
            }
            for each in questions
        ],
        ("text",),
    )
    for each in questions:
        if "design" in each:
            print_note(f"{each['name']}: {each['design']}")
        if "max_bias" in each:
            print_note(
                f"Note: the mean of {each['name']} is off by up to {each['max_bias']:.3g} however many people answer; the "
                "interval of an estimate leaves that out"
            )


def _answers(question: dict[str, Any]) -> str:
    if question["kind"] == "grid":
        numbers = f"{question['lower']} to {question['upper']}" if "lower" in question else None
        if question.get("index"):
            return f"the mean of {numbers} for {', '.join(question['items'])}"
        return f"{numbers or ', '.join(question.get('categories', ('yes', 'no')))} for {', '.join(question['items'])}"
    if question["kind"] == "scale":
        return f"{question['lower']} to {question['upper']}, reported as {question['report']}"
    if "lower" in question:
        unit = f" {question['unit']}" if "unit" in question else ""
        return f"{question['lower']} to {question['upper']}{unit}"
    names = ", ".join(question.get("categories", ("yes", "no")))
    most = question.get("at_most")
    return names if most is None else f"any of {names}" if most == "any" else f"up to {most} of {names}"


@survey.command("plan")
@click.argument("name", metavar="FILE|NAME")
@respondents_option
@click.option(
    "--margin",
    metavar="SHARE",
    callback=parse_margin,
    help="Show how many respondents give this margin at 95 %, such as 3%.",
)
@panel_option
@total_epsilon_option
@xlsx_option
@json_option
@click.pass_context
def plan(ctx: click.Context, /, name: str, **given: Any) -> None:
    """Show the margins of the survey in a TOML FILE or of that NAME, the cheapest design first, as `plan --survey` does.

    \b
    Example:
      ldp-budget survey plan health.toml --respondents 1200
    """
    ctx.invoke(plan_survey, survey=name, **given)


@survey.command("show")
@click.argument("name")
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show the survey NAME. For a client in another language: ldp-budget collection show NAME --client.

    \b
    Example:
      ldp-budget survey show health
    """
    found = open_ledger(ctx).collection(name)
    survey_of(found)
    if as_json:
        print_json(shown_survey(found))
    else:
        _print_survey(found)


@survey.command("list")
@rows_options
@click.pass_context
def list_(ctx: click.Context, form: str | None) -> None:
    """List the surveys of the ledger.

    \b
    Example:
      ldp-budget survey list
    """
    stored = [each["survey"] for each in open_ledger(ctx).collections() if "survey" in each]
    rows = [
        {
            "name": each["name"],
            "title": each.get("title", ""),
            "questions": len(each["questions"]),
            "answer": each["answer"],
            "epsilon": each["epsilon"],
            "rounds": each["rounds"],
            "policy": each["policy"],
        }
        for each in stored
    ]
    if form is not None:
        print_rows(rows, form)
    elif rows:
        print_row_table(rows)
    else:
        print_note("There are no surveys. Add one: ldp-budget survey add FILE.toml")


survey.add_command(import_)
survey.add_command(export)
