"""A service with surveys, invitations and a browser, for the tests of the respondents' pages."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ldp_budget import Accountant, Collection, Limit, mechanism
from ldp_budget.registry.public_definition import About
from ldp_budget_service.invitations import Invitations

WAYS = ("walk", "bike", "bus", "car")
COMMUTE = About(
    title="Getting to work",
    question="How did you come to work today?",
    purpose="To plan parking, showers and the shuttle.",
    contact="mobility desk",
    languages={
        "ko": {
            "title": "출근길",
            "question": "오늘 어떻게 출근하셨나요?",
            "answers": ["걸어서", "자전거", "버스", "차"],
        },
        "de": {"question": "Wie sind Sie heute zur Arbeit gekommen?", "answers": ["zu Fuß", "Rad", "Bus", "Auto"]},
    },
)


def collections() -> list[Collection]:
    """One survey for each kind of answer and of promise."""
    return [
        Collection("commute", mechanism("oue")(epsilon="1", domain_size=4), WAYS, COMMUTE, minimum_group=1),
        Collection(
            "start page",
            mechanism("d-bit-flip")(epsilon="0.5", buckets=4, bits=4, memoize=True),
            WAYS,
            minimum_group=1,
        ),
        Collection(
            "height",
            mechanism("laplace")(epsilon="0.5", lower=140, upper=210),
            None,
            About("Height"),
            minimum_group=1,
        ),
        Collection(
            "weight",
            mechanism("gaussian").calibrate(epsilon=1, delta="1e-6", lower=40, upper=140),
            None,
            minimum_group=1,
        ),
        Collection(
            "words", mechanism("cms")(epsilon="1", hashes=4, width=16), None, About("A word"), minimum_group=1
        ),
        Collection(
            "many",
            mechanism("oue")(epsilon="1", domain_size=30),
            tuple(f"choice {i}" for i in range(30)),
            minimum_group=1,
        ),
    ]


def ledger(place: Path | str = ":memory:", **options: Any) -> Accountant:
    """A ledger of these surveys, in which each user has ε = 4 in all and 2 a day, and for δ a little."""
    return with_surveys(Accountant(place, **options))


def with_surveys(accountant: Accountant) -> Accountant:
    """Add the surveys and their policy to an empty ledger."""
    accountant.set_policy(
        "default", [Limit("lifetime", epsilon="4", delta="1e-5"), Limit("day", epsilon="2", delta="1e-5")]
    )
    for collection in collections():
        accountant.add_collection(collection)
    return accountant


def tokens(accountant: Accountant, users: list[str], collection: str = "commute", **more: Any) -> list[str]:
    """Invitations of users that are good for a day."""
    found = Invitations(accountant).invite(collection, users, accountant.now() + timedelta(days=1), **more)
    return [token for _, token in found]


@dataclass
class Site:
    """A service that runs."""

    accountant: Accountant
    origin: str
    log_key: str = ""
    """The end of a link that names the key of the publications."""

    def link(
        self, user: str, collection: str = "commute", *, agreed: bool = True, lang: str = "", **more: Any
    ) -> str:
        """The link that a user is sent."""
        [token] = tokens(self.accountant, [user], collection, **more)
        digest = self.accountant.collection(collection).client if agreed else None
        query = f"?lang={lang}" if lang else ""
        return f"{self.page(collection)}{query}#{token}" + (f"~{digest[:32]}{self.log_key}" if digest else "")

    def page(self, collection: str = "commute") -> str:
        return f"{self.origin}/s/{collection.replace(' ', '%20')}"

    def taken(self, collection: str = "commute") -> list[bytes]:
        """Return the stored reports, by sealing the inbox."""
        from ldp_budget.reports.inbox import Inbox

        inbox, name = Inbox(self.accountant, self.accountant.collection(collection)), str(time.monotonic_ns())
        if not len(inbox):
            return []
        inbox.seal(name)
        return [row.tobytes() for block in inbox.round(name) for row in block]

    def charged(self, user: str) -> int:
        """Return the number of charges of a user."""
        return len(self.accountant.history(user))


@contextlib.contextmanager
def running(accountant: Accountant, **settings: Any) -> Iterator[Site]:
    """The service of a ledger, by uvicorn on a port of its own."""
    import uvicorn

    from ldp_budget_service import Settings, create_app

    app = create_app(accountant, Settings(**settings))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(512)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the service did not start"
                time.sleep(0.01)
            yield Site(accountant, f"http://127.0.0.1:{listener.getsockname()[1]}")
        finally:
            server.should_exit = True
            thread.join()


def now() -> datetime:
    return datetime.now(UTC)
