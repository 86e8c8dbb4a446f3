"""API keys: access to a ledger from another machine, with scopes, an optional sub-limit and an expiry.

An API key is a name with one secret, or with two secrets during a rotation. Keys are records of the administrative
log. The ledger stores only the SHA-256 hash of a secret. A fast hash is enough, because a secret is 32 random bytes
and cannot be found by trial.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget._validation import check_many, check_text, shown
from ldp_budget.accounting.admin_records import ADMIN, KEY, KEY_NAME, KEY_REVOKED, SCOPES, moment_of, sets_limits
from ldp_budget.accounting.charge_request import Principal
from ldp_budget.errors import InvalidParameter, LedgerError, NameTaken, UnknownName
from ldp_budget.ledger.calendar import utc_text

from .admin_log_projection import FRESH_SECONDS, Projection, RecordLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ldp_budget.accounting.admin_log import Record


PENDING, ACTIVE, EXPIRED, REVOKED = "pending", "active", "expired", "revoked"

PREFIX = "ldpb_"
"""The prefix of every secret, so that scanners find a leaked one."""
OVERLAP = timedelta(days=7)
"""The default grace period in which the old secret stays valid after a rotation."""

_SECRET_BYTES = 32
_NAME_EXPECTED = "1 to 64 ASCII letters, digits and . _ @ -, with a letter or a digit first"


@dataclass(frozen=True)
class ApiKey:
    """One secret of an API key, and the permissions that it has.

    `number` is the number of the record that made it. `name` is the name of its holder, before and after a rotation.
    `policies` and `collections` are the only ones that it may use, None for all. If it has a `share`, its charges
    must fit that sub-limit too. It is valid from `starts`, None for at once, and before `expires`, None for no end.
    `made` is the time at which it was made, and `by` the name of the key that made it, None for none.
    """

    number: int
    name: str
    scopes: tuple[str, ...]
    policies: tuple[str, ...] | None
    collections: tuple[str, ...] | None
    share: str | None
    starts: datetime | None
    expires: datetime | None
    made: datetime
    by: str | None
    revoked: datetime | None = None

    def __repr__(self) -> str:
        return f"<ApiKey {self.name}, number {self.number}: {', '.join(self.scopes)}>"

    @property
    def caller(self) -> Principal:
        """The holder of the key, for `Accountant.acting_for`."""
        return Principal(self.number, self.name, self.share)

    def state(self, now: datetime) -> str:
        """The state of the key: `pending`, `active`, `expired` or `revoked`.

        Parameters:
            now: an aware datetime.
        """
        if self.revoked is not None:
            return REVOKED
        if self.expires is not None and now >= self.expires:
            return EXPIRED
        return PENDING if self.starts is not None and now < self.starts else ACTIVE

    def allows(self, scope: str, *, policy: str | None = None, collection: str | None = None) -> bool:
        """True if the key permits this use.

        Parameters:
            scope: one of `SCOPES`.
            policy: the policy that it would be used with; None if no policy is involved.
            collection: the collection that it would be used with; None if no collection is involved.

        Returns:
            True if the scope, the policy and the collection are permitted. Neither the state nor the time is checked.

        Raises:
            InvalidParameter: `scope` is not one of `SCOPES`.
        """
        if scope not in SCOPES:
            raise InvalidParameter("scope", f"one of {', '.join(SCOPES)}", shown(scope))
        if scope not in self.scopes and ADMIN not in self.scopes:
            return False
        if policy is not None and self.policies is not None and policy not in self.policies:
            return False
        return collection is None or self.collections is None or collection in self.collections

    def to_json(self, now: datetime) -> dict[str, Any]:
        """A JSON object of everything except the secret, which is not stored.

        Parameters:
            now: the time for which `state` is given.
        """
        return {
            "name": self.name,
            "number": self.number,
            "state": self.state(now),
            "scopes": list(self.scopes),
            "policies": None if self.policies is None else list(self.policies),
            "collections": None if self.collections is None else list(self.collections),
            "share": self.share,
            "starts": _iso(self.starts),
            "expires": _iso(self.expires),
            "made": _iso(self.made),
            "by": self.by,
            "revoked": _iso(self.revoked),
        }


class _Keys(NamedTuple):
    """All keys: by name, with the secrets of one name in the order of creation; and by the hashes of the secrets."""

    by_name: Mapping[str, tuple[ApiKey, ...]]
    hashes: Mapping[int, bytes]
    """The hash of each secret, by the number of the key."""
    found_by: Mapping[bytes, tuple[bytes, ApiKey]]
    """The whole hash and the key, by the first bytes of the hash."""


_NONE = _Keys({}, {}, {})
_FIRST_BYTES = 8


def _follow(keys: _Keys, record: Record) -> _Keys:
    """Return the keys after one more record."""
    if record.kind not in (KEY, KEY_REVOKED):
        return keys
    mine = keys.by_name.get(record.name, ())
    hashes = dict(keys.hashes)
    if record.kind == KEY_REVOKED:  # with any body
        mine = tuple(replace(key, revoked=key.revoked or record.at) for key in mine)
    else:
        if record.fault is not None or any(key.revoked is not None for key in mine):
            return keys  # it makes no key, and a name that was revoked stays so
        made, hashed, until = _made(record), bytes.fromhex(record.body["hash"]), moment_of(record.body["until"])
        if until is not None:
            mine = tuple(
                replace(key, expires=until if key.expires is None else min(key.expires, until)) for key in mine
            )
        mine, hashes[made.number] = (*mine, made), hashed
    by_name = {**keys.by_name, record.name: mine}
    changed = {hashes[key.number][:_FIRST_BYTES]: (hashes[key.number], key) for key in mine}
    return _Keys(by_name, hashes, {**keys.found_by, **changed})


def _made(record: Record) -> ApiKey:
    body = record.body
    return ApiKey(
        number=record.number,
        name=record.name,
        scopes=tuple(body["scopes"]),
        policies=None if body["policies"] is None else tuple(body["policies"]),
        collections=None if body["collections"] is None else tuple(body["collections"]),
        share=body["share"],
        starts=moment_of(body["starts"]),
        expires=moment_of(body["expires"]),
        made=record.at,
        by=record.by,
    )


class ApiKeys:
    """The API keys of a ledger.

    A change by another process is visible here after at most `fresh` seconds. A change through the same accountant is
    visible at once, see `Projection`.

    Parameters:
        accountant: of the ledger. With `acting_for`, the records name its caller.
        fresh: in seconds; 0 queries the ledger on every call.
    """

    def __init__(self, accountant: RecordLog, *, fresh: float = FRESH_SECONDS) -> None:
        self._accountant = accountant
        self._keys = Projection(accountant, _NONE, _follow, fresh=fresh)

    def __repr__(self) -> str:
        return f"<ApiKeys of {self._accountant.name}>"

    def create(
        self,
        name: str,
        scopes: Iterable[str],
        *,
        policies: Iterable[str] | None = None,
        collections: Iterable[str] | None = None,
        share: str | None = None,
        starts: datetime | None = None,
        expires: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """Create an API key.

        Parameters:
            name: the name of the holder; no other key has or ever had it.
            scopes: the permissions of the key, some of `SCOPES`.
            policies: the policies that it may use; None for all.
            collections: the collections that it may use; None for all.
            share: the sub-limit that its charges must fit as well. Not with the scopes `policy` and `admin`, which
                could raise the sub-limit.
            starts: the time from which it is valid, an aware datetime; None for at once.
            expires: the time at which it ends, exclusive; None for no end.

        Returns:
            The key, and its secret. The secret is stored nowhere: note it now.

        Raises:
            NameTaken: a key has or had this name.
            InvalidParameter: an argument has the wrong type or is out of range, or the key would have expired
                already.
        """
        if not isinstance(name, str) or not KEY_NAME.fullmatch(name):
            raise InvalidParameter("name", _NAME_EXPECTED, shown(name))
        granted = _scopes(scopes)
        if share is not None and sets_limits(granted):
            raise InvalidParameter(
                "share", "left out with the scopes policy and admin, which can set limits", shown(share)
            )
        body = {
            "scopes": granted,
            "policies": _some("policies", policies),
            "collections": _some("collections", collections),
            "share": None if share is None else check_text("share", share),
            "until": None,
        }

        def decide(keys: _Keys) -> None:
            if name in keys.by_name:
                raise NameTaken("API key", name, "exists or existed. No key was made.", hint="Choose another name.")

        return self._make(name, decide, lambda keys: body, starts, expires)

    def rotate(
        self,
        name: str,
        *,
        overlap: timedelta = OVERLAP,
        starts: datetime | None = None,
        expires: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """Give a key a second secret, with the same name and permissions; the first secret ends after the overlap.

        Parameters:
            name: of the key.
            overlap: the longest time for which earlier secrets stay valid, from `starts` or else from now.
            starts: the time from which the new secret is valid; None for at once.
            expires: the time at which the new secret ends, exclusive; None for no end.

        Returns:
            The key with the new secret, and that secret.

        Raises:
            UnknownName: no key has this name, or the key was revoked.
            InvalidParameter: an argument has the wrong type or is out of range.
        """
        if not isinstance(overlap, timedelta) or not timedelta(0) <= overlap <= timedelta(days=3660):
            raise InvalidParameter("overlap", "a timedelta from 0 to 3660 days", shown(overlap))

        def check(keys: _Keys) -> None:
            self._of(keys, name)

        def body(keys: _Keys) -> dict[str, Any]:
            newest = self._of(keys, name)[-1]
            return {
                "scopes": list(newest.scopes),
                "policies": newest.policies and list(newest.policies),
                "collections": newest.collections and list(newest.collections),
                "share": newest.share,
                "until": _iso((starts or self._accountant.now()) + overlap),
            }

        return self._make(name, check, body, starts, expires)

    def record(self, name: str, body: dict[str, Any] | None, *, expected: int) -> Record:
        """Add a record that makes or revokes a key, as a client on another machine composed it.

        Parameters:
            name: of the key.
            body: the body of the record that makes a key, with the hash of its secret; None to revoke the key.
            expected: the number of the newest record that the client knows.

        Returns:
            The record.

        Raises:
            RecordConflict: the log has a newer record. Nothing was changed.
            NameTaken: a key with this name was revoked.
            UnknownName: the key to revoke does not exist, or was revoked before.
            ApprovalConflict: the holder of a key makes a key while the ledger demands approvals.
            InvalidParameter: an argument has the wrong type, or the body does not describe a key.
        """
        keys, _ = self._keys.now()
        if body is None:
            self._of(keys, name)
        elif any(key.revoked is not None for key in keys.by_name.get(name, ())):
            raise NameTaken("API key", name, "was revoked", hint="Choose another name.")
        kind = KEY_REVOKED if body is None else KEY
        return self._accountant._record_own(kind, name, body or {}, expected=expected, remote=True)

    def _make(
        self, name: str, check: Any, body: Any, starts: datetime | None, expires: datetime | None
    ) -> tuple[ApiKey, str]:
        starts, expires = _aware("starts", starts), _aware("expires", expires)
        if expires is not None and expires <= (starts or self._accountant.now()):
            raise InvalidParameter("expires", "later than the start of the key", expires.isoformat())
        secret = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        times = {"starts": _iso(starts), "expires": _iso(expires)}

        def decide(keys: _Keys) -> tuple[str, str, dict[str, Any]]:
            check(keys)
            return KEY, name, {**body(keys), **times, "hash": sha256(secret.encode()).hexdigest()}

        return _made(self._keys.append(decide)), secret

    def all(self) -> list[ApiKey]:
        """All keys, also revoked and expired ones, in the order of creation.

        Raises:
            LedgerError: the ledger cannot be opened, read or trusted.
        """
        keys, _ = self._keys.now()
        return sorted((key for mine in keys.by_name.values() for key in mine), key=lambda key: key.number)

    def revoke(self, name: str) -> None:
        """Revoke a key with all of its secrets, permanently. Earlier charges by the key stay charged.

        Parameters:
            name: of the key.

        Raises:
            UnknownName: no key has this name, or the key was revoked before.
        """

        def decide(keys: _Keys) -> tuple[str, str, dict[str, Any]]:
            self._of(keys, name)
            return KEY_REVOKED, name, {}

        self._keys.append(decide)

    def find(self, secret: str, *, offline: bool = False, ended: bool = False) -> ApiKey | None:
        """The key of a secret, if it is active; None for anything else.

        The lookup uses the first bytes of the hash of the secret, which reveal nothing about other secrets. The whole
        hash is compared in constant time.

        Parameters:
            secret: the presented secret.
            offline: True to look among the last known keys if the ledger cannot be read. A key that was revoked
                since then is still found.
            ended: True to return a key that is not active too, such as an expired one. Check its `state` then.

        Raises:
            LedgerError: the ledger cannot be opened, read or trusted, and `offline` is False.
        """
        if not isinstance(secret, str) or not secret.startswith(PREFIX) or len(secret) > 100:
            return None
        hashed = sha256(secret.encode("utf-8", "surrogatepass")).digest()
        try:
            keys = self._keys.known()
        except LedgerError:
            if not offline:
                raise
            keys = self._keys.last_known()
        expected, key = keys.found_by.get(hashed[:_FIRST_BYTES], (b"", None))
        if key is None or not compare_digest(hashed, expected):
            return None
        return key if ended or key.state(self._accountant.now()) == ACTIVE else None

    def is_fresh(self) -> bool:
        """True if an immediate `find` needs no query of the ledger, so that it returns without waiting.

        Returns:
            True if the known records are fresh enough.
        """
        return self._keys.is_fresh()

    def refresh_if_stale(self) -> None:
        """Query the ledger if the next `find` would have to; call it from a thread that can wait.

        Raises:
            LedgerError: the ledger cannot be opened, read or trusted.
        """
        self._keys.refresh_if_stale()

    def _of(self, keys: _Keys, name: str) -> tuple[ApiKey, ...]:
        """Return the secrets of a key that was not revoked. Raises `UnknownName`."""
        mine = keys.by_name.get(check_text("name", name), ())
        if not mine or mine[-1].revoked is not None:
            there = [other for other, them in keys.by_name.items() if them[-1].revoked is None]
            raise UnknownName("API key", name, there, why=f"API key {name!r} is already revoked" if mine else "")
        return mine


def _scopes(scopes: Iterable[str]) -> list[str]:
    expected = f"some of {', '.join(SCOPES)}"
    given = list(check_many("scopes", scopes, expected))
    if not given or any(scope not in SCOPES for scope in given):
        raise InvalidParameter("scopes", expected, shown(given))
    return [scope for scope in SCOPES if scope in given]


def _some(option: str, names: Iterable[str] | None) -> list[str] | None:
    """Return sorted names, at least one, or None."""
    if names is None:
        return None
    expected = "None (for all), or a list of at least one name"
    given = sorted({check_text(option, name) for name in check_many(option, names, expected)})
    if not given:
        raise InvalidParameter(option, expected, "an empty list")
    return given


def _aware(option: str, moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise InvalidParameter(option, "a datetime with a time zone, or None", shown(moment))
    return moment.astimezone(UTC)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else utc_text(moment.astimezone(UTC))
