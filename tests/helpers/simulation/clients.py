"""Clients of a simulated ledger: their operations, and the promises of the ledger to them.

If an operation fails, its client does not know the outcome. The simulator looks at the disk, tells the model, and the
client repeats the request: then the answer must fit what the disk had.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from ldp_budget import KeyConflict, LedgerError
from ldp_budget.accounting.batch import Spend
from ldp_budget.accounting.charge_request import Principal, key_hash
from ldp_budget.accounting.receipts import name_in
from ldp_budget.errors import ClockError, ReservationConflict, TooFewReports
from ldp_budget.guarantees import Guarantee, Memoised, Pure
from ldp_budget.ledger.models import CHARGED, BatchRunRecord
from ldp_budget.registry.collections import Collection
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.parameters import integer

from .model import BAD_CLOCK, CONFLICT, CURVE, DAY, UNIT, Answer, Charge, Request, Terms
from .store import Crash
from .world import HEALTHY, USERS, Process, World

RETRY = "a repeated key returns the first response, and nothing is charged again"
LOST = "an acknowledged charge is never lost and never counted twice"
LIMIT = "no user exceeds a limit in any window, and a request that fits is granted"
KEY = "another request under a used key is a conflict"
TIME = "a clock that is not plausible is refused before anything is written"
NOTHING = "an error that does not say `unknown` has charged nothing"
ENDS = "a reservation ends once, and only a timely void returns its charge"
BATCH = "a batch is charged once, however often it is repeated"
ERASED = "an erased user stays erased"
REPORTS = "a report is stored exactly once if and only if its charge is"
VERIFIED = "after any fault the ledger verifies, and contains everything before its earlier heads"

SHARES = ("a", "b")
PROMISES = Pure("0.1"), Pure("0.7"), Memoised([str(point / UNIT) for point in CURVE[1:-1]], str(CURVE[-1] / UNIT))


class Promised(Mechanism):
    """A mechanism that is nothing but a guarantee."""

    name = "promised"
    of = integer("tells them apart", default=0)

    @property
    def guarantee(self) -> Guarantee:
        return PROMISES[self.of]


MECHANISMS = {name: Promised(of=number) for number, name in enumerate(("tenth", "large", "memoized"))}
POLL = Collection("poll", MECHANISMS["tenth"], minimum_group=1)


class Clients(World):
    """A world with clients. A method that takes only a process is an operation."""

    def __init__(self, seed: int, write: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, write)
        self.keyed: list[Request] = []
        self.reservations: dict[str, Charge] = {}
        self.finished: set[str] = set()
        """The keys of batches whose clients have all results."""
        self.heads: list[str] = []
        self.names = 0

    def prepare(self) -> None:
        """Start the processes, make an API key for each sub-limit, and set the policies."""
        count = self.random.choice((2, 3))
        for number in range(count):
            self.start(number)
        for number, share in enumerate(SHARES):
            body = {"scopes": ["spend"], "policies": None, "collections": None, "share": share, "hash": "0" * 64}
            body |= dict.fromkeys(("starts", "expires", "until"))
            made = self.processes[0].accountant._record_own("key", f"key-of-{share}", body, expected=number)
            self.principals[share] = Principal(made.number, made.name, share)
            self.model.newest[0] = self.processes[0].clock()
        for number in range(count):
            self.start(number)
        for policy in ("default", "other"):
            self.set_policy(self.processes[0], policy)
        self.processes[0].accountant.add_collection(POLL)

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}-{self.names}"

    # -- requests -----------------------------------------------------------------------------------------------

    def draw(self, share: str | None) -> Request:
        """Draw a request for a user who is not busy: a new one, or one under a key that was used before."""
        random = self.random
        used = [each for each in self.keyed[-40:] if each.share == share and each.user not in self.busy]
        if used and random.random() < 0.25:
            again = random.choice(used)
            other = again._replace(policy="other" if again.policy == "default" else "default")
            return again if random.random() < 0.8 else other
        user = random.choice([user for user in USERS if user not in self.busy])
        mechanism = random.choice(("tenth", "tenth", "large", "large", "memoized")[: 4 if share else 5])
        of: dict[str, Any] = {"mechanism": mechanism, "policy": random.choice(("default", "default", "other"))}
        kind = "key" if random.random() < 0.6 else "note"
        of |= {kind: self.name(kind), "reports": random.choice((1, 1, 2))}
        if mechanism == "memoized":
            of["label"] = random.choice(("home", "work"))
        elif random.random() < 0.25:
            of["lasts"] = random.choice((1, 3600, 5 * DAY))
        elif (mechanism, share, kind) == ("tenth", None, "key") and random.random() < 0.4:
            of |= {"report": random.randbytes(8), "reports": 1}
        return Request(user, share=share, **of)

    def charge_one(self, process: Process) -> None:
        """One request, alone in its transaction."""
        self.ask_one(process, self.draw(self.random.choice((None, None, *SHARES))), "asks for")

    def ask_one(self, process: Process, request: Request, verb: str, *, safe: bool = False) -> None:
        accountant, of = process.through[request.share], _arguments(request)

        def ask() -> list[Any]:
            if request.report is not None:
                few = {name: of[name] for name in ("key", "label", "policy")}
                return [accountant.reports.take(request.user, POLL, request.report, **few)]
            return [accountant.spend(**of) if request.lasts is None else accountant.reserve(**of)]

        self.charge(process, [request], ask, verb, safe=safe)

    def charge_together(self, process: Process) -> None:
        """Requests of several clients that share a transaction, as tasks of an event loop."""
        requests = [self.draw(self.random.choice((None, None, *SHARES))) for _ in range(self.random.randint(2, 6))]
        requests = [request for request in requests if request.report is None]

        async def ask(request: Request) -> Any:
            accountant, of = process.through[request.share], _arguments(request)
            try:
                return await (
                    accountant.spend_async(**of) if request.lasts is None else accountant.reserve_async(**of)
                )
            except (Exception, Crash) as error:
                return error

        async def together() -> list[Any]:
            process.queue.is_gathering = True
            tasks = [asyncio.ensure_future(ask(request)) for request in requests]
            await asyncio.sleep(0)  # each of them submits its request
            process.queue.is_gathering = False
            process.queue.serve()
            return await asyncio.gather(*tasks)

        self.charge(process, requests, lambda: self.loop.run_until_complete(together()), "asks together for")

    def charge_each(self, process: Process) -> None:
        """Requests of one client in one call, each with a key of its own, or none (`spend_each`)."""
        share = self.random.choice((None, *SHARES))
        requests = [self.draw(share) for _ in range(self.random.randint(2, 8))]
        requests = [request for request in requests if request.lasts is None and request.report is None]
        lines = [Spend(**_arguments(request)) for request in requests]
        self.charge(process, requests, partial(process.through[share].spend_each, lines), "asks in one call for")

    def charge(
        self, process: Process, requests: list[Request], ask: Callable[[], Any], verb: str, *, safe: bool = False
    ) -> None:
        """Run requests, and judge each outcome in the order in which they were submitted."""
        self.steps += len(requests)
        outcomes = self.attempt(process, "", ask, {request.user for request in requests}, safe=safe)
        outcomes = outcomes if isinstance(outcomes, list) else [outcomes] * len(requests)
        for request, outcome in zip(requests, outcomes, strict=True):
            self.report(process, f"{verb} {_text(request)}", outcome)
            self.keyed += [request] if request.key is not None else []
            if self.has_failed(outcome):
                self.settle(process, request, outcome)
            else:
                self.judge(process, request, outcome)
        self.restart_dead()
        for request, outcome in zip(requests, outcomes, strict=True):
            if self.has_failed(outcome) and request.key is not None and not self.depth and self.random.random() < 0.7:
                self.ask_one(self.random.choice(self.processes), request, "repeats", safe=True)

    def judge(self, process: Process, request: Request, outcome: Any) -> None:
        """Compare the answer to a request with the model's."""
        expected = self.model.ask(request, process.now)
        found = {KeyConflict: CONFLICT, ClockError: BAD_CLOCK}.get(type(outcome))
        if found is None:
            self.expect(not isinstance(outcome, Exception), HEALTHY, repr(outcome), expected)
            spent = tuple(sorted((state.limit.label, state.spent_units.epsilon) for state in outcome.limits))
            found = Answer(outcome.status, spent, outcome.repeated)
            if found.repeated and "unheard" in process.connection.happened:  # the queue itself has asked again
                found = found._replace(repeated=expected.repeated)
            if found.status == expected.status == "reserved":
                known = self.model.answers.get(request.owner) if request.key is not None else None
                charge = self.model.charges[request.user][-1] if known is None else known[2]
                self.reservations[outcome.receipt] = charge
        promise = LOST if found.status == expected.status else LIMIT
        promise = RETRY if found.repeated or expected.repeated else promise
        promise = KEY if CONFLICT in (found, expected) else TIME if BAD_CLOCK in (found, expected) else promise
        self.expect(found == expected, promise, found, expected)

    def settle(self, process: Process, request: Request, failure: BaseException) -> None:
        """Tell the model what became of a request without an answer: each leaves its key on the disk, or its note."""
        rows = self.disk.rows[self.place[request.user]]
        if request.key is None:
            is_durable = any(note.note == request.note for note in rows._notes.values())
        else:
            scope = "" if request.share is None else self.principals[request.share].name
            hashes = self.hashes[request.user], key_hash(self.disk.key, request.key, scope)
            is_durable = hashes in rows._idempotency_records
        if is_durable:
            is_known = request.key is not None and request.owner in self.model.answers
            is_unknown = not isinstance(failure, LedgerError) or failure.unknown
            self.expect(is_known or is_unknown, NOTHING, repr(failure), "unknown=True")
            self.model.ask(request, process.now)

    # -- batches under one key ----------------------------------------------------------------------------------

    def charge_batch(self, process: Process) -> None:
        """A batch under one key (`spend_batch`, `spend_many`), or one of the last batches again."""
        if self.is_clock_bad(process):
            return
        batches = self.model.batches
        key = self.random.choice([self.name("batch"), self.name("many"), *[*batches][-2:]])
        is_many = key.startswith("many")
        if key not in batches:
            batches[key] = self.draw_batch(is_many)
        lines = batches[key]
        spends, users = [Spend(**_arguments(line)) for line in lines], [line.user for line in lines]
        many = partial(process.accountant.spend_many, mechanism=spends[0].mechanism, policy=spends[0].policy, key=key)
        call = partial(many, users) if is_many else partial(process.accountant.spend_batch, spends, key=key)
        if key in self.finished and self.random.random() < 0.2:
            other = (
                partial(many, users[1:]) if is_many else partial(process.accountant.spend_batch, spends[1:], key=key)
            )
            found = self.attempt(process, f"charges {key} without its first line", other, safe=True)
            self.expect(isinstance(found, KeyConflict), KEY, found, "a conflict")
        before = self.count(BatchRunRecord, CHARGED)
        found = self.attempt(process, f"charges {key} of {len(lines)} lines", call)
        after = self.count(BatchRunRecord, CHARGED)
        if self.has_failed(found):
            for partition in before:
                self.expect(after[partition] - before[partition] in (0, 1), BATCH, (before, after))
                if after[partition] > before[partition]:
                    self.model.charge_part(key, partition, process.now)
            return
        self.expect(not isinstance(found, Exception), BATCH, repr(found))
        self.finished.add(key)
        answers = {place: self.model.charge_part(key, place, process.now) for place in {self.place[u] for u in users}}
        expected = [answers[self.place[user]].pop(0) for user in users]
        if is_many:
            granted = Counter(each.repeated for each in expected if each.status == "spent")
            refused = [user for user, each in zip(users, expected, strict=True) if each.status == "refused"]
            found = found.spent, found.repeated, sorted(found.refused_users)
            self.expect(found == (granted[False], granted[True], sorted(refused)), BATCH, found, expected)
        else:
            statuses = [(each.status, each.repeated) for each in found]
            self.expect(statuses == [(each.status, each.repeated) for each in expected], BATCH, statuses, expected)

    def draw_batch(self, is_many: bool) -> tuple[Request, ...]:
        """Draw lines: many alike, which set-based statements charge; and for `spend_batch` also others."""
        mechanism, policy = self.random.choice(("tenth", "large")), self.random.choice(("default", "other"))
        alike = [Request(user, mechanism, policy=policy) for user in self.random.sample(USERS, 20)]
        others = [self.draw(None)._replace(key=None, note=None, lasts=None, report=None) for _ in range(6)]
        return tuple(alike + alike[:3] if is_many else self.random.choice((others, alike + others)))

    def count(self, kind: type[Any], value: str) -> dict[int, int]:
        """Return the number of rows of a kind, by partition."""
        return {n: sum(row.kind == value for row in rows._of(kind).values()) for n, rows in self.disk.rows.items()}

    def is_clock_bad(self, process: Process) -> bool:
        """True if a partition refuses the clock of a process."""
        return any(self.model.at(partition, process.now) is None for partition in self.disk.rows)

    # -- reservations, policies, users, reports -----------------------------------------------------------------

    def end_reservation(self, process: Process) -> None:
        """Commit or void a reservation, or do so again."""
        if not self.reservations:
            return
        receipt = self.random.choice([*self.reservations][-20:])
        charge, how = self.reservations[receipt], self.random.choice(("commit", "void", "void"))
        user = charge.request.user
        outcome = self.attempt(process, f"{how}s {user}", partial(getattr(process.accountant, how), receipt), [user])
        if not self.has_failed(outcome):
            found = {ClockError: BAD_CLOCK, ReservationConflict: CONFLICT}.get(type(outcome))
            found = found or Answer(outcome.status, repeated=outcome.repeated)
            expected = self.model.end(charge, how, process.now)
            self.expect(found == expected, ENDS, found, expected)
        elif charge.state == "reserved":
            name = name_in(receipt)
            if name is not None and self.disk.rows[name.partition].resolution(name.entry) is not None:
                self.model.end(charge, how, process.now)

    def set_policy(self, process: Process, first: str = "") -> None:
        """Set another version of a policy, with or without sub-limits. New periods are filled from the journal."""
        if self.is_clock_bad(process):
            return
        random, tenth = self.random, UNIT // 10
        name, lifetime = first or random.choice(("default", "other")), random.choice((60, 120, 400)) * tenth
        periods = [period for period in ("day", "week") if not first and random.random() < 0.5]
        limits = {period: random.choice((14, 25)) * tenth for period in periods}
        shares = {"a": {"lifetime": lifetime // 4}, "b": dict.fromkeys(limits, 8 * tenth)}
        shares["b"]["lifetime"] = lifetime // 2
        terms = Terms({"lifetime": lifetime, **limits}, shares if random.random() < 0.8 else {})
        asked, parts = _limits(terms.limits), {share: _limits(each) for share, each in terms.shares.items()}
        before = len(self.disk.rows[0]._policies)
        call = partial(process.accountant.set_policy, name, asked, shares=parts)
        outcome = self.attempt(process, f"sets {name}: {terms}", call, USERS if first else [], safe=bool(first))
        is_set = len(self.disk.rows[0]._policies) > before
        self.expect(self.has_failed(outcome) or is_set, LOST, repr(outcome), terms)
        if is_set:
            self.model.set_policy(name, terms, process.now)

    def erase(self, process: Process) -> None:
        """Erase a user."""
        user, model = self.random.choice(USERS[:6]), self.model
        was_known = bool(model.charges[user]) or any(first.user == user for first, *_ in model.answers.values())
        found = self.attempt(process, f"erases {user}", partial(process.accountant.erase, user, unknown=True), [user])
        self.expect(self.has_failed(found) or found is was_known, ERASED, found, was_known)
        if self.hashes[user] in self.disk.rows[self.place[user]]._tombstones and user not in model.erased:
            model.erase(user, process.now)

    def seal(self, process: Process) -> None:
        """Seal the waiting reports as a round, and read the round."""
        name, reports = self.name("round"), process.accountant.reports
        found = self.attempt(process, f"seals {name}", partial(reports.seal, "poll", name))
        waiting = sorted(report for _, report in self.model.waiting)
        if isinstance(found, TooFewReports) or not self.has_failed(found):
            count = 0 if isinstance(found, TooFewReports) else found
            self.expect(count == len(waiting), REPORTS, found, waiting)
        if name in self.disk.rows[0].rounds("poll"):
            self.model.waiting = []
            self.restart_dead()
            stored = b"".join(
                part.content for part in self.processes[process.number].accountant.reports.round("poll", name)
            )
            content = sorted(stored[place : place + 8] for place in range(0, len(stored), 8))
            self.expect(content == waiting, REPORTS, content, waiting)

    # -- time, faults and checks --------------------------------------------------------------------------------

    def wait(self, process: Process) -> None:
        """Time passes."""
        self.elapsed += self.random.choice((1, 60, 3600, DAY // 4, DAY, 3 * DAY))
        self.tell(f"{self.elapsed / DAY:.2f} days have passed")

    def jump(self, process: Process) -> None:
        """The clock of a process drifts or jumps. Some start again with the wrong clock."""
        process.offset += self.random.choice((-2 * DAY, -600, -3, 3, 600, 7200, 2 * DAY, 40 * DAY))
        self.tell(f"the clock of process {process.number} is at {process.offset:+} s")
        if self.random.random() < 0.5:
            self.restart(process)

    def repair_clock(self, process: Process) -> None:
        """An operator sets all clocks, starts the processes again, and repairs the time of the ledger."""
        for each in self.processes:
            each.connection.die()
            self.start(each.number)
        process = self.processes[process.number]
        before = {partition: len([*rows.repairs()]) for partition, rows in self.disk.rows.items()}
        needed = [partition for partition in before if self.model.at(partition, process.now) is None]
        found = self.attempt(process, "repairs the clock", process.accountant.repair_clock)
        repaired = [
            partition for partition, rows in self.disk.rows.items() if len([*rows.repairs()]) > before[partition]
        ]
        self.expect(self.has_failed(found) or repaired == needed, TIME, repaired, needed)
        for partition in repaired:
            self.model.repair_clock(partition, process.clock())

    def restart(self, process: Process) -> None:
        """A process closes the ledger, and starts again."""
        process.accountant.close()
        process.connection.die()
        self.restart_dead()

    def lose_power(self, process: Process) -> None:
        """The power fails: all processes end, and the disk reads its log."""
        self.tell("the power fails")
        self.disk.lose_power()

    def read_balances(self, process: Process) -> None:
        """Compare the balances of all users with the model."""
        policy = self.random.choice(("default", "other"))
        if self.is_clock_bad(process):
            return
        balances = process.accountant.balances(USERS, policy)
        for balance in self.attempt(process, f"reads balances under {policy}", partial(list, balances), safe=True):
            at = self.model.at(self.place[balance.user], process.now)
            self.expect(balance.erased == (balance.user in self.model.erased), ERASED, balance)
            for state in balance.limits:
                share = getattr(state.limit, "share", None)
                expected = self.model.spent(balance.user, state.limit.period, at or 0, share)
                self.expect(state.spent_units.epsilon == expected, LOST, balance, expected)

    def verify(self, process: Process) -> None:
        """Verify the ledger while others write, and note its head."""
        head = self.random.choice([None, *self.heads[-5:]])
        found = self.attempt(process, "verifies", partial(process.accountant.verify, head), [], safe=True)
        self.expect(self.has_failed(found) or found.ok, VERIFIED, found)
        if not process.connection.is_dead:
            head = self.attempt(process, "takes a checkpoint", process.accountant.checkpoint)
            self.heads += [head] if isinstance(head, str) else []


def _arguments(request: Request) -> dict[str, Any]:
    """Return the arguments of a request for `Accountant.spend`, `Accountant.reserve` and `Spend`."""
    of = {name: getattr(request, name) for name in ("user", "reports", "label", "note", "policy", "key")}
    lasts = {} if request.lasts is None else {"expires": request.lasts}
    return {**of, **lasts, "mechanism": MECHANISMS[request.mechanism]}


def _limits(limits: dict[str, int]) -> list[str]:
    return [f"{period}={most / UNIT:.2f}" for period, most in limits.items()]


def _text(request: Request) -> str:
    given = {name: value for name, value in request._asdict().items() if value is not None}
    return ", ".join(
        f"{value}" if name in ("user", "mechanism") else f"{name}={value}" for name, value in given.items()
    )
