"""The honest floor of a charge: a straight line of Python that does what a ledger must do, and nothing else.

    python benchmarks/honest_floor.py [--charges 64]

It keeps the ledger's tables, MACs, idempotency records and hash chain, and the ledger's own transactions with their
guards of the files. So `verify` accepts what it writes, and the program ends with that check. It knows one policy with
one lifetime limit and one mechanism, charges known users only, and answers no retry of a refusal: no labels, plans,
notes, sub-limits, windows of a day, queue or caches. It is for measuring only. What the product takes beyond it is the
price of being general.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from struct import Struct

import ldp_budget
from ldp_budget import Accountant
from ldp_budget.accounting.charge_request import request_template
from ldp_budget.ledger.calendar import DAY_MICROS
from ldp_budget.ledger.models import AccountMac, IdempotencyRecord, WindowSum

REPORT = ldp_budget.mechanism("oue")(epsilon="0.000001", domain_size=7)
LIMITS = ["lifetime=1000000"]
_AMOUNTS = Struct("<4qqq16s").pack


class Floor:
    """Charges users of an accountant's ledger, whose policy `default` has one lifetime limit; its users are known."""

    def __init__(self, accountant: Accountant) -> None:
        accountant.spend("user-0", REPORT, key="first")  # the mechanism is stored
        ledger, template = accountant._ledger, request_template(REPORT, policy="default")
        self._store, self._secret = ledger._store, ledger.key.in_use
        self._tail, self._cost = template.tail, template.cost
        with ledger.reading() as reading:
            policy = reading.find_policy("default")
            charge = template.charge
            found = reading.priced_mechanism_number(charge.fingerprint, charge.promise, "")
        assert policy is not None
        self._policy, self._mechanism = policy.number, found
        [limit] = accountant.policy("default").limits
        self._most = limit.capacity[0] or 0

    def charge(self, asked: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Charge users, each with a key; return the stored responses and the receipts."""
        secret, tail, policy, mechanism = self._secret, self._tail, self._policy, self._mechanism
        cost, most = self._cost, self._most
        epsilon, delta, rho, mu = cost
        assert epsilon is not None
        users = secret.hashes(b"user", [user for user, _ in asked])
        keys = secret.hashes(b"key", [key for _, key in asked])
        digests = secret.hashes(b"request", [f"('spend', {user!a}, {tail}" for user, _ in asked])
        answers: list[tuple[str, int]] = []
        for attempt in self._store.attempts((0,)):
            with attempt as partitions:
                rows = partitions[0]
                head, _ = rows.end()
                now = int(time.time() * 1e6)
                if head.at is not None and now < head.at:
                    raise SystemExit("the clock went back")
                day, entries = now // DAY_MICROS, head.entries
                sums = secret.sums(ascii((0, day, ("lifetime",))).encode("ascii"))
                accounts = {}
                for user, account, newest, of_day, mac, counted, _, *spent in rows.accounts(
                    [*dict.fromkeys(users)], ["lifetime"]
                ):
                    hasher = sums.copy()
                    hasher.update(_AMOUNTS(*spent, account, newest or 0, user))
                    if hasher.digest() != mac or of_day != day or counted:
                        raise SystemExit(f"the sums of account {account} were changed, or are of another day")
                    accounts[user] = [account, newest, *spent]
                stored = {(each.user_hash, each.key_hash): each for each in rows.idempotency_records(users, keys)}
                journal, records, changed, answers = [], [], {}, []
                for user, key, request in zip(users, keys, digests, strict=True):
                    again = stored.get((user, key))
                    if again is not None:
                        if again.request_digest != request:
                            raise SystemExit("a key was used for another request")
                        answers.append((again.response, again.entry))
                        continue
                    account = accounts[user]
                    if account[2] + epsilon > most:
                        raise SystemExit("a user has no budget left")
                    entries += 1
                    account[1] = entries
                    account[2] += epsilon
                    account[3] += delta
                    account[4] += rho
                    account[5] += mu
                    left = (most - account[2]) // epsilon
                    journal.append(
                        (
                            entries,
                            now,
                            "spent",
                            account[0],
                            mechanism,
                            policy,
                            1,
                            *cost,
                            None,
                            None,
                            None,
                            1,
                            0,
                            0,
                            0,
                            None,
                        )
                    )
                    response = (
                        f'["spent",[{policy},{now},1,{left},0,{epsilon},{delta},{rho},{mu},'
                        f"{account[2]},{account[3]},{account[4]},{account[5]}]]"
                    )
                    records.append((user, key, entries, None, request, response, b""))
                    changed[user] = account
                    answers.append((response, entries))
                if journal:
                    new_sums, macs = [], []
                    for user, (account, newest, *spent) in changed.items():
                        hasher = sums.copy()
                        hasher.update(_AMOUNTS(*spent, account, newest, user))
                        new_sums.append((account, "lifetime", *spent))
                        macs.append((account, day, hasher.digest()))
                    link = secret.chain_hash(head.chain_hash + f"[[{ascii(journal)[1:-1]}], [], [], []]".encode())
                    rows.replace(WindowSum, new_sums)
                    rows.replace(AccountMac, macs)
                    rows.insert(IdempotencyRecord, secret.with_macs(records))
                    rows.add_entries(journal, link, entries)
                    rows.set_end(head._replace(entries=entries, at=now, chain_hash=link), None)
        return [(response, secret.receipt(str(entry))) for response, entry in answers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--charges", type=int, default=64, help="in one transaction")
    charges = parser.parse_args().charges
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path, users, keys = (
            Path(folder) / "budget.db",
            [f"user-{number}" for number in range(charges)],
            itertools.count(),
        )
        with Accountant(path) as accountant:
            accountant.set_policy("default", LIMITS)
            accountant.spend_many(users, REPORT)
            floor, took = Floor(accountant), []
            for _ in range(40):
                start = time.process_time()
                for _ in range(10):
                    floor.charge([(user, f"{next(keys)}") for user in users])
                took.append((time.process_time() - start) / 10 / charges * 1e6)
        with Accountant(path) as accountant:
            verified = accountant.verify()
            receipt = accountant.spend("user-0", REPORT, key="0")  # a retry of the first charge of the floor
            assert (verified.ok, receipt.repeated) == (True, True), verified.problems
    print(f"{statistics.median(took):.1f} µs of processor a charge, {charges} in one transaction; verify accepts it")


if __name__ == "__main__":
    main()
