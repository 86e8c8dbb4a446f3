"""Commands that take MECHANISM and its options: one subcommand for each mechanism, built from its fields.

A collection's name may replace MECHANISM, without options. If a name is both, `collection:NAME` selects the
collection; a plugin that is installed later never takes over a collection's name silently.
"""

from __future__ import annotations

import os
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from ldp_budget.errors import InvalidParameter, LdpBudgetError, LedgerError, UnknownName
from ldp_budget.registry.plugins import mechanism as find_mechanism
from ldp_budget.registry.plugins import registry
from ldp_budget.sdk.parameters import Choice, Field, Flag, Integer, Matrix, Real, Text

from .app import collection_names, is_path, ledger_path, open_ledger
from .errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ldp_budget.sdk.mechanism import Mechanism

    Offers = Callable[[type[Mechanism], Field[Any]], bool]
    Build = Callable[[type[Mechanism], Mapping[str, Any]], Any]

note_option = click.option(
    "--note", metavar="TEXT", help="One line to stand in the journal, of at most 500 characters; goes with the user."
)

_PREFIX = "collection:"
# Keeps the values of a mechanism's fields apart from the command's own parameters, for any field name.
_FIELD = "field_"


def mechanism_command(
    help: str,
    *,
    arguments: Sequence[str] = (),
    build: Build = lambda mechanism, values: mechanism(**values),
    offers: Offers = lambda mechanism, field: True,
    whole: bool = False,
) -> Callable[[Callable[..., None]], MechanismGroup]:
    """Turn `function(mechanism, **options)` into a command with a subcommand for each mechanism.

    `arguments` come before MECHANISM. `offers` selects the fields that become options. `build` turns their values
    into the
    function's first argument. With `whole`, a named collection is passed as a collection, not only as its mechanism.
    """

    def decorate(function: Callable[..., None]) -> MechanismGroup:
        own = list(reversed(getattr(function, "__click_params__", [])))
        return MechanismGroup(function, own, build, offers, help=help, arguments=arguments, whole=whole)

    return decorate


class MechanismGroup(click.Group):
    """The group behind `mechanism_command`."""

    def __init__(
        self,
        function: Callable[..., None],
        own: Sequence[click.Parameter],
        build: Build,
        offers: Offers,
        *,
        help: str,
        arguments: Sequence[str],
        whole: bool = False,
    ) -> None:
        super().__init__(
            name=function.__name__.replace("_", "-"),
            params=[click.Argument([name]) for name in arguments],
            help=help,
            subcommand_metavar="MECHANISM [OPTIONS]",
        )
        self._arguments = [name.upper() for name in arguments]
        self._function = function
        self._own = own
        self._build = build
        self._offers = offers
        self._whole = whole

    def list_commands(self, ctx: click.Context) -> list[str]:
        return registry().names()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._with_arguments(args))

    def _with_arguments(self, args: list[str]) -> list[str]:
        """Rewrite `spend oue --help` so that it shows the help of oue, although `oue` is in the place of USER."""
        words = list(takewhile(lambda word: not word.startswith("-"), args))
        if not 0 < len(words) <= len(self._arguments) or not {"-h", "--help"} & set(args):
            return args
        try:
            mechanism = find_mechanism(_as_name(words[-1]))
        except UnknownName:
            return ["--help"]
        return [*self._arguments, mechanism.name, "--help"]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete mechanisms and the ledger's collections; after `collection:`, only collections."""
        mechanisms = [
            CompletionItem(name, help=mechanism.summary)
            for name in self.list_commands(ctx)
            if name.startswith(incomplete) and (mechanism := find_mechanism(name))
        ]
        if incomplete.startswith(_PREFIX):
            names = collection_names(ctx, None, incomplete.removeprefix(_PREFIX))
            return [CompletionItem(_PREFIX + name) for name in names]
        collections = [CompletionItem(name, help="a collection") for name in collection_names(ctx, None, incomplete)]
        return [*mechanisms, *collections, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        try:
            command: click.Command = self._for_mechanism(find_mechanism(_as_name(args[0])), args[0])
        except UnknownName:
            command = click.Command(args[0], params=[*self._own])  # as a collection
        return args[0], command, args[1:]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name.startswith("-"):
            expected = f"{' '.join([*self._arguments, 'MECHANISM'])} first, as all options follow it"
            raise click.UsageError(f"{cmd_name}: expected {expected}", ctx)
        if cmd_name.startswith(_PREFIX):
            return self._for_collection(ctx, cmd_name.removeprefix(_PREFIX), cmd_name)
        names, unread = _collection_names(ctx)
        is_collection = cmd_name in names
        try:
            mechanism = find_mechanism(cmd_name if is_collection else _as_name(cmd_name))
        except UnknownName as error:
            if is_collection:
                return self._for_collection(ctx, cmd_name, cmd_name)
            if unread is not None:  # it may be a collection
                raise unread from None
            close = did_you_mean(cmd_name, [*error.known, *names])
            raise click.UsageError(f"{error}{close and '.'}{close}", ctx) from None
        if is_collection:
            raise click.UsageError(
                f"{cmd_name!r} is both the mechanism {mechanism.name} and a collection of this ledger; "
                f"{_PREFIX}{cmd_name} means the collection",
                ctx,
            )
        return self._for_mechanism(mechanism, cmd_name)

    def _for_mechanism(self, mechanism: type[Mechanism], called: str) -> click.Command:
        offered = {name: field for name, field in mechanism.fields.items() if self._offers(mechanism, field)}

        def callback(**values: Any) -> None:
            declared = {name: values.pop(_FIELD + name) for name in offered}
            read = {name: _read(offered[name], text) for name, text in declared.items() if text is not None}
            self._call(self._build(mechanism, read), values)

        return click.Command(
            called,
            callback=callback,
            params=[*(_option(field) for field in offered.values()), *self._own],
            help=f"{mechanism.name}: {mechanism.summary}.\n\nSource: {mechanism.source}",
            short_help=mechanism.summary,
        )

    def _for_collection(self, ctx: click.Context, name: str, called: str) -> click.Command:
        found = open_ledger(ctx).collection(name)

        def callback(**values: Any) -> None:
            self._call(found if self._whole else found.mechanism, values)

        help = f"Collection {name}, {found.mechanism!r}."
        return click.Command(called, callback=callback, params=[*self._own], help=help)

    def _call(self, mechanism: Any, values: Mapping[str, Any]) -> None:
        context = click.get_current_context()
        before = context.parent.params if context.parent is not None else {}
        self._function(mechanism, **before, **values)


def _as_name(word: str) -> str:
    """Return a word in the spelling of mechanism names: OUE is oue, randomized_response is randomized-response."""
    return word.lower().replace("_", "-")


def _collection_names(ctx: click.Context) -> tuple[set[str], LdpBudgetError | None]:
    """Return the collections of the ledger, if there is one, and the error that prevented reading them."""
    path = ledger_path(ctx)
    if is_path(path) and not os.path.exists(path):
        return set(), None
    try:
        return {collection["name"] for collection in open_ledger(ctx).collections()}, None
    except LdpBudgetError as error:
        if (
            isinstance(error, LedgerError) or error.code == "forbidden"
        ):  # an API key may be limited to charging by mechanism
            return set(), error
        raise


def _option(field: Field[Any]) -> click.Option:
    """Return the command-line option of a field; the field itself checks the text."""
    spelling = "--" + field.name.replace("_", "-")
    default = "" if field.default is None or isinstance(field, Flag) else f" [default: {field.default}]"
    help = field.help + default + (" (required)" if field.required else "")
    if isinstance(field, Flag):
        return click.Option([spelling, _FIELD + field.name], is_flag=True, default=None, help=help)
    return click.Option([spelling, _FIELD + field.name], metavar=_metavar(field), help=help)


def _metavar(field: Field[Any]) -> str:
    if isinstance(field, Choice):
        return "|".join(field.choices)
    if isinstance(field, Integer):
        return "INTEGER"
    if isinstance(field, Real):
        return "NUMBER"
    return "FILE" if isinstance(field, Matrix) else "TEXT" if isinstance(field, Text) else "JSON"


def _read(field: Field[Any], value: Any) -> Any:
    return field.parse_option(value) if isinstance(value, str) else value


def parse_reports(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Return a count of reports from the command line, if given; the accountant checks its range."""
    if value is None:
        return None
    try:
        return int(value)
    except ValueError:
        raise InvalidParameter("reports", "a whole number >= 1", value) from None
