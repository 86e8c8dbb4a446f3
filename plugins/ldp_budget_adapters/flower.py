"""Flower: `LedgerAccountant`, a backend of its privacy accounting on a ledger, and `SiteBudget`, a mod for a site.

**The accountant** keeps the budget of a cohort at the server, where Flower adds noise to the average of clipped updates
(`DifferentialPrivacyClientSideFixedClipping` and `…ServerSideFixedClipping`). Flower composes an event *after* it has
aggregated a round. A crash between the two would leave a released model that nobody counted. So the charge is made when
Flower asks `would_exceed`, before it sends the round to anyone.

Flower's noise multiplier z is the noise divided by the clipping norm C. Two updates of one client may be 2C apart, so a round
is μ-Gaussian private with μ = 2/z, and a limit with the rule gdp, zcdp or renyi holds it. The guarantee is that of the formula:
Flower draws its noise in doubles.

**The mod** runs at the site, charges the site's ledger, and sends exact noise on the difference of the arrays; see
`site_release`. But it travels in the ClientApp that the researcher writes. It enforces nothing unless the site admits only apps
that its own reviewers have signed.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp import GaussianPrivacyEvent, NeighboringRelation, PrivacyConfig, PrivacySpent, SamplingMethod

from ldp_budget import BudgetExceeded, Limit, mechanism
from ldp_budget.errors import InvalidParameter

from .site_release import NOTHING_LEAVES, SiteRelease, opened

_LOG = logging.getLogger("flwr")
_REFUSED = 6
"""Flower's code for a mod whose precondition failed; the only error that a site's mod sends."""


class LedgerAccountant:
    """A `PrivacyAccountant` of Flower whose state is a ledger.

    Parameters:
        ledger: the path of the ledger, a `postgresql://` URL, or the `https://` URL of the service; it must exist.
        user: the account of the cohort.
        policy: the policy. Its lifetime limit, with the rule gdp, zcdp or renyi, is the budget.
        population_size: at least the number of clients in a round. Nothing depends on it: sampling amplifies nothing here.

    Raises:
        InvalidParameter: the policy has no lifetime limit with one of these rules.
    """

    def __init__(self, ledger: str, user: str, policy: str = "default", population_size: int = 10**6) -> None:
        self._ledger, self._user, self._policy = str(ledger), user, policy
        self._charged: list[GaussianPrivacyEvent] = []
        limit = self._state().limit
        self._config = PrivacyConfig(
            target_delta=float(limit.delta),
            population_size=population_size,
            neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
            sampling_method=SamplingMethod.NO_AMPLIFICATION,
            max_epsilon=float(limit.epsilon),  # Flower asks `would_exceed` only if there is one
        )

    @property
    def config(self) -> PrivacyConfig:
        """The accounting model: the ledger's limit, and no amplification by sampling."""
        return self._config

    @property
    def num_releases(self) -> int:
        """The number of charges of the cohort: releases, and rounds that were charged and then failed."""
        with opened(self._ledger) as accountant:
            return len(accountant.history(self._user))

    def would_exceed(self, event: GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1) -> bool:
        """Charge the event now. Return True, and charge nothing, if the ledger refuses it or ε would exceed `max_epsilon`."""
        charged = self._mechanism(event)
        with opened(self._ledger) as accountant:
            quoted = accountant.quote(self._user, charged, reports=count, policy=self._policy)
            state = self._lifetime(quoted)
            after = state.limit.epsilon_of(state.spent_units.plus(quoted.cost_units))
            if max_epsilon is not None and after > max_epsilon:
                return True
            if not accountant.spend(self._user, charged, reports=count, policy=self._policy):
                return True
        self._charged += [event] * count
        return False

    def compose(self, event: GaussianPrivacyEvent, count: int = 1) -> None:
        """Accept events that `would_exceed` has charged, and charge others. Raises `BudgetExceeded` if one is refused."""
        for _ in range(count):
            if event not in self._charged and self.would_exceed(event):
                with opened(self._ledger) as accountant:
                    raise BudgetExceeded(accountant.quote(self._user, self._mechanism(event), policy=self._policy))
            self._charged.remove(event)

    def get_epsilon(self, delta: float) -> float:
        """Return the ε of all charges at a δ, rounded up; infinite where nothing is guaranteed."""
        state = self._state()
        if delta >= state.limit.delta:
            return float(state.limit.epsilon_of(state.spent_units))  # it holds for every larger δ
        at = Limit("lifetime", state.limit.epsilon, delta, state.limit.rule)
        return float(at.epsilon_of(state.spent_units))

    def get_delta(self, epsilon: float) -> float:
        """Return a δ, within a factor of two, at which all charges have at most this ε; 1 if the limit's δ is too small."""
        delta = float(self._config.target_delta)
        if self.get_epsilon(delta) > epsilon:
            return 1.0
        while delta > 1e-300 and self.get_epsilon(delta / 2) <= epsilon:
            delta /= 2
        return delta

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """Return ε, δ and the number of charges."""
        at = self.config.target_delta if delta is None else delta
        return PrivacySpent(
            self.get_epsilon(at), at, self.num_releases, f"ldp-budget ledger, {self._state().limit.rule}"
        )

    def state_dict(self) -> dict[str, object]:
        """Return nothing: the ledger is the state, and outlives the process."""
        return {}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Do nothing, see `state_dict`."""

    def _state(self) -> Any:
        with opened(self._ledger) as accountant:
            return self._lifetime(accountant.balance(self._user, policy=self._policy))

    def _lifetime(self, found: Any) -> Any:
        state = next((each for each in found.limits if each.limit.counts_all), None)
        if state is None or state.limit.rule == "basic":
            expected = "a policy with a lifetime limit under gdp, zcdp or renyi, such as lifetime=8,1e-6,gdp"
            raise InvalidParameter("policy", expected, self._policy)
        return state

    @staticmethod
    def _mechanism(event: GaussianPrivacyEvent) -> Any:
        return mechanism("gaussian")(sigma=event.noise_multiplier, sensitivity=2)


class SiteBudget:
    """A mod of a ClientApp: `ClientApp(mods=[SiteBudget(ledger="budget.db", user="site-1", norm_bound=1, rho="0.02")])`.

    Put it first: mods before it see what it made. A reply to a message with one ArrayRecord has the arrays received plus a
    clipped, randomized difference, and an example count of 1. Every other reply, such as that of an evaluation, is one error.

    Parameters:
        ledger: as for `SiteRelease`, and so are the others.
    """

    def __init__(self, ledger: str, user: str, **terms: Any) -> None:
        self._release = SiteRelease(ledger, user, **terms)

    def __call__(self, message: Message, context: Any, call_next: Any) -> Message:
        records = list(message.content.array_records.items())
        if message.metadata.message_type.partition(".")[0] != "train" or len(records) != 1:
            return _refusal(message, "only replies to a training message with one ArrayRecord leave this site")
        key, given = records[0][0], {name: array.numpy() for name, array in records[0][1].items()}
        shapes = {name: array.shape for name, array in given.items()}
        types = {name: array.dtype for name, array in given.items()}
        released = self._release.release(_difference(message, context, call_next, given), shapes, _LOG.warning)
        if released is None:
            return _refusal(message, NOTHING_LEAVES)
        arrays = {name: Array((given[name] + noisy).astype(types[name])) for name, noisy in released.items()}
        content = {key: ArrayRecord(arrays), "metrics": MetricRecord({"num-examples": 1}), "config": ConfigRecord()}
        return Message(RecordDict(content), reply_to=message)


def _refusal(message: Message, why: str) -> Message:
    return Message(Error(code=_REFUSED, reason=why), reply_to=message)


def _difference(message: Message, context: Any, call_next: Any, given: dict[str, Any]) -> object:
    """Run the app, and return what its reply adds to the arrays received; None if it has no such reply."""
    try:
        (record,) = call_next(message, context).content.array_records.values()
        found = {name: array.numpy() for name, array in record.items()}
        return {name: np.subtract(array, given[name], dtype=np.float64) for name, array in found.items()}
    except BaseException as error:  # also an exit: an error of the app is not to be told from an update
        _LOG.warning("the app returned no update: %.300r", error)
        return None
