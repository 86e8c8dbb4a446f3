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
import sys
from collections import Counter
from fractions import Fraction
from hashlib import sha256, sha512
from itertools import pairwise
from pathlib import Path

ONE = 2**64
STEPS = 16
TILE = 256
STATEMENT_KEYS = set(
    "format version time collection client accounts accounts_root charges charges_root reports reports_root width"
    " measure limit maximum estimate".split()
)


class Refused(Exception):  # noqa: N818
    """The published files do not prove their statement."""


MALFORMED = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)


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


def from_base64(text):
    data = base64.b64decode(text, validate=True)
    need(base64.b64encode(data).decode() == text, "base64 in another form")
    return data


def from_hex(text, size=None):
    data = bytes.fromhex(text)
    need(data.hex() == text and size in (None, len(data)), "hexadecimal digits in another form")
    return data


def whole(value, least=0, most=2**63 - 1):
    need(type(value) is int and least <= value <= most, "a number is out of range")
    return value


# -- Merkle trees (RFC 6962) --


def leaf_hash(leaf):
    return sha256(b"\0" + leaf).digest()


def tree_root(hashes):
    if not hashes:
        return sha256(b"").digest()
    while len(hashes) > 1:
        last = hashes[-1:] if len(hashes) % 2 else []
        hashes = [sha256(b"\1" + a + b).digest() for a, b in zip(hashes[::2], hashes[1::2], strict=False)] + last
    return hashes[0]


def root_from_path(leaf, index, size, path):
    """Root that an inclusion proof leads to (RFC 9162, section 2.1.3.2)."""
    need(whole(index) < whole(size) and len(path) % 32 == 0, "the proof is of another tree")
    place, last, found = index, size - 1, leaf_hash(leaf)
    for start in range(0, len(path), 32):
        need(last > 0, "the path of the proof is too long")
        other = path[start : start + 32]
        if place & 1 or place == last:
            found = sha256(b"\1" + other + found).digest()
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            found = sha256(b"\1" + found + other).digest()
        place, last = place >> 1, last >> 1
    need(last == 0, "the path of the proof is too short")
    return found


# -- Ed25519 (RFC 8032) and signed notes (C2SP signed-note, tlog-checkpoint, tlog-cosignature) --

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def point(data):
    y, sign = int.from_bytes(data, "little") & (2**255 - 1), data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    need(len(data) == 32 and y < P and (x * x - square) % P == 0 and (x or not sign), "not a point of Ed25519")
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def plus(a, b):
    e, f = (a[1] - a[0]) * (b[1] - b[0]), (a[1] + a[0]) * (b[1] + b[0])
    c, d = 2 * a[3] * b[3] * D, 2 * a[2] * b[2]
    e, f, g, h = f - e, d - c, d + c, f + e
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number, a):
    total = (0, 1, 1, 0)
    for bit in f"{number:b}":
        total = plus(total, total)
        total = plus(total, a) if bit == "1" else total
    return total


BASE = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def is_signed(public, message, signature):
    r, s = point(signature[:32]), int.from_bytes(signature[32:], "little")
    h = int.from_bytes(sha512(signature[:32] + public + message).digest(), "little") % ORDER
    left, right = times(s, BASE), plus(r, times(h, point(public)))
    same = all((left[i] * right[2] - right[i] * left[2]) % P == 0 for i in (0, 1))
    return s < ORDER and len(signature) == 64 and same


def read_key(vkey):
    """Return name, kind (1: log, 4: witness), public key and key ID of a verifier key."""
    name, key_id, data = vkey.split("+", 2)
    data = from_base64(data)
    right = sha256(f"{name}\n".encode() + data).digest()[:4]
    need(data[0] in (1, 4) and len(data) == 33 and right.hex() == key_id, f"not a verifier key: {vkey}")
    return name, data[0], data[1:], right


def read_checkpoint(data, keys):
    """Return size and root of a checkpoint that all given keys have signed. The first key is the log's."""
    text, gap, signatures = data.decode().partition("\n\n")
    lines, found = signatures.split("\n"), set()
    need(gap and lines.pop() == "" and len(set(lines)) == len(lines), "the checkpoint is not a signed note")
    for line in lines:
        dash, name, blob = line.split(" ")
        blob, message = from_base64(blob), f"{text}\n".encode()
        need(dash == "\u2014" and name and len(blob) > 4, "the checkpoint has a malformed signature")
        for key in keys:
            if (name, blob[:4]) == (key[0], key[3]):
                if key[1] == 4:
                    message = b"cosignature/v1\ntime %d\n" % int.from_bytes(blob[4:12], "big") + message
                need(key not in found, f"{name} signed the checkpoint twice")
                need(
                    is_signed(key[2], message, blob[12 if key[1] == 4 else 4 :]),
                    f"{name} did not sign this checkpoint",
                )
                found.add(key)
    for key in keys:
        need(key in found, f"the checkpoint has no signature of {key[0]}")
    origin, size, root = text.split("\n")
    need(keys[0][1] == 1 and origin == keys[0][0] and str(int(size)) == size, "the checkpoint is of another log")
    return whole(int(size), 1), from_base64(root)


# -- the log of statements (C2SP tlog-tiles) --


def tile_paths(kind, size):
    for start in range(0, size, TILE):
        width = min(TILE, size - start)
        yield width, f"tile/{kind}/{start // TILE:03d}" + (f".p/{width}" if width < TILE else "")


def read_log(folder, size, root):
    """Return the entries of the log and their hashes, which have the root of the checkpoint."""
    need(size < 1000 * TILE, "the log is too long for this checker")
    entries, hashes = [], []
    for width, path in tile_paths("entries", size):
        bundle, some = (folder / path).read_bytes(), []
        while bundle:
            end = 2 + int.from_bytes(bundle[:2], "big")
            need(2 <= end <= len(bundle), "a statement is cut off")
            some, bundle = [*some, bundle[2:end]], bundle[end:]
        need(len(some) == width, "a tile has another number of statements")
        entries += some
    for (_, path), start in zip(tile_paths("0", size), range(0, size, TILE), strict=True):
        hashes += (some := [leaf_hash(entry) for entry in entries[start : start + TILE]])
        need((folder / path).read_bytes() == b"".join(some), "a tile is not of this log")
    need(tree_root(hashes) == root, "the statements are not those of the checkpoint")
    return entries, hashes


# -- the estimate and the fakes --


def law_of(client):
    """Return the kind of a report, its size, and the probabilities that it names the true answer and another one."""
    count, steps, parts = client["input"].get("count"), client["steps"], client["report"]["parts"]
    if client["input"]["kind"] != "answer" or client["memo"] or client["tables"] or not 2 <= whole(count) <= 4096:
        return None
    texts = [step[1][1] for step in steps if step[1][0] in ("bit", "bits")]
    if not texts or not all(type(each) is str and str(int(each)) == each for each in texts):
        return None
    a, b = texts[0], texts[-1]
    first, last = Fraction(int(a), ONE), Fraction(int(b), ONE)
    row = [["others", ["bits", a, count]], ["own", ["bit", b]], ["row", ["put", "others", "value", "own"]]]
    if steps == row and parts == [["packed", "row", count]]:
        return "bits", -(-count // 8), last, first
    moved, kept = ["add", "others", ["ge", "others", "value"]], ["where", "kept", "value", "moved"]
    one = [["kept", ["bits", a, 1]], ["others", ["belows", count - 1, 1]], ["moved", moved], ["drawn", kept]]
    if steps == one and parts in ([["uint", "drawn", 1, 1]], [["uint", "drawn", 2, 1]]):
        return "answer", parts[0][2], first, (1 - first) / (count - 1)
    coin = [["if_yes", ["bit", a]], ["if_no", ["bit", b]], ["report", ["where", "value", "if_yes", "if_no"]]]
    if steps == coin and parts == [["uint", "report", 1, 1]] and count == 2:
        return "yes", 1, first, last
    return None


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


def check_reports(folder, statement, client):
    """Check the published reports and the estimate; return the records, or None if only their number is published."""
    if statement["reports_root"] is None:
        need(bool(client["memo"]) and statement["estimate"] is None, "the reports are missing")
        return None
    need(not client["memo"], "memoized reports may be published as a number only")
    width, data = whole(statement["width"], 1), (folder / "reports.bin").read_bytes()
    records = [data[start : start + 16 + width] for start in range(0, len(data), 16 + width)]
    need(len(records) == statement["reports"], "another number of reports than stated")
    need(all(a[:16] < b[:16] for a, b in pairwise(records)), "two reports share a mark")
    found = tree_root([leaf_hash(b"R" + record) for record in records])
    need(found.hex() == statement["reports_root"], "the reports are not those of the statement")
    said = estimate_of(client, data, width)
    need(statement["estimate"] == said, "the estimate does not follow from the reports")
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
    need(statement.keys() == STATEMENT_KEYS, "the statement has other keys")
    need(
        (statement["format"], statement["version"]) == ("ldp-budget statement", 1), "not a statement of this version"
    )
    client = read_json((folder / "client.json").read_bytes(), "the definition")
    digest = sha256(canonical({key: each for key, each in client.items() if key != "digest"})).hexdigest()
    need(client["digest"] == digest == statement["client"], "the definition is not that of the statement")
    need(whole(statement["maximum"]) <= whole(statement["limit"], 1), "a total is above the limit")
    need(whole(statement["charges"]) == whole(statement["reports"]), "not as many reports as charges")
    data = (folder / "charges.bin").read_bytes()
    charges = [data[start : start + 32] for start in range(0, len(data), 32)]
    need(len(charges) == statement["charges"] and len(data) % 32 == 0, "another number of charges than stated")
    need(all(a < b for a, b in pairwise(charges)), "the charges are not in order")
    found = tree_root([leaf_hash(b"C" + charge) for charge in charges])
    need(found.hex() == statement["charges_root"], "the charges are not those of the statement")
    return statement, client, check_reports(folder, statement, client), set(charges)


def mark(kind, secret):
    return sha256(b"ldp-budget " + kind + secret).digest()[:16]


def check_receipt(published, receipts, proof):
    """Check one respondent's part. The receipts are hers, the first of this survey; the proof is the operator's."""
    statement, _, records, charges = published
    receipt, measure = receipts[0], statement["measure"]
    need(receipt["client"] == statement["client"], "your receipt is of another survey")
    secret, cost = from_hex(receipt["secret"], 16), whole(receipt["costs"][measure])
    report = mark(b"report", secret) + from_hex(receipt["report"])
    need(records is None or report in records, "your report is not among the reports")
    need(proof.keys() == {"account", "charge"} and proof["charge"].keys() == {"salt"}, "the proof has other keys")
    account, salt = proof["account"], from_hex(proof["charge"]["salt"], 16)
    need(account.keys() == {"index", "path", "salt", "total"}, "the proof has other keys")
    charge = sha256(salt + mark(b"charge", secret) + cost.to_bytes(8, "big")).digest()
    need(charge in charges, "your charge is not among the charges")
    total, limit = whole(account["total"]), statement["limit"]
    steps = -(-STEPS * total // limit)
    need(total <= limit and -(-steps * limit // STEPS) <= statement["maximum"], "your total is above the maximum")
    hidden = sha256(from_hex(account["salt"], 16) + total.to_bytes(8, "big")).digest()
    path = from_base64(account["path"])
    found = root_from_path(b"A" + bytes([steps]) + hidden, account["index"], statement["accounts"], path)
    need(found.hex() == statement["accounts_root"], "your account is not among the accounts")
    need(len({each["secret"] for each in receipts}) == len(receipts), "a receipt is given twice")
    need(total >= sum(whole(each["costs"][measure]) for each in receipts), "the total is below your receipts")


def check(folder, keys, receipts=(), proof=None, seen=None):
    """Check a folder, and one respondent's part if she gives receipts and proof; return what is proved as lines."""
    keys = [read_key(key) for key in keys]
    published = statement, client, records, _ = check_folder(folder, keys, seen)
    yours = bool(receipts)
    if yours:
        need(proof is not None, "the proof is missing: ask the operator for it")
        receipts = [json.loads(Path(path).read_bytes()) for path in receipts]
        check_receipt(published, receipts, read_json(Path(proof).read_bytes().rstrip(b"\n"), "the proof"))
    names = client["answers"] or [str(answer) for answer in range(client["input"].get("count", 0))]
    share = Fraction(100 * statement["maximum"], statement["limit"])
    lines = [f"log       statement of {statement['time']}, signed by {', '.join(key[0] for key in keys)}"]
    lines += [f"charges   {statement['charges']}, as many as reports{': yours is one of them' if yours else ''}"]
    lines += [f"totals    at most {float(share):.4g} % of the limit{': yours, too' if yours else ' (stated)'}"]
    lines += [f"reports   {statement['reports']}{': yours is one of them' if yours and records is not None else ''}"]
    if statement["estimate"] is None:
        return [*lines, "estimate  not published in a form that this checker can work out"]
    said = statement["estimate"]
    shown = ", ".join(f"{name} {each / 1000:.1f}" for name, each in zip(names, said["counts"], strict=True))
    first, second = names[said["first"]], names[said["second"]]
    turn = f"fakes     {said['fakes']} fake reports could turn the order of {first} and {second}"
    return [*lines, f"estimate  follows from the reports: {shown}", turn]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--key", action="append", required=True, help="verifier key: of the log, then of witnesses")
    parser.add_argument(
        "--receipt", action="append", default=[], help="your receipt; more of them count for the total"
    )
    parser.add_argument("--proof", help="the proof that the operator sent you")
    parser.add_argument("--seen", help="a checkpoint that you saved earlier")
    given = parser.parse_args(arguments)
    try:
        lines = check(given.folder, given.key, given.receipt, given.proof, given.seen)
    except (Refused, *MALFORMED) as error:
        print("REFUSED:", error if isinstance(error, Refused) else f"a file is missing or malformed ({error!r})")
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
