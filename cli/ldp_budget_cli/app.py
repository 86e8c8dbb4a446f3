"""The root command: lazy subcommands, the ledger to open, times, and shell completion.

Subcommands are imported when they are called, so that `--help` starts at once.

Shell completion offers names from the ledger. It creates nothing, prints nothing and never fails: without a readable
ledger file it offers nothing. It never asks a server, because the user waits at a prompt.

A service's ledger is `--ledger https://…`, with an API key from the environment.

Times are ISO, in UTC without a zone; a date alone means its midnight.
"""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import redirect_stdout, suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from .command_groups import COMMANDS, GROUPS, command
from .notes import print_note, set_quiet

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


_PLAIN_HINT = (
    "Add --plain-http before the command to send the API key unencrypted: anyone on the network can then read it."
)


def is_service(ledger: str) -> bool:
    """True if a service keeps the ledger."""
    return ledger.partition("://")[0].lower() in ("https", "http")


def open_service(url: str, *, plain_http: bool) -> Client:
    """Return the client of a service. Sends no request yet. Raises `InvalidParameter` and click's errors."""
    from ldp_budget.client import Client
    from ldp_budget.errors import InvalidParameter, NotSupported

    try:
        service = Client(url, _key(), plain_http=plain_http)
        _say_retries()
        return service
    except InvalidParameter as error:
        names = {"url": "--ledger", "key": KEY_VARIABLE}
        name = names.get(error.option, error.option)
        why = error.describe(name, _PLAIN_HINT) if "plain_http" in str(error) else error.describe(name)
        raise click.UsageError(why) from None
    except NotSupported as error:
        raise click.ClickException(str(error)) from None


def _say_retries() -> None:
    """Print the first retry of the client on stderr, so that the user knows why the command waits."""
    import logging

    log = logging.getLogger("ldp_budget.client")

    def once(record: logging.LogRecord) -> bool:
        log.removeFilter(once)
        log.setLevel(logging.WARNING)
        print_note(f"{record.getMessage()} Ctrl-C stops.")
        return False

    log.setLevel(logging.INFO)
    log.addFilter(once)


def _key() -> str:
    """Return the API key: never from the command line, which other users of the machine may see."""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if key:
        return key
    file = os.environ.get(KEY_FILE_VARIABLE)
    if not file:
        raise click.UsageError(
            f"The API key is missing: a service needs one. Set {KEY_VARIABLE}, or set {KEY_FILE_VARIABLE} to a file."
        )
    try:
        with open(file, encoding="ascii", errors="replace") as opened:
            return opened.read(_MOST).strip()
    except OSError as error:
        raise click.ClickException(f"{KEY_FILE_VARIABLE}: cannot read {file}: {error.strerror}.") from None


_EARLIEST, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)
_EXPECTED = "must be an ISO time from 1970 to 9997"
_TIME_HINT = "Write 2027-03-01 or 2027-03-01T09:30 (UTC), or add a zone: 2027-03-01T09:30+02:00."


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
        raise click.UsageError(f"{parameter.opts[0]} {_EXPECTED}: got {value!r}. {_TIME_HINT}", ctx)
    return moment.astimezone(UTC)


LEDGER_VARIABLE = "LDP_BUDGET_LEDGER"
GLOBAL = {"--ledger": "--ledger budget.db", "--at": "--at 2027-03-01"}
"""The root options with a value that may also follow the command, each with an example."""
_QUIET = "--quiet"
"""The root option without a value that may also follow the command."""
_OPENED = f"{__package__}.ledger"
"""The context key of the ledger that this command has opened."""
_AT = f"{__package__}.at"
"""The context key of the time from --at."""
_SANDBOX = f"{__package__}.sandbox"
"""The context key of a flag: True if any opened ledger is a sandbox."""
_PLAIN = f"{__package__}.plain_http"
"""The context key of a flag: True if plain HTTP is allowed."""


class Root(click.Group):
    """Loads subcommands lazily, and turns the package's errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from .plugin_commands import plugin_commands

        return [*COMMANDS, *plugin_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            from .plugin_commands import plugin_commands

            return plugin_commands().get(cmd_name)
        return command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            from .errors import did_you_mean

            known = self.list_commands(ctx)
            raise click.UsageError(f"No such command {args[0]!r}.{did_you_mean(args[0], known)}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            _check_texts(args)
            return super().parse_args(ctx, _global_first(args))
        # Shell completion: nothing runs, and an incomplete command is not an error.
        with suppress(click.UsageError):
            args = _global_first(args)
        rest = super().parse_args(ctx, args)
        ctx.obj = ctx.params.get("ledger")
        return rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        commands = [CompletionItem(name, help=help) for name, help in COMMANDS.items() if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        wide = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                # Padded, so that the texts of all groups begin in one column.
                formatter.write_dl([(f"{name:{wide}}", help) for name, help in commands.items()])
        from .plugin_commands import plugin_commands

        if added := plugin_commands():
            with formatter.section("Plugins"):
                formatter.write_dl([(f"{name:{wide}}", each.get_short_help_str()) for name, each in added.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException:
            raise
        except KeyboardInterrupt:
            from .errors import stopped

            raise stopped(ctx) from None
        except click.Abort as abort:  # click raises it for Ctrl-C at a prompt, too
            from .errors import Declined, Stopped

            ended = Stopped if isinstance(abort.__context__, KeyboardInterrupt) else Declined
            raise ended("nothing was changed.") from None
        except Exception as error:
            from .errors import to_click_exception

            raise to_click_exception(error) from error


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--ledger",
    metavar="PATH",
    envvar=LEDGER_VARIABLE,
    help="The ledger: a file (its key is FILE.key), postgresql://HOST/DATABASE, or a service at https://HOST with an "
    "API key in LDP_BUDGET_API_KEY. May also follow the command. [default: a file in your application folder]",
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
    help="Allow unencrypted HTTP to a service on another machine. Anyone on the network can read the API key.",
)
@click.option(
    "--quiet",
    is_flag=True,
    help="Print no notes and no progress; warnings and errors stay. May also follow the command.",
)
@click.version_option(package_name="ldp-budget")
@click.pass_context
def cli(ctx: click.Context, ledger: str | None, at: datetime | None, plain_http: bool, quiet: bool) -> None:
    """Calibrate, account for and collect data under local differential privacy.

    Start with: ldp-budget demo

    \b
    Example:
      ldp-budget policy set default --limit lifetime=4 --limit day=1
      ldp-budget collection add mood oue --epsilon 0.5 --categories good,fair,bad
      ldp-budget spend alice mood
      ldp-budget balance alice
    """
    from ldp_budget.registry import imports_in

    # Standard output belongs to the command: a plugin's output must not end up in the command's JSON.
    ctx.with_resource(imports_in(lambda: redirect_stdout(sys.stderr), _own_options))
    ctx.obj = ledger
    ctx.meta[_AT] = at
    ctx.meta[_PLAIN] = plain_http
    if quiet:
        set_quiet(ctx)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_SPELL)


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Write signs that the console's encoding lacks in ASCII: ε as epsilon, ≤ as <=, and others as ?."""
    from unicodedata import name

    assert isinstance(error, UnicodeEncodeError)
    names = [name(each, "").removeprefix("GREEK SMALL LETTER ") for each in error.object[error.start : error.end]]
    return "".join(each.lower() if each.isalpha() else _SIGNS.get(each, "?") for each in names), error.end


_SIGNS = {"LESS-THAN OR EQUAL TO": "<=", "GREATER-THAN OR EQUAL TO": ">=", "RIGHTWARDS ARROW": "->"}
_SPELL = "ldp_budget.spell"
codecs.register_error(_SPELL, _spell)


def _own_options() -> set[str]:
    """Return the options that no field of a plugin's mechanism may have; imported by name, as commands are."""
    taken: set[str] = import_module(".mechanism_arguments", __package__).taken_options()
    return taken


def _check_texts(args: list[str]) -> None:
    """Raise a click error for a word that is not Unicode and names no file: an ASCII locale cannot decode it."""
    for word in args:
        value = word.partition("=")[2] if word.startswith("--") and "=" in word else word
        if any("\ud800" <= each <= "\udfff" for each in value) and not os.path.lexists(value):
            given = word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            raise click.UsageError(
                f"The word {given} is not Unicode text in the locale of this terminal ({sys.getfilesystemencoding()}). "
                "Nothing was changed. Set a UTF-8 locale and type it again: export LC_ALL=C.UTF-8 PYTHONUTF8=1"
            )


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
                raise click.UsageError(f"{rest[place]} has no value. Write: {GLOBAL[rest[place]]}")
            first += rest[place : place + 2]
            del rest[place : place + 2]
            end -= 2
        elif rest[place] == _QUIET or rest[place].partition("=")[0] in GLOBAL:
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
            raise click.UsageError("--at does not go with a service, which has its own clock. Leave --at out.")
        opened: Accountant | Client = open_service(place, plain_http=ctx.find_root().meta.get(_PLAIN, False))
    elif at is None:
        opened = Accountant(place, create=create, sandbox=sandbox)
    else:
        try:
            opened = Accountant(place, create=create, sandbox=True, clock=lambda: at)
        except LedgerMissing as error:
            why = f"{error.completed('').removesuffix('.')}. --at needs a sandbox. Create one: ldp-budget ledger init --sandbox"
            raise click.ClickException(why) from error
    try:
        is_sandbox = opened.sandbox  # a request, if a service keeps the ledger
    except Exception:
        opened.close()
        raise
    if is_sandbox:
        ctx.find_root().meta[_SANDBOX] = True
        print_note(f"Sandbox: nothing counts in {place if is_path(place) else opened.name}")
    return opened


def make_ledger(ctx: click.Context, *, sandbox: bool) -> Accountant | Client:
    """Create a ledger at the path or URL to use. Raises a click error if one exists there."""
    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.errors import LedgerMissing

    if given_time(ctx) is not None and not sandbox:
        raise click.UsageError("--at needs --sandbox: only a sandbox lets you set its clock. Add --sandbox.")
    place = place_for_ledger(ctx)
    if is_service(place):
        raise click.UsageError("--ledger names a service, which has a ledger already. Name a file or postgresql://….")
    try:
        with Accountant(place, create=False, sandbox=None) as there:
            kind = "a sandbox" if there.sandbox else "a ledger"
            hint = "Use it, or create another one: --ledger PATH"
            raise click.ClickException(f"{there.name} is {kind} already. It was not changed. {hint}")
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
    from ldp_budget.accounting.connect import check_platform

    path = ledger_path(ctx)
    check_platform(path)
    if not ctx.find_root().obj:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except OSError as error:
            raise click.ClickException(f"Cannot create the folder of {path}: {error.strerror}.") from None
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
    """Complete the name of a collection of the ledger, also after `collection:`."""
    prefix = "collection:" if incomplete.startswith("collection:") else ""
    return _names(ctx, incomplete, lambda ledger: [f"{prefix}{each['name']}" for each in ledger.collections()])


def policy_names(ctx: click.Context, parameter: click.Parameter | None, incomplete: str) -> list[str]:
    """Complete the name of a policy of the ledger."""
    return _names(ctx, incomplete, lambda ledger: [policy.name for policy in ledger.policies()])


def policy_option(help: str) -> Callable[[Any], Any]:
    """Return the option `--policy` with a line of help, without its default."""
    return click.option(
        "--policy",
        default="default",
        metavar="NAME",
        shell_complete=policy_names,
        help=f"{help} [default: default]",
    )
