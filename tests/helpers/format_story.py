"""The story of the ledgers in tests/data/formats: something of everything that a ledger keeps, the same in each engine.

`tell` tells it: it begins in a store of three partitions, is moved to a file or a server, and goes on there. It returns
what the ledger answered, as JSON. So a later version asks the same again, and needs nothing else of this module.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from contract.rotation import exchange
from contract.toy_store import ToyStore
from ldp_budget import Accountant, Collection, mechanism
from ldp_budget.accounting.batch import Spend
from ldp_budget.accounting.plans import Plan
from ldp_budget.guarantees import Copies, FinitePair, Laplace, Unbounded
from ldp_budget.ledger.keyed_hashing import new_ledger_id
from ldp_budget.reports.charged_release import release
from ldp_budget.reports.inbox import Inbox, Marks
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.approvals import Approvals
from ldp_budget_service.invitations import Invitations
from ldp_budget_surveys.publication.publisher import Publisher
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey, SurveyQuestion
from ldp_budget_surveys.rotation import Rotation, enforcing_limit
from random_mechanisms import DRAWS

BEGUN = datetime(2026, 11, 20, 9, tzinfo=UTC)
PARTIES = ("democrat", "independent", "republican")
OUE = mechanism("oue")(epsilon="0.5", domain_size=3)
RAPPOR = mechanism("rappor")(f="0.5", p="0.25", q="0.75", bits=32, hashes=2, cohorts=8, domain_size=8)
SECRET = bytes(range(32))
BULK = [f"user{number}" for number in range(20)]
COLLECTIONS = {
    "party": Collection("party", OUE, PARTIES, minimum_group=1),
    "poll": Collection("poll", OUE, PARTIES, minimum_group=1).agreed(),
    "age": Collection("age", mechanism("laplace")(epsilon=1, lower=18, upper=100)),
    "word": Collection("word", RAPPOR),
    "browser": Collection("browser", mechanism("cms")(epsilon=2, hashes=16, width=64, domain_size=8)),
    "height": Collection("height", mechanism("one-bit-mean")(epsilon=1, maximum=250)),
    "colour": Collection("colour", mechanism("random-substitution")(epsilon=1, domain_size=5)),
    "hours": Collection("hours", mechanism("d-bit-flip")(epsilon=1, buckets=12, bits=3)),
    "weight": Collection("weight", mechanism("bounded-laplace")(epsilon=1, lower=0, upper=200)),
}
VALUES: dict[str, list[float]] = {
    "party": [0, 1, 2, 2, 1] * 30,
    "poll": [0, 1, 2, 2, 1, 0] * 2,
    "age": [18.5, 40, 77, 99.75] * 20,
    "word": [0, 3, 3, 7] * 30,
    "browser": [0, 1, 7, 1] * 20,
    "height": [170, 181.5, 192, 204] * 25,
    "colour": [0, 0, 3, 4] * 30,
    "hours": [0, 5, 5, 11] * 30,
    "weight": [60.5, 70, 81, 99] * 20,
}
_QUESTIONS = (
    SurveyQuestion("mood", "How do you feel?", categories=("good", "fair", "bad")),
    SurveyQuestion("smoke", "Do you smoke?", kind="yes-no", categories=("yes", "no"), tags=("attribute:health",)),
)
PANEL = Survey("panel", _QUESTIONS, Decimal(1), "all", minimum_group=1, rounds=8, rotate=4, every="week")
MEMBERS = [f"member{number}" for number in range(12)]
PLAN = Plan([(OUE, 5), (mechanism("gaussian")(sigma=20), 2)], delta="1e-6")
POLICIES: dict[str, dict[str, Any]] = {
    "default": {"limits": ["lifetime=8,9e-7+1e-7,zcdp", "day=2"], "zone": "Asia/Seoul"},
    "plain": {"limits": ["lifetime=30,1e-4", "month=10,1e-5", "week=4,1e-6,gdp"]},
    "values": {"limits": ["lifetime=8"]},
    "studied": {"limits": ["lifetime=6,1e-6,renyi:4"]},
    "sliding": {"limits": ["lifetime=20", "28d=3", "7d=5,1e-6,zcdp"], "zone": "Europe/Berlin"},
    "scoped": {"limits": ["lifetime=9", "attribute:health:lifetime=2", "attribute:health:month=1"]},
    "planned": {"limits": [], "plan": PLAN},
    "free": {"limits": ["week=100000,0.5"], "unbounded": True},
    "panel": {"limits": ["lifetime=9", enforcing_limit(PANEL)]},
}
DECLARED: list[dict[str, Any]] = [
    {"epsilon": "0.5"},
    {"epsilon": "0.5", "delta": "1e-9"},
    {"rho": "0.125"},
    *(
        {"promise": json.dumps(promise.to_json())}
        for promise in (
            FinitePair(((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))),
            Copies(2, Laplace(Decimal("0.25"))),
            Unbounded(),
        )
    ),
]
"""Declared guarantees, so that the ledger has all kinds together with those of the built-in mechanisms."""


class Time:
    """A clock that advances by a minute on command."""

    def __init__(self) -> None:
        self.now = BEGUN

    def __call__(self) -> datetime:
        return self.now

    def later(self, **by: float) -> None:
        self.now += timedelta(**(by or {"minutes": 1}))


class Story:
    """An accountant, and what it answered: each request with its response, as JSON."""

    def __init__(self, accountant: Accountant, clock: Time) -> None:
        self.accountant, self.clock = accountant, clock
        self.requests: list[dict[str, Any]] = []
        self.receipts: dict[str, str] = {}

    def ask(self, user: str, asked: Any, *, act: str = "spend", by: str = "", name: str = "", **options: Any) -> str:
        """Ask for a charge, with the API key of secret `by`; return its receipt, which `name` keeps."""
        called = getattr(_using(self.accountant, by), act)
        receipt = called(user, asked, **options)
        chosen: dict[str, Any] = {"collection": asked.name} if isinstance(asked, Collection) else stated(asked)
        self.requests.append(
            {"act": act, "user": user, "by": by, **chosen, "options": options, "response": receipt.to_json()}
        )
        self.clock.later()
        if name:
            self.receipts[name] = receipt.receipt
        return str(receipt.receipt)

    def move_to(self, place: str) -> Accountant:
        """Move the ledger; return its accountant there."""
        moved = self.accountant.ledger.move_to(place)
        assert moved.entries
        self.accountant = Accountant(place, create=False, clock=self.clock)
        return self.accountant


def stated(made: Any) -> dict[str, Any]:
    """Return a mechanism as JSON."""
    return {"mechanism": made.name, "declared": made.declared}


def _using(accountant: Accountant, secret: str) -> Accountant:
    if not secret:
        return accountant
    key = ApiKeys(accountant).find(secret)
    assert key is not None
    return accountant.acting_for(key.caller)


def again(accountant: Accountant, request: dict[str, Any]) -> dict[str, Any]:
    """Ask for a charge of the story again; return the response."""
    chosen: Any = (
        accountant.collection(request["collection"])
        if "collection" in request
        else mechanism(request["mechanism"])(**request["declared"])
    )
    called = getattr(_using(accountant, request["by"]), request["act"])
    found: dict[str, Any] = called(request["user"], chosen, **request["options"]).to_json()
    return found


# -- the chapters --------------------------------------------------------------------------------------------


def tell(place: str, folder: Path) -> tuple[Accountant, Time, dict[str, Any]]:
    """Tell the story; return its open ledger at a place, its clock, and what it was. `folder` gets its other files."""
    clock = Time()
    store = ToyStore(3)
    store.key.set_ledger_id(new_ledger_id())
    story = Story(Accountant(store, clock=clock), clock)
    about: dict[str, Any] = {"requests": story.requests, "receipts": story.receipts}
    for chapter in (_set_up, _charged, _mechanisms, _approved):
        about |= chapter(story)
    exchange(story.accountant)
    accountant = story.move_to(place)
    clock.later(days=1)
    for later in (_after_the_move, _reported, _took_turns, _erased):
        about |= later(story)
        about["secret"] = exchange(accountant)
    about |= _published(story, folder)
    about |= _interrupted(story, folder)
    about["checkpoint"] = accountant.checkpoint()
    return accountant, clock, about


def _set_up(story: Story) -> dict[str, Any]:
    accountant = story.accountant
    for name, terms in POLICIES.items():
        accountant.set_policy(name, **terms)
        story.clock.later()
    for collection in (*COLLECTIONS.values(), survey_collection(PANEL)):
        accountant.add_collection(collection)
    shares = {"team-a": ["lifetime=3,9e-7+1e-7,zcdp"]}
    accountant.set_policy("default", POLICIES["default"]["limits"], shares=shares)
    keys, secrets = ApiKeys(accountant), {}
    for name, scopes, share in (
        ("team-a", ["spend", "read"], "team-a"),
        ("officer-1", ["policy"], None),
        ("officer-2", ["policy"], None),
        ("gone", ["admin"], None),
    ):
        _, secrets[name] = keys.create(name, scopes, share=share)
        story.clock.later()
    keys.revoke("gone")
    until = BEGUN + timedelta(days=36_500)
    [(_, token)] = Invitations(accountant).invite("party", ["grace"], until, round="1")
    return {"policies": [*POLICIES], "keys": secrets, "invitation": token}


def _charged(story: Story) -> dict[str, Any]:
    """Spends, refusals, labels, reservations and their ends, a plan, tags, a run and a batch."""
    ask, accountant, party = story.ask, story.accountant, COLLECTIONS["party"]
    secrets = {key.name: key for key in ApiKeys(accountant).all()}
    assert secrets["gone"].state(story.clock()) == "revoked"
    ask("alice", party, key="monday", digest="ab" * 8, note="at the door", name="first")
    ask("alice", OUE, reports=9, key="too much")
    ask("alice", mechanism("gaussian").calibrate(epsilon=1, delta="1e-6"), policy="plain", key="gauss")
    ask("alice", mechanism("grr")(epsilon=1, domain_size=10), policy="studied", key="grr")
    for place, label in enumerate(("yesterday", "yesterday", "today")):
        ask("erin", RAPPOR, label=label, policy="values", key=f"{place}")
    for place, tags in enumerate((["attribute:health"], ["attribute:income"], [], ["attribute:health"] * 2)):
        ask("frank", mechanism("grr")(epsilon="0.8", domain_size=4), tags=tags, policy="scoped", key=f"{place}")
    for place in range(4):
        ask("gina", OUE, reports=2, policy="sliding", key=f"{place}")
        story.clock.later(days=2)
    accountant.commit(ask("bob", OUE, act="reserve", key="one", name="committed"))
    accountant.void(ask("bob", OUE, act="reserve", reports=2, key="two", name="voided"))
    ask("bob", OUE, act="reserve", expires=30, key="three", name="expired")
    accountant.commit(story.receipts["expired"])
    ask("bob", OUE, act="reserve", expires=366 * 86400, note="open", key="four", name="open")
    ask("carol", OUE, reports=2, policy="planned", key="planned")
    ask(BULK[1], OUE, reports=4, key="last of the day")
    done = accountant.spend_many(BULK, party, key="run", note="a run")
    lines = [Spend("alice", OUE), Spend("hal", OUE, reports=99), Spend("ida", RAPPOR, label="x", policy="values")]
    batch = [result.status for result in accountant.spend_batch(lines, key="batch")]
    return {"run": {"spent": done.spent, "refused": done.refused}, "batch": batch}


def _mechanisms(story: Story) -> dict[str, Any]:
    """A charge of every built-in mechanism, and of every kind of guarantee."""
    every: list[Any] = [mechanism(name)(**draw(random.Random(1))) for name, draw in sorted(DRAWS.items())]
    every += [mechanism("declared")(**terms, source="the story") for terms in DECLARED]
    for place, made in enumerate(every):
        for policy in ("plain", "free"):
            story.ask("every", made, policy=policy, key=f"{policy}/{place}")
    return {"kinds": sorted({made.guarantee.kind for made in every})}


def _approved(story: Story) -> dict[str, Any]:
    """Four eyes: a policy that was approved, a proposal that waits, one that was withdrawn, and an override."""
    keys, accountant = {key.name: key for key in ApiKeys(story.accountant).all()}, story.accountant
    Approvals(accountant).demand()
    first, second = (Approvals(accountant).acting_for(keys[name].caller) for name in ("officer-1", "officer-2"))
    done = first.propose("values", ["lifetime=9"], reason="one more wave")
    second.approve(done.number)
    first.apply(done.number)
    waits = second.propose("studied", ["lifetime=7,1e-6,renyi:4"], reason="a longer study")
    first.withdraw(first.propose("plain", ["lifetime=40,1e-4"]).number)
    accountant.set_policy("scoped", ["lifetime=10", *POLICIES["scoped"]["limits"][1:]], override="a typing error")
    story.clock.later()
    return {"approved": done.number, "waiting": waits.number}


def _after_the_move(story: Story) -> dict[str, Any]:
    story.ask("alice", COLLECTIONS["party"], key="tuesday")
    _, secret = ApiKeys(story.accountant).create("team-b", ["spend"], share="team-a")
    story.ask("alice", COLLECTIONS["party"], key="monday", by=secret, name="shared")
    story.accountant.spend_many(BULK, COLLECTIONS["party"], key="second run")
    return {}


def _reported(story: Story) -> dict[str, Any]:
    """Reports of an inbox, sealed and waiting, with public attributes."""
    collection = story.accountant.collection("colour")
    inbox = Inbox(story.accountant, collection, policy="plain")
    sent, group = 25, collection.minimum_group
    rows = collection.mechanism.randomize([number % 5 for number in range(sent)], rng=2)
    reports = inbox.bytes_of(rows)
    for number in range(sent):
        if number == group:
            assert inbox.seal("first") == group
        assert taken(inbox, number, reports[number])
    story.clock.later()
    return {"inbox": {"reports": [report.hex() for report in reports], "waiting": len(inbox), "sealed": group}}


def taken(inbox: Inbox, number: int, report: bytes) -> Any:
    """Let the inbox take a report of the story; return its receipt."""
    marks = Marks.of(bytes([number]) * 16) if number % 2 else None
    public = {"region": "north"} if number % 3 else None
    return inbox.take(f"inbox{number}", "k", report, marks=marks, public=public)


def _took_turns(story: Story) -> dict[str, Any]:
    """Two periods of a survey that asks another quarter of its panel each week."""
    accountant, collection = story.accountant, story.accountant.collection("panel")
    rotation = Rotation.of(accountant, PANEL, accountant.policy("panel"))
    assert rotation is not None
    inbox = Inbox(accountant, collection, policy="panel")
    for _ in range(2):
        period = rotation.period_at(story.clock())
        users = [user for user in MEMBERS if rotation.asks(user, period)]
        values = np.zeros(len(users), collection.mechanism.value_type)  # type: ignore[attr-defined]
        reports = inbox.bytes_of(collection.randomize(values)) if users else []
        for user, report in zip(users, reports, strict=True):
            assert inbox.take(user, period.name, report)
        story.clock.later(days=7)
    return {"phases": {user: rotation.phase(user) for user in MEMBERS}}


def _erased(story: Story) -> dict[str, Any]:
    """A user who was charged, refused and noted, one who sent a report, and one of whom nothing was known."""
    accountant = story.accountant
    accountant.spend("dave", COLLECTIONS["party"], key="soon gone", note="a note that goes")
    accountant.spend("dave", RAPPOR, key="a label", label="home", policy="values")
    accountant.spend("dave", OUE, reports=99, key="refused")
    assert accountant.erase("dave")
    assert accountant.erase("inbox23")
    accountant.erase("stranger", unknown=True)
    story.clock.later()
    return {"erased": ["dave", "inbox23", "stranger"]}


def _published(story: Story, folder: Path) -> dict[str, Any]:
    """A published survey, with the receipt and the proof of a respondent."""
    accountant = story.accountant
    collection = accountant.collection("poll")
    users = [f"reader{number}" for number in range(len(VALUES["poll"]))]
    options: dict[str, Any] = {"policy": "plain", "receipts": folder / "receipts"}
    release(folder / "poll.reports", collection, accountant, np.array(VALUES["poll"]), users, **options)
    publisher = Publisher(accountant)
    key = publisher.new_key("log.example.org").verifier_key
    publisher.publish(collection, folder / "site", policy="plain")
    receipt = json.loads((folder / "receipts" / "reader3.json").read_bytes())
    return {"log": key, "receipt": receipt, "proof": publisher.prove("poll", receipt)}


class PowerCut(BaseException):
    """Nothing catches it."""


def _interrupted(story: Story, folder: Path) -> dict[str, Any]:
    """A run that was cut off when all of it was charged and nothing released: `OUT.partial`."""

    def cut(users: int) -> None:
        raise PowerCut

    try:
        hours_of(story.accountant, folder / "hours.out", on_batch=cut)
    except PowerCut:
        assert (folder / "hours.out.partial").exists()
    return {"interrupted": len(VALUES["hours"])}


def hours_of(accountant: Accountant, out: Path, **options: Any) -> Any:
    """The run that was cut off."""
    collection = accountant.collection("hours")
    values = collection.read_values([str(value) for value in VALUES["hours"]])
    users = [f"hours{number}" for number in range(len(values))]
    return release(out, collection, accountant, values, users, policy="plain", **options)


# -- what it was ---------------------------------------------------------------------------------------------

BALANCES: Callable[[], list[tuple[str, str]]] = lambda: [  # noqa: E731
    (user, policy)
    for user in ("alice", "bob", "carol", "erin", "frank", "gina", "every", "inbox3", "dave", BULK[1], MEMBERS[0])
    for policy in POLICIES
]


def facts(accountant: Accountant) -> dict[str, Any]:
    """Return what a ledger shows: its head, balances, histories, policies and counts."""
    checked = accountant.verify()
    assert checked.ok, checked.problems
    stats = accountant.stats()
    found = {
        "head": checked.head,
        "entries": checked.entries,
        "counts": {
            name: stats[name] for name in ("users", "erased", "keys", "collections", "policies", "entries_by_kind")
        },
        "balances": [row_of(accountant.balance(user, policy)) for user, policy in BALANCES()],
        "histories": {user: accountant.history(user) for user in ("alice", "bob", "every")},
        "versions": {policy.name: policy.to_json() for policy in accountant.policies()},
        "records": [record.to_json() for record in accountant.records()],
        "open": accountant.open_reservations(),
    }
    plain: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return plain


def row_of(balance: Any) -> dict[str, Any]:
    """Return a balance without its odometer, whose bound may become tighter with any release."""
    kept = ("user", "policy", "limits", "erased", "quotas")
    return {name: value for name, value in balance.to_json().items() if name in kept}
