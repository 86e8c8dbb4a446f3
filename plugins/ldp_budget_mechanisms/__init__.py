"""The built-in mechanisms: one plugin like any other, one file for each family."""

from __future__ import annotations

from collections.abc import Callable

from ldp_budget.authoring.base import Mechanism
from ldp_budget.catalogue.hookspecs import hookimpl
from ldp_budget.guarantees import Guarantee

from .bounded_laplace import BoundedLaplace
from .bounded_staircase import BoundedStaircase
from .cms import CountMeanSketch
from .d_bit_flip import DBitFlip
from .declared import Declared
from .gaussian import Gaussian
from .hcms import HadamardCountMeanSketch
from .laplace import Laplace
from .matrix_substitution import MatrixSubstitution
from .one_bit_mean import OneBitMean
from .random_substitution import RandomSubstitution
from .randomized_response import RandomizedResponse
from .rappor import Rappor
from .staircase import Staircase
from .subset_selection import SubsetSelection
from .unary import OptimizedUnaryEncoding, SymmetricUnaryEncoding, UnaryEncoding


@hookimpl
def register_mechanisms(register: Callable[[type[Mechanism]], None]) -> None:
    for mechanism in (
        Gaussian,
        Laplace,
        Staircase,
        BoundedLaplace,
        BoundedStaircase,
        RandomizedResponse,
        UnaryEncoding,
        SymmetricUnaryEncoding,
        OptimizedUnaryEncoding,
        RandomSubstitution,
        SubsetSelection,
        MatrixSubstitution,
        CountMeanSketch,
        HadamardCountMeanSketch,
        OneBitMean,
        DBitFlip,
        Rappor,
        Declared,
    ):
        register(mechanism)


@hookimpl
def declaration_of(guarantee: Guarantee, source: str) -> Mechanism:
    """What stands in a ledger for the objects of other libraries."""
    return Declared.of(guarantee, source)
