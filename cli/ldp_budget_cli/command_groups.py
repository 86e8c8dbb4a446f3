"""The commands by group, each with one line of help, and where they are found."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ldp_budget._later import registered

if TYPE_CHECKING:
    import click

GROUPS: dict[str, dict[str, str]] = {
    "Start": {
        "demo": "Walk through one real survey, from the choice of ε to the estimate.",
        "help": "Show the help of a command.",
    },
    "Design": {
        "mechanisms": "List the mechanisms, or describe one.",
        "compare": "Rank the mechanisms by predicted error.",
        "calibrate": "Find the parameters that meet a privacy target.",
        "plan": "Find the ε that each of many reports may cost.",
        "compose": "Show the total cost of many reports, under every rule.",
        "audit": "Check that a mechanism keeps its guarantee.",
        "check": "Check a certificate, a public definition or a published survey.",
    },
    "Policies": {
        "policy": "Set, show, list and simulate the limits of users.",
    },
    "Surveys": {
        "collection": "Define the set-up that clients and server share.",
        "survey": "Define a survey of several questions that are charged as one.",
        "randomize": "Randomize a column of answers into private reports.",
        "estimate": "Estimate counts or a mean from reports.",
        "contributions": "Write a table of reports for R, Stata, SPSS and statsmodels.",
        "regress": "Regress a hidden answer on public columns.",
        "report": "Write one page about a survey, for people who decide.",
        "inbox": "Take the reports that devices send one by one, and seal them.",
        "publish": "Publish a survey so that its respondents can check it.",
        "prove": "Print the proof that a respondent needs to check her part.",
        "invite": "Print a personal survey link for each respondent.",
    },
    "Spend": {
        "spend": "Charge a user, or refuse with exit code 3.",
        "spend-many": "Charge every user of a file.",
        "quote": "Show the cost of a report and if it fits; change nothing.",
        "reserve": "Charge a user now, and commit or void the charge later.",
        "commit": "Keep the charge of a reservation.",
        "void": "Give back the charge of a reservation.",
    },
    "Users": {
        "balance": "Show what a user has spent and has left.",
        "statement": "Write one page about a user, for an access request or a court.",
        "history": "Show every charge of a user.",
        "reservations": "Show the open reservations.",
        "erase": "Erase the link between a user and the account.",
    },
    "Operate": {
        "serve": "Serve the ledger over HTTP.",
        "api-key": "Create, list, rotate and revoke the API keys of a service.",
        "ledger": "Create, verify, export, back up and move a ledger.",
    },
    "Extend": {
        "plugin": "Start a mechanism of your own, and certify it.",
    },
}

COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}
"""Each command with its line of help."""

_MODULES = {
    "help": "help",
    **dict.fromkeys(("mechanisms", "compare", "calibrate", "compose"), "calculations"),
    "policy": "policy",
    **dict.fromkeys(("spend", "spend-many", "quote", "reserve", "commit", "void"), "spend"),
    **dict.fromkeys(("balance", "history", "reservations", "erase"), "balance"),
    "ledger": "ledger",
}
"""The modules of the commands of this package. Another package registers its own in the entry-point group of commands."""

ENTRY_POINTS = "ldp_budget.commands"
"""The entry-point group of commands: the name of an entry point is that of a command in `COMMANDS`."""
PARTS = "ldp_budget.command_parts"
"""The entry-point group of modules of other packages that commands of this one use if they are asked for: `part`."""

TAKE_MECHANISM = ("calibrate", "compose", "plan", "audit", "policy", "collection", "spend")
"""Commands whose modules have all commands that take MECHANISM and its options."""


def command(name: str) -> click.Command:
    """Return a command of `COMMANDS`; its module is imported now."""
    if name in _MODULES:
        module = import_module(f".{_MODULES[name]}", __package__)
        own: click.Command = getattr(module, name.replace("-", "_"))
        return own
    found: click.Command = registered(ENTRY_POINTS, name)
    return found


def part(name: str) -> Any:
    """Return a module that a package beside this one registers for the command line; it is imported now."""
    return registered(PARTS, name)
