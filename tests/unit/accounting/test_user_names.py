"""User names: outer white space and Unicode forms do not make another user."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.toy_store import ToyStore
from fixed_clock import Clock
from ldp_budget import Accountant, Collection, InvalidParameter, mechanism
from ldp_budget._validation import canonical_text
from ldp_budget.accounting.batch import Spend
from ldp_budget.reports.charged_release import Released, release
from ldp_budget.reports.inbox import Inbox
from ldp_budget_service.invitations import Invitations

NAME = "Zoë"
SPELLINGS = (NAME, f"{NAME} ", f"\t{NAME}", f"\N{NO-BREAK SPACE}{NAME}\n", unicodedata.normalize("NFD", NAME))
INVISIBLE = ("\N{ZERO WIDTH SPACE}", "\N{ZERO WIDTH NO-BREAK SPACE}", "\N{RIGHT-TO-LEFT MARK}", "\N{WORD JOINER}")
COIN = mechanism("oue")(epsilon=1, domain_size=3)


@pytest.fixture(params=[1, 3])
def ledger(request: pytest.FixtureRequest, clock: Clock) -> Iterator[Accountant]:
    store: Any = ToyStore(request.param)
    with Accountant(store, clock=clock) as made:
        made.set_policy("default", ["lifetime=2"])
        yield made


def one_account(ledger: Accountant, charges: int = 2) -> bool:
    """Check that the ledger charged one account so often, and finds it by each spelling."""
    stats = ledger.stats()
    rows = [len(ledger.history(spelling)) for spelling in SPELLINGS]
    return (stats["users"], stats["entries_by_kind"]["spent"], rows) == (1, charges, [charges] * len(SPELLINGS))


def test_user_name_is_trimmed_and_composed() -> None:
    assert {canonical_text(spelling) for spelling in SPELLINGS} == {NAME}
    assert {canonical_text(f"{mark} {NAME}{mark}") for mark in INVISIBLE} == {NAME}
    assert canonical_text("alice") == "alice"
    assert canonical_text("Alice") != canonical_text("alice")
    for text in (
        *SPELLINGS,
        *INVISIBLE,
        f"{INVISIBLE[0]} {INVISIBLE[1]}\N{COMBINING DIAERESIS} ",
        " \N{COMBINING DIAERESIS}a ",
        "\u1e9b\u0323 ",
        "\ud800 ",
    ):
        assert canonical_text(canonical_text(text)) == canonical_text(text)


def test_spend_by_other_spellings_charges_one_account(ledger: Accountant) -> None:
    """Four spellings of one name had four budgets: 8.0 charged under lifetime=2."""
    statuses = [ledger.spend(spelling, COIN, key=f"k{n}").status for n, spelling in enumerate(SPELLINGS)]
    assert statuses == ["spent"] * 2 + ["refused"] * 3
    assert ledger.spend(SPELLINGS[1], COIN, key="k0").repeated, "a key belongs to the user, in every spelling"
    assert ledger.quote(SPELLINGS[3], COIN).affordable_reports == 0
    assert ledger.reserve(SPELLINGS[4], COIN).status == "refused"
    assert {ledger.balance(spelling).limits[0].spent_units.epsilon for spelling in SPELLINGS} == {2 * 10**9}
    assert {row.user for row in ledger.balances(SPELLINGS)} == {NAME}
    assert one_account(ledger)
    assert ledger.erase(SPELLINGS[2])
    assert all(ledger.is_erased(spelling) for spelling in SPELLINGS)


@pytest.mark.parametrize("singly", [False, True])
def test_release_by_other_spellings_charges_one_account(ledger: Accountant, tmp_path: Path, singly: bool) -> None:
    """`randomize --spend` released a report for each spelling of a name."""
    survey, refused = Collection("survey", COIN), list[str]()
    secrets = [b"s" * 16] * 5 if singly else None
    done = release(
        tmp_path / "out",
        survey,
        ledger,
        np.zeros(5, np.int64),
        SPELLINGS,
        policy="default",
        secrets=secrets,
        on_refused=refused.extend,
    )
    assert done == Released(2, 3)
    assert refused == list(SPELLINGS[2:]), "by the names that were given"
    assert one_account(ledger)


def test_invitations_and_inbox_know_a_user_by_each_spelling(ledger: Accountant, clock: Clock) -> None:
    """A link to `Zoë ` was another user's than a link to `Zoë`, with a budget of its own."""
    survey = Collection("survey", COIN)
    ledger.add_collection(survey)
    invitations = Invitations(ledger)
    made = list(invitations.invite("survey", SPELLINGS, ledger.now() + timedelta(days=1)))
    found = [invitations.find(token) for _, token in made]
    assert {(each.user, each.key) for each in found if each is not None} == {(NAME, found[0].key)}  # type: ignore[union-attr]
    clock.advance(seconds=1)
    invitations.revoke("survey", SPELLINGS[1])
    assert [invitations.find(token) for _, token in made] == [None] * 5
    inbox = Inbox(ledger, survey)
    report = COIN.randomize([1]).astype(COIN.client_program().report["dtype"])[0].tobytes()
    assert [bool(inbox.take(spelling, "k", report)) for spelling in SPELLINGS] == [True] * 5
    assert len(inbox) == 1, "one key, one report"
    assert one_account(ledger, 1)


@pytest.mark.parametrize("empty", ["", " ", "\t\n", "\N{NO-BREAK SPACE}", "\N{ZERO WIDTH SPACE} "])
def test_user_name_of_white_space_alone_is_an_error(ledger: Accountant, empty: str) -> None:
    for call in (
        lambda: ledger.spend(empty, COIN),
        lambda: ledger.quote(empty, COIN),
        lambda: ledger.reserve(empty, COIN),
        lambda: ledger.balance(empty),
        lambda: ledger.history(empty),
        lambda: ledger.erase(empty, unknown=True),
        lambda: ledger.spend_many(["alice", empty], COIN),
        lambda: list(ledger.balances([empty])),
    ):
        with pytest.raises(InvalidParameter, match="user must be a string"):
            call()
    [answer] = ledger.spend_batch([Spend(empty, COIN)], key="batch")
    assert isinstance(answer.error, InvalidParameter)
    assert ledger.stats()["users"] == 0


@pytest.mark.parametrize(
    "name", ["\N{HANGUL FILLER}", "\N{BRAILLE PATTERN BLANK}", "\N{HALFWIDTH HANGUL FILLER} ", "\u034f"]
)
def test_user_name_without_a_visible_character_is_refused(name: str) -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        with pytest.raises(InvalidParameter, match="at least one character that is not white space"):
            accountant.spend(name, COIN)
        assert accountant.stats()["users"] == 0
