"""Fonts for what a picture says. Matplotlib's own, DejaVu Sans, has no Chinese, Japanese or Korean characters.

Where a text has characters that it lacks, installed fonts that have them are added behind it, and matplotlib takes
each character from the first font that has it. What no font here has is drawn as a box, and told once; in an SVG,
whose texts stay texts, it is left to whoever looks at it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

USUAL = "DejaVu Sans"

# Families that are made for text, tried before the others. A family is any whose name begins so.
_PREFERRED = (
    "Noto Sans CJK",
    "Noto Sans",
    "Source Han Sans",
    "Nanum",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "Hiragino Sans",
    "Yu Gothic",
    "PingFang",
    "Microsoft YaHei",
    "WenQuanYi",
    "Arial Unicode MS",
)
# It has a picture of a box for every character there is.
_BOXES = "Last Resort"


def families_for(text: str) -> tuple[list[str], str]:
    """The families to draw a text in, the usual one first; and its characters that no installed font has."""
    missing = {each for each in text if not each.isspace()} - _characters(_usual_file())
    families = [USUAL]
    for name, path in _installed() if missing else ():
        found = missing & _characters(path)
        if found:
            families.append(name)
            missing -= found
        if not missing:
            break
    return families, "".join(sorted(missing))


def _usual_file() -> str:
    from matplotlib.font_manager import findfont

    return str(findfont(USUAL))


def _installed() -> Iterator[tuple[str, str]]:
    """The other families with a file of each, those that are made for text first."""
    from matplotlib.font_manager import fontManager

    files: dict[str, Any] = {}
    for entry in fontManager.ttflist:
        upright = entry.style == "normal" and str(entry.weight) in ("400", "normal", "regular")
        if upright and entry.name != USUAL and not entry.name.startswith(_BOXES):
            files.setdefault(entry.name, entry.fname)

    def rank(name: str) -> tuple[int, str]:
        places = [place for place, family in enumerate(_PREFERRED) if name.startswith(family)]
        return min(places, default=len(_PREFERRED)), name

    for name in sorted(files, key=rank):
        yield name, files[name]


def _characters(path: str) -> set[str]:
    """The characters that a font has; none where it cannot be read."""
    from matplotlib.font_manager import get_font

    try:
        return {chr(code) for code in get_font(path).get_charmap()}
    except (OSError, RuntimeError):
        return set()
