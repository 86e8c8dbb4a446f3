"""What the accountant answers: receipts of requests, and balances."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, NamedTuple

from .._files import canonical_json
from ..errors import LdpBudgetError, NotSupported
from ..guarantees.fixed_point import (
    DELTA_DIGITS,
    EPSILON_DIGITS,
    LARGEST,
    MU_SQUARED_DIGITS,
    RHO_DIGITS,
    Costs,
    float_down,
    float_up,
    from_units,
)
from ..guarantees.guarantees import LEVELS
from ..ledger.calendar import from_micros, window_at
from ..ledger.hash_chain import Name, parse
from ..ledger.key_rotation import secret_for
from ..ledger.models import RESERVED, VOIDED
from .limits import Limit, ShareLimit
from .policies import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..guarantees import Guarantee
    from ..ledger import Reading, Transaction
    from ..ledger.keyfile import Secret
    from ..ledger.models import IdempotencyRecord
    from .charge_request import Request

ODOMETER_NOTE = "valid only if the spends did not depend on earlier outputs"

REFUSED = "refused"
QUOTED = "quoted"

PLAN = "plan"
"""Stands among the periods in `Receipt.binding` where the policy's plan is what stands in the way."""


def receipt_of(secret: Secret, name: Name) -> str:
    """The receipt of an entry: its name, and what only this ledger can say, by the secret of when it was written."""
    return f"{name}-{secret.hash_outside(b'receipt', str(name)).hex()[:20]}"


def receipt_for(reading: Reading, entry: int) -> str:
    """The receipt of an entry that was written here."""
    name = Name(reading.generation, reading.partition, entry)
    return receipt_of(secret_for(reading, name), name)


def name_in(receipt: str) -> Name | None:
    """The name of the entry that a text would be the receipt of; None where it cannot be one."""
    return parse(receipt.partition("-")[0])


def is_receipt(reading: Reading, name: Name, receipt: str) -> bool:
    """Whether a text is the receipt of the entry of that name; `reading` is of the partition where that stands now."""
    expected = receipt_of(secret_for(reading, name), name)
    return compare_digest(receipt.encode("utf-8", "surrogatepass"), expected.encode())


class Amounts(NamedTuple):
    """Amounts of privacy as plain numbers: ε, δ, ρ (zCDP), μ² (Gaussian DP) and a Rényi divergence at one order.

    What is unbounded is infinite. None stands for what is not counted there at all.
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu_squared: float | None = None
    renyi: float | None = None

    def __repr__(self) -> str:
        counted = {name: value for name, value in self._asdict().items() if value is not None}
        return f"Amounts({', '.join(f'{name}={value!r}' for name, value in counted.items())})"


class LimitState(NamedTuple):
    """One limit of a policy and what a user has spent in its current window, which ends at `resets_at` (or never).

    `spent`, `remaining` and `capacity` are plain numbers, on the safe side where a double cannot hold them: what is
    spent is never shown too small, and what is left never too large. `spent_units` is what the ledger goes by: whole
    units, 1e-9 of ε, 1e-18 of δ, 1e-12 of ρ or of a divergence and 1e-12 of μ²; `limit.capacity` and
    `limit.remaining(spent_units)` are in the same, and decide.
    """

    limit: Limit
    spent_units: Costs
    resets_at: datetime | None

    @property
    def spent(self) -> Amounts:
        """What the user has spent in this window: each amount that the ledger adds up there, rounded up."""
        # Where a measure has sums of its own, zeros stand in the place of ε and μ², which nobody adds up there.
        plain = self.limit.measure is None
        return _numbers(self.limit, self.spent_units, [plain, True, True, plain], float_up)

    @property
    def capacity(self) -> Amounts:
        """What the limit admits of each amount that it counts, rounded down."""
        return _numbers(self.limit, self.limit.capacity, self._counted, float_down)

    @property
    def remaining(self) -> Amounts:
        """What is left of each amount that the limit counts, rounded down; never below 0."""
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
        """A JSON object with the limit's period and rule, what it admits, what is spent and what is left.

        The limit of a share has `share` too, and its period is such as `lifetime (team-a)`. Plain numbers, each
        rounded up, as everything that `--json` prints.
        """
        limit = self.limit
        return {
            "period": limit.label,
            **({"share": limit.share} if isinstance(limit, ShareLimit) else {}),
            "rule": limit.rule,
            "epsilon": float_up(limit.epsilon),
            "delta": float_up(limit.delta),
            "capacity": limit.amounts(limit.capacity),
            "spent": limit.amounts(self.spent_units),
            "remaining": limit.amounts(limit.remaining(self.spent_units)),
            "resets_at": None if self.resets_at is None else _iso(self.resets_at),
        }

    @classmethod
    def at(cls, moment: datetime, limit: Limit, spent: Costs) -> LimitState:
        """The state of a limit in its window at a moment.

        Parameters:
            moment: an aware datetime.
            limit: the limit.
            spent: what was spent in that window, in units.
        """
        return cls(limit, spent, window_at(limit.period, moment).ends)


class Receipt(NamedTuple):
    """The answer to a request to charge a user.

    `status` is spent, refused, quoted, reserved, committed, voided or expired; `repeated` says that this is the
    stored answer to the same request. `limits` hold what is spent after the request; `binding` names the periods
    whose limit refused it (of a quote: would refuse it), or `plan`. `affordable_reports` is how many such reports
    still fit; `LARGEST` where nothing counts them, which is no number to show. `checked` says how the mechanism's
    promise was checked ("exact", "audited" or "no"; None where a reservation is resolved). `cost_units` is what was
    asked for in the ledger's whole units (see `LimitState`), all reports together; `cost`, `epsilon` and `delta` are
    the same as plain numbers. A receipt is true unless it says refused or voided: then nothing may be sent.
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

    def __bool__(self) -> bool:
        return self.status not in (REFUSED, VOIDED)

    def __repr__(self) -> str:
        return f"<Receipt: {self.explain()}>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return _limit_table(self.explain(), self.limits)

    @property
    def cost(self) -> Amounts:
        """What was asked for, all reports together, rounded up."""
        return _numbers(None, self.cost_units, [True] * 4, float_up)

    @property
    def epsilon(self) -> float | None:
        """The ε asked for, all reports together; None where it is unbounded."""
        return _plain(self.cost_units.epsilon, EPSILON_DIGITS)

    @property
    def delta(self) -> float | None:
        """The δ asked for, all reports together; None where it is unbounded."""
        return _plain(self.cost_units.delta, DELTA_DIGITS)

    def to_json(self) -> dict[str, Any]:
        """What `spend --json` prints."""
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
        """What the ledger keeps under a key: canonical JSON, with the number of the policy's version and the time.

        Those two say the rest of it. User and receipt stay out; they come back with the retry and the entry.

        Parameters:
            policy: the number of its version.
            at: when it was given, in microseconds.
        """
        level = None if self.checked is None else LEVELS.index(self.checked)
        numbers = [policy, at, self.reports, self.affordable_reports, level, *self.cost_units]
        for state in self.limits:
            numbers += state.spent_units
        # By hand, as every spend with a key does it, and numbers are all there is of most answers.
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
    ) -> Receipt:
        """The stored answer to a request, marked as repeated.

        Parameters:
            user: who asked.
            receipt: of the entry, if it granted something.
            policy_of: the policy of a number.
            answer: what `store` made.
            share: the share through which it was asked.

        Raises:
            ValueError: the argument has another form.
        """
        status, numbers, *refusal = json.loads(answer)
        if refusal and status not in (REFUSED, QUOTED):
            refusal = []  # it is a name, see `named`
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
                for limit, used in zip(policy.limits_for(share), spent, strict=True)
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
        """A stored answer that grants something, with the name of its entry, as a copy numbers that anew.

        Parameters:
            answer: what `store` made.
            name: of its entry.

        Raises:
            ValueError: `answer` has another form.
        """
        return answer if len(json.loads(answer)) > 2 else f"{answer[:-1]},{json.dumps(name)}]"

    @staticmethod
    def name_of(answer: str) -> Name | None:
        """The name of its entry that a stored answer bears, which grants something; None for one of this ledger.

        Parameters:
            answer: what `store` made.

        Raises:
            ValueError: the argument has another form.
        """
        _, _, *name = json.loads(answer)
        return Name(*name[0]) if name else None

    def explain(self) -> str:
        """A line that says what was asked, and what each binding limit has spent and left."""
        who = self.user or f"receipt {self.receipt}"
        asked = _amounts({"epsilon": self.epsilon, "delta": self.delta})
        if self.status not in (REFUSED, QUOTED):
            number = f" (receipt {self.receipt})" if self.receipt and self.user else ""
            return f"{self.status}: {who}, {asked}{number}{self._explain_repeated()}"
        parts = [f"{self.status}: {who} asked {asked} for {_count(self.reports)}"]
        if self.status == QUOTED:
            parts.append("it does not fit" if self.why or self.binding else "it fits")
        if self.why:
            parts.append(self.why)
        with_delta = self.delta != 0
        parts += [_explain(state.to_json(), with_delta) for state in self.limits if state.limit.label in self.binding]
        if PLAN in self.binding and not self.why:
            parts.append(self._explain_plan())
        parts.append(f"affordable: {_count(self.affordable_reports)}")
        return "; ".join(parts) + self._explain_repeated()

    def _explain_repeated(self) -> str:
        """That this is an answer given before, and what that means."""
        if not self.repeated:
            return ""
        if self.user is None:
            return "; it was already"
        if self.status == REFUSED:
            return "; the stored answer of this key, which a new key would ask for anew"
        return "; the stored answer of this key, so nothing was charged again"

    def _explain_plan(self) -> str:
        """What the plan's quota has left: where it alone binds, that is what is affordable."""
        alone = self.binding == (PLAN,)
        left = _count(self.affordable_reports) if alone else f"fewer than {_count(self.reports)}"
        return f"the plan of policy {self.policy} has {left} of this kind left"


def answer_again(
    transaction: Transaction, request: Request, stored: IdempotencyRecord, policy_of: Callable[[int], Policy]
) -> Receipt:
    """The answer that was kept; of a reservation that was voided since it says so, for nothing may be sent."""
    entry = stored.entry
    receipt = None
    if entry is not None:
        name = Receipt.name_of(stored.response)
        receipt = receipt_for(transaction, entry) if name is None else receipt_of(secret_for(transaction, name), name)
    answer = Receipt.restore(request.user, receipt, policy_of, stored.response, request.share)
    resolution = None if entry is None or request.kind != RESERVED else transaction.resolution(entry)
    return answer._replace(status=VOIDED) if resolution is not None and resolution.kind == VOIDED else answer


class BudgetExceeded(LdpBudgetError):  # noqa: N818
    """A spend was refused, and the caller asked for an exception. Attribute: `receipt`."""

    code = "budget-exceeded"

    def __init__(self, receipt: Receipt) -> None:
        self.receipt = receipt
        super().__init__(receipt.explain())


@dataclass(frozen=True)
class Balance:
    """What a user has spent under each limit of a policy, and of its plan's quotas.

    `charges` are all the guarantees the user was charged for in this ledger, and how often. A user who was `erased`
    has no budget: nothing is known of what was spent, and there are no limits to show. Of an account whose user
    nobody has named, `user` is None, and `place` says where it stands.
    """

    user: str | None
    policy: Policy
    limits: tuple[LimitState, ...]
    quotas: tuple[dict[str, Any], ...] = ()
    charges: tuple[tuple[Guarantee, int], ...] = ()
    erased: bool = False
    place: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        if self.erased:
            return f"<Balance of {self.user}, policy {self.policy.name}: erased>"
        lines = [repr(state).removeprefix("<LimitState ").removesuffix(">") for state in self.limits]
        lines += [f"plan: {sum(quota['left'] for quota in self.quotas)} reports left"] if self.quotas else []
        return "\n  ".join([f"<Balance of {self.user}, policy {self.policy.name}:", *lines]) + ">"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        whose = self.user if not self.place else ", ".join(f"{name} {at}" for name, at in self.place.items())
        erased = ": erased" if self.erased else ""
        return _limit_table(f"{whose}, policy {self.policy.name}{erased}", self.limits)

    @cached_property
    def odometer(self) -> dict[str, Any] | None:
        """The exact loss of all that was spent, at the largest δ of the policy's limits and plan; never enforced by.

        None where nothing was spent, or where exact composition does not apply.
        """
        from ..composition import compose

        if not self.charges:
            return None
        try:
            total = compose(self.charges, delta=self._largest_delta, rule="exact")
        except NotSupported:
            return None
        return {"epsilon": total.epsilon, "lower": total.lower, "delta": total.delta, "note": ODOMETER_NOTE}

    def shuffled(self, users: int) -> dict[str, Any] | None:
        """The central loss of all that was spent if each report was shuffled among those of many users.

        At the δ of the odometer and as valid as it is, and never enforced by: no ledger sees who shuffled. None where
        nothing was spent, or where no bound is known: so for memoised reports, which others may repeat as well.

        Parameters:
            users: how many, the user among them.

        Raises:
            InvalidParameter: it is no whole number from 1 to 10^12.
        """
        from ..composition.shuffle_amplification import is_memoised, shuffled, whole_users

        whole_users(users)
        # All reports of a label are one charge here, and a receiver knows what the other users repeat.
        if not self.charges or any(is_memoised(guarantee) for guarantee, _ in self.charges):
            return None
        try:
            return {**shuffled(self.charges, users, self._largest_delta).to_json(), "note": ODOMETER_NOTE}
        except NotSupported:
            return None

    @property
    def _largest_delta(self) -> Decimal:
        deltas = [state.limit.delta for state in self.limits]
        return max([*deltas, self.policy.plan.delta if self.policy.plan is not None else Decimal(0)])

    def to_json(self) -> dict[str, Any]:
        """What `balance --json` prints."""
        return self._to_json({"odometer": self.odometer})

    def to_row(self) -> dict[str, Any]:
        """All but the odometer, which is worked out for each user: what `balance --users` prints."""
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


def _limit_table(caption: str, limits: Sequence[LimitState]) -> str:
    """What is spent and left of each amount of some limits, for notebooks."""
    from .._dataframes import html_table

    rows = [
        (
            limit["period"],
            limit["rule"],
            name,
            most,
            limit["spent"][name],
            limit["remaining"][name],
            limit["resets_at"] or "never",
        )
        for limit in (state.to_json() for state in limits)
        for name, most in limit["capacity"].items()
    ]
    header = ("period", "rule", "amount", "capacity", "spent", "left", "resets")
    return html_table(caption, header, rows, len(rows))


def _explain(limit: dict[str, Any], with_delta: bool) -> str:
    """A limit in words; with its δ also where that is 0, if a δ was asked for: then it may be what refuses."""
    resets = f", resets at {limit['resets_at']}" if limit["resets_at"] else ""
    capacity, spent, left = (_amounts(limit[name], with_delta) for name in ("capacity", "spent", "remaining"))
    return f"the {limit['period']} limit ({limit['rule']}) of {capacity} has {spent} spent and {left} left{resets}"


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _numbers(limit: Limit | None, units: Costs, counted: list[bool], round_to: Callable[[Decimal], float]) -> Amounts:
    """Whole units as plain numbers, where they are counted; under the name that the limit gives to each."""
    names = Costs._fields if limit is None else limit.names
    return Amounts(
        **{
            name: math.inf if amount is None else round_to(from_units(amount, digits))
            for name, amount, digits, shown in zip(names, units, _DIGITS, counted, strict=True)
            if shown
        }
    )


def _plain(units: int | None, digits: int) -> float | None:
    return None if units is None else float_up(from_units(units, digits))


def _count(reports: int) -> str:
    if reports >= LARGEST:
        return "any number of reports"
    return "1 report" if reports == 1 else f"{reports} reports"


_DIGITS = EPSILON_DIGITS, DELTA_DIGITS, RHO_DIGITS, MU_SQUARED_DIGITS
_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ", "mu_squared": "μ²", "renyi": "D"}


def _amounts(amounts: dict[str, float | None], with_delta: bool = False) -> str:
    """`ε = 0.1`, with δ only where there is some, or where it is wanted all the same."""
    shown = {name: value for name, value in amounts.items() if with_delta or not (name == "delta" and value == 0)}
    return ", ".join(
        f"{_SYMBOLS[name]} = {'unbounded' if value is None else f'{value:.12g}'}" for name, value in shown.items()
    )
