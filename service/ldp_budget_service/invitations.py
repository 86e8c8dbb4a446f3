"""Invitations: signed links by which respondents of a collection report without an API key.

A token names its user, collection and round, and the times when it was made and when it expires. It is signed with
the active secret of the ledger key. So the ledger stores nothing about an invitation, however many there are. Only
a revocation is stored, as a record. Every holder of a token can use it: transmit it like a password.

After a key rotation, tokens signed earlier stay valid, because they have been sent. A holder of the old secret can
sign such tokens too, with any date. So a revocation under a newer secret covers everything that an older secret has
signed.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget._dataframes import check_texts
from ldp_budget._files import canonical_json
from ldp_budget._validation import ONE_USER, check_name, check_text, check_user, shown
from ldp_budget.accounting.admin_records import INVITATIONS_REVOKED
from ldp_budget.accounting.ledger_maintenance import digest_under
from ldp_budget.errors import InvalidParameter

from .admin_log_projection import FRESH_SECONDS, Projection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.accounting.admin_log import Record

MOST_TEXT = 500
"""Maximum number of characters of a user's name and of a round's name, as they are part of a link."""

_MOST_TOKEN = 10_000
_EVERYBODY = ""


@dataclass(frozen=True)
class Invitation:
    """Permission for `user` to send one report for a round of `collection`, before `expires`.

    `key` is the idempotency key of that report. It is the same for all invitations of a user to the same round. So
    each user sends one report in a round, even if a link was sent twice.
    """

    collection: str
    user: str
    round: str
    made: datetime
    expires: datetime
    key: str

    def __repr__(self) -> str:
        # Without the user: the text may end up in a log.
        return f"<Invitation to {self.collection}, expires {self.expires.isoformat()}>"


class _End(NamedTuple):
    """The time of a revocation, and the number of the ledger key's secret at that time."""

    at: datetime
    secret: int


class _Revoked(NamedTuple):
    """The newest revocations, by collection and by a digest of the user, or "" for all users."""

    until: Mapping[tuple[str, str], _End]


def _follow(revoked: _Revoked, record: Record) -> _Revoked:
    if record.kind != INVITATIONS_REVOKED:
        return revoked
    # An unreadable record revokes the invitations of all users, because its user is unknown.
    body: Mapping[str, Any] = {"user": _EVERYBODY} if record.fault is not None else record.body
    whom, end = (record.name, body["user"]), _End(record.at, body.get("secret", 1))
    before = revoked.until.get(whom, end)
    return _Revoked({**revoked.until, whom: _End(max(before.at, end.at), max(before.secret, end.secret))})


class Invitations:
    """The invitations to the collections of a ledger.

    A revocation by another process takes effect here after `fresh` seconds at the latest, see `Projection`.

    Parameters:
        accountant: the accountant of the ledger.
        fresh: in seconds; 0 queries the ledger each time.
    """

    def __init__(self, accountant: Accountant, *, fresh: float = FRESH_SECONDS) -> None:
        self._accountant, self._ledger = accountant, accountant._ledger
        self._revoked = Projection(accountant, _Revoked({}), _follow, fresh=fresh)

    def __repr__(self) -> str:
        return f"<Invitations of {self._accountant.name}>"

    def invite(
        self, collection: str, users: Iterable[str], expires: datetime, *, round: str = ""
    ) -> Iterator[tuple[str, str]]:
        """Invite users to a collection. Nothing is written, and no user is charged.

        Parameters:
            collection: the name of a collection of the ledger.
            users: the users to invite, a stream of any length.
            expires: the time until which they may report, an aware datetime.
            round: the name of the round; each user may report once in each round.

        Returns:
            For each user, in order, the name and a token.

        Raises:
            UnknownName: the ledger does not have this collection.
            InvalidParameter: an argument has the wrong type, or `expires` is in the past.
        """
        self._accountant.collection(collection)
        _short("round", round, least=0)
        if not isinstance(expires, datetime) or expires.utcoffset() is None:
            raise InvalidParameter("expires", "a datetime with a time zone", shown(expires))
        now = self._accountant.now()
        if expires <= now:
            raise InvalidParameter("expires", f"later than now, {now.isoformat()}", expires.isoformat())
        until = expires.astimezone(UTC)
        secret = self._ledger.key.in_use.number
        invited = check_texts("users", users, "a list of user names", ONE_USER)
        return (
            (user, self._write(Invitation(collection, _user(user), round, now, until, ""), secret))
            for user in invited
        )

    def find(self, token: str) -> Invitation | None:
        """The invitation of a token; None for an invalid, expired or revoked token.

        Parameters:
            token: the text to check.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        until = self._revoked.known().until
        found = self._read(token)
        if found is None or self._accountant.now() >= found[0].expires:
            return None
        read, signed = found
        secrets = range(1, self._ledger.key.in_use.number + 1)
        for whom in (_EVERYBODY, *(self._whom(read.collection, read.user, secret) for secret in secrets)):
            end = until.get((read.collection, whom))
            if end is not None and (read.made <= end.at or signed < end.secret):
                return None
        return read

    def is_fresh(self) -> bool:
        """True if `find`, called now, returns without a query of the ledger."""
        return self._revoked.is_fresh()

    def revoke(self, collection: str, user: str | None = None) -> None:
        """Revoke the invitations to a collection that were made so far. Later invitations are valid.

        Parameters:
            collection: the name of a collection of the ledger.
            user: the user whose invitations to revoke; None for all users.

        Raises:
            UnknownName: the ledger does not have this collection.
            InvalidParameter: an argument is not a text.
        """
        self._accountant.collection(collection)
        secret = self._ledger.key.in_use.number
        whom = _EVERYBODY if user is None else self._whom(collection, _user(user), secret)
        under = {} if secret == 1 else {"secret": secret}
        self._revoked.append(lambda _: (INVITATIONS_REVOKED, collection, {"user": whom, **under}))

    # -- tokens -----------------------------------------------------------------------------------------------

    def _write(self, invitation: Invitation, secret: int) -> str:
        said = [
            *(invitation.collection, invitation.user, invitation.round),
            *(_micros(invitation.made), _micros(invitation.expires)),
        ]
        content = _text_of(canonical_json(said).encode())
        return f"{content}.{self._signature(content, secret)}"

    def _read(self, token: str) -> tuple[Invitation, int] | None:
        """The invitation in a token signed with this ledger's key, and the number of the secret; otherwise None."""
        if not isinstance(token, str) or len(token) > _MOST_TOKEN or not token.isascii():
            return None
        content, _, signature = token.partition(".")
        secrets = range(self._ledger.key.in_use.number, 0, -1)
        signed = [number for number in secrets if compare_digest(signature, self._signature(content, number))]
        if not signed:
            return None
        try:
            collection, user, round, made, expires = json.loads(_bytes_of(content))
        except (binascii.Error, ValueError):
            return None
        # Always with the first secret: each user sends one report in a round, even across key rotations.
        key = self._digest(1, "report", collection, user, round)
        return Invitation(collection, user, round, _moment(made), _moment(expires), key), signed[0]

    def _signature(self, content: str, secret: int) -> str:
        return _text_of(bytes.fromhex(self._digest(secret, "token", content)))

    def _whom(self, collection: str, user: str, secret: int) -> str:
        """A digest of a user for a record. Without the ledger key it does not reveal the user."""
        return self._digest(secret, "user", collection, user)

    def _digest(self, secret: int, purpose: str, *texts: str) -> str:
        data = canonical_json(["ldp-budget invitation 1", purpose, *texts]).encode()
        return digest_under(self._ledger, secret, data)


def invite(
    accountant: Accountant, collection: str, users: Iterable[str], expires: datetime, *, round: str = ""
) -> Iterator[tuple[str, str]]:
    """Invite users to a collection of a ledger, see `Invitations.invite`.

    Parameters:
        accountant: the accountant of the ledger.
        collection: as there.
        users: as there.
        expires: as there.
        round: as there.

    Returns:
        For each user, in order, the name and a token.

    Raises:
        UnknownName: the ledger does not have this collection.
        InvalidParameter: an argument has the wrong type, or `expires` is in the past.
    """
    return Invitations(accountant).invite(collection, users, expires, round=round)


def read(accountant: Accountant, token: str) -> Invitation | None:
    """The invitation of a token, see `Invitations.find`.

    Parameters:
        accountant: the accountant of the ledger.
        token: as there.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    return Invitations(accountant, fresh=0).find(token)


def _short(option: str, text: str, least: int = 1) -> str:
    """Return a text that is short enough for a link."""
    found = check_text(option, text) if least else check_name(option, text)
    if len(found) > MOST_TEXT:
        raise InvalidParameter(option, f"at most {MOST_TEXT} characters long", f"{len(found)} characters")
    return found


def _user(name: str) -> str:
    """A user's name as the ledger stores it, if it is short enough for a link."""
    return _short("user", check_user(name))


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _text_of(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes_of(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
