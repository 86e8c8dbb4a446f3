"""What an error of the package is on a command line: an exit code, and which command helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ldp_budget.errors import (
    ClockError,
    InvalidParameter,
    LdpBudgetError,
    LedgerMissing,
    SandboxError,
    UnknownName,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

REFUSED = 3


class Refused(click.ClickException):
    """A spend was refused."""

    exit_code = REFUSED


FAILURES: dict[str, type[click.ClickException]] = {
    "invalid-parameter": click.UsageError,
    "sandbox-error": click.UsageError,
    "budget-exceeded": Refused,
}
"""How a command ends, by the code of the error: 2 for wrong usage, 3 for a refusal. For any other it is 1."""

ARGUMENTS = ("user", "name", "receipt")
"""What the commands take as arguments, and never as options."""


def for_the_user(error: Exception) -> Exception:
    """A click error for an error of the package; any other stays what it is."""
    if not isinstance(error, LdpBudgetError):
        return error
    return FAILURES.get(error.code, click.ClickException)(_told(error))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence with the names that are spelt nearly so; empty where none is."""
    from difflib import get_close_matches

    spelt = {each.lower(): each for each in known}
    close = get_close_matches(name.lower().replace("_", "-"), list(spelt))
    return f" Did you mean {' or '.join(repr(spelt[each]) for each in close)}?" if close else ""


def _told(error: LdpBudgetError) -> str:
    if isinstance(error, InvalidParameter):
        return error.describe(_spelt(error.option))
    if isinstance(error, LedgerMissing):
        return f"{error}; `ldp-budget policy set` or `ldp-budget ledger init` makes one"
    if isinstance(error, SandboxError) and not error.sandbox:
        return f"{error}; --at is for what `ldp-budget ledger init --sandbox` has made, and nothing was changed"
    if isinstance(error, ClockError) and error.newest is not None and not error.repairable:
        return f"{error}: --at {error.newest.isoformat()} or later"
    if isinstance(error, ClockError) and error.repairable:
        return f"{error}: ldp-budget ledger repair-clock"
    if isinstance(error, UnknownName) and error.kind == "user":
        return f"{error}; --unknown blocks the name all the same"
    if isinstance(error, UnknownName) and error.kind == "policy" and not error.hint:
        close = did_you_mean(error.name, error.known)
        return f"{error}.{close} Set one: ldp-budget policy set {error.name} --limit lifetime=EPSILON"
    if isinstance(error, UnknownName) and not error.hint:
        close = did_you_mean(error.name, error.known)
        return f"{error}.{close}" if close else str(error)
    return str(error)


OTHERWISE = {"count": "reports", "level": "confidence"}
"""What is called otherwise on the command line than in Python."""


def _spelt(option: str) -> str:
    """A parameter as it stands on the command line: USER, --domain-size."""
    option = OTHERWISE.get(option, option)
    return option.upper() if option in ARGUMENTS else "--" + option.replace("_", "-")
