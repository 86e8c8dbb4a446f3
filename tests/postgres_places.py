"""Where the tests keep ledgers on a real server, each in a database of its own, see `ledger_contract.Place`."""

from __future__ import annotations

import pytest

from ldp_budget import Accountant
from ledger_places import Now
from postgres_servers import reason_for_none, shared_server


def new_ledger(lanes: int, **more: str) -> str:
    """The address of a database in which no ledger is yet; skips where there is no server."""
    server = shared_server()
    if server is None:
        pytest.skip(reason_for_none())
    query = "&".join([f"lanes={lanes}", *(f"{name}={value}" for name, value in more.items())])
    url = server.create_database()
    return f"{url}{'&' if '?' in url else '?'}{query}"


class OnServer:
    """A ledger of some lanes."""

    def __init__(self, lanes: int) -> None:
        self.address = new_ledger(lanes)

    def open(self, clock: Now) -> Accountant:
        return Accountant(self.address, clock=clock)

    def reopen(self, accountant: Accountant, clock: Now) -> Accountant:
        accountant.close()
        return Accountant(self.address, create=False, clock=clock)
