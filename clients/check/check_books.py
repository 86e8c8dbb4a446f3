#!/usr/bin/env python3
"""Check a survey that proves itself: check_books.py FOLDER --key VKEY [--receipt FILE --proof FILE] [--seen CHECKPOINT]

It needs the standard library alone, uses no network, and decides on whole numbers. docs/reference/formats/publication.md
specifies every file. It proves, or refuses:

- The log signed one history of statements. All statements of this survey in it agree, and this folder is the newest one.
- There are as many charges as reports, and no published total is above the limit.
- The estimate follows from the published reports, with the probabilities of the client program.
- With your receipt and proof: your charge and your report are among them, your total covers your receipts, your cost is
  at least the loss of the program, and the limit is the one that your receipt promised.
"""

import argparse
import base64
import datetime
import io
import json
import re
import sys
import unicodedata
from collections import Counter, namedtuple
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256, sha512
from itertools import pairwise
from math import ceil, isqrt
from pathlib import Path

ONE, STEPS, TILE, MOST, DEEPEST = 2**64, 16, 256, 2**53 - 1, 64
SMALL, LARGE, CLOCKS = 2**16, 2**22, 300  # most bytes of a short file and of a definition; seconds between two clocks
MEASURES = {"epsilon": ("ε", 9), "rho": ("ρ (zCDP)", 12), "mu_squared": ("μ² (Gaussian DP)", 12)}
HEX32, HEX64, HEX128 = "[0-9a-f]{32}", "[0-9a-f]{64}", "[0-9a-f]{128}"
STATEMENT = [
    "format", "version", "time", "collection", "client", "accounts", "accounts_root", "charges", "charges_root",
    "reports", "reports_root", "width", "measure", "limit", "maximum", "receipt_keys", "estimate",
]  # fmt: skip
DEFINITION = [
    "format", "version", "name", "title", "question", "purpose", "contact", "languages", "answers", "mechanism",
    "fingerprint", "context", "input", "steps", "tables", "memo", "report", "guarantee", "digest",
]  # fmt: skip
QUESTIONNAIRE = [
    "format", "version", "client", "name", "title", "organisation", "contact", "purpose", "languages", "mechanism",
    "fingerprint", "context", "ask", "selection", "report", "rounds", "questions", "guarantee", "digest",
]  # fmt: skip
Found = namedtuple("Found", "statement client lines unchecked")


class Refused(Exception):  # noqa: N818
    """The published files do not prove their statement."""


def need(condition, why):
    if not condition:
        raise Refused(why)


# -- strict reading: each value has one form, its kind and its range, and every object exactly its keys --

TOKEN = re.compile(
    r"""[ \t\n\r]*([\[\]{},:]|"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"|true|false|null|"""
    r"""-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)[ \t\n\r]*"""
)
WORDS = {"true": True, "false": False, "null": None}
OTHER = object()  # a number that is equal to nothing


def parsed(data, name, loose=False):
    """The value of JSON without repeated keys, other keys than ASCII, half characters and deep nesting.

    Other numbers than whole ones of at most 53 bits are refused, or read as `OTHER` if `loose`.
    """
    text, place, held = data.decode(), 0, ""

    def step():
        nonlocal place, held
        if place == len(text):
            held = ""
        else:
            found = TOKEN.match(text, place)
            need(found, f"{name} is not JSON")
            place, held = found.end(), found[1]

    def taken(token):
        need(held == token, f"{name} is not JSON")
        step()

    def scalar():
        token = held
        step()
        if token[:1] == '"':
            value = json.loads(token)
            need(not re.search("[\ud800-\udfff]", value), f"{name} has half a character")
            return value
        if token in WORDS:
            return WORDS[token]
        need(token[:1] == "-" or token[:1].isdigit(), f"{name} is not JSON")
        short = re.fullmatch("0|-?[1-9][0-9]{0,15}", token)
        good = short and abs(int(token)) <= MOST
        need(good or loose, f"{name} has a number that is not a whole one, or too large")
        return int(token) if good else OTHER

    def value(depth):
        need(depth <= DEEPEST, f"{name} is nested too deeply")
        if held == "[":
            step()
            row = []
            while held != "]":
                row.append(value(depth + 1))
                if held != "]":
                    taken(",")
                    need(held != "]", f"{name} is not JSON")
            step()
            return row
        if held != "{":
            return scalar()
        step()
        made = {}
        while held != "}":
            need(held[:1] == '"', f"{name} is not JSON")
            key = scalar()
            need(key.isascii() and key not in made, f"{name} has a key twice, or a key that is not ASCII")
            taken(":")
            made[key] = value(depth + 1)
            if held != "}":
                taken(",")
                need(held != "}", f"{name} is not JSON")
        step()
        return made

    step()
    found = value(0)
    need(held == "" and place == len(text), f"{name} is not JSON")
    return found


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def read_json(data, name):
    """The value of canonical JSON, which is encoded again and compared."""
    value = parsed(data, name)
    need(canonical(value) == data, f"{name} is not canonical JSON")
    return value


def members(value, keys, name):
    need(isinstance(value, dict) and sorted(value) == sorted(keys), f"{name} has other keys")
    return value


def text_like(value, pattern):
    need(isinstance(value, str) and re.fullmatch(pattern, value), "a text has another form")
    return value


def decoded(text, size=None):
    """Bytes in hexadecimal digits of a known size, or in base64."""
    need(isinstance(text, str), "a text has another form")
    data = base64.b64decode(text, validate=True) if size is None else bytes.fromhex(text)
    form = base64.b64encode(data).decode() if size is None else data.hex()
    need(form == text and size in (None, len(data)), "bytes in another form")
    return data


def whole(value, least=0, most=MOST):
    need(type(value) is int and least <= value <= most, "a number is out of range")
    return value


def seconds(time):
    """Seconds since 1970 of a time in UTC."""
    text_like(time, "[12][0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z")
    return int(datetime.datetime.fromisoformat(time).timestamp())


def file_bytes(path, most, name):
    """The bytes of a regular file of at most `most` bytes."""
    need(path.is_file(), f"the file {name} is missing")
    need(path.stat().st_size <= most, f"the file {name} is too large")
    return path.read_bytes()


# -- showing: text from a file is one piece of a line, and cannot look like anything else --


def plain(text, most=100):
    """Text without characters that break, hide or reorder a line; a long text is cut."""
    cut = text if len(text) <= most else f"{text[:most]}\u2026"
    said = "".join(x if x.isprintable() else f"\\u{{{ord(x):x}}}" for x in cut)
    turned = any(unicodedata.bidirectional(x) in ("R", "AL", "AN") for x in said)
    return f"\u2068{said}\u2069" if turned else said


def quoted(text):
    return '"' + plain(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def amount(units, measure):
    """An amount as a figure: all its digits, and the measure."""
    name, digits = MEASURES[measure]
    high, low = divmod(units, 10**digits)
    return f"{name} = {high}" + f".{low:0{digits}d}".rstrip("0").rstrip(".")


# -- Merkle trees (RFC 6962) --


def leaf_hash(leaf):
    return sha256(b"\0" + leaf).digest()


def roots_at(hashes, sizes):
    """The roots of the trees of the first leaves, for each of these sizes."""
    found, above = {}, []
    for number, node in enumerate(hashes, 1):
        rest = number
        while rest % 2 == 0:  # a full tree has a sibling on its left
            node, rest = sha256(b"\1" + above.pop() + node).digest(), rest // 2
        above.append(node)
        if number in sizes:
            for left in reversed(above[:-1]):
                node = sha256(b"\1" + left + node).digest()
            found[number] = node
    return found


def tree_root(hashes):
    return roots_at(hashes, {len(hashes)})[len(hashes)]


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


WEAK = {0, 1, P - 1} | {
    y for x in (0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,) for y in (x, P - x)
}  # of the points of a small order, which fit signatures of any message


def point(data):
    y, sign = int.from_bytes(data, "little") & (2**255 - 1), data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x * pow(2, (P - 1) // 4, P) % P if (x * x - square) % P else x
    need(
        len(data) == 32 and y < P and y not in WEAK and (x * x - square) % P == 0 and (x or not sign),
        "not a point of Ed25519",
    )
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
    need(len(signature) == 64, "a signature has another length")
    r, s = point(signature[:32]), int.from_bytes(signature[32:], "little")
    h = int.from_bytes(sha512(signature[:32] + public + message).digest(), "little") % ORDER
    left, right = times(s, BASE), plus(r, times(h, point(public)))
    return s < ORDER and not any((left[i] * right[2] - right[i] * left[2]) % P for i in (0, 1))


def read_key(vkey):
    """Return name, kind (1: log, 4: witness), public key and key ID of a verifier key."""
    name, key_id, text = [*vkey.split("+", 2), "", ""][:3]
    need(re.fullmatch("[!-*,-~]{1,200}", name), "a verifier key has no name of printable ASCII")
    data = decoded(text)
    right = sha256(f"{name}\n".encode() + data).digest()[:4]
    need(data[:1] in (b"\1", b"\4") and len(data) == 33 and right.hex() == key_id, f"not a verifier key: {vkey}")
    return name, data[0], data[1:], right


def read_keys(vkeys):
    """The log's key, then those of witnesses, all different."""
    keys = [read_key(each) for each in vkeys]
    need(
        [key[1] for key in keys] == [1] + [4] * (len(keys) - 1),
        "the first key must be the log's, the others witnesses'",
    )
    need(len({key[2] for key in keys}) == len(keys), "two of the keys are the same")
    return keys


def read_checkpoint(data, keys):
    """Return size and root of a checkpoint that all given keys have signed, and the witnesses with their times."""
    text, _, signatures = data.decode().partition("\n\n")
    (*lines, end), signers, times_of, message = signatures.split("\n"), [], [], f"{text}\n".encode()
    need(end == "" and len(set(lines)) == len(lines), "the checkpoint is not a signed note")
    for line in lines:
        dash, name, coded = [*line.split(" "), "", "", ""][:3]
        need(line.count(" ") == 2 and dash == "\u2014" and name, "the checkpoint has a malformed signature")
        blob = decoded(coded)
        need(len(blob) > 4, "the checkpoint has a malformed signature")
        for key in keys:
            if (name, blob[:4]) == (key[0], key[3]):
                when = int.from_bytes(blob[4:12], "big") if key[1] == 4 else None
                time = b"cosignature/v1\ntime %d\n" % when if key[1] == 4 else b""
                need(
                    is_signed(key[2], time + message, blob[12 if time else 4 :]), "a key did not sign this checkpoint"
                )
                signers.append(key)
                times_of += [(name, whole(when, 0, 2**36))] if time else []
    need(sorted(signers) == sorted(keys), "a key that you gave did not sign this checkpoint once")
    origin, size, root = [*text.split("\n"), "", "", ""][:3]
    need(text.count("\n") == 2 and origin == keys[0][0], "the checkpoint is of another log")
    need(re.fullmatch("[1-9][0-9]{0,4}", size), "the checkpoint has no size that this checker reads")
    need(len(decoded(root)) == 32, "bytes in another form")
    return whole(int(size), 1, TILE * TILE - 1), decoded(root), times_of


# -- the log of statements (C2SP tlog-tiles) --


def read_log(folder, size, root):
    """Return the entries of the log and their hashes, which have the root of the checkpoint."""
    entries, hashes, above = [], [], []
    for start in range(0, size, TILE):
        width, place = min(TILE, size - start), 0
        name = f"{start // TILE:03d}" + (f".p/{width}" if width < TILE else "")
        bundle = file_bytes(folder / "tile/entries" / name, TILE * (SMALL + 2), f"tile/entries/{name}")
        while place < len(bundle):
            length = int.from_bytes(bundle[place : place + 2], "big")
            entries.append(bundle[place + 2 : place + 2 + length])
            place += 2 + length
        need(len(entries) == start + width and place == len(bundle), "a tile has other statements")
        hashes += map(leaf_hash, entries[start:])
        tile = file_bytes(folder / "tile/0" / name, TILE * 32, f"tile/0/{name}")
        need(tile == b"".join(hashes[start:]), "a tile is not of this log")
        above += [tree_root(hashes[start:])] if width == TILE else []
    name = f"tile/1/000.p/{len(above)}"
    need(not above or file_bytes(folder / name, TILE * 32, name) == b"".join(above), "a tile is not of this log")
    need(tree_root(hashes) == root, "the statements are not those of the checkpoint")
    return entries, hashes


def read_statement(data):
    """The statement in an entry of the log. Every entry must be one, so none can hide in another form."""
    made = members(read_json(data, "a statement"), STATEMENT, "a statement")
    need(made["format"] == "ldp-budget statement" and whole(made["version"]) == 1, "not a statement of version 1")
    need(isinstance(made["measure"], str) and made["measure"] in MEASURES, "a statement counts in an unknown measure")
    seconds(made["time"])
    text_like(made["collection"], "(?s).{1,1000}")
    for name in ("client", "accounts_root", "charges_root"):
        text_like(made[name], HEX64)
    need(made["reports_root"] is None or text_like(made["reports_root"], HEX64), "a text has another form")
    need(isinstance(made["receipt_keys"], list) and 0 < len(made["receipt_keys"]) <= 64, "a list has another length")
    for key in made["receipt_keys"]:
        text_like(key, HEX64)
    whole(made["accounts"], 1), whole(made["width"], 1, SMALL), whole(made["limit"], 1)
    need(whole(made["maximum"]) <= made["limit"], "a total is above the limit")
    rounded = {-(-steps * made["limit"] // STEPS) for steps in range(STEPS + 1)}
    need(made["maximum"] in rounded, "the maximum is not a number of sixteenths of the limit")
    need(whole(made["charges"], 1) == whole(made["reports"]), "not as many reports as charges")
    if (said := made["estimate"]) is not None:
        members(said, ["counts", "fakes", "first", "second"], "an estimate")
        need(isinstance(said["counts"], list) and 2 <= len(said["counts"]) <= 4096, "a list has another length")
        for count in said["counts"]:
            whole(count, -MOST)
        for each in ("fakes", "first", "second"):
            whole(said[each])
    return made


def check_history(statements, witnesses):
    """Return the statements of this survey, none of which contradicts another, with the newest one last."""
    newest, times_of = statements[-1], [seconds(each["time"]) for each in statements]
    need(times_of == sorted(times_of), "CONTRADICTION: a statement of the log is dated before an earlier one")
    need(
        all(times_of[-1] <= when + CLOCKS for _, when in witnesses),
        "CONTRADICTION: the statement is dated after a witness signed it",
    )
    mine = [
        each
        for each in statements
        if newest["collection"] == each["collection"] or newest["client"] == each["client"]
    ]
    for old, new in pairwise(mine):
        number = statements.index(old) + 1
        for name in ("collection", "client", "measure", "limit", "width"):
            why = f"{name} is {plain(str(old[name]))} in statement {number}, and {plain(str(new[name]))} later"
            need(old[name] == new[name], f"CONTRADICTION: two statements of this survey differ: {why}")
        for name in ("accounts", "charges", "reports", "maximum"):
            why = f"{name} falls from {old[name]} in statement {number} to {new[name]}"
            need(old[name] <= new[name], f"CONTRADICTION: two statements of this survey differ: {why}")
        same = new["receipt_keys"][: len(old["receipt_keys"])] == old["receipt_keys"]
        need(same, f"CONTRADICTION: two statements of this survey differ: receipt_keys of statement {number}")
    return mine


# -- the program: its probabilities, its estimate, and its loss --

Law = namedtuple("Law", "kind count width p q")
NUMBER = '"?(0|[1-9][0-9]{0,19})"?'  # as text if it has more than 53 bits
SHAPES = {
    "bits": rf'\[\["others",\["bits",{NUMBER},([0-9]+)\]\],\["own",\["bit",{NUMBER}\]\],'
    rf'\["row",\["put","others","value","own"\]\]\]\[\["packed","row",([0-9]+)\]\]',
    "answer": rf'\[\["kept",\["bits",{NUMBER},1\]\],\["others",\["belows",([0-9]+),1\]\],\["moved",\["add","others",\["ge",'
    rf'"others","value"\]\]\],\["drawn",\["where","kept","value","moved"\]\]\]\[\["uint","drawn",([12]),1\]\]',
    "yes": rf'\[\["if_yes",\["bit",{NUMBER}\]\],\["if_no",\["bit",{NUMBER}\]\],'
    rf'\["report",\["where","value","if_yes","if_no"\]\]\]\[\["uint","report",1,1\]\]',
}


def read_definition(data, statement):
    """The definition that belongs to a statement."""
    client = parsed(data, "the definition")
    need(canonical(client) == data and isinstance(client, dict), "the definition is not canonical JSON")
    digest = sha256(canonical({key: each for key, each in client.items() if key != "digest"})).hexdigest()
    need(client.get("digest") == digest == statement["client"], "the definition is not that of the statement")
    need(client.get("name") == statement["collection"], "the definition is of another collection")
    need(isinstance(client.get("guarantee"), dict), "the definition has no guarantee")
    if client.get("format") == "ldp-budget questionnaire":
        return members(client, QUESTIONNAIRE, "the definition")
    members(client, DEFINITION, "the definition")
    need(client["format"] == "ldp-budget client" and whole(client["version"]) == 1, "not a definition of version 1")
    need(isinstance(client["memo"], str), "a text has another form")
    answers = client["answers"]
    if answers is not None:
        good = isinstance(answers, list) and all(isinstance(x, str) for x in answers)
        need(good and len(set(answers)) == len(answers), "two answers have one name")
    return client


def law_of(client):
    """Return the law of a program: the kind and size of a report, how likely it names the true and another answer."""
    if client["format"] != "ldp-budget client" or client["memo"] != "" or client["tables"] != {}:
        return None
    asked, report = client["input"], client["report"]
    if not isinstance(asked, dict) or asked.get("kind") != "answer" or not isinstance(report, dict):
        return None
    count, text = asked.get("count"), (canonical(client["steps"]) + canonical(report.get("parts"))).decode()
    if type(count) is not int or not 2 <= count <= 4096:
        return None
    for kind, shape in SHAPES.items():
        if found := re.fullmatch(shape, text):
            a, *given = map(int, found.groups())
            p, q = Fraction(a, ONE), Fraction(given[1 if kind == "bits" else 0], ONE)
            if kind == "bits" and given[0] == given[2] == count:
                return Law(kind, count, -(-count // 8), q, p)
            if kind == "answer" and given[0] == count - 1:
                return Law(kind, count, given[1], p, (1 - p) / (count - 1))
            return Law(kind, count, 1, p, q) if kind == "yes" and count == 2 else None
    return None


def support_of(law, data):
    """Return the number of reports that name each answer, from records of a mark and a report."""
    size, columns = 16 + law.width, []
    columns = [data[16 + place :: size] for place in range(law.width)]
    if law.kind == "bits":
        named = [Counter(column) for column in columns]
        extra = any(byte >> ((law.count - 1) % 8 + 1) for byte in named[-1])
        need(not extra, "a report has bits after the last answer")
        return [sum(n for byte, n in named[i // 8].items() if byte >> i % 8 & 1) for i in range(law.count)]
    named = Counter(zip(*columns, strict=True))
    found = {int.from_bytes(each, "little"): n for each, n in named.items()}
    need(all(answer < law.count for answer in found), "a report names an answer that does not exist")
    return [found.get(answer, 0) for answer in range(law.count)]


def estimate_from(law, support, reports):
    """The estimate: counts in thousandths, the first two answers, and the fakes. None if a count is too large."""
    counts = [(each - reports * law.q) / (law.p - law.q) for each in support]
    if law.kind == "yes":  # a report of "no" names no answer
        counts[0] = reports - counts[1]
    first, second = sorted(range(law.count), key=lambda answer: (-support[answer], answer))[:2]
    counts, fakes = [round(each * 1000) for each in counts], -((support[second] - support[first]) // 2)
    fits = all(abs(each) <= MOST for each in counts)
    return {"counts": counts, "fakes": fakes, "first": first, "second": second} if fits else None


def estimates_of(client, data, width, sizes):
    """The estimates that follow from the first reports, for each of these numbers of them."""
    if (law := law_of(client)) is None:
        return dict.fromkeys(sizes)
    need(width == law.width and 0 <= law.q < law.p <= 1, "the reports are not those of the definition")
    found, done, support, size = {}, 0, [0] * law.count, 16 + width
    for number in sorted(sizes):
        more = support_of(law, data[done * size : number * size]) if number > done else support
        support = [a + b for a, b in zip(support, more, strict=True)] if number > done else support
        found[number], done = estimate_from(law, support, number), number
    return found


def estimate_of(client, data, width):
    """The estimate that follows from all reports; None without one."""
    number = len(data) // (16 + width)
    return estimates_of(client, data, width, {number})[number]


# Fixed-point numbers of units 2^-256. Logarithms are rounded up; all others are wrong by less than 2^-180.
BITS, UNIT = 256, 1 << 256
ROOT_TWO_PI = 25066282746310005024157652848110452530069867406099 * UNIT // 10**49


def logarithm(x):
    """ln x for x >= 1: n ln 2 + 2 artanh(y), where y = (x/2^n - 1)/(x/2^n + 1)."""

    def part(power):  # 2 (y + y^3/3 + y^5/5 + ...) for y <= 1/3
        total, square, k = power, (power * power >> BITS) + 1, 1
        while power > 1:
            power, k = (power * square >> BITS) + 1, k + 2
            total += power // k + 1
        return 2 * total + 2

    n = x.bit_length() - BITS - 1
    return n * part(UNIT // 3 + 1) + part((x - (UNIT << n) << BITS) // (x + (UNIT << n)) + 1)


def quantile(x):
    """Where the normal distribution function is x >= 1/2, by Newton's method from below, up to 15."""
    z = step = 0
    while z < 15 * UNIT:
        square, power, term, grown, series, k = z * z >> BITS, UNIT, z, 0, 0, 0
        while power or term:  # e^(z^2/2) and z + z^3/3 + z^5/15 + ...
            grown, series, k = grown + power, series + term, k + 1
            power, term = (power * square >> BITS + 1) // k, (term * square >> BITS) // (2 * k + 1)
        step = ((x - UNIT // 2) * ROOT_TWO_PI >> BITS) * grown // UNIT - series
        if step < 1 << 100:
            return z
        z += step
    return z


def signed_quantile(x):
    return quantile(x) if 2 * x >= UNIT else -quantile(UNIT - x)


@lru_cache(maxsize=256)
def least_losses(law):
    """Lower bounds of the loss of a program, in units of the three measures: rho and mu may be a little larger.

    None if an answer can be excluded. Rho bounds the divergence of each order; these are the quarters from 1 to 17.
    """
    p, q, one = law.p, law.q, Fraction(1)
    if law.kind == "bits":  # the bits of the two answers; all others are alike
        pairs = [[(p * (1 - q), q * (1 - p)), (q * (1 - p), p * (1 - q)), (one, one)]]
    elif law.kind == "answer":
        pairs = [[(p, q), (q, p), (one, one)]]
    else:
        pairs = [[(p, q), (1 - p, 1 - q)], [(q, p), (1 - q, 1 - p)]]
    epsilon = rho = mu = 0
    for pair in pairs:
        rest = one - sum(p for p, _ in pair[:2])  # where both are alike
        pair = [(p, q) for p, q in pair[:2] if p or q]
        if not all(p and q for p, q in pair):
            return None
        ratios = [-(-(p.numerator * q.denominator << BITS) // (p.denominator * q.numerator)) for p, q in pair]
        masses = [(p.numerator << BITS) // p.denominator for p, _ in pair]
        logs = [logarithm(r) if r >= UNIT else -logarithm(UNIT * UNIT // r) for r in ratios]
        epsilon = max(epsilon, *logs)
        rho = max(rho, sum(mass * each >> BITS for mass, each in zip(masses, logs, strict=True)))
        powers, alike = masses, (rest.numerator << BITS) // rest.denominator
        roots = [isqrt(isqrt(ratio << BITS) << BITS) for ratio in ratios]
        for quarters in range(1, 65):  # of the order, above 1
            powers = [power * root >> BITS for power, root in zip(powers, roots, strict=True)]
            rho = max(rho, 16 * logarithm(max(UNIT, sum(powers) + alike)) // (quarters * (quarters + 4)))
        test = [
            ((p.numerator << BITS) // p.denominator, (q.numerator << BITS) // q.denominator) for p, q in pair if p > q
        ]
        for hit, alarm in test:
            mu = max(mu, signed_quantile(hit) - signed_quantile(alarm))
    scaled = [(epsilon, 9), (rho, 12), (mu * mu >> BITS, 12)]
    return dict(zip(MEASURES, (-(-each * 10**digits >> BITS) for each, digits in scaled), strict=True)), epsilon


FIGURE = r"[0-9]{1,20}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?"


def figure(value):
    """The number in a text of a definition; None for another text."""
    return Fraction(value) if isinstance(value, str) and re.fullmatch(FIGURE, value) else None


def check_program(client):
    """Return the least costs of a report in each measure that can be bounded, and what the program was proved to keep."""
    epsilon, delta = (figure(client["guarantee"].get(each)) for each in ("epsilon", "delta"))
    if (law := law_of(client)) is None:
        fresh = client.get("memo", "") == "" and client["guarantee"].get("kind") != "memoised"
        stated = fresh and epsilon is not None and 0 < epsilon <= 10**6
        return {"epsilon": ceil(epsilon * 10**9) - 1} if stated else {}, None
    need(law.width and 0 <= law.q < law.p <= 1, "the reports are not those of the definition")
    found = least_losses(law)
    need(found, "the program reveals an answer for certain")
    if epsilon is None or delta != 0:
        return found[0], None
    need(found[1] <= epsilon * UNIT, "the program does not keep its epsilon")
    return found[0], client["guarantee"]["epsilon"]


# -- the folder, and the part of one respondent --


def check_list(data, size, sizes, tag, name, unique):
    """Return the records of a list, in parts that are in order each, and the roots of the tree after each part."""
    need(len(data) == sizes[-1] * size, f"another number of {name} than stated")
    records = [data[start : start + size] for start in range(0, len(data), size)]
    for start, end in pairwise([0, *sizes]):
        good = all(a[:unique] < b[:unique] for a, b in pairwise(records[start:end]))
        need(good, f"two {name} are the same, or they are not in order")
    need(
        len({each[:unique] for each in records}) == len(records), f"two {name} are the same, or they are not in order"
    )
    return records, roots_at([leaf_hash(tag + each) for each in records], set(sizes))


def check_folder(folder, keys, seen=None):
    """Check everything published; return what the folder and its log prove, by name."""
    folder = Path(folder)
    size, root, witnesses = read_checkpoint(file_bytes(folder / "checkpoint", SMALL, "checkpoint"), keys)
    entries, hashes = read_log(folder, size, root)
    if seen is not None:
        old, old_root, _ = read_checkpoint(file_bytes(Path(seen), SMALL, "checkpoint"), keys[:1])
        need(old <= size, "ROLLED BACK: the log is shorter than the checkpoint that you saw")
        need(tree_root(hashes[:old]) == old_root, "TWO HISTORIES: the log is not the one that you saw")
    statements = [read_statement(each) for each in entries]
    mine, statement = check_history(statements, witnesses), statements[-1]
    client = read_definition(file_bytes(folder / "client.json", LARGE, "client.json"), statement)
    least, kept = check_program(client)
    number, cost = statement["charges"], least.get(statement["measure"])
    room = not cost or statement["accounts"] * (statement["maximum"] // cost) >= number
    need(room, "so few accounts cannot hold so many charges below the maximum")
    data = file_bytes(folder / "charges.bin", 32 * number, "charges.bin")
    charges, roots = check_list(data, 32, [number], b"C", "charges", 32)
    need(roots[number].hex() == statement["charges_root"], "the charges are not those of the statement")
    width, sizes, records = statement["width"], [each["reports"] for each in mine], None
    data = file_bytes(folder / "reports.bin", (16 + width) * number, "reports.bin")
    if client.get("memo"):  # these reports are published as a number only
        hidden = all(each["reports_root"] is None and each["estimate"] is None for each in mine) and data == b""
        need(hidden, "reports are published")
    else:
        records, roots = check_list(data, 16 + width, sizes, b"R", "reports", 16)
        estimates = estimates_of(client, data, width, set(sizes))
        for each in mine:
            matching = roots[each["reports"]].hex() == each["reports_root"]
            need(matching or each is statement, "CONTRADICTION: an earlier statement has other reports")
            need(matching, "the reports are not those of the statement")
            need(each["estimate"] == estimates[each["reports"]], "the estimate does not follow from the reports")
    found = {"statement": statement, "statements": len(statements), "mine": len(mine), "witnesses": witnesses}
    return found | {"client": client, "records": records, "charges": set(charges), "least": least, "kept": kept}


def mark(kind, secret):
    return sha256(b"ldp-budget " + kind + secret).digest()[:16]


def read_receipt(data, statement):
    """A receipt, whose promise one of the ledger's keys has signed. It may have more members than are needed."""
    made = parsed(data, "a receipt", loose=True)
    need(isinstance(made, dict) and made.get("format") == "ldp-budget receipt", "not a receipt of version 1")
    need(whole(made.get("version")) == 1, "not a receipt of version 1")
    for name, form in (("secret", HEX32), ("client", HEX64), ("report", "([0-9a-f]{2})+")):
        text_like(made.get(name), form)
    need(isinstance(made.get("collection"), str), "a text has another form")
    costs, promise = members(made.get("costs"), [*MEASURES, "delta"], "the costs"), made.get("promise")
    for cost in costs.values():
        need(cost is None or whole(cost) == cost, "a number is out of range")
    need(isinstance(promise, dict), "a receipt does not say which limit was promised")
    members(promise, ["measure", "limit", "key", "signature"], "a promise")
    need(promise["key"] in statement["receipt_keys"], "a receipt was signed by another ledger")
    signature, key = bytes.fromhex(text_like(promise["signature"], HEX128)), bytes.fromhex(promise["key"])
    said = {each: made[each] for each in ("client", "collection")} | {
        each: promise[each] for each in ("limit", "measure")
    }
    need(is_signed(key, b"ldp-budget promise\n" + canonical(said), signature), "the ledger did not sign this promise")
    return made


def check_receipt(published, receipts, proof):
    """Check one respondent's part. The receipts are hers, the first of this survey; the proof is the operator's."""
    statement, receipt, least = published["statement"], receipts[0], published["least"]
    measure, limit = statement["measure"], statement["limit"]
    need(receipt["client"] == statement["client"], "your receipt is of another survey")
    need(receipt["collection"] == statement["collection"], "your receipt is of another survey")
    promise = receipt["promise"]
    known = isinstance(promise["measure"], str) and promise["measure"] in MEASURES
    said = amount(whole(promise["limit"]), promise["measure"]) if known else "another measure"
    same = (promise["measure"], promise["limit"]) == (measure, limit)
    why = f"{amount(limit, measure)}, promised {said}"
    need(same, f"the limit is not the one that your receipt promised: {why}")
    for name, cost in least.items():
        paid = receipt["costs"][name]
        need(paid is None or paid >= cost, f"your cost is below what the program loses: {amount(cost, name)}")
    secret, cost = bytes.fromhex(receipt["secret"]), whole(receipt["costs"][measure])
    report = bytes.fromhex(receipt["report"])
    need(len(report) == statement["width"], "your report is not among the reports")
    records = published["records"]
    need(records is None or mark(b"report", secret) + report in set(records), "your report is not among the reports")
    account, charge = members(proof, ["account", "charge"], "the proof")["account"], proof["charge"]
    members(account, ["index", "path", "salt", "total"], "the proof"), members(charge, ["salt"], "the proof")
    mine = sha256(decoded(charge["salt"], 16) + mark(b"charge", secret) + cost.to_bytes(8, "big")).digest()
    need(mine in published["charges"], "your charge is not among the charges")
    total = whole(account["total"])
    steps = -(-STEPS * total // limit)
    need(total <= limit and -(-steps * limit // STEPS) <= statement["maximum"], "your total is above the maximum")
    hidden = sha256(decoded(account["salt"], 16) + total.to_bytes(8, "big")).digest()
    leaf, path = b"A" + bytes([steps]) + hidden, decoded(account["path"])
    found = root_from_path(leaf, account["index"], statement["accounts"], path)
    need(found.hex() == statement["accounts_root"], "your account is not among the accounts")
    need(len({each["secret"] for each in receipts}) == len(receipts), "a receipt is given twice")
    need(total >= sum(whole(each["costs"][measure]) for each in receipts), "the total is below your receipts")
    return cost, total


def examine(folder, keys, receipts=(), proof=None, seen=None):
    """Check a folder, and one respondent's part if she gives receipts and proof; return what is proved, and what is not."""
    keys = read_keys(keys)
    published = check_folder(folder, keys, seen)
    statement, client, measure = published["statement"], published["client"], published["statement"]["measure"]
    need(bool(receipts) == (proof is not None), "receipt and proof are checked together: one of them is missing")
    cost = total = None
    if receipts:
        mine = [read_receipt(file_bytes(Path(path), LARGE, "of a receipt"), statement) for path in receipts]
        cost, total = check_receipt(
            published, mine, read_json(file_bytes(Path(proof), SMALL, "of the proof"), "the proof")
        )
    yours = ": yours is one of them" if receipts else ""
    limit, most = amount(statement["limit"], measure), amount(statement["maximum"], measure)
    share, unchecked = 100 * Fraction(statement["maximum"], statement["limit"]), []
    lines = [f"log       statement of {statement['time']}, signed by {keys[0][0]}"]
    for name, when in published["witnesses"]:
        time = datetime.datetime.fromtimestamp(when, datetime.UTC)
        lines += [f"witness   {name} signed it at {time:%Y-%m-%dT%H:%M:%SZ}"]
    lines += [
        f"history   {published['mine']} of {published['statements']} statements in the log are of this survey, and agree"
    ]
    lines += [
        f"limit     {limit} for a lifetime, as {'your receipt promised' if receipts else 'the operator states'}"
    ]
    lines += [
        f"charges   {statement['charges']}, as many as reports{yours}{f', {amount(cost, measure)}' if receipts else ''}"
    ]
    lines += [
        f"totals    {statement['accounts']} accounts, each at most {most}, {float(share):.4g} % of the limit{yours}"
    ]
    lines += [f"total     yours is {amount(total, measure)}, at least what your receipts say"] if receipts else []
    lines += [f"reports   {statement['reports']}{yours if published['records'] else ''}"]
    lines += estimate_lines(statement, client, published["records"])
    if published["kept"] is None:
        unchecked += ["program"]
    else:
        lines += [program_line(published["kept"])]
    if receipts and measure not in published["least"]:
        lines += ["cost      not checked: this checker cannot bound the loss of the program in this measure"]
        unchecked += ["cost"]
    return Found(statement, client, lines, unchecked)


def program_line(epsilon):
    return f"program   a report is at most e^{plain(epsilon)} times as likely as with another answer"


def estimate_lines(statement, client, records):
    if (said := statement["estimate"]) is None:
        why = "is published, as these reports are memoized" if records is None else "of this program is published"
        return [f"estimate  none {why}"]
    names = [quoted(name) for name in client["answers"] or map(str, range(client["input"]["count"]))]
    need(len(names) == len(said["counts"]), "the definition has another number of answers than its program")
    shown = ", ".join(f"{name} {decimals(each)}" for name, each in zip(names, said["counts"], strict=True))
    order = f"the order of {names[said['first']]} and {names[said['second']]}"
    return [
        f"estimate  follows from the reports: {shown}",
        f"fakes     {said['fakes']} fake reports could turn {order}",
    ]


def decimals(thousandths):
    """A count of thousandths with one digit after the point, rounded to the nearest, half away from zero."""
    tenths = (abs(thousandths) + 50) // 100
    return f"{'-' if thousandths < 0 and tenths else ''}{tenths // 10}.{tenths % 10}"


def not_given(keys, receipts, seen):
    """The parts that a reader can give and did not."""
    parts = [
        ("a receipt and its proof", receipts),
        ("a witness's key", len(keys) > 1),
        ("an earlier checkpoint", seen),
    ]
    return [name for name, given in parts if not given]


def check(folder, keys, receipts=(), proof=None, seen=None):
    """As `examine`; return what is proved as lines."""
    return examine(folder, keys, receipts, proof, seen).lines


def refusal(error):
    """A line that says why nothing is proved."""
    known = isinstance(error, Refused)
    return f"REFUSED: {plain(str(error), 400) if known else 'a file is missing or malformed: ' + plain(repr(error), 300)}"


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
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        found = examine(given.folder, given.key, given.receipt, given.proof, given.seen)
    except Exception as error:
        print(refusal(error))
        return 1
    print("\n".join(found.lines))
    if "program" in found.unchecked:
        print("program   not checked here: run check_law.py on client.json")
    if missing := not_given(given.key, given.receipt, given.seen):
        print(f"not given {', '.join(missing)}: nothing is proved about it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
