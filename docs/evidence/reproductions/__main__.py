"""Compute again what the five sources print, and set the results beside the printed ones.

    python docs/evidence/reproductions            all of them
    python docs/evidence/reproductions 001        one of them

Each of them has a number and a script here, `document_NNN.py`, with a TITLE and PARTS; a part adds to its page.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from report import Report, verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).resolve().parent
OVERVIEW = HERE.with_name("errata.md")
DOCUMENTS = [path.stem.removeprefix("document_") for path in sorted(HERE.glob("document_*.py"))]
_SUMMARY = re.compile(r"(?<=<!-- summary -->\n).*?(?=<!-- end of summary -->)", re.DOTALL)


class Part(NamedTuple):
    report: Report
    title: str
    run: Callable[[Report], None]


@click.command()
@click.argument("documents", nargs=-1, type=click.Choice(DOCUMENTS))
@click.option("--quick", is_flag=True, help="Fewer repeats: coarser figures, the same rows.")
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/reproductions"),
    help="Folder for the pages, pictures and tables.  [default: build/reproductions]",
)
@click.option("--record", is_flag=True, help="Write the tables and the overview beside this script, too.")
def main(documents: tuple[str, ...], quick: bool, folder: Path, record: bool) -> None:
    """Compute again what the sources print, named by number (all by default), and set it beside the printed."""
    parts = [part for document in documents or DOCUMENTS for part in parts_of(document, folder, quick)]
    with click.progressbar(parts, item_show_func=lambda part: part and part.title, label="reproductions") as bar:
        for part in bar:
            part.run(part.report)
    for report in {part.report: None for part in parts}:
        click.echo(f"{report.write()}")
        if record:
            click.echo(f"{report.record(HERE)}")
    if record:
        write_summary()


def parts_of(document: str, folder: Path, quick: bool) -> Iterator[Part]:
    script = importlib.import_module(f"document_{document}")
    report = Report(document, script.TITLE, folder, quick)
    for title, run in script.PARTS:
        yield Part(report, f"{document}: {title}", run)


def summary() -> str:
    """The table of the overview, with a row for every document."""
    lines = ["| source | rows | reproduced | not reproduced |\n| --- | --- | --- | --- |\n"]
    for document in DOCUMENTS:
        title = importlib.import_module(f"document_{document}").TITLE
        found = [reproduced for _, reproduced in verdicts(HERE / f"{document}.csv")]
        link = f"[{document}: {title}]({HERE.name}/{document}.csv)"
        lines.append(f"| {link} | {len(found)} | {sum(found)} | {len(found) - sum(found)} |\n")
    return "".join(lines)


def write_summary() -> None:
    overview = OVERVIEW.read_text(encoding="utf-8")
    OVERVIEW.write_text(_SUMMARY.sub(lambda _: summary(), overview), encoding="utf-8")


if __name__ == "__main__":
    main()
