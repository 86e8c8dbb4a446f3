"""The process beside the service that works questions out: `python -m ldp_budget_service.working`.

It reads a line of JSON for each question and writes one for each answer. Nothing of a ledger is known to it.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ldp_budget import InvalidParameter, LdpBudgetError, Mechanism, mechanism
from ldp_budget.guarantees.amounts import decimal

from .kinds import as_json, problem_of

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_MEMORY = 3 << 30
"""Bytes of address space: what needs more is refused, and the service beside it is not in need of them."""

Asked = dict[str, Any]


def calibrate(asked: Asked) -> Any:
    """What `calibrate --json` prints."""
    made = _kind(asked).calibrate(**asked["options"])
    return made.describe(asked["users"])


def compose(asked: Asked) -> Any:
    """What `compose --json` prints."""
    from ldp_budget.accounting.totals import central_of, own_delta, promise_of, totals

    made, reports = _made(asked), asked["reports"]
    delta = own_delta(promise_of(made), reports) if asked["total_delta"] is None else _delta(asked)
    rules, _ = totals(made, reports, delta)
    row = {"reports": reports, "delta": float(delta), "rules": rules}
    if asked["shuffled"] is not None:
        row["shuffled"], _ = central_of(made, reports, delta, asked["shuffled"])
    return row


def plan(asked: Asked) -> Any:
    """What `plan --json` prints; of a collection, of its mechanism at another ε."""
    from ldp_budget.accounting.totals import by_rule, maker, planned

    make = _made(asked).at_epsilon if asked["at_epsilon"] else maker(_kind(asked), _without_targets(asked))
    epsilon, delta, reports = _amount("total_epsilon", asked["total_epsilon"]), _delta(asked), asked["reports"]
    rules, _ = by_rule(lambda rule: planned(make, reports, epsilon, delta, rule))
    return {"reports": reports, "epsilon": float(epsilon), "delta": float(delta), "rules": rules}


def compare(asked: Asked) -> Any:
    """What `compare --json` prints."""
    from ldp_budget.accounting.totals import own_delta, totals
    from ldp_budget.catalogue.ranking import rank_frequency, rank_numeric

    reports, given = asked["reports"], None if asked["total_delta"] is None else _delta(asked)

    def beside(made: Mechanism) -> dict[str, Any]:
        delta = own_delta(made.guarantee, reports) if given is None else given
        rules, _ = totals(made, reports, delta)
        return {"totals": {"reports": reports, "delta": float(delta), "rules": rules}}

    with_totals = None if reports is None else beside
    rows: list[dict[str, Any]] = []
    if asked["domain_size"] is not None:
        rows += rank_frequency(asked["epsilon"], asked["domain_size"], asked["users"], beside=with_totals)
    if asked["lower"] is not None:
        rows += rank_numeric(asked["epsilon"], asked["lower"], asked["upper"], asked["users"], beside=with_totals)
    return rows


def simulate(asked: Asked) -> Any:
    """When each limit of a policy binds first."""
    from ldp_budget.accounting.policies import Policy
    from ldp_budget.accounting.simulating import simulate
    from ldp_budget.api.schemas import binding_form

    start = datetime.fromisoformat(asked["start"])
    policy = Policy.from_json(asked["policy"])
    found = simulate(policy, _made(asked), every=asked["every"], start=start, reports=asked["reports"])
    return [binding_form(each) for each in found]


def _kind(asked: Asked) -> type[Mechanism]:
    found: type[Mechanism] = mechanism(asked["name"])
    return found


def _without_targets(asked: Asked) -> dict[str, Any]:
    """The options of a mechanism whose ε is to be found. Raises `InvalidParameter` where that is given."""
    options: dict[str, Any] = asked["options"]
    for name in _kind(asked).targets:
        if name in options:
            raise InvalidParameter(name, "none, as it is what is to be found", str(options[name]))
    return options


def _made(asked: Asked) -> Mechanism:
    return _kind(asked)(**asked["options"])


def _amount(option: str, value: Any) -> Decimal:
    try:
        return decimal(value)
    except ValueError:
        raise InvalidParameter(option, "a finite number", str(value)) from None


def _delta(asked: Asked) -> Decimal:
    from ldp_budget.accounting.totals import check_delta

    return check_delta(_amount("total_delta", asked["total_delta"]))


QUESTIONS: dict[str, Callable[[Asked], Any]] = {
    "calibrate": calibrate,
    "compose": compose,
    "plan": plan,
    "compare": compare,
    "simulate": simulate,
}


def answer(line: str) -> str:
    """The answer to a line: `{"answer": …}`, or `{"problem": …}`."""
    try:
        asked = json.loads(line)
        return as_json({"answer": QUESTIONS[asked["question"]](asked)})
    except LdpBudgetError as error:
        return as_json({"problem": problem_of(error)})
    except (MemoryError, OverflowError, RecursionError) as error:
        return as_json({"too_much": type(error).__name__})
    except Exception as error:  # as everywhere in the service, it is told to the log
        return as_json({"crashed": f"{type(error).__name__}: {error}"})


def main() -> None:
    """Answer until there is nobody who asks."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    for line in sys.stdin:
        sys.stdout.write(answer(line) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
