"""Charged release with receipts: each report is charged and stored in the ledger, and its respondent gets a receipt.

A receipt is a JSON file with the secret of the respondent's marks, her report, her costs, and the signed promise of the
limit. With it she checks a publication. The ledger gets the two marks, and never the secret.

To resume an interrupted run, run it again with the same input and the same folder. The folder then has the seed of the
secrets and the drawn reports, so no report is drawn twice for one charge. Both are deleted when the run is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets as random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files import PRIVATE, alone_in, canonical_json, replacing
from .._validation import check_instance, check_name, check_user
from ..accounting.accountant import Accountant
from ..errors import InvalidParameter, ReportFileError
from ..sampling.memoisation import secrets_for_each
from .charged_release import Released, check_out, check_released, input_digest, labels_of
from .inbox import Inbox, Marks, Sent
from .parquet import writer_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ..accounting.receipts import Receipt
    from ..registry.collections import Collection

RECEIPT_FORMAT = "ldp-budget receipt"
_BATCH = 1000
_SAFE = re.compile(r"[A-Za-z0-9_@+][A-Za-z0-9_@+.-]{0,99}")


def release_with_receipts(
    out: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    collection: Collection,
    accountant: Accountant,
    values: NDArray[Any],
    users: Sequence[str],
    *,
    policy: str,
    secrets: Any = None,
    on_batch: Callable[[int], None] = lambda users: None,
    on_refused: Callable[[list[str]], None] = lambda users: None,
) -> Released:
    """Charge users, store their reports in the ledger, write them to a file, and write a receipt for each.

    Parameters:
        out: the path of the report file.
        folder: the folder of the receipts, which is created. A receipt is `USER.json`; a user name that is not a safe
            file name is replaced by its hash.
        collection: the collection of the reports.
        accountant: the accountant of a local ledger.
        values: one value for each user, as `collection.read_values` returns them.
        users: the users to charge, each once.
        policy: the name of the policy to charge against.
        secrets: one secret for each user, for mechanisms that memoise.
        on_batch: called with the number of users after each batch.
        on_refused: called before `on_batch` with the refused users of the batch.

    Returns:
        The number of written reports and the number of refused users.

    Raises:
        ReportFileError: `out` or a receipt exists, or the folder has an interrupted run with other input. Nothing was
            charged.
        InvalidParameter: an argument has the wrong type, or a user appears twice. Nothing was charged.
        UnknownName: the policy does not exist.
        PublicationError: the policy has no lifetime limit that a receipt can promise. Nothing was charged.
        NotSupported: the mechanism has no client program, or the package cryptography is missing.
    """
    check_instance("accountant", accountant, Accountant, "an `Accountant`: receipts need a local ledger")
    given = check_released(collection, accountant, values, users)
    users = [check_user(user) for user in given]
    if len(set(users)) != len(users):
        twice = next(user for place, user in enumerate(users) if user in users[:place])
        raise InvalidParameter("users", "users that appear once, because each gets one receipt", f"{twice!r} twice")
    check_name("policy", policy)
    drawn_from = None if secrets is None else secrets_for_each(secrets, len(values))
    box = Inbox(accountant, collection, policy=policy)
    promise = accountant.books.promise(collection.name, collection.definition()["digest"], policy)
    out, folder = check_out(out), Path(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = accountant.keyed_digest(input_digest(values, users, policy, True))
    labels = labels_of(collection, values, drawn_from)
    with alone_in(folder):
        run = _Run(folder, out, digest, users)
        writer = writer_to(out, collection, charged=True)
        refused = 0
        with writer:
            for start in range(0, len(values), _BATCH):
                batch = slice(start, min(start + _BATCH, len(values)))
                reports = run.drawn(start)
                if reports is None:
                    own = None if drawn_from is None else drawn_from[batch]
                    reports = run.keep(start, collection.randomize(values[batch], secrets=own))
                rows = box.bytes_of(reports)
                sent = [
                    Sent(users[place], f"{run.name}/{place}", row, labels[place], Marks.of(run.secret(place)))
                    for place, row in zip(range(batch.start, batch.stop), rows, strict=True)
                ]
                receipts = box.take_many(sent)
                accepted = [place for place, receipt in enumerate(receipts) if receipt]
                writer.write(reports[accepted])
                _write_receipts(run, collection, accountant, promise, start, accepted, rows, receipts)
                refused += len(rows) - len(accepted)
                on_refused([given[start + place] for place, receipt in enumerate(receipts) if not receipt])
                on_batch(len(rows))
            writer.write(collection.mechanism.randomize(values[:0]))
        run.end()
    return Released(len(values) - refused, refused)


def _write_receipts(
    run: _Run,
    collection: Collection,
    accountant: Accountant,
    promise: dict[str, Any],
    start: int,
    accepted: list[int],
    rows: list[bytes],
    receipts: list[Receipt],
) -> None:
    costs = accountant.books.costs_of([receipts[place].receipt or "" for place in accepted])
    digest = collection.definition()["digest"]
    for place, cost in zip(accepted, costs, strict=True):
        receipt = {
            "format": RECEIPT_FORMAT,
            "version": 1,
            "collection": collection.name,
            "client": digest,
            "secret": run.secret(start + place).hex(),
            "report": rows[place].hex(),
            "costs": cost._asdict(),
            "promise": promise,
        }
        run.write_receipt(start + place, json.dumps(receipt, indent=2).encode() + b"\n")


class _Run:
    """The state of a run in the folder of its receipts: the seed of the secrets, and the drawn reports."""

    def __init__(self, folder: Path, out: str, digest: str, users: Sequence[str]) -> None:
        self._folder, self._users = folder, users
        self._state = folder / ".run"
        try:
            state = json.loads(self._state.read_bytes())
        except FileNotFoundError:
            self._begin(out, digest)
            return
        if state["input"] != digest:
            raise ReportFileError(
                str(self._state),
                "it is of an interrupted run with another collection, other input or another policy. Nothing was charged.",
                hint="Finish that run first, or name another folder.",
            )
        self.name, self._seed = state["run"], bytes.fromhex(state["seed"])

    def _begin(self, out: str, digest: str) -> None:
        there = [Path(out), *map(self.receipt, range(len(self._users)))]
        for path in there:
            if path.exists():
                raise ReportFileError(
                    str(path), "it already exists. Nothing was charged.", hint="Name another place."
                )
        self.name, self._seed = random.token_hex(16), random.token_bytes(32)
        with replacing(self._state) as file:
            file.write(canonical_json({"run": self.name, "seed": self._seed.hex(), "input": digest}).encode())

    def secret(self, place: int) -> bytes:
        """Return the secret of a respondent's marks."""
        return hashlib.blake2b(place.to_bytes(8, "big"), key=self._seed, digest_size=16).digest()

    def receipt(self, place: int) -> Path:
        """Return the path of a respondent's receipt."""
        user = self._users[place]
        name = (
            user if _SAFE.fullmatch(user) else hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        )
        return self._folder / f"{name}.json"

    def write_receipt(self, place: int, content: bytes) -> None:
        """Write a receipt that only its owner can read. It is durable after `end`."""
        descriptor = os.open(self.receipt(place), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)

    def drawn(self, start: int) -> NDArray[Any] | None:
        """Return the reports of a batch that an earlier run has drawn."""
        try:
            reports: NDArray[Any] = np.load(self._batch(start), allow_pickle=False)
        except FileNotFoundError:
            return None
        return reports

    def keep(self, start: int, reports: NDArray[Any]) -> NDArray[Any]:
        """Store the reports of a batch before it is charged, so that they are not drawn again."""
        with replacing(self._batch(start)) as file:
            np.save(file, reports, allow_pickle=False)
        return reports

    def end(self) -> None:
        """Make the receipts durable, and delete the state of the run, which could write them again."""
        os.sync()
        for path in (self._state, *self._folder.glob(".run-*.npy")):
            path.unlink()

    def _batch(self, start: int) -> Path:
        return self._folder / f".run-{start}.npy"
