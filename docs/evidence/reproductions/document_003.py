"""Kang, Lee and Hong 2009: random substitution and its l-fold extension (Kang, Lee and Hong 2009)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from _003_extension import section_5
from _003_figures import figures_2_to_7, figures_8_to_11
from _003_matrix import sections_3_and_4_1
from _003_tables import TABLES, table_part, together

if TYPE_CHECKING:
    from collections.abc import Callable

    from report import Report

TITLE = "Kang, Lee and Hong 2009: random substitution"

PARTS: tuple[tuple[str, Callable[[Report], None]], ...] = (
    ("sections 3 and 4.1", sections_3_and_4_1),
    ("Figures 2 to 7", figures_2_to_7),
    ("section 5", section_5),
    ("Figures 8 to 11", figures_8_to_11),
    *((f"Table {number}", table_part(number)) for number in TABLES),
    ("the tables together", together),
)
