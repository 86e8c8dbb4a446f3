"""Receipts of charge requests, balances, and the error for a refused charge."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from hmac import compare_digest
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from .._dataframes import Tabular, html_table
from .._files import canonical_json
from .._later import accountant_part
from ..errors import LdpBudgetError, NotSupported
from ..guarantees import Pure
from ..guarantees.fixed_point import (
    DELTA_DIGITS,
    EPSILON_DIGITS,
    LARGEST,
    MU_SQUARED_DIGITS,
    RHO_DIGITS,
    Costs,
    float_down,
    float_of_units,
    float_up,
    from_units,
)
from ..guarantees.guarantees import LEVELS
from ..ledger.calendar import from_micros, utc_text, window_at
from ..ledger.hash_chain import Name, parse
from ..ledger.key_rotation import secret_for
from ..ledger.models import RESERVED, VOIDED
from .limits import Limit, ShareLimit
from .policies import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..guarantees import Guarantee
    from ..ledger import Reading, Transaction
    from ..ledger.keyed_hashing import Secret
    from ..ledger.models import IdempotencyRecord
    from .charge_request import ChargeRequest

ODOMETER_NOTE = "valid only if the spends did not depend on earlier outputs"
_MOST = 10**6
"""The largest ε of a guarantee."""

REFUSED = "refused"
QUOTED = "quoted"

PLAN = "plan"
"""Used in `Receipt.binding`, among the periods, if the policy's plan refuses the request."""


def receipt_of(secret: Secret, name: Name) -> str:
    """The receipt of an entry: its name, and a keyed digest.

    The digest uses the secret that was active when the entry was written.
    """
    return secret.receipt(str(name))


def receipt_for(reading: Reading, entry: int) -> str:
    """The receipt of an entry that was written in this ledger."""
    name = Name(reading.generation, reading.partition, entry)
    return receipt_of(secret_for(reading, name), name)


def name_in(receipt: str) -> Name | None:
    """The entry name in a receipt; None for a text that cannot be a receipt."""
    return parse(receipt.partition("-")[0])


def is_receipt(reading: Reading, name: Name, receipt: str) -> bool:
    """True if a text is the receipt of the entry with that name.

    `reading` must be of the partition that now holds the entry.
    """
    expected = receipt_of(secret_for(reading, name), name)
    return compare_digest(receipt.encode("utf-8", "surrogatepass"), expected.encode())


class Amounts(NamedTuple):
    """Amounts of privacy as plain numbers: ε, δ, ρ (zCDP), μ² (Gaussian DP) and a Rényi divergence at one order.

    An unbounded amount is infinite. An amount that is not counted is None.
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu_squared: float | None = None
    renyi: float | None = None

    def __repr__(self) -> str:
        counted = {name: value for name, value in self._asdict().items() if value is not None}
        return f"Amounts({', '.join(f'{name}={value!r}' for name, value in counted.items())})"


def limit_row(limit: Limit) -> dict[str, Any]:
    """A limit in the JSON object of its state: period, rule, ε, δ and capacity, as plain numbers."""
    return {
        "period": limit.label.removeprefix(f"{limit.scope}:"),
        **({"scope": limit.scope} if limit.scope else {}),
        **({"share": limit.share} if isinstance(limit, ShareLimit) else {}),
        "rule": limit.rule,
        "epsilon": float_up(limit.epsilon),
        "delta": float_up(limit.delta),
        "capacity": limit.amounts(limit.capacity),
    }


def name_of_row(row: Mapping[str, Any]) -> str:
    """The label of a limit by its JSON object, as a refusal names it in `binding`."""
    return f"{row['scope']}:{row['period']}" if "scope" in row else str(row["period"])


class LimitState(NamedTuple):
    """One limit of a policy and a user's charges in its current window, which ends at `resets_at` (None: never).

    `spent`, `remaining` and `capacity` are plain numbers, rounded to the safe side: `spent` is never too small, and
    `remaining` never too large. In a balance, a sliding limit has `returns`: the moments from which on it no longer
    counts a day, with the amounts of that day, in units. The ledger decides by `spent_units`, in whole
    units: 1e-9 of ε, 1e-18 of δ, 1e-12
    of ρ or of a divergence, and 1e-12 of μ². `limit.capacity` and `limit.remaining(spent_units)` are in the same
    units.
    """

    limit: Limit
    spent_units: Costs
    resets_at: datetime | None
    returns: tuple[tuple[datetime, Costs], ...] = ()

    @property
    def spent(self) -> Amounts:
        """The amounts that the user has spent in this window, rounded up, for each amount that is added up there.

        `epsilon` is the ε that they imply at the limit's δ: the sum of the ε under rule basic, else `Limit.epsilon_of`.
        """
        # A measure with sums of its own has zeros for μ², because it is not added up there.
        plain = self.limit.measure is None
        amounts = _numbers(self.limit, self.spent_units, [plain, True, True, plain], float_up)
        if self.limit.rule == "basic":
            return amounts
        return amounts._replace(epsilon=self.limit.epsilon_of(self.spent_units))

    @property
    def capacity(self) -> Amounts:
        """The limit's capacity of each amount that it counts, rounded down."""
        return _numbers(self.limit, self.limit.capacity, self._counted, float_down)

    @property
    def remaining(self) -> Amounts:
        """The remaining part of each amount that the limit counts, rounded down; never below 0."""
        return _numbers(self.limit, self.limit.remaining(self.spent_units), self._counted, float_down)

    @property
    def _counted(self) -> list[bool]:
        return [most is not None for most in self.limit.capacity]

    def __repr__(self) -> str:
        limit = self.to_json()
        capacity, spent, left = (_amounts(limit[name]) for name in ("capacity", "spent", "remaining"))
        resets = f", resets at {limit['resets_at']}" if limit["resets_at"] else ""
        return (
            f"<LimitState {self.limit.label} ({self.limit.rule}): {spent} spent of {capacity}, {left} left{resets}>"
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON object with the limit's period and rule, its capacity, and the spent and remaining amounts.

        A share's limit has `share` too, and its period is such as `lifetime (team-a)`. Plain numbers are rounded
        up, as in all `--json` output.
        """
        limit = self.limit
        return {
            **limit_row(limit),
            "spent": limit.amounts(self.spent_units),
            "remaining": limit.amounts(limit.remaining(self.spent_units)),
            "resets_at": None if self.resets_at is None else utc_text(self.resets_at),
            **(
                {"returns": [{"at": utc_text(at), **limit.amounts(each)} for at, each in self.returns]}
                if self.returns
                else {}
            ),
        }

    @classmethod
    def at(cls, moment: datetime, limit: Limit, spent: Costs) -> LimitState:
        """The state of a limit in its window at a moment.

        Parameters:
            moment: an aware datetime.
            limit: the limit.
            spent: the amounts spent in that window, in units.
        """
        return cls(limit, spent, window_at(limit.gauge, moment).resets_at)


class Receipt(NamedTuple):
    """The result of a request to charge a user.

    A receipt is true unless it is refused or voided: then send no report.

    `status` is spent, refused, quoted, reserved, committed, voided or expired. `repeated` is True for the stored
    result of the same request. `limits` hold the spent amounts after the request. `binding` names the periods whose
    limit refused the request (for a quote: would refuse it), or `plan`. `affordable_reports` is the number of such
    reports that still fit; `LARGEST` if nothing counts them, a number that is not for display. `checked` is the
    level at which the mechanism's guarantee was checked ("exact", "audited" or "no"; None when a reservation is
    resolved). `cost_units` is the request in the ledger's whole units (see `LimitState`), all reports together;
    `cost`, `epsilon` and `delta` are the same as plain numbers. `position` is the journal's position after the
    request, as `Accountant.position` returns it for the user; empty if the request wrote nothing.
    """

    status: str
    user: str | None
    policy: str
    cost_units: Costs
    reports: int
    limits: tuple[LimitState, ...]
    binding: tuple[str, ...] = ()
    affordable_reports: int = 0
    receipt: str | None = None
    repeated: bool = False
    why: str = ""
    checked: str | None = None
    position: str = ""

    def __bool__(self) -> bool:
        return self.status not in (REFUSED, VOIDED)

    def __repr__(self) -> str:
        return f"<Receipt: {self.explain()}>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return html_table(self.explain(), _limit_rows(self.limits))

    @property
    def cost(self) -> Amounts:
        """The requested amounts, all reports together, rounded up."""
        return _numbers(None, self.cost_units, [True] * 4, float_up)

    @property
    def epsilon(self) -> float | None:
        """The requested ε, all reports together; None if it is unbounded."""
        return float_of_units(self.cost_units.epsilon, EPSILON_DIGITS)

    @property
    def delta(self) -> float | None:
        """The requested δ, all reports together; None if it is unbounded."""
        return float_of_units(self.cost_units.delta, DELTA_DIGITS)

    def to_json(self) -> dict[str, Any]:
        """The JSON object that `spend --json` prints."""
        result = {
            "status": self.status,
            "repeated": self.repeated,
            "receipt": self.receipt,
            "user": self.user,
            "policy": self.policy,
            "cost": {"epsilon": self.epsilon, "delta": self.delta},
            "limits": [state.to_json() for state in self.limits],
            "binding": list(self.binding),
            "affordable_reports": None if self.affordable_reports >= LARGEST else self.affordable_reports,
            "checked": self.checked,
        }
        return {**result, "why": self.why} if self.why else result

    def store(self, policy: int, at: int) -> str:
        """The text that the ledger stores under an idempotency key.

        It is canonical JSON, with the number of the policy's version and the time. These two determine the rest of
        the policy and the windows. User and receipt are left out; they come back with the retry and the entry.

        Parameters:
            policy: the number of its version.
            at: the time of the receipt, in microseconds.
        """
        level = None if self.checked is None else LEVELS.index(self.checked)
        numbers = [policy, at, self.reports, self.affordable_reports, level, *self.cost_units]
        for state in self.limits:
            numbers += state.spent_units
        # Formatted by hand for speed: every spend with a key does this, and most results hold only numbers.
        answer = f'"{self.status}",{numbers}'.replace("None", "null").replace(" ", "")
        return f"[{answer}]" if self else f"[{answer},{canonical_json([self.binding, self.why])}]"

    @classmethod
    def restore(
        cls,
        user: str,
        receipt: str | None,
        policy_of: Callable[[int], Policy],
        answer: str,
        share: str | None = None,
        tags: tuple[str, ...] | None = None,
    ) -> Receipt:
        """The stored result of a request, marked as repeated.

        Parameters:
            user: the user of the request.
            receipt: of the entry, if the request was granted.
            policy_of: returns the policy with a number.
            answer: the text that `store` returned.
            share: the share of the request's caller.
            tags: the tags of the charge, see `Policy.limits_for`.

        Raises:
            ValueError: `answer` is not such a text.
        """
        status, numbers, *refusal = json.loads(answer)
        if refusal and status not in (REFUSED, QUOTED):
            refusal = []  # this part is a name, see `named`
        number, at, reports, affordable, level, *amounts = numbers
        cost, *spent = [Costs(*amounts[place : place + 4]) for place in range(0, len(amounts), 4)]
        policy, moment = policy_of(number), from_micros(at)
        binding, why = refusal[0] if refusal else ((), "")
        return cls(
            status=status,
            user=user,
            policy=policy.name,
            cost_units=cost,
            reports=reports,
            limits=tuple(
                LimitState.at(moment, limit, used)
                for limit, used in zip(policy.limits_for(share, tags), spent, strict=True)
            ),
            binding=tuple(binding),
            affordable_reports=affordable,
            receipt=receipt,
            repeated=True,
            why=why,
            checked=None if level is None else LEVELS[level],
        )

    @staticmethod
    def named(answer: str, name: Name) -> str:
        """A stored result of a granted request, with the name of its entry: a moved ledger renumbers entries.

        Parameters:
            answer: the text that `store` returned.
            name: of its entry.

        Raises:
            ValueError: `answer` is not such a text.
        """
        return answer if len(json.loads(answer)) > 2 else f"{answer[:-1]},{json.dumps(name)}]"

    @staticmethod
    def name_of(answer: str) -> Name | None:
        """The entry name in a stored result of a granted request; None for a result that this ledger itself stored.

        Parameters:
            answer: the text that `store` returned.

        Raises:
            ValueError: `answer` is not such a text.
        """
        _, _, *name = json.loads(answer)
        return Name(*name[0]) if name else None

    def explain(self) -> str:
        """A line with the request, and the spent and remaining amounts of each binding limit."""
        who = self.user or f"receipt {self.receipt}"
        asked = _amounts({"epsilon": self.epsilon, "delta": self.delta})
        if self.status not in (REFUSED, QUOTED):
            number = f" (receipt {self.receipt})" if self.receipt and self.user else ""
            return f"{self.status}: {who}, {asked}{number}{'.' * self.repeated}{self._explain_repeated()}"
        parts = [f"{self.status}: {who} asked for {asked} ({_count(self.reports)})"]
        if self.status == QUOTED:
            parts.append("It does not fit" if self.why or self.binding else "It fits")
        if self.why:
            parts.append(f"{self.why[:1].upper()}{self.why[1:]}")
        with_delta = self.delta != 0
        parts += [_explain(state.to_json(), with_delta) for state in self.limits if state.limit.label in self.binding]
        if PLAN in self.binding and not self.why:
            parts.append(self._explain_plan())
        parts.append(_affordable(self.affordable_reports))
        return f"{'. '.join(parts)}.{self._explain_repeated()}"

    def _explain_repeated(self) -> str:
        """A note that this result was given before, and its meaning."""
        if not self.repeated:
            return ""
        if self.user is None:
            return f" It was already {self.status}."
        if self.status == REFUSED:
            return " This is the stored answer of this key. Use a new key to ask again."
        return " This is the stored answer of this key. Nothing was charged again."

    def _explain_plan(self) -> str:
        """The rest of the plan's quota. If only the plan binds, that is the affordable number."""
        alone = self.binding == (PLAN,)
        left = _count(self.affordable_reports) if alone else f"fewer than {_count(self.reports)}"
        return f"The plan of policy {self.policy} has {left} of this kind left"


def answer_again(
    transaction: Transaction, request: ChargeRequest, stored: IdempotencyRecord, policy_of: Callable[[int], Policy]
) -> Receipt:
    """The stored result.

    For a reservation that was voided since, the status is voided, so that the client sends no report.
    """
    entry = stored.entry
    receipt = None
    if entry is not None:
        name = Receipt.name_of(stored.response)
        receipt = receipt_for(transaction, entry) if name is None else receipt_of(secret_for(transaction, name), name)
    answer = Receipt.restore(request.user, receipt, policy_of, stored.response, request.share, request.charge.tags)
    resolution = None if entry is None or request.template.kind != RESERVED else transaction.resolution(entry)
    return answer._replace(status=VOIDED) if resolution is not None and resolution.kind == VOIDED else answer


class BudgetExceeded(LdpBudgetError):  # noqa: N818
    """A charge was refused, and the caller requested an exception. Attribute: `receipt`."""

    code = "budget-exceeded"

    def __init__(self, receipt: Receipt) -> None:
        self.receipt = receipt
        super().__init__(receipt.explain())


@dataclass(frozen=True)
class Balance(Tabular):
    """The amounts that a user has spent under each limit of a policy, and of its plan's quotas.

    `charges` are all the guarantees that the user was charged for in this ledger, with their numbers, and
    `mechanisms` the names and the declared values (as JSON) of the mechanisms that made them. `charged` has the ε, in
    units, that the ledger charged for each memoised guarantee in all, and None for each other one. An `erased`
    user has no budget: the spent amounts are unknown, and there are no limits to show. If the caller did not name
    the user of an account, `user` is None, and `place` identifies the account.
    """

    user: str | None
    policy: Policy
    limits: tuple[LimitState, ...]
    quotas: tuple[dict[str, Any], ...] = ()
    charges: tuple[tuple[Guarantee, int], ...] = ()
    mechanisms: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    charged: tuple[int | None, ...] = field(default=(), kw_only=True)
    erased: bool = False
    place: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        if self.erased:
            return f"<Balance of {self.user}, policy {self.policy.name}: erased>"
        lines = [repr(state).removeprefix("<LimitState ").removesuffix(">") for state in self.limits]
        lines += [f"plan: {sum(quota['left'] for quota in self.quotas)} reports left"] if self.quotas else []
        return "\n  ".join([f"<Balance of {self.user}, policy {self.policy.name}:", *lines]) + ">"

    @property
    def caption(self) -> str:
        """The user, or the place of the account, and the policy."""
        whose = self.user if not self.place else ", ".join(f"{name} {at}" for name, at in self.place.items())
        return f"{whose}, policy {self.policy.name}{': erased' if self.erased else ''}"

    def to_rows(self) -> list[dict[str, Any]]:
        """A row for each amount of each limit."""
        return _limit_rows(self.limits)

    @cached_property
    def odometer(self) -> dict[str, Any] | None:
        """The exact loss of all charges, at the largest δ of the policy's limits and plan. No limit uses it.

        None if there are no charges, or if exact composition does not apply.
        """
        from ..composition import compose

        if not self.charges:
            return None
        try:
            totals = [compose(each, delta=self._largest_delta, rule="exact") for each in self._composable()]
        except NotSupported:
            return None
        total = min(totals, key=attrgetter("epsilon"))
        return {"epsilon": total.epsilon, "lower": total.lower, "delta": total.delta, "note": ODOMETER_NOTE}

    def _composable(self) -> Iterator[Sequence[tuple[Guarantee, int]]]:
        """Yield the charges in ways that each bound the loss under exact composition.

        Each memoised draw loses at most the cap of its guarantee. All reports together lose at most the ε that the
        ledger charged for them, which is less for a few reports, and for reports that repeat a draw.
        """
        yield self.charges  # exact composition takes the cap of each memoised draw
        if len(self.charged) != len(self.charges):  # a service of an earlier version does not send it
            return
        known = [None if units is None else from_units(units, EPSILON_DIGITS) for units in self.charged]
        if any(epsilon is not None and epsilon > _MOST for epsilon in known):
            return
        if any(epsilon is not None for epsilon in known):
            yield [
                charge if epsilon is None else (Pure(epsilon), 1)
                for charge, epsilon in zip(self.charges, known, strict=True)
            ]

    def shuffled(self, users: int) -> dict[str, Any] | None:
        """The central loss of all charges if each report was shuffled among those of many users.

        It is at the δ of the odometer and equally valid. No limit uses it: the ledger cannot see that reports were
        shuffled. None if there are no charges, or if no bound is known. Memoised reports have no bound, because
        other users may repeat theirs as well.

        Parameters:
            users: the number of users, including this one.

        Raises:
            InvalidParameter: `users` is not a whole number from 1 to 10^12.
        """
        totals = accountant_part("totals")
        found = totals.central_of_charges(self.charges, self.mechanisms, users, self._largest_delta)
        return None if found is None else {**found, "note": ODOMETER_NOTE}

    @property
    def _largest_delta(self) -> Decimal:
        deltas = [state.limit.delta for state in self.limits]
        return max([*deltas, self.policy.plan.delta if self.policy.plan is not None else Decimal(0)])

    def to_json(self) -> dict[str, Any]:
        """The JSON object that `balance --json` prints."""
        return self._to_json({"odometer": self.odometer})

    def to_row(self) -> dict[str, Any]:
        """The JSON object without the odometer, which takes time for each user: a row of `balance --users`."""
        return self._to_json({})

    def _to_json(self, odometer: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {
            **({"user": self.user} if not self.place else self.place),
            "policy": self.policy.name,
            "limits": [state.to_json() for state in self.limits],
            **odometer,
        }
        if self.erased:
            result["erased"] = True
        if self.quotas:
            result["quotas"] = list(self.quotas)
        if self.policy.unbounded:
            result["worst_epsilon_per_year"] = self.policy.worst_epsilon_per_year()
        return result


def _limit_rows(limits: Sequence[LimitState]) -> list[dict[str, Any]]:
    """The spent and remaining amounts of some limits, one row each."""
    return [
        {
            "period": name_of_row(limit),
            "rule": limit["rule"],
            "amount": name,
            "capacity": most,
            "spent": limit["spent"][name],
            "left": limit["remaining"][name],
            "resets": limit["resets_at"] or "never",
        }
        for limit in (state.to_json() for state in limits)
        for name, most in limit["capacity"].items()
    ]


def _explain(limit: dict[str, Any], with_delta: bool) -> str:
    """A limit in words.

    Its δ is included even if it is 0 when the request had a δ: then δ may be the reason for a refusal.
    """
    resets = f", resets at {limit['resets_at']}" if limit["resets_at"] else ""
    capacity, spent, left = (_amounts(limit[name], with_delta) for name in ("capacity", "spent", "remaining"))
    return f"The {name_of_row(limit)} limit ({limit['rule']}) of {capacity} has {spent} spent and {left} left{resets}"


def _numbers(limit: Limit | None, units: Costs, counted: list[bool], round_to: Callable[[Decimal], float]) -> Amounts:
    """Whole units as plain numbers, for the counted amounts, with the limit's names for them."""
    names = Costs._fields if limit is None else limit.names
    return Amounts(
        **{
            name: math.inf if amount is None else round_to(from_units(amount, digits))
            for name, amount, digits, shown in zip(names, units, _DIGITS, counted, strict=True)
            if shown
        }
    )


def _count(reports: int) -> str:
    if reports >= LARGEST:
        return "any number of reports"
    return "1 report" if reports == 1 else f"{reports} reports"


def _affordable(reports: int) -> str:
    """The number of such reports that fit, as a sentence without its full stop."""
    if reports >= LARGEST:
        return "Any number of such reports fits"
    if reports == 1:
        return "1 such report fits"
    return f"{reports} such reports fit" if reports else "No such report fits"


_DIGITS = EPSILON_DIGITS, DELTA_DIGITS, RHO_DIGITS, MU_SQUARED_DIGITS
_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ", "mu_squared": "μ²", "renyi": "D"}


def _exact(value: float) -> str:
    """Return an amount with all its digits: two amounts that differ look different."""
    text = f"{value:.12g}"
    return text if float(text) == value else repr(value)


def _amounts(amounts: dict[str, float | None], with_delta: bool = False) -> str:
    """Amounts as text, such as `ε = 0.1`, with δ only if it is above 0 or `with_delta` is set."""
    shown = {name: value for name, value in amounts.items() if with_delta or not (name == "delta" and value == 0)}
    return ", ".join(
        f"{_SYMBOLS[name]} = {'unbounded' if value is None else _exact(value)}" for name, value in shown.items()
    )
