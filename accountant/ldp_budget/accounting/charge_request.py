"""What somebody asks to charge: checked, priced and hashed before any transaction begins.

Who uses a ledger: whoever is on its machine, or the holder of an API key.

A key makes a retry safe: what it was used for once is answered again, and never done again.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from unicodedata import category

from .._files import canonical_json
from .._validation import check_name, check_text, check_user, check_whole, shown
from ..errors import InvalidParameter, KeyConflict
from ..guarantees import Guarantee, Memoised
from ..guarantees.costs import cost_in_window, measured
from ..ledger.models import SPENT, BatchRunRecord
from ..registry import certification
from ..registry.collections import Collection
from ..registry.third_party import EXPECTED, charged_for, what_is
from ..sdk.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..guarantees.fixed_point import Costs
    from ..ledger import Account, Transaction
    from ..ledger.calendar import Window
    from ..ledger.keyfile import Key
    from ..ledger.models import IdempotencyRecord


class Principal(NamedTuple):
    """The holder of an API key.

    `number` is that of the record which made the key, and stands in every journal entry that they write; of `LOCAL`,
    who needs no key, it is 0. By their `name` their idempotency keys are told from those of others. With a `share`,
    what they charge must fit that share of each limit too.
    """

    number: int
    name: str
    share: str | None = None


LOCAL = Principal(0, "")
"""Whoever is on the machine of the ledger."""


T = TypeVar("T")


def check_key(key: object) -> str:
    """`key`, if it is a text without blanks around it and without control characters. Raises `InvalidParameter`.

    Blanks at the ends get lost on the way through HTTP, and a key that has lost them is another key.
    """
    found = check_text("key", key)
    if found != found.strip() or any(category(each) == "Cc" for each in found):
        raise InvalidParameter("key", "a text without blanks around it and without control characters", shown(found))
    return found


class IdempotencyKey(NamedTuple):
    """A key as its caller named it and as the ledger knows it, and the digest of what it was used for.

    It is its user's own (a hash): others may use the same name, and it goes when the user is erased. That of a batch
    has no user.
    """

    name: str
    user_hash: bytes | None
    key_hash: bytes
    request_digest: bytes


def key_hash(secret: Key, key: str, scope: str) -> bytes:
    """What stands for a key in the ledger: another one for each scope, and without any what it has always been."""
    return secret.hash(b"caller key", ascii((scope, key))) if scope else secret.hash(b"key", key)


class StoredResponse(NamedTuple):
    """A response as the ledger keeps it, and the entry it belongs to, if it belongs to one; of a batch its kind."""

    text: str
    entry: int | None = None
    kind: str = ""


def run_idempotent(
    transaction: Transaction,
    key: IdempotencyKey | None,
    act: Callable[[], T],
    *,
    write: Callable[[T], StoredResponse | None],
    read: Callable[[Any], T],
) -> T:
    """What `act` returns, or has returned to the same request under the same key.

    `write` makes of a result what the ledger keeps, None for one that is not kept; `read` turns the record back. Raises
    `KeyConflict` where the key was used for another request.
    """
    if key is None:
        return act()
    stored: IdempotencyRecord | BatchRunRecord | None
    if key.user_hash is None:
        stored = transaction.numbered(BatchRunRecord, key.key_hash)
    else:
        stored = transaction.idempotency_record(key.user_hash, key.key_hash)
    if stored is None:
        answer = act()
        kept = write(answer)
        if kept is not None and key.user_hash is None:
            transaction.add_numbered(BatchRunRecord(0, key.key_hash, key.request_digest, kept.kind, 0, kept.text))
        elif kept is not None and key.user_hash is not None:
            asked = key.user_hash, key.key_hash, kept.entry, key.request_digest
            transaction.store_idempotency_record(*asked, kept.text)
        return answer
    if stored.request_digest != key.request_digest:
        raise KeyConflict(key.name)
    return read(stored)


MOST_REPORTS = 10**9
MOST_NOTE = 500
_NO_TEXT = ("Cc", "Cs", "Zl", "Zp")
"""Control characters, halves of characters, and what ends a line."""

_EXPECTED = "a mechanism with a name and a guarantee"


class Charge:
    """A mechanism as the ledger stores it: self-contained, with the cost of one report.

    Of a collection it is that of its mechanism, with the collection's name. Raises `InvalidParameter` for what is
    neither, or promises nothing.
    """

    def __init__(self, chosen: Mechanism | Collection) -> None:
        mechanism = mechanism_of(chosen)
        self.collection = chosen.name if isinstance(chosen, Collection) else ""
        self.guarantee: Guarantee = _guarantee_of(mechanism)
        self.fingerprint = mechanism.fingerprint
        self.mechanism = mechanism.name
        self.declared = canonical_json(mechanism.declared)
        self.promise = canonical_json(self.guarantee.to_json())
        self.cost = self.guarantee.costs()
        self._chosen = mechanism
        self._measured: dict[str, Costs] = {}

    @property
    def checked(self) -> str:
        """How the mechanism's promise was checked, see `certificates`."""
        return certification.checked_at(self._chosen)

    def cost_under(self, measure: str | None) -> Costs:
        """What one report costs in windows of a measure, or of none."""
        if measure is None:
            return self.cost
        if measure not in self._measured:
            self._measured[measure] = measured(self.guarantee, measure)
        return self._measured[measure]

    def store(self, transaction: Transaction) -> int:
        """The number of this charge in the ledger."""
        return transaction.store_priced_mechanism(
            self.fingerprint, self.mechanism, self.declared, self.promise, self.cost, self.collection
        )

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells two requests apart by what they charge: two surveys with equal parameters are two."""
        return (self.fingerprint, self.collection) if self.collection else (self.fingerprint,)


def charge_of(asked: Mechanism | Collection | object) -> Charge:
    """The charge of a mechanism or a collection; worked out once for each, as neither ever changes.

    An object of another library may well change, and is asked each time.
    """
    return _charge_of(_Same(chosen_of(asked)))


class _Same:
    """A mechanism or a collection as a key that equals no other object."""

    __slots__ = ("chosen",)

    def __init__(self, chosen: Mechanism | Collection) -> None:
        self.chosen = chosen

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.chosen is other.chosen

    def __hash__(self) -> int:
        return id(self.chosen)


@lru_cache(maxsize=1024)
def _charge_of(same: _Same) -> Charge:
    chosen = same.chosen
    mechanism = mechanism_of(chosen)
    kind: object = type(mechanism)
    return _charge_with(chosen, kind, mechanism.fingerprint, _guarantee_of(mechanism))


@lru_cache(maxsize=1024)
def _charge_with(chosen: Mechanism | Collection, kind: object, fingerprint: str, guarantee: Guarantee) -> Charge:
    """Equal mechanisms share a charge only if they are of one class and promise the same.

    A plugin may define equality. Its mechanisms must not pass for checked ones by that.
    """
    return Charge(chosen)


def _guarantee_of(mechanism: Mechanism) -> Guarantee:
    """What a mechanism promises. Raises `InvalidParameter` where that is nothing: it is half written."""
    try:
        promised: object = mechanism.guarantee
    except NotImplementedError:
        promised = None
    if not isinstance(promised, Guarantee):
        raise InvalidParameter("mechanism", _EXPECTED, f"{shown(mechanism)}, which promises {shown(promised)}")
    return promised


def mechanism_of(asked: Mechanism | Collection | object) -> Mechanism:
    """What is charged where `asked` is given. Raises as `chosen_of`."""
    chosen = chosen_of(asked)
    return chosen.mechanism if isinstance(chosen, Collection) else chosen


def chosen_of(asked: Mechanism | Collection | object) -> Mechanism | Collection:
    """What was given, or where that is an object of another library, the mechanism that stands for it.

    Raises `InvalidParameter`; `NotSupported` for an object that says nothing about two values of one user.
    """
    if isinstance(asked, Collection):
        return asked
    if isinstance(asked, Mechanism):
        if isinstance(getattr(asked, "name", None), str):
            return asked
        raise InvalidParameter("mechanism", _EXPECTED, f"{shown(asked)}, which has no name")
    if isinstance(asked, type) and issubclass(asked, Mechanism):
        needed = ", ".join(name for name, field in asked.fields.items() if not field.derived)
        found = f"the mechanism {getattr(asked, 'name', asked.__name__)} without any of its parameters ({needed})"
    elif isinstance(asked, str):
        found = f"the text {shown(asked)}, which is a name alone"
    else:
        found = what_is(asked)
        foreign = None if asked is None else charged_for(asked)
        if foreign is not None:
            return foreign
    raise InvalidParameter("mechanism", EXPECTED, found)


class Request:
    """What somebody asks to charge: its price, its hashes, and what becomes of it. Raises `InvalidParameter`.

    The `key` is told from those of others by the name of the `caller`, and what is charged must fit the share of the
    policy too that the caller is bound to, if any. `kind` is the entry that it will be if it fits; `lasts`: of a
    reservation, for how many microseconds it is held.
    """

    def __init__(
        self,
        secret: Key,
        user: str,
        chosen: Mechanism | Collection | object,
        *,
        reports: int = 1,
        policy: str,
        label: str | None = None,
        digest: str | None = None,
        key: str | None = None,
        caller: Principal = LOCAL,
        note: str | None = None,
        kind: str = SPENT,
        lasts: int | None = None,
    ) -> None:
        self.user = check_user(user)
        self.reports = check_whole("reports", reports, 1, MOST_REPORTS)
        self.policy = check_name("policy", policy)
        self.label = None if label is None else check_text("label", label)
        self.report_digest = check_digest(digest)
        self.note = check_note(note)
        self.kind = kind
        self.lasts = lasts
        self.share = caller.share
        self.charge = charge_of(chosen)
        guarantee = self.charge.guarantee
        self.curve = guarantee if label is not None and isinstance(guarantee, Memoised) else None
        """What labelled reports go along; without a label each is a new value."""
        self.cost = self.charge.cost.times(self.reports)
        """Of all reports, unless they go along a curve."""
        # The user and the label as the ledger knows them.
        self.user_hash = secret.hash(b"user", self.user)
        # Two users' equal labels must not show that they are equal.
        self.label_hash = None if label is None else secret.hash(b"label", f"{self.user_hash.hex()} {label}")
        self.key = None if key is None else self._bind(secret, check_key(key), caller.name)

    def costs_in(self, windows: Mapping[str, Window], share: int, account: Account) -> dict[str, Costs]:
        """What it adds in each of these windows that a share's charges count in, by gauge.

        Labelled reports go along their curve, after so many of that label as the account says were reported.
        """
        counting = [(gauge, window) for gauge, window in windows.items() if window.counts(share)]
        if self.curve is None:
            charge, reports = self.charge, self.reports
            return {
                gauge: charge.cost_under(window.measure).times(reports) if window.measure else self.cost
                for gauge, window in counting
            }
        return {
            gauge: cost_in_window(window.measure, self.curve, account.label_count(gauge, window), self.reports)
            for gauge, window in counting
        }

    def _bind(self, secret: Key, key: str, scope: str) -> IdempotencyKey:
        """The key that makes a retry safe, bound to everything that makes two requests the same request.

        A note is no part of it, for it charges nothing: the one that came first stays.
        """
        operation = "spend" if self.lasts is None else f"reserve {self.lasts}"
        parts = (operation, self.user, *self.charge.identity, self.reports, self.label, self.report_digest)
        digest = secret.hash(b"request", ascii((*parts, self.policy)))
        return IdempotencyKey(key, self.user_hash, key_hash(secret, key, scope), digest)


def check_note(note: str | None) -> str | None:
    """`note`, if it is one line of text that is not too long; raises `InvalidParameter`."""
    if note is None:
        return None
    expected = f"one line of text, of 1 to {MOST_NOTE} characters and none that steers a terminal"
    if not isinstance(note, str) or not 0 < len(note) <= MOST_NOTE:
        found = f"{len(note)} characters" if isinstance(note, str) else shown(note)
        raise InvalidParameter("note", expected, found)
    for character in note:
        if category(character) in _NO_TEXT:
            raise InvalidParameter("note", expected, f"{character!r} in it")
    return note


def check_digest(digest: str | None) -> str | None:
    """`digest` in lower case, if it is hexadecimal; raises `InvalidParameter`."""
    if digest is None:
        return None
    try:
        return bytes.fromhex(digest).hex()
    except (TypeError, ValueError):
        raise InvalidParameter("digest", "hexadecimal digits, two a byte", shown(digest)) from None
