"""A small survey that is published, with its respondents' receipts and proofs; and operators who publish what they like."""

from __future__ import annotations

import base64
import copy
import json
import os
import random
import shutil
import time
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ldp_budget import Accountant, mechanism
from ldp_budget._files import canonical_json
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.charged_release import release
from ldp_budget.reports.inbox import Inbox, Marks
from ldp_budget_surveys.publication import transparency_log
from ldp_budget_surveys.publication.merkle import leaf_hash, path_of, root_of
from ldp_budget_surveys.publication.publisher import Publisher, account_leaf
from ldp_budget_surveys.publication.signed_note import LogKey
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey, SurveyQuestion
from ldp_budget_verify.shipped_checkers import checker

ROOT = Path(__file__).parents[2]
SEED = bytes(range(32))


def a_collection(name: str = "commute", kind: str = "oue", answers: int = 4, epsilon: str = "1") -> Collection:
    made = mechanism(kind)
    if kind == "randomized-response":
        return Collection(name, made.calibrate(epsilon=epsilon), ("no", "yes"), minimum_group=1).agreed()
    options: dict[str, Any] = {"domain_size": answers}
    categories = tuple(f"answer {place}" for place in range(answers))
    return Collection(name, made.calibrate(epsilon=epsilon, **options), categories, minimum_group=1).agreed()


class PublishedSurvey:
    """A ledger with a survey of `asked` respondents among `users`, published in `site`."""

    def __init__(self, folder: Path, asked: int = 60, users: int = 80, collection: Collection | None = None) -> None:
        self.folder, self.site = folder, folder / "site"
        self.accountant = Accountant(folder / "budget.db")
        self.accountant.set_policy("default", ["lifetime=4"])
        self.collection = a_collection() if collection is None else collection
        self.accountant.add_collection(self.collection)
        names = [f"user{place}" for place in range(users)]
        earlier = mechanism("oue").calibrate(epsilon="0.5", domain_size=4)
        self.accountant.spend_many(names, earlier, key="earlier")
        self.names = names[:asked]
        domain = self.collection.mechanism.domain
        self.values = np.arange(asked) % domain.size  # type: ignore[union-attr]
        release(
            folder / "reports",
            self.collection,
            self.accountant,
            self.values,
            self.names,
            policy="default",
            receipts=folder / "receipts",
        )
        self.publisher = Publisher(self.accountant)
        self.key = self.publisher.new_key("ask.example.org/surveys")
        self.published = self.publisher.publish(self.collection, self.site)

    def receipt(self, user: str) -> Path:
        return self.folder / "receipts" / f"{user}.json"

    def proof(self, user: str) -> bytes:
        found = self.publisher.prove(self.collection.name, json.loads(self.receipt(user).read_bytes()))
        return canonical_json(found).encode()

    def write_proof(self, user: str) -> Path:
        path = self.folder / f"proof-{user}.json"
        path.write_bytes(self.proof(user))
        return path


def published_questionnaire(folder: Path) -> str:
    """Publish a questionnaire in `site`, with a receipt and a proof next to it; return the key of the log."""
    questions = (
        SurveyQuestion("mood", "How do you feel?", categories=("good", "fair", "bad")),
        SurveyQuestion("smoke", "Do you smoke?", kind="yes-no", categories=("yes", "no")),
    )
    collection = survey_collection(Survey("health", questions, Decimal(2), "all", minimum_group=1))
    with Accountant(folder / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.add_collection(collection)
        box, users = Inbox(accountant, collection), ["ada", "bob", "cleo"]
        values = np.zeros(3, collection.mechanism.value_type)  # type: ignore[attr-defined]
        values = collection.select_questions(values, users)
        reports = box.bytes_of(collection.randomize(values))
        secrets = [os.urandom(16) for _ in users]
        receipts = [
            box.take(user, "key", report, marks=Marks.of(secret))
            for user, report, secret in zip(users, reports, secrets, strict=True)
        ]
        publisher = Publisher(accountant)
        key = publisher.new_key("log").verifier_key
        statement = publisher.publish(collection, folder / "site").statement
        assert (statement["estimate"], statement["reports"]) == (None, 3)
        costs = accountant.books.costs_of([receipts[0].receipt or ""])[0]._asdict()
        receipt = {
            **{"format": "ldp-budget receipt", "version": 1, "collection": "health", "client": statement["client"]},
            **{"secret": secrets[0].hex(), "report": reports[0].hex(), "costs": costs},
            "promise": accountant.books.promise("health", statement["client"], "default"),
        }
        (folder / "receipt").write_text(json.dumps(receipt))
        (folder / "proof").write_text(canonical_json(publisher.prove("health", receipt)))
    return key


class Witness:
    """A witness that cosigns a checkpoint only if it continues the one that it signed last."""

    def __init__(self, name: str = "witness.example.net") -> None:
        key = LogKey(name, bytes(reversed(SEED)))
        self.name, self._key, self._last = name, key._key, (0, b"")
        public = b"\4" + key._public[1:]
        self._id = sha256(f"{name}\n".encode() + public).digest()[:4]
        self.verifier_key = f"{name}+{self._id.hex()}+{base64.b64encode(public).decode()}"

    def cosign(self, folder: Path) -> None:
        note = (folder / "checkpoint").read_text("utf-8")
        text = note.partition("\n\n")[0] + "\n"
        size = int(text.split("\n")[1])
        hashes = [leaf_hash(each) for each in transparency_log.read_entries(folder / f"tile/entries/000.p/{size}")]
        old, old_root = self._last
        if len(hashes) < old or (old and root_of(hashes[:old]) != old_root):
            raise ValueError("the log does not continue what this witness signed")
        self._last = len(hashes), root_of(hashes)
        now = int(time.time())
        signature = self._key.sign(b"cosignature/v1\ntime %d\n" % now + text.encode())
        line = base64.b64encode(self._id + now.to_bytes(8, "big") + signature).decode()
        (folder / "checkpoint").write_text(f"{note}\u2014 {self.name} {line}\n", "utf-8")


class Operator:
    """An operator who has the key of the log, and publishes what she likes."""

    def __init__(self, survey: PublishedSurvey, out: Path) -> None:
        self._survey, self.site, self._key = survey, out, survey.key
        shutil.copytree(survey.site, out)
        self.statement = copy.deepcopy(survey.published.statement)
        private = survey.publisher._folder
        self.about = json.loads((private / "0001.json").read_bytes())
        self.secret = bytes.fromhex(self.about["secret"])
        data = (private / "0001.tree").read_bytes()
        self.leaves = [data[place : place + 32] for place in range(0, 32 * self.statement["accounts"], 32)]
        self.charges = self._read("charges.bin", 32)
        self.records = self._read("reports.bin", 16 + self.statement["width"])

    def _read(self, name: str, size: int) -> list[bytes]:
        data = (self.site / name).read_bytes()
        return [data[place : place + size] for place in range(0, len(data), size)]

    def sign(self, before: tuple[bytes, ...] = (), **changes: Any) -> Path:
        """Publish the changed lists with a statement that fits them, apart from `changes`."""
        self.charges.sort()
        self.records.sort()
        (self.site / "charges.bin").write_bytes(b"".join(self.charges))
        (self.site / "reports.bin").write_bytes(b"".join(self.records))
        self.statement |= {
            "charges": len(self.charges),
            "charges_root": root_of([leaf_hash(b"C" + each) for each in self.charges]).hex(),
            "reports": len(self.records),
            "reports_root": root_of([leaf_hash(b"R" + each) for each in self.records]).hex(),
            "accounts": len(self.leaves),
            "accounts_root": root_of(self.leaves).hex(),
        }
        definition = json.loads((self.site / "client.json").read_bytes())
        self.statement["estimate"] = checker("check_books").estimate_of(
            definition, b"".join(self.records), self.statement["width"]
        )
        self.statement |= {"client": definition["digest"], **changes}
        shutil.rmtree(self.site / "tile")
        transparency_log.write_log(self.site, self._key, [*before, canonical_json(self.statement).encode()])
        return self.site

    def account_proof(self, proof: dict[str, Any], partition: int, account: int, total: int) -> None:
        """Replace an account by one with another total, and make the proof fit."""
        made = account_leaf(self.secret, self.statement["limit"])
        old = made(partition, account, proof["account"]["total"])
        self.leaves = sorted([*(leaf for leaf in self.leaves if leaf != old), made(partition, account, total)])
        index = self.leaves.index(made(partition, account, total))
        proof["account"] |= {
            "index": index,
            "total": total,
            "path": base64.b64encode(path_of(self.leaves, index)).decode(),
        }


def tampered(data: bytes, chance: random.Random) -> bytes:
    """The data with one random change: of a bit, a byte, a length, an order, or a digit."""
    size, content = len(data), bytearray(data)
    place, kind = chance.randrange(size), chance.randrange(8)
    if kind == 0:
        content[place] ^= 1 << chance.randrange(8)
    elif kind == 1:
        content[place] = chance.randrange(256)
    elif kind == 2:
        del content[place]
    elif kind == 3:
        content.insert(chance.randrange(size + 1), chance.choice((chance.randrange(256), 10, 32, content[place])))
    elif kind == 4:
        del content[place:]
    elif kind == 5:
        content[place:place] = content[max(0, place - chance.randrange(1, 40)) : place]
    elif kind == 6:
        other, length = chance.randrange(size), chance.choice((1, 2, 16, 17, 32))
        content[place : place + length], content[other : other + length] = (
            content[other : other + length],
            content[place : place + length],
        )
    else:
        digits = [index for index in range(size) if 48 <= content[index] < 58]
        if digits:
            content[chance.choice(digits)] = 48 + chance.randrange(10)
    return bytes(content)
