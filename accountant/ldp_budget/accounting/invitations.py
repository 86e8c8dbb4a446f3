"""Invitations: signed links by which respondents of a collection report without an API key.

A token says for whom it is, for which collection and round, when it was made and until when it is good, and is signed
by the secret in force of the ledger's key. So nothing is stored of an invitation, however many there are; that some
are good no more is a record. Whoever has a token may do what it is for: it is to travel like a password.

When the key is exchanged, what was signed before stays good, for it has been sent. Who has the old secret can sign
such tokens too, dated as they like; so what is revoked under a newer secret is all that an older one has signed.
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

from .._dataframes import check_texts
from .._files import canonical_json
from .._validation import check_name, check_text, check_user, shown
from ..errors import InvalidParameter
from .admin_records import INVITATIONS_REVOKED
from .ledger_operations import digest_under, newest_secret, secret_in_force
from .projection import FRESH_SECONDS, Projection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .accountant import Accountant
    from .admin_log import Record

MOST_TEXT = 500
"""How many characters the name of a user and that of a round may have, as they are part of a link."""

_MOST_TOKEN = 10_000
_EVERYBODY = ""


@dataclass(frozen=True)
class Invitation:
    """That `user` may send one report for a round of `collection`, before `expires`.

    `key` is the idempotency key of that report, whichever of the invitations to the same round is used: so there is
    one report of each user in a round, though a link was sent twice.
    """

    collection: str
    user: str
    round: str
    made: datetime
    expires: datetime
    key: str

    def __repr__(self) -> str:
        # Not for whom: it may end up in a log.
        return f"<Invitation to {self.collection}, expires {self.expires.isoformat()}>"


class _End(NamedTuple):
    """When invitations were revoked, and under which secret of the ledger's key."""

    at: datetime
    secret: int


class _Revoked(NamedTuple):
    """Until when invitations were revoked, by collection and by a digest of the user, or for everybody."""

    until: Mapping[tuple[str, str], _End]


def _follow(revoked: _Revoked, record: Record) -> _Revoked:
    if record.kind != INVITATIONS_REVOKED:
        return revoked
    # A record that cannot be read ends the invitations of all users: whose it was to end is unknown.
    body: Mapping[str, Any] = {"user": _EVERYBODY} if record.fault is not None else record.body
    whom, end = (record.name, body["user"]), _End(record.at, body.get("secret", 1))
    before = revoked.until.get(whom, end)
    return _Revoked({**revoked.until, whom: _End(max(before.at, end.at), max(before.secret, end.secret))})


class Invitations:
    """The invitations to the collections of a ledger.

    What another process revokes is known here `fresh` seconds later at the latest, see `Projection`.

    Parameters:
        accountant: of the ledger.
        fresh: in seconds; 0 asks the ledger each time.
    """

    def __init__(self, accountant: Accountant, *, fresh: float = FRESH_SECONDS) -> None:
        self._accountant, self._ledger = accountant, accountant._ledger
        self._revoked = Projection(accountant, _Revoked({}), _follow, fresh=fresh)

    def __repr__(self) -> str:
        return f"<Invitations of {self._accountant.name}>"

    def invite(
        self, collection: str, users: Iterable[str], expires: datetime, *, round: str = ""
    ) -> Iterator[tuple[str, str]]:
        """Invite users to a collection; nothing is written, and nobody is charged.

        Parameters:
            collection: the name of a collection of the ledger.
            users: whom, a stream of any length.
            expires: until when they may report, an aware datetime.
            round: which time it is asked; each user may report once in each round.

        Returns:
            For each user, in order, the name and a token.

        Raises:
            UnknownName: the ledger does not have this collection.
            InvalidParameter: one of them is of another kind, or `expires` is over already.
        """
        self._accountant.collection(collection)
        _short("round", round, least=0)
        if not isinstance(expires, datetime) or expires.utcoffset() is None:
            raise InvalidParameter("expires", "an aware datetime", shown(expires))
        now = self._accountant.now()
        if expires <= now:
            raise InvalidParameter("expires", f"a moment after now, {now.isoformat()}", expires.isoformat())
        until = expires.astimezone(UTC)
        secret = secret_in_force(self._ledger)
        invited = check_texts("users", users, "many users; a single text would be read letter by letter")
        return (
            (user, self._write(Invitation(collection, _user(user), round, now, until, ""), secret))
            for user in invited
        )

    def find(self, token: str) -> Invitation | None:
        """The invitation of a token; None of anything that is none of this ledger's, and of one that is over.

        Parameters:
            token: what somebody says is one.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        until = self._revoked.known().until  # first: it may be told there that the ledger's key was exchanged
        found = self._read(token)
        if found is None or self._accountant.now() >= found[0].expires:
            return None
        read, signed = found
        secrets = range(1, newest_secret(self._ledger) + 1)
        for whom in (_EVERYBODY, *(self._whom(read.collection, read.user, secret) for secret in secrets)):
            end = until.get((read.collection, whom))
            if end is not None and (read.made <= end.at or signed < end.secret):
                return None
        return read

    def is_fresh(self) -> bool:
        """Whether `find`, called at once, answers without a look at the ledger."""
        return self._revoked.is_fresh()

    def revoke(self, collection: str, user: str | None = None) -> None:
        """End the invitations to a collection that were made so far; later ones are good again.

        Parameters:
            collection: the name of a collection of the ledger.
            user: whose; None for everybody's.

        Raises:
            UnknownName: the ledger does not have this collection.
            InvalidParameter: one of them is no text.
        """
        self._accountant.collection(collection)
        secret = secret_in_force(self._ledger)
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
        """What a token says, if it was signed here, and by which secret."""
        if not isinstance(token, str) or len(token) > _MOST_TOKEN or not token.isascii():
            return None
        content, _, signature = token.partition(".")
        secrets = range(newest_secret(self._ledger), 0, -1)
        signed = [number for number in secrets if compare_digest(signature, self._signature(content, number))]
        if not signed:
            return None
        try:
            collection, user, round, made, expires = json.loads(_bytes_of(content))
        except (binascii.Error, ValueError):
            return None
        # By the first secret, always: there is one report of each user in a round, though the key is exchanged.
        key = self._digest(1, "report", collection, user, round)
        return Invitation(collection, user, round, _moment(made), _moment(expires), key), signed[0]

    def _signature(self, content: str, secret: int) -> str:
        return _text_of(bytes.fromhex(self._digest(secret, "token", content)))

    def _whom(self, collection: str, user: str, secret: int) -> str:
        """A user in a record, where nobody without the ledger's key can tell who it is."""
        return self._digest(secret, "user", collection, user)

    def _digest(self, secret: int, purpose: str, *texts: str) -> str:
        data = canonical_json(["ldp-budget invitation 1", purpose, *texts]).encode()
        return digest_under(self._ledger, secret, data)


def invite(
    accountant: Accountant, collection: str, users: Iterable[str], expires: datetime, *, round: str = ""
) -> Iterator[tuple[str, str]]:
    """`Invitations.invite`, of a ledger.

    Parameters:
        accountant: of the ledger.
        collection: as there.
        users: as there.
        expires: as there.
        round: as there.

    Returns:
        For each user, in order, the name and a token.

    Raises:
        UnknownName: the ledger does not have this collection.
        InvalidParameter: one of them is of another kind, or `expires` is over already.
    """
    return Invitations(accountant).invite(collection, users, expires, round=round)


def read(accountant: Accountant, token: str) -> Invitation | None:
    """`Invitations.find`, of a ledger.

    Parameters:
        accountant: of the ledger.
        token: as there.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    return Invitations(accountant, fresh=0).find(token)


def _short(option: str, text: str, least: int = 1) -> str:
    """A text that may stand in a link."""
    found = check_text(option, text) if least else check_name(option, text)
    if len(found) > MOST_TEXT:
        raise InvalidParameter(option, f"at most {MOST_TEXT} characters", len(found))
    return found


def _user(name: str) -> str:
    """A user's name as the ledger knows it, if it may stand in a link."""
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
