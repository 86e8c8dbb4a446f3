"""What a ledger's address says: where its server is, and what of it is ours to read."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from ...errors import InvalidParameter

MOST_PARTITIONS = 4096
DEFAULT_PARTITIONS = 64
HA = ("none", "quorum")

_EXPECTED = "postgresql://[USER@]HOST[:PORT]/DATABASE, with libpq's options, and partitions, ha or connections"

# Hosts, each a name, an address in figures or a folder of sockets (escaped), and its port.
_HOST = r"(?:\[[0-9A-Fa-f:.%]*\]|[^\[\]:,]*)(?::\d*)?"
_HOSTS = re.compile(f"{_HOST}(?:,{_HOST})*")
_PRINTED = re.compile(r"(?:[!-$&-~]|[^\x00-\xa0\ud800-\udfff]|%[0-9A-Fa-f]{2})*")


class Address(NamedTuple):
    """An address, taken apart. `partitions` counts only when the ledger is made; `ha` is what was declared of standbys."""

    connect: str
    """What libpq gets."""
    name: str
    """What messages say: no user, no password, no options."""
    partitions: int
    ha: str | None
    connections: int


def read(text: str) -> Address:
    """Take an address apart. Raises `InvalidParameter`."""
    scheme, _, rest = text.partition("://")
    place, _, query = rest.partition("?")
    host, _, database = place.partition("/")
    # The message shows none of the address: in a malformed one a password may stand anywhere.
    if not _PRINTED.fullmatch(text) or not _HOSTS.fullmatch(host.rpartition("@")[2]):
        expected = f"{_EXPECTED}; each character that is none of an address as % and two hexadecimal digits"
        raise InvalidParameter("ledger", expected, "an address that cannot be read")
    # Messages name what stands behind the @, so there may be no doubt about where a password ends.
    if "#" in rest or rest.count("@") != host.count("@") or rest.count("@") > 1:
        expected = f"{_EXPECTED}; each / ? # @ of a user or password as % and two hexadecimal digits"
        raise InvalidParameter("ledger", expected, "one of them as it is")
    if any("=" not in option for option in filter(None, query.split("&"))):
        raise InvalidParameter("ledger", f"{_EXPECTED}, each as NAME=VALUE", "an option without a value")
    ours = {"partitions": str(DEFAULT_PARTITIONS), "ha": "", "connections": "16"}
    theirs = []
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if name in ours:
            ours[name] = unquote(value)
        else:
            theirs.append(option)  # libpq's + is a plus, so it stays as it is
    if ours["ha"] not in ("", *HA):
        raise InvalidParameter("ledger", f"ha out of {', '.join(HA)}", ours["ha"])
    return Address(
        f"{scheme}://{place}{'?' * bool(theirs)}{'&'.join(theirs)}",
        f"postgresql://{host.rpartition('@')[2]}/{database}",
        _count("partitions", ours["partitions"], MOST_PARTITIONS),
        ours["ha"] or None,
        _count("connections", ours["connections"], 1000),
    )


def _count(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise InvalidParameter("ledger", f"{name} from 1 to {most} in {_EXPECTED}", repr(text))
    return int(text)
