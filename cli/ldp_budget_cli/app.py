"""The root command: lazy subcommands, the ledger to open, times, and shell completion.

Subcommands are imported when they are called, so that `--help` starts at once.

Shell completion offers names from the ledger. It creates nothing, prints nothing and never fails: without a readable
ledger file it offers nothing. It never asks a server, because the user waits at a prompt.

A service's ledger is `--ledger https://…`, with an API key from the environment.

Times are ISO, in UTC without a zone; a date alone means its midnight.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    import click
    from click.shell_completion import CompletionItem

    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.client import Client


KEY_VARIABLE = "LDP_BUDGET_API_KEY"
KEY_FILE_VARIABLE = "LDP_BUDGET_API_KEY_FILE"
_MOST = 10_000


def is_service(ledger: str) -> bool:
    """True if a service keeps the ledger."""
    return ledger.partition("://")[0].lower() in ("https", "http")


def open_service(url: str, *, plain_http: bool) -> Client:
    """Return the client of a service. Sends no request yet. Raises `InvalidParameter` and click's errors."""
    from ldp_budget.client import Client
    from ldp_budget.errors import InvalidParameter, NotSupported

    try:
        return Client(url, _key(), plain_http=plain_http)
    except InvalidParameter as error:
        names = {"url": "--ledger", "key": KEY_VARIABLE}
        why = error.describe(names.get(error.option, error.option))
        raise click.UsageError(why.replace("`plain_http`, said aloud", "--plain-http, before the command")) from None
    except NotSupported as error:
        raise click.ClickException(str(error)) from None


def _key() -> str:
    """Return the API key: never from the command line, which other users of the machine may see."""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if key:
        return key
    file = os.environ.get(KEY_FILE_VARIABLE)
    if not file:
        raise click.UsageError(
            f"--ledger: a service needs an API key, in {KEY_VARIABLE} or in a file that {KEY_FILE_VARIABLE} names"
        )
    try:
        with open(file, encoding="ascii", errors="replace") as opened:
            return opened.read(_MOST).strip()
    except OSError as error:
        raise click.ClickException(f"{KEY_FILE_VARIABLE}: {file} cannot be read: {error.strerror}") from None


_EARLIEST, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)
_EXPECTED = (
    "expected an ISO time from 1970 to 9997, such as 2027-03-01T09:30 or 2027-03-01, in UTC unless it says a zone"
)


def parse_time(ctx: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Return the time of an option in UTC, within the range that a ledger can handle."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = datetime.max
    if moment.utcoffset() is None:
        moment = moment.replace(tzinfo=UTC)
    # Compared before the conversion to UTC, which fails at the ends of the calendar.
    if not _EARLIEST <= moment < _END:
        raise click.UsageError(f"{parameter.opts[0]}: {_EXPECTED}; found {value!r}", ctx)
    return moment.astimezone(UTC)


LEDGER_VARIABLE = "LDP_BUDGET_LEDGER"
GLOBAL = {"--ledger": "a path or an address", "--at": "a time"}
"""The root options that may also follow the command, and the kind of value that each takes."""
_OPENED = f"{__package__}.ledger"
"""The context key of the ledger that this command has opened."""
_AT = f"{__package__}.at"
"""The context key of the time from --at."""
_SANDBOX = f"{__package__}.sandbox"
"""The context key of a flag: True if any opened ledger is a sandbox."""
_PLAIN = f"{__package__}.plain_http"
"""The context key of a flag: True if plain HTTP is allowed."""

# name -> (module with a command of that name, one line of help)
COMMANDS = {
    "demo": ("demo", "The whole story on a real survey: choose, charge, randomize, estimate."),
    "mechanisms": ("calculations", "List the mechanisms there are, and plugins that failed."),
    "calibrate": ("calculations", "Find the parameters that meet a privacy target."),
    "compose": ("calculations", "Show what many reports cost together, under every rule."),
    "plan": ("calculations", "Find what each of many reports may cost."),
    "compare": ("calculations", "Rank the mechanisms by predicted error."),
    "policy": ("policy", "Set and show what users may be charged."),
    "quote": ("spend", "Say what a report would cost a user; change nothing."),
    "spend": ("spend", "Charge a user, or refuse with exit code 3."),
    "spend-many": ("spend", "Charge every user of a file."),
    "reserve": ("spend", "Charge a user now and decide later."),
    "commit": ("spend", "Keep what a reservation charged."),
    "void": ("spend", "Give back what a reservation charged."),
    "balance": ("balance", "Show what a user has spent and has left."),
    "reservations": ("balance", "Show which reservations are open."),
    "history": ("balance", "Show what a user was charged for."),
    "erase": ("balance", "Forget who an account belongs to."),
    "collection": ("collection", "Agree on one set-up for clients and server."),
    "randomize": ("randomize", "Turn a column of answers into private reports."),
    "inbox": ("collection", "Take reports that devices sent, one by one, and seal them."),
    "invite": ("access", "Print links by which respondents answer."),
    "estimate": ("estimate", "Estimate counts or a mean from reports."),
    "audit": ("plugin", "Check whether a mechanism's promise is true."),
    "api-key": ("access", "Create, list, rotate and revoke the API keys of a service."),
    "ledger": ("ledger", "Create, verify and read out the ledger."),
    "serve": ("serve", "Serve the ledger over HTTP."),
    "plugin": ("plugin", "Start a plugin of your own, and certify one."),
}


class Root(click.Group):
    """Loads subcommands lazily, and turns the package's errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f".{COMMANDS[cmd_name][0]}", __package__)
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from .errors import did_you_mean

            raise click.UsageError(f"No such command {args[0]!r}.{did_you_mean(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            return super().parse_args(ctx, _global_first(args))
        # Shell completion: nothing runs, and an incomplete command is not an error.
        with suppress(click.UsageError):
            args = _global_first(args)
        rest = super().parse_args(ctx, args)
        ctx.obj = ctx.params.get("ledger")
        return rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=help) for name, (_, help) in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException:
            raise
        except KeyboardInterrupt:
            from .errors import stopped

            raise stopped(ctx) from None
        except click.Abort:
            from .errors import Stopped

            raise Stopped("nothing was changed", "Aborted") from None
        except Exception as error:
            from .errors import to_click_exception

            raise to_click_exception(error) from error


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--ledger",
    metavar="PATH",
    envvar=LEDGER_VARIABLE,
    help="The ledger: a file with its key beside it, postgresql://HOST/DATABASE, or a service, https://HOST, with an "
    "API key in LDP_BUDGET_API_KEY. May also follow the command.",
)
@click.option(
    "--at",
    metavar="TIME",
    callback=parse_time,
    help="Pretend the clock shows TIME (sandbox ledgers only): ISO 8601, UTC unless it names a zone. May also follow "
    "the command.",
)
@click.option(
    "--plain-http",
    is_flag=True,
    envvar="LDP_BUDGET_PLAIN_HTTP",
    help="Ask a service of another machine by http://: whoever is on the way reads the API key.",
)
@click.version_option(package_name="ldp-budget")
@click.pass_context
def cli(ctx: click.Context, ledger: str | None, at: datetime | None, plain_http: bool) -> None:
    """Calibrate, account for and collect data under local differential privacy."""
    ctx.obj = ledger
    ctx.meta[_AT] = at
    ctx.meta[_PLAIN] = plain_http
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _global_first(args: list[str]) -> list[str]:
    """Return a command line with the root options moved before the command, where users may also put them after it."""
    command = 0
    while command < len(args) and args[command].startswith("-"):
        command += 2 if args[command] in GLOBAL else 1
    first, rest = args[:command], args[command:]
    end = rest.index("--") if "--" in rest else len(rest)
    place = 1
    while place < end:
        if rest[place] in GLOBAL:
            if place + 1 == end:
                raise click.UsageError(f"{rest[place]}: expected {GLOBAL[rest[place]]}; nothing was given")
            first += rest[place : place + 2]
            del rest[place : place + 2]
            end -= 2
        elif rest[place].partition("=")[0] in GLOBAL:
            first.append(rest.pop(place))
            end -= 1
        else:
            place += 1
    return first + rest


def ledger_path(ctx: click.Context) -> str:
    """Return the ledger to use: --ledger, else the environment, else a file in the user's application folder."""
    given: str | None = ctx.find_root().obj
    if given:
        return given
    from ldp_budget._files import application_folder

    return str(application_folder() / "ledger.db")


def given_time(ctx: click.Context) -> datetime | None:
    """Return the time from --at."""
    at: datetime | None = ctx.find_root().meta.get(_AT)
    return at


def is_path(ledger: str) -> bool:
    """True if a ledger is a file and not on a server."""
    return "://" not in ledger


def open_ledger(ctx: click.Context, *, create: bool = False) -> Accountant | Client:
    """Return the ledger to use. Opens the ledger at the first call; the ledger stays open until the command ends.

    Pass `create` in commands that may create the ledger. Raises `LedgerError`.
    """
    root = ctx.find_root()
    if _OPENED not in root.meta:
        make = create and given_time(ctx) is None  # only `ledger init` creates a sandbox
        path = place_for_ledger(ctx) if make else ledger_path(ctx)
        root.meta[_OPENED] = root.with_resource(open_place(ctx, path, create=make))
    opened: Accountant | Client = root.meta[_OPENED]
    return opened


def check_local(opened: Accountant | Client, why: str) -> Accountant:
    """Return `opened` if its ledger is local. Raises `NotSupported` with the reason `why` for a service's ledger."""
    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.errors import NotSupported

    if not isinstance(opened, Accountant):
        raise NotSupported(f"not over HTTP: {why}")
    return opened


def open_place(
    ctx: click.Context, place: str, *, create: bool = False, sandbox: bool | None = None
) -> Accountant | Client:
    """Open a ledger by its path or URL. A time from --at sets its clock, which only a sandbox allows.

    With `create`, a missing ledger is created. Prints a notice on stderr if it is a sandbox. Raises `LedgerError`.
    """
    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.errors import LedgerMissing

    at = given_time(ctx)
    if is_service(place):
        if at is not None:
            raise click.UsageError("--at: expected no time, as a service goes by its own clock")
        opened: Accountant | Client = open_service(place, plain_http=ctx.find_root().meta.get(_PLAIN, False))
    elif at is None:
        opened = Accountant(place, create=create, sandbox=sandbox)
    else:
        try:
            opened = Accountant(place, create=create, sandbox=True, clock=lambda: at)
        except LedgerMissing as error:
            raise click.ClickException(f"{error}; for --at `ldp-budget ledger init --sandbox` makes one") from error
    try:
        is_sandbox = opened.sandbox  # a request, if a service keeps the ledger
    except Exception:
        opened.close()
        raise
    if is_sandbox:
        ctx.find_root().meta[_SANDBOX] = True
        click.echo(f"Sandbox: nothing counts in {place if is_path(place) else opened.name}", err=True)
    return opened


def make_ledger(ctx: click.Context, *, sandbox: bool) -> Accountant | Client:
    """Create a ledger at the path or URL to use. Raises `LedgerError` if one exists there."""
    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.errors import LedgerError, LedgerMissing

    if given_time(ctx) is not None and not sandbox:
        raise click.UsageError("--at: expected --sandbox with it, as no other ledger goes by a time that is given")
    place = place_for_ledger(ctx)
    if is_service(place):
        raise click.UsageError("--ledger: expected a path or postgresql://…, as a service has a ledger already")
    try:
        with Accountant(place, create=False, sandbox=None) as there:
            kind = "a sandbox" if there.sandbox else "a ledger"
            raise LedgerError(
                there.name, f"expected a place where nothing is yet; found {kind}, which was left as it is"
            )
    except LedgerMissing:
        made = open_place(ctx, place, create=True, sandbox=sandbox)
        ctx.find_root().with_resource(made)
        return made


def in_sandbox(ctx: click.Context | None = None) -> bool:
    """True if a ledger that this command has opened is a sandbox."""
    ctx = ctx or click.get_current_context(silent=True)
    return ctx is not None and _SANDBOX in ctx.find_root().meta


def place_for_ledger(ctx: click.Context) -> str:
    """Return the path of a ledger that may be created; creates the user's application folder if it is missing."""
    path = ledger_path(ctx)
    if not ctx.find_root().obj:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except OSError as error:
            raise click.ClickException(f"the folder of {path} cannot be made: {error.strerror}") from None
    return path


def _names(ctx: click.Context, incomplete: str, read: Callable[[Accountant], list[str]]) -> list[str]:
    """Return the names of a ledger that begin with the incomplete word."""
    with suppress(Exception):
        path = ledger_path(ctx)
        if is_path(path) and os.path.exists(path):
            from ldp_budget.accounting.accountant import Accountant

            with Accountant(path, create=False) as accountant:
                return [name for name in read(accountant) if name.startswith(incomplete)]
    return []


def collection_names(ctx: click.Context, parameter: click.Parameter | None, incomplete: str) -> list[str]:
    """Complete the name of a collection of the ledger."""
    return _names(ctx, incomplete, lambda ledger: [str(each["name"]) for each in ledger.collections()])


def policy_names(ctx: click.Context, parameter: click.Parameter | None, incomplete: str) -> list[str]:
    """Complete the name of a policy of the ledger."""
    return _names(ctx, incomplete, lambda ledger: [policy.name for policy in ledger.policies()])
