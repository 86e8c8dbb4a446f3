"""Shares: parts of a policy's limits, each counted by itself for whoever charges by a key that is bound to it.

A share limits what one user is charged through its callers, by the rule of the limit that it is a part of. It is a
further limit, and takes nothing from the ledger's own account of the user: a caller with a share must fit both. The
shares of a limit together never exceed it, amount by amount in whole units.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._checks import check_instance, check_many, shown
from ..errors import InvalidParameter
from ..guarantees.amounts import DOWN
from ..ledger.windows import MOST_SHARES, gauge_named
from .limits import Limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_NAME_EXPECTED = "1 to 64 letters, digits and . _ @ - of ASCII, a letter or a digit first"
_EXPECTED = "a mapping of names to limits, each a `Limit` or a text such as lifetime=1, or None"


@dataclass(frozen=True, init=False)
class ShareLimit(Limit):
    """A share's part of a limit: counted by its own gauge, which bears the number of the share."""

    share: str
    number: int

    def __init__(self, limit: Limit, share: str, number: int) -> None:
        for name in ("period", "epsilon", "delta", "rule", "aside"):
            object.__setattr__(self, name, getattr(limit, name))
        object.__setattr__(self, "share", share)
        object.__setattr__(self, "number", number)
        self.__dict__["capacity"] = limit.capacity
        self.__dict__["gauge"] = gauge_named(self.period, self.measure, number)

    @property
    def label(self) -> str:
        """How answers name it: its period and its share."""
        return f"{self.period} ({self.share})"

    def to_json(self) -> dict[str, Any]:
        """A JSON object of everything, as of any limit, with its share.

        Raises:
            Nothing.
        """
        return {**super().to_json(), "gauge": self.gauge, "share": self.share, "number": self.number}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ShareLimit:
        """A limit read back from what `to_json` made.

        Parameters:
            data: the JSON object.

        Raises:
            ValueError: it is anything else.
        """
        try:
            return cls(Limit.from_json(data), data["share"], data["number"])
        except LookupError as error:
            raise ValueError(f"not a limit of a share: {shown(data)} ({error})") from None

    def __str__(self) -> str:
        return f"{self.share}:{super().__str__()}"

    def __repr__(self) -> str:
        return f"<ShareLimit {self}>"


@dataclass(frozen=True)
class Share:
    """A named share of a policy's limits, with the number by which the ledger knows its name; 0 before it does."""

    name: str
    number: int
    limits: tuple[ShareLimit, ...]

    @classmethod
    def of(cls, name: str, limits: Iterable[Limit], number: int = 0) -> Share:
        """A share of these limits.

        Parameters:
            name: of the share.
            limits: what it admits.
            number: by which the ledger knows the name.

        Raises:
            InvalidParameter: it is no name.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidParameter("share", _NAME_EXPECTED, shown(name))
        return cls(name, number, tuple(ShareLimit(limit, name, number) for limit in limits))

    def numbered(self, number: int) -> Share:
        """The same share under a number.

        Parameters:
            number: by which the ledger knows its name.

        Raises:
            Nothing.
        """
        return Share.of(self.name, self.limits, number)

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal share.

        Raises:
            Nothing.
        """
        return {
            "name": self.name,
            "number": self.number,
            "limits": [limit.to_json() for limit in self.limits],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Share:
        """A share read back from what `to_json` made.

        Parameters:
            data: the JSON object.

        Raises:
            ValueError: it is anything else.
        """
        return cls(data["name"], data["number"], tuple(ShareLimit.from_json(limit) for limit in data["limits"]))


def as_shares(given: Mapping[str, Sequence[Limit | str]], limits: Sequence[Limit]) -> tuple[Share, ...]:
    """Shares given as objects or texts, by name, of these limits; the ledger has still to number them.

    A text that says no rule takes that of the limit of its period; δ too, where the rule converts by it. Raises
    `InvalidParameter`.
    """
    check_instance("shares", given, dict, _EXPECTED)
    shares = []
    for name, parts in given.items():
        many = check_many("shares", parts, _EXPECTED)
        shares.append(Share.of(name, [_part(each, limits) for each in many]))
    return tuple(sorted(shares, key=lambda share: share.name))


def _part(given: Limit | str, limits: Sequence[Limit]) -> Limit:
    if isinstance(given, Limit):
        return given
    period, equals, amounts = given.partition("=") if isinstance(given, str) else ("", "", "")
    parts = [part.strip() for part in amounts.split(",")]
    if not equals or not all(parts):
        raise InvalidParameter("share", "PERIOD=EPSILON[,DELTA[,RULE]]", shown(given))
    of_period = [limit for limit in limits if limit.period == period.strip()]
    if len(parts) < 3 and len(of_period) == 1 and of_period[0].rule != "basic":
        whole = of_period[0]
        delta = parts[1] if len(parts) > 1 else str(DOWN.subtract(whole.delta, whole.aside))
        return Limit.parse(f"{period}={parts[0]},{delta},{whole.rule}")
    return Limit.parse(given)


def check_shares(shares: Sequence[Share], limits: Sequence[Limit]) -> None:
    """Raise `InvalidParameter` unless each is of one of the limits, and those of one do not exceed it together."""
    names = [share.name for share in shares]
    for share in shares:
        if not share.limits or names.count(share.name) > 1:
            raise InvalidParameter("share", "each share once, with at least one limit", share.name)
        for part in share.limits:
            if sum((other.period, other.rule) == (part.period, part.rule) for other in share.limits) > 1:
                raise InvalidParameter("share", "each period at most once for each rule", str(part))
            if not any((limit.period, limit.rule) == (part.period, part.rule) for limit in limits):
                there = ", ".join(f"{limit.period} ({limit.rule})" for limit in limits) or "none"
                raise InvalidParameter("share", f"a share of one of the policy's limits: {there}", str(part))
    for limit in limits:
        parts = [part for share in shares for part in share.limits if _is_of(part, limit)]
        for place, most in enumerate(limit.capacity):
            asked = sum(part.capacity[place] or 0 for part in parts)
            if most is not None and asked > most:
                found = f"{', '.join(map(str, parts))}, which together exceed it in {limit.names[place]}"
                raise InvalidParameter("share", f"shares of {limit} that together do not exceed it", found)


def _is_of(part: ShareLimit, limit: Limit) -> bool:
    return (part.period, part.rule) == (limit.period, limit.rule)


def numbered(shares: Iterable[Share], known: Mapping[str, int]) -> tuple[Share, ...]:
    """The shares under the numbers by which the ledger knows their names; new names get the next ones.

    Raises `InvalidParameter` where it has had too many names.
    """
    numbers = dict(known)
    result = []
    for share in shares:
        number = numbers.setdefault(share.name, max(numbers.values(), default=0) + 1)
        if number > MOST_SHARES:
            raise InvalidParameter("share", f"at most {MOST_SHARES} names of shares in one ledger", share.name)
        result.append(share.numbered(number))
    return tuple(result)
