"""Charged releases: no user is charged twice, nothing is released uncharged, nothing is drawn again."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldp_budget
import ldp_budget.reports.charged_release as room
from ldp_budget import Accountant, InvalidParameter, OutsideDomain, Plan, ReportFileError
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.charged_release import release
from ldp_budget.reports.report_file import read_reports

pytestmark = pytest.mark.policy("lifetime=1")

USERS = [f"user{number}" for number in range(25)]
VALUES = np.arange(25) % 4


class PowerCut(Exception):  # noqa: N818 - no error of the program
    pass


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_BATCH", 10)


@pytest.fixture
def survey() -> Collection:
    return Collection("survey", ldp_budget.mechanism("oue")(epsilon=1, domain_size=4))


def run(out: Path, survey: Collection, accountant: Accountant, values: Any = VALUES) -> room.Released:
    return release(out, survey, accountant, values, USERS, policy="default")


def rows(out: Path, survey: Collection) -> list[list[int]]:
    return [row for block in read_reports(out, survey) for row in block.tolist()]


def test_release_charges_every_user_and_writes_every_report(
    tmp_path: Path, survey: Collection, accountant: Accountant
) -> None:
    assert run(tmp_path / "out", survey, accountant) == room.Released(25, 0)
    assert len(rows(tmp_path / "out", survey)) == 25
    assert accountant.stats()["entries_by_kind"]["spent"] == 25
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "nothing else is left"


def test_release_of_invalid_answers_charges_no_user(
    tmp_path: Path, survey: Collection, accountant: Accountant
) -> None:
    """Reports are drawn after the charge, so what would stop that must be found before it."""
    with pytest.raises(OutsideDomain):
        run(tmp_path / "out", survey, accountant, np.array([0] * 24 + [4]))
    kept = Collection("kept", ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=4, bits=2, memoize=True))
    with pytest.raises(InvalidParameter, match="secrets"):
        run(tmp_path / "out", kept, accountant)
    assert "spent" not in accountant.stats()["entries_by_kind"]
    assert list(tmp_path.iterdir()) == []


def test_release_writes_no_report_of_refused_users(
    tmp_path: Path, survey: Collection, accountant: Accountant
) -> None:
    for user in USERS[3:7]:
        accountant.spend(user, survey.mechanism)
    assert run(tmp_path / "out", survey, accountant) == room.Released(21, 4)
    assert len(rows(tmp_path / "out", survey)) == 21


@pytest.mark.slow
@pytest.mark.parametrize("before_charging", [True, False])
@pytest.mark.parametrize("batch", [0, 1, 2])
def test_release_interrupted_resumes_and_draws_no_report_twice(
    tmp_path: Path,
    survey: Collection,
    accountant: Accountant,
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
    before_charging: bool,
) -> None:
    drawn: list[Any] = []
    charge = accountant.spend_many
    original = type(survey.mechanism).randomize

    def randomize(self: Any, values: Any, **options: Any) -> Any:
        reports = original(self, values, **options)
        if len(values) > 1:  # one is tried before any charge
            drawn.append(reports.tolist())
        return reports

    def cut(users: Any, *args: Any, **options: Any) -> Any:
        last = len(drawn) == batch
        if last and before_charging:
            raise PowerCut
        result = charge(users, *args, **options)
        if last:
            raise PowerCut
        return result

    monkeypatch.setattr(type(survey.mechanism), "randomize", randomize)
    monkeypatch.setattr(accountant, "spend_many", cut)
    with pytest.raises(PowerCut):
        run(tmp_path / "out", survey, accountant)
    assert not (tmp_path / "out").exists(), "nothing is released before all users are charged"
    monkeypatch.setattr(accountant, "spend_many", charge)
    assert run(tmp_path / "out", survey, accountant) == room.Released(25, 0)
    assert len(drawn) == 3, "no batch was drawn a second time"
    assert rows(tmp_path / "out", survey) == [row for batch in drawn for row in batch]
    assert accountant.stats()["entries_by_kind"]["spent"] == 25


@pytest.mark.parametrize("lost", [1, 5, 64, 65, 200])
def test_release_with_a_partly_stored_batch_draws_it_again_and_charges_once(
    tmp_path: Path, survey: Collection, accountant: Accountant, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    with monkeypatch.context() as cut:
        cut.setattr(room._Store, "remove", lambda store: (_ for _ in ()).throw(PowerCut))
        with pytest.raises(PowerCut):
            run(tmp_path / "out", survey, accountant)
    partial = tmp_path / "out.partial"
    partial.write_bytes(partial.read_bytes()[:-lost])
    assert run(tmp_path / "out", survey, accountant) == room.Released(25, 0)
    assert accountant.stats()["entries_by_kind"]["spent"] == 25


@pytest.mark.slow
def test_release_drops_stored_reports_of_users_refused_by_a_restored_ledger(
    tmp_path: Path, survey: Collection, accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger was replaced by an older backup, in which another program then spent what some users had."""
    before, after = tmp_path / "before.db", tmp_path / "after.db"
    with Accountant(before) as first:
        first.set_policy("default", ["lifetime=1"])
        first.backup(after)
        with monkeypatch.context() as cut:
            cut.setattr(room._Store, "remove", lambda store: (_ for _ in ()).throw(PowerCut))
            with pytest.raises(PowerCut):
                run(tmp_path / "out", survey, first)
    with Accountant(after) as restored:
        for user in USERS[:4]:
            restored.spend(user, survey.mechanism)
        assert run(tmp_path / "out", survey, restored) == room.Released(21, 4)
    assert len(rows(tmp_path / "out", survey)) == 21


def test_release_interrupted_of_another_version_is_refused_and_kept(
    tmp_path: Path, survey: Collection, accountant: Accountant
) -> None:
    partial, content = tmp_path / "out.partial", b'ldp-budget run 2\n{"run": "12"}\n'
    partial.write_bytes(content)
    with pytest.raises(ReportFileError, match="of another version"):
        run(tmp_path / "out", survey, accountant)
    assert partial.read_bytes() == content
    assert "spent" not in accountant.stats()["entries_by_kind"]


# -- a run that has ended ------------------------------------------------------------------------------------


def test_release_interrupted_at_its_end_is_completed_with_the_same_result(
    tmp_path: Path, survey: Collection, accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OUT has its name, and OUT.partial is still there."""
    out = tmp_path / "out"
    with monkeypatch.context() as cut:
        cut.setattr(room._Store, "remove", lambda store: (_ for _ in ()).throw(PowerCut))
        with pytest.raises(PowerCut):
            run(out, survey, accountant)
    before = out.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.partial"]
    with pytest.raises(ReportFileError, match="other input"):
        run(out, survey, accountant, VALUES[::-1].copy())
    assert run(out, survey, accountant) == room.Released(25, 0)
    assert out.read_bytes() == before
    assert accountant.stats()["entries_by_kind"]["spent"] == 25
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# -- a plan --------------------------------------------------------------------------------------------------


def test_release_under_a_plan_charges_one_user_at_a_time_and_resumes(
    tmp_path: Path, survey: Collection, accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    accountant.set_policy("default", [], plan=Plan(((survey.mechanism.guarantee, 1),), Decimal("1e-6")))
    accountant.spend(USERS[3], survey.mechanism)
    charge = accountant.spend
    asked: list[str] = []

    def cut(user: str, *args: Any, **options: Any) -> Any:
        asked.append(user)
        if len(asked) == 14:
            raise PowerCut
        return charge(user, *args, **options)

    monkeypatch.setattr(accountant, "spend", cut)
    with pytest.raises(PowerCut):
        run(tmp_path / "out", survey, accountant)
    assert run(tmp_path / "out", survey, accountant) == room.Released(24, 1)
    assert len(rows(tmp_path / "out", survey)) == 24
    assert accountant.stats()["entries_by_kind"]["spent"] == 25
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# -- two at a time -------------------------------------------------------------------------------------------


def test_release_by_two_runs_to_one_file_is_refused(
    tmp_path: Path, survey: Collection, accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge = accountant.spend_many

    def meanwhile(*args: Any, **options: Any) -> Any:
        with pytest.raises(ReportFileError, match="another run"):
            run(tmp_path / "out", survey, accountant)
        return charge(*args, **options)

    monkeypatch.setattr(accountant, "spend_many", meanwhile)
    assert run(tmp_path / "out", survey, accountant) == room.Released(25, 0)


# -- a power cut -----------------------------------------------------------------------------------------------


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Record the synchronized, replaced and removed file names, in order."""
    lines: list[str] = []
    names = {"replace": os.replace, "unlink": os.unlink}

    def fsync(handle: int, original: Any = os.fsync) -> None:
        original(handle)
        place = Path(os.readlink(f"/proc/self/fd/{handle}"))
        lines.append(f"fsync {'the folder' if place == tmp_path else place.name}")

    def telling(name: str) -> Any:
        def tell(*places: Any, **options: Any) -> None:
            names[name](*places, **options)
            lines.append(f"{name} {Path(places[-1]).name}")

        return tell

    monkeypatch.setattr(os, "fsync", fsync)
    for name in names:
        monkeypatch.setattr(os, name, telling(name))
    return lines


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="it sees there which file is synchronised")
def test_release_synchronizes_files_before_it_depends_on_them(
    tmp_path: Path, survey: Collection, accountant: Accountant, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    """Users are charged before their reports are on the disk, which they are before OUT; OUT is before they go."""
    charge = accountant.spend_many

    def charging(*args: Any, **options: Any) -> Any:
        told.append("charge")
        return charge(*args, **options)

    monkeypatch.setattr(accountant, "spend_many", charging)
    run(tmp_path / "out", survey, accountant)
    batch = ["charge", "fsync out.partial", "fsync out.partial"]
    assert told == [
        *("fsync out.partial", "fsync the folder"),
        *batch * 3,
        *("fsync out.new", "replace out", "fsync the folder"),
        "unlink out.partial",
    ]
