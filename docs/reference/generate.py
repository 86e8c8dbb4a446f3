"""Writes the generated pages of docs/reference: `python docs/reference/generate.py`.

With `--out FOLDER` it writes them there. `tests/unit/docs/test_reference.py` compares the committed pages with new ones.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Before the registry is read: the pages list what every installation has.
os.environ["LDP_BUDGET_NO_PLUGINS"] = "1"

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from reference_pages import (  # noqa: E402
    command_pages,
    error_page,
    http_pages,
    mechanism_cards,
    operator_table,
    package_drawing,
    python_pages,
)

NOTE = "<!-- made by docs/reference/generate.py; do not edit -->"
END = "<!-- end of what is made -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE, metavar="FOLDER")
    out = parser.parse_args().out
    for name, lines in (*python_pages.pages(), *command_pages.pages(), *http_pages.pages(), *single()):
        page = out / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("\n".join([NOTE, "", *lines]).rstrip() + "\n", encoding="utf-8")
    for name, parts in mixed().items():
        text = (HERE / name).read_text(encoding="utf-8")
        for what, lines in parts.items():
            text = between(text, f"<!-- {what}, made by docs/reference/generate.py; do not edit -->", lines)
        (out / name).write_text(text, encoding="utf-8")
    (out / "packages.svg").write_text(package_drawing.drawing(), encoding="utf-8")


def single() -> tuple[tuple[str, Iterator[str]], ...]:
    """The pages that stand alone."""
    return ("errors.md", error_page.page()), ("mechanisms/index.md", mechanism_cards.overview())


def mixed() -> dict[str, dict[str, Iterator[str]]]:
    """The pages that are written by hand except for the parts with these names."""
    return {
        "http.md": {"common problems": http_pages.common_problems(), "operations": http_pages.table()},
        "client-programs.md": {"operators": operator_table.operators()},
        **{path: {"parameters": lines} for path, lines in mechanism_cards.cards().items()},
    }


def between(page: str, mark: str, lines: Iterator[str]) -> str:
    """A page with the lines between a mark and the end mark replaced."""
    before, rest = page.split(mark)
    _, after = rest.split(END, 1)
    return "\n".join([f"{before}{mark}", *lines, f"{END}{after}"])


if __name__ == "__main__":
    main()
