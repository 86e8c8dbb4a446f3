"""A page of reproductions: paragraphs, tables, pictures, and rows that set what is printed beside what comes out."""

from __future__ import annotations

import csv
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

_HEADER = ("what", "printed", "ours", "verdict")
_REPRODUCED, _NOT_REPRODUCED = "reproduced", "**not reproduced**"
_COLOURS = 128


@dataclass(frozen=True)
class Row:
    """One printed result beside ours. `why` says why it was not reproduced, and may comment on one that was."""

    what: str
    printed: object
    ours: object
    reproduced: bool
    why: str = ""

    def __post_init__(self) -> None:
        if not self.reproduced and not self.why:
            raise ValueError(f"{self.what}: expected why, as the row is not reproduced")

    @property
    def verdict(self) -> str:
        """The last cell: the verdict, and after a colon the reason."""
        word = _REPRODUCED if self.reproduced else _NOT_REPRODUCED
        return f"{word}: {self.why}" if self.why else word


class Report:
    """The page of one document, as Markdown, with its pictures in the folder `pictures` and its rows as CSV.

    `quick` asks the parts for fewer repeats, as the tests do. Numbers are shown with six digits; a cell that should
    look different is given as text.
    """

    def __init__(self, document: str, title: str, folder: Path, quick: bool) -> None:
        self.document = document
        self.quick = quick
        self.title = title
        self._folder = folder
        self._section = ""
        self._rows: list[tuple[str, Row]] = []
        self._blocks = [
            f"# {title}",
            "What their text prints, beside what comes out. Written by "
            f"`python docs/evidence/reproductions{' --quick' if quick else ''} {document}`.",
        ]

    def section(self, title: str, *paragraphs: str) -> None:
        """A heading and the paragraphs under it."""
        self._section = title
        self._blocks += [f"## {title}", *paragraphs]

    def text(self, paragraph: str) -> None:
        self._blocks.append(paragraph)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table of results that no printed ones stand beside."""
        lines = [header, ["---"] * len(header), *rows]
        self._blocks.append("\n".join(_line(cells) for cells in lines))

    def compare(self, rows: Iterable[Row]) -> None:
        """A table of printed results, each beside ours and marked reproduced or not."""
        rows = list(rows)
        self._rows += [(self._section, row) for row in rows]
        self.table(_HEADER, [(row.what, row.printed, row.ours, row.verdict) for row in rows])

    @contextmanager
    def picture(self, name: str, caption: str) -> Iterator[Figure]:
        """An empty figure, saved and shown with its caption at the end of the block."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4), layout="constrained")
        yield figure
        file = f"pictures/{self.document}-{name}.png"
        path = self._folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        _save(figure, path)
        self._blocks.append(f"![{caption}]({file})\n\n{caption}")

    def write(self) -> Path:
        """Write the page, and return where it is."""
        path = self._folder / f"document-{self.document}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(self._blocks) + "\n", encoding="utf-8")
        self.record(self._folder)
        return path

    def record(self, folder: Path) -> Path:
        """Write the compared rows as CSV."""
        path = folder / f"{self.document}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(("section", *_HEADER, "why"))
            for section, row in self._rows:
                word = _REPRODUCED if row.reproduced else _NOT_REPRODUCED
                table.writerow((section, *map(_text, (row.what, row.printed, row.ours)), word.strip("*"), row.why))
        return path


def verdicts(path: Path) -> list[tuple[str, bool]]:
    """What a document compares and whether it was reproduced, read back from its CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["what"], row["verdict"] == _REPRODUCED) for row in csv.DictReader(file)]


def _save(figure: Figure, path: Path) -> None:
    """Write a PNG of few colours, the same bytes every time."""
    from PIL import Image

    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=100)
    # A new image: without metadata, where the drawn one has the version of the software.
    Image.open(drawn).convert("RGB").quantize(_COLOURS).save(path, optimize=True)


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(value: object) -> str:
    return _text(value).replace("|", "\\|")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text.replace("\n", " ")
