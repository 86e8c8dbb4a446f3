"""Fixtures of the integration tier."""

from process_fixtures import (  # noqa: F401
    axe,
    browser,
    device,
    farm,
    many_vectors,
    programs,
    server,
    short_patience,
    warm_command,
)
