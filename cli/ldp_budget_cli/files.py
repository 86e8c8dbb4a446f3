"""Reading what commands are given: names from a file or a list, a collection by name or from its JSON file."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from .app import open_ledger

if TYPE_CHECKING:
    from ldp_budget.catalogue.collections import Collection


def read_names(option: str, text: str) -> tuple[str, ...]:
    """The names in a file, one a line, or in a comma-separated list."""
    if not os.path.isfile(text):
        return tuple(part.strip() for part in text.split(","))
    try:
        with open(text, encoding="utf-8-sig") as file:
            return tuple(line.strip() for line in file if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{text} cannot be read: {error}", param_hint=f"--{option}") from None


def read_json(option: str, path: str) -> Any:
    """The JSON in a file."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{path} cannot be read: {error}", param_hint=f"--{option}") from None


def find_collection(ctx: click.Context, name: str) -> Collection:
    """The collection in the JSON file of that path, or the one of that name in the ledger."""
    from ldp_budget.catalogue.collections import Collection

    if os.path.isfile(name):
        try:
            with open(name, encoding="utf-8") as file:
                return Collection.from_json(json.load(file))
        except OSError as error:
            raise click.ClickException(f"{name} cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise click.ClickException(
                f"{name} is a file, but no collection ({error}); collection:{name} means the one in the ledger"
            ) from None
    return open_ledger(ctx).collection(name.removeprefix("collection:"))
