"""The half-year: 26 weeks of SIZE installations, with the client in Python.

python half_year.py 2000    # in an empty folder: makes 2000.db
"""

import os
import subprocess
import sys
import time
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np
from truth import ANSWERS, MEMOIZED, QUARTERS, WEEKS, Truth

from ldp_budget import Accountant
from ldp_budget.reports.inbox import Inbox, Sent
from ldp_budget_surveys.planning.margins import margin_for

HERE, LAST = Path(__file__).parent, WEEKS - 1
IN_LEDGER = 500  # to save time, the reports of further installations skip the ledger
NAIVE = 3 * WEEKS + 2 + 1  # the loss of the same reports with fresh noise


def drawn(truth, collection, week, rows):
    """The reports of a week and their labels. A seed is for made-up answers: a real client has none."""
    values = truth.answers(collection.name, week, rows)
    if collection.name in MEMOIZED:
        secrets = [truth.secrets(week)[row] for row in rows]
        return collection.randomize(values, secrets=secrets), collection.labels(values, secrets)
    ticks = collection.name == "features"
    given = [np.flatnonzero(row).tolist() for row in values] if ticks else values
    return collection.mechanism.randomize(given, rng=week), [None] * len(rows)


def shares(metric, asked):
    """The true share of each answer among the installations that reported."""
    told = np.concatenate(asked)
    return told.mean(0) if metric == "features" else np.bincount(told, minlength=len(ANSWERS[metric])) / len(told)


def main(size):
    os.environ["LDP_BUDGET_LEDGER"] = str(Path(f"{size}.db").resolve())
    subprocess.run(["bash", HERE / "collections.sh"], check=True, stdout=subprocess.DEVNULL)
    truth, refused, direct, asked = Truth(size), [], defaultdict(list), defaultdict(list)
    found, true, held = {}, {}, defaultdict(list)
    with Accountant(f"{size}.db") as ledger:
        collections = {metric: ledger.collection(metric) for metric in ANSWERS}
        for week, (metric, collection) in product(range(WEEKS), collections.items()):
            box, name, rows = Inbox(ledger, collection), f"week-{week + 1:02}", truth.due(metric, week)
            key = f"{name}/{metric}"  # idempotency keys belong to their user, whatever the collection
            reports, labels = drawn(truth, collection, week, rows)
            some = np.searchsorted(rows, IN_LEDGER)
            lines = zip(rows[:some], box.bytes_of(reports[:some]), labels[:some], strict=True)
            _, failed = box.take_many([Sent(truth.installations[row], key, *line) for row, *line in lines])
            refused += [truth.lost[rows[each.index]] for each in failed]
            direct[metric].append(reports[some:])
            asked[metric].append(truth.answers(metric, week, rows))
            if week not in {"features": QUARTERS, "importer": [LAST]}.get(metric, range(WEEKS)):
                continue  # a week of the importer has too few reports: it has one round, at the end
            box.seal(name)
            estimate = collection.estimate(np.concatenate([*box.round(name), *direct.pop(metric)]))
            true[key] = shares(metric, asked.pop(metric))
            found[key] = estimate.counts / estimate.reports
            low, high = estimate.interval(0.95)
            held[metric].append((low <= true[key] * estimate.reports) & (true[key] * estimate.reports <= high))
        print("metric      margin  largest error  true value within the interval")
        for metric, collection in collections.items():
            error = max(abs(found[key] - true[key]).max() for key in found if key.endswith(metric))
            print(
                f"{metric:10}  {margin_for(collection.mechanism, size):6.1%}  {error:13.1%}  {np.mean(held[metric]):.0%}"
            )
        spent = np.array([each.limits[0].spent.epsilon for each in ledger.balances(truth.installations[:IN_LEDGER])])
    first, last = "week-01/database", f"week-{WEEKS}/database"
    change, truly = (each[last][0] - each[first][0] for each in (found, true))
    on, large = truth.on[LAST], truth.users[LAST] >= 3
    print(f"sqlite, week 1 to 26   {change:+.1%} estimated, {truly:+.1%} true")
    print(f"epsilon spent          {spent.mean():.1f} on average, {spent.max():.0f} at most; fresh noise: {NAIVE}")
    print(f"reports refused        {len(refused)}, of which {sum(refused)} after a secret was lost")
    print(f"telemetry still on     {on.mean():.1%} of all, {on[large].mean():.1%} of those with more than 100 users")
    print(
        f"{os.path.getsize(f'{size}.db') / 1e6:.0f} MB, {time.process_time():.0f} s of processor time",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
