"""Certificates of exact totals, as `compose` and `policy simulate` write them to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .command_groups import part
from .notes import print_note
from .output import next_step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ldp_budget.guarantees import Guarantee


def write_certificate(path: str, charges: Iterable[tuple[Guarantee, int]], delta: Any) -> None:
    """Write the certificate of an exact total, and print the next step."""
    total = part("total-certificate")
    data: bytes = total.written(total.certificate(charges, delta=delta))
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise click.ClickException(f"Cannot write {path}: {error.strerror}. Nothing was written.") from None
    claim = json.loads(data)
    print_note(f"Wrote {path}: ε = {claim['epsilon']} at δ = {claim['delta']}, {len(data)} bytes.")
    next_step(f"ldp-budget check {path}")
