"""`Client`: a `BudgetClient` that charges a ledger through a service."""

from __future__ import annotations

import hmac
import json
from dataclasses import replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from ldp_budget._dataframes import check_texts
from ldp_budget._tags import check_tags
from ldp_budget._validation import (
    ONE_USER,
    check_call,
    check_instance,
    check_name,
    check_switch,
    check_text,
    check_user,
    check_whole,
    shown_with_type,
)
from ldp_budget.accounting.admin_log import Record, check_own_record, check_record
from ldp_budget.accounting.admin_records import KEY, KEY_REVOKED
from ldp_budget.accounting.batch import FAILED
from ldp_budget.accounting.budget_client import BudgetClient
from ldp_budget.accounting.budget_timeline import check_series
from ldp_budget.accounting.bulk_run import charge_run
from ldp_budget.accounting.call_options import PolicyOptions, RunOptions, SeriesOptions
from ldp_budget.accounting.charge_request import MOST_REPORTS, Principal, bound_digest, check_note
from ldp_budget.accounting.limits import as_limits, as_shares
from ldp_budget.accounting.plans import Plan
from ldp_budget.accounting.policy_versions import check_override
from ldp_budget.accounting.priced_mechanism import mechanism_of
from ldp_budget.accounting.receipts import BudgetExceeded
from ldp_budget.accounting.reservation_settlement import check_expires
from ldp_budget.charge_options import DEFAULT, QuoteOptions, check_options
from ldp_budget.errors import InvalidParameter, LdpBudgetError, LedgerError, NotSupported, RecordConflict, UnknownName
from ldp_budget.guarantees.fixed_point import LARGEST
from ldp_budget.registry.collections import Collection

from ..api import schemas
from ..api.problem_details import BUDGET_EXCEEDED, error_of
from ..api.schemas import (
    MOST_ENTRIES,
    NEXT_ENTRY,
    POSITION,
    asked_for,
    charge_body,
    charged,
    check_relation,
    chunks,
    collection_body,
    header_of,
    in_path,
    policy_name,
    sendable,
    shares_form,
    user_body,
)
from .batch import PATH, charge_batch, chunks_of, line_of, result_of
from .transport import Rewording, Service, in_thread

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ldp_budget.accounting.batch import Spend, SpendResult
    from ldp_budget.accounting.budget_timeline import Binding, Remaining
    from ldp_budget.accounting.bulk_run import BulkResult
    from ldp_budget.accounting.call_options import Chargeable
    from ldp_budget.accounting.limits import Limit
    from ldp_budget.accounting.policies import Policy
    from ldp_budget.accounting.receipts import Balance, Receipt
    from ldp_budget.charge_options import ChargeOptions
    from ldp_budget.ledger.verification import Integrity

    from .transport import Answer

T = TypeVar("T")

VERIFYING_SECONDS = 3600.0


class Client(BudgetClient):
    """The privacy budgets of the users of one service: all calls of `BudgetClient`, over HTTP.

    A request is repeated if no answer arrives or the service is busy, for at most `patience` seconds. Then it raises
    a `LedgerError`, whose `unknown` is True if the request may have been done. Every charge is sent under an
    idempotency key, a new one if you give none, so repeating it never charges a user twice. A refusal is stored under
    that key too. A call outside the scopes of the API key raises `ServiceProblem`.

    Threads may share a client. After a fork it opens new connections. Calls that need the ledger's own machine, such
    as a backup, are not available.

    Parameters:
        url: of the service, `https://…`.
        key: an API key of the service; it is in no message.
        timeout: the longest time of one attempt, in seconds.
        patience: the longest time of all attempts of one request, in seconds.
        tls: how the service's certificate is verified; None: by the commonly trusted authorities.
        plain_http: allow `http://` to a remote host. The API key and all data are then sent unencrypted.

    Raises:
        InvalidParameter: an argument has the wrong type or is out of range.
        NotSupported: the HTTP library is not installed.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        patience: float = 60.0,
        tls: ssl.SSLContext | None = None,
        plain_http: bool = False,
    ) -> None:
        self._service = Service(url, key, timeout=timeout, patience=patience, tls=tls, plain_http=plain_http)
        self._digest_key = sha256(b"ldp-budget data\0" + key.encode()).digest()
        self._sandbox: bool | None = None
        self._newest_record = 0

    def __repr__(self) -> str:
        return f"<Client of {self.name}>"

    @property
    def name(self) -> str:
        """The URL of the service."""
        return self._service.url

    @property
    def sandbox(self) -> bool:
        """True if the service's ledger is a sandbox, in which nothing counts."""
        if self._sandbox is None:
            self._sandbox = self._read(lambda told: check_switch("sandbox", told["sandbox"]), self._about())
        return self._sandbox

    @property
    def caller(self) -> Principal:
        """The principal that the service recognizes by the API key."""
        return self._read(lambda told: Principal(**told["caller"]), self._about())

    @property
    def repeated(self) -> dict[str, int]:
        """Requests that this process repeated, counted by reason: the HTTP status, or `connection`."""
        return dict(sorted(self._service.repeated.items()))

    def close(self) -> None:
        self._service.close()

    # -- policies ---------------------------------------------------------------------------------------

    def set_policy(self, name: str, limits: Sequence[Limit | str], **options: Unpack[PolicyOptions]) -> Policy:
        check_options(options, PolicyOptions)
        check_override(options.get("override"), by_key=True)
        plan, shares, zone = options.get("plan"), options.get("shares"), options.get("zone")
        if plan is not None:
            check_instance("plan", plan, Plan, "a `Plan` or None")
        given = as_limits(limits)
        # Left out if empty, so that services without these fields still accept the request.
        parts = {} if shares is None else {"shares": shares_form(as_shares(shares, given))}
        body = {
            **parts,
            **({} if zone is None else {"zone": check_text("zone", zone)}),
            "limits": [str(limit) for limit in given],
            "relation": check_relation(options.get("relation")),
            "unbounded": check_switch("unbounded", options.get("unbounded", False)),
            "checked": check_switch("checked", options.get("checked", False)),
            "plan": None if plan is None else plan.to_json(),
        }
        path = f"/v1/policies/{in_path(policy_name(name))}"
        return self._read(schemas.policy_of, self._service.ask("PUT", path, body, writes=True))

    def policy(self, name: str = DEFAULT) -> Policy:
        check_name("name", name)
        if not name:
            raise UnknownName("policy", name, [policy.name for policy in self.policies()])
        return self._read(schemas.policy_of, self._service.ask("GET", f"/v1/policies/{in_path(name)}"))

    def policies(self) -> list[Policy]:
        return self._read_all(schemas.policy_of, self._service.ask("GET", "/v1/policies"))

    def simulate(self, mechanism: Chargeable, *, every: str, **options: Unpack[SeriesOptions]) -> tuple[Binding, ...]:
        check_options(options, SeriesOptions)
        start, policy = options.get("start"), options.get("policy", DEFAULT)
        check_series(every, start)
        query = {
            **{name: json.dumps(asked) for name, asked in asked_for(mechanism_of(mechanism)).items()},
            "every": every,
            "reports": check_whole("reports", options.get("reports", 1), 1, MOST_REPORTS),
            **({} if start is None else {"start": start.isoformat()}),
        }
        path = f"/v1/policies/{in_path(policy_name(policy))}/simulation"
        with Rewording(self.name, mechanism):
            answer = self._service.ask("GET", path, query=query)
        return tuple(self._read_all(schemas.binding_of, answer))

    # -- charging ---------------------------------------------------------------------------------------

    def quote(self, user: str, mechanism: Chargeable, **options: Unpack[QuoteOptions]) -> Receipt:
        check_options(options, QuoteOptions)
        body = charge_body(user, mechanism, cast("ChargeOptions", options))
        with Rewording(self.name, mechanism):
            answer = self._service.ask("POST", "/v1/spends", {**body, "dry_run": True})
        return self._read(schemas.receipt_of, answer)

    def spend(self, user: str, mechanism: Chargeable, **options: Unpack[ChargeOptions]) -> Receipt:
        return self._ask_to_charge("/v1/spends", user, mechanism, options)

    async def spend_async(self, user: str, mechanism: Chargeable, **options: Unpack[ChargeOptions]) -> Receipt:
        return await in_thread(partial(self.spend, user, mechanism, **options))

    def spend_many(self, users: Iterable[str], mechanism: Chargeable, **options: Unpack[RunOptions]) -> BulkResult:
        check_options(options, RunOptions)
        key, digest, note = options.get("key"), options.get("digest"), options.get("note")
        policy, tags = options.get("policy", DEFAULT), check_tags(options.get("tags"))
        common = {
            **charged(mechanism),
            "policy": sendable("policy", check_name("policy", policy)),
            **({} if note is None else {"note": check_note(note)}),
            **({"tags": tags} if tags else {}),
            **({} if digest is None else {"digest": bound_digest(digest, key)}),
        }
        run = header_of(key)

        def charge(names: list[str], named: str | None) -> list[SpendResult]:
            rows = charge_batch(self._service, common, names, named)
            return self._read_value(lambda told: [result_of(self.name, row) for row in told], rows, True)

        with Rewording(self.name, mechanism, run if key is None else key):
            return charge_run(
                charge, users, name=run, key=key, shard=options.get("shard"), on_batch=options.get("on_batch")
            )

    def spend_each(self, spends: Sequence[Spend | LdpBudgetError]) -> list[Receipt | LdpBudgetError]:
        return [receipt for chunk in chunks_of(spends) for receipt in self._spend_chunk(chunk)]

    def reserve(
        self, user: str, mechanism: Chargeable, *, expires: float = 3600, **options: Unpack[ChargeOptions]
    ) -> Receipt:
        check_expires(expires)
        return self._ask_to_charge("/v1/reservations", user, mechanism, options, expires=expires)

    async def reserve_async(
        self, user: str, mechanism: Chargeable, *, expires: float = 3600, **options: Unpack[ChargeOptions]
    ) -> Receipt:
        return await in_thread(partial(self.reserve, user, mechanism, expires=expires, **options))

    def commit(self, receipt: str) -> Receipt:
        return self._ask_to_end(receipt, "commit")

    def void(self, receipt: str) -> Receipt:
        return self._ask_to_end(receipt, "void")

    def erase(self, user: str, *, unknown: bool = False) -> bool:
        body = {**user_body(user), "unknown": check_switch("unknown", unknown)}
        answer = self._service.ask("POST", "/v1/users:erase", body, writes=True)
        return self._read(lambda told: check_switch("erased", told["erased"]), answer)

    # -- querying users --------------------------------------------------------------------------------

    def balance(self, user: str, policy: str = DEFAULT) -> Balance:
        body = {**user_body(user), "policy": check_name("policy", policy)}
        return self._read(schemas.balance_of, self._service.ask("POST", "/v1/users:balance", body))

    async def balance_async(self, user: str, policy: str = DEFAULT) -> Balance:
        return await in_thread(self.balance, user, policy)

    def balances(self, users: Iterable[str] | None = None, policy: str = DEFAULT) -> Iterator[Balance]:
        # An unknown policy raises an error even if no balance is asked for.
        return self._balances(users, self.policy(policy))

    def remaining_over_time(self, user: str, policy: str = DEFAULT) -> tuple[Remaining, ...]:
        body = {**user_body(user), "policy": check_name("policy", policy)}
        return tuple(self._read_all(schemas.remaining_of, self._service.ask("POST", "/v1/users:remaining", body)))

    def is_erased(self, user: str) -> bool:
        answer = self._service.ask("POST", "/v1/users:erased", user_body(user))
        return self._read(lambda told: check_switch("erased", told["erased"]), answer)

    def history(self, user: str, *, first: int = 1, most: int | None = None) -> list[dict[str, Any]]:
        check_whole("first", first, 1, LARGEST)
        if most is not None:
            check_whole("most", most, 1, LARGEST)
        rows: list[dict[str, Any]] = []
        following: int | None = first
        while following is not None and (most is None or len(rows) < most):
            wanted = {} if most is None else {"most": min(most - len(rows), MOST_ENTRIES)}
            answer = self._service.ask("POST", "/v1/users:history", {**user_body(user), "first": following, **wanted})
            rows += self._read_all(dict, answer)
            said = answer.headers.get(NEXT_ENTRY, "")
            following = int(said) if said.isascii() and said.isdigit() else None
        return rows

    def open_reservations(self, most: int | None = 20, *, user: str | None = None) -> list[dict[str, Any]]:
        if most is not None:
            check_whole("most", most)
        body = {"most": most, **({} if user is None else user_body(user))}
        return self._read_all(dict, self._service.ask("POST", "/v1/users:reservations", body))

    def reservation(self, receipt: str) -> dict[str, Any]:
        body = {"receipt": sendable("receipt", check_text("receipt", receipt))}
        return self._read(dict, self._service.ask("POST", "/v1/users:reservation", body))

    # -- querying the ledger ---------------------------------------------------------------------------

    def journal(self, users: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
        if users is None:
            return iter(self._service.lines("GET", "/v1/ledger/journal"))
        many = check_texts("users", users, "a list of user names", ONE_USER)
        named = [sendable("user", check_user(user)) for user in many]
        return iter(self._service.lines("POST", "/v1/ledger/journal", {"users": named}))

    def now(self) -> datetime:
        return self._read(lambda told: datetime.fromisoformat(told["now"]), self._about())

    def stats(self) -> dict[str, Any]:
        return self._read(dict, self._service.ask("GET", "/v1/ledger/stats"))

    def checkpoint(self) -> str:
        answer = self._service.ask("POST", "/v1/ledger/checkpoint")
        return self._read(lambda told: check_text("head", told["head"]), answer)

    def verify(
        self, expect: str | None = None, *, on_progress: Callable[[int, int], None] | None = None
    ) -> Integrity:
        query = {} if expect is None else {"expect": sendable("expect", check_text("expect", expect))}
        check_call("on_progress", on_progress)
        answer = self._service.ask("GET", "/v1/ledger/verify", query=query, patience=VERIFYING_SECONDS)
        return self._read(schemas.integrity_of, answer)

    def repair_clock(self) -> bool:
        answer = self._service.ask("POST", "/v1/ledger/repair-clock", writes=True)
        return self._read(lambda told: check_switch("repaired", told["repaired"]), answer)

    # -- administrative log -----------------------------------------------------------------------------

    def position(self, user: str | None = None) -> str:
        answer = self._service.ask("POST", "/v1/ledger/position", {} if user is None else user_body(user))
        return self._read(lambda told: check_text("position", told["position"]), answer)

    def positions(self, users: Sequence[str]) -> list[str]:
        return [self.position(user) for user in check_texts("users", users, "a list of user names", ONE_USER)]

    def records(self, first: int = 1) -> list[Record]:
        query = {"first": check_whole("first", first, 1)}
        found = self._read_all(schemas.record_of, self._service.ask("GET", "/v1/ledger/records", query=query))
        self._newest_record = max([self._newest_record, *(record.number for record in found)])
        return found

    def record(self, kind: str, name: str, body: dict[str, Any], *, expected: int) -> Record:
        check_record(kind, name, body, expected)
        asked = {"kind": kind, "name": sendable("name", name), "body": body}
        return self._add_record("/v1/ledger/records", asked, kind, name, body, expected)

    def _record_own(
        self, kind: str, name: str, body: dict[str, Any], *, expected: int, remote: bool = True
    ) -> Record:
        check_own_record(kind, name, body, expected)
        if kind == KEY:
            return self._add_record("/v1/ledger/keys", {"name": name, **body}, kind, name, body, expected)
        if kind == KEY_REVOKED:
            return self._add_record("/v1/ledger/keys:revoke", {"name": name}, kind, name, body, expected)
        raise NotSupported(
            f"a client cannot write records of the kind {kind!r}", hint="Write them on the machine of the ledger."
        )

    def _add_record(
        self, path: str, asked: dict[str, Any], kind: str, name: str, body: dict[str, Any], expected: int
    ) -> Record:
        asked = {**asked, "expected": expected}
        answer = self._service.ask("POST", path, asked, writes=True, accept=RecordConflict.code)
        if answer.code != RecordConflict.code:
            added = self._read(schemas.record_of, answer)
            self._newest_record = max(self._newest_record, added.number)
            return added
        # An earlier attempt without an answer may have added the record.
        for found in self.records(expected + 1)[:1] if answer.doubtful else ():
            if (found.kind, found.name, found.body) == (kind, name, body):
                return found
        raise error_of(self.name, answer.status, answer.data)

    @property
    def newest_record(self) -> int:
        return self._newest_record

    # -- collections ------------------------------------------------------------------------------------

    def add_collection(self, collection: Collection) -> None:
        check_instance("collection", collection, Collection, "a `Collection`")
        with Rewording(self.name, collection):
            self._service.ask("POST", "/v1/collections", collection_body(collection), writes=True)

    def collection(self, name: str) -> Collection:
        check_name("name", name)
        path = f"/v1/collections/{in_path(sendable('name', name))}"
        try:
            if not name:
                raise UnknownName("collection", name, [])
            answer = self._service.ask("GET", path, query={"plain": "true"})
        except UnknownName:
            # The service lists the known names only for callers with an API key.
            known = [str(definition["name"]) for definition in self.collections()]
            raise UnknownName("collection", name, known) from None
        return replace(self._read(Collection.from_json, answer), sandbox=self.sandbox)

    def collections(self) -> list[dict[str, Any]]:
        return self._read_all(dict, self._service.ask("GET", "/v1/collections"))

    def keyed_digest(self, data: bytes) -> str:
        """Return a keyed digest of data, in hex. Without this accountant's API key, the data cannot be guessed from it.

        Nothing is sent: the data may be answers, which must stay on this machine.

        Parameters:
            data: bytes.

        Raises:
            InvalidParameter: `data` is not bytes.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise InvalidParameter("data", "bytes", shown_with_type(data))
        return hmac.digest(self._digest_key, bytes(data), "sha256").hex()

    # -- internals --------------------------------------------------------------------------------------

    def _spend_chunk(self, spends: Sequence[Spend | LdpBudgetError]) -> list[Receipt | LdpBudgetError]:
        """Return an answer for each spend; an error in one line affects that line only."""
        answers: list[Receipt | LdpBudgetError | None] = []
        lines, sent = [], []
        for place, spend in enumerate(spends):
            try:
                if isinstance(spend, LdpBudgetError):
                    raise spend
                lines.append(line_of(spend))
            except LdpBudgetError as error:
                answers.append(error)
            else:
                answers.append(None)
                sent.append(place)
        try:
            told = [self._one_of_many(row) for row in self._service.exchange(PATH, lines)] if lines else []
        except LdpBudgetError as error:
            told = [error] * len(lines)
        for place, answer in zip(sent, told, strict=True):
            answers[place] = answer
        return [answer for answer in answers if answer is not None]

    def _one_of_many(self, row: Any) -> Receipt | LdpBudgetError:
        if row.get("status") == FAILED:
            return error_of(self.name, row["problem"]["status"], row["problem"])
        return self._read_value(schemas.receipt_of, row)

    def _ask_to_charge(
        self,
        path: str,
        user: str,
        chosen: Chargeable,
        options: ChargeOptions,
        **more: Any,
    ) -> Receipt:
        body = {**charge_body(user, chosen, options), **more}
        strict, key = check_switch("strict", options.get("strict", False)), options.get("key")
        bound_digest(options.get("digest"), key)
        sent = header_of(key)
        with Rewording(self.name, chosen, sent if key is None else key):
            answer = self._service.ask("POST", path, body, key=sent, writes=True, accept=BUDGET_EXCEEDED)
            position = answer.headers.get(POSITION, "")
            if answer.code != BUDGET_EXCEEDED:
                return self._read(schemas.receipt_of, answer)._replace(position=position)
            receipt = self._read(lambda told: schemas.receipt_of(told, told["outcome"]), answer)
            receipt = receipt._replace(position=position)
        if strict:
            raise BudgetExceeded(receipt)
        return receipt

    def _ask_to_end(self, receipt: str, how: str) -> Receipt:
        check_text("receipt", receipt)
        path = f"/v1/reservations/{in_path(sendable('receipt', receipt))}/{how}"
        answer = self._service.ask("POST", path, writes=True)
        return self._read(schemas.receipt_of, answer)._replace(position=answer.headers.get(POSITION, ""))

    def _balances(self, users: Iterable[str] | None, policy: Policy) -> Iterator[Balance]:
        if users is None:
            lists: Iterable[dict[str, Any]] = [{"all": True}]
        else:
            many = check_texts("users", users, "a list of user names", ONE_USER)
            lists = ({"users": chunk} for chunk in chunks(many))
        for asked in lists:
            for line in self._service.lines("POST", "/v1/balances", {**asked, "policy": policy.name}):
                if policy.version != self._read_value(lambda told: told["units"]["version"], line):
                    policy = self.policy(policy.name)
                yield self._read_value(partial(_of_version, policy), line)

    def _about(self) -> Answer:
        return self._service.ask("GET", "/v1/ledger")

    def _read(self, form: Callable[[Any], T], answer: Answer) -> T:
        return self._read_value(form, answer.data, answer.wrote)

    def _read_all(self, form: Callable[[Any], T], answer: Answer) -> list[T]:
        return self._read_value(lambda told: [form(each) for each in told], answer.data, answer.wrote)

    def _read_value(self, form: Callable[[Any], T], told: Any, wrote: bool = False) -> T:
        """Read the content of an answer.

        Raises `LedgerError` if the answer is invalid; after a write its `unknown` is True, as the write may have been
        done.
        """
        try:
            return form(told)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            why = f"the answer of the service cannot be read: {error}"
            unknown = f"{why}. It is unknown whether the request was carried out." if wrote else why
            raise LedgerError(self.name, unknown, unknown=wrote) from None


def _of_version(policy: Policy, told: Any) -> Balance:
    """Read a balance under a policy. Raises ValueError if the policy was changed meanwhile."""
    if told["units"]["version"] != policy.version:
        raise ValueError(f"policy {policy.name} was changed in the meantime")
    return schemas.balance_of(told, policy)
