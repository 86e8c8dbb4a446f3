"""Times, memory and sizes of published surveys: `python benchmarks/publication.py [ACCOUNTS [RESPONDENTS]]`.

A fresh process publishes, so that its memory is that of the publication. The checkers run as programs of their own.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ldp_budget import Accountant, mechanism
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.charged_release import release
from ldp_budget_surveys.publication.publisher import Publisher

CHECKERS = Path(__file__).parents[1] / "clients" / "check"


def collect(folder: Path, accounts: int, respondents: int) -> None:
    """Make a ledger of so many accounts, of which some answer a survey with receipts."""
    with Accountant(folder / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=4", "month=2"])
        earlier = mechanism("oue").calibrate(epsilon="0.5", domain_size=7)
        for start in range(0, accounts, 100_000):
            users = [f"user{place}" for place in range(start, min(start + 100_000, accounts))]
            accountant.spend_many(users, earlier, key=f"earlier {start}")
        collection = Collection("commute", mechanism("oue").calibrate(epsilon="1", domain_size=4)).agreed()
        accountant.add_collection(collection)
        users, values = [f"user{place}" for place in range(respondents)], np.arange(respondents) % 4
        began = time.perf_counter()
        out, receipts = folder / "reports", folder / "receipts"
        release(out, collection, accountant, values, users, policy="default", receipts=receipts)
        print(f"{respondents} receipts: {time.perf_counter() - began:.1f} s")
        Publisher(accountant).new_key("benchmark")


def publish(folder: Path) -> None:
    """Publish, prove one part, and print what it took."""
    with Accountant(folder / "budget.db") as accountant:
        publisher, wall, cpu = Publisher(accountant), time.perf_counter(), time.process_time()
        done = publisher.publish(accountant.collection("commute"), folder / "site")
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"publish {done.statement['accounts']} accounts: {wall:.1f} s, CPU {cpu:.1f} s, {memory} MiB")
        proof = publisher.prove("commute", json.loads((folder / "receipts" / "user5.json").read_bytes()))
    text = json.dumps(proof, sort_keys=True, separators=(",", ":"))
    print(f"proof: {len(text)} bytes")
    (folder / "proof").write_text(text)
    (folder / "key").write_text(done.verifier_key)


def check(folder: Path) -> None:
    """Run both checkers on the folder, the receipt and the proof."""
    given = ["--key", (folder / "key").read_text(), "--receipt", str(folder / "receipts" / "user5.json")]
    given += ["--proof", str(folder / "proof")]
    programs = [("Python", sys.executable, "check_books.py"), ("Node.js", shutil.which("node"), "check_books.mjs")]
    for name, program, file in programs:
        if program is None:
            continue
        wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, CHECKERS / file, folder / "site", *given], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"check with {name}: {time.perf_counter() - wall:.2f} s, CPU {cpu:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("accounts", type=int, nargs="?", default=1_000_000)
    parser.add_argument("respondents", type=int, nargs="?", default=20_000)
    parser.add_argument("--publish", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.publish is not None:
        publish(given.publish)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        collect(folder, given.accounts, given.respondents)
        subprocess.run([sys.executable, __file__, "--publish", folder], check=True)
        check(folder)


if __name__ == "__main__":
    main()
