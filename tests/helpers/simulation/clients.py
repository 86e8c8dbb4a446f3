"""What the clients of a simulated ledger do. Each operation is compared with the reference model.

An operation that fails leaves its outcome in doubt. The simulator looks at the disk to learn if it took effect, and
tells the model. The client does not know: it repeats the request, and the answer must fit.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ldp_budget import KeyConflict, LedgerError
from ldp_budget.accounting.batch import Spend
from ldp_budget.accounting.charge_request import Principal
from ldp_budget.accounting.receipts import name_in
from ldp_budget.errors import ClockError, ReservationConflict, TooFewReports
from ldp_budget.guarantees import Guarantee, Memoised, Pure
from ldp_budget.ledger.models import CHARGED, CLOCK, BatchRunRecord
from ldp_budget.registry.collections import Collection
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.parameters import integer

from .model import BAD_CLOCK, CONFLICT, CURVE, DAY, UNIT, Answer, Charge, Request, Terms
from .store import Crash
from .world import SHARES, USERS, Process, World

RETRY = "a repeated key returns the first response, and nothing is charged again"
LOST = "an acknowledged charge is never lost and never counted twice"
LIMIT = "no user exceeds a limit in any window, and a request that fits is granted"
KEY = "another request under a used key is a conflict"
TIME = "a clock that is not plausible is refused before anything is written"
HEALTHY = "the ledger fails only if something else has failed"
NOTHING = "an error that does not say `unknown` has charged nothing"
ENDS = "a reservation ends once, and only a timely void returns its charge"
BATCH = "a batch is charged once, however often it is repeated"
ERASED = "an erased user stays erased"
REPORTS = "a report is stored exactly once if and only if its charge is"
VERIFIED = "after any fault the ledger verifies, and contains all that its earlier heads name"


class Promised(Mechanism):
    """A mechanism that is nothing but a guarantee."""

    name = "promised"
    of = integer("tells two of them apart", default=0)

    @property
    def guarantee(self) -> Guarantee:
        return (Pure("0.1"), Pure("0.7"), Memoised([str(point / UNIT) for point in CURVE[1:-1]], "0.65"))[self.of]


MECHANISMS = {name: Promised(of=number) for number, name in enumerate(("tenth", "large", "memoized"))}
POLL = Collection("poll", MECHANISMS["tenth"])
FAILURES = (LedgerError, Crash)


class Clients(World):
    """A world with clients: each method without arguments other than a process is an operation."""

    def __init__(self, seed: int, tell: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, tell)
        self.reservations: dict[str, Charge] = {}
        self.keyed: list[Request] = []
        self.batches: dict[str, bool] = {}
        """The keys of batches, and True for those whose client got all results."""
        self.heads: list[str] = []
        self.names = 0
        self.in_between = self.charge_one

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}-{self.names}"

    def prepare(self) -> None:
        """Start the processes, make an API key for each sub-limit, and set the policies."""
        first, *_ = [self.start(number) for number in range(self.random.choice((2, 3)))]
        for number, share in enumerate(SHARES):
            body = {"scopes": ["spend"], "policies": None, "collections": None, "share": share, "hash": "0" * 64}
            body |= dict.fromkeys(("starts", "expires", "until"))
            made = first.accountant._record_own("key", f"key-of-{share}", body, expected=number)
            self.principals[share] = Principal(made.number, made.name, share)
            self.model.newest[0] = first.clock()
        for process in self.processes:
            self.start(process.number)
        for policy in ("default", "other"):
            self.set_policy(self.processes[0], policy)

    # -- single requests ----------------------------------------------------------------------------------------

    def draw(self, share: str | None) -> Request:
        """Draw a request for a user who is not busy: a new one, or one under a key that was used before."""
        random = self.random
        used = [each for each in self.keyed[-40:] if each.share == share and each.user not in self.busy]
        if used and random.random() < 0.25:
            request = random.choice(used)
            other = {"policy": "other" if request.policy == "default" else "default"}
            return request if random.random() < 0.8 else request._replace(**other)
        user = random.choice([user for user in USERS if user not in self.busy])
        mechanism = random.choice(("tenth", "tenth", "large", "large", "memoized")[: 4 if share else 5])
        label = random.choice(("home", "work")) if mechanism == "memoized" else None
        lasts = random.choice((1, 3600, 5 * DAY)) if label is None and random.random() < 0.25 else None
        policy = random.choice(("default", "default", "other"))
        trace = {"key": self.name("key")} if random.random() < 0.6 else {"note": self.name("note")}
        report = None
        if "key" in trace and mechanism == "tenth" and lasts is share is None and random.random() < 0.4:
            report = random.randbytes(8)
        reports = random.choice((1, 1, 2)) if report is None else 1
        return Request(user, mechanism, reports, policy, share, label=label, lasts=lasts, report=report, **trace)

    def charge_one(self, process: Process) -> None:
        """One request, alone in its transaction."""
        self.ask_one(process, self.draw(self.random.choice((None, None, *SHARES))), "asks for")

    def ask_one(self, process: Process, request: Request, verb: str, *, safe: bool = False) -> None:
        accountant, asked = process.through[request.share], _arguments(request)

        def ask() -> list[Any]:
            if request.report is not None:
                of = {name: asked[name] for name in ("key", "label", "policy")}
                return [accountant.reports.take(request.user, POLL, request.report, **of)]
            if request.lasts is not None:
                return [accountant.reserve(**asked, expires=request.lasts)]
            return [accountant.spend(**asked)]

        self.charge(process, [request], ask, verb, safe=safe)

    def charge_together(self, process: Process) -> None:
        """Requests of several clients that share a transaction, as tasks of an event loop."""
        requests = [self.draw(self.random.choice((None, None, *SHARES))) for _ in range(self.random.randint(2, 6))]
        requests = [request for request in requests if request.report is None]

        async def one(request: Request) -> Any:
            accountant, asked = process.through[request.share], _arguments(request)
            try:
                if request.lasts is not None:
                    return await accountant.reserve_async(**asked, expires=request.lasts)
                return await accountant.spend_async(**asked)
            except (Exception, Crash) as error:
                return error

        async def together() -> list[Any]:
            process.queue.is_gathering = True
            tasks = [asyncio.ensure_future(one(request)) for request in requests]
            await asyncio.sleep(0)  # each of them submits its request
            process.queue.is_gathering = False
            process.queue.serve()
            return await asyncio.gather(*tasks)

        self.charge(process, requests, lambda: self.loop.run_until_complete(together()), "asks, among others, for")

    def charge_each(self, process: Process) -> None:
        """Requests of one client in one call, each with a key of its own, or none (`spend_each`)."""
        share = self.random.choice((None, *SHARES))
        requests = [self.draw(share) for _ in range(self.random.randint(2, 8))]
        requests = [request for request in requests if request.lasts is request.report is None]
        lines = [Spend(**_arguments(request)) for request in requests]
        self.charge(process, requests, lambda: process.through[share].spend_each(lines), "asks, in one call, for")

    def charge(
        self, process: Process, requests: Sequence[Request], ask: Callable[[], list[Any]], verb: str, *, safe: bool = False
    ) -> None:
        """Run requests, and judge each outcome in the order in which they were submitted."""
        self.steps += len(requests)
        with self.operation(process, {request.user for request in requests}, safe=safe):
            try:
                outcomes = ask()
            except (KeyConflict, *FAILURES) as error:
                outcomes = [error] * len(requests)
            doubtful = []
            for request, outcome in zip(requests, outcomes, strict=True):
                self.keyed += [request] if request.key is not None else []
                self.report(process, f"{verb} {_text(request)}", outcome)
                if isinstance(outcome, FAILURES) and not isinstance(outcome, ClockError):
                    self.settle(process, request, outcome)
                    doubtful.append(request)
                else:
                    self.judge(process, request, outcome)
            self.restart_dead()
        for request in doubtful:
            if request.key is not None and not safe and not self._depth and self.random.random() < 0.7:
                self.ask_one(self.random.choice(self.processes), request, "repeats", safe=True)

    def judge(self, process: Process, request: Request, outcome: Any) -> None:
        """Compare the answer to a request with the model's."""
        expected = self.model.ask(request, process.now)
        if isinstance(outcome, Exception):
            found = {KeyConflict: CONFLICT, ClockError: BAD_CLOCK}.get(type(outcome))
            self.expect(found is not None, HEALTHY, repr(outcome), expected)
        else:
            found = Answer(outcome.status, _spent(outcome.limits), outcome.repeated)
            if found.repeated and "unheard" in process.connection.happened:  # the queue itself has asked again
                found = found._replace(repeated=expected.repeated)
            if found.status == "reserved":
                owner = request.user, request.share, request.key
                mine = None if request.key is None else self.model.answers.get(owner)
                charge = self.model.charges[request.user][-1:] if mine is None else [mine[2]]
                self.reservations.update((outcome.receipt, each) for each in charge if each is not None)
        promise = LOST if found is not None and found.status == expected.status else LIMIT
        for broken, kept in ((RETRY, "repeated"), (KEY, CONFLICT), (TIME, BAD_CLOCK)):
            if kept in (found, expected) or (kept == "repeated" and (expected.repeated or (found and found.repeated))):
                promise = broken
        self.expect(found == expected, promise, found, expected)

    def settle(self, process: Process, request: Request, failure: BaseException) -> None:
        """Tell the model what became of a request whose client got no answer."""
        connection = process.connection
        self.expect(bool(connection.happened) or connection.is_dead, HEALTHY, repr(failure), "an answer")
        is_durable = self.is_durable(request)
        is_new = (request.user, request.share, request.key) not in self.model.answers
        if is_durable and is_new and isinstance(failure, LedgerError):
            self.expect(failure.unknown, NOTHING, repr(failure), "unknown=True")
        if is_durable:
            self.model.ask(request, process.now)

    def report(self, process: Process, line: str, outcome: Any) -> None:
        faults = f"  [{', '.join(process.connection.happened)}]" if process.connection.happened else ""
        self.tell(f"process {process.number} {line} -> {_short(outcome)}{faults}")

    # -- batches under one key ----------------------------------------------------------------------------------

    def charge_batch(self, process: Process) -> None:
        """A batch under one key (`spend_batch`, `spend_many`), or the same batch once more."""
        if self.is_clock_bad(process):
            return
        unfinished = [key for key, is_finished in self.batches.items() if not is_finished]
        if self.batches and self.random.random() < 0.5:
            key = self.random.choice(unfinished or list(self.batches))
        else:
            key = self.name(self.random.choice(("batch", "many")))
            self.model.runs[key] = self.draw_batch(is_many=key.startswith("many"))
        lines = self.model.runs[key]
        before = [self.parts_on_disk(partition) for partition in range(self.model.partitions)]
        found: Any = None
        with self.operation(process):
            self.steps += 1
            try:
                found = self.run_batch(process, key, lines)
            except FAILURES as error:
                self.settle_batch(process, key, before, error)
            else:
                answers = {place: self.model.charge_part(key, place, process.now) for place in self.places(lines)}
                expected = [answers[self.place[line.user]].pop(0) for line in lines]
                self.compare_batch(key, found, lines, expected)
            self.report(process, f"charges {key} of {len(lines)} lines", "done" if found is not None else "doubt")
            self.batches[key] = self.batches.get(key, False) or found is not None
            self.restart_dead()

    def draw_batch(self, *, is_many: bool) -> tuple[Request, ...]:
        """Draw lines: many alike, so that set-based statements charge them, and for `spend_batch` some others."""
        mechanism, policy = self.random.choice(("tenth", "large")), self.random.choice(("default", "other"))
        alike = [Request(user, mechanism, policy=policy) for user in self.random.sample(USERS, 20)]
        others = [self.draw(None)._replace(key=None, note=None, lasts=None, report=None) for _ in range(6)]
        return tuple(alike + alike[:3] if is_many else self.random.choice((others, alike + others)))

    def run_batch(self, process: Process, key: str, lines: Sequence[Request]) -> Any:
        if not key.startswith("many"):
            spends = [Spend(**_arguments(line)) for line in lines]
            return process.accountant.spend_batch(spends, key=key)
        users, mechanism = [line.user for line in lines], MECHANISMS[lines[0].mechanism]
        return process.accountant.spend_many(users, mechanism, key=key, policy=lines[0].policy)

    def compare_batch(self, key: str, found: Any, lines: Sequence[Request], expected: list[Answer]) -> None:
        if not key.startswith("many"):
            results = [(each.status, each.repeated) for each in found]
            self.expect(results == [(each.status, each.repeated) for each in expected], BATCH, results, expected)
            return
        granted = Counter(each.repeated for each in expected if each.status == "spent")
        refused = Counter(line.user for line, each in zip(lines, expected, strict=True) if each.status == "refused")
        result = (found.spent, found.repeated, Counter(found.refused_users))
        self.expect(result == (granted[False], granted[True], refused), BATCH, result, (granted, refused))

    def settle_batch(self, process: Process, key: str, before: Sequence[int], failure: BaseException) -> None:
        """Tell the model which parts of a batch were charged before it failed."""
        self.expect(bool(process.connection.happened) or process.connection.is_dead, HEALTHY, repr(failure))
        for partition, count in enumerate(before):
            more = self.parts_on_disk(partition) - count
            self.expect(more in (0, 1), BATCH, f"{more} parts in partition {partition}", "at most 1")
            if more:
                self.model.charge_part(key, partition, process.now)

    def parts_on_disk(self, partition: int) -> int:
        return sum(row.kind == CHARGED for row in self.disk.rows[partition]._of(BatchRunRecord).values())

    def places(self, lines: Sequence[Request]) -> list[int]:
        return sorted({self.place[line.user] for line in lines})

    def is_clock_bad(self, process: Process) -> bool:
        """True if a partition would refuse the clock of a process."""
        return any(self.model.at(partition, process.now) is None for partition in range(self.model.partitions))

    # -- reservations, policies, users, reports -----------------------------------------------------------------

    def end_reservation(self, process: Process) -> None:
        """Commit or void a reservation, or do so again."""
        if not self.reservations:
            return
        receipt = self.random.choice(list(self.reservations)[-20:])
        charge, how = self.reservations[receipt], self.random.choice(("commit", "void", "void"))
        with self.operation(process, [charge.request.user]):
            try:
                outcome: Any = getattr(process.accountant, how)(receipt)
            except (ClockError, ReservationConflict, *FAILURES) as error:
                outcome = error
            self.report(process, f"{how}s {receipt[:12]} of {charge.request.user}", outcome)
            if isinstance(outcome, FAILURES) and not isinstance(outcome, ClockError):
                self.expect(bool(process.connection.happened) or process.connection.is_dead, HEALTHY, repr(outcome))
                name = name_in(receipt)
                if charge.state == "reserved" and self.disk.rows[name.partition].resolution(name.entry) is not None:
                    self.model.end(charge, how, process.now)
            else:
                errors = {ClockError: BAD_CLOCK, ReservationConflict: CONFLICT}
                found = errors.get(type(outcome)) or Answer(outcome.status, repeated=outcome.repeated)
                expected = self.model.end(charge, how, process.now)
                self.expect(found == expected, ENDS, found, expected)
            self.restart_dead()

    def set_policy(self, process: Process, name: str = "") -> None:
        """Set another version of a policy, with or without sub-limits. New periods are filled from the journal."""
        if self.is_clock_bad(process):
            return
        random, is_first = self.random, bool(name)
        name = name or random.choice(("default", "other"))
        lifetime, tenth = random.choice((60, 120, 400)), UNIT // 10
        limits = {"lifetime": lifetime * tenth}
        limits |= {period: random.choice((14, 25)) * tenth for period in ("day", "week") if random.random() < 0.5}
        shares = {"a": {"lifetime": lifetime // 4 * tenth}, "b": {"lifetime": 3 * lifetime // 4 * tenth}}
        shares["b"] |= {period: 8 * tenth for period in limits if period == "day"}
        terms = Terms(limits, shares if random.random() < 0.8 else {})
        count = len(self.disk.rows[0]._policies)
        with self.operation(process, USERS if is_first else [], safe=is_first):
            try:
                parts = {share: _limits(each) for share, each in terms.shares.items()}
                process.accountant.set_policy(name, _limits(limits), shares=parts)
            except FAILURES as error:
                self.expect(bool(process.connection.happened) or process.connection.is_dead, HEALTHY, repr(error))
            if len(self.disk.rows[0]._policies) > count:
                self.model.set_policy(name, terms, process.now)
            self.report(process, f"sets policy {name} to {terms}", "done")
            self.restart_dead()

    def erase(self, process: Process) -> None:
        """Erase a user."""
        user = self.random.choice(USERS)
        if len(self.model.erased) > len(USERS) // 4:
            return
        was_known = bool(self.model.charges[user]) or any(owner[0] == user for owner in self.model.answers)
        with self.operation(process, [user]):
            try:
                found = process.accountant.erase(user, unknown=True)
                self.expect(found == was_known, ERASED, found, was_known)
            except FAILURES as error:
                self.expect(bool(process.connection.happened) or process.connection.is_dead, HEALTHY, repr(error))
            if self.hashes[user] in self.disk.rows[self.place[user]]._tombstones and user not in self.model.erased:
                self.model.erase(user, process.now)
            self.report(process, f"erases {user}", "done")
            self.restart_dead()

    def seal(self, process: Process) -> None:
        """Seal the waiting reports as a round, and read the round."""
        name, waiting = self.name("round"), self.model.waiting
        sealed: bytes | None = None
        with self.operation(process):
            try:
                found = process.accountant.reports.seal("poll", name)
                self.expect(found == len(waiting), REPORTS, found, len(waiting))
                sealed = b"".join(process.accountant.reports.round("poll", name))
            except TooFewReports:
                self.expect(not waiting, REPORTS, "no report", waiting)
            except FAILURES as error:
                self.expect(bool(process.connection.happened) or process.connection.is_dead, HEALTHY, repr(error))
            if name in self.disk.rows[0].rounds("poll"):
                self.model.waiting = []
            if sealed is not None:
                reports = sorted(sealed[place : place + 8] for place in range(0, len(sealed), 8))
                self.expect(reports == sorted(report for _, report in waiting), REPORTS, reports, waiting)
            self.report(process, f"seals {len(waiting)} reports", "done")
            self.restart_dead()

    # -- time, faults and checks --------------------------------------------------------------------------------

    def wait(self, process: Process) -> None:
        """Time passes."""
        self.elapsed += self.random.choice((1, 60, 3600, DAY // 4, DAY, 3 * DAY))
        self.tell(f"it is {self.elapsed / DAY:.2f} days later")

    def jump(self, process: Process) -> None:
        """The clock of a process jumps, or drifts."""
        process.offset += self.random.choice((-2 * DAY, -600, -3, 3, 600, 7200, 40 * DAY))
        self.tell(f"the clock of process {process.number} is at {process.offset:+} s")

    def repair_clocks(self, process: Process) -> None:
        """An operator sets all clocks, starts the processes again, and repairs the time of the ledger."""
        for each in self.processes:
            self.restart(each)
        process = self.processes[process.number]
        before = [self.clock_entries(partition) for partition in range(self.model.partitions)]
        with self.operation(process):
            try:
                process.accountant.repair_clock()
            except FAILURES as error:
                self.expect(bool(process.connection.happened) or process.connection.is_dead, HEALTHY, repr(error))
            for partition, count in enumerate(before):
                if self.clock_entries(partition) > count:
                    self.expect(self.model.repair_clock(partition, process.clock()), TIME, "a repair", "none")
            self.report(process, "repairs the clock", "done")
            self.restart_dead()

    def clock_entries(self, partition: int) -> int:
        return sum(row[2] == CLOCK for row in self.disk.rows[partition]._journal.values())

    def restart(self, process: Process) -> None:
        """A process closes the ledger, and opens it again."""
        process.accountant.close()
        process.connection.die()
        self.start(process.number)
        self.tell(f"process {process.number} opens the ledger again")

    def lose_power(self, process: Process) -> None:
        """The power fails: all processes end, and the disk reads its log."""
        self.tell("the power fails")
        self.disk.fail()
        self.restart_dead()

    def read_balances(self, process: Process) -> None:
        """Compare the balances of all users with the model."""
        policy = self.random.choice(("default", "other"))
        if self.is_clock_bad(process):
            return
        with self.operation(process, safe=True):
            for balance in process.accountant.balances(USERS, policy):
                at = self.model.at(self.place[balance.user], process.now)
                self.expect(balance.erased == (balance.user in self.model.erased), ERASED, balance)
                for state in balance.limits:
                    expected = self.model.spent(balance.user, state.limit.period, at, getattr(state.limit, "share", None))
                    self.expect(state.spent_units.epsilon == expected, LOST, balance, expected)
            self.report(process, f"reads balances under {policy}", "done")

    def verify(self, process: Process) -> None:
        """Verify the ledger while others write, and note its head."""
        with self.operation(process, [], safe=True):
            expect = self.random.choice([None, *self.heads[-5:]])
            found = process.accountant.verify(expect)
            self.report(process, f"verifies {found.entries} entries", "ok" if found.ok else "not ok")
            self.expect(found.ok, VERIFIED, found.problems)
            self.heads.append(process.accountant.checkpoint())
            self.restart_dead()


def _arguments(request: Request) -> dict[str, Any]:
    of = {name: getattr(request, name) for name in ("user", "reports", "label", "note", "policy", "key")}
    return {**of, "mechanism": MECHANISMS[request.mechanism]}


def _limits(limits: dict[str, int]) -> list[str]:
    return [f"{period}={most / UNIT:.1f}" for period, most in limits.items()]


def _spent(limits: Sequence[Any]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((state.limit.label, state.spent_units.epsilon) for state in limits))


def _text(request: Request) -> str:
    given = {name: value for name, value in request._asdict().items() if value is not None and name != "user"}
    return f"{request.user} ({', '.join(f'{name}={value}' for name, value in given.items())})"


def _short(outcome: Any) -> str:
    if isinstance(outcome, BaseException):
        return type(outcome).__name__
    return str(getattr(outcome, "status", outcome)) + (", repeated" if getattr(outcome, "repeated", False) else "")
