"""Figures on the page of a survey: privacy losses are rounded up."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from ldp_budget_surveys.pages.summary_blocks import certainty, loss, percent
from ldp_budget_surveys.pages.summary_page import link


@pytest.mark.parametrize(
    ("epsilon", "shown"),
    [
        (1.0, "1"),
        (Decimal("0.1"), "0.1"),
        (1.23456789, "1.235"),
        (1.0000001, "1.001"),
        (0.00012341, "0.0001235"),
        (12345.2, "12350"),
        (0, "0"),
        (None, "unbounded"),
        (math.inf, "unbounded"),
    ],
)
def test_loss_is_never_rounded_down(epsilon: float | Decimal | None, shown: str) -> None:
    assert loss(epsilon) == shown


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 0.5, 1.0, math.log(3), 2.0, 5.0, 8.0])
def test_certainty_is_the_posterior_rounded_up(epsilon: float) -> None:
    posterior = math.exp(epsilon) / (1 + math.exp(epsilon))
    text = certainty(epsilon)
    said = 1 if text.startswith("almost") else float(text.removesuffix(" %")) / 100
    assert posterior <= said <= posterior + 0.00101


def test_certainty_of_a_large_loss_is_almost_sure() -> None:
    assert certainty(50) == certainty(1e6) == "almost 100 %"


def test_percent_rounds_up_down_and_to_the_nearest() -> None:
    assert (percent(0.12345, "down"), percent(0.12345, "up"), percent(0.12345)) == ("12.3 %", "12.4 %", "12.3 %")
    assert (percent(0.5, "down"), percent(0.5, "up")) == ("50.0 %", "50.0 %")


@pytest.mark.parametrize(
    ("contact", "url"),
    [
        ("a@example.org", "mailto:a@example.org"),
        ("https://example.org/x", "https://example.org/x"),
        ("mobility desk", None),
        ("javascript:alert(1)", None),
        ("https://", None),
        ("https://example.org/ x", None),
        ("http://[", None),
        ('"a"@example.org', None),
    ],
)
def test_link_is_of_an_email_or_web_address_only(contact: str, url: str | None) -> None:
    assert link(contact) == url
