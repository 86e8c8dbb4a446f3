#!/usr/bin/env python3
"""Check the law of a client program:   python check_law.py definition.json

A public definition (`ldp-budget collection show NAME --client`) holds the program that draws a report, and a guarantee.
This program proves from the definition alone that every report is at most e^epsilon times as likely with one answer as
with another, and that every answer has a report. It counts all outcomes of all draws in exact fractions. It needs the
standard library of Python and nothing else: no network, no floating-point number. docs/reference/law-check.md describes it.

The proof
1. The definition has the form that docs/reference/client-programs.md specifies: keys, names, kinds, numbers of arguments.
2. Every step runs for every answer, also a step that the report does not need. A number that is computed from draws is a
   table over their outcomes. If one outcome fails, nothing is proved: a missing report would reveal the answer.
3. Numbers of a report that share no draw, for no answer, are independent. So each group of numbers is counted by itself:
   64 bits have 2*64 outcomes to count, and not 2^64.
4. If the answer is used once, by a public hash below m, then m virtual answers stand for all answers. The public draws
   of that step are then counted as if they were part of the report.
5. If the answer is used once, by a `bit_at` whose threshold is linear in the answer, then the probability of each report
   is linear in the answer, and its extremes are at the first and the last answer.

A program that cannot be counted is not proved: the result then begins with CANNOT and names the reason. A program that
repeats memoized draws is proved for one report alone. What no checker of a definition can see: that a device runs this
program, and that its random numbers are random.
"""

import json
import re
import sys
from collections import Counter, namedtuple
from decimal import MAX_EMAX, MIN_EMIN, ROUND_DOWN, Context, Decimal, Overflow
from fractions import Fraction
from hashlib import sha256
from itertools import chain, combinations, permutations, product
from math import comb, prod
from operator import itemgetter
from pathlib import Path
from unicodedata import normalize

# CANNOT is raised where a program is beyond this checker.
ALL, HUGE, MOST_ANSWERS, MOST_OUTCOMES, CANNOT = 2**64, 2**4096, 2**12, 2**16, NotImplementedError
INFINITE = 2**1024 - 2**970  # what is nearer to no double
MOST_WORK = 2**23  # numbers in the tables of all steps for all answers
MOST_PLACES = 2**12  # numbers of a report, and steps of a program


def need(condition, reason, error=ValueError):
    if not condition:
        raise error(reason)


# -- the form of a definition -----------------------------------------------------------------------------------------

# Each operator: the kinds of its arguments, and of its result. `each` is a number, or a vector place by place.
DRAWING = """bit:chance:number bits:chance,size:vector bit_at:odds:number bits_each:chances:vector below:bound:number
    belows:bound,size:vector belows_from:bound,size:vector subset:bound,size:vector shuffle:vector:vector
    geometric:odds:number laplace:places:number normal:places:number kept_bits:text,word,chance,size:vector
    kept_belows:text,word,bound,size:vector kept_top:text,word,top:number"""
COMPUTING = """polynomial:text,function,number,bound:number bloom:text,number,number,filter,hashes:vector
    add:each,each:each sub:each,each:each mul:each,each:each div:each,divisor:each mod:each,divisor:each
    shr:each,shift:each shl:each,shift:each and:natural,natural:each xor:natural,natural:each min:each,each:each
    max:each,each:each lt:each,each:each ge:each,each:each eq:each,each:each where:choice,each,each:each
    parity:natural:each list:...:vector at:vector,number:number put:vector,number,number:vector sort:vector:vector
    first:flags:number rank:vector,number:number onehot:number,size:vector join:flags:number floyd:vector,number:vector"""
FORMS = {
    name: (takes.split(","), gives) for name, takes, gives in (x.split(":") for x in f"{DRAWING} {COMPUTING}".split())
}
DRAWN = {x.split(":")[0] for x in DRAWING.split()}
RANGES = {"chance": (0, ALL), "chances": (0, ALL), "odds": (0, ALL - 1), "bound": (1, 2**63), "size": (0, 2**23),
          "places": (0, 40), "word": (-(2**63), 2**63 - 1), "top": (0, 64), "function": (0, ALL - 1), "filter": (1, 2**23),
          "hashes": (0, 2**16), "divisor": (1, HUGE - 1), "shift": (0, 2**16), "natural": (0, HUGE - 1), "choice": (0, 1),
          "flags": (0, 1)}  # fmt: skip
VECTORS, EACH = {"vector", "chances", "flags"}, {"each", "divisor", "shift", "natural", "choice"}
TEXTS = ["contact", "context", "digest", "fingerprint", "mechanism", "memo", "name", "purpose", "question", "title"]
KEYS = {*TEXTS, *["answers", "format", "guarantee", "input", "languages", "report", "steps", "tables", "version"]}
NAME, WHOLE, PLAIN = r"[a-z][a-z0-9_]*", r"0|-?[1-9][0-9]{0,1233}", r"[ -~]{0,200}"
TAG = r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*"
HIDDEN = "[\0-\x1f\x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u2066-\u2069\u3000\ufeff]"
ENDS = r"[\s\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"  # without a sign
DECIMAL = r"[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?"


def matches(pattern, x):
    return isinstance(x, str) and re.fullmatch(pattern, x) is not None


def draws_at(step):
    return isinstance(step, list) and step[0] in DRAWN


def is_literal(x):
    return type(x) is int or matches(WHOLE, x)


def literal(x, least=1 - HUGE, most=HUGE - 1):
    """A whole number as a program writes it."""
    need(is_literal(x), "neither a number nor an earlier name")
    need(least <= int(x) <= most, "a number out of range")
    return int(x)


def counted(x, least=0, most=2**23):
    """A whole number that must be written as a number."""
    need(type(x) is int and least <= x <= most, "a number out of range")
    return x


def double(x):
    need(matches(f"-?{DECIMAL}", x) and abs(Fraction(x)) < INFINITE, "no double")
    return Fraction(x)


def kind_of(expression, known, top=False, depth=100):
    """`number`, `vector` or `rows`: the kind of an expression, which must have the specified form."""
    if isinstance(expression, str) and expression in known:
        return known[expression]
    if not isinstance(expression, list):
        literal(expression)
        return "number"
    need(depth and expression and isinstance(expression[0], str) and expression[0] in FORMS, "no such operator")
    need(top or not draws_at(expression), "a draw within an expression")
    (name, *given), (takes, gives) = expression, FORMS[expression[0]]
    takes = ["number"] * len(given) if name == "list" else takes
    need(len(given) == len(takes), f"{name} of {len(given)} arguments")
    if takes[:1] == ["text"]:
        need(matches(PLAIN, given[0]), "a label or a seed that is no plain text")
        given, takes = given[1:], takes[1:]
    kinds = [kind_of(each, known, depth=depth - 1) for each in given]
    if name == "at" and kinds == ["rows", "number"]:
        return "vector"
    for kind, wanted in zip(kinds, takes, strict=True):
        fits = kind in ("number", "vector") if wanted in EACH else (kind == "vector") == (wanted in VECTORS)
        need(fits and kind != "rows", f"{name} of another kind of arguments")
    return gives if gives != "each" else "vector" if "vector" in kinds else "number"


def count_of(given, names, most):
    """How many answers there are: every one has a number, and every name is that of an answer, or of an option to tick."""
    by = "times" if "times" in given else "step"
    keys = {"answer": {"count", "text"}, "word": {"length"}, "number": {"lower", "upper", "last", by}}[given["kind"]]
    need(given.keys() == {"kind", *keys}, "other keys than those of an input")
    need(given["kind"] == "answer" or names is most is None, "names of what are no choices")
    need(names is None or isinstance(names, list), "names that are no list")
    if given["kind"] == "answer":
        need(type(given["text"]) is bool, "a text that is neither true nor false")
        size = len(names or [])
        need(most is None or counted(most, 1, 200 if names is None else size), "too many ticks")
        counts = [size] if most is None else [2**size, sum(comb(size, i) for i in range(most + 1))]
        good = names is None or (len(set(names)) == size and literal(given["count"]) in counts)
        need(good, "other answers than the program has")
        return literal(given["count"], 1)
    if given["kind"] == "word":
        return 256 ** counted(given["length"], 1, 512)
    lower, upper, scale = double(given["lower"]), double(given["upper"]), double(given[by])
    need(lower <= upper and scale > 0, "no range of numbers")
    widest = (upper - lower) * (scale if by == "times" else 1 / scale)
    need(scale > Fraction(1, 2**1075) and widest < INFINITE, "numbers that no double holds")
    return counted(given["last"], 0, 2**53 - 1) + 1


def check_totals(digits, count, floor, table):
    """Refuse a table whose totals are too large. They are added up only where the weights may grow."""
    rounded = Context(digits, ROUND_DOWN, MIN_EMIN, MAX_EMAX, traps=[Overflow])
    weight, ratio, total = Decimal(table["first"]), Decimal(table["ratio"]), 0
    for _ in range(count if ratio > 1 or max(weight, floor) >= 10**1000 else 0):
        total, weight = total + max(floor, int(min(weight, HUGE))), rounded.multiply(weight, ratio)
        need(total < HUGE, "a table of numbers that are too large")


def kind_of_table(table):
    if isinstance(table, dict):
        need(table.keys() == {"first", "ratio", "digits", "floor", "count"}, "other keys than those of a table")
        need(matches(DECIMAL, table["first"]) and matches(DECIMAL, table["ratio"]), "no decimals")
        check_totals(counted(table["digits"], 1, 1000), counted(table["count"]), literal(table["floor"], 0), table)
        return "vector"
    need(isinstance(table, list), "no table")
    rows = [row for row in table if isinstance(row, list)]
    need(len(rows) in (0, len(table)) and len({len(row) for row in rows}) <= 1, "rows of two lengths")
    _ = [literal(x) for x in (chain(*rows) if rows else table)]
    return "rows" if rows else "vector"


def check_part(part, steps):
    need(
        isinstance(part, list) and len(part) == {"uint": 4, "packed": 3, "float64": 5}[part[0]], "no part of a report"
    )
    (kind, name, *sizes) = part
    need(matches(NAME, name) and steps.get(name) in ("number", "vector"), "a part that is no step")
    if kind == "float64":
        need(steps[name] == "number", "a vector as a double")
        _ = double(sizes[0]), double(sizes[1]), literal(sizes[2])
    else:
        _ = counted(sizes[-1]), kind == "packed" or counted(sizes[0], 1, 8)


def check_form(program):
    """Refuse every form that the specification does not define; return the number of answers."""
    need(
        isinstance(program, dict) and program.keys() - {"labels", "at_most"} == KEYS,
        "other keys than those of a definition",
    )
    need("labels" not in program or (program["labels"] is True and program["memo"]), "labels of no memo")
    need("at_most" not in program or program["at_most"] is not None, "too many ticks")
    need(program["format"] == "ldp-budget client" and counted(program["version"]) == 1, "another format or version")
    need(all(isinstance(program[name], str) for name in TEXTS) and isinstance(program["languages"], dict), "no text")
    for tag, words in program["languages"].items():
        need(matches(TAG, tag), "a language without a tag")
        need(words.keys() <= {"title", "question", "purpose", "answers"}, "a translation of what is not shown")
        said = words.get("answers", program["answers"] or [])
        need(isinstance(said, list) and len(said) == len(program["answers"] or []), "other answers")
        need(all(isinstance(x, str) for x in [*said, *(words[k] for k in words.keys() - {"answers"})]), "no text")
    need(not re.search(HIDDEN, program["name"] + program["mechanism"]), "a name that no line can show")
    need(all(isinstance(name, str) for name in program["answers"] or []), "an answer that is no text")
    plain = {re.sub(f"^{ENDS}+|{ENDS}+$", "", normalize("NFC", name)) for name in program["answers"] or []}
    need(len(plain - {""}) == len(program["answers"] or []), "an answer without a sign, or two that are one")
    guarantee, report, steps = program["guarantee"], program["report"], program["steps"]
    figures = {"epsilon", "delta", *(["answer_epsilon", "lifetime_epsilon"] if program["memo"] else [])}
    figures |= {"eta"} if guarantee.get("kind") == "one-sided" else set()
    need(
        {"epsilon", "delta"} <= guarantee.keys() <= {*figures, "kind", "relation", "words"},
        "figures that are not defined",
    )
    need(
        all(guarantee[key] is None or matches(DECIMAL, guarantee[key]) for key in figures & guarantee.keys()),
        "no decimal",
    )
    need(all(isinstance(guarantee[key], str) for key in guarantee.keys() - figures), "words that are no text")
    need(
        report.keys() == {"dtype", "shape", "parts"} and isinstance(report["dtype"], str),
        "other keys than those of a report",
    )
    need(isinstance(report["shape"], list) and isinstance(report["parts"], list) and report["parts"], "no report")
    need(isinstance(steps, list) and all(isinstance(step, list) and len(step) == 2 for step in steps), "no steps")
    names = ["value", *program["tables"], *(step[0] for step in steps)]
    need(all(matches(NAME, name) for name in names) and len(names) == len(set(names)), "no names of their own")
    known = {"value": "number", **{name: kind_of_table(table) for name, table in program["tables"].items()}}
    for name, expression in steps:
        known[name] = kind_of(expression, known, top=True)
    for part in report["parts"]:
        check_part(part, {name: known[name] for name, _ in steps})
    _ = [counted(size) for size in report["shape"]]
    labels = [step[1] for _, step in steps if draws_at(step) and step[0].startswith("kept_")]
    need(known.get(program["memo"]) == "number" if labels else program["memo"] == "", "a memo of nothing, or no memo")
    need(len(labels) == len(set(labels)), "a label twice", CANNOT)
    return count_of(program["input"], program["answers"], program.get("at_most"))


# -- numbers that are known, and numbers that are drawn ---------------------------------------------------------------


Drawn = namedtuple("Drawn", "needs table")  # the draws of a number, ascending, and the number for all their outcomes


def place(i, size):
    need(0 <= i < size, "a place outside a vector")
    return i


def floyd(vector, b):
    row = []
    for x in vector:
        row.append(b - 1 + len(row) if x in row else x)
    return row


def rank(vector, a):
    need(vector == sorted(vector), "a vector that does not ascend")
    return sum(x <= a for x in vector)


OPERATE = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a // b,
           "mod": lambda a, b: a % b, "shr": lambda a, b: a >> b, "shl": lambda a, b: a << b, "and": lambda a, b: a & b,
           "xor": lambda a, b: a ^ b, "min": min, "max": max, "lt": lambda a, b: int(a < b), "ge": lambda a, b: int(a >= b),
           "eq": lambda a, b: int(a == b), "where": lambda c, a, b: a if c else b, "parity": lambda a: a.bit_count() % 2,
           "list": lambda *a: list(a), "at": lambda v, i: v[place(i, len(v))], "sort": sorted, "rank": rank, "floyd": floyd,
           "put": lambda v, i, a: [*v[: place(i, len(v))], a, *v[i + 1 :]], "first": lambda v: v.index(1) if 1 in v else 0,
           "onehot": lambda i, n: [int(j == place(i, n)) for j in range(n)] or place(i, n),
           "join": lambda bits: sum(bit << j for j, bit in enumerate(bits))}  # fmt: skip


def values(x):
    """All numbers that something known or drawn can be."""
    if isinstance(x, list):
        return chain.from_iterable(map(values, x))
    return x.table.values() if isinstance(x, Drawn) else [x]


def ranged(name, given):
    """The arguments of an operator, all of which are in its ranges, whatever is drawn."""
    for x, wanted in zip(given, [wanted for wanted in FORMS[name][0] if wanted != "text"], strict=False):
        least, most = RANGES.get(wanted, (-HUGE, HUGE))
        need(all(least <= each <= most for each in values(x)), f"{name} of what it is not defined for")
    return given


def needs_of(x):
    if isinstance(x, Drawn):
        return set(x.needs)
    return set().union(*map(needs_of, x)) if isinstance(x, list) else set()


def reader(x, needs):
    """The function that reads a number, or a vector, for an outcome of these draws."""
    if isinstance(x, list):
        each = [reader(y, needs) for y in x]
        return lambda world: [read(world) for read in each]
    if not isinstance(x, Drawn):
        return lambda world: x
    table, own = x.table, itemgetter(*map(needs.index, x.needs))
    return table.__getitem__ if x.needs == needs else lambda world: table[own(world)]


def bit(t):
    return {x: weight for x, weight in ((0, ALL - t), (1, t)) if weight}


def below(b, words=None):
    """A uniform number below b, or a word of 64 bits modulo b."""
    need(b <= MOST_OUTCOMES, "a draw of too many outcomes", CANNOT)
    return {r: (words - 1 - r) // b + 1 if words else 1 for r in range(b)}


def subset(m, n):
    need(n <= m and (2 * n <= m or m <= 2**23), "no subset")
    rows = 1
    for i in range(min(n, m - n)):
        rows = rows * (m - i) // (i + 1)
        need(rows <= MOST_OUTCOMES, "a draw of too many outcomes", CANNOT)
    return dict.fromkeys(combinations(range(m), n), 1)


def shuffled(vector):
    need(len(vector) <= 7, "a draw of too many outcomes", CANNOT)
    return dict(Counter(permutations(vector)))


# The outcomes of each draw with their weights. Kept words are as random for one number as for another.
DRAWS = {"bit": lambda t: [bit(t)], "bit_at": lambda t: [bit(t)], "bits": lambda t, n: [bit(t)] * n,
         "bits_each": lambda v: list(map(bit, v)), "below": lambda b: [below(b)], "belows": lambda b, n: [below(b)] * n,
         "belows_from": lambda b, n: [below(b + j) for j in range(n)], "subset": lambda m, n: [subset(m, n)],
         "shuffle": lambda v: [shuffled(v)],
         "kept_bits": lambda v, t, n: [bit(t)] * n,
         "kept_belows": lambda v, b, n: [below(b + j, ALL) for j in range(n)]}  # fmt: skip


class Run:
    """A program with one answer, or virtual answer: what all names are, and the outcomes of all draws."""

    def __init__(self, known, room):
        self.known, self.draws, self.room = known, {}, room

    def spend(self, numbers):
        self.room[0] -= numbers
        need(self.room[0] >= 0, "a program with too many outcomes", CANNOT)

    def joint(self, function, given):
        """The function of these arguments, for all outcomes of the draws that they need."""
        needs = tuple(sorted(needs_of(given)))
        outcomes = [self.draws[each] for each in needs]
        self.spend(prod(map(len, outcomes)) * sum(len(x) if isinstance(x, list) else 1 for x in [0, *given]))
        reads = [reader(x, needs) for x in given]
        worlds = outcomes[0] if len(needs) == 1 else product(*outcomes)
        rows = {world: function(*[read(world) for read in reads]) for world in worlds}
        sizes = {len(row) if isinstance(row, list) else None for row in rows.values()}
        need(len(sizes) == 1, "a vector of a length that is drawn")
        if not needs:
            return rows[()]
        if sizes == {None}:
            return Drawn(needs, rows)
        return [Drawn(needs, {world: row[j] for world, row in rows.items()}) for j in range(max(sizes))]

    def apply(self, name, given):
        """The result of an operator that does not draw."""
        need(name in OPERATE, f"the operator {name}", CANNOT)
        sizes = {len(x) for x in given if isinstance(x, list)}
        if FORMS[name][1] == "each" and sizes:
            need(len(sizes) == 1 and ranged(name, given), "vectors of two lengths")
            return [self.apply(name, [x[j] if isinstance(x, list) else x for x in given]) for j in range(max(sizes))]
        if name == "list" or (name in ("at", "put") and not needs_of(given[1])):
            self.spend(len(given[0]) if name == "put" else 1)
            return OPERATE[name](*given)
        if name == "onehot":
            need(not needs_of(given[1]), "a vector of a length that is drawn", CANNOT)
            self.spend(given[1])
        found = self.joint(OPERATE[name], ranged(name, given))
        need(all(abs(x) < HUGE for x in values(found)), "a number that is too large")
        return found

    def value(self, expression):
        if not isinstance(expression, list):
            return self.known[expression] if expression in self.known else literal(expression)
        return self.apply(expression[0], [self.value(each) for each in expression[1:]])

    def draw(self, step, name, given):
        """What a step draws."""
        need(not needs_of(given), "a draw that depends on a draw", CANNOT)
        need(name in DRAWS, f"the draw {name}", CANNOT)
        size = given[-1] if name not in ("bits_each", "shuffle") else len(given[0])
        self.spend(size if FORMS[name][1] == "vector" else 1)
        found = DRAWS[name](*ranged(name, given))
        self.draws |= {(step, j): outcomes for j, outcomes in enumerate(found)}
        if name in ("subset", "shuffle"):
            return [Drawn(((step, 0),), {row: row[j] for row in found[0]}) for j in range(size)]
        row = [Drawn(((step, j),), {x: x for x in outcomes}) for j, outcomes in enumerate(found)]
        return row if FORMS[name][1] == "vector" else row[0]

    def step(self, number, name, expression):
        given = expression[1:] if isinstance(expression, list) else []
        if name in self.known:  # virtual answers stand for a public hash, which needs its function
            function = self.value(given[1])
            ranged("polynomial", [function])
        elif draws_at(expression):
            text = FORMS[expression[0]][0][0] == "text"
            self.known[name] = self.draw(number, expression[0], [self.value(each) for each in given[text:]])
        else:
            self.known[name] = self.value(expression)


# -- all answers ------------------------------------------------------------------------------------------------------


def names_in(expression):
    """All names in an expression, as often as they are used."""
    if not isinstance(expression, list):
        return [expression]
    return [name for each in expression[1 + (FORMS[expression[0]][0][0] == "text") :] for name in names_in(each)]


def reach(name, steps):
    """All names that a name is computed from, itself included."""
    found, todo = set(), [name]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += names_in(steps[name]) if name in steps else []
    return found


def cases(program, count):
    """The values that stand for all answers, and the public draws that are counted as if the report showed them."""
    steps, parts = dict(program["steps"]), [part[1] for part in program["report"]["parts"]]
    if [*parts, *(name for step in steps.values() for name in names_in(step))].count("value") == 1:
        for name, step in steps.items():
            match step:
                case ["polynomial", _, function, "value", size] if is_literal(size):
                    public = {x for each in names_in(function) for x in reach(each, steps) if draws_at(steps.get(x))}
                    return [{name: cell} for cell in range(min(literal(size, 1, 2**63), MOST_ANSWERS + 1))], sorted(
                        public
                    )
                case ["bit_at", ["add", a, ["mul", "value", b]]] if is_literal(a) and is_literal(b):
                    return [{"value": 0}, {"value": count - 1}], []
    return [{"value": answer} for answer in range(min(count, MOST_ANSWERS + 1))], []


def shown(program, public, run):
    """The numbers that a report shows, and the public draws. Each part must hold its numbers, whatever is drawn."""
    found = []
    for kind, name, *sizes in [*program["report"]["parts"], *(["public", name] for name in public)]:
        row = run.known[name] if isinstance(run.known[name], list) else [run.known[name]]
        need(kind in ("float64", "public") or len(row) == sizes[-1], "a part of another length")
        for each in row:
            if kind == "float64":
                origin, step, plus = double(sizes[0]), double(sizes[1]), literal(sizes[2])
                largest = max(abs(x + plus) for x in values(each))
                need(largest < 2**1023 and abs(origin) + abs(step) * largest < 2**1023, "no double")
            elif kind != "public":
                need(
                    all(0 <= x <= (1 if kind == "packed" else 256 ** sizes[0] - 1) for x in values(each)),
                    "a number too large",
                )
        found += row
    need(len(found) <= MOST_PLACES, "too many numbers in a report", CANNOT)
    return found


def runs_of(program, values, public):
    """The program with each of these values, and the numbers that its report shows."""
    steps, room, found = dict(program["steps"]), [MOST_WORK], []
    need(len(steps) <= MOST_PLACES, "too many steps", CANNOT)
    need(0 < len(values) <= MOST_ANSWERS, "too many answers", CANNOT)
    varying = {name for name in steps if reach(name, steps) & values[0].keys()}
    for value in values:
        run = Run({**{name: numbers(table) for name, table in program["tables"].items()}, **value}, room)
        for number, (name, expression) in enumerate(program["steps"]):
            if found and name not in varying:
                run.known[name] = found[0][0].known[name]
                run.draws |= {key: draw for key, draw in found[0][0].draws.items() if key[0] == number}
            else:
                run.step(number, name, expression)
        found.append((run, shown(program, public, run)))
        need(lengths(run) == lengths(found[0][0]), "vectors whose length depends on the answer")
    return found


def numbers(table):
    need(isinstance(table, list), "a table of falling weights", CANNOT)
    return [[literal(x) for x in row] if isinstance(row, list) else literal(row) for row in table]


def lengths(run):
    return {name: len(x) if isinstance(x, list) else None for name, x in run.known.items()}


def law_of(run, row):
    """How likely these numbers are together."""
    table = run.joint(lambda *numbers: numbers, row)
    if not isinstance(table, Drawn):
        return {table: Fraction(1)}
    draws, law = [run.draws[each] for each in table.needs], {}
    for world, numbers in table.table.items():
        weight = prod([draw[x] for draw, x in zip(draws, world, strict=True)]) if len(draws) > 1 else draws[0][world]
        law[numbers] = law.get(numbers, 0) + weight
    total = prod(sum(draw.values()) for draw in draws)
    return {numbers: Fraction(weight, total) for numbers, weight in law.items()}


def groups(runs):
    """The places of a report, those together that share a draw for some answer."""
    group = list(range(len(runs[0][1])))
    for _, row in runs:
        owner = {}
        for place, x in enumerate(row):
            for draw in needs_of(x):
                mine, other = group[place], group[owner.setdefault(draw, place)]
                group = group if mine == other else [other if each == mine else each for each in group]
    return [[place for place, each in enumerate(group) if each == first] for first in dict.fromkeys(group)]


def ratio(p, q):
    """The largest ratio of how likely a row is under two laws."""
    need(p.keys() == q.keys(), "a report that is impossible with another answer")
    return max(p[row] / q[row] for row in p)


def worst(program, values, public):
    """An upper bound of how many times as likely a report is for one of these values as for another."""
    runs = runs_of(program, values, public)
    dense, ups, downs = Fraction(1), [Fraction(1)] * len(runs), [Fraction(1)] * len(runs)
    for group in groups(runs):
        laws = [law_of(run, [row[place] for place in group]) for run, row in runs]
        usual = dict(Counter(frozenset(law.items()) for law in laws).most_common(1)[0][0])
        ups = [up * ratio(law, usual) for up, law in zip(ups, laws, strict=True)]
        downs = [down * ratio(usual, law) for down, law in zip(downs, laws, strict=True)]
        dense *= max(max(law[row] for law in laws) / min(law[row] for law in laws) for row in usual)
    return min(dense, max(ups) * max(downs))  # both are bounds: group by group, or by way of the usual law


def power_below(epsilon):
    """A lower bound of e^epsilon, or of e^100: the first terms of its series, rounded down to multiples of 2^-256."""
    one = 2**256
    x, term, total = int(min(epsilon, 100) * one), one, one
    for k in range(1, 512):
        term = term * x // (k * one)
        total += term
    return Fraction(total, one)


def refused(text):
    raise ValueError(f"{text:.40}, which is no whole number")


def read(data):
    """JSON without repeated keys, whose numbers are whole and below 2**53, and whose texts have a form in UTF-8."""

    def unique(pairs):
        need(len(dict(pairs)) == len(pairs), "a key twice")
        return dict(pairs)

    def whole(text):
        return int(text) if matches(r"0|-?[1-9][0-9]{0,15}", text) and abs(int(text)) < 2**53 else refused(text)

    found = json.loads(
        data.decode(), object_pairs_hook=unique, parse_int=whole, parse_float=refused, parse_constant=refused
    )
    json.dumps(found, ensure_ascii=False).encode()
    return found


def check(data):
    """The definition in these bytes and its largest ratio. Any exception means: not proved."""
    program = read(data)
    need(
        not isinstance(program, dict) or program.get("format") != "ldp-budget questionnaire",
        "a questionnaire",
        CANNOT,
    )
    count = check_form(program)
    text = json.dumps({k: x for k, x in program.items() if k != "digest"}, sort_keys=True, separators=(",", ":"))
    need(program["digest"] == sha256(text.encode()).hexdigest(), "the digest is not that of the definition")
    epsilon, delta = program["guarantee"]["epsilon"], program["guarantee"]["delta"]
    need(epsilon is not None and delta in ("0", "0.0"), "a definition with a delta, or without an epsilon", CANNOT)
    need(matches(r"[0-9]{1,6}(\.[0-9]{1,40})?(e-[0-9]{1,3})?", epsilon), "an epsilon that is not a number")
    found = worst(program, *cases(program, count))
    need(found <= power_below(Fraction(epsilon)), f"a report is more than e^{epsilon} times as likely")
    return program, found


if __name__ == "__main__":
    try:
        proved, _ = check(Path(sys.argv[1]).read_bytes())
    except Exception as error:
        sys.exit(f"{'CANNOT' if isinstance(error, CANNOT) else 'REFUSED'}: {error!a:.300}")
    what = f"{'one report' if proved['memo'] else 'every report'} of {proved['name']}"
    print(f"PROVED: {what} is at most e^{proved['guarantee']['epsilon']} times as likely as with another answer")
