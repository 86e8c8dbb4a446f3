"""Surveys by their name in the ledger, or by the name of a TOML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ldp_budget_cli.app import open_ledger

if TYPE_CHECKING:
    from ldp_budget.registry.collections import Collection

    from ..questionnaires.surveys import Survey


def read_survey(ctx: click.Context, name: str) -> Survey:
    """Return the survey in a TOML file, or the one of that name in the ledger."""
    import os

    from ..questionnaires.surveys import Survey

    if os.path.exists(name) or name.endswith(".toml"):
        return Survey.from_toml(name)
    return survey_of(open_ledger(ctx).collection(name))


def survey_of(found: Collection) -> Survey:
    """Return the survey of a collection. Raises a click error for a collection of one question."""
    from ..questionnaires.survey_collection import SurveyCollection

    if not isinstance(found, SurveyCollection):
        raise click.UsageError(
            f"{found.name!r} is a collection of one question. To see it: ldp-budget collection show {found.name}"
        )
    return found.survey
