"""Rankings: every installed mechanism, calibrated to the same ε and sorted by its error."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from ldp_budget._dataframes import Tabular
from ldp_budget._validation import check_share, shown_with_type
from ldp_budget.errors import InvalidParameter, LdpBudgetError, NotSupported, PluginError
from ldp_budget.registry.plugins import mechanisms
from ldp_budget.sdk.domain import Categories, check_users
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.numeric_mechanism import NumericMechanism

from .margins import Precision, margin_for, respondents_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    ExtraColumns = Callable[[Mechanism], Mapping[str, Any]]

Number = int | float | str | Decimal
ANY_NUMBER = "any"
"""`at_most` of any number of ticks."""
M = TypeVar("M", bound=Mechanism)


class Ranking(Tabular, list[dict[str, Any]]):
    """Rows of a ranking, best first. Notebooks show this list as a table."""

    caption = "best first"

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the rows as a plain list."""
        return list(self)


def rank_frequency(
    epsilon: Number,
    domain_size: int,
    users: int,
    *,
    margin: float | None = None,
    extra: ExtraColumns | None = None,
    at_most: int | str | None = None,
) -> Ranking:
    """Predicted standard errors of a frequency, mechanism by mechanism, least mean error first.

    Parameters:
        epsilon: of one report.
        domain_size: the number of answers.
        users: the number of reporting users.
        margin: if given, each row also has `respondents`, the number of users for which every share has this margin
            of error at 95 % confidence; see `respondents_for`.
        extra: a function that returns further columns for a mechanism's row.
        at_most: for *tick all that apply*, the most ticks of a user, or `any`: the rows are those of designs for sets, without a
            `consistent_error`.

    Returns:
        A row for each available mechanism. `worst_std_error` is the standard error at the worst answer and
            frequency, `mean_std_error` the root of the mean variance over the answers. `consistent_error` is the mean
            error of consistent shares, see `predict_consistent_error`. `margin` is the error that 95 of 100 surveys stay
            below at the worst answers, see `margins`. `bits` is the size of a report, None if it is
            unknown. `setting` is what `FrequencyMechanism.for_answers` has chosen besides ε and the number of answers.

    Raises:
        InvalidParameter: an argument has the wrong type or is out of range.
    """
    check_users(users)
    if margin is not None:
        check_share("margin", margin)
    target: dict[str, Any] = {"epsilon": epsilon, "domain_size": domain_size}
    rows = []
    for mechanism in frequency_mechanisms(epsilon, domain_size, at_most):
        try:
            worst, mean = mechanism.share_errors(users)
        except NotSupported:
            continue  # it is charged alone
        rows.append(
            {
                "kind": "frequency",
                "mechanism": mechanism.name,
                "worst_std_error": worst,
                "mean_std_error": mean,
                "margin": margin_for(mechanism, users),
                "consistent_error": None if at_most is not None else _consistent_error(mechanism, users),
                "bits": mechanism.report_bits,
                **({} if margin is None else {"respondents": respondents_for(mechanism, margin)}),
                "setting": _setting(mechanism, target),
                **({} if extra is None else extra(mechanism)),
            }
        )
    return Ranking(sorted(rows, key=lambda row: _rounded(row["mean_std_error"])))


def frequency_mechanisms(
    epsilon: Number, domain_size: int, at_most: int | str | None = None
) -> list[FrequencyMechanism]:
    """Return every installed mechanism of that many answers, calibrated to ε, in the order of registration.

    Parameters:
        epsilon: of one report.
        domain_size: the number of answers.
        at_most: for sets of ticks, the most ticks of a user, or `any`.

    Raises:
        InvalidParameter: an argument has the wrong type or is out of range.
        NotSupported: no installed mechanism takes sets of ticks.
    """
    for name, value in (("epsilon", epsilon), ("domain_size", domain_size)):
        check_number(name, value)
    if at_most is not None:
        most = None if at_most == ANY_NUMBER else at_most
        sets = [
            kind.tick_designs(epsilon, domain_size, most) for kind in mechanisms() if hasattr(kind, "tick_designs")
        ]
        if not sets:
            raise NotSupported("no installed mechanism randomizes a set of ticks")
        return [each for designs in sets for each in designs]
    target: dict[str, Any] = {"epsilon": epsilon, "domain_size": domain_size}
    calibrated = _calibrated(FrequencyMechanism, lambda each: each.for_answers(**target), target)
    found = [mechanism for mechanism in calibrated if mechanism.domain == Categories(domain_size)]
    if not found:
        raise InvalidParameter("domain_size", "a whole number >= 2", domain_size)
    return found


def rank_numeric(
    epsilon: Number, lower: Number, upper: Number, users: int | None = None, *, extra: ExtraColumns | None = None
) -> Ranking:
    """Bias and MSE of one report, mechanism by mechanism, least MSE for a uniform prior first.

    Parameters:
        epsilon: of one report.
        lower: the smallest value a user can have.
        upper: the largest value a user can have.
        users: the number of users. If given, each row also has `mean_error`, the worst-case error of an estimated
            mean (`NumericMechanism.mean_error`), and the rows are sorted by it. A bias does not shrink with the
            number of users.
        extra: a function that returns further columns for a mechanism's row.

    Returns:
        A row for each available mechanism, with bias and MSE at the edges and the center. One row is
            `constant-output`: always reporting the center costs no privacy, so a mechanism with a larger error is
            of little use. `setting` is what `NumericMechanism.for_range` has chosen besides ε and the range.

    Raises:
        InvalidParameter: an argument has the wrong type or is out of range.
    """
    if users is not None:
        check_users(users)
    for name, value in (("epsilon", epsilon), ("lower", lower), ("upper", upper)):
        check_number(name, value)
    target: dict[str, Any] = {"epsilon": epsilon, "lower": lower, "upper": upper}
    rows = []
    for mechanism in _calibrated(NumericMechanism, lambda each: each.for_range(**target), target):
        utility = mechanism.utility()
        errors = {name: utility[name] for name in ("bias", "mse", "mse_uniform_prior")}
        mean = (
            {}
            if users is None
            else {"mean_error": mechanism.mean_error(users), "margin": margin_for(mechanism, users)}
        )
        setting = _setting(mechanism, target)
        row = {"kind": "numeric", "mechanism": mechanism.name, **mean, **errors, "setting": setting}
        rows.append({**row, **({} if extra is None else extra(mechanism))})
    rows.append(_constant_output(lower, upper, users))
    order = "mse_uniform_prior" if users is None else "mean_error"
    return Ranking(sorted(rows, key=lambda row: _rounded(row[order])))


def _consistent_error(mechanism: FrequencyMechanism, users: int) -> float:
    import numpy as np

    from ldp_budget.sdk.consistency import falling_shares, predict_consistent_error

    precision, shares = Precision.of(mechanism), falling_shares(mechanism.answers)
    errors = [precision.variance_at(float(share), users) ** 0.5 for share in shares]
    law = None
    if not precision.collisions and mechanism.draws_per_report == 1:
        with suppress(NotImplementedError, NotSupported):
            p, q = zip(*mechanism.support_probabilities, strict=True)
            law = np.array(p, np.float64), np.array(q, np.float64)
    return predict_consistent_error(
        errors,
        mechanism.answers,
        fixed_sum=_counts_add_up(mechanism, mechanism.answers),
        users=users,
        law=law,
    )


def _counts_add_up(mechanism: FrequencyMechanism, answers: int) -> bool:
    """True if the unbiased counts of some reports add up to their number."""
    import numpy as np

    values = np.arange(8) % answers
    total = mechanism.estimate(mechanism.randomize(values, rng=1)).counts.sum()
    return bool(abs(total - len(values)) < 1e-6)


def _rounded(error: float) -> float:
    """Return an error as far as it counts: of equal ones, the mechanism that was registered first is ranked first."""
    return float(f"{error:.12g}")


def check_number(name: str, value: Number) -> None:
    """Raise `InvalidParameter` unless the value may be a number. Each mechanism checks its own range."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise InvalidParameter(name, "a number", shown_with_type(value))


def _constant_output(lower: Number, upper: Number, users: int | None) -> dict[str, Any]:
    half = (float(upper) - float(lower)) / 2
    bias = {"lower": half, "centre": 0.0, "upper": -half}
    return {
        "kind": "numeric",
        "mechanism": "constant-output",
        **({} if users is None else {"mean_error": half, "margin": half}),
        "bias": bias,
        "mse": {name: value**2 for name, value in bias.items()},
        "mse_uniform_prior": half**2 / 3,
        "setting": "",
    }


def _setting(mechanism: Mechanism, target: Mapping[str, Any]) -> str:
    """The parameters that differ from the target and the defaults, such as `hashes=1024, width=1024`."""
    chosen = {
        name: value
        for name, value in mechanism.declared.items()
        if name not in target and mechanism.fields[name].parse(value) != mechanism.fields[name].default
    }
    return ", ".join(f"{name}={value}" for name, value in chosen.items())


def _calibrated(kind: type[M], calibrate: Callable[[type[M]], M], target: Mapping[str, Any]) -> Iterator[M]:
    """Yield each mechanism of that kind that can be calibrated to the target."""
    refused: LdpBudgetError | None = None
    found = False
    for candidate in mechanisms():
        if not issubclass(candidate, kind):
            continue
        try:
            mechanism = calibrate(candidate)
            _ = mechanism.guarantee
        except (NotSupported, PluginError):
            continue  # there is none for the target, or its plugin is broken, as `plugin check` shows
        except InvalidParameter as error:
            if error.option in target:
                refused = error
            continue
        found = True
        yield mechanism
    if not found and refused is not None:
        raise refused
