"""Charged release: charge users and write their reports to a file, safe against interruption.

An interruption neither charges a user twice nor releases an uncharged report. The users are charged batch by batch,
with an idempotency key that is bound to the whole input. Only then are the reports of the accepted users drawn and
stored in `OUT.partial`. At the end the output file gets its name. A report of a user who was refused, or not charged
yet, is never on the disk. A release with receipts is the exception: the ledger stores each report with its charge, so
the reports are drawn and stored before.

To resume an interrupted run, run it again with the same input. Charges are not repeated, and stored reports are
reused and never drawn again. When the output file has its name, `OUT.partial` is removed and the run is complete. The
same command would then be another round of charges, so it is refused as long as the output file exists.

A partly written batch must not be drawn again while parts of it are readable: that would be two reports for one
charge. So a batch is written under a mask, and the key of the mask follows when all of the batch is on the disk.
Without the key the written data is unreadable, and the batch is drawn again. With the key the batch is complete, and
is used.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets as random
import struct
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from .._dataframes import check_texts
from .._files import delete_open, open_alone, sync_folder
from .._later import accountant_part
from .._validation import check_instance, check_name, check_path, check_user, shown, shown_with_type
from ..accounting.budget_client import BudgetClient
from ..errors import InvalidParameter, ReportFileError
from ..guarantees import Memoised
from ..registry.collections import Collection
from .places import is_address, local_path, shown_place
from .report_file import ReportWriter, writer_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from .public_attributes import PublicAttributes

_FORMAT = b"ldp-budget run "
_MAGIC = _FORMAT + b"1\n"
_SIZE = struct.Struct("<I")
_BATCH = 10_000
_BATCH_WITH_RECEIPTS = 1_000
_KEY_BYTES = 32
_SLOT = 2 * _KEY_BYTES
"""Size of the key of a mask with its SHA-256.

At a multiple of this size, one sector holds both, and a disk writes a sector as a whole.
"""

_FINISHED = "it already exists, and it is not from an interrupted run. Nothing was charged."
_NEW_ROUND = "For a new round, in which every user is charged again, choose another file."
_FOREIGN = "it does not hold an interrupted run. It was not changed."
_MOVE = "Move it away, or choose another file."
_OTHER_VERSION = "it holds an interrupted run of another version of ldp-budget. It was not changed."
_FINISH_THERE = "Finish the run with that version, or delete the file; its users stay charged."


@dataclass(frozen=True)
class Released:
    """Numbers of released reports and of refused users, for whom no report exists."""

    reports: int
    refused: int


def release(
    out: str | os.PathLike[str],
    collection: Collection,
    accountant: BudgetClient,
    values: NDArray[Any],
    users: Sequence[str],
    *,
    policy: str,
    secrets: Sequence[bytes] | None = None,
    public: PublicAttributes | None = None,
    receipts: str | os.PathLike[str] | None = None,
    on_batch: Callable[[int], None] = lambda users: None,
    on_refused: Callable[[list[str]], None] = lambda users: None,
) -> Released:
    """Charge users, randomize their values, and write the reports of the accepted users to a file.

    Parameters:
        out: the path of the file; a partition if it ends in `.parquet`. Until the run is complete, `OUT.partial`
            exists next to it, from which an interrupted run resumes. Both files hold reports of charged users only.
        collection: the collection of the reports.
        accountant: the accountant whose ledger is charged.
        values: one value for each user, an array as `collection.read_values` returns it.
        users: the users to charge, one for each value.
        policy: the name of the policy to charge against.
        secrets: one secret for each user, for mechanisms that memoise. Reports of one value are then charged along
            its curve.
        public: the public attributes of the users, which the file stores with their reports.
        receipts: a folder for the receipts with which the respondents check a publication; it is created. The reports
            are then stored in the ledger too, which must be local, and each user appears once.
        on_batch: called with the number of users after each batch.
        on_refused: called before `on_batch` with the refused users of the batch, including those refused in an
            earlier run.

    Returns:
        The number of written reports and the number of refused users.

    Raises:
        ReportFileError: `out` exists and no run of it was interrupted; `OUT.partial` belongs to other input or is not
            such a file; another run is writing it; or the files cannot be written. In the first three cases nothing
            was drawn or charged. Or a receipt exists. Nothing was charged.
        InvalidParameter: an argument has the wrong type, `out` is a URL and not a path, the numbers of users, values
            and public attributes differ, or arguments do not go with receipts. Nothing was charged.
        OutsideDomain: a value is not in the declared domain.
        UnknownName: the policy does not exist.
        PublicationError: the policy has no lifetime limit that a receipt can promise. Nothing was charged.
        NotSupported: the mechanism has no client; or with receipts, no client program, or the package cryptography is
            missing.
        LedgerError: the ledger cannot be read or written.
    """
    import numpy as np

    given = check_released(collection, accountant, values, users)
    users = [check_user(user) for user in given]
    check_name("policy", policy)
    out = check_out(out)
    for name, call in (("on_batch", on_batch), ("on_refused", on_refused)):
        if not callable(call):
            raise InvalidParameter(name, "a function", shown_with_type(call))
    if secrets is not None:
        from ..sampling.memoisation import secrets_for_each

        secrets = secrets_for_each(secrets, len(values))
    _check_drawable(collection, values, secrets)
    if public is not None and len(public) != len(values):
        raise InvalidParameter("public", f"attributes of {len(values)} users", f"those of {len(public)}")
    if public is not None and receipts is not None:
        raise InvalidParameter(
            "public", "left out with receipts, whose reports carry no attributes", shown(public.names)
        )
    kept = None
    if receipts is not None:
        kept = accountant_part("receipts").Receipts(receipts, collection, accountant, policy, users)
    refused = 0
    mechanism = collection.mechanism
    # Raise for an unknown policy or an invalid output path before anything is stored.
    singly = kept is not None or secrets is not None or accountant.policy(policy).plan is not None
    writer = writer_to(out, collection, charged=True, public=() if public is None else public.names)
    digest = accountant.keyed_digest(input_digest(values, users, policy, singly, public))
    size = _BATCH if kept is None else _BATCH_WITH_RECEIPTS
    with ExitStack() as held:
        if kept is not None:
            held.enter_context(kept.alone())
        store = held.enter_context(_Store(Path(out), collection, digest, receipts=kept is not None))
        if kept is not None and not store.resumed:
            try:
                kept.check_free()
            except ReportFileError:
                store.remove()
                raise
        if not isinstance(writer, ReportWriter):
            writer.call(store.run)  # a resumed run makes a partition of the same name, so only one is ever counted
        with writer:
            for number, start in enumerate(range(0, len(values), size)):
                batch = slice(start, start + size)
                own = None if secrets is None else secrets[batch]
                names = list(users[batch])
                labels = labels_of(collection, values[batch], own)
                drawn = store.stored(number)
                if kept is not None:
                    if drawn is None:
                        drawn = store.add(
                            _places(range(len(names))), collection.randomize(values[batch], secrets=own)
                        )
                    accepted = _places(kept.charge(store.run, store.seed, start, drawn.reports, labels))
                else:
                    charge = _Charge(accountant, collection, policy, f"{store.run}/{number}")
                    accepted = charge.one_by_one(names, labels) if singly else charge.together(names)
                if drawn is None:
                    some = None if own is None else [own[place] for place in accepted]
                    drawn = store.add(accepted, collection.randomize(values[batch][accepted], secrets=some))
                # The ledger decides again about stored reports: it may be a backup from before the charge.
                released = np.isin(drawn.places, accepted)
                attributes = None if public is None else public.take(start + drawn.places[released])
                writer.write(drawn.reports[released], attributes)
                stays = set(drawn.places[released].tolist())
                refused += len(names) - len(stays)
                on_refused([name for place, name in enumerate(given[batch]) if place not in stays])
                on_batch(len(names))
            writer.write(mechanism.randomize(values[:0]))  # so that a file without reports has its header too
        if kept is not None:
            kept.sync()  # the receipts: without the seed they cannot be written again
        store.remove()
    return Released(len(values) - refused, refused)


def check_out(out: str | os.PathLike[str]) -> str:
    """Return the local path for a release. Raises `InvalidParameter` for a URL."""
    check_path("out", out)
    if is_address(os.fspath(out)):
        expected = "a path on this machine, because an interrupted run continues from its disk"
        raise InvalidParameter("out", expected, f"the URL {shown_place(os.fspath(out))}")
    return local_path(os.fspath(out))


def check_released(collection: Any, accountant: Any, values: Any, users: Any) -> list[str]:
    """Return the users as given. Raises `InvalidParameter` unless all types are right and each value has one user."""
    check_instance("collection", collection, Collection, "a `Collection`")
    if isinstance(accountant, type) or not isinstance(accountant, BudgetClient):
        raise InvalidParameter("accountant", "an `Accountant` or a `Client`", shown_with_type(accountant))
    if getattr(values, "ndim", 0) != 1:
        raise InvalidParameter("values", "a one-dimensional array of values", shown(values))
    listed = list(check_texts("users", users, "a list of user names, one for each value"))
    if len(listed) != len(values):
        raise InvalidParameter("users", f"{len(values)} user names, one for each value", f"{len(listed)} names")
    return listed


def _check_drawable(collection: Collection, values: NDArray[Any], secrets: Sequence[bytes] | None) -> None:
    """Raise the errors of drawing reports before any user is charged. The trial report is discarded."""
    if collection.mechanism.domain is not None:
        collection.mechanism.domain.check(values)
    collection.randomize(values[:1], secrets=None if secrets is None else secrets[:1])


class _Charge:
    """Charges of one batch, with idempotency keys of the run, which belongs to one input."""

    def __init__(self, accountant: BudgetClient, collection: Collection, policy: str, key: str) -> None:
        self._accountant = accountant
        self._collection = collection
        self._policy = policy
        self._key = key

    def together(self, users: list[str]) -> NDArray[np.int64]:
        """Charge all users at once; return the positions of the accepted users."""
        result = self._accountant.spend_many(users, self._collection, key=self._key, policy=self._policy)
        struck = set(_refused_places(users, result.refused_users))
        return _places(place for place in range(len(users)) if place not in struck)

    def one_by_one(self, users: list[str], labels: list[str | None]) -> NDArray[np.int64]:
        """Charge users one by one, with the label of the memoised value, or without; return the accepted positions.

        A policy with a plan admits reports only one by one.
        """
        kept = []
        for place, (user, label) in enumerate(zip(users, labels, strict=True)):
            receipt = self._accountant.spend(
                user,
                self._collection,
                key=f"{self._key}/{place}",
                label=label,
                policy=self._policy,
            )
            if receipt:
                kept.append(place)
        return _places(kept)


def _places(places: Iterable[int]) -> NDArray[np.int64]:
    import numpy as np

    return np.fromiter(places, np.int64)


def labels_of(collection: Collection, values: NDArray[Any], secrets: Sequence[bytes] | None) -> list[str | None]:
    """Return the label of the memoised value that each report repeats.

    Without a curve the labels make no difference, and are None.
    """
    if secrets is None or not isinstance(collection.mechanism.guarantee, Memoised):
        return [None] * len(values)
    return [*collection.labels(values, secrets)]


def input_digest(
    values: NDArray[Any], users: Sequence[str], policy: str, singly: bool, public: PublicAttributes | None = None
) -> bytes:
    """Return the digest that makes two runs the same run, so that each charge has the same idempotency key in both.

    It is a digest of the true answers. There are few possible answers, so a reader of the digest could try them all.
    So only its keyed digest, made with the ledger's key, is ever stored.
    """
    digest = hashlib.sha256(values.tobytes())
    digest.update(json.dumps([list(users), policy, singly]).encode())
    if public is not None:
        digest.update(json.dumps(public.names).encode() + public.to_bytes())
    return digest.digest()


class _Drawn(NamedTuple):
    """Reports of a batch, with the positions of their users in the batch."""

    places: NDArray[np.int64]
    reports: NDArray[Any]


class _Store:
    """The file `OUT.partial` with the reports of charged users. An incompletely stored batch is unreadable."""

    def __init__(self, out: Path, collection: Collection, digest: str, *, receipts: bool = False) -> None:
        self._out = out
        self._path = Path(f"{out}.partial")
        self._header: dict[str, Any] = {"fingerprint": collection.fingerprint, "input": digest}
        if receipts:
            self._header["receipts"] = True
        self.seed = random.token_bytes(_KEY_BYTES)
        """The seed of the secrets in the receipts."""
        self._batches: list[_Drawn] = []
        self._file: IO[bytes] | None = None
        self.run = ""
        self.resumed = False

    def __enter__(self) -> Self:
        try:
            self._file = open_alone(self._path)
        except OSError as error:
            raise ReportFileError(str(self._path), f"it cannot be written: {error.strerror}") from None
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise
        return self

    def _open(self) -> None:
        """Resume the interrupted run, or begin a new one."""
        assert self._file is not None
        self._file.seek(0)
        magic = self._file.read(len(_MAGIC))
        if not _MAGIC.startswith(magic):
            if magic.startswith(_FORMAT):
                raise ReportFileError(str(self._path), _OTHER_VERSION, hint=_FINISH_THERE)
            raise ReportFileError(str(self._path), _FOREIGN, hint=_MOVE)
        line = self._file.readline()
        if line.endswith(b"\n"):
            self._resume(line)
        else:  # a new file, or a run that was interrupted before anything was drawn
            self._begin()

    def __exit__(self, *exception: object) -> None:
        assert self._file is not None
        self._file.close()

    def stored(self, number: int) -> _Drawn | None:
        """Return the reports of a batch that an earlier run has drawn; None if there are none."""
        return self._batches[number] if number < len(self._batches) else None

    def add(self, places: NDArray[np.int64], reports: NDArray[Any]) -> _Drawn:
        """Write the next batch of reports to the disk and return them. Charge their users before."""
        import numpy as np

        assert self._file is not None
        drawn = _Drawn(places, reports)
        buffer = io.BytesIO()
        for part in drawn:
            np.save(buffer, part, allow_pickle=False)
        data, key = buffer.getvalue(), random.token_bytes(_KEY_BYTES)
        masked = _masked(data, key)
        start = self._file.seek(0, os.SEEK_END)
        block = _SIZE.pack(len(masked)) + masked + _SIZE.pack(zlib.crc32(masked))
        slot = start + len(block) + _padding(start + len(block))
        self._file.write(block.ljust(slot + _SLOT - start, b"\0"))
        self._sync()
        with open(self._path, "r+b", buffering=0) as file:  # in place; the other handle only appends
            file.seek(slot)
            file.write(key + hashlib.sha256(key).digest())
            os.fsync(file.fileno())
        self._batches.append(drawn)
        return drawn

    def remove(self) -> None:
        """Delete the file after the release is complete."""
        assert self._file is not None
        delete_open(self._path, self._file)

    def _begin(self) -> None:
        assert self._file is not None
        if self._out.exists():
            self.remove()
            raise ReportFileError(str(self._out), _FINISHED, hint=_NEW_ROUND)
        self.run = random.token_hex(16)
        self._file.truncate(0)
        own = {"run": self.run, **({"seed": self.seed.hex()} if "receipts" in self._header else {})}
        self._file.write(_MAGIC + json.dumps({**own, **self._header}).encode() + b"\n")
        self._sync()
        sync_folder(self._path.parent)

    def _resume(self, line: bytes) -> None:
        assert self._file is not None
        try:
            header = json.loads(line)
            self.resumed = True
            self.run, self.seed = str(header.pop("run")), bytes.fromhex(header.pop("seed", ""))
        except (ValueError, KeyError, AttributeError, TypeError):
            raise ReportFileError(str(self._path), _FOREIGN, hint=_MOVE) from None
        if header != self._header:
            raise ReportFileError(
                str(self._path),
                "it holds an interrupted run with another collection, other input or another policy. Nothing was charged.",
                hint="Finish that run first, or delete the file; its users stay charged.",
            )
        end = self._file.tell()
        while (drawn := self._block()) is not None:
            self._batches.append(drawn)
            end = self._file.tell()
        self._file.truncate(end)

    def _block(self) -> _Drawn | None:
        """Return the next block; None if the block or its key is incomplete."""
        import numpy as np

        assert self._file is not None
        size = self._file.read(_SIZE.size)
        if len(size) < _SIZE.size:
            return None
        masked = self._file.read(_SIZE.unpack(size)[0])
        check = self._file.read(_SIZE.size)
        self._file.read(_padding(self._file.tell()))
        slot = self._file.read(_SLOT)
        key = slot[:_KEY_BYTES]
        if slot[_KEY_BYTES:] != hashlib.sha256(key).digest() or check != _SIZE.pack(zlib.crc32(masked)):
            return None
        buffer = io.BytesIO(_masked(masked, key))
        return _Drawn(np.load(buffer, allow_pickle=False), np.load(buffer, allow_pickle=False))

    def _sync(self) -> None:
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())


def _masked(data: bytes, key: bytes) -> bytes:
    """Return data XORed with a mask derived from the key; applying it twice restores the data."""
    import numpy as np

    mask = hashlib.shake_256(key).digest(len(data))
    return (np.frombuffer(data, np.uint8) ^ np.frombuffer(mask, np.uint8)).tobytes()


def _padding(place: int) -> int:
    """Return the number of bytes from `place` to the next slot of a key."""
    return -place % _SLOT


def _refused_places(users: list[str], refused: list[str]) -> list[int]:
    """Return the indexes of the refused requests in the batch; for a repeated user, the last ones."""
    left: dict[str, int] = {}
    for user in refused:
        left[user] = left.get(user, 0) + 1
    places = []
    for place in range(len(users) - 1, -1, -1):
        if left.get(users[place], 0):
            left[users[place]] -= 1
            places.append(place)
    return places[::-1]
