"""Rows of a table that are no people: repeated and second headers, footers, totals, and blank or damaged users.

Such a row must never be charged: it would be a user that does not exist, or a second budget of one who does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ldp_budget._lookalikes import is_shapeless
from ldp_budget._number_parsing import value_of
from ldp_budget._validation import canonical_text

NO_USER = "the user is missing"
NOT_EXACT = (
    "the user has spaces or invisible characters at an end, or is not in Unicode normal form NFC (--exact-users)"
)
FRACTION = "the user is a whole number with a point, as programs write a column of numbers that has gaps"
ROUNDED = "the user is a rounded number, as spreadsheets show long numbers"
NO_PERSON = "the row is no person"
IMPORT_ID = '{"ImportId"'
"""The beginning of a cell in the third header row of a Qualtrics file."""

_ODD = re.compile(
    r"""
    (?P<none>  nan|NaN|null|NULL|None|<NA>|<null>|NaT|N/A|n/a|\#N/A|undefined|\(blank\)|\(null\)|\.|-+|–|—|\?+
              |\#(?:REF|VALUE|NAME|NULL|NUM|DIV/0)[!?]?)$
    |(?P<fraction> [+-]?[0-9]+\.0*)$
    |(?P<rounded> [0-9](?:[.,][0-9]+)?E\+[0-9]+)$
    |(?P<header> \{"ImportId")
    |(?P<total> (?:(?:grand|sub|sum)[ -]?)?totals?|gesamt(?:summe|zahl)?|summe|zwischensumme|suma|somme|totale
              |합계|총계|소계|총합|合计|总计|合計|総計)[ ]?:?$
    |(?P<footer>
        (?:data[ ])?(?:exported|generated|downloaded|printed|extracted|retrieved|produced)[ ]+(?:on|at|by|from|with)\b
        |(?:exportiert|erstellt|erzeugt|heruntergeladen|gedruckt)[ ]+(?:am|von|mit)\b
        |(?:exporté|généré|imprimé)e?s?[ ]+(?:le|par|avec|à)\b
        |(?:exportado|generado|gerado|impreso)s?[ ]+(?:el|em|por|a)\b
        |(?:내보낸|생성|출력|다운로드)[ ]?(?:한[ ]?)?(?:날짜|일시|일자|시간|일)
        |(?:source|quelle|fuente|출처|자료)[ ]?[:：]
        |(?:end[ ]of[ ](?:file|report|data|table|list))$
        |page[ ][0-9]+[ ](?:of|/)[ ]?[0-9]+
        |\(?[0-9,.]+[ ](?:rows?|records?|responses?|respondents?|entries)(?:[ ](?:affected|total|exported|returned))?\)?$
        |(?:©|\(c\)[ ]|copyright[ ])
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CASE = re.compile("nan|NaN|null|NULL|None|NONE|N/A|n/a|NaT|undefined|<.*|#.*|[(].*|[^A-Za-z]+")
"""The spellings of a missing value that are no surname, such as Null or Nan."""


def why_no_user(text: str, exact: bool) -> str:
    """Return the reason why a cell is no user; empty if it is one."""
    user = canonical_text(text)
    if not user or (not user.isascii() and all(is_shapeless(each) or each.isspace() for each in user)):
        return NO_USER
    if exact and user != text:
        return NOT_EXACT
    found = _ODD.match(user)
    if found is None:
        return ""
    if found["none"]:
        return f"{NO_USER}: {user!r}" if _CASE.fullmatch(user) else ""
    if found["fraction"]:
        return f"{FRACTION}: {user!r}, which may be the user {_whole(user)!r}"
    if found["rounded"]:
        return f"{ROUNDED}: {user!r}. Format the column as text, and export the file again"
    return f"{NO_PERSON}: {user!r}"


def is_total(text: str) -> bool:
    """True if a cell is the word for a total, as it begins a row of totals."""
    found = _ODD.match(canonical_text(text))
    return found is not None and found["total"] is not None


def _whole(user: str) -> str:
    return str(int(value_of(user) or 0))


def kind_of_no_user(reason: str) -> str:
    """Return such a reason without the user."""
    kinds = (NO_USER, FRACTION, ROUNDED, NO_PERSON)
    return next((kind for kind in kinds if reason.startswith(f"{kind}: ")), reason)


def any_odd(users: Iterable[str]) -> bool:
    """True if one of these texts, in the form in which they are compared, may be no user."""
    match = _ODD.match
    return any(
        not user or match(user) is not None or (not user.isascii() and is_shapeless(user[0])) for user in users
    )


class Footers:
    """Finds the rows of a table that hold a sentence in the place of the user and nothing else.

    Parameters:
        columns: the header of the table.
        place: the position of the users.
    """

    def __init__(self, columns: Sequence[str], place: int) -> None:
        self._columns = [canonical_text(each) for each in columns]
        self._place = place
        self._seen = 0
        self._spaced = 0

    def why(self, cells: Sequence[str]) -> str:
        """Return the reason why a row is no person; empty if it may be one."""
        user = canonical_text(cells[self._place])
        again = len(cells) > 1 and user == self._columns[self._place]
        if again and [canonical_text(each) for each in cells] == self._columns:
            return f"{NO_PERSON}: the header again, {user!r}"
        alone = len(cells) > 2 and not any(each.strip() for at, each in enumerate(cells) if at != self._place)
        if alone and self._seen and not self._spaced and len(user.split()) > 1:
            return f"{NO_PERSON}: {user!r} and no other cell"
        self._seen += 1
        self._spaced += " " in user
        return ""
