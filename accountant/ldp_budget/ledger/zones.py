"""Time zones of policies: the local days of a zone, by the rules that were in force when its policy was set.

A policy stores the zone's file of the IANA time zone database. So all processes of a ledger, whatever database their
machines have, agree on every window, and a verification in later years decides again by the same days. A newer
database takes effect when the policy is set again.

The local day *d* begins at the first instant at which the local calendar shows *d* or a later day. So each instant
belongs to one day, and days follow each other without gaps. A midnight that occurs twice begins the day the first
time. After a midnight that is skipped, the day begins with the first instant that follows. A day that a zone skipped
as a whole is empty.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
import zoneinfo
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._validation import shown, shown_with_type
from ..errors import InvalidParameter, NotSupported

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

UTC_ZONE = "UTC"
"""The zone of a policy that names none. Its days need no rules."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND, _SECOND, _DAY = timedelta(microseconds=1), timedelta(seconds=1), timedelta(days=1)
_EXPECTED = "an IANA time zone, such as Asia/Seoul or Europe/Berlin"
_MARK = "~"
_KEY_DIGITS = 16
_MOST_BYTES = 100_000
# Rules count as the same if they give the same days in these years.
_FIRST_DAY, _LAST_DAY = date(1970, 1, 1), date(2100, 1, 1)


@dataclass(frozen=True)
class Zone:
    """A time zone with its rules: `file` is the zone's file in the database, compressed, in Base64.

    Raises:
        ValueError: the file is not such a file.
    """

    name: str
    file: str
    key: str = field(init=False, repr=False)
    """The name with a hash of the rules. Equal keys mean equal days."""

    def __post_init__(self) -> None:
        try:
            packed = zlib.decompressobj()
            rules = packed.decompress(base64.b64decode(self.file, validate=True), _MOST_BYTES)
            if not packed.eof or _MARK in self.name or " " in self.name or not self.name:
                raise ValueError("it is too long, or has no valid name")
            self.__dict__["_info"] = zoneinfo.ZoneInfo.from_file(BytesIO(rules), key=self.name)
        except (AttributeError, TypeError, ValueError, binascii.Error, zlib.error) as error:
            raise ValueError(f"not the rules of a time zone: {shown(self.name)} ({error})") from None
        digest = hashlib.sha256(b"\0".join((self.name.encode(), rules))).hexdigest()[:_KEY_DIGITS]
        object.__setattr__(self, "key", f"{self.name}{_MARK}{digest}")
        _known.setdefault(self.key, self)

    @cached_property
    def _starts(self) -> dict[date, int]:
        return {}

    def starts(self, day: date) -> int:
        """Return the start of a local day, in microseconds since 1970."""
        found = self._starts.get(day)
        if found is None:
            if len(self._starts) >= _MOST_DAYS:
                self._starts.clear()
            found = self._starts[day] = (self._start(day) - _EPOCH) // _MICROSECOND
        return found

    def _start(self, day: date) -> datetime:
        info = self.__dict__["_info"]
        midnight = datetime(day.year, day.month, day.day, tzinfo=info)
        first, other = midnight.astimezone(UTC), midnight.replace(fold=1).astimezone(UTC)
        # `first` is the earlier of two midnights. If midnight is skipped, it is the later end of a search instead.
        if other >= first:
            return first
        before, after = 0, (first - other) // _SECOND
        while after - before > 1:
            middle = (before + after) // 2
            if (other + middle * _SECOND).astimezone(info).date() >= day:
                after = middle
            else:
                before = middle
        return other + after * _SECOND

    def day_of(self, micros: int) -> date:
        """Return the local day that contains a moment in microseconds since 1970."""
        day: date = (_EPOCH + timedelta(microseconds=micros)).astimezone(self.__dict__["_info"]).date()
        while self.starts(day + _DAY) <= micros:  # the calendar went back over a midnight, or skipped a day
            day += _DAY
        return day

    def agrees(self, other: Zone) -> bool:
        """True if another zone has the same name and the same days in this century and the one before."""
        if self.key == other.key:
            return True
        days = range((_LAST_DAY - _FIRST_DAY).days)
        of = (_FIRST_DAY + timedelta(days=number) for number in days)
        return self.name == other.name and all(self._start(day) == other._start(day) for day in of)

    def to_json(self) -> dict[str, str]:
        """Return the members by which a policy's definition names its zone."""
        return {"zone": self.name, "zone_rules": self.file}


_MOST_DAYS = 10_000
_known: dict[str, Zone] = {}
"""The zones that this process has read, by their keys. A key determines its zone."""


def day_of(zone: Zone | None, moment: datetime) -> date:
    """Return the calendar day of a moment, an aware datetime, in a zone; None means UTC."""
    if zone is None:
        return moment.astimezone(UTC).date()
    return zone.day_of((moment - _EPOCH) // _MICROSECOND)


def zone_in(definition: Mapping[str, Any]) -> Zone | None:
    """Return the zone of a policy's definition; None for UTC. Raises `ValueError`."""
    name = definition.get("zone", UTC_ZONE)
    return None if name == UTC_ZONE else Zone(name, definition.get("zone_rules", ""))


def knows(key: str) -> bool:
    """True if `zone_of` finds the zone of a key without this machine's database."""
    return key in _known


def zone_of(key: str) -> Zone:
    """Return the zone of a key. Raises `NotSupported` if neither a policy nor this machine has its rules."""
    found = _known.get(key)
    if found is None:
        name = key.partition(_MARK)[0]
        stored = _file(name)
        found = None if stored is None else Zone(name, _packed(stored))
        if found is None or found.key != key:
            raise NotSupported(
                f"the rules of the time zone {key} are unknown: no policy that was read has them, and the time zone "
                "database of this machine has others",
                hint="Nothing was charged. Use the machine on which the policy was set, or run: ldp-budget ledger verify",
            )
    return found


def zone_named(name: object) -> Zone | None:
    """Return a zone by its name, with the rules of this machine's database; None for UTC.

    Raises `InvalidParameter` for an unknown name, `NotSupported` if the machine has no database.
    """
    if not isinstance(name, str):
        raise InvalidParameter("zone", _EXPECTED, shown_with_type(name))
    if name == UTC_ZONE:
        return None
    names = zoneinfo.available_timezones()
    if not names - {UTC_ZONE}:
        raise NotSupported(
            "this machine has no time zone database", hint="Install the package tzdata: pip install tzdata"
        )
    stored = _file(name) if name in names else None
    if stored is None:
        raise InvalidParameter("zone", _EXPECTED, shown(name), hint=_similar(name, names))
    return Zone(name, _packed(stored))


def _similar(name: str, names: set[str]) -> str:
    """Return a sentence with the zones of similar spelling, by the whole name or by its last part."""
    from difflib import get_close_matches

    spelled: dict[str, str] = {}
    for each in sorted(names):
        for text in (each, each.rpartition("/")[2]):
            spelled.setdefault(text.lower(), each)
    asked = name.strip().lower().replace(" ", "_")
    texts = [asked, asked.rpartition("/")[2]]
    close = [text for text in texts if text in spelled] or [
        match for text in texts for match in get_close_matches(text, list(spelled), 3, 0.75)
    ]
    found = list(dict.fromkeys(spelled[text] for text in close))[:3]
    return f"Did you mean {' or '.join(found)}?" if found else ""


def _packed(stored: bytes) -> str:
    return base64.b64encode(zlib.compress(stored, 9)).decode("ascii")


def _file(name: str) -> bytes | None:
    """Return the file of a zone in this machine's database, or else in the package tzdata; None if there is none."""
    parts = name.split("/")
    if not all(part.replace("_", "").replace("-", "").replace("+", "").isalnum() for part in parts):
        return None
    places: list[Path | Traversable] = [Path(folder, *parts) for folder in zoneinfo.TZPATH]
    with suppress(ModuleNotFoundError):
        places.append(resources.files("tzdata.zoneinfo").joinpath(*parts))
    for place in places:
        if place.is_file():
            return place.read_bytes()
    return None
