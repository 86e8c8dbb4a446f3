"""Make vectors.json: the test vectors of published surveys, always the same ones. Needs ldp-budget with `fast`."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget import mechanism
from ldp_budget._files import canonical_json
from ldp_budget.guarantees.fixed_point import Costs
from ldp_budget.registry.collections import Collection
from ldp_budget.registry.public_definition import About
from ldp_budget.reports.inbox import Marks
from ldp_budget_surveys.publication import transparency_log
from ldp_budget_surveys.publication.books import Charged
from ldp_budget_surveys.publication.estimate import estimate_of
from ldp_budget_surveys.publication.merkle import leaf_hash, path_of, root_of
from ldp_budget_surveys.publication.publisher import _salt, account_leaf, charge_of
from ldp_budget_surveys.publication.signed_limits import signing_key
from ldp_budget_surveys.publication.signed_note import LogKey
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey, SurveyQuestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OUT = Path(__file__).parent / "vectors.json"
LIMIT, COST = 4_000_000_001, 1_000_000_000
RECEIPT_KEY = signing_key(sha256(b"receipt key of the vectors").digest())
KEY = LogKey("ask.example.org/surveys", sha256(b"key of the vectors").digest())


def chosen(*words: object) -> bytes:
    """Return bytes that depend on the words alone."""
    return sha256(" ".join(map(str, words)).encode()).digest()


def promised(definition: dict[str, Any], measure: str = "epsilon", limit: int = LIMIT) -> dict[str, Any]:
    """Return the promise of a receipt."""
    said = {"client": definition["digest"], "collection": definition["name"], "limit": limit, "measure": measure}
    signature = RECEIPT_KEY.sign(b"ldp-budget promise\n" + canonical_json(said).encode()).hex()
    return {
        "measure": measure,
        "limit": limit,
        "key": RECEIPT_KEY.public_key().public_bytes_raw().hex(),
        "signature": signature,
    }


def signed(entries: Sequence[bytes]) -> dict[str, bytes]:
    """Return the files of a log with these statements."""
    root = root_of([leaf_hash(each) for each in entries])
    return dict(transparency_log.tiles(entries)) | {"checkpoint": KEY.checkpoint(len(entries), root).encode()}


def promised_to(receipt: dict[str, Any], measure: str, limit: int) -> dict[str, Any]:
    """Return another promise to the owner of a receipt."""
    return promised({"digest": receipt["client"], "name": receipt["collection"]}, measure, limit)


def survey(kind: str, answers: int, people: int, number: int, before: Sequence[bytes] = ()) -> dict[str, Any]:
    """Return a small published survey: its files, and the receipt and the proof of its second respondent.

    `before` are the earlier statements in its log.
    """
    names = tuple(f"answer {place}" for place in range(answers)) if answers > 2 else ("no", "yes")
    options = {"epsilon": "1"} | ({} if kind == "randomized-response" else {"domain_size": answers})
    about = About(title="Weg \u2192 \U0001f6b2\x7f", question="Wie?")
    definition = Collection(f"survey-{number}", mechanism(kind).calibrate(**options), names, about).definition()
    width = np.dtype(definition["report"]["dtype"]).itemsize * int(np.prod(definition["report"]["shape"]))
    most = 2**answers if definition["report"]["parts"][0][0] == "packed" else answers
    secret, costs = chosen("secret", number), Costs(COST, 0, None, None)
    devices = [chosen("device", number, place)[:16] for place in range(people)]
    draws = [int.from_bytes(chosen("draw", number, place)[:8], "big") % most for place in range(people)]
    reports = [draw.to_bytes(width, "little") for draw in draws]
    marks = [Marks.of(device) for device in devices]
    charged = [Charged(0, place + 1, place + 1, costs, mark.charge) for place, mark in enumerate(marks)]
    records = sorted(mark.report + report for mark, report in zip(marks, reports, strict=True))
    charges = sorted(charge_of(secret, each, "epsilon") for each in charged)
    totals = [COST + 123_456_789 * (place % 3) for place in range(people)]
    make = account_leaf(secret, LIMIT)
    leaves = sorted(make(0, place + 1, total) for place, total in enumerate(totals))
    steps = -(-16 * max(totals) // LIMIT)
    array = np.frombuffer(b"".join(records), np.uint8).reshape(people, 16 + width)
    statement = {
        "format": "ldp-budget statement",
        "version": 1,
        "time": f"2027-03-0{number}T12:00:00Z",
        "collection": definition["name"],
        "client": definition["digest"],
        "accounts": people,
        "accounts_root": root_of(leaves).hex(),
        "charges": people,
        "charges_root": root_of([leaf_hash(b"C" + each) for each in charges]).hex(),
        "reports": people,
        "reports_root": root_of([leaf_hash(b"R" + each) for each in records]).hex(),
        "width": width,
        "measure": "epsilon",
        "limit": LIMIT,
        "maximum": -(-steps * LIMIT // 16),
        "receipt_keys": [RECEIPT_KEY.public_key().public_bytes_raw().hex()],
        "estimate": estimate_of(definition, array),
    }
    files = signed([*before, canonical_json(statement).encode()])
    files |= {
        "client.json": canonical_json(definition).encode(),
        "charges.bin": b"".join(charges),
        "reports.bin": b"".join(records),
    }
    index = leaves.index(make(0, 2, totals[1]))
    proof = {
        "account": {
            "index": index,
            "path": base64.b64encode(path_of(leaves, index)).decode(),
            "salt": _salt(secret, b"account", 0, 2).hex(),
            "total": totals[1],
        },
        "charge": {"salt": _salt(secret, b"charge", 0, 2).hex()},
    }
    receipt = {
        "format": "ldp-budget receipt",
        "version": 1,
        "collection": definition["name"],
        "client": definition["digest"],
        "secret": devices[1].hex(),
        "report": reports[1].hex(),
        "costs": costs._asdict(),
        "promise": promised(definition),
    }
    return {"keys": [KEY.verifier_key], "files": shown(files), "receipts": [receipt], "proof": canonical_json(proof)}


def of_questionnaire(made: dict[str, Any]) -> dict[str, Any]:
    """Return the files and the receipt of a survey whose definition is that of a questionnaire."""
    receipt = made["receipts"][0]
    questions = (
        SurveyQuestion("mood", "How do you feel?", categories=("good", "bad")),
        SurveyQuestion("smoke", "Do you smoke?", kind="yes-no", categories=("yes", "no")),
    )
    definition = survey_collection(Survey(receipt["collection"], questions, Decimal(1), "all")).definition()
    *before, entry = entries_in(made["files"])
    statement = {**json.loads(entry), "client": definition["digest"]}
    kept = {name: each for name, each in made["files"].items() if not name.startswith(("tile/", "checkpoint"))}
    log_files = signed([*before, canonical_json(statement).encode()])
    client = {"client.json": canonical_json(definition).encode()}
    mine = {**receipt, "client": definition["digest"], "promise": promised(definition)}
    return {"files": {**kept, **shown({**log_files, **client})}, "receipts": [mine]}


def shown(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return files in base64."""
    return {name: base64.b64encode(content).decode() for name, content in sorted(files.items())}


def entries_in(files: Mapping[str, str]) -> list[bytes]:
    """Return the statements of a log with at most 255 of them."""
    [bundle] = [base64.b64decode(content) for name, content in files.items() if name.startswith("tile/entries/")]
    found = []
    while bundle:
        size = 2 + int.from_bytes(bundle[:2], "big")
        found.append(bundle[2:size])
        bundle = bundle[size:]
    return found


def cases() -> list[dict[str, Any]]:
    """Return surveys that are accepted, and changes of the first one that are refused."""
    kinds = [
        ("oue", 3, 9),
        ("sue", 9, 5),
        ("grr", 4, 7),
        ("grr", 300, 6),
        ("randomized-response", 2, 8),
        ("pgr", 4, 3),
    ]
    found: list[dict[str, Any]] = []
    for number, (kind, answers, people) in enumerate(kinds, 1):
        before = entries_in(found[-1]["files"]) if found else []
        made = survey(kind, answers, people, number, before)
        found.append({"name": f"{kind} with {answers} answers", "accepted": True, **made})
    found.append({**found[-1], "name": "a questionnaire", **of_questionnaire(found[-1])})
    honest = found[0]
    files, receipt, proof = honest["files"], honest["receipts"][0], json.loads(honest["proof"])
    [entry] = entries_in(files)
    statement = json.loads(entry)

    def refused(name: str, **changes: Any) -> None:
        found.append({**honest, "name": name, "accepted": False, **changes})

    def with_file(path: str, content: bytes) -> dict[str, str]:
        return {**files, path: base64.b64encode(content).decode()}

    def stated(*entries: bytes) -> dict[str, str]:
        kept = {name: content for name, content in files.items() if not name.startswith(("tile/", "checkpoint"))}
        return {**kept, **shown(signed(entries))}

    def changed(**changes: Any) -> bytes:
        return canonical_json({**statement, **changes}).encode()

    receipt_of_text = json.dumps(receipt)
    for name, text in {
        "a member twice": receipt_of_text.replace("{", '{"version": 1, ', 1),
        "a byte order mark": "\ufeff" + receipt_of_text,
        "data after it": receipt_of_text + " 1",
        "a comma too many": receipt_of_text.replace("}", ",}", 1),
        "a NaN": receipt_of_text.replace("}", ', "more": NaN}', 1),
        "half a character": receipt_of_text[:-1] + ', "more": "\\ud800"}',
        "a control character": receipt_of_text[:-1] + ', "more": "\t"}',
        "deep nesting": receipt_of_text[:-1] + ', "more": ' + "[" * 70 + "]" * 70 + "}",
        "a version that is 1.0": receipt_of_text.replace('"version": 1', '"version": 1.0'),
        "a version that is true": receipt_of_text.replace('"version": 1', '"version": true'),
        "no promise": json.dumps({name: each for name, each in receipt.items() if name != "promise"}),
    }.items():
        refused(f"the receipt has {name}", receipt_texts=[text])
    accepted = (
        receipt_of_text[:-1] + ', "more": [0.5, 1e400, -0, 9007199254740993, "\\ud83d\\ude00", {"__proto__": null}]}'
    )
    found.append({**honest, "name": "the receipt has more members", "receipt_texts": [accepted]})
    refused(
        "the receipt promises another limit", receipts=[{**receipt, "promise": promised_to(receipt, "epsilon", 1)}]
    )
    refused("the receipt promises rho", receipts=[{**receipt, "promise": promised_to(receipt, "rho", LIMIT)}])
    refused(
        "the promise is not signed", receipts=[{**receipt, "promise": {**receipt["promise"], "limit": LIMIT + 1}}]
    )
    for name, cost in (("epsilon", COST - 1), ("rho", 1), ("mu_squared", 0)):
        refused(
            f"the receipt has too small a {name}", receipts=[{**receipt, "costs": {**receipt["costs"], name: cost}}]
        )
    for name, change in {
        "the measure delta": {"measure": "delta"},
        "a list as measure": {"measure": ["epsilon"]},
        "another limit": {"limit": 2 * LIMIT, "maximum": 2 * LIMIT},
        "no accounts": {"accounts": 0},
        "one account for all": {"accounts": 1},
        "a version that is true": {"version": True},
        "a number beyond 53 bits": {"accounts": 2**53},
        "a null as root": {"accounts_root": None},
        "a line in its time": {"time": "2027-03-01T12:00:00Z\n"},
        "a day that does not exist": {"time": "2027-02-30T12:00:00Z"},
        "another collection": {"collection": "wages"},
        "no receipt keys": {"receipt_keys": []},
        "another receipt key": {"receipt_keys": ["0" * 64]},
        "one more key": {"more": 1},
        "a maximum that is no sixteenth": {"maximum": statement["maximum"] - 1},
        "counts as truth values": {"estimate": {**statement["estimate"], "first": True}},
    }.items():
        refused(f"the statement has {name}", files=stated(changed(**change)))
    refused("the statement has a number with a point", files=stated(entry.replace(b'"version":1', b'"version":1.0')))
    refused(
        "the statement has a member twice", files=stated(entry.replace(b'"version":1', b'"version":1,"version":1'))
    )
    refused("the log has an entry that is no statement", files=stated(b"1", entry))
    for name, change in {
        "other reports": {"reports_root": "0" * 64},
        "another limit": {"limit": LIMIT + 16, "maximum": statement["maximum"] + 5},
        "another measure": {"measure": "rho"},
        "another definition": {"client": "0" * 64},
        "another name": {"collection": "another"},
        "more accounts": {"accounts": 10},
        "a larger maximum": {"maximum": LIMIT},
        "a later time": {"time": "2027-03-02T12:00:00Z"},
        "another receipt key": {"receipt_keys": ["0" * 64]},
        "another estimate": {"estimate": {**statement["estimate"], "fakes": 9}},
    }.items():
        refused(f"an earlier statement has {name}", files=stated(changed(**change), entry))
    found.append({**honest, "name": "the statement is repeated", "files": stated(entry, entry)})
    refused("the proof ends with a newline", proof=honest["proof"] + "\n")
    refused("the proof has a space", proof=honest["proof"].replace(":", ": ", 1))
    refused(
        "the proof has another index", proof=canonical_json({**proof, "account": {**proof["account"], "index": 8}})
    )
    refused(
        "the proof has true as index", proof=canonical_json({**proof, "account": {**proof["account"], "index": True}})
    )
    refused("the proof has one more key", proof=canonical_json({**proof, "more": 1}))
    refused("the proof is missing", proof=None)
    refused("the receipt has another cost", receipts=[{**receipt, "costs": {**receipt["costs"], "epsilon": 1}}])
    refused("the receipts add up to more", receipts=[receipt, {**receipt, "secret": "00" * 16}])
    refused("a receipt is given twice", receipts=[receipt, receipt])
    data = base64.b64decode(files["reports.bin"])
    refused("two reports are exchanged", files=with_file("reports.bin", data[17:34] + data[:17] + data[34:]))
    refused("a report has a byte more", files=with_file("reports.bin", data + b"\0"))
    note = base64.b64decode(files["checkpoint"])
    refused("the checkpoint has another size", files=with_file("checkpoint", note.replace(b"\n1\n", b"\n2\n")))
    refused("the checkpoint is not signed", files=with_file("checkpoint", note.partition(b"\n\n")[0] + b"\n\n"))
    refused("the checkpoint was seen with another root", seen=KEY.checkpoint(1, chosen("other")))
    refused("the checkpoint was seen with a larger size", seen=KEY.checkpoint(2, chosen("other")))
    refused("the key is another one", keys=[LogKey(KEY.name, chosen("another key")).verifier_key])
    return found


def vectors() -> dict[str, Any]:
    """Return all vectors."""
    secret, salt = bytes(range(16)), bytes(range(16, 32))
    marks = Marks.of(secret)
    leaves = [f"leaf {place}".encode() for place in range(7)]
    hashes = [leaf_hash(leaf) for leaf in leaves]
    hidden = sha256(salt + (1_000_000_000).to_bytes(8, "big")).digest()
    return {
        "format": "ldp-budget vectors of publications",
        "version": 1,
        "marks": {"secret": secret.hex(), "report": marks.report.hex(), "charge": marks.charge.hex()},
        "charge": {
            "salt": salt.hex(),
            "cost": COST,
            "record": sha256(salt + marks.charge + COST.to_bytes(8, "big")).hexdigest(),
        },
        "account": {"salt": salt.hex(), "total": 1_000_000_000, "limit": LIMIT, "leaf": (b"A\4" + hidden).hex()},
        "tree": {
            "leaves": [leaf.hex() for leaf in leaves],
            "root": root_of(hashes).hex(),
            "paths": [path_of(hashes, index).hex() for index in range(7)],
        },
        "surveys": cases(),
    }


def text() -> str:
    """Return the text of vectors.json."""
    return json.dumps(vectors(), indent=1) + "\n"


if __name__ == "__main__":
    OUT.write_text(text(), encoding="utf-8")
