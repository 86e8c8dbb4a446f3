"""`QuoteOptions` and `ChargeOptions`: the keyword arguments that every call about a charge of one user takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from .errors import InvalidParameter, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DEFAULT = "default"
"""The policy of a call that names none."""


class QuoteOptions(TypedDict, total=False):
    """The options of `quote`, each of which may be left out.

    Parameters:
        reports: the number of reports, at least one; by default 1.
        label: an opaque name of yours for the memoized value that the reports repeat.
        tags: what the reports depend on or are for, such as `["attribute:health", "purpose:ads"]`: all tags that apply, or
            none. A limit with a scope counts the charges that have its tag, and those without tags.
        policy: the policy to check against; by default `default`.
    """

    reports: int
    label: str | None
    tags: Iterable[str]
    policy: str


class ChargeOptions(QuoteOptions, total=False):
    """The options of `spend` and `reserve`, each of which may be left out: those of `QuoteOptions`, and these.

    Parameters:
        key: an idempotency key, which makes a retry safe: the same key with the same request returns the stored
            response. Use one key for one randomized output. Each user has keys of their own. Another collection makes
            another request; another note does not.
        digest: hexadecimal; binds the report itself to the key, so it needs a key.
        note: one line of at most 500 characters, stored with the charge until the user is erased. A repeated request
            keeps its first note.
        strict: True raises `BudgetExceeded` instead of returning a refusal.
    """

    key: str | None
    digest: str | None
    note: str | None
    strict: bool


NAMES = tuple(ChargeOptions.__annotations__)
"""The names of the options, which no field of a mechanism may have."""
KNOWN = frozenset(NAMES)


def check_options(options: Mapping[str, object], allowed: type = ChargeOptions) -> None:
    """Raise `InvalidParameter` for an option that is not `allowed`; it names the options that resemble it."""
    names = tuple(allowed.__annotations__)
    for name in options:
        if name not in names:
            raise InvalidParameter("option", f"one of {', '.join(names)}", repr(name), hint=did_you_mean(name, names))
