"""Texts of reports and statements by language, with numbers and dates in the form of that language.

`texts/report.LANGUAGE.json` holds the texts: one file for each language, with the same keys and placeholders. A text that
counts something has a second form for one, with the key `KEY.one`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ldp_budget.errors import InvalidParameter

from . import summary_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

LANGUAGES = ("en", "ko", "de")
"""The languages of reports. The first one is the default."""
_COMMA = str.maketrans(",.", ".,")


@dataclass(frozen=True)
class Texts:
    """The texts of one language by key, and numbers and dates as this language writes them."""

    language: str
    said: Mapping[str, str]

    def __call__(self, key: str, /, **values: object) -> str:
        """Return the text of a key with its placeholders filled in."""
        return self.said[key].format(**values)

    def count(self, key: str, number: float) -> str:
        """Return the text of a key that says how many: in its form for one, or for any other number `n`."""
        one = self.said.get(f"{key}.one") if round(number) == 1 else None
        return (one or self.said[key]).format(n=self.whole(number))

    def figure(self, text: str) -> str:
        """Return a number with a decimal point and commas between thousands in the form of the language."""
        return text.translate(_COMMA) if self.said["number.decimal"] == "," else text

    def whole(self, number: float) -> str:
        return self.figure(summary_blocks.whole(number))

    def percent(self, share: float, toward: str = "") -> str:
        return self.figure(summary_blocks.percent(share, toward))

    def points(self, share: float) -> str:
        """Return a share in percentage points, without a unit."""
        return self.percent(share).removesuffix(" %")

    def number(self, value: float) -> str:
        return self.figure(summary_blocks.number(value))

    def decimals(self, value: float, places: int) -> str:
        return self.figure(f"{value:,.{places}f}")

    def margin(self, value: float) -> str:
        """Return a margin in the unit of an answer, with two digits or all in front of the point."""
        return self.decimals(value, margin_places(value))

    def p_value(self, value: float) -> str:
        return self.figure(summary_blocks.p_value(value))

    def loss(self, epsilon: float | Decimal | None) -> str:
        shown = summary_blocks.loss(epsilon)
        return self("unbounded") if shown == "unbounded" else self.figure(shown)

    def certainty(self, epsilon: float) -> str:
        shown = summary_blocks.certainty(epsilon)
        return self.figure(shown) if shown[0].isdigit() else self("almost_sure")

    def date(self, day: date | str) -> str:
        """Return a day, such as an ISO date, in words."""
        day = date.fromisoformat(day[:10]) if isinstance(day, str) else day
        return self("date", day=day.day, month=self(f"month.{day.month}"), year=day.year)

    def moment(self, at: datetime) -> str:
        """Return a time in UTC to the minute."""
        return self("moment", date=self.date(at), time=f"{at:%H:%M}")


def margin_places(value: float) -> int:
    """Return the number of decimals with which a margin has two digits."""
    return max(0, 1 - math.floor(math.log10(value))) if 0 < value < math.inf else 0


@cache
def texts(language: str) -> Texts:
    """Return the texts of a language.

    Raises:
        InvalidParameter: there are none in this language.
    """
    if language not in LANGUAGES:
        raise InvalidParameter("language", f"one of {', '.join(LANGUAGES)}", language)
    path = Path(__file__).with_name("texts") / f"report.{language}.json"
    return Texts(language, json.loads(path.read_bytes()))
