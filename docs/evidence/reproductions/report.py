"""A page of reproductions: paragraphs, tables, pictures, and rows that set what is printed beside what comes out."""

from __future__ import annotations

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
    """The page of one document, written as Markdown; its pictures go into the folder `pictures` beside it.

    `quick` asks the parts for fewer repeats, as the tests do. Numbers are shown with six digits; a cell that should
    look different is given as text.
    """

    def __init__(self, document: str, title: str, folder: Path, quick: bool) -> None:
        self.document = document
        self.quick = quick
        self._folder = folder
        self._blocks = [
            f"# {title}",
            "What [their text](../sources.md) prints, beside what comes out. Written by "
            f"`python docs/evidence/reproductions{' --quick' if quick else ''} {document}`.",
        ]

    def section(self, title: str, *paragraphs: str) -> None:
        """A heading and the paragraphs under it."""
        self._blocks += [f"## {title}", *paragraphs]

    def text(self, paragraph: str) -> None:
        self._blocks.append(paragraph)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table of results that no printed ones stand beside."""
        lines = [header, ["---"] * len(header), *rows]
        self._blocks.append("\n".join(_line(cells) for cells in lines))

    def compare(self, rows: Iterable[Row]) -> None:
        """A table of printed results, each beside ours and marked reproduced or not."""
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
        path = page_path(self._folder, self.document)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(self._blocks) + "\n", encoding="utf-8")
        return path


def page_path(folder: Path, document: str) -> Path:
    return folder / f"document-{document}.md"


def verdicts(page: str) -> list[tuple[str, bool]]:
    """What a page compares and whether it was reproduced, read back from its Markdown."""
    found = []
    comparing = False
    for line in page.splitlines():
        if line == _line(_HEADER):
            comparing = True
        elif not line.startswith("|"):
            comparing = False
        elif comparing and not line.startswith("| ---"):
            # Every bar within a cell is escaped.
            first, *_, last = line.removeprefix("| ").removesuffix(" |").split(" | ")
            found.append((first, last.startswith(_REPRODUCED)))
    return found


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
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
