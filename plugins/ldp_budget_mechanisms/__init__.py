"""The built-in mechanisms: an ordinary plugin, with one file for each family, which is imported with its first use.

A mechanism is its fields and one client program; guarantee, proof and estimates follow from the toolkit `sdk`.
It imports `ldp_budget`, and of that only what the author of a plugin may import.
The accountant knows no mechanism by name: it finds these by the entry-point group `ldp_budget`.
"""

from __future__ import annotations

from collections.abc import Callable

from ldp_budget.guarantees import Guarantee
from ldp_budget.registry.hookspecs import Deferred, hookimpl
from ldp_budget.sdk.mechanism import Mechanism

MECHANISMS = (
    Deferred("gaussian", (), f"{__name__}.additive_noise", "Gaussian"),
    Deferred("laplace", (), f"{__name__}.additive_noise", "Laplace"),
    Deferred("staircase", (), f"{__name__}.staircase", "Staircase"),
    Deferred("bounded-laplace", (), f"{__name__}.bounded_noise", "BoundedLaplace"),
    Deferred("bounded-staircase", (), f"{__name__}.bounded_noise", "BoundedStaircase"),
    Deferred("randomized-response", ("rr", "warner"), f"{__name__}.randomized_response", "RandomizedResponse"),
    Deferred("one-sided", ("garbling",), f"{__name__}.one_sided", "OneSidedResponse"),
    Deferred("unary-encoding", (), f"{__name__}.unary_encoding", "UnaryEncoding"),
    Deferred("sue", ("symmetric-unary-encoding",), f"{__name__}.unary_encoding", "SymmetricUnaryEncoding"),
    Deferred("oue", ("optimized-unary-encoding",), f"{__name__}.unary_encoding", "OptimizedUnaryEncoding"),
    Deferred("random-substitution", ("grr",), f"{__name__}.generalized_randomized_response", "RandomSubstitution"),
    Deferred("subset-selection", ("subset",), f"{__name__}.subset_selection", "SubsetSelection"),
    Deferred(
        "pgr", ("projective-geometry-response",), f"{__name__}.projective_geometry", "ProjectiveGeometryResponse"
    ),
    Deferred("matrix-substitution", (), f"{__name__}.matrix_substitution", "MatrixSubstitution"),
    Deferred("cms", ("count-mean-sketch",), f"{__name__}.count_mean_sketch", "CountMeanSketch"),
    Deferred("hcms", ("hadamard-count-mean-sketch",), f"{__name__}.count_mean_sketch", "HadamardCountMeanSketch"),
    Deferred("olh", ("optimal-local-hashing", "local-hashing"), f"{__name__}.local_hashing", "LocalHashing"),
    Deferred("one-bit-mean", (), f"{__name__}.one_bit_mean", "OneBitMean"),
    Deferred("hybrid", (), f"{__name__}.hybrid", "Hybrid"),
    Deferred("random-threshold", ("threshold",), f"{__name__}.random_threshold", "RandomThreshold"),
    Deferred("rounded-response", (), f"{__name__}.rounded_response", "RoundedResponse"),
    Deferred("square-wave", ("sw",), f"{__name__}.square_wave", "SquareWave"),
    Deferred("d-bit-flip", (), f"{__name__}.d_bit_flip", "DBitFlip"),
    Deferred("rappor", (), f"{__name__}.rappor", "Rappor"),
    Deferred("loloha", (), f"{__name__}.loloha", "Loloha"),
    Deferred("heavy-hitters", (), f"{__name__}.heavy_hitters", "HeavyHitters"),
    Deferred("ticks", ("privset",), f"{__name__}.ticks", "Ticks"),
    Deferred("grid", (), f"{__name__}.grid", "Grid"),
    Deferred("discrete-gaussian", (), f"{__name__}.discrete_gaussian", "DiscreteGaussian"),
    Deferred("declared", (), f"{__name__}.declared", "Declared"),
)


@hookimpl
def register_mechanisms(register: Callable[[type[Mechanism] | Deferred], None]) -> None:
    for mechanism in MECHANISMS:
        register(mechanism)


@hookimpl
def declaration_of(guarantee: Guarantee, source: str) -> Mechanism:
    """Return the source line that a ledger stores for an object of another library."""
    from .declared import Declared

    return Declared.of(guarantee, source)
