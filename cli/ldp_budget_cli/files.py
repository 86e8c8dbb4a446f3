"""Reading what commands are given: a column of a CSV file, a collection by name or from its JSON file."""

from __future__ import annotations

import csv
import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import click

from ldp_budget.errors import InvalidParameter

from .app import open_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ldp_budget.catalogue.collections import Collection


def read_columns(path: str, columns: Mapping[str, str]) -> dict[str, list[str]]:
    """Columns of a CSV file with a header line (`-` for standard input), every row in order.

    `columns` are their names, each under the option that gave it.
    """
    try:
        with _opened(path) as file:
            reader = csv.DictReader(file, strict=True)
            header = reader.fieldnames or []
            for option, column in columns.items():
                _check_column(path, header, option, column)
            found: dict[str, list[str]] = {column: [] for column in columns.values()}
            for row in reader:
                # DictReader keeps surplus cells under None: an unquoted comma would shift the columns.
                if None in row or None in row.values():
                    raise click.ClickException(
                        f"{path}, line {reader.line_num}: expected {len(header)} cells, as in the header"
                    )
                for column in found:
                    found[column].append(row[column])
            return found
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise click.ClickException(f"{path} is no CSV file in UTF-8: {error}") from None


def read_users(path: str, column: str | None) -> Iterator[str]:
    """The users in a column of a CSV file with a header line, as a stream; the first one where none is named."""
    try:
        with _opened(path) as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            if column is not None:
                _check_column(path, header, "user_column", column)
            elif not header:
                raise click.ClickException(f"{path}: expected a header line; found nothing")
            place = 0 if column is None else header.index(column)
            for row in reader:
                if len(row) != len(header):
                    raise click.ClickException(
                        f"{path}, line {reader.line_num}: expected {len(header)} cells, as in the header"
                    )
                if not row[place]:
                    where = f"{path}, line {reader.line_num}, column {header[place]}"
                    raise click.ClickException(f"{where}: expected a user, found nothing")
                yield row[place]
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise click.ClickException(f"{path} is no CSV file in UTF-8: {error}") from None


def _check_column(path: str, header: Sequence[str], option: str, column: str) -> None:
    """Raise `InvalidParameter` unless the header holds the column, and once."""
    if column not in header:
        expected = f"one of the columns {', '.join(header) or '(none)'} of {path}"
        raise InvalidParameter(option, expected, column)
    if header.count(column) > 1:
        expected = f"a column of {path} that no other is named like"
        raise InvalidParameter(option, expected, f"{column}, {header.count(column)} times")


def count_lines(path: str) -> int | None:
    """About how many rows a file has below its header; None for a stream, or a file that cannot be read."""
    if path == "-" or not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            blocks = iter(lambda: file.read(1 << 20), b"")
            return max(0, sum(block.count(b"\n") for block in blocks) - 1)
    except OSError:
        return None


@contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    if path == "-":
        yield sys.stdin
    else:
        with open(path, newline="", encoding="utf-8-sig") as file:
            yield file


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
