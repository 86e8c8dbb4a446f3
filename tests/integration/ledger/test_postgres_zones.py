"""Policies in a time zone on a server: many partitions, single charges, batches, a late zone, a move, a rotation."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fixed_clock import Clock
from ldp_budget import Accountant
from ldp_budget.ledger import window_backfill
from ledger_contract import check, coin, spent
from postgres_places import OnServer

pytestmark = pytest.mark.usefixtures("own_keys")

USERS = [f"user {number}" for number in range(30)]
LIMITS = ["lifetime=90", "day=1"]


@pytest.mark.parametrize("most_at_once", [5_000, 0])
def test_policies_of_zones_on_a_server_are_never_overdrawn(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_at_once: int
) -> None:
    monkeypatch.setattr(window_backfill, "_MOST_AT_ONCE", most_at_once)
    place = OnServer(4)
    with place.open(clock) as accountant:
        accountant.set_policy("default", LIMITS)
        accountant.set_policy("seoul", LIMITS, zone="Asia/Seoul")

        def charged(epsilon: str, policy: str = "default") -> int:
            single = bool(accountant.spend("single", coin(epsilon), policy=policy))
            many = accountant.spend_many(USERS, coin(epsilon), policy=policy).spent
            assert many == len(USERS) * single
            return int(single)

        clock.now = datetime(2026, 11, 21, 14, 30, tzinfo=UTC)
        assert [charged("0.5"), charged("0.5", "seoul"), charged("0.1", "seoul")] == [1, 1, 0]
        clock.now = datetime(2026, 11, 21, 15, tzinfo=UTC)
        assert [charged("0.5"), charged("0.5", "seoul"), charged("0.6", "seoul")] == [0, 1, 0]
        clock.now = datetime(2026, 11, 22, tzinfo=UTC)
        assert [charged("0.5"), charged("0.1", "seoul")] == [1, 0]
        accountant.set_policy("default", LIMITS, zone="America/New_York")
        assert charged("0.1") == 0  # it is still the 21st there, with 2 spent
        clock.now = datetime(2026, 11, 22, 5, tzinfo=UTC)
        assert [charged("1"), charged("0.1")] == [1, 0]
        assert {spent(accountant, user)["lifetime"] for user in USERS} == {3}
        check(accountant)
        accountant.ledger.rotate_key()
    with place.open(clock) as accountant:
        check(accountant)
        accountant.ledger.move_to(tmp_path / "moved.db")
    with Accountant(tmp_path / "moved.db", create=False, clock=clock) as moved:
        assert [policy.zone for policy in moved.policies()] == ["America/New_York", "Asia/Seoul"]
        assert not moved.spend("single", coin("0.1"))
        check(moved)
