"""Publish a survey, prove one respondent's part, and forget the secrets of old publications.

The secret of a publication makes the salts of its leaves. It is a file in the private folder next to the ledger's key
file, not a row of the ledger, so that no backup of the ledger keeps it after `forget` has destroyed it.
"""

from __future__ import annotations

import base64
import json
import os
import struct
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b, sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget._files import alone_in, canonical_json, create_private, sync_folder
from ldp_budget.accounting.stored_reports import MARK_BYTES
from ldp_budget.charge_options import DEFAULT
from ldp_budget.errors import InvalidParameter, PublicationError, TooFewReports
from ldp_budget.reports.inbox import Inbox, Marks

from . import transparency_log
from .estimate import estimate_of
from .merkle import Tree, leaf_hash, levels_of, root_of
from .signed_note import LogKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.registry.collections import Collection

    from .books import Charged

STEPS = 16
"""Totals are rounded up to so many steps of the limit."""
_FORMAT = "ldp-budget statement"
_SALT_BYTES = 16
_MOST_DEFINITION_BYTES = 2**22
_PLACE = struct.Struct(">IQ").pack


class Publication(NamedTuple):
    """A publication: its statement, its number in the log, the root of the log, and the verifier key."""

    statement: dict[str, Any]
    number: int
    root: str
    verifier_key: str

    def to_json(self) -> dict[str, Any]:
        """The output of `publish --json`."""
        return {"statement": self.statement, "number": self.number, "root": self.root, "key": self.verifier_key}


class Publisher:
    """Publications of the surveys of a ledger."""

    def __init__(self, accountant: Accountant) -> None:
        self._accountant, self._books = accountant, accountant.books
        self._folder = self._books.folder

    def __repr__(self) -> str:
        return f"<Publisher of {self._books.ledger_name}>"

    # -- the key of the log -------------------------------------------------------------------------------

    def new_key(self, name: str) -> LogKey:
        """Create the key of the log. Raises `PublicationError` if there is one."""
        with self._alone():
            return LogKey.create(self._folder / "log.key", name)

    def key(self) -> LogKey:
        """Return the key of the log. Raises `PublicationError` if there is none."""
        return LogKey.read(self._folder / "log.key")

    # -- publish ------------------------------------------------------------------------------------------

    def publish(self, collection: Collection, out: str | os.PathLike[str], *, policy: str = DEFAULT) -> Publication:
        """Seal the waiting reports of a collection, and publish its charges and reports in a folder.

        Raises:
            PublicationError: a total is above the limit, the numbers of charges and reports differ, the folder has
                another log, the log has no key, or an earlier statement states another limit. Nothing was published.
            UnknownName: the policy does not exist.
        """
        key, folder = self.key(), Path(out)
        with self._alone():
            entries = transparency_log.read_entries(self._folder / "entries")
            transparency_log.check_continues(folder, key, entries)
            number, secret = len(entries) + 1, os.urandom(32)
            statement, private, files = self._prepared(collection, policy, key, entries, secret)
            entry = canonical_json(statement).encode()
            if len(entry) > transparency_log.MOST_ENTRY_BYTES:
                raise PublicationError(f"the statement has {len(entry)} bytes. Nothing was published")
            if len(files["client.json"]) > _MOST_DEFINITION_BYTES:
                raise PublicationError(
                    f"the definition has {len(files['client.json'])} bytes, and checkers read at most "
                    f"{_MOST_DEFINITION_BYTES}. Nothing was published"
                )
            folder.mkdir(parents=True, exist_ok=True)
            self._keep(number, private)
            entries.append(entry)
            transparency_log.write_public(self._folder / "entries", transparency_log.bundle(entries))
            (self._folder / "entries").chmod(0o600)
            for name, content in files.items():
                transparency_log.write_public(folder / name, content)
            transparency_log.write_log(folder, key, entries)
        root = root_of([leaf_hash(each) for each in entries]).hex()
        return Publication(statement, number, root, key.verifier_key)

    def _prepared(
        self, collection: Collection, policy: str, key: LogKey, entries: Sequence[bytes], secret: bytes
    ) -> tuple[dict[str, Any], dict[str, bytes], dict[str, bytes]]:
        """Return the statement of a new publication, its private files, and its public ones."""
        number, earlier = len(entries) + 1, [json.loads(each) for each in entries]
        measure, limit = self._books.limit(policy)
        definition = collection.definition()
        memoised = bool(definition.get("memo"))
        mine = [each for each in earlier if collection.name == each["collection"]]
        records = self._sealed(collection, number, key)
        if not len(records):
            why = f"collection {collection.name} has no sealed round. Nothing was published"
            hint = f"A round needs {collection.minimum_group} reports, the minimum group of the collection."
            raise PublicationError(why, hint=hint)
        records = records if memoised else self._in_order(collection.name, records, mine)
        book = self._books.read(collection.name, measure, limit, account_leaf(secret, limit))
        if len(records) != len(book.charges):
            raise PublicationError(
                f"collection {collection.name} has {len(book.charges)} charges of sealed reports, and {len(records)} "
                "reports. Nothing was published",
                hint="Run: ldp-budget ledger verify",
            )
        book.leaves.sort()
        leaves, charges = book.leaves, sorted(charge_of(secret, each, measure) for each in book.charges)
        steps = _steps(book.largest, limit)
        time = datetime.fromtimestamp(self._books.now(), UTC)
        statement = {
            "format": _FORMAT,
            "version": 1,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "collection": collection.name,
            "client": definition["digest"],
            "accounts": len(leaves),
            "accounts_root": root_of(leaves).hex(),
            "charges": len(charges),
            "charges_root": root_of([leaf_hash(b"C" + charge) for charge in charges]).hex(),
            "reports": len(records),
            "reports_root": None
            if memoised
            else root_of([leaf_hash(b"R" + each.tobytes()) for each in records]).hex(),
            "width": records.shape[1] - MARK_BYTES,
            "measure": measure,
            "limit": limit,
            # Never below an earlier one, as checkers refuse that: a charge may have been voided since.
            "maximum": max(
                [-(-steps * limit // STEPS), *(each["maximum"] for each in mine if each["limit"] == limit)]
            ),
            "receipt_keys": self._books.receipt_keys(),
            "estimate": None if memoised else estimate_of(definition, records),
        }
        _check_agreement(statement, mine, earlier)
        files = {"client.json": canonical_json(definition).encode(), "charges.bin": b"".join(charges)}
        files["reports.bin"] = b"" if memoised else records.tobytes()
        about = {"number": number, "secret": secret.hex(), "heads": book.heads, "statement": statement}
        private = {"json": canonical_json(about).encode(), "tree": levels_of(b"".join(leaves))}
        return statement, private, files

    def _sealed(self, collection: Collection, number: int, key: LogKey) -> NDArray[np.uint8]:
        """Seal what waits; return all sealed reports after their marks, which differ, in the order of the rounds."""
        box = Inbox(self._accountant, collection)
        if len(box):
            with suppress(TooFewReports):
                box.seal(f"publication {number} {os.urandom(4).hex()}")
        data = b"".join(part for name in box.rounds() for part in box.marked(name))
        width = MARK_BYTES + box.report_bytes
        records = _with_different_marks([data[place : place + width] for place in range(0, len(data), width)], key)
        return np.frombuffer(b"".join(records), np.uint8).reshape(-1, width)

    def _in_order(
        self, collection: str, records: NDArray[np.uint8], mine: Sequence[Mapping[str, Any]]
    ) -> NDArray[np.uint8]:
        """Return the records as they are published: those of each statement after those of the statements before it.

        The new records of a statement are in the order of their marks. So the tree of an earlier statement is that of
        the first records.
        """
        rows, ends = [each.tobytes() for each in records], [0, *(each["reports"] for each in mine), len(records)]
        listed = [each for start, end in pairwise(ends) for each in sorted(rows[start:end])]
        if mine:
            last = mine[-1]
            roots = [leaf_hash(b"R" + each) for each in listed[: last["reports"]]]
            if len(roots) != last["reports"] or root_of(roots).hex() != last["reports_root"]:
                raise PublicationError(
                    f"the ledger does not have the reports of {collection} that were published. Nothing was published",
                    hint="Run: ldp-budget ledger verify",
                )
        return np.frombuffer(b"".join(listed), np.uint8).reshape(-1, records.shape[1])

    # -- prove and forget ---------------------------------------------------------------------------------

    def prove(self, collection: str, receipt: Mapping[str, Any]) -> dict[str, Any]:
        """Return the proof for a receipt in the newest publication of a collection.

        Raises `PublicationError` if there is no publication, its secret is destroyed, or the receipt is not in it.
        """
        try:
            secret_of_device = bytes.fromhex(receipt["secret"])
        except (KeyError, TypeError, ValueError):
            raise InvalidParameter("receipt", "a receipt of `randomize --receipts`", "another file") from None
        return self.prove_mark(collection, Marks.of(secret_of_device).charge)

    def prove_mark(self, collection: str, mark: bytes) -> dict[str, Any]:
        """Return the proof for the charge with this mark. Raises as `prove`."""
        return self._proof(collection, lambda: self._books.find(mark), "belongs to this receipt")

    def prove_to(self, user: str, collection: str, mark: bytes) -> dict[str, Any]:
        """Return the proof of a user for the charge with this mark, which must be one of hers. Raises as `prove`."""
        return self._proof(collection, lambda: self._books.find_of(user, mark), "of this respondent has this mark")

    def _proof(self, collection: str, find: Callable[[], Charged | None], which: str) -> dict[str, Any]:
        about = self._newest(collection)
        statement, secret = about["statement"], bytes.fromhex(about["secret"])
        charged = find()
        if charged is None:
            raise PublicationError(
                f"no charge of {collection} {which}", hint="An erased user has no proof.", reason="no-charge"
            )
        total = self._books.total(charged, about["heads"][charged.partition], statement["measure"])
        mine = account_leaf(secret, statement["limit"])(charged.partition, charged.account, total)
        with self._tree(about["number"], statement["accounts"]) as tree:
            index = tree.index(mine)
            path = b"" if index is None else tree.path(index)
        if index is None:
            raise PublicationError(
                f"publication {about['number']} does not have this account: it was made before the charge, or before "
                "the ledger was moved",
                hint=f"Publish again: ldp-budget publish {collection} --out FOLDER",
                reason="not-published",
            )
        return {
            "account": {
                "index": index,
                "path": base64.b64encode(path).decode(),
                "salt": _salt(secret, b"account", charged.partition, charged.account).hex(),
                "total": total,
            },
            "charge": {"salt": _salt(secret, b"charge", charged.partition, charged.entry).hex()},
        }

    def forget(self, before: datetime) -> int:
        """Destroy the secrets of the publications before a time; return their number.

        No proof can be made for them any more. Their roots and all proofs that were given stay valid.
        """
        with self._alone():
            found = [
                file
                for file in sorted(self._folder.glob("[0-9]*.json"))
                if datetime.fromisoformat(json.loads(file.read_bytes())["statement"]["time"]) < before
            ]
            for file in found:
                for each in (file, file.with_suffix(".tree")):
                    each.unlink(missing_ok=True)
            if found:
                sync_folder(self._folder)
        return len(found)

    @contextmanager
    def _tree(self, number: int, accounts: int) -> Iterator[Tree]:
        """Give the accounts tree of a publication, read from its file: a proof takes no calculation and no memory."""
        with open(self._folder / f"{number:04d}.tree", "rb") as file:
            yield Tree(file, accounts)

    def has_proofs(self, collection: str) -> bool:
        """Return True if a collection is published, and the secret of its newest publication was not destroyed.

        Raises:
            PublicationError: a file is damaged.
        """
        try:
            self._newest(collection)
        except PublicationError as error:
            if not error.reason:
                raise
            return False
        return True

    def _newest(self, collection: str) -> dict[str, Any]:
        """Return the private file of the newest publication of a collection."""
        entries = [json.loads(each) for each in transparency_log.read_entries(self._folder / "entries")]
        numbers = [number for number, each in enumerate(entries, 1) if each["collection"] == collection]
        if not numbers:
            raise PublicationError(
                f"collection {collection} is not published",
                hint=f"Run: ldp-budget publish {collection} --out FOLDER",
                reason="not-published",
            )
        try:
            about: dict[str, Any] = json.loads((self._folder / f"{numbers[-1]:04d}.json").read_bytes())
        except FileNotFoundError:
            raise PublicationError(
                f"the secret of publication {numbers[-1]} of {collection} was destroyed, so nothing in it can be proved",
                reason="proofs-destroyed",
            ) from None
        return about

    def _keep(self, number: int, private: dict[str, bytes]) -> None:
        """Write the private files of a publication. An interrupted run may have left some of that number."""
        for suffix, content in private.items():
            file = self._folder / f"{number:04d}.{suffix}"
            file.unlink(missing_ok=True)
            create_private(file, content)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone_in(self._folder):
            yield


# -- leaves --------------------------------------------------------------------------------------------------


def account_leaf(secret: bytes, limit: int) -> Callable[[int, int, int], bytes]:
    """Return the function that makes the leaf hash of an account from its partition, number and total."""

    @lru_cache(maxsize=10_000)  # many accounts have equal totals
    def parts(total: int) -> tuple[bytes, bytes]:
        return b"\0A" + bytes((_steps(total, limit),)), total.to_bytes(8, "big")

    def leaf(partition: int, account: int, total: int) -> bytes:
        steps, amount = parts(total)
        hidden = sha256(_salt(secret, b"account", partition, account) + amount).digest()
        return sha256(steps + hidden).digest()

    return leaf


def _with_different_marks(records: Sequence[bytes], key: LogKey) -> list[bytes]:
    """Return the records, in which a mark that an earlier record has is replaced by one that the key makes.

    Only a device that copies a mark sends one twice, so it loses its own proof. It cannot prevent a publication, nor
    take the mark of a report that was published before. A record gets the same mark in each publication.
    """
    seen: set[bytes] = set()
    different = []
    for place, each in enumerate(records):
        mark = each[:MARK_BYTES]
        record = key.mark_at(place) + each[MARK_BYTES:] if mark in seen else each
        seen.add(record[:MARK_BYTES])
        different.append(record)
    return different


def _check_agreement(statement: Mapping[str, Any], mine: Sequence[Mapping[str, Any]], earlier: Sequence[Any]) -> None:
    """Raise `PublicationError` if checkers would refuse a statement because of the earlier ones in its log."""
    name = statement["collection"]
    if earlier and statement["time"] < earlier[-1]["time"]:
        raise PublicationError(
            f"the clock says {statement['time']}, before the last publication at {earlier[-1]['time']}. Nothing was "
            "published",
            hint="Set the clock, or wait.",
        )
    for key in ("client", "measure", "limit"):
        if mine and mine[-1][key] != statement[key]:
            raise PublicationError(
                f"collection {name} was published with the {key} {mine[-1][key]}, and now has {statement[key]}. Nothing "
                "was published",
                hint="Publish under a policy with the limit that respondents were promised: --policy NAME",
            )
    for key in ("accounts", "charges"):
        if mine and mine[-1][key] > statement[key]:
            raise PublicationError(
                f"collection {name} was published with {mine[-1][key]} {key}, and now has {statement[key]}. Nothing was "
                "published",
                hint="Run: ldp-budget ledger verify",
            )


def charge_of(secret: bytes, charged: Charged, measure: str) -> bytes:
    """Return the published commitment to a charge; a charge without a mark of a device gets a secret one."""
    place = charged.partition, charged.entry
    mark = charged.mark or _salt(secret, b"unmarked", *place)
    cost = getattr(charged.costs, measure)
    if cost is None:
        raise PublicationError(f"a charge has no bound on its {measure}. Nothing was published")
    return sha256(_salt(secret, b"charge", *place) + mark + cost.to_bytes(8, "big")).digest()


def _salt(secret: bytes, kind: bytes, partition: int, number: int) -> bytes:
    return blake2b(_PLACE(partition, number), digest_size=_SALT_BYTES, key=secret, person=kind).digest()


def _steps(total: int, limit: int) -> int:
    return -(-STEPS * total // limit)
