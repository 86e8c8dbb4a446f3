"""Writes the generated pages of docs/reference: `python docs/reference/generate.py`.

With `--out FOLDER` it writes them there. `tests/docs/test_reference.py` compares the committed pages with new ones.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# Before the registry is read: the pages list what every installation has.
os.environ["LDP_BUDGET_NO_PLUGINS"] = "1"

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from reference_pages import command_pages, error_page, http_pages, python_pages  # noqa: E402

NOTE = "<!-- made by docs/reference/generate.py; do not edit -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE, metavar="FOLDER")
    out = parser.parse_args().out
    for name, lines in (*python_pages.pages(), *command_pages.pages(), *http_pages.pages(), ("errors.md", error_page.page())):
        page = out / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("\n".join([NOTE, "", *lines]).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
