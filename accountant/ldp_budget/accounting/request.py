"""What somebody asks to charge: checked, priced and hashed before any transaction begins."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from .._json import canonical_json
from ..catalogue import certificates
from ..errors import InvalidParameter
from ..guarantees.orders import measured
from ..ledger.entries import SPENT
from ..ledger.windows import measure_in
from .idempotency import IdempotencyKey

if TYPE_CHECKING:
    from ..authoring.base import Mechanism
    from ..guarantees import Guarantee
    from ..guarantees.amounts import Costs
    from ..ledger import Transaction
    from ..ledger.keys import Key

MOST_REPORTS = 10**9


class Charge:
    """A mechanism as the ledger stores it: self-contained, with the cost of one report."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.guarantee: Guarantee = mechanism.guarantee
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


class Request:
    """What somebody asks to charge: its price, its hashes, and what becomes of it. Raises `InvalidParameter`.

    `kind` is the entry that it will be if it fits; `lasts`: of a reservation, for how many microseconds it is held.
    """

    def __init__(
        self,
        secret: Key,
        user: str,
        mechanism: Mechanism,
        *,
        reports: int = 1,
        policy: str,
        label: str | None = None,
        digest: str | None = None,
        key: str | None = None,
        kind: str = SPENT,
        lasts: int | None = None,
    ) -> None:
        if isinstance(reports, bool) or not isinstance(reports, int) or not 1 <= reports <= MOST_REPORTS:
            raise InvalidParameter("reports", f"a whole number from 1 to {MOST_REPORTS}", reports)
        self.user = check_text("user", user)
        self.reports = reports
        self.policy = policy
        self.label = None if label is None else check_text("label", label)
        self.report_digest = check_digest(digest)
        self.kind = kind
        self.lasts = lasts
        self.charge = charge_of(mechanism)
        self.cost = self.charge.cost.times(reports)
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


def check_text(option: str, text: object) -> str:
    """`text`, if it is a text of at least one character; raises `InvalidParameter`."""
    if not isinstance(text, str) or not text:
        raise InvalidParameter(option, "a text of at least one character", repr(text))
    return text


def check_digest(digest: str | None) -> str | None:
    """`digest` in lower case, if it is hexadecimal; raises `InvalidParameter`."""
    if digest is None:
        return None
    try:
        return bytes.fromhex(digest).hex()
    except (TypeError, ValueError):
        raise InvalidParameter("digest", "hexadecimal digits, two a byte", repr(digest)) from None
