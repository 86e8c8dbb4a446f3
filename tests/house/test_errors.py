"""The package's errors carry their data, also from one process to another."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from ldp_budget import Accountant, BudgetExceeded, mechanism
from ldp_budget.errors import (
    InvalidParameter,
    KeyConflict,
    LdpBudgetError,
    LedgerError,
    NameTaken,
    NotSupported,
    OutsideDomain,
    PluginError,
    ReportFileError,
    ReservationConflict,
    UnknownName,
)
from ldp_budget.trust.contract._outcome import Broken, NotChecked

ERRORS = [
    LdpBudgetError("something"),
    InvalidParameter("epsilon", "a number > 0", -1),
    OutsideDomain("0, 1 or 2", 3, 7),
    UnknownName("mechanism", "nothing", ["oue", "krr"], "Ask for one"),
    NameTaken("collection", "poll", "it exists already"),
    PluginError("toy", "it is broken"),
    NotSupported("no such rule"),
    LedgerError("budget.db", "it is locked"),
    KeyConflict("k"),
    ReservationConflict("7", "void", "committed"),
    ReportFileError("r", "it is truncated"),
    Broken("a promise"),
    NotChecked("no way to"),
]


def refusal() -> BudgetExceeded:
    """A refusal, as it is raised."""
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1", "day=0.5"])
        with pytest.raises(BudgetExceeded) as caught:
            accountant.spend("alice", mechanism("oue")(epsilon=2, domain_size=3), strict=True)
    return caught.value


def kinds(kind: type[LdpBudgetError] = LdpBudgetError) -> Iterator[type[LdpBudgetError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from kinds(below)


def test_every_kind_of_error_is_tried_here() -> None:
    ours = {kind for kind in kinds() if kind.__module__.startswith("ldp_budget.")}
    assert ours == {type(error) for error in [*ERRORS, refusal()]}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("error", [*ERRORS, refusal()], ids=lambda error: type(error).__name__)
def test_text_and_attributes_survive_pickling(error: LdpBudgetError, protocol: int) -> None:
    twin = pickle.loads(pickle.dumps(error, protocol))
    assert type(twin) is type(error)
    assert (str(twin), twin.args, vars(twin)) == (str(error), error.args, vars(error))
