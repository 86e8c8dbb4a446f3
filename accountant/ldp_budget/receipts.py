"""What the accountant answers: receipts of requests, and balances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from .amounts import DELTA_DIGITS, EPSILON_DIGITS, Costs, float_up, from_units
from .policy import Limit, Policy

SPENT = "spent"
REFUSED = "refused"
QUOTED = "quoted"


@dataclass(frozen=True)
class LimitState:
    """One limit of a policy and what a user has spent in its current window."""

    limit: Limit
    spent: Costs
    resets_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        limit = self.limit
        return {
            **limit.to_json(),
            "epsilon": float_up(limit.epsilon),
            "delta": float_up(limit.delta),
            "capacity": limit.amounts(limit.capacity),
            "spent": limit.amounts(self.spent),
            "remaining": limit.amounts(limit.remaining(self.spent)),
            "resets_at": None if self.resets_at is None else self.resets_at.isoformat().replace("+00:00", "Z"),
        }


@dataclass(frozen=True)
class Receipt:
    """The answer to a request to charge a user.

    `status` is spent, refused or quoted; `repeated` says that the key had been used for the same request and this
    is the stored answer. `limits` hold what is spent *after* the request; `binding` names the periods whose limit
    refused it (of a quote: would refuse it). `affordable_reports` is how many such reports still fit.
    """

    status: str
    user: str
    policy: str
    cost: Costs
    reports: int
    limits: tuple[dict[str, Any], ...]
    binding: tuple[str, ...]
    affordable_reports: int
    receipt: str | None = None
    repeated: bool = False

    def __bool__(self) -> bool:
        return self.status != REFUSED

    def repeat(self) -> Receipt:
        """The same answer, given again for the same key."""
        return replace(self, repeated=True)

    @property
    def epsilon(self) -> float | None:
        """The ε asked for, all reports together; None where it is unbounded."""
        return _plain(self.cost.epsilon, EPSILON_DIGITS)

    @property
    def delta(self) -> float | None:
        """The δ asked for, all reports together; None where it is unbounded."""
        return _plain(self.cost.delta, DELTA_DIGITS)

    def to_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "repeated": self.repeated,
            "receipt": self.receipt,
            "user": self.user,
            "policy": self.policy,
            "cost": {"epsilon": self.epsilon, "delta": self.delta},
            "limits": list(self.limits),
            "binding": list(self.binding),
            "affordable_reports": self.affordable_reports,
        }

    def explain(self) -> str:
        """One line: what was asked, and what each binding limit has spent and left."""
        asked = f"asked {_amounts({'epsilon': self.epsilon, 'delta': self.delta})}"
        if self.status not in (REFUSED, QUOTED):
            return f"{self.status}: {self.user}, {asked}"
        parts = [f"{self.status}: {self.user} {asked} for {_count(self.reports)}"]
        fits = self.reports <= self.affordable_reports
        if self.status == QUOTED:
            parts.append("it fits" if fits else "it does not fit")
        for limit in self.limits:
            if limit["period"] in self.binding:
                resets = f", resets at {limit['resets_at']}" if limit["resets_at"] else ""
                parts.append(
                    f"the {limit['period']} limit ({limit['rule']}) of {_amounts(limit['capacity'])} has "
                    f"{_amounts(limit['spent'])} spent and {_amounts(limit['remaining'])} left{resets}"
                )
        if not fits and not self.binding:
            parts.append(f"policy {self.policy} does not admit this guarantee")
        parts.append(f"affordable: {_count(self.affordable_reports)}")
        return "; ".join(parts)


@dataclass(frozen=True)
class Balance:
    """What a user has spent under each limit of a policy."""

    user: str
    policy: Policy
    limits: tuple[LimitState, ...]

    def to_json(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "user": self.user,
            "policy": self.policy.name,
            "limits": [state.to_json() for state in self.limits],
        }
        if self.policy.unbounded:
            result["worst_epsilon_per_year"] = self.policy.worst_epsilon_per_year()
        return result


def _plain(units: int | None, digits: int) -> float | None:
    return None if units is None else float_up(from_units(units, digits))


def _count(reports: int) -> str:
    return "1 report" if reports == 1 else f"{reports} reports"


_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ", "mu_squared": "μ²"}


def _amounts(amounts: dict[str, float | None]) -> str:
    """`ε = 0.1`, with δ only where there is some."""
    shown = {name: value for name, value in amounts.items() if not (name == "delta" and value == 0)}
    return ", ".join(
        f"{_SYMBOLS[name]} = {'unbounded' if value is None else f'{value:.12g}'}" for name, value in shown.items()
    )
