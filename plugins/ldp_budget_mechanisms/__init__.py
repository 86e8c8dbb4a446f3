"""The built-in mechanisms: an ordinary plugin, with one file for each family."""

from __future__ import annotations

from collections.abc import Callable

from ldp_budget.guarantees import Guarantee
from ldp_budget.registry.hookspecs import hookimpl
from ldp_budget.sdk.mechanism import Mechanism

from .additive_noise import Gaussian, Laplace
from .bounded_noise import BoundedLaplace, BoundedStaircase
from .count_mean_sketch import CountMeanSketch, HadamardCountMeanSketch
from .d_bit_flip import DBitFlip
from .declared import Declared
from .heavy_hitters import HeavyHitters
from .hybrid import Hybrid
from .loloha import Loloha
from .matrix_substitution import MatrixSubstitution
from .one_bit_mean import OneBitMean
from .projective_geometry import ProjectiveGeometryResponse
from .random_substitution import RandomSubstitution, SubsetSelection
from .randomized_response import RandomizedResponse
from .rappor import Rappor
from .square_wave import SquareWave
from .staircase import Staircase
from .ticks import Ticks
from .unary_encoding import OptimizedUnaryEncoding, SymmetricUnaryEncoding, UnaryEncoding


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
        ProjectiveGeometryResponse,
        MatrixSubstitution,
        CountMeanSketch,
        HadamardCountMeanSketch,
        OneBitMean,
        Hybrid,
        SquareWave,
        DBitFlip,
        Rappor,
        Loloha,
        HeavyHitters,
        Ticks,
        Declared,
    ):
        register(mechanism)


@hookimpl
def declaration_of(guarantee: Guarantee, source: str) -> Mechanism:
    """Return the source line that a ledger stores for an object of another library."""
    return Declared.of(guarantee, source)
