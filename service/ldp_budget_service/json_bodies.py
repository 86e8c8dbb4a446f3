"""JSON bodies, read strictly: a repeated member is refused, and each error names its cause.

Most readers keep the last of two members with the same name. A proxy may check the first one.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import HTTPException, Request

from ldp_budget._validation import shown

_BAD_REQUEST = 400


class StrictRequest(Request):
    """Request whose JSON body has no repeated members."""

    async def json(self) -> Any:
        """Return the parsed body. Raises `HTTPException`, or `json.JSONDecodeError` if it is not JSON."""
        body = await self.body()
        try:
            return json.loads(body.decode("utf-8"), object_pairs_hook=_once)
        except json.JSONDecodeError:
            raise
        except UnicodeDecodeError as error:
            why = f"the body must be UTF-8: got another byte at position {error.start}"
        except RecursionError:
            why = "the body is nested too deeply. Send lists and objects in fewer levels."
        except ValueError as error:
            why = str(error)
        raise HTTPException(_BAD_REQUEST, why)


def check_members(text: bytes) -> None:
    """Raise `ValueError` if an object of a JSON text has a repeated member."""
    json.loads(text, object_pairs_hook=_once)


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        names = [name for name, _ in members]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the body has the member {shown(repeated)} more than once. Send it once.")
    return found
