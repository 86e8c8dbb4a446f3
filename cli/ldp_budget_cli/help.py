"""The command `help`: the help of a command, as its option `--help` prints it."""

from __future__ import annotations

import click


@click.command("help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def help(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command, as --help does.

    \b
    Example:
      ldp-budget help spend oue
    """
    from .errors import did_you_mean

    shown = ctx.find_root()
    for word in words:
        group = shown.command
        command = group.get_command(shown, word) if isinstance(group, click.Group) else None
        if command is None:
            known = group.list_commands(shown) if isinstance(group, click.Group) else []
            raise click.UsageError(f"No such command {word!r}.{did_you_mean(word, known)}", shown)
        shown = click.Context(command, info_name=word, parent=shown, **command.context_settings)
    click.echo(shown.get_help())
