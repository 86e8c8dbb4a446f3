"""Names in paths: any characters at all, a slash too, as `%2F`.

A path is matched as it was sent, piece by piece, and the pieces are decoded then. Were it decoded before, as servers
do, nobody could tell the user `a/balance` from the balance of the user `a`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from starlette.convertors import Convertor, register_url_convertor

from .kinds import ServiceError
from .problems import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class Name(Convertor[str]):
    """One piece of a path as the name that it stands for; in a route `{user:name}`."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        try:
            return unquote_to_bytes(value).decode()
        except UnicodeDecodeError:
            raise ServiceError("malformed", "path: expected names in UTF-8, percent-encoded") from None

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("name", Name())


class Undecoded:
    """Lets routes see each path as it was sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if not _is_utf8(scope.get("query_string", b"")):
                # Otherwise all that is not would be one and the same user.
                await problem("malformed", "query: expected UTF-8, percent-encoded")(scope, receive, send)
                return
            if scope.get("raw_path"):
                # In place, as the route that is found is left in there for whoever counts requests.
                scope["path"] = scope["raw_path"].partition(b"?")[0].decode("latin-1")
        await self._app(scope, receive, send)


def _is_utf8(query: bytes) -> bool:
    try:
        unquote_to_bytes(query).decode()
    except UnicodeDecodeError:
        return False
    return True
