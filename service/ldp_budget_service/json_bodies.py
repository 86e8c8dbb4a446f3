"""JSON bodies, read strictly: a repeated member is refused, and each error names its cause."""

from __future__ import annotations

import json
from typing import Any

from fastapi import HTTPException, Request
from fastapi.concurrency import run_in_threadpool

from ldp_budget._files import RepeatedMemberError, strict_json
from ldp_budget._validation import shown

_BAD_REQUEST = 400
SMALL_BYTES = 1 << 14
"""A larger body is parsed in a thread, so that the event loop serves other requests meanwhile."""


class StrictRequest(Request):
    """Request whose JSON body has no repeated members."""

    async def json(self) -> Any:
        """Return the parsed body. Raises `HTTPException`, or `json.JSONDecodeError` if it is not JSON."""
        body = await self.body()
        return parsed(body) if len(body) <= SMALL_BYTES else await run_in_threadpool(parsed, body)


def parsed(body: bytes) -> Any:
    """Return a parsed body. Raises the same errors."""
    try:
        return strict_json(body.decode("utf-8"))
    except json.JSONDecodeError:
        raise
    except RepeatedMemberError as error:
        why = f"the body has the member {shown(error.name)} more than once. Send it once."
    except UnicodeDecodeError as error:
        why = f"the body must be UTF-8: got another byte at position {error.start}"
    except RecursionError:
        why = "the body is nested too deeply. Send lists and objects in fewer levels."
    except ValueError as error:
        why = str(error)
    raise HTTPException(_BAD_REQUEST, why)
