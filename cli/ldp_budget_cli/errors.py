"""The package's errors on the command line: exit codes, and the command that helps.

Ctrl-C: a stopped command ends with one sentence that says what is done and how to continue.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

from ldp_budget.errors import (
    ApprovalNeeded,
    ClockError,
    InvalidParameter,
    LdpBudgetError,
    LedgerMissing,
    LedgerMoved,
    SandboxError,
    UnknownName,
)
from ldp_budget.errors import did_you_mean as similar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


REFUSED = 3


class Refused(click.ClickException):
    """A spend was refused."""

    exit_code = REFUSED


FAILURES: dict[str, type[click.ClickException]] = {
    "invalid-parameter": click.UsageError,
    "sandbox-error": click.UsageError,
    "budget-exceeded": Refused,
}
"""The exception class of each error code, which sets the exit code: 2 for wrong usage, 3 for a refusal, else 1."""

ARGUMENTS = ("user", "name", "receipt", "formula")
"""The parameters that commands take as arguments, never as options."""


def to_click_exception(error: Exception) -> Exception:
    """Return a click error for an error of the package; any other error unchanged."""
    if not isinstance(error, LdpBudgetError):
        return error
    return FAILURES.get(error.code, click.ClickException)(_SWITCH.sub(_option, _message(error)))


_SWITCH = re.compile(r"\bset (\w+)=True\b")
"""A hint to set a switch in Python."""


def _option(switch: re.Match[str]) -> str:
    return f"add --{switch[1].replace('_', '-')}"


def where_to_look(path: str, error: OSError) -> str:
    """Return what to do about a file that does not exist: a similar name, or how to list the folder."""
    if error.errno != errno.ENOENT or "://" in path:
        return ""
    folder, name = os.path.split(path)
    try:
        there = os.listdir(folder or ".")
    except OSError:
        return f" The folder {folder} does not exist." if folder else ""
    return did_you_mean(name, there) or f" To list the files there: ls {shlex.quote(folder or '.')}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the known names of similar spelling, after a space; empty if there are none."""
    close = similar(name, tuple(known))
    return f" {close}" if close else ""


def _message(error: LdpBudgetError) -> str:
    """Return the message, with the hint for the command line in place of the one for Python."""
    if isinstance(error, InvalidParameter):
        return error.describe(_spelt(error.option), _decimal_point(error))
    if isinstance(error, UnknownName):
        return _unknown(error)
    if isinstance(error, SandboxError) and not error.sandbox:
        return (
            f"--at works with a sandbox ledger only, and {error.path} is a real ledger. Nothing was changed. Create a "
            "sandbox: ldp-budget --ledger sandbox.db ledger init --sandbox"
        )
    hint = _hint(error)
    return error.completed(hint) if hint else str(error)


def _decimal_point(error: InvalidParameter) -> str | None:
    """Return the hint for a number with a decimal comma; None for the error's own hint."""
    found = str(error.found)
    if not error.hint and "number" in error.expected and re.fullmatch(r"[+-]?\d+,\d+", found):
        return f"Write a decimal point: {found.replace(',', '.')}"
    return None


def _hint(error: LdpBudgetError) -> str:
    """Return what to type; empty if the error's own hint is right here too."""
    if isinstance(error, LedgerMissing):
        return "Create one: ldp-budget policy set default --limit lifetime=EPSILON, or ldp-budget ledger init"
    if isinstance(error, LedgerMoved) and not error.complete:
        return "Wait for the move. If it was interrupted: ldp-budget ledger move FROM NEW, or add --abort to end it"
    if error.code == "unauthorized":
        return "Set LDP_BUDGET_API_KEY to a valid key"
    if isinstance(error, ApprovalNeeded):
        return "Propose the change on the officer's page of the service. On the machine of the ledger: add --override REASON"
    if isinstance(error, ClockError) and error.newest is not None and not error.repairable:
        return f"Add --at {error.newest.isoformat()} or later"
    if isinstance(error, ClockError) and error.repairable:
        return "When the clock is right again: ldp-budget ledger repair-clock"
    return ""


def _unknown(error: UnknownName) -> str:
    """Return the message for an unknown name, with the names of similar spelling and a command."""
    close = "" if "Did you mean" in str(error) else did_you_mean(error.name, error.known).strip()
    hint = f"{error.hint} {close}".strip()
    if error.kind == "user" and not error.hint:
        hint = "To block the name all the same, add --unknown"
    elif error.kind == "policy" and not hint:
        hint = f"Set one: ldp-budget policy set {error.name} --limit lifetime=EPSILON"
    return error.completed(hint) if hint else str(error)


OTHERWISE = {"count": "reports", "level": "confidence"}
"""Parameters with another name on the command line than in Python."""


def _spelt(option: str) -> str:
    """Return a parameter as the command line shows it: USER, --domain-size; a place in a file as it is."""
    if not option.isidentifier():
        return option
    option = OTHERWISE.get(option, option)
    return option.upper() if option in ARGUMENTS else "--" + option.replace("_", "-")


_SENTENCE = f"{__package__}.stopping"
"""The context key of the sentence that a running command prints when it is stopped."""

_AGAIN = "Run the same command again: it leaves alone what is done already."
_LOOK = "It stored everything or nothing. To see: ldp-budget {} list"

SENTENCES = {
    "policy": _LOOK.format("policy"),
    "collection": _LOOK.format("collection"),
    "commit": _AGAIN,
    "void": _AGAIN,
    "erase": _AGAIN,
    "ledger": f"The entries of the ledger are unchanged. {_AGAIN}",
    "demo": "Its folder holds the files written so far. Run it again with an empty folder: --out FOLDER",
    "plugin": "No ledger was touched. The folder holds the files that `plugin new` has written so far.",
}
"""The sentences for commands without their own; any command that is not listed only reads."""


class Stopped(click.ClickException):
    """A command was stopped by Ctrl-C."""

    exit_code = 128 + signal.SIGINT  # as a shell reports a program that SIGINT ended
    word = "Stopped"

    def show(self, file: IO[Any] | None = None) -> None:
        if sys.stderr.isatty():
            click.echo(err=True, file=file)  # after the ^C that a terminal shows
        click.echo(f"{self.word}: {self.message}", err=True, file=file)


class Declined(Stopped):
    """The user of a command declined to confirm."""

    exit_code = 1
    word = "Aborted"


def stopped(ctx: click.Context) -> Stopped:
    """Return the error that ends a stopped command."""
    say: Callable[[], str] | None = ctx.find_root().meta.get(_SENTENCE)
    if say is not None:
        return Stopped(say())
    return Stopped(SENTENCES.get(ctx.invoked_subcommand or "", "Nothing was changed. Run it again."))


def when_stopped(say: Callable[[], str]) -> None:
    """Set the sentence that this command prints if it is stopped."""
    click.get_current_context().find_root().meta[_SENTENCE] = say


@contextmanager
def report_progress_on_interrupt(done: Callable[[], str], how_to_continue: str) -> Iterator[None]:
    """Print the progress and how to continue if the block is interrupted, or fails partway.

    `done` is empty as long as no progress is known.
    """
    from ldp_budget.errors import KeyConflict

    when_stopped(lambda: f"{done() or 'The first users may have been charged'}. To continue, {how_to_continue}.")
    try:
        yield
    except Exception as error:
        shown = to_click_exception(error)
        unfinished = done() or getattr(error, "unknown", False)
        if isinstance(shown, click.ClickException) and unfinished and not isinstance(error, KeyConflict):
            message = shown.message.rstrip(".")
            more = f"{done() or 'A user may have been charged'}. Correct this, then {how_to_continue}."
            raise type(shown)(f"{message}. {more}") from error
        raise
