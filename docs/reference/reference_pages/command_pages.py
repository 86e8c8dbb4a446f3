"""Pages of the command-line reference: an overview with the shared options, and one page for each group."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from inspect import cleandoc

import click

from ldp_budget_cli.app import cli
from ldp_budget_cli.command_groups import GROUPS
from ldp_budget_cli.mechanism_arguments import MechanismGroup

from .python_pages import toctree

EXAMPLE = "oue"
"""The mechanism whose subcommand shows a command's own options."""
# A path without a ledger: collections of the local ledger are no part of the page.
NO_LEDGER = os.devnull + "/none"
COMPLETION = (
    'eval "$(_LDP_BUDGET_COMPLETE=bash_source ldp-budget)"   # bash 4.4 or newer',
    'eval "$(_LDP_BUDGET_COMPLETE=zsh_source ldp-budget)"    # zsh',
    "_LDP_BUDGET_COMPLETE=fish_source ldp-budget | source    # fish",
)
PARAGRAPHS = 2
"""Of the help of a command; `--help` shows the rest."""
SHARED = 3
"""An option with the same help in so many commands is described once, in the overview; so is one that two commands have,
if it means the same wherever it is."""

_ABOUT = {
    "Start": "One command that shows the whole workflow on a real survey.",
    "Design": "Choose a mechanism, its parameters and a budget. These commands change nothing and need no ledger.",
    "Policies": "Set and show the limits of what users may be charged.",
    "Surveys": "Define a collection, randomize answers, take reports and estimate.",
    "Spend": "Charge users, in one step or in two.",
    "Users": "Show what users have spent, and erase users.",
    "Operate": "Run the service, manage its API keys, and look after the ledger.",
    "Extend": "Write a mechanism of your own.",
}


_SHARES = {"Start": "Design", "Policies": "Spend", "Users": "Spend", "Extend": "Operate"}


def groups() -> dict[str, list[str]]:
    """The commands of each group of the command line."""
    found = {title: list(names) for title, names in GROUPS.items()}
    listed = [name for names in found.values() for name in names]
    missing = set(cli.list_commands(root())) ^ set(listed)
    assert not missing, f"no group of the command reference has {', '.join(sorted(missing))}"
    return found


def pages() -> Iterator[tuple[str, Iterator[str]]]:
    """The path of each page and its lines."""
    yield "commands.md", overview()
    found: dict[str, list[str]] = {}
    for title in groups():
        found.setdefault(page_of(title), []).append(title)
    for page, titles in found.items():
        yield page, groups_page(titles)


def page_of(title: str) -> str:
    """The page of a group; a group of a few commands shares that of a neighbor."""
    return f"commands/{_SHARES.get(title, title).lower()}.md"


# -- commands ------------------------------------------------------------------------------------------------------


def root() -> click.Context:
    return context_of(cli, None, "ldp-budget")


def context_of(command: click.Command, parent: click.Context | None, name: str) -> click.Context:
    settings = {**command.context_settings, "terminal_width": 100, "obj": NO_LEDGER}
    return command.context_class(command, parent=parent, info_name=name, **settings)


def leaves(names: list[str]) -> Iterator[tuple[click.Command, click.Context]]:
    """Each command that runs, with its context; groups come before their commands."""
    start = root()
    for name in names:
        yield from _below(cli, start, name)


def _below(group: click.Group, parent: click.Context, name: str) -> Iterator[tuple[click.Command, click.Context]]:
    command = group.get_command(parent, name)
    assert command is not None
    context = context_of(command, parent, name)
    yield command, context
    if is_group(command):
        assert isinstance(command, click.Group)
        for each in command.list_commands(context):
            yield from _below(command, context, each)


def is_group(command: click.Command) -> bool:
    return isinstance(command, click.Group) and not isinstance(command, MechanismGroup)


def options_of(command: click.Command, context: click.Context) -> list[click.Option]:
    """The command's own options, without those of a mechanism."""
    taken = {parameter for parameter in command.params if isinstance(parameter, click.Option)}
    found = [*command.params]
    if isinstance(command, MechanismGroup):
        for_one = command.get_command(context, EXAMPLE)
        found = [p for p in for_one.params if not (p.name or "").startswith("_field_") and p not in taken]
        fields = {f"--{name.replace('_', '-')}" for name in _fields()}
        found = [p for p in found if not fields & set(p.opts)] + [*taken]
    options = [p for p in found if isinstance(p, click.Option) and not p.hidden and "--help" not in p.opts]
    return list({option.opts[0]: option for option in options}.values())


def _fields() -> list[str]:
    import ldp_budget

    return list(ldp_budget.mechanism(EXAMPLE).fields)


def shared_options() -> list[tuple[str, str]]:
    """The options that several commands have with the same help: spelling and help, the most frequent first."""
    counted: Counter[tuple[str, str]] = Counter()
    for command, context in leaves(cli.list_commands(root())):
        for option in options_of(command, context):
            counted[spelled(option, context), helped(option, context)] += 1
    meanings = Counter(spelling for spelling, _ in counted)
    return [
        (spelling, text)
        for (spelling, text), number in counted.most_common()
        if number >= SHARED or (number > 1 and meanings[spelling] == 1)
    ]


def spelled(option: click.Option, context: click.Context) -> str:
    """`--reports K`, with its metavariable as the help shows it."""
    record = option.get_help_record(context)
    assert record is not None
    return record[0]


def helped(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None
    return coded(" ".join(record[1].split()))


def coded(text: str) -> str:
    """A help text with the options that it names as code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if at % 2 else re.sub(r"(?<![\w-])(--[a-z][a-z-]*)", r"`\1`", part) for at, part in enumerate(parts)
    )


# -- the overview --------------------------------------------------------------------------------------------------


def overview() -> Iterator[str]:
    yield from (
        "# Command line",
        "",
        "Every command of `ldp-budget`, with a page for each group.",
        "",
        "| group | commands | subject |",
        "| --- | --- | --- |",
    )
    for title, names in groups().items():
        page = page_of(title)
        listed = ", ".join(f"[`{name}`]({page}#ldp-budget-{name})" for name in names)
        yield f"| [{title}]({page}) | {listed} | {_ABOUT.get(title, '')} |"
    yield from (
        "",
        "## Arguments",
        "",
        "- **MECHANISM** is the name of a mechanism; its options follow it: `ldp-budget spend alice oue --epsilon 0.1 "
        "--domain-size 7`. [Its page](mechanisms/index.md) and `--help` list them.",
        "- In its place you may name a **collection** of the ledger, without options: `ldp-budget spend alice mood`. If a "
        "mechanism has the same name, write `collection:NAME`.",
        "- **USER** is any text that identifies a user. Blanks at both ends are removed and Unicode is normalized (NFC). The "
        "ledger stores only a keyed hash of it.",
        "- Amounts are decimals and are read exactly as written.",
        "",
        "## Exit codes",
        "",
        "| exit code | meaning |",
        "| --- | --- |",
        "| 0 | done |",
        "| 1 | failed |",
        "| 2 | wrong usage |",
        "| 3 | refused: over budget (`spend`, `reserve`, `quote`; bulk commands count refusals and exit with 0) |",
        "| 130 | stopped by Ctrl-C; the message says what was done and how to continue |",
        "",
        "## Options of every command",
        "",
        "These options stand before the command.",
        "",
    )
    start = root()
    for option in options_of(cli, start):
        yield f"- `{spelled(option, start)}`: {helped(option, start)}"
    yield from (
        "- `-h, --help`: Show the help of a command.",
        "",
        "## Output formats",
        "",
        "Rows go to standard output, notes and progress to standard error. Almost every command has `--json`: an object, or an "
        "array of rows. Use one format at a time. In CSV and TSV null is an empty cell, and a list is JSON. To read a text "
        "back, strip one leading apostrophe: it keeps a spreadsheet from running the text as a formula.",
        "",
        "Rows of many users have no odometer. Users appear as account numbers where the ledger must find them; with the ledger "
        "key, `ledger export --users FILE` adds the names of the users in your list. A collection's name is part of a charge, a "
        "note is not: a retry with another note keeps the first one.",
        "",
        "## Shell completion",
        "",
        "Add one line to `~/.bashrc`, `~/.zshrc` or `~/.config/fish/completions/ldp-budget.fish`. It completes commands, "
        "options, mechanisms, and the collections and policies of a ledger in a file.",
        "",
        "```bash",
        *COMPLETION,
        "```",
        "",
        "## Shared options",
        "",
        "The pages of the groups only name these options.",
        "",
    )
    shared = shared_options()
    for spelling, text in sorted(dict(reversed(shared)).items()):
        yield f"- `{spelling}`: {text}"
    yield from toctree("commands/*")


# -- a group -------------------------------------------------------------------------------------------------------


def groups_page(titles: list[str]) -> Iterator[str]:
    shared = shared_options()
    names = [name for title in titles for name in groups()[title]]
    yield from (
        f"# Commands: {', '.join(titles).lower()}",
        "",
        "The [overview](../commands.md) has exit codes and [shared options](../commands.md#shared-options). `--help` says more.",
        "",
    )
    for command, context in leaves(names):
        words = context.command_path.split()
        yield from ("#" * min(len(words), 4) + " " + " ".join(words), "")
        usages = [] if is_group(command) else [usage(command, context)]
        yield from prose(command, *usages)
        if usages:
            yield from option_list(command, context, shared)
        if isinstance(command, MechanismGroup) and command.alternative is not None:
            yield from ("Without MECHANISM:", "")
            yield from prose(command.alternative)
            yield from option_list(command.alternative, context, shared)


def prose(command: click.Command, *usages: str) -> Iterator[str]:
    """The help text without its later paragraphs; the examples, or the usage if it is not that of the heading."""
    examples: list[str] = []
    shown = 0
    for paragraph in re.split(r"\n\s*\n", cleandoc(command.help or "")):
        lines = paragraph.replace("\b", "").strip("\n").splitlines()
        if lines and re.fullmatch(r"Examples?:", lines[0].strip()):
            examples += [line.strip() for line in lines[1:]]
        elif lines and lines[0].startswith("Example:"):
            examples.append(" ".join(lines).removeprefix("Example:").strip())
        elif shown < PARAGRAPHS and not paragraph.startswith("\b"):  # else a table for a terminal
            shown += 1
            yield from (coded(" ".join(line.strip() for line in lines)), "")
    # An example without arguments says what the usage says.
    examples = [each for each in examples if not any(usage.startswith(f"{each} ") for usage in usages)]
    usages = tuple(each for each in usages if not re.fullmatch(r"ldp-budget [a-z -]+ \[OPTIONS\]", each))
    if usages or examples:
        yield from ("```text", *(examples or usages), "```", "")


def usage(command: click.Command, context: click.Context) -> str:
    arguments = [p.make_metavar(context) for p in command.params if isinstance(p, click.Argument)]
    if isinstance(command, MechanismGroup):
        return f"{context.command_path} {' '.join([*arguments, 'MECHANISM'])} [OPTIONS]"
    return " ".join([context.command_path, "[OPTIONS]", *arguments])


def option_list(command: click.Command, context: click.Context, shared: list[tuple[str, str]]) -> Iterator[str]:
    own = options_of(command, context)
    named = [option for option in own if (spelled(option, context), helped(option, context)) in shared]
    rows = [option for option in own if option not in named]
    for option in rows:
        yield f"- `{spelled(option, context)}`: {helped(option, context)}"
    if rows:
        yield ""
    listed = ", ".join(f"`{option.opts[0]}`" for option in named if option.opts[0] != "--json")
    if listed:
        yield from (f"[Shared](../commands.md#shared-options): {listed}.", "")
