"""Tags: what the law of a report depends on, such as `attribute:health`, or what it is for, such as `purpose:ads`.

A charge has no tags, or all that apply to it. A limit with a scope counts the charges that have its tag, and those
without tags, of which nothing is known. One report may say less about one tag than in all: a survey has questions of
many tags. Then each tag has a guarantee of its own, and that of `ANY` is about every scope that is not named.

The ledger stores this behind the name of the collection: a name has no colon, and a tag has one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from ._validation import check_many, shown
from .errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

T = TypeVar("T")
_PART = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_TAG = re.compile(f"{_PART}:{_PART}")
_FORM = "KIND:NAME, such as attribute:health, of letters, digits and . _ -, each part 1 to 64 of them"
ANY = "*"
"""Stands for all scopes that no tag names."""
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


def counts_in(scope: str, tags: Collection[str]) -> bool:
    """True if a limit of a scope (empty: of all charges) counts a charge with these tags."""
    return not scope or not tags or scope in tags or ANY in tags


def part_of(scope: str, tags: Collection[str], parts: Mapping[str, T]) -> T | None:
    """Return the guarantee of a report about a scope that counts it; None for that of the whole report.

    `parts` has the guarantees of tags, or of `ANY`, that are other ones than that of the whole.
    """
    return parts.get(scope if scope in tags else ANY) if scope and parts else None


def with_tags(collection: str, tags: Mapping[str, str]) -> str:
    """Return the text under which a ledger stores the name of a collection (empty: none) and its tags.

    `tags` has the guarantee of each tag in JSON, empty for that of the whole report; `ANY` has one.
    """
    parts = [f"{tag}={said}".removesuffix("=").replace(" ", "\\u0020") for tag, said in sorted(tags.items())]
    return " ".join([collection, *parts])


def without_tags(stored: str) -> tuple[str, dict[str, str]]:
    """Return the name of the collection and the tags in a text of `with_tags`."""
    colon = stored.find(":")
    if colon < 0:
        return stored, {}
    end = stored.rfind(" ", 0, colon)
    parts = [part.partition("=") for part in stored[end + 1 :].split(" ")]
    return stored[: max(end, 0)], {tag: said for tag, _, said in parts}
