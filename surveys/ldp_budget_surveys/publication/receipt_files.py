"""Receipts of a charged release: each report is stored in the ledger with its charge, and its respondent gets a file.

A receipt is a JSON file with the secret of the respondent's marks, her report, her costs, and the signed promise of the
limit. With it she checks a publication. The ledger gets the two marks, and never the secret. The secrets are derived
from the seed of the run, which is deleted with `OUT.partial`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_budget._files import PRIVATE, alone_in
from ldp_budget._validation import check_instance, check_path
from ldp_budget.accounting.accountant import Accountant
from ldp_budget.errors import InvalidParameter, ReportFileError
from ldp_budget.reports.inbox import Inbox, Marks, Sent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ldp_budget.registry.collections import Collection

RECEIPT_FORMAT = "ldp-budget receipt"
_SAFE = re.compile(r"[A-Za-z0-9_@+][A-Za-z0-9_@+.-]{0,99}")


class Receipts:
    """The folder of the receipts of one run. A receipt is `USER.json`; an unsafe name is replaced by its hash.

    Raises `InvalidParameter` for an accountant that is not local, and for a user who appears twice. Raises
    `PublicationError` if the policy has no lifetime limit that a receipt can promise, and `NotSupported` if the
    mechanism has no client program or the package cryptography is missing.
    """

    def __init__(
        self, folder: Any, collection: Collection, accountant: Any, policy: str, users: Sequence[str]
    ) -> None:
        expected = "an `Accountant`: receipts need a local ledger"
        self._accountant = check_instance("accountant", accountant, Accountant, expected)
        if len(set(users)) != len(users):
            twice = next(user for place, user in enumerate(users) if user in users[:place])
            raise InvalidParameter(
                "users", "users that appear once, because each gets one receipt", f"{twice!r} twice"
            )
        self._folder, self._users = check_path("receipts", folder), users
        self._box = Inbox(accountant, collection, policy=policy)
        digest = collection.definition()["digest"]
        promise = accountant.books.promise(collection.name, digest, policy)
        self._common = {"format": RECEIPT_FORMAT, "version": 1, "collection": collection.name, "client": digest}
        self._promise = {"promise": promise}

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Create the folder, and let no other process write receipts to it."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = f"the folder cannot be created: {error.strerror}."
            raise ReportFileError(str(self._folder), why, hint="Name another folder for the receipts.") from None
        with alone_in(self._folder):
            yield

    def sync(self) -> None:
        """Make all written receipts durable. Windows has no such call: `_write` syncs each there."""
        if hasattr(os, "sync"):
            os.sync()

    def check_free(self) -> None:
        """Raise `ReportFileError` if a receipt exists."""
        for path in map(self._path, range(len(self._users))):
            if path.exists():
                why = "it already exists. Nothing was charged."
                raise ReportFileError(str(path), why, hint="Name another folder for the receipts.")

    def charge(
        self, run: str, seed: bytes, start: int, reports: NDArray[Any], labels: Sequence[str | None]
    ) -> list[int]:
        """Charge the users from `start` on and store their reports; return the places of the accepted, with receipts."""
        rows = self._box.bytes_of(reports)
        secrets = [_secret(seed, start + place) for place in range(len(rows))]
        sent = [
            Sent(self._users[start + place], f"{run}/{start + place}", row, labels[place], Marks.of(secrets[place]))
            for place, row in enumerate(rows)
        ]
        for row in rows:  # before any of them is charged
            self._box.check(row)
        taken, refused = self._box.take_many(sent)
        for each in refused:
            if each.error is not None:
                raise each.error
        over = {each.index for each in refused}
        accepted = [place for place in range(len(sent)) if place not in over]
        costs = self._accountant.books.costs_of([receipt.receipt or "" for receipt in taken])
        for place, cost in zip(accepted, costs, strict=True):
            own = {"secret": secrets[place].hex(), "report": rows[place].hex(), "costs": cost._asdict()}
            self._write(
                start + place, json.dumps({**self._common, **own, **self._promise}, indent=2).encode() + b"\n"
            )
        return accepted

    def _path(self, place: int) -> Path:
        user = self._users[place]
        name = (
            user if _SAFE.fullmatch(user) else hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        )
        return self._folder / f"{name}.json"

    def _write(self, place: int, content: bytes) -> None:
        """Write a receipt that only its owner can read."""
        descriptor = os.open(self._path(place), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if not hasattr(os, "sync"):
                file.flush()
                os.fsync(file.fileno())


def _secret(seed: bytes, place: int) -> bytes:
    """Return the secret of a respondent's marks."""
    return hashlib.blake2b(place.to_bytes(8, "big"), key=seed, digest_size=16).digest()
