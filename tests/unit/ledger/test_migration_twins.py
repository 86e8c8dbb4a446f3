"""Copies of a move's target that were made before it was open: at most one of them, or the target, ever opens."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from contract.acts import check, coin
from contract.toy_store import ToyStore
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError
from ldp_budget.ledger import migration_cutover
from ldp_budget.ledger.ledger import Ledger
from ldp_budget.ledger.storage import Attempt
from ledger_inside import ledger_of
from migration_story import small

pytestmark = pytest.mark.slow


class Killed(BaseException):
    """The process is gone."""


def copied(store: ToyStore, name: str, *, same_place: bool) -> ToyStore:
    """A copy of all rows; an engine may be unable to tell its place from that of the original."""
    twin = ToyStore(store.partitions, store.key.secret)
    twin.name, twin._rows = name, copy.deepcopy(store._rows)
    twin.key.set_ledger_id(store.key.ledger_id)
    if same_place:
        twin.identity = store.identity
    return twin


def is_importing(store: ToyStore) -> bool:
    return store._rows[0].end()[0].state == 3


def charges(ledger: Any, clock: Clock) -> bool:
    with Accountant(ledger, create=False, clock=clock) as accountant:
        try:
            return bool(accountant.spend("zoe", coin("0.001")))
        except LedgerError:
            return False


class Prepared:
    """A source and a target that are ready to be handed over; each `begin` starts from there again."""

    def __init__(self, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        small(path, clock)
        self._path, self._clock = path, clock
        self._target = ToyStore(2, Path(f"{path}.key").read_bytes())
        moves: list[str] = []
        with Accountant(path, create=False, clock=clock) as source, monkeypatch.context() as patch:
            patch.setattr(
                "ldp_budget.accounting.ledger_move.hand_over", lambda source, target, move: moves.append(move)
            )
            patch.setattr("ldp_budget.accounting.ledger_move.open_target", lambda *given: None)
            source.ledger.move_to(self._target)
        (self._move,) = moves

    def begin(self, path: Path) -> tuple[Path, ToyStore]:
        for ending in ("", ".key"):
            shutil.copy(f"{self._path}{ending}", f"{path}{ending}")
        return path, copied(self._target, "toy", same_place=True)

    def finish(self, source: Accountant, target: ToyStore) -> None:
        """Do the last steps of the move."""
        there = Ledger(target, self._clock, half=True)
        migration_cutover.hand_over(ledger_of(source), there, self._move)
        migration_cutover.open_target(ledger_of(source), there)


class Mortal:
    """Ends the process before or after the nth commit, and copies the target at an earlier one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, target: ToyStore, dies: int, copies: int) -> None:
        self.left, self.until_copy, self.target = dies, copies, target
        self.twin: ToyStore | None = None
        attempts = Ledger.attempts

        def mortal(ledger: Ledger, *given: Any) -> Iterator[Attempt]:
            self._step()
            yield from attempts(ledger, *given)
            self._step()

        monkeypatch.setattr(Ledger, "attempts", mortal)

    def _step(self) -> None:
        self.until_copy -= 1
        if self.until_copy == 0 and is_importing(self.target):
            self.twin = copied(self.target, "twin", same_place=False)
        self.left -= 1
        if self.left == 0:
            raise Killed


STEPS = 14
"""More than there are before and after the commits of the end of a move."""


@pytest.mark.parametrize("same_place", [False, True])
@pytest.mark.parametrize("twin_first", [False, True])
def test_target_or_one_copy_opens_wherever_the_move_is_killed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, thorough: bool, same_place: bool, twin_first: bool
) -> None:
    prepared = Prepared(tmp_path / "prepared.db", clock, monkeypatch)
    copies = 0
    for dies in range(1, STEPS):
        for when in range(1, dies + 1, 1 if thorough else 3):
            path, target = prepared.begin(tmp_path / f"{dies} {when}.db")
            with Accountant(path, create=False, clock=clock) as source:
                with monkeypatch.context() as patch, suppress(Killed):
                    mortal = Mortal(patch, target, dies, when)
                    prepared.finish(source, target)
                twin = mortal.twin
                if twin is None:
                    continue
                if same_place:
                    if not is_importing(target) and mortal.left == 0:
                        continue  # the one moment that only the place can tell apart
                    twin.identity = target.identity
                copies += 1
                places = [twin, target] if twin_first else [target, twin]
                for place in places * 2:
                    with suppress(LedgerError):
                        source.ledger.move_to(place)
            opened = [charges(place, clock) for place in places]
            if not any(opened):  # killed before the source was handed over
                assert dies < 5
                continue
            assert opened.count(True) == 1
            assert same_place or charges(target, clock), "the source recorded its place"
    assert copies > STEPS


def test_first_attempt_decides_between_copies_that_no_engine_tells_apart(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for order in permutations(range(3)):
        path = tmp_path / f"{order}.db"
        small(path, clock)
        target = ToyStore(2, Path(f"{path}.key").read_bytes())
        with Accountant(path, create=False, clock=clock) as source:
            with monkeypatch.context() as patch:
                patch.setattr("ldp_budget.accounting.ledger_move.open_target", lambda *given: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    source.ledger.move_to(target)
            places = [target, *(copied(target, f"twin {number}", same_place=True) for number in range(2))]
            first, *others = [places[number] for number in order]
            source.ledger.move_to(first)
            for _ in range(2):
                for other in others:
                    with pytest.raises(LedgerError, match="it is a duplicate of toy, and can never be used"):
                        source.ledger.move_to(other)
                source.ledger.move_to(first)
            check(source)
        assert [charges(place, clock) for place in (first, *others)] == [True, False, False]


def test_move_that_another_process_completes_meanwhile_opens_once(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the token and its record, another process completes the move, to the target or to a copy of it."""
    for to_twin in (False, True):
        path = tmp_path / f"{to_twin}.db"
        small(path, clock)
        target = ToyStore(2, Path(f"{path}.key").read_bytes())
        with Accountant(path, create=False, clock=clock) as source:
            with monkeypatch.context() as patch:
                patch.setattr("ldp_budget.accounting.ledger_move.open_target", lambda *given: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    source.ledger.move_to(target)
            twin = copied(target, "twin", same_place=True)
            write, done = migration_cutover._write_token, []

            def meanwhile(*given: Any) -> str:
                token = write(*given)  # noqa: B023
                if not done:  # noqa: B023
                    done.append(1)  # noqa: B023
                    with Accountant(path, create=False, clock=clock) as other:  # noqa: B023
                        other.ledger.move_to(twin if to_twin else target)  # noqa: B023
                return token

            with monkeypatch.context() as patch:
                patch.setattr(migration_cutover, "_write_token", meanwhile)
                with pytest.raises(LedgerError, match="another process has completed, or is completing, its move"):
                    source.ledger.move_to(target)
            if not to_twin:
                source.ledger.move_to(target)
        assert [charges(target, clock), charges(twin, clock)] == [not to_twin, to_twin]
