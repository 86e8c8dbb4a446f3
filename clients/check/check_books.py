#!/usr/bin/env python3
"""Check a survey that proves itself: check_books.py FOLDER --key VKEY [--receipt FILE --proof FILE] [--seen CHECKPOINT]

It needs the standard library alone, uses no network, and decides on whole numbers. docs/reference/formats/publication.md
specifies every file. It proves, or refuses:

- The log signed one history of statements, and this folder is the newest one.
- There are as many charges as reports, and no published total is above the limit.
- The estimate follows from the published reports, with the probabilities of the client program.
- With your receipt and proof: your charge and your report are among them, and your total covers your receipts.
"""

import argparse
import base64
import json
import re
import sys
from collections import Counter
from fractions import Fraction
from hashlib import sha256, sha512
from itertools import pairwise
from pathlib import Path

ONE, STEPS, TILE = 2**64, 16, 256


class Refused(Exception):  # noqa: N818
    """The published files do not prove their statement."""


def need(condition, why):
    if not condition:
        raise Refused(why)


# -- encodings: each value has one form, and everything read is encoded again and compared --


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def read_json(data, name):
    value = json.loads(data)
    need(canonical(value) == data, f"{name} is not canonical JSON")
    return value


def decoded(text, size=None):
    """Bytes in hexadecimal digits of a known size, or in base64."""
    data = base64.b64decode(text, validate=True) if size is None else bytes.fromhex(text)
    form = base64.b64encode(data).decode() if size is None else data.hex()
    need(form == text and size in (None, len(data)), "bytes in another form")
    return data


def whole(value, least=0, most=2**63 - 1):
    need(type(value) is int and least <= value <= most, "a number is out of range")
    return value


# -- Merkle trees (RFC 6962) --


def leaf_hash(leaf):
    return sha256(b"\0" + leaf).digest()


def tree_root(hashes):
    while len(hashes) > 1:
        pairs, last = zip(hashes[::2], hashes[1::2], strict=False), hashes[len(hashes) & ~1 :]
        hashes = [sha256(b"\1" + a + b).digest() for a, b in pairs] + last
    return hashes[0]


def root_from_path(leaf, index, size, path):
    """Root that the path of an inclusion proof leads to."""
    found = leaf_hash(leaf)
    need(whole(index) < whole(size), "the proof is of another tree")
    while size > 1:
        if index ^ 1 < size:
            other, path = path[:32], path[32:]
            need(len(other) == 32, "the path of the proof is too short")
            found = sha256(b"\1" + (other + found if index & 1 else found + other)).digest()
        index, size = index >> 1, (size + 1) >> 1
    need(path == b"", "the path of the proof is too long")
    return found


# -- Ed25519 (RFC 8032) and signed notes (C2SP signed-note, tlog-checkpoint, tlog-cosignature) --

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def point(data):
    y, sign = int.from_bytes(data, "little") & (2**255 - 1), data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x * pow(2, (P - 1) // 4, P) % P if (x * x - square) % P else x
    need(len(data) == 32 and y < P and (x * x - square) % P == 0 and (x or not sign), "not a point of Ed25519")
    return (x := P - x if x & 1 != sign else x), y, 1, x * y % P


def plus(a, b):
    r, s = (a[1] - a[0]) * (b[1] - b[0]), (a[1] + a[0]) * (b[1] + b[0])
    c, d = 2 * a[3] * b[3] * D, 2 * a[2] * b[2]
    e, f, g, h = s - r, d - c, d + c, s + r
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number, a):
    total = (0, 1, 1, 0)
    for bit in f"{number:b}":
        total = plus(plus(total, total), a if bit == "1" else (0, 1, 1, 0))
    return total


BASE = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def is_signed(public, message, signature):
    r, s = point(signature[:32]), int.from_bytes(signature[32:], "little")
    h = int.from_bytes(sha512(signature[:32] + public + message).digest(), "little") % ORDER
    left, right = times(s, BASE), plus(r, times(h, point(public)))
    same = not any((left[i] * right[2] - right[i] * left[2]) % P for i in (0, 1))
    return s < ORDER and len(signature) == 64 and same


def read_key(vkey):
    """Return name, kind (1: log, 4: witness), public key and key ID of a verifier key."""
    name, key_id, text = [*vkey.split("+", 2), "", ""][:3]
    data = decoded(text)
    right = sha256(f"{name}\n".encode() + data).digest()[:4]
    need(data[:1] in (b"\1", b"\4") and len(data) == 33 and right.hex() == key_id, f"not a verifier key: {vkey}")
    return name, data[0], data[1:], right


def read_checkpoint(data, keys):
    """Return size and root of a checkpoint that all given keys have signed. The first key is the log's."""
    text, _, signatures = data.decode().partition("\n\n")
    (*lines, end), signers, message = signatures.split("\n"), [], f"{text}\n".encode()
    need(end == "" and len(set(lines)) == len(lines), "the checkpoint is not a signed note")
    for line in lines:
        dash, name, coded = line.split(" ")
        blob = decoded(coded)
        need(dash == "\u2014" and name and len(blob) > 4, "the checkpoint has a malformed signature")
        for key in keys:
            if (name, blob[:4]) == (key[0], key[3]):
                time = b"cosignature/v1\ntime %d\n" % int.from_bytes(blob[4:12], "big") if key[1] == 4 else b""
                need(is_signed(key[2], time + message, blob[12 if time else 4 :]), f"{name} did not sign this")
                signers.append(key)
    need(sorted(signers) == sorted(keys), "a key that you gave did not sign this checkpoint once")
    origin, size, root = text.split("\n")
    need(keys[0][1] == 1 and origin == keys[0][0] and str(int(size)) == size, "the checkpoint is of another log")
    return whole(int(size), 1, TILE * TILE - 1), decoded(root)


# -- the log of statements (C2SP tlog-tiles) --


def read_log(folder, size, root):
    """Return the entries of the log and their hashes, which have the root of the checkpoint."""
    entries, hashes, above = [], [], []
    for start in range(0, size, TILE):
        width, place = min(TILE, size - start), 0
        name = f"{start // TILE:03d}" + (f".p/{width}" if width < TILE else "")
        bundle = (folder / "tile/entries" / name).read_bytes()
        while place < len(bundle):
            length = int.from_bytes(bundle[place : place + 2], "big")
            entries.append(bundle[place + 2 : place + 2 + length])
            place += 2 + length
        need(len(entries) == start + width and place == len(bundle), "a tile has other statements")
        hashes += map(leaf_hash, entries[start:])
        need((folder / "tile/0" / name).read_bytes() == b"".join(hashes[start:]), "a tile is not of this log")
        above += [tree_root(hashes[start:])] if width == TILE else []
    top = folder / f"tile/1/000.p/{len(above)}"
    need(not above or top.read_bytes() == b"".join(above), "a tile is not of this log")
    need(tree_root(hashes) == root, "the statements are not those of the checkpoint")
    return entries, hashes


# -- the estimate and the fakes --


def law_of(client):
    """Return the kind of a report, its size, and the probabilities that it names the true answer and another one."""
    if "steps" not in client:
        return None  # a questionnaire has a program for each question
    asked, steps, parts = client["input"], client["steps"], client["report"]["parts"]
    if asked["kind"] != "answer" or client["memo"] or client["tables"] or whole(asked["count"], 2) > 4096:
        return None
    texts = [str(step[1][1]) for step in steps if step[1][0] in ("bit", "bits")]
    drawn = [each for each in texts if re.fullmatch("0|[1-9][0-9]{0,19}", each)] or ["0"]
    count, a, b, p, q = (
        asked["count"],
        drawn[0],
        drawn[-1],
        Fraction(int(drawn[0]), ONE),
        Fraction(int(drawn[-1]), ONE),
    )
    bits = [["others", ["bits", a, count]], ["own", ["bit", b]], ["row", ["put", "others", "value", "own"]]]
    if steps == bits and parts == [["packed", "row", count]]:
        return "bits", -(-count // 8), q, p
    moved, kept = ["add", "others", ["ge", "others", "value"]], ["where", "kept", "value", "moved"]
    one = [["kept", ["bits", a, 1]], ["others", ["belows", count - 1, 1]], ["moved", moved], ["drawn", kept]]
    if steps == one and parts in ([["uint", "drawn", 1, 1]], [["uint", "drawn", 2, 1]]):
        return "answer", parts[0][2], p, (1 - p) / (count - 1)
    coins = [["if_yes", ["bit", a]], ["if_no", ["bit", b]], ["report", ["where", "value", "if_yes", "if_no"]]]
    return ("yes", 1, p, q) if steps == coins and parts == [["uint", "report", 1, 1]] and count == 2 else None


def support_of(kind, count, columns):
    """Return the number of reports that name each answer, from their columns of bytes."""
    if kind == "bits":
        named = [Counter(column) for column in columns]
        need(not any(byte >> ((count - 1) % 8 + 1) for byte in named[-1]), "a report has bits after the last answer")
        return [sum(n for byte, n in named[i // 8].items() if byte >> i % 8 & 1) for i in range(count)]
    named = Counter(zip(*columns, strict=True))
    found = {int.from_bytes(each, "little"): n for each, n in named.items()}
    need(all(answer < count for answer in found), "a report names an answer that does not exist")
    return [found.get(answer, 0) for answer in range(count)]


def estimate_of(client, data, width):
    """Return the estimate that follows from the reports: counts in thousandths, the first two answers, and the fakes."""
    if (law := law_of(client)) is None:
        return None
    (kind, size, p, q), count, reports = law, client["input"]["count"], len(data) // (16 + width)
    need(size == width and 0 <= q < p <= 1, "the reports are not those of the definition")
    support = support_of(kind, count, [data[16 + place :: 16 + width] for place in range(width)])
    counts = [(each - reports * q) / (p - q) for each in support]
    if kind == "yes":  # a report of "no" names no answer
        counts[0] = reports - counts[1]
    first, second = sorted(range(count), key=lambda answer: (-support[answer], answer))[:2]
    fakes = -((support[second] - support[first]) // 2)
    return {"counts": [round(each * 1000) for each in counts], "fakes": fakes, "first": first, "second": second}


# -- the folder, and the part of one respondent --


def check_list(data, size, number, tag, root, name):
    """Return the records of a published list, which are in the order of their first 16 bytes and have a root."""
    records = [data[start : start + size] for start in range(0, len(data), size)]
    need(len(data) == number * size, f"another number of {name} than stated")
    need(all(a[:16] < b[:16] for a, b in pairwise(records)), f"two {name} are the same, or they are not in order")
    found = tree_root([leaf_hash(tag + each) for each in records])
    need(found.hex() == root, f"the {name} are not those of the statement")
    return set(records)


def check_folder(folder, keys, seen=None):
    """Check everything published; return the newest statement, the definition, the reports and the charges."""
    folder = Path(folder)
    size, root = read_checkpoint((folder / "checkpoint").read_bytes(), keys)
    entries, hashes = read_log(folder, size, root)
    if seen is not None:
        old, old_root = read_checkpoint(Path(seen).read_bytes(), keys[:1])
        need(old <= size, "ROLLED BACK: the log is shorter than the checkpoint that you saw")
        need(tree_root(hashes[:old]) == old_root, "TWO HISTORIES: the log is not the one that you saw")
    statement = read_json(entries[-1], "the statement")
    need(len(statement) == 16, "the statement has other keys")
    need((statement["format"], statement["version"]) == ("ldp-budget statement", 1), "not a statement of version 1")
    client = read_json((folder / "client.json").read_bytes(), "the definition")
    digest = sha256(canonical({key: each for key, each in client.items() if key != "digest"})).hexdigest()
    need(client["digest"] == digest == statement["client"], "the definition is not that of the statement")
    need(whole(statement["maximum"]) <= whole(statement["limit"], 1), "a total is above the limit")
    need(whole(statement["charges"], 1) == whole(statement["reports"]), "not as many reports as charges")
    data = (folder / "charges.bin").read_bytes()
    charges = check_list(data, 32, statement["charges"], b"C", statement["charges_root"], "charges")
    width, data = whole(statement["width"], 1), (folder / "reports.bin").read_bytes()
    if client.get("memo"):  # these reports are published as a number only
        need((statement["reports_root"], statement["estimate"], data) == (None, None, b""), "reports are published")
        return statement, client, None, charges
    records = check_list(data, 16 + width, statement["reports"], b"R", statement["reports_root"], "reports")
    need(statement["estimate"] == estimate_of(client, data, width), "the estimate does not follow from the reports")
    return statement, client, records, charges


def mark(kind, secret):
    return sha256(b"ldp-budget " + kind + secret).digest()[:16]


def check_receipt(published, receipts, proof):
    """Check one respondent's part. The receipts are hers, the first of this survey; the proof is the operator's."""
    statement, _, records, charges = published
    receipt, measure = receipts[0], statement["measure"]
    need(receipt["client"] == statement["client"], "your receipt is of another survey")
    secret, cost = decoded(receipt["secret"], 16), whole(receipt["costs"][measure])
    report = mark(b"report", secret) + bytes.fromhex(receipt["report"])
    need(records is None or report in records, "your report is not among the reports")
    account, salt = proof["account"], decoded(proof["charge"]["salt"], 16)
    need((len(proof), len(account), len(proof["charge"])) == (2, 4, 1), "the proof has other keys")
    charge = sha256(salt + mark(b"charge", secret) + cost.to_bytes(8, "big")).digest()
    need(charge in charges, "your charge is not among the charges")
    total, limit = whole(account["total"]), statement["limit"]
    steps = -(-STEPS * total // limit)
    need(total <= limit and -(-steps * limit // STEPS) <= statement["maximum"], "your total is above the maximum")
    hidden = sha256(decoded(account["salt"], 16) + total.to_bytes(8, "big")).digest()
    leaf, path = b"A" + bytes([steps]) + hidden, decoded(account["path"])
    found = root_from_path(leaf, account["index"], statement["accounts"], path)
    need(found.hex() == statement["accounts_root"], "your account is not among the accounts")
    need(len({each["secret"] for each in receipts}) == len(receipts), "a receipt is given twice")
    need(total >= sum(whole(each["costs"][measure]) for each in receipts), "the total is below your receipts")


def check(folder, keys, receipts=(), proof=None, seen=None):
    """Check a folder, and one respondent's part if she gives receipts and proof; return what is proved as lines."""
    keys = [read_key(key) for key in keys]
    published = statement, client, records, _ = check_folder(folder, keys, seen)
    need(bool(receipts) == bool(proof), "receipt and proof are checked together: one of them is missing")
    if receipts:
        mine = [json.loads(Path(path).read_bytes()) for path in receipts]
        check_receipt(published, mine, read_json(Path(proof).read_bytes(), "the proof"))
    yours, share = ": yours is one of them" if receipts else "", Fraction(statement["maximum"], statement["limit"])
    lines = [f"log       statement of {statement['time']}, signed by {', '.join(key[0] for key in keys)}"]
    lines += [f"charges   {statement['charges']}, as many as reports{yours}"]
    lines += [f"totals    at most {float(100 * share):.4g} % of the limit{yours}"]
    lines += [f"reports   {statement['reports']}{yours if records else ''}"]
    if (said := statement["estimate"]) is None:
        return [*lines, "estimate  not checked: memoized reports, or a program that this checker cannot work out"]
    names = client["answers"] or range(client["input"]["count"])
    shown = ", ".join(f"{name} {each / 1000:.1f}" for name, each in zip(names, said["counts"], strict=True))
    order = f"the order of {names[said['first']]} and {names[said['second']]}"
    lines += [f"estimate  follows from the reports: {shown}"]
    return [*lines, f"fakes     {said['fakes']} fake reports could turn {order}"]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument(
        "--key", action="append", required=True, help="the verifier key of the log, then of witnesses"
    )
    parser.add_argument("--receipt", action="append", default=[], help="your receipt, then your others for the total")
    parser.add_argument("--proof", help="the proof that the operator sent you")
    parser.add_argument("--seen", help="a checkpoint that you saved earlier")
    given = parser.parse_args(arguments)
    try:
        print("\n".join(check(given.folder, given.key, given.receipt, given.proof, given.seen)))
    except Exception as error:
        print("REFUSED:", error if isinstance(error, Refused) else f"a file is missing or malformed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
