"""Checks of the client program: it is the client, to the last byte, and its law is the channel of the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...authoring.interpreter import StreamDraws, read, run
from ...errors import NotSupported
from ...randomness.streams import SeededStream, Stream
from .._advice import undefined
from ..verification.dominance import UNPROVEN, VIOLATED
from ..verification.programs import check_program
from ._drawing import inputs_of, others_of, secrets_of
from ._outcome import Broken, NotChecked, expect

if TYPE_CHECKING:
    from ...authoring.base import Mechanism
    from ...authoring.programs import Program

_REPORTS = 60
_OTHERS = 4
_MOST_INPUTS = 6
_MOST_OUTCOMES = 20_000


def program_draws_what_the_client_draws(mechanism: Mechanism) -> None:
    """From the same bytes, and the same secret, the program makes the report of the client, and reads no more."""
    program = _program(mechanism)
    values = [*inputs_of(mechanism)[:_MOST_INPUTS], *others_of(mechanism, _OTHERS)]
    for seed in range(_REPORTS):
        value = values[seed % len(values)]
        secret = secrets_of(1, seed)[0] if program.memo else None
        own, other = Counted(seed), Counted(seed)
        row = mechanism.randomize([value], rng=own, secrets=None if secret is None else [secret])
        report = run(program, read(program, value), StreamDraws(other, secret, mechanism.fingerprint))
        layout = (np.dtype(program.report["dtype"]), tuple(program.report["shape"]))
        found = (row.dtype.newbyteorder("<"), row.shape[1:])
        expect(found == layout, f"the client's reports are {found}, and the program's {layout}")
        same = row.astype(layout[0]).tobytes() == report
        expect(same, f"of the same bytes the program makes another report of {value} than the client")
        expect(own.count == other.count, f"for {value} the program reads {other.count} bytes, the client {own.count}")


def program_law_is_the_channel(mechanism: Mechanism) -> None:
    """Whole reports of the program, in fractions, are within the promise, and are what `compare` says."""
    found = check_program(mechanism, inputs_of(mechanism)[:_MOST_INPUTS], _MOST_OUTCOMES)
    if found.verdict == VIOLATED:
        raise Broken(found.why)
    if found.verdict == UNPROVEN:
        raise NotChecked(found.why)


def _program(mechanism: Mechanism) -> Program:
    try:
        return mechanism.client_program()
    except NotSupported as error:
        raise NotChecked(undefined(mechanism, error, "client_program")) from None


class Counted(Stream):
    """A seeded stream, and how many bytes were read of it."""

    def __init__(self, seed: int) -> None:
        self._source, self.count = SeededStream(seed), 0

    def read(self, count: int) -> bytes:
        self.count += count
        return bytes(self._source.read(count))
