"""The built-in mechanisms: one plugin like any other, one file for each family."""

from __future__ import annotations

from collections.abc import Callable

from ldp_budget.base import Mechanism
from ldp_budget.hookspecs import hookimpl

from .gaussian import Gaussian
from .matrix_substitution import MatrixSubstitution
from .random_substitution import RandomSubstitution, SubsetSelection
from .randomized_response import RandomizedResponse
from .unary import OptimizedUnaryEncoding, SymmetricUnaryEncoding, UnaryEncoding


@hookimpl
def register_mechanisms(register: Callable[[type[Mechanism]], None]) -> None:
    for mechanism in (
        Gaussian,
        RandomizedResponse,
        UnaryEncoding,
        SymmetricUnaryEncoding,
        OptimizedUnaryEncoding,
        RandomSubstitution,
        SubsetSelection,
        MatrixSubstitution,
    ):
        register(mechanism)
