"""The package's errors on the command line: exit codes, and the command that helps.

Ctrl-C: a stopped command ends with one sentence that says what is done and how to continue.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

from ldp_budget.errors import ClockError, InvalidParameter, LdpBudgetError, LedgerMissing, SandboxError, UnknownName

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

ARGUMENTS = ("user", "name", "receipt")
"""The parameters that commands take as arguments, never as options."""


def to_click_exception(error: Exception) -> Exception:
    """Return a click error for an error of the package; any other error unchanged."""
    if not isinstance(error, LdpBudgetError):
        return error
    return FAILURES.get(error.code, click.ClickException)(_told(error))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the known names of similar spelling; empty if there are none."""
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
"""Parameters with another name on the command line than in Python."""


def _spelt(option: str) -> str:
    """Return a parameter as the command line shows it: USER, --domain-size."""
    option = OTHERWISE.get(option, option)
    return option.upper() if option in ARGUMENTS else "--" + option.replace("_", "-")


_SENTENCE = f"{__package__}.stopping"
"""The context key of the sentence that a running command prints when it is stopped."""

_AGAIN = "the same command again is safe: what is done already it leaves as it is"
_LOOK = "what it was asked to store is there whole or not at all, and `ldp-budget {} list` shows it"

SENTENCES = {
    "policy": _LOOK.format("policy"),
    "collection": _LOOK.format("collection"),
    "commit": _AGAIN,
    "void": _AGAIN,
    "erase": _AGAIN,
    "ledger": f"the ledger holds what it held; {_AGAIN}",
    "demo": "its own folder holds what was written so far; run it again in an empty one",
    "plugin": "no ledger was touched; what `plugin new` has written so far is in its folder",
}
"""The sentences for commands without their own; any command that is not listed only reads."""


class Stopped(click.ClickException):
    """A command was stopped by its user, or its user declined to confirm."""

    def __init__(self, message: str, word: str = "Stopped") -> None:
        super().__init__(message)
        self._word = word

    def show(self, file: IO[Any] | None = None) -> None:
        if sys.stderr.isatty():
            click.echo(err=True, file=file)  # after the ^C that a terminal shows
        click.echo(f"{self._word}: {self.message}", err=True, file=file)


def stopped(ctx: click.Context) -> Stopped:
    """Return the error that ends a stopped command."""
    say: Callable[[], str] | None = ctx.find_root().meta.get(_SENTENCE)
    if say is not None:
        return Stopped(say())
    return Stopped(SENTENCES.get(ctx.invoked_subcommand or "", "nothing was changed; run it again"))


def when_stopped(say: Callable[[], str]) -> None:
    """Set the sentence that this command prints if it is stopped."""
    click.get_current_context().find_root().meta[_SENTENCE] = say


@contextmanager
def report_progress_on_interrupt(done: Callable[[], str], how_to_go_on: str) -> Iterator[None]:
    """Print the progress and how to continue if the block is interrupted, or fails partway.

    `done` is empty as long as no progress is known.
    """
    from ldp_budget.errors import KeyConflict

    when_stopped(lambda: f"{done() or 'the first users may have been charged'}; {how_to_go_on}")
    try:
        yield
    except Exception as error:
        told = to_click_exception(error)
        unfinished = done() or getattr(error, "unknown", False)
        if isinstance(told, click.ClickException) and unfinished and not isinstance(error, KeyConflict):
            more = f"{done() or 'a charge may stand'}; when that is put right, {how_to_go_on}"
            raise type(told)(f"{told.message}; {more}") from error
        raise
