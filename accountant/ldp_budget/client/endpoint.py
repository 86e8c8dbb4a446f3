"""Where a service is, and with which key: looked at before anything is sent."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from .._checks import check_switch, shown
from ..errors import InvalidParameter

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_PRINTED = re.compile(r"[\x21-\x7e]*")
_KEY = re.compile(r"[\x21-\x7e]{1,500}")

_EXPECTED = "the address of a service, such as https://budget.example.org, without a name, a password or a query"


class Address(NamedTuple):
    """The address of a service as it is used, and whether what is sent there is encrypted."""

    url: str
    encrypted: bool


def checked(url: object, plain_http: bool) -> Address:
    """The address, if nothing in it can be read in two ways. Raises `InvalidParameter`.

    Without encryption it must lie on this machine, or `plain_http` be said: whoever listens has the key.
    """
    check_switch("plain_http", plain_http)
    if not isinstance(url, str):
        raise InvalidParameter("url", _EXPECTED, shown(url))
    if not _PRINTED.fullmatch(url):
        raise InvalidParameter("url", _EXPECTED, "characters that no address has")  # some would be left out silently
    try:
        parts = urlsplit(url)
        host, port = parts.netloc.rpartition("@")[2], parts.port
    except ValueError:
        raise InvalidParameter("url", _EXPECTED, "what is no address") from None
    host = host if port is None else host[: -len(f":{port}")]
    if parts.scheme not in ("https", "http"):
        raise InvalidParameter("url", _EXPECTED, f"{parts.scheme or 'no scheme'}://…")
    path = parts.path.rstrip("/")
    if "@" in parts.netloc or parts.query or parts.fragment or not _HOST.fullmatch(host) or not _PATH.fullmatch(path):
        raise InvalidParameter("url", _EXPECTED, f"{parts.scheme}://…")  # what follows may be a password
    if parts.scheme == "http" and not plain_http and not _is_loopback(host):
        expected = "https://, as without it anybody on the way reads the key; or `plain_http`, said aloud"
        raise InvalidParameter("url", expected, f"http://{host}")
    return Address(f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{path}", parts.scheme == "https")


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def checked_key(key: object) -> str:
    """An API key, if it can stand in a header. Raises `InvalidParameter`, which does not show it."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        found = "a text that is none" if isinstance(key, str) else f"a {type(key).__name__}"
        raise InvalidParameter("key", "an API key, as `ldp-budget api-key create` printed it", found)
    return key
