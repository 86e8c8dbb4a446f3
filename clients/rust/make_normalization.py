"""Makes `src/normalization_tables.rs`, the data of Unicode's normal form NFC, from the Unicode of this Python.

python clients/rust/make_normalization.py
"""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

FILE = Path(__file__).parent / "src" / "normalization_tables.rs"
HANGUL = range(0xAC00, 0xAC00 + 11172)


def rows() -> tuple[list[str], list[str]]:
    """The canonical decompositions, and the runs of characters of one combining class."""
    pairs, classes = [], []
    last = (0, 0, 0)
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        found = unicodedata.decomposition(character)
        if found and not found.startswith("<") and code not in HANGUL:
            first, second = [*(int(each, 16) for each in found.split()), 0][:2]
            # A singleton, and what is excluded from composition, is decomposed alone.
            composes = unicodedata.normalize("NFC", chr(first) + chr(second)) == character if second else False
            pairs.append(f"({code:#x}, {first:#x}, {second:#x}, {'true' if composes else 'false'}),")
        combining = unicodedata.combining(character)
        if combining:
            if last[1] == code - 1 and last[2] == combining:
                classes.pop()
                last = (last[0], code, combining)
            else:
                last = (code, code, combining)
            classes.append(f"({last[0]:#x}, {last[1]:#x}, {combining}),")
    return pairs, classes


def main() -> None:
    """Write the file."""
    pairs, classes = rows()
    lines = [
        "//! The data of NFC. Made by make_normalization.py; do not edit.",
        "",
        "/// The version of Unicode.",
        f'pub const UNICODE: &str = "{unicodedata.unidata_version}";',
        "",
        "/// A character, the one or two that it is decomposed into, and true if these compose it again.",
        f"pub static PAIRS: [(u32, u32, u32, bool); {len(pairs)}] = [",
        *(f"    {row}" for row in pairs),
        "];",
        "",
        "/// The first and the last character of a run with one combining class.",
        f"pub static CLASSES: [(u32, u32, u8); {len(classes)}] = [",
        *(f"    {row}" for row in classes),
        "];",
    ]
    FILE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
