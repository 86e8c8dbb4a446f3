"""Charge requests: arguments that are validated, priced and hashed before any transaction begins; and their callers.

An idempotency key makes retries safe: a request with the key of an earlier one gets the stored response, and the work
is not done again.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import category

from .._tags import check_tags
from .._validation import check_name, check_text, check_user, check_whole, shown
from ..charge_options import DEFAULT
from ..errors import InvalidParameter
from ..guarantees import Memoised
from ..guarantees.memoised_costs import UNLABELLED, cost_in_window
from ..ledger.models import SPENT
from ..registry.collections import Collection
from ..sdk.mechanism import Mechanism
from .priced_mechanism import priced_mechanism_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..guarantees.fixed_point import Costs
    from ..ledger import Account, Ledger
    from ..ledger.calendar import Window
    from ..ledger.keyed_hashing import Key


class Principal(NamedTuple):
    """The authenticated caller: the holder of an API key.

    `number` is the number of the record that made the key. Every journal entry that the holder writes has it. For
    `LOCAL`, which needs no key, it is 0. Idempotency keys are scoped to `name`. If the key has a `share`, its charges
    must fit that sub-limit of each limit too.
    """

    number: int
    name: str
    share: str | None = None


LOCAL = Principal(0, "")
"""The caller on the ledger's host, without an API key."""


def check_key(key: object) -> str:
    """Return `key` if it is a text without surrounding blanks and control characters. Raises `InvalidParameter`.

    HTTP strips surrounding blanks, and a key without them would be a different key.
    """
    found = key if type(key) is str and key and key.isprintable() and key.isascii() else check_text("key", key)
    if found.isascii() and found.isprintable() and found[0] != " " and found[-1] != " ":
        return found
    if found != found.strip() or any(category(each) == "Cc" for each in found):
        raise InvalidParameter(
            "key", "a string without blanks at its ends and without control characters", shown(found)
        )
    return found


_HASHED = "sha256:"

_LONGEST_HEADER = 200


def key_in_header(key: str) -> str:
    """Return an idempotency key as an HTTP header carries it, always the same for the same key.

    Raises `InvalidParameter`.
    """
    check_key(key)
    plain = key.isascii() and key.isprintable() and " " not in key and len(key) <= _LONGEST_HEADER
    if plain and not key.startswith(_HASHED):
        return key
    return _HASHED + sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class IdempotencyKey(NamedTuple):
    """An idempotency key as its caller named it, its hash in the ledger, and the digest of its request.

    It belongs to one user (a hash): other users can use the same name, and erasing the user deletes it. The key of a
    batch has no user.
    """

    name: str
    user_hash: bytes | None
    key_hash: bytes
    request_digest: bytes


def key_hash(secret: Key, key: str, scope: str) -> bytes:
    """Return the hash of an idempotency key in the ledger: one for each scope; the plain hash without a scope."""
    return secret.hash(b"caller key", ascii((scope, key))) if scope else secret.hash(b"key", key)


MOST_REPORTS = 10**9
MOST_NOTE = 500
_NO_TEXT = ("Cc", "Cs", "Zl", "Zp")
"""Control characters, surrogates, and line and paragraph separators."""


class RequestTemplate:
    """The part of a charge request that does not depend on the user: validated and priced once for many requests.

    `charge` is the priced mechanism and `cost` the cost of all reports, unless the reports are memoised: then `curve`
    is their guarantee, and the cost depends on the account, see `memoised_costs`. `kind` is the kind of the journal entry that
    a granted request becomes. `lasts` is the duration of a reservation, in microseconds. `identity` has everything
    that makes two templates the same; the note is not part of it.
    """

    __slots__ = (
        "alike",
        "charge",
        "cost",
        "curve",
        "identity",
        "kind",
        "label",
        "lasts",
        "note",
        "policy",
        "reports",
        "tail",
    )

    def __init__(
        self,
        asked: Mechanism | Collection | object,
        *,
        policy: str,
        reports: int = 1,
        label: str | None = None,
        digest: str | None = None,
        note: str | None = None,
        tags: Iterable[str] | None = None,
        kind: str = SPENT,
        lasts: int | None = None,
    ) -> None:
        self.reports = check_whole("reports", reports, 1, MOST_REPORTS)
        self.policy = check_name("policy", policy)
        self.label = None if label is None else check_text("label", label)
        self.note = check_note(note)
        self.kind = kind
        self.lasts = lasts
        report_digest = check_digest(digest)
        self.charge = priced_mechanism_of(asked, check_tags(tags))
        guarantee = self.charge.guarantee
        self.curve = guarantee if isinstance(guarantee, Memoised) else None
        self.cost = self.charge.cost.times(self.reports)
        self.alike = self.reports == 1 and label is None and self.curve is None
        """True if set-based statements can charge many such requests at once."""
        self.identity = (*self.charge.identity, self.reports, self.label, report_digest, self.policy)
        self.tail = ascii(self.identity)[1:]
        """The end of the text whose hash is the digest of a request."""


_templates: dict[tuple[Any, ...], tuple[object, RequestTemplate]] = {}
_MOST_TEMPLATES = 1000


def request_template(
    asked: Mechanism | Collection | object,
    *,
    policy: str = DEFAULT,
    reports: int = 1,
    label: str | None = None,
    digest: str | None = None,
    note: str | None = None,
    tags: Iterable[str] | None = None,
    kind: str = SPENT,
    lasts: int | None = None,
) -> RequestTemplate:
    """Return the template of a request, the same object for the same arguments. Raises `InvalidParameter`.

    Labels and digests differ from request to request, and an object of another library can change. Templates with
    them are made each time.
    """
    keep = label is None and digest is None and isinstance(asked, Mechanism | Collection)
    # True equals 1, and must not pass for it.
    tags = () if tags is None or tags == () else check_tags(tags)  # most charges have none, and call nothing
    key = id(asked), type(reports), reports, policy, note, tags, kind, lasts
    try:
        found = _templates.get(key) if keep else None
    except TypeError:  # a wrong argument, such as a list, has no hash
        found = None
    if found is not None:
        return found[1]
    template = RequestTemplate(
        asked,
        policy=policy,
        reports=reports,
        label=label,
        digest=digest,
        note=note,
        tags=tags,
        kind=kind,
        lasts=lasts,
    )
    if keep:
        if len(_templates) >= _MOST_TEMPLATES:
            _templates.clear()
        _templates[key] = asked, template  # the object is kept, so that its id is not used again
    return template


class ChargeRequest:
    """A validated charge request with its price and its hashes. Raises `InvalidParameter`.

    The idempotency `key` is scoped to the name of the `caller`. If the caller is bound to a sub-limit of the policy,
    the charge must fit it too. `partitions` is the number of partitions of the ledger. `report` is stored with a
    granted charge of a collection.
    """

    __slots__ = (
        *("api_key", "charge", "curve", "key", "label_hash", "partition", "policy", "report", "reports", "share"),
        *("template", "user", "user_hash"),
    )

    batch_users = None

    def __init__(
        self,
        template: RequestTemplate,
        secret: Key,
        user: str,
        *,
        key: str | None = None,
        caller: Principal = LOCAL,
        partitions: int = 1,
        report: bytes | None = None,
    ) -> None:
        self.template = template
        plain = type(user) is str and user.isascii() and user.isprintable() and user and user[0] != " " != user[-1]
        self.user = user = user if plain else check_user(user)
        self.charge, self.policy, self.reports = template.charge, template.policy, template.reports
        self.curve = template.curve
        self.report = report
        self.api_key, scope, self.share = caller
        # The user, the key and the label as the ledger stores them.
        if key is None:
            self.key = None
            self.user_hash = secret.hash(b"user", user)
        else:
            name = check_key(key)
            named = (b"caller key", ascii((scope, name))) if scope else (b"key", name)
            self.user_hash, hashed, digest = secret.each((b"user", user), named, (b"request", self._asked()))
            self.key = IdempotencyKey(name, self.user_hash, hashed, digest)
        # Equal labels of two users must not have equal hashes.
        label = template.label
        self.label_hash = (
            None if label is None else secret.hash(b"label", f"{secret.plain(self.user_hash).hex()} {label}")
        )
        self.partition = secret.partition_of(self.user_hash, partitions) if partitions > 1 else 0

    @property
    def needs(self) -> tuple[bytes, bytes | None]:
        """The hashes of the user and of the idempotency key."""
        return self.user_hash, None if self.key is None else self.key.key_hash

    def costs_in(self, windows: Mapping[str, Window], share: int, account: Account) -> dict[str, Costs]:
        """Return the cost of the request in each window in which charges of this sub-limit count, by gauge.

        Memoised reports cost what they add to the earlier reports of their mechanism in the account.
        """
        counting = [(gauge, window) for gauge, window in windows.items() if window.counts(share, self.charge.tags)]
        charge, reports = self.charge, self.reports
        if self.curve is None:
            cost = self.template.cost
            return {
                gauge: charge.cost_in(window.scope, window.measure).times(reports)
                if window.measure or charge.parts
                else cost
                for gauge, window in counting
            }
        return {
            gauge: cost_in_window(
                window.measure, self.curve, account.label_counts(gauge, window, self.label), self.label, reports
            )
            for gauge, window in counting
        }

    @property
    def label(self) -> bytes:
        """The label under which memoised reports are counted."""
        return UNLABELLED if self.label_hash is None else self.label_hash

    def _asked(self) -> str:
        """Return the text to which an idempotency key is bound: everything that makes two requests the same.

        A note is not part of it, because it charges nothing. A repeated request keeps its first note. A report is not
        part of it either: the digest stays, and would reveal whose a sealed report is.
        """
        lasts = self.template.lasts
        operation = "spend" if lasts is None else f"reserve {lasts}"
        operation = operation if self.report is None else "report"
        return f"({operation!a}, {self.user!a}, {self.template.tail}"


def request_in(
    ledger: Ledger,
    caller: Principal,
    user: str,
    mechanism: Mechanism | Collection | object,
    *,
    key: str | None = None,
    report: bytes | None = None,
    **arguments: Any,
) -> ChargeRequest:
    """Return the charge request of a caller for a ledger; the other arguments are those of `RequestTemplate`."""
    if arguments.get("digest") is not None:
        bound_digest(arguments["digest"], key)
    template = request_template(mechanism, **arguments)
    return ChargeRequest(
        template, ledger.key, user, key=key, caller=caller, partitions=len(ledger.partitions), report=report
    )


def check_note(note: str | None) -> str | None:
    """Return `note` if it is one line of text of permitted length; raises `InvalidParameter`."""
    if note is None:
        return None
    expected = f"one line of 1 to {MOST_NOTE} characters, without control characters"
    if not isinstance(note, str) or not 0 < len(note) <= MOST_NOTE:
        found = f"{len(note)} characters" if isinstance(note, str) else shown(note)
        raise InvalidParameter("note", expected, found)
    for character in note:
        if category(character) in _NO_TEXT:
            raise InvalidParameter("note", expected, f"a note with {character!r}")
    return note


def check_digest(digest: str | None) -> str | None:
    """Return `digest` in lower case if it is hexadecimal; raises `InvalidParameter`."""
    if digest is None:
        return None
    try:
        return bytes.fromhex(digest).hex()
    except (TypeError, ValueError):
        raise InvalidParameter("digest", "hexadecimal digits, two for each byte", shown(digest)) from None


def bound_digest(digest: str | None, key: str | None) -> str | None:
    """Return `check_digest` of `digest`. Raises `InvalidParameter` also without a key, to which it could be bound."""
    found = check_digest(digest)
    if found is not None and key is None:
        expected = "left out without a key, because it binds the report to the key"
        raise InvalidParameter("digest", expected, shown(digest), hint="Give a key too.")
    return found
