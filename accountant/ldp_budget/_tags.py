"""Tags: what the law of a report depends on, such as `attribute:health`, or what it is for, such as `purpose:ads`.

A charge has no tags, or all that apply to it. A limit with a scope counts the charges that have its tag, and those
without tags, of which nothing is known. The ledger stores the tags of a charge behind the name of its collection: a
name has no colon, and every tag has one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ._validation import check_many, shown
from .errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterable

_PART = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_TAG = re.compile(f"{_PART}:{_PART}")
_FORM = "KIND:NAME, such as attribute:health, of letters, digits and . _ -, each part 1 to 64 of them"
MOST_TAGS = 64
"""The largest number of tags of a charge."""


def is_tag(text: str) -> bool:
    """True if a text is a tag."""
    return _TAG.fullmatch(text) is not None


def check_tags(tags: Iterable[str] | None, option: str = "tags") -> tuple[str, ...]:
    """Return tags in order, each once; none for None. Raises `InvalidParameter`."""
    if tags is None or tags == ():
        return ()
    many = (
        sorted(tags)
        if isinstance(tags, set | frozenset)
        else check_many(option, tags, f"a list of tags, each {_FORM}")
    )
    for tag in many:
        if not isinstance(tag, str) or not is_tag(tag):
            raise InvalidParameter(option, f"tags, each {_FORM}", shown(tag))
    found = tuple(sorted({*many}))
    if len(found) > MOST_TAGS:
        raise InvalidParameter(option, f"at most {MOST_TAGS} tags", str(len(found)))
    return found


def with_tags(collection: str, tags: Iterable[str]) -> str:
    """Return the text under which a ledger stores the name of a collection (empty: none) with tags."""
    return " ".join([collection, *tags])


def without_tags(stored: str) -> tuple[str, tuple[str, ...]]:
    """Return the name of the collection and the tags in a text of `with_tags`."""
    colon = stored.find(":")
    if colon < 0:
        return stored, ()
    end = stored.rfind(" ", 0, colon)
    return stored[: max(end, 0)], tuple(stored[end + 1 :].split(" "))
