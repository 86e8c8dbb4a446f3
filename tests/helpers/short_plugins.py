"""Mechanisms in the short notation, as the tutorials have them."""

from __future__ import annotations

from typing import Any

import ldp_budget
from ldp_budget.sdk import FrequencyMechanism, integer, parity, rank, real, where  # type: ignore[attr-defined]


class HadamardResponse(FrequencyMechanism):
    """A word whose common bits with the code of the answer are likelier odd in number."""

    name = "hadamard-response"
    source = "Acharya, Sun and Zhang, AISTATS 2019"
    examples = ({"epsilon": 1, "domain_size": 10}, {"epsilon": "0.3", "domain_size": 100})
    epsilon = real("privacy loss of one report", above=0, at_most=30)
    domain_size = integer("number of possible answers", at_least=3, at_most=2**20)

    def client(self, value: Any, draw: Any) -> Any:
        code = value + 1
        word = draw.below(1 << self.domain_size.bit_length())
        return word ^ where(parity(word & code) == draw.coin(), code ^ (code - 1), 0)


class ThreeValued(FrequencyMechanism):
    """No, unsure or yes: the answer, or one by a die that says unsure least often."""

    name = "three-valued"
    domain_size = 3
    examples = ({"epsilon": 1},)
    epsilon = real("privacy loss of one report", above=0, at_most=30)

    def client(self, value: Any, draw: Any) -> Any:
        return where(draw.coin(), value, rank([3, 5], draw.below(8)))


class TickAll(FrequencyMechanism):
    """Tick all that apply: the ticks of a few options, each turned now and then."""

    name = "tick-all"
    examples = ({"epsilon": 1, "options": 3, "shown": 2}, {"epsilon": 2, "options": 12, "shown": 3})
    epsilon = real("privacy loss of one report", above=0, at_most=30)
    options = integer("options that can be ticked", at_least=2, at_most=60)
    shown = integer("options that one report shows", at_least=1, at_most=60)

    def client(self, value: Any, draw: Any) -> Any:
        places = draw.subset(self.options, self.shown)
        return 2 * places + (value >> places & 1 ^ draw.coins(self.shown) ^ 1)


@ldp_budget.hookimpl
def register_mechanisms(register: Any) -> None:
    for each in (HadamardResponse, ThreeValued, TickAll):
        register(each)
