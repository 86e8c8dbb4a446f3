"""Whose turn it is in a survey with a rotation, for `invite` and `randomize --spend`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ldp_budget_cli.app import check_local, open_ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ldp_budget.registry.collections import Collection

    from ..rotation import Period, Rotation

period_option = click.option(
    "--period",
    metavar="DAY",
    help="Of a survey with rotate: ask those whose turn it is in the period of this day, such as 2026-11-23 [default: today]",
)


class Turn:
    """The turn of some users: how many were listed, and how many of them are asked in the period."""

    def __init__(self, rotation: Rotation, period: Period, unit: str) -> None:
        self.period = period
        self._rotation, self._unit = rotation, unit
        self._listed = self._asked = 0

    def __str__(self) -> str:
        return f"{self._unit} of {self.period.name}: {self._asked:,} of {self._listed:,} asked"

    def select(self, users: Sequence[str]) -> list[int]:
        """Return the places of those whose turn it is. The others are neither asked nor charged, nor replaced."""
        turns = self._rotation.turns(users, self.period)
        self._listed, self._asked = self._listed + len(users), self._asked + sum(turns)
        return [place for place, asked in enumerate(turns) if asked]

    def asked_of(self, users: Iterable[str]) -> Iterator[str]:
        """Yield those whose turn it is."""
        for user in users:
            if self.select([user]):
                yield user

    def to_json(self) -> dict[str, Any]:
        """Return the period, and the numbers of users who were asked and who were not."""
        return {"period": self.period.name, "asked": self._asked, "not_asked": self._listed - self._asked}


def turn_of(ctx: click.Context, found: Collection, policy: str, day: str | None, *, spend: bool) -> Turn | None:
    """Return the turn of a survey with a rotation; None for any other collection, and without charges."""
    from ..questionnaires.survey_collection import rotating

    survey = rotating(found)
    if survey is None or not spend:
        if day is not None:
            why = "a survey with rotate" if survey is None else "charges of a survey with rotate: add --spend"
            raise click.UsageError(f"--period is for {why}. Leave it out.")
        return None
    from ..rotation import Rotation, period_for

    ledger = check_local(
        open_ledger(ctx), "the ledger's key decides whose turn it is: run it on the ledger's machine"
    )
    rotation = Rotation.of(ledger, survey, ledger.policy(policy))
    assert rotation is not None
    return Turn(rotation, period_for(rotation, ledger.now(), day), survey.every)
