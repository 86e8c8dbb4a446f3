"""Writes the pages of docs/reference from the code: `python docs/reference/generate.py`.

With `--out FOLDER` they go there instead. `tests/docs/test_reference.py` holds the committed pages against a fresh
generation.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

# Before the registry is read: the pages list what every installation has.
os.environ["LDP_BUDGET_NO_PLUGINS"] = "1"

import click

import ldp_budget
from ldp_budget import client, composition, guarantees, sampling, testing
from ldp_budget.accounting import (
    batch,
    budget_projection,
    bulk_run,
    ledger_operations,
    policies,
    receipts,
    usage_stats,
)
from ldp_budget.guarantees import dominating_pairs, fixed_point
from ldp_budget.ledger import verification
from ldp_budget.registry import certification, ranking, sample_size
from ldp_budget.registry.plugins import registry
from ldp_budget.reports import charged_release, parquet, partial_aggregate, report_file
from ldp_budget.sampling import memoisation
from ldp_budget.sdk import consistency, domain, estimates, interpreter, numeric_mechanism
from ldp_budget.sdk import parameters as fields
from ldp_budget.sdk.client_program import OPERATORS
from ldp_budget_cli.app import cli
from ldp_budget_cli.mechanism_subcommands import MechanismGroup
from ldp_budget_service import create_app
from ldp_budget_service.auth import ACCESS
from ldp_budget_service.error_codes import MEANINGS, STATUSES

HERE = Path(__file__).resolve().parent
WIDTH, LINE = 100, 115
EXAMPLE = "oue"
LEADING = "grr"
"""The alias under which its mechanism is documented: the field's name for it."""
NOTE = "<!-- made by docs/reference/generate.py; do not edit -->"
HTTP = "http.md"
OPERATIONS = "<!-- operations, made by docs/reference/generate.py; do not edit -->"
PROBLEMS = "<!-- problems, made by docs/reference/generate.py; do not edit -->"
END = "<!-- end of what is made -->"
SUBJECTS = {
    "spending": "Spending",
    "users": "Users",
    "policies": "Policies",
    "collections": "Collections",
    "reports": "Reports and estimates",
    "respondents": "Respondents",
    "questions": "Questions about mechanisms",
    "ledger": "The ledger",
    "overview": "Figures",
    "officer": "The privacy officer",
    "watching": "Watching",
    "about": "About the service",
}
PROGRAMS = "client-programs.md"
FIRST = "<!-- operators, made by docs/reference/generate.py; do not edit -->"
LAST = "<!-- end of operators -->"
KINDS = {
    "draw": "Drawn from the stream. A draw stands alone at the top of a step.",
    "memo": "Drawn from the secret, the same however often it is asked for; at the top of a step too.",
    "hash": "Public hash functions. The seed is a text, and no expression; words are 8 bytes, little-endian.",
    "each": "Number by number; over vectors of one length place by place, with a number beside them for each place.",
    "whole": "On whole vectors.",
}
# A ledger that is not there: what collections somebody has is no part of the page.
NO_LEDGER = os.devnull + "/none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE, metavar="FOLDER")
    out = parser.parse_args().out
    pages = (("commands.md", commands()), ("python.md", python()))
    for name, lines in pages:
        (out / name).write_text("\n".join([NOTE, "", *lines]).rstrip() + "\n", encoding="utf-8")
    (out / PROGRAMS).write_text(with_operators((HERE / PROGRAMS).read_text(encoding="utf-8")), encoding="utf-8")
    page = between((HERE / HTTP).read_text(encoding="utf-8"), OPERATIONS, operations())
    (out / HTTP).write_text(between(page, PROBLEMS, problems()), encoding="utf-8")


def between(page: str, first: str, lines: Iterator[str]) -> str:
    """A page with what stands after a mark replaced."""
    before, rest = page.split(first)
    _, after = rest.split(END, 1)
    return "\n".join([f"{before}{first}", *lines, f"{END}{after}"])


# -- HTTP --------------------------------------------------------------------------------------------------------


def operations() -> Iterator[str]:
    """Every operation with its scope, what a bound key may do, and what it does, by subject."""
    with ldp_budget.Accountant(":memory:") as accountant:
        schema = create_app(accountant).openapi()
    by_tag: dict[str, list[str]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            what = operation.get("description", operation["summary"]).partition("\n\n")[0].replace("\n", " ")
            access = ACCESS[method.upper(), path]
            may = f"{access.scope} | {access.policy} | {access.collection}"
            row = f"| `{method.upper()} {path}` | {may} | {what} |"
            by_tag.setdefault(operation.get("tags", ["about"])[0], []).append(row)
    for tag, title in SUBJECTS.items():
        if tag in by_tag:
            head = "| operation | scope | policy-bound | collection-bound | what it does |"
            yield from ("", f"### {title}", "", head, "| --- | --- | --- | --- | --- |", *by_tag.pop(tag))
    assert not by_tag, f"no subject: {', '.join(by_tag)}"
    yield ""


def problems() -> Iterator[str]:
    """Every type of problem with its status and meaning."""
    yield from ("", "| type | status | |", "| --- | --- | --- |")
    for code, status in sorted(STATUSES.items(), key=lambda item: (item[1], item[0])):
        yield f"| `{code}` | {status} | {MEANINGS[code]} |"
    yield ""


# -- client programs ---------------------------------------------------------------------------------------------


def with_operators(page: str) -> str:
    """The page of the client programs, with the table of the operators as they are defined now."""
    before, rest = page.split(FIRST)
    _, after = rest.split(LAST)
    return "\n".join([f"{before}{FIRST}", *operators(), f"{LAST}{after}"])


def operators() -> Iterator[str]:
    """Every operator with its sentence, by what it does with its arguments."""
    for kind, words in KINDS.items():
        yield from ("", words, "", "| operator | |", "| --- | --- |")
        for name, operator in OPERATORS.items():
            if operator.kind == kind:
                yield f"| `{' '.join((name, *(operator.arguments or ('…',))))}` | {operator.sentence} |"
    yield ""


# -- commands ---------------------------------------------------------------------------------------------------


def commands() -> Iterator[str]:
    """The lines of commands.md."""
    yield from (
        "# Commands",
        "",
        "The help of every command. Where a command takes MECHANISM, that is a subcommand made from the mechanism's",
        f"fields, and its options follow it; shown here for `{EXAMPLE}`. The options of all mechanisms are",
        "[below](#mechanisms). A collection's name may stand in MECHANISM's place, without options.",
        "",
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused (over budget; bulk commands count refusals and exit",
        "with 0). `--json` prints one JSON object on standard output and nothing else there (rows: an array);",
        "progress and notes go to standard error. Amounts on a command line are decimals, taken as they are written.",
        "",
    )
    root = _context(cli, None, "ldp-budget")
    yield from _help(root)
    for name in cli.list_commands(root):
        yield from _command(cli, root, name)
    yield from _mechanisms()


def _context(command: click.Command, parent: click.Context | None, name: str) -> click.Context:
    settings = {**command.context_settings, "terminal_width": WIDTH, "obj": NO_LEDGER}
    return command.context_class(command, parent=parent, info_name=name, **settings)


def _command(group: click.Group, parent: click.Context, name: str) -> Iterator[str]:
    command = group.get_command(parent, name)
    assert command is not None
    context = _context(command, parent, name)
    words = context.command_path.split()
    yield from ("#" * len(words) + " " + " ".join(words), "")
    if isinstance(command, MechanismGroup):
        yield from (f"{command.help}", "")
        yield from _help(_context(command.get_command(context, EXAMPLE), context, EXAMPLE))
    else:
        yield from _help(context)
    if isinstance(command, click.Group) and not isinstance(command, MechanismGroup):
        for each in command.list_commands(context):
            yield from _command(command, context, each)


def _help(context: click.Context) -> Iterator[str]:
    yield from ("```text", *context.get_help().splitlines(), "```", "")


def _mechanisms() -> Iterator[str]:
    yield from (
        "## Mechanisms",
        "",
        "What each mechanism declares: the options of `calibrate`, `compose`, `spend`, `collection add`, `audit` …;",
        "in Python keyword arguments, with `_` for `-`. A *derived* one stands in place of a target: a mechanism can",
        "be built from it, and `calibrate` does not ask for it. A privacy loss ε is the natural logarithm of a ratio",
        "of probabilities; lower, upper, maximum, sensitivity, scale and sigma are in the unit of the users' values.",
        "",
    )
    for mechanism, _ in registry().items():
        name, *others = sorted((mechanism.name, *mechanism.aliases), key=LEADING.__ne__)
        also = f" Also called {', '.join(f'`{other}`' for other in others)}." if others else ""
        yield from (f"### {name}", "", f"{_sentence(mechanism.summary)}{also}", "")
        yield from (f"Source: {mechanism.source}.", "")
        yield from ("| option | value | given | meaning |", "| --- | --- | --- | --- |")
        yield from (_row(field) for field in mechanism.fields.values())
        yield ""


def _row(field: fields.Field[Any]) -> str:
    option = f"`--{field.name.replace('_', '-')}`"
    unit = getattr(field, "unit", "")
    cells = (option, field.expected + (f", in {unit}" if unit else ""), _given(field), field.help)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _given(field: fields.Field[Any]) -> str:
    if field.required:
        return "required"
    if isinstance(field, fields.Flag):
        return "off by default"
    if field.default is not None:
        return f"default {field.default}"
    return "derived" if field.derived else "optional"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


# -- Python -----------------------------------------------------------------------------------------------------

# What the public functions take and return, and what a plugin is made of: not in `ldp_budget` itself.
ANSWERS: tuple[tuple[ModuleType, tuple[str, ...]], ...] = (
    (receipts, ("Receipt", "LimitState", "Balance", "Amounts")),
    (budget_projection, ("Remaining", "BudgetPoint")),
    (ledger_operations, ("LedgerOperations",)),
    (usage_stats, ("Overview",)),
    (batch, ("Spend", "SpendResult")),
    (bulk_run, ("BulkResult",)),
    (policies, ("Policy",)),
    (verification, ("Integrity",)),
    (composition, ("Bound",)),
    (estimates, ("CountEstimate", "MeanEstimate", "CountAggregate", "SumAggregate")),
    (consistency, ("ConsistentEstimate", "consistent", "adjusted")),
    (ranking, ("rank_frequency", "rank_numeric")),
    (sample_size, ("respondents_for",)),
    (report_file, ("ReportWriter", "read_reports")),
    (parquet, ("PartitionWriter", "writer_to", "partitions_in", "open_partition", "Partition")),
    (partial_aggregate, ("aggregate", "aggregate_reports", "Partial")),
    (charged_release, ("release", "Released")),
    (certification, ("checked",)),
)
PARTS: tuple[tuple[str, str, tuple[tuple[ModuleType, tuple[str, ...]], ...]], ...] = (
    (
        "Parts of a plugin",
        "[Writing a plugin](../tutorials/writing-a-plugin.md) shows them at work and lists every hook. Whatever is "
        "named neither there nor here may change with any release.",
        (
            (domain, ("Categories", "Interval")),
            (fields, ("real", "optional_real", "integer", "optional_integer", "choice", "flag", "matrix")),
            (testing, ("MechanismContract",)),
        ),
    ),
    (
        "Exact amounts, for a plugin",
        "A privacy loss is a decimal, never a float, and every bound is rounded to the side that promises more loss.",
        (
            (fixed_point, ("decimal", "UP", "DOWN", "exp_up", "exp_down", "ln_up", "exact_sum")),
            (fixed_point, ("float_above", "float_below", "float_up", "float_down")),
            (dominating_pairs, ("dominating_pair", "joined")),
        ),
    ),
    (
        "Draws, for a plugin",
        "All randomness of a client. A draw compares bytes of a stream with whole numbers, so its probabilities are "
        "exact; no float decides what is sent. Import what draws inside functions: it loads numpy.",
        (
            (sampling, ("ONE", "threshold", "open_stream", "RandomSource", "Stream", "SeededStream")),
            (sampling, ("bernoulli", "integers", "choices", "subsets", "geometric", "laplace", "normal")),
            (sampling, ("unary_bits",)),
            (memoisation, ("memo_words",)),
        ),
    ),
    (
        "What a server adds up, for a plugin",
        "Besides `CountAggregate` and `SumAggregate` [above](#what-calls-return-and-take).",
        (
            (estimates, ("SupportLaw", "StudentLaw", "BoundedMeanEstimate", "NoiseMeanEstimate", "BitMeanEstimate")),
            (interpreter, ("pack_rows", "bit_of", "column_sums")),
            (numeric_mechanism, ("average",)),
        ),
    ),
)
# Whose own text is that of another package, or speaks to pytest.
TEXTS = {
    "hookimpl": "Marks a function of a plugin's module as implementing a hook, such as `register_mechanisms`.",
    "UP": "A decimal context of forty digits that rounds up: `UP.divide(a, b)` is an upper bound of a/b. The "
    "operators of `Decimal` round to the nearest in the caller's own context, so no bound is made with them.",
    "DOWN": "The same, rounding down.",
    "ONE": "2**64, the threshold of probability 1.",
    "RandomSource": "What `rng` may be: None for cryptographic randomness; a `Stream`; and in tests only an int, "
    "which is a seed, or a `numpy.random.Generator`.",
}
NO_MEMBERS = ("MechanismContract",)
NOT_MADE = ("BudgetClient",)
"""Protocols."""


def python() -> Iterator[str]:
    """The lines of python.md."""
    yield from (
        "# Python",
        "",
        "Every public name, with its members. Numbers of privacy (ε, δ and the like) may be given as text, which is",
        'read as an exact decimal; a float means its shortest decimal, so `0.1` and `"0.1"` are the same.',
        "",
        "## `ldp_budget`",
        "",
    )
    for name in ldp_budget.__all__:
        yield from _entry(getattr(ldp_budget, name), name)
    yield from _over_http()
    yield from ("## What calls return and take", "")
    for module, names in ANSWERS:
        yield from _entries(module, names)
    yield from ("## Guarantees", "", *_promises())
    for title, text, parts in PARTS:
        yield from (f"## {title}", "", *textwrap.wrap(text, LINE, break_long_words=False), "")
        for module, names in parts:
            yield from _entries(module, names)


def _entries(module: ModuleType, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        yield from _entry(getattr(module, name), f"{module.__name__}.{name}")


def _over_http() -> Iterator[str]:
    """The client of a service."""
    yield from (
        "## Over HTTP",
        "",
        "Its members are those of `BudgetClient`; see [the guide](../guides/remote.md).",
        "",
    )
    for cls in (client.Client, client.ServiceProblem):
        name = cls.__name__
        yield from (f"### `{client.__name__}.{name}`", "", *_code(name, cls), _prose(_own_text(cls)), "")


def _promises() -> Iterator[str]:
    """The closed vocabulary of guarantees."""
    yield from ("In `ldp_budget.guarantees`; there are no others. Members that all have:", "")
    yield from _members(guarantees.Guarantee)
    for cls in guarantees.Guarantee.__subclasses__():
        yield from (f"### `{cls.__module__}.{cls.__name__}`", "", *_code(cls.__name__, cls))
        yield from (_prose(_own_text(cls)), "")


def _entry(value: Any, name: str) -> Iterator[str]:
    yield from (f"### `{name}`", "")
    short = name.rpartition(".")[2]
    if inspect.isclass(value):
        if issubclass(value, Exception):
            yield from (
                "An error, a kind of " + " and ".join(f"`{base.__name__}`" for base in value.__bases__) + ".",
                "",
            )
        elif name not in NOT_MADE:
            yield from _code(short, value)
        text = _prose(_own_text(value))
        # A paragraph keeps two lists apart.
        yield from (text, "", *(["Members:", ""] if "\n- " in text else []), *_members(value))
    else:
        yield from (
            *(_code(short, value) if inspect.isfunction(value) else ()),
            *textwrap.wrap(TEXTS.get(short, ""), LINE),
            *(() if short in TEXTS else [_prose(_text(value))]),
            "",
        )


def _members(cls: type) -> Iterator[str]:
    for name, member in () if cls.__name__ in NO_MEMBERS else vars(cls).items():
        if name.startswith("_") or not _text(member) or not _is_documented_here(member):
            continue
        if isinstance(member, classmethod | staticmethod):
            skip = isinstance(member, classmethod)
            yield from (f"- `{cls.__name__}.{name}{_signature(member.__func__, skip=skip, flat=True)}`", "")
        elif inspect.isfunction(member):
            yield from (f"- `.{name}{_signature(member, skip=True, flat=True)}`", "")
        else:
            yield from (f"- `.{name}`: `{_returns(member)}`", "")
        yield from (*_indented(_prose(_text(member))), "")


def _is_documented_here(member: Any) -> bool:
    """Whether it is a method or a property, and not a constant that brings its type's text."""
    return inspect.isfunction(member) or isinstance(member, classmethod | staticmethod) or _getter(member) is not None


def _getter(member: Any) -> Any:
    """The function behind a property, cached or not."""
    return getattr(member, "fget", None) or getattr(member, "func", None)


def _returns(member: Any) -> str:
    return _annotation(inspect.signature(_getter(member)).return_annotation)


def _code(name: str, value: Any) -> list[str]:
    try:
        call = f"{name}{_signature(value)}"
    except (TypeError, ValueError):
        return []
    return ["```text", *call.splitlines(), "```", ""]


def _signature(function: Any, *, skip: bool = False, flat: bool = False) -> str:
    """`(a, *, b: int = 1) -> str`, one parameter a line where it is long, unless it is to be `flat`."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1 if skip else 0 :]
    shown, star, slash = [], False, any(p.kind is p.POSITIONAL_ONLY for p in parameters)
    for parameter in parameters:
        if slash and parameter.kind is not parameter.POSITIONAL_ONLY:
            shown.append("/")
            slash = False
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        shown.append(_parameter(parameter))
    returned = signature.return_annotation
    end = f" -> {_annotation(returned)}" if returned not in (signature.empty, None, "None") else ""
    line = f"({', '.join(shown)}){end}"
    if flat or len(line) <= WIDTH - 20:
        return line
    return "(\n" + "".join(f"    {part},\n" for part in shown) + f"){end}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    typed = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return f"{stars}{parameter.name}{typed}"
    return f"{parameter.name}{typed} = {_default(parameter.default)}"


def _annotation(annotation: Any) -> str:
    """An annotation as it is written in the source; a named tuple wraps it."""
    written = getattr(annotation, "__forward_arg__", annotation)
    return written if isinstance(written, str) else getattr(written, "__name__", str(written))


def _default(value: Any) -> str:
    """A default value as somebody would write it; `…` for one that is made anew or has no name."""
    text = f"{value.__module__}.{value.__name__}" if inspect.isroutine(value) else repr(value)
    return "…" if "<" in text else text


def _own_text(cls: type) -> str:
    return inspect.cleandoc(vars(cls).get("__doc__") or "")


def _text(value: Any) -> str:
    if isinstance(value, classmethod | staticmethod):
        value = value.__func__
    return inspect.getdoc(_getter(value) or value) or ""


def _prose(text: str) -> str:
    """A docstring as Markdown: sections of `name: meaning` become lists."""
    lines: list[str] = []
    inside = returned = False
    for line in text.splitlines():
        if re.fullmatch(r"[A-Z][a-z]+:", line):
            inside, returned = True, line == "Returns:"
            lines += [line, ""]
        elif inside and re.match(r"    \S", line):
            # What is returned is one thing, told in one paragraph.
            lines.append(line[4:] if returned else "- " + _named(line[4:]))
        elif inside and line.startswith("        "):
            lines.append("  " + line[8:])
        else:
            inside = inside and not line
            lines.append(line)
    return "\n".join(lines)


def _named(line: str) -> str:
    """`name: meaning` with the names as code."""
    names, colon, meaning = line.partition(": ")
    if not colon or not re.fullmatch(r"\w+(, \w+)*", names):
        return line
    return ", ".join(f"`{name}`" for name in names.split(", ")) + f": {meaning}"


def _indented(text: str) -> list[str]:
    return [f"  {line}".rstrip() for line in text.splitlines()]


if __name__ == "__main__":
    main()
