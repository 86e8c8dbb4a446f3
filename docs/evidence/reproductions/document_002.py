"""Jeong, Hong and Seo 2020: RAPPOR, CMS, HCMS, 1BitMean and dBitFlip, and a survey (Jeong, Hong and Seo 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from _002_apple import settings
from _002_errors import simulation
from _002_figures import error_plots, hash_functions
from _002_rappor import exponential, normal
from _002_table import best_mechanisms

if TYPE_CHECKING:
    from collections.abc import Callable

    from report import Report

TITLE = "Jeong, Hong and Seo 2020: mechanisms in practice, and a private survey"

PARTS: tuple[tuple[str, Callable[[Report], None]], ...] = (
    ("Table 1", settings),
    ("Fig. 3", normal),
    ("Fig. 14", exponential),
    ("counts in place of clients", simulation),
    ("Fig. 15", hash_functions),
    ("Fig. 16", error_plots),
    ("Table 2", best_mechanisms),
)
