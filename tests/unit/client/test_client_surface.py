"""The client of a service: the data that it sends, the data that it does not send, and its imports."""

from __future__ import annotations

import pytest

from ldp_budget import Limit, mechanism
from ldp_budget_service.client import Client


def test_digest_is_keyed_by_the_api_key_and_the_data_is_not_sent() -> None:
    """The digested data may be answers; without the key they cannot be guessed."""
    with Client("https://unreachable.invalid", "one") as one, Client("https://unreachable.invalid", "other") as other:
        assert one.keyed_digest(b"yes") == one.keyed_digest(bytearray(b"yes"))
        assert len({one.keyed_digest(b"yes"), one.keyed_digest(b"no"), other.keyed_digest(b"yes")}) == 3


@pytest.mark.parametrize("text", ["lifetime=4", "day=0.1,1e-6", "week=4,9e-7+1e-7,zcdp", "month=30,1e-6,renyi:3"])
def test_limit_is_sent_as_its_full_text(text: str) -> None:
    limit = Limit.parse(text)
    assert Limit.parse(str(limit)) == limit
    assert Limit.parse(str(limit)).capacity == limit.capacity


def test_mechanism_is_sent_as_name_and_parameters() -> None:
    from ldp_budget_service.api.schemas import charged

    oue = mechanism("oue")(epsilon="0.5", domain_size=4)
    assert charged(oue)["mechanism"] == {"name": "oue", **oue.declared}
    assert charged(oue)["at_least"] == list(oue.guarantee.least_costs())
