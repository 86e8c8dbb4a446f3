"""Estimates of a collection's sealed rounds, computed in a worker process.

The service knows how many reports each round has, and refuses fewer than a group. It copies the reports of the rounds
to files that only this user can read, part by part, and a worker aggregates and estimates. So neither the reports nor
their aggregates, which may take 100 MB each, are held in the memory of the service.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_budget import Collection

from .error_codes import ServiceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .report_store import Inboxes

Asked = dict[str, Any]

_BLOCK_BYTES = 1 << 20
_MOST_COLLECTIONS = 8
_MOST_ROUNDS = 4096


# -- in the service -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RoundsToEstimate:
    """The rounds of one estimate, in the service.

    `by_round`: True for an estimate of each round by itself; otherwise of all of them together.
    """

    collection: Collection
    rounds: tuple[str, ...]
    by_round: bool
    inboxes: Inboxes

    @classmethod
    def of(cls, inboxes: Inboxes, collection: Collection, name: str | None, by_round: bool) -> RoundsToEstimate:
        """Return the rounds to estimate: the one of that name, or all. Raises `ServiceError` for too few reports."""
        least = collection.minimum_group
        rounds = [name] if name is not None else inboxes.of(collection).rounds()
        counts = {each: inboxes.count(collection, each) for each in rounds}
        if by_round:
            rounds = [each for each in rounds if counts[each] >= least]
        elif sum(counts.values()) < least:
            why = f"an estimate needs {least} sealed reports: got {sum(counts.values())}. Seal a round: POST …/rounds"
            raise ServiceError("too-few-reports", why)
        if len(rounds) > _MOST_ROUNDS:
            raise ServiceError(
                "too-much-work", f"at most {_MOST_ROUNDS} rounds are estimated together: got {len(rounds)}"
            )
        return cls(collection, tuple(rounds), by_round, inboxes)

    def identity(self) -> Asked:
        """Return what the estimate is made of: a collection and its rounds never change."""
        client = self.collection.client or self.collection.fingerprint
        return {"digest": client, "rounds": list(self.rounds), "by_round": self.by_round}

    @contextmanager
    def copied(self) -> Iterator[Asked]:
        """Give the collection and the files with its reports to a worker; the files are deleted afterwards."""
        folder = Path(tempfile.mkdtemp(prefix="ldp-budget-"))
        try:
            for number, name in enumerate(self.rounds):
                with open(folder / str(number), "wb") as file:
                    for block in self.inboxes.of(self.collection).round(name):
                        file.write(block.tobytes())
            yield {"collection": self.collection.to_json(), "folder": str(folder)}
        finally:
            shutil.rmtree(folder, ignore_errors=True)


# -- in a worker ----------------------------------------------------------------------------------------


def estimate(asked: Asked) -> Any:
    """Return the output of `estimate --json`, or with `by_round` a list of them, each with its `round`."""
    collection, folder = _collection(asked["digest"], asked["collection"]), Path(asked["folder"])
    files = [folder / str(number) for number in range(len(asked["rounds"]))]
    if not asked["by_round"]:
        return _row(collection, files, asked)
    return [
        {"round": name, **_row(collection, [file], asked)} for name, file in zip(asked["rounds"], files, strict=True)
    ]


_known: dict[str, Collection] = {}


def _collection(digest: str, definition: Asked) -> Collection:
    """Return a collection; one that this worker knows already is not built again."""
    if digest not in _known:
        if len(_known) >= _MOST_COLLECTIONS:
            _known.clear()
        _known[digest] = Collection.from_json(definition)
    return _known[digest]


def _row(collection: Collection, files: Sequence[Path], asked: Asked) -> Asked:
    from ldp_budget.reports import estimation
    from ldp_budget_surveys.questionnaires.survey_collection import SurveyCollection
    from ldp_budget_surveys.questionnaires.survey_rows import as_reported, survey_row

    totals = (estimation.total_of(collection, _blocks(collection, file)) for file in files)
    result = estimation.estimate_totals(collection, totals, asked["names"], most=asked["most"])
    assert result is not None
    if isinstance(collection, SurveyCollection):
        found = survey_row(collection, result, level=asked["level"], consistent=asked["consistent"])
        return as_reported(collection, found)
    if asked["consistent"] and estimation.counts_answers(collection):
        result = estimation.made_consistent(result)
    row = estimation.estimate_row(collection, result, level=asked["level"], names=asked["names"])
    if asked["adjust"] is not None:
        estimation.add_adjusted(result, row, asked["adjust"])
    if "answers" in row:
        row["answers"] = estimation.chosen_rows(row["answers"], asked["names"], asked["most"])
    return row


def _blocks(collection: Collection, path: Path) -> Iterator[NDArray[Any]]:
    """Yield the reports in a file, in blocks. The file has no name from then on, so that a killed service leaves none."""
    import numpy as np

    dtype, shape, width = collection.mechanism.report_layout()
    size = max(1, _BLOCK_BYTES // width) * width
    native = np.dtype(dtype).newbyteorder("=")
    with open(path, "rb") as file:
        path.unlink()
        while data := file.read(size):
            yield np.frombuffer(data, native).reshape(len(data) // width, *shape)
