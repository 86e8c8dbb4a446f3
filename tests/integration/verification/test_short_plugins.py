"""The contract of mechanisms, for those of the tutorials in the short notation."""

from __future__ import annotations

from ldp_budget.testing import MechanismContract
from short_plugins import HadamardResponse, ThreeValued, TickAll


class TestHadamardResponse(MechanismContract):
    mechanism = HadamardResponse
    targets = ({"epsilon": 1, "domain_size": 10},)


class TestThreeValued(MechanismContract):
    mechanism = ThreeValued
    targets = ThreeValued.examples


class TestTickAll(MechanismContract):
    mechanism = TickAll
    targets = ({"epsilon": 1, "options": 3, "shown": 2},)
