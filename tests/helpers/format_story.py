"""Write the files of a release into a folder of tests/data/formats: `python tests/helpers/format_story.py NAME`.

A folder is written once, by the code of its time, and kept: `formats/test_formats.py` opens all of them with today's.
What older code did not know is left out, so that the same story was used for the files of the first and the second
version of the tables.
"""

from __future__ import annotations

import gzip
import inspect
import json
import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import ldp_budget
from ldp_budget import Accountant, Collection, mechanism
from ldp_budget.accounting.plans import Plan
from ldp_budget.ledger.sqlite import schema
from ldp_budget.registry import certification
from ldp_budget.reports.charged_release import release
from ldp_budget.reports.report_file import ReportWriter
from ldp_budget.sampling import SeededStream
from ldp_budget_cli.app import cli

try:
    from ldp_budget.reports.inbox import Inbox
    from ldp_budget.sdk.interpreter import StreamDraws, read, run
except ModuleNotFoundError:  # before there were clients in other languages
    HAS_PROGRAMS = False
else:
    HAS_PROGRAMS = True

HERE = Path(__file__).parents[1] / "data" / "formats"
BEGUN = datetime(2026, 11, 20, 9, tzinfo=UTC)
PARTIES = ("democrat", "independent", "republican")
OUE = mechanism("oue")(epsilon="0.5", domain_size=3)
RAPPOR = mechanism("rappor")(f="0.5", p="0.25", q="0.75", bits=32, hashes=2, cohorts=8, domain_size=8)
SECRET = bytes(range(32))
BULK = [f"user{number}" for number in range(20)]
COIN = '''"""A mechanism of somebody else, to which the certificate beside it belongs."""

import ldp_budget
from ldp_budget.guarantees import Pure
from ldp_budget.sdk.parameters import real


class Coin(ldp_budget.Mechanism):
    name = "coin"
    epsilon = real("privacy loss of one report", above=0)
    guarantee = property(lambda self: Pure(self.epsilon))
'''

COLLECTIONS = {
    "party": Collection("party", OUE, PARTIES),
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
    "age": [18.5, 40, 77, 99.75] * 20,
    "word": [0, 3, 3, 7] * 30,
    "browser": [0, 1, 7, 1] * 20,
    "height": [170, 181.5, 192, 204] * 25,
    "colour": [0, 0, 3, 4] * 30,
    "hours": [0, 5, 5, 11] * 30,
    "weight": [60.5, 70, 81, 99] * 20,
}
POLICIES: dict[str, dict[str, Any]] = {
    "default": {"limits": ["lifetime=8,9e-7+1e-7,zcdp", "day=2"]},
    "plain": {"limits": ["lifetime=30,1e-4", "month=10,1e-5", "week=4,1e-6,gdp"]},
    "values": {"limits": ["lifetime=8"]},
    "studied": {"limits": ["lifetime=6,1e-6,renyi:4"]},
}
BALANCES = (
    *((user, "default") for user in ("alice", "bob", "carol", "dave", "nobody", BULK[1])),
    *(("alice", "plain"), ("inbox3", "plain"), ("alice", "studied"), ("erin", "values"), ("carol", "planned")),
)


class Time:
    """A clock that advances by a minute on command."""

    def __init__(self) -> None:
        self.now = BEGUN

    def __call__(self) -> datetime:
        return self.now

    def later(self, **by: float) -> None:
        self.now += timedelta(**(by or {"minutes": 1}))


def main(name: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        target = HERE / name
        target.mkdir(exist_ok=True)
        os.chdir(scratch)  # a ledger is called as it was opened, and no path of a machine is kept
        os.environ.update(LDP_BUDGET_LEDGER="ledger.db", LDP_BUDGET_CERTIFICATES="certificates.json")
        about = told(target)
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in about.items())
        (target / "about.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def told(target: Path) -> dict[str, Any]:
    """The story; what came of it."""
    clock = Time()
    with Accountant("ledger.db", clock=clock) as accountant:
        about = ledger(accountant, clock)
        about |= kept(accountant, target)
        about |= taken(accountant, target)
        about |= interrupted(accountant, target)
        about["checkpoint"] = accountant.checkpoint()
        checked = accountant.verify()
        assert checked.ok, checked.problems
        about |= {"head": checked.head, "entries": checked.entries, "tables": schema.SCHEMA_VERSION}
        about["balances"] = [row_of(accountant.balance(user, policy)) for user, policy in BALANCES]
        about["history"] = accountant.history("alice")
        rows = "".join(f"{json.dumps(row, default=str)}\n" for row in accountant.journal())
        (target / "journal.ndjson").write_text(rows, encoding="utf-8")
        about["policies"] = {name: accountant.policy(name).to_json() for name in about["policies"]}
    about |= {"library": ldp_budget.__version__, "now": clock.now.isoformat()}
    about["key"] = Path("ledger.db.key").read_bytes().hex()
    with open(target / "ledger.db.gz", "wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
        packed.write(Path("ledger.db").read_bytes())
    return json.loads(json.dumps(about, default=str)) | definitions(target) | certificate(target)


def row_of(balance: Any) -> dict[str, Any]:
    """A balance without its odometer, whose bound may become tighter with any release."""
    kept = ("user", "policy", "limits", "erased", "quotas")
    return {name: value for name, value in balance.to_json().items() if name in kept}


def ledger(accountant: Accountant, clock: Time) -> dict[str, Any]:
    """Policies, collections, spends, reservations, a run, labels, a plan, an erasure; records and shares."""
    knows_notes = not {"note", "options"}.isdisjoint(inspect.signature(Accountant.spend).parameters)
    note = {"note": "at the door"} if knows_notes else {}
    party: Any = COLLECTIONS["party"] if knows_notes else OUE
    for name, policy in POLICIES.items():
        accountant.set_policy(name, policy["limits"])
    accountant.set_policy("planned", [], plan=Plan([(OUE, 5), (mechanism("gaussian")(sigma=20), 2)], delta="1e-6"))
    for collection in COLLECTIONS.values():
        accountant.add_collection(collection)
    about: dict[str, Any] = {"policies": [*POLICIES, "planned"], "noted": knows_notes, "receipts": {}}
    receipts: dict[str, Any] = about["receipts"]

    def step(name: str, receipt: Any) -> None:
        receipts[name] = {"status": receipt.status, "receipt": receipt.receipt, "user": receipt.user}
        clock.later()

    step("first", accountant.spend("alice", party, key="monday", digest="ab" * 8, **note))
    step("refused", accountant.spend("alice", OUE, reports=9, key="too much"))
    noise = mechanism("gaussian").calibrate(epsilon=1, delta="1e-6")
    step("plain", accountant.spend("alice", noise, policy="plain", key="gauss"))
    step("studied", accountant.spend("alice", mechanism("grr")(epsilon=1, domain_size=10), policy="studied"))
    for label in ("yesterday", "yesterday", "today"):
        step(f"value {label}", accountant.spend("erin", RAPPOR, label=label, policy="values"))
    step("committed", accountant.reserve("bob", OUE, key="one"))
    step("", accountant.commit(receipts["committed"]["receipt"]))
    step("voided", accountant.reserve("bob", OUE, reports=2))
    step("", accountant.void(receipts["voided"]["receipt"]))
    step("expired", accountant.reserve("bob", OUE, expires=30))
    step("", accountant.commit(receipts["expired"]["receipt"]))
    step("open", accountant.reserve("bob", OUE, expires=30 * 86400, **note))
    step("planned", accountant.spend("carol", OUE, reports=2, policy="planned"))
    step("last of the day", accountant.spend(BULK[1], OUE, reports=4))
    done = accountant.spend_many(BULK, party, key="run", **note)
    about["run"] = {"spent": done.spent, "refused": done.refused}
    clock.later()
    step("to be erased", accountant.spend("dave", party, key="soon gone", **note))
    assert accountant.erase("dave")
    clock.later(days=1)
    step("next day", accountant.spend("alice", party, key="tuesday"))
    if hasattr(Accountant, "record"):
        about |= administered(accountant, clock)
    receipts.pop("")
    return about


def administered(accountant: Accountant, clock: Time) -> dict[str, Any]:
    """Shares of limits, keys of a service, and what was charged by one of them."""
    from ldp_budget_service.api_keys import ApiKeys
    from ldp_budget_service.invitations import Invitations

    accountant.set_policy("default", POLICIES["default"]["limits"], shares={"team-a": ["lifetime=3,9e-7+1e-7,zcdp"]})
    keys = ApiKeys(accountant)
    key, secret = keys.create("team-a", ["spend", "read"], share="team-a")
    keys.create("gone", ["admin"])
    keys.revoke("gone")
    clock.later()
    receipt = accountant.acting_for(key.caller).spend("alice", COLLECTIONS["party"], key="monday")
    clock.later()
    until = BEGUN + timedelta(days=365)
    [(_, token)] = Invitations(accountant).invite("party", ["grace"], until, round="1")
    return {"api_key": secret, "invitation": token, "shared": {"receipt": receipt.receipt, "status": receipt.status}}


def kept(accountant: Accountant, target: Path) -> dict[str, Any]:
    """Report files, and what they are estimated to say."""
    estimates = {}
    for name, collection in COLLECTIONS.items():
        made = collection.mechanism
        reports = made.randomize(VALUES[name], rng=1, secrets=[SECRET] * len(VALUES[name]))
        with ReportWriter(target / f"{name}.reports", collection) as writer:
            writer.write(reports[:50])
            writer.write(reports[50:])
        estimates[name] = command("estimate", name, str(target / f"{name}.reports"))
    return {"estimates": estimates}


def taken(accountant: Accountant, target: Path) -> dict[str, Any]:
    """An inbox with reports that were sealed and reports that wait."""
    if not HAS_PROGRAMS:
        return {}
    collection = accountant.collection("colour")
    inbox = Inbox(accountant, collection, policy="plain")
    dtype = collection.mechanism.client_program().report["dtype"]
    sent, group = 25, collection.minimum_group
    rows = collection.mechanism.randomize([number % 5 for number in range(sent)], rng=2).astype(dtype)
    reports = [row.tobytes() for row in rows]
    for number in range(group):
        assert inbox.take(f"inbox{number}", "k", reports[number])
    assert inbox.seal("first") == inbox.write("first", target / "sealed.reports") == group
    for number in range(group, sent):
        assert inbox.take(f"inbox{number}", "k", reports[number])
    return {"inbox": {"reports": [report.hex() for report in reports], "waiting": len(inbox), "sealed": group}}


class PowerCut(BaseException):
    """Nothing catches it."""


def interrupted(accountant: Accountant, target: Path) -> dict[str, Any]:
    """A run that was cut off when all of it was charged and nothing released: `OUT.partial`."""
    if not HAS_PROGRAMS:
        return {}

    def cut(users: int) -> None:
        raise PowerCut

    try:
        hours_of(accountant, Path("hours.out"), on_batch=cut)
    except PowerCut:
        (target / "hours.out.partial").write_bytes(Path("hours.out.partial").read_bytes())
    return {"interrupted": len(VALUES["hours"])}


def hours_of(accountant: Accountant, out: Path, **options: Any) -> Any:
    """The run that was cut off."""
    collection = COLLECTIONS["hours"]
    values = collection.read_values([str(value) for value in VALUES["hours"]])
    users = [f"hours{number}" for number in range(len(values))]
    return release(out, collection, accountant, values, users, policy="plain", **options)


def definitions(target: Path) -> dict[str, Any]:
    """Return the output of `collection show`, and reports that a client draws from given bytes."""
    drawn: dict[str, list[Any]] = {}
    for name, collection in COLLECTIONS.items():
        (target / f"{name}.json").write_text(json.dumps(command("collection", "show", name)), encoding="utf-8")
        if not HAS_PROGRAMS:
            continue
        public = command("collection", "show", name, "--client")
        (target / f"{name}.client.json").write_text(json.dumps(public), encoding="utf-8")
        program, context = collection.mechanism.client_program(), collection.mechanism.fingerprint
        drawn[name] = [
            [
                answer,
                seed,
                run(program, read(program, answer), StreamDraws(SeededStream(seed), SECRET, context)).hex(),
            ]
            for seed, answer in enumerate(VALUES[name][:4])
        ]
    return {"drawn": drawn}


def certificate(target: Path) -> dict[str, Any]:
    """A certificate for a plugin of one module."""
    (target / "coin.py").write_text(COIN, encoding="utf-8")
    sys.path.insert(0, str(target))
    sys.dont_write_bytecode = True
    import coin

    found = {"mechanism": "coin", "checked": "audited", "sources": certification.source_digest(coin.Coin)}
    certification.record({"distribution": "ldp-budget-coin", "version": "1.2", "mechanisms": [found]})
    (target / "certificates.json").write_bytes(Path("certificates.json").read_bytes())
    return {}


def command(*arguments: str) -> Any:
    """Return the output of a command with `--json`."""
    result = CliRunner().invoke(cli, [*arguments, "--json"], prog_name="ldp-budget", catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
