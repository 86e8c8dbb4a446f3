"""Every operation of the description under generated requests: no 5xx, and no undocumented response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from generated_requests import Site

MANY = 12


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
    pytest.importorskip("schemathesis", reason="no schemathesis: pip install 'ldp-budget[interop]'")
    from generated_requests import Site

    made = Site()
    yield made
    made.accountant.close()


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_generated_requests_get_documented_responses(site: Site, mode: str) -> None:
    from generated_requests import GenerationMode, hold

    hold(site, MANY, GenerationMode[mode.upper()])
