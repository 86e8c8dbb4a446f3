"""One request held against one policy: does it fit, and what does it leave? Nothing here touches a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..guarantees.amounts import LARGEST
from ..ledger.reading import Account
from ..ledger.windows import LIFETIME
from .receipts import PLAN, QUOTED, REFUSED, LimitState, Receipt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..ledger.windows import Window
    from .request import Request
    from .terms import Terms

ERASED_USER = "this user was erased, and gets no fresh budget"


def decide(account: Account, request: Request, terms: Terms, windows: Mapping[str, Window]) -> Decision:
    """Whether `request` fits these terms on top of what stands in `account` in these windows: a function of these."""
    return Decision(account, request, terms, windows)


class Decision:
    """What is decided about a request.

    `costs` are what it adds in each window that it counts in, `why` the reason that no budget would help, `exceeded`
    the limits that it does not fit, and `binding` what they are called, and `plan` where a quota is used up or the
    user's plans together are too much.
    """

    def __init__(self, account: Account, request: Request, terms: Terms, windows: Mapping[str, Window]) -> None:
        self.account = account
        self.request = request
        self.terms = terms
        self._windows = windows
        self.costs = costs = request.costs_in(windows, terms.share, account)
        self.why = ERASED_USER if account.erased else terms.why
        spent = account.spent
        self.exceeded = [each for each in terms.limits if not each.fits(spent[each.gauge], costs[each.gauge])]
        over = [limit.label for limit in self.exceeded]
        if terms.crowded or _left(terms, account) < request.reports:
            over.append(PLAN)
        self.binding = tuple(dict.fromkeys(over)) if over else ()
        self._after: Account | None = None

    @property
    def fits(self) -> bool:
        """Whether the request is granted."""
        return not self.why and not self.binding

    @property
    def after(self) -> Account:
        """The account once the request is charged."""
        if self._after is None:
            account, reports = self.account, self.request.reports
            before, reported = account.spent, account.reported
            spent = {gauge: before[gauge].plus(cost) for gauge, cost in self.costs.items()}
            done = {period: count + reports for period, count in reported.items()} if reported else reported
            self._after = account._replace(spent=spent, reported=done, quota_used=account.quota_used + reports)
        return self._after

    def affordable(self, account: Account) -> int:
        """How many such reports fit on top of what stands in `account`."""
        if self.why:
            return 0
        charge, curve = self.request.charge, self.request.curve
        counts = [_left(self.terms, account)]
        for limit in self.terms.limits:
            gauge = limit.gauge
            spent = account.spent[gauge]
            if curve is None:
                counts.append(limit.affordable(spent, charge.cost_under(self._windows[gauge].measure)))
            else:
                earlier, done = account.label_count(gauge, self._windows[gauge])
                counts.append(limit.affordable_along(curve, done, spent, earlier=earlier))
        return min(counts)

    def receipt(self, status: str, receipt: str | None = None) -> Receipt:
        """The answer: with the limits as they are, or, once it is charged, as they have become."""
        undecided = status in (REFUSED, QUOTED)
        account = self.account if undecided else self.after
        spent, windows = account.spent, self._windows
        return Receipt(
            status,
            self.request.user,
            self.terms.policy.name,
            self.costs[LIFETIME],
            self.request.reports,
            tuple([LimitState(each, spent[each.gauge], windows[each.gauge].ends) for each in self.terms.limits]),
            self.binding if undecided else (),
            self.affordable(account),
            receipt,
            why=self.why if undecided else "",
            checked=self.request.charge.checked,
        )


def _left(terms: Terms, account: Account) -> int:
    """How many reports the plan has left; `LARGEST` without one."""
    return LARGEST if terms.quota is None else terms.quota - account.quota_used
