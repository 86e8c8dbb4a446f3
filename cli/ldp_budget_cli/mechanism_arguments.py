"""Commands that take MECHANISM and its options: one subcommand for each mechanism, built from its fields.

A collection's name may replace MECHANISM, without options. If a name is both, `collection:NAME` selects the
collection; a plugin that is installed later never takes over a collection's name silently.
"""

from __future__ import annotations

import os
import re
import shlex
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import click
from click.shell_completion import CompletionItem

from ldp_budget._number_parsing import whole_in
from ldp_budget.errors import InvalidParameter, LdpBudgetError, LedgerError, UnknownName
from ldp_budget.registry.plugins import mechanism as find_mechanism
from ldp_budget.registry.plugins import registry
from ldp_budget.sdk.parameters import Choice, Field, Flag, Integer, Matrix, Real, Text

from .app import cli, collection_names, is_path, ledger_path, open_ledger
from .command_groups import TAKE_MECHANISM, command
from .errors import did_you_mean
from .examples import EXAMPLE, example_options, example_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ldp_budget.sdk.mechanism import Mechanism

    Offers = Callable[[type[Mechanism], Field[Any]], bool]
    Build = Callable[[type[Mechanism], Mapping[str, Any]], Any]

tag_option = click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="KIND:NAME",
    help="What the report depends on or is for, such as attribute:health or purpose:ads. Repeatable: give all that "
    "apply. Without tags, the charge counts under every scope.",
)
note_option = click.option(
    "--note",
    metavar="TEXT",
    help="A note for the journal: one line of at most 500 characters. It is deleted when the user is erased.",
)

_PREFIX = "collection:"
_TYPED = f"{__package__}.typed"
"""The context key of the mechanism and its options as they were typed."""
_COLLECTION = "mood"
"""The name of the collection in an example."""
_IN_PLACE = (
    "The name of a collection may replace MECHANISM and its options. If a mechanism has the same name, write "
    f"{_PREFIX}NAME. All options follow MECHANISM."
)
# Keeps the values of a mechanism's fields apart from the command's own parameters, for any field name.
_FIELD = "field_"


def mechanism_command(
    help: str,
    *,
    example: str,
    arguments: Sequence[str] = (),
    build: Build = lambda mechanism, values: mechanism(**values),
    offers: Offers = lambda mechanism, field: True,
    whole: bool = False,
    collections: bool = True,
    adapt: Callable[[type[Mechanism], str], str] = lambda mechanism, options: options,
    group: type[MechanismGroup] | None = None,
) -> Callable[[Callable[..., None]], MechanismGroup]:
    """Turn `function(mechanism, **options)` into a command with a subcommand for each mechanism.

    `example` is a command line with `{}` for the mechanism and its options. `arguments` come before MECHANISM.
    `offers` selects the fields that become options. `build` turns their values into the function's first argument.
    With `whole`, a named collection is passed as a collection, not only as its mechanism. Without `collections`, the
    help does not offer a collection in MECHANISM's place. `adapt` changes the options of a mechanism in the example.
    `group` is the class of the command.
    """

    def decorate(function: Callable[..., None]) -> MechanismGroup:
        own = list(reversed(getattr(function, "__click_params__", [])))
        texts = _Texts(help, example, collections, adapt)
        return (group or MechanismGroup)(function, own, build, offers, texts=texts, arguments=arguments, whole=whole)

    return decorate


class _Texts(NamedTuple):
    """The texts of a command: its help, an example with `{}` for the mechanism, and if it offers collections."""

    help: str
    example: str
    collections: bool
    adapt: Callable[[type[Mechanism], str], str]


class MechanismGroup(click.Group):
    """The group behind `mechanism_command`."""

    alternative: click.Command | None = None
    """The command that runs without MECHANISM, if other options are given."""
    made: ClassVar[list[MechanismGroup]] = []
    """Every such command of the modules that were imported."""

    def __init__(
        self,
        function: Callable[..., None],
        own: Sequence[click.Parameter],
        build: Build,
        offers: Offers,
        *,
        texts: _Texts,
        arguments: Sequence[str],
        whole: bool = False,
    ) -> None:
        self._arguments = [name.upper() for name in arguments]
        self._function = function
        self._own = own
        self._build = build
        self._offers = offers
        self._texts = texts
        self._whole = whole
        super().__init__(
            name=function.__name__.replace("_", "-"),
            callback=self._check_mechanism,
            params=[click.Argument([name]) for name in arguments],
            help=texts.help,
            options_metavar=None,
            subcommand_metavar="MECHANISM [OPTIONS]",
            invoke_without_command=True,
            no_args_is_help=True,
        )
        self.made.append(self)

    @property
    def own_options(self) -> set[str]:
        """The command's own options, in the spelling of fields."""
        return option_names(self._own)

    # -- help ------------------------------------------------------------------------------------------------

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        lines = [self._example(find_mechanism(EXAMPLE))]
        if self._texts.collections:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(_IN_PLACE)
            lines.append(self._texts.example.format(_COLLECTION))
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\b\n" + example_text(*lines))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the command itself, and the list of mechanisms."""
        help_option = self.get_help_option(ctx)
        every: list[click.Parameter] = [*self._own, *([] if help_option is None else [help_option])]
        with formatter.section("Options"):
            formatter.write_dl([record for each in every if (record := each.get_help_record(ctx)) is not None])
        with formatter.section("Mechanisms"):
            formatter.write_dl([(name, find_mechanism(name).summary) for name in self.list_commands(ctx)])
        formatter.write_paragraph()
        words = " ".join([ctx.command_path, *self._arguments, EXAMPLE])
        formatter.write_text(f"For the options of a mechanism: {words} --help")

    def _example(self, mechanism: type[Mechanism]) -> str:
        """Return the example with a mechanism and the options that the command offers."""
        options = self._texts.adapt(mechanism, example_options(mechanism, self._offered(mechanism)))
        return self._texts.example.format(f"{mechanism.name} {options}".strip())

    def _offered(self, mechanism: type[Mechanism]) -> dict[str, Field[Any]]:
        return {name: field for name, field in mechanism.fields.items() if self._offers(mechanism, field)}

    # -- MECHANISM -------------------------------------------------------------------------------------------

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

    def _check_mechanism(self, **arguments: str) -> None:
        """Raise an error with what to type if the command line ends before MECHANISM."""
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is not None:
            return
        given = [ctx.command_path, *arguments.values()]
        whole = [self._example(find_mechanism(EXAMPLE))]
        if self._texts.collections and (names := sorted(_collection_names(ctx)[0])):
            whole = [self._texts.example.format(names[0]), *whole]
        words = len(" ".join(given[:1]).split()[1:]) + len(arguments)
        tries = [" ".join([*given, *_without_key(each).split()[words:]]) for each in whole]
        what = "MECHANISM or COLLECTION" if self._texts.collections else "MECHANISM"
        raise click.UsageError(f"{what} is missing. Try: {', or: '.join(tries)}", ctx)

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
            first = " and ".join([*self._arguments, "MECHANISM"])
            start = " ".join([ctx.command_path, *self._arguments, "MECHANISM"])
            raise click.UsageError(
                f"{cmd_name} comes too early: {first} come first. Write: {start} {cmd_name} …", ctx
            )
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
            raise click.UsageError(self._unknown(error, cmd_name, sorted(names)), ctx) from None
        if is_collection:
            raise click.UsageError(
                f"{cmd_name!r} is both the mechanism {mechanism.name} and a collection of this ledger. "
                f"For the collection, write {_PREFIX}{cmd_name}",
                ctx,
            )
        return self._for_mechanism(mechanism, cmd_name)

    def _unknown(self, error: UnknownName, name: str, collections: Sequence[str]) -> str:
        """Return the error for a name that is neither a mechanism nor a collection; it names plugins that failed."""
        what = "mechanism or collection" if self._texts.collections else "mechanism"
        failed = "" if error.hint.startswith("Did you mean") else f" {error.hint}".rstrip()
        message = f"No {what} is named {name!r}.{did_you_mean(name, [*error.known, *collections])}{failed}"
        if self._texts.collections:
            message += f" Collections: {', '.join(collections) or 'none'}."
        return f"{message} List mechanisms: ldp-budget mechanisms"

    def _for_mechanism(self, mechanism: type[Mechanism], called: str) -> click.Command:
        offered = self._offered(mechanism)

        def callback(**values: Any) -> None:
            declared = {name: values.pop(_FIELD + name) for name in offered}
            given = {name: text for name, text in declared.items() if text is not None}
            click.get_current_context().meta[_TYPED] = _typed(called, given)
            read = {name: _read(offered[name], text) for name, text in given.items()}
            try:
                built = self._build(mechanism, read)
            except InvalidParameter as error:
                if error.found is None:
                    example = f"Example: ldp-budget {_without_key(self._example(mechanism))}"
                    error.hint = f"{_spelled(error.hint, mechanism)} {example}".strip()
                raise
            self._call(built, values)

        return click.Command(
            called,
            callback=callback,
            params=[*(_option(field) for field in offered.values()), *self._own],
            help=f"{self._texts.help}\n\n{mechanism.name}: {mechanism.summary}.\n\n\b\n"
            f"{example_text(self._example(mechanism))}\n\nSource: {mechanism.source}",
            short_help=mechanism.summary,
        )

    def _for_collection(self, ctx: click.Context, name: str, called: str) -> click.Command:
        found = open_ledger(ctx).collection(name)

        def callback(**values: Any) -> None:
            click.get_current_context().meta[_TYPED] = called
            self._call(found if self._whole else found.mechanism, values)

        example = example_text(self._texts.example.format(called))
        help = f"{self._texts.help}\n\nCollection {name}, {found.mechanism!r}.\n\n\b\n{example}"
        return click.Command(called, callback=callback, params=[*self._own], help=help)

    def _call(self, mechanism: Any, values: Mapping[str, Any]) -> None:
        context = click.get_current_context()
        before = context.parent.params if context.parent is not None else {}
        self._function(mechanism, **before, **values)


def _spelled(hint: str, mechanism: type[Mechanism]) -> str:
    """Return a hint with the parameters of the mechanism as options: `--epsilon` for `epsilon`."""
    names = "|".join(sorted(map(re.escape, mechanism.fields), key=len, reverse=True))
    return re.sub(rf"\b({names})\b", lambda name: f"--{name[1].replace('_', '-')}", hint) if names else hint


def _without_key(example: str) -> str:
    return example.partition(" --key ")[0]


def _typed(called: str, given: Mapping[str, Any]) -> str:
    """Return a mechanism and its options as they were typed."""
    spelt = ((f"--{name.replace('_', '-')}", value) for name, value in given.items())
    return shlex.join(
        [called, *(word for name, value in spelt for word in ([name] if value is True else [name, value]))]
    )


def as_typed() -> str:
    """Return the mechanism or collection of this command as it was typed, with its options."""
    return str(click.get_current_context().meta[_TYPED])


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
        return whole_in(value)
    except ValueError:
        raise InvalidParameter("reports", "a whole number >= 1", value) from None


def option_names(parameters: Iterable[click.Parameter]) -> set[str]:
    """Return the names of options, in the spelling of a mechanism's fields."""
    options = [each for each in parameters if isinstance(each, click.Option)]
    spelt = [name for each in options for name in (*each.opts, *each.secondary_opts)]
    return {name.removeprefix("--").replace("-", "_") for name in spelt}


def taken_options() -> set[str]:
    """Return the options of the command line, and of all commands that take MECHANISM."""
    for name in TAKE_MECHANISM:
        command(name)
    return {"help", *option_names(cli.params)}.union(*(group.own_options for group in MechanismGroup.made))
