"""What somebody asks to charge: checked, priced and hashed before any transaction begins."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from .._checks import check_name, check_text, check_whole, shown
from .._json import canonical_json
from ..authoring.base import Mechanism
from ..catalogue import certificates
from ..catalogue.collections import Collection
from ..errors import InvalidParameter
from ..guarantees import Guarantee
from ..guarantees.orders import measured
from ..ledger.entries import SPENT
from ..ledger.windows import measure_in
from .idempotency import IdempotencyKey

if TYPE_CHECKING:
    from ..guarantees.amounts import Costs
    from ..ledger import Transaction
    from ..ledger.keys import Key

MOST_REPORTS = 10**9
_EXPECTED = "a mechanism with a name and a guarantee"


class Charge:
    """A mechanism as the ledger stores it: self-contained, with the cost of one report.

    Raises `InvalidParameter` for one that promises nothing.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.guarantee: Guarantee = _guarantee_of(mechanism)
        self.fingerprint = mechanism.fingerprint
        self.mechanism = mechanism.name
        self.declared = canonical_json(mechanism.declared)
        self.promise = canonical_json(self.guarantee.to_json())
        self.cost = self.guarantee.costs()
        self._kind = type(mechanism)
        self._measured: dict[str, Costs] = {}

    @property
    def checked(self) -> str:
        """How the mechanism's promise was checked, see `certificates`."""
        return certificates.checked(self._kind)

    def cost_in(self, gauge: str) -> Costs:
        """What one report costs in the windows of a gauge."""
        measure = measure_in(gauge)
        if measure is None:
            return self.cost
        if measure not in self._measured:
            self._measured[measure] = measured(self.guarantee, measure)
        return self._measured[measure]

    def store(self, transaction: Transaction) -> int:
        """The number of this charge in the ledger."""
        return transaction.store_charge(self.fingerprint, self.mechanism, self.declared, self.promise, self.cost)


@lru_cache(maxsize=1024)
def charge_of(mechanism: Mechanism) -> Charge:
    """The charge of a mechanism; worked out once for each mechanism, which never changes."""
    return Charge(mechanism)


def _guarantee_of(mechanism: Mechanism) -> Guarantee:
    """What a mechanism promises. Raises `InvalidParameter` where that is nothing: it is half written."""
    try:
        promised: object = mechanism.guarantee
    except NotImplementedError:
        promised = None
    if not isinstance(promised, Guarantee):
        raise InvalidParameter("mechanism", _EXPECTED, f"{shown(mechanism)}, which promises {shown(promised)}")
    return promised


def mechanism_of(asked: Mechanism | Collection) -> Mechanism:
    """What is charged where `asked` is given. Raises `InvalidParameter`."""
    mechanism = asked.mechanism if isinstance(asked, Collection) else asked
    if isinstance(mechanism, Mechanism):
        if isinstance(getattr(mechanism, "name", None), str):
            return mechanism
        raise InvalidParameter("mechanism", _EXPECTED, f"{shown(mechanism)}, which has no name")
    expected, found = "a mechanism with its parameters, or a collection", shown(asked)
    if isinstance(asked, type) and issubclass(asked, Mechanism):
        needed = ", ".join(name for name, field in asked.fields.items() if not field.derived)
        found = f"the mechanism {getattr(asked, 'name', asked.__name__)} without any of its parameters ({needed})"
    elif isinstance(asked, str):
        found = f"the text {found}, which is a name alone"
    raise InvalidParameter("mechanism", expected, found)


class Request:
    """What somebody asks to charge: its price, its hashes, and what becomes of it. Raises `InvalidParameter`.

    `kind` is the entry that it will be if it fits; `lasts`: of a reservation, for how many microseconds it is held.
    """

    def __init__(
        self,
        secret: Key,
        user: str,
        mechanism: Mechanism | Collection,
        *,
        reports: int = 1,
        policy: str,
        label: str | None = None,
        digest: str | None = None,
        key: str | None = None,
        kind: str = SPENT,
        lasts: int | None = None,
    ) -> None:
        self.user = check_text("user", user)
        self.reports = check_whole("reports", reports, 1, MOST_REPORTS)
        self.policy = check_name("policy", policy)
        self.label = None if label is None else check_text("label", label)
        self.report_digest = check_digest(digest)
        self.kind = kind
        self.lasts = lasts
        self.charge = charge_of(mechanism_of(mechanism))
        self.cost = self.charge.cost.times(self.reports)
        """Of all reports, unless they go along a curve."""
        # The user and the label as the ledger knows them.
        self.user_hash = secret.hash(b"user", user)
        # Two users' equal labels must not show that they are equal.
        self.label_hash = None if label is None else secret.hash(b"label", f"{self.user_hash.hex()} {label}")
        self.key = None if key is None else self._bind(secret, check_text("key", key))

    def _bind(self, secret: Key, key: str) -> IdempotencyKey:
        """The key that makes a retry safe, bound to everything that makes two requests the same request."""
        operation = "spend" if self.lasts is None else f"reserve {self.lasts}"
        parts = (operation, self.user, self.charge.fingerprint, self.reports, self.label, self.report_digest)
        digest = secret.hash(b"request", ascii((*parts, self.policy)))
        return IdempotencyKey(key, self.user_hash, secret.hash(b"key", key), digest)


def check_digest(digest: str | None) -> str | None:
    """`digest` in lower case, if it is hexadecimal; raises `InvalidParameter`."""
    if digest is None:
        return None
    try:
        return bytes.fromhex(digest).hex()
    except (TypeError, ValueError):
        raise InvalidParameter("digest", "hexadecimal digits, two a byte", shown(digest)) from None
