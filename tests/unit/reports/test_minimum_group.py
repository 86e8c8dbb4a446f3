"""The minimum group of a collection: no round is smaller, wherever it is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_budget import Accountant, Collection, InvalidParameter, NameTaken, mechanism
from ldp_budget.errors import PublicationError, TooFewReports
from ldp_budget.registry.public_definition import MINIMUM_GROUP
from ldp_budget.reports.inbox import Inbox, Sent
from ldp_budget_surveys.publication.publisher import Publisher

OUE = mechanism("oue")(epsilon="1", domain_size=3)


def inbox_of(accountant: Accountant, reports: int, **more: Any) -> Inbox:
    """Return an inbox with waiting reports."""
    box = Inbox(accountant, Collection("party", OUE, **more))
    box.take_many([Sent(f"user {number}", "k", b"\1") for number in range(reports)])
    return box


@pytest.mark.slow
@settings(deadline=None)
@given(
    least=st.integers(1, 30),
    batches=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    groups=st.lists(st.none() | st.integers(1, 60), min_size=1, max_size=4),
)
def test_no_round_is_smaller_than_the_minimum_group(least: int, batches: list[int], groups: list[int | None]) -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        box, sent = Inbox(accountant, Collection("party", OUE, minimum_group=least)), 0
        for number, (batch, group) in enumerate(zip(batches, groups, strict=False)):
            box.take_many([Sent(f"user {sent + place}", "k", b"\1") for place in range(batch)])
            sent += batch
            try:
                box.seal(f"round {number}", group)
            except TooFewReports:
                assert len(box) < (group or least)
            except InvalidParameter:
                assert group is not None
                assert group < least
        counts = [box.count(name) for name in box.rounds()]
        assert all(count >= least for count in counts)
        assert sum(counts) + len(box) == sent


@pytest.mark.policy("lifetime=4")
def test_stored_reports_refuse_a_smaller_group_of_another_object(accountant: Accountant) -> None:
    """The stored collection counts, and not the one that the caller made."""
    inbox_of(accountant, 25)
    with pytest.raises(InvalidParameter, match="at least 20, the minimum group of party: got 1"):
        accountant.reports.seal("party", "small", 1)
    assert accountant.reports.seal("party", "whole") == MINIMUM_GROUP
    assert accountant.reports.waiting("party") == 5


@pytest.mark.policy("lifetime=4")
def test_minimum_group_never_changes(accountant: Accountant) -> None:
    Inbox(accountant, Collection("party", OUE, minimum_group=30))
    with pytest.raises(NameTaken):
        Inbox(accountant, Collection("party", OUE, minimum_group=1))
    assert accountant.collection("party").minimum_group == 30


@pytest.mark.slow
def test_publication_seals_no_smaller_round(tmp_path: Path) -> None:
    with Accountant(tmp_path / "ledger.db") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        box = inbox_of(accountant, MINIMUM_GROUP - 1)
        publisher = Publisher(accountant)
        publisher.new_key("example")
        with pytest.raises(PublicationError, match="needs 20 reports"):
            publisher.publish(accountant.collection("party"), tmp_path / "site")
        assert (box.rounds(), len(box)) == ([], MINIMUM_GROUP - 1)
        box.take_many([Sent(f"late {number}", "k", b"\1") for number in range(3)])
        published = publisher.publish(accountant.collection("party"), tmp_path / "site")
        assert (published.statement["reports"], len(box)) == (MINIMUM_GROUP, 2)
