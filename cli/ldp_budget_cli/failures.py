"""What an error of the package is on a command line: an exit code, and which command helps."""

from __future__ import annotations

import click

from ldp_budget.errors import ClockError, InvalidParameter, LdpBudgetError, LedgerMissing, UnknownName

REFUSED = 3


class Refused(click.ClickException):
    """A spend was refused."""

    exit_code = REFUSED


FAILURES: dict[str, type[click.ClickException]] = {"invalid-parameter": click.UsageError, "budget-exceeded": Refused}
"""How a command ends, by the code of the error: 2 for wrong usage, 3 for a refusal. For any other it is 1."""

ARGUMENTS = ("user", "name", "receipt")
"""What the commands take as arguments, and never as options."""


def for_the_user(error: Exception) -> Exception:
    """A click error for an error of the package; any other stays what it is."""
    if not isinstance(error, LdpBudgetError):
        return error
    return FAILURES.get(error.code, click.ClickException)(_told(error))


def _told(error: LdpBudgetError) -> str:
    if isinstance(error, InvalidParameter):
        return error.describe(_spelt(error.option))
    if isinstance(error, LedgerMissing):
        return f"{error}; `ldp-budget policy set` or `ldp-budget ledger init` makes one"
    if isinstance(error, ClockError) and error.repairable:
        return f"{error}: ldp-budget ledger repair-clock"
    if isinstance(error, UnknownName) and error.kind == "user":
        return f"{error}; --unknown blocks the name all the same"
    if isinstance(error, UnknownName) and error.kind == "policy" and not error.hint:
        return f"{error}. Set one: ldp-budget policy set {error.name} --limit lifetime=EPSILON"
    return str(error)


def _spelt(option: str) -> str:
    """A parameter as it stands on the command line: USER, --domain-size."""
    return option.upper() if option in ARGUMENTS else "--" + option.replace("_", "-")
