"""The errors of the mechanisms of docs/tutorials/repeated-survey.md, known before the first question.

    python docs/tutorials/examples/repeated_survey_choices.py

Errors are computed, not simulated. Those of visits are for answers spread like those of the file; a real survey would
take last year's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from repeated_survey import HEALTH, QUESTIONS, error_of_one_report, people, values

from ldp_budget import Accountant, Mechanism, mechanism
from ldp_budget.registry.ranking import rank_frequency
from ldp_budget_cli.output import print_table


def choices(users: int) -> Iterator[tuple[str, ...]]:
    """For each ε of Jeong, Hong and Seo's Table 2: their choice and `compare`'s, with the standard errors."""
    every_bit: Any = mechanism("d-bit-flip")(epsilon=1, buckets=len(HEALTH), bits=len(HEALTH))
    sketch: Any = mechanism("cms")(epsilon=1, hashes=512, width=128, domain_size=len(HEALTH))
    for epsilon, printed in (("0.1", None), ("0.5", every_bit), ("1", every_bit), ("2", sketch), ("5", every_bit)):
        best = rank_frequency(epsilon, len(HEALTH), users)[0]
        error = "-" if printed is None else f"{100 * printed.at_epsilon(epsilon).share_errors(users)[1]:.2f} %"
        name = "none" if printed is None else printed.name
        yield epsilon, name, error, best["mechanism"], f"{100 * best['mean_std_error']:.2f} %"


def means(answers: Any) -> list[tuple[str, ...]]:
    """(mechanism, bias, standard error, root of the MSE) of a mean at ε = 1, for answers spread like these."""
    rows = []
    for name in ("one-bit-mean", "bounded-staircase", "bounded-laplace", "staircase", "laplace"):
        ends = {"maximum": 77} if name == "one-bit-mean" else {"lower": 0, "upper": 77}
        bias, mse = error_of_one_report(mechanism(name)(epsilon=1, **ends), answers)
        error = ((mse - bias**2) / len(answers)) ** 0.5
        rows.append(((bias**2 + error**2) ** 0.5, name, bias, error))
    return [(name, f"{bias:.2f}", f"{error:.2f}", f"{root:.2f}") for root, name, bias, error in sorted(rows)]


def memoised(answers: Any) -> Iterator[tuple[str, ...]]:
    """ε charged and standard error of the mean over T rounds, for answers that stay: fresh and memoised bits."""
    bit = mechanism("one-bit-mean")
    kept = bit(epsilon=1, maximum=77, rounding=7)
    flipped = {"epsilon": 1, "maximum": 77, "rounding": 7, "flip": "0.2"}
    for name, one, bits in (
        ("fresh, ε = 1", bit(epsilon=1, maximum=77), None),
        ("fresh, ε = 0.25", bit(epsilon="0.25", maximum=77), None),
        ("memoised, no flip", kept, kept),
        ("memoised, flip 0.2", bit(**flipped), kept),
        ("the same, any inputs", bit(**flipped, any_inputs=True), kept),
    ):
        # The variance of the memoised bits stays however many rounds there are; that of the flips is averaged.
        stays = 0.0 if bits is None else error_of_one_report(bits, answers)[1]
        varies = error_of_one_report(one, answers)[1] - stays
        cells = [(charged(one, t), ((stays + varies / t) / len(answers)) ** 0.5) for t in (1, 4, 52)]
        yield name, *(f"{epsilon:.3g} / {error:.2f}" for epsilon, error in cells)


def charged(one: Mechanism, reports: int) -> float:
    """The charge for reports of one value, under a label."""
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
        receipt = accountant.spend("alice", one, reports=reports, label="value")
    return float(receipt.to_json()["cost"]["epsilon"])


def main() -> None:
    visits = values(QUESTIONS[1], people()[0::2])
    print(f"Health: the standard error of a share, {len(visits)} users")
    print_table(("epsilon", "Jeong et al.", "its error", "compare", "its error"), list(choices(len(visits))))
    print(f"\nVisits: the error of a mean at ε = 1, {len(visits)} users")
    print_table(("mechanism", "bias", "std error", "root MSE"), means(visits))
    print("\nVisits: ε charged / standard error of the mean over all rounds, if no answer changes")
    print_table(("reports", "1 round", "4 rounds", "52 rounds"), list(memoised(visits)))


if __name__ == "__main__":
    main()
