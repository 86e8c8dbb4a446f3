#!/usr/bin/env python3
"""Check the law of a client program:   python check_law.py definition.json

A public definition (`ldp-budget collection show NAME --client`) holds the program that draws a report, and a guarantee.
This program proves from the definition alone that every report is at most e^epsilon times as likely with one answer as
with another. It counts all outcomes of all draws in exact fractions. It needs the standard library of Python and
nothing else: no network, no floating-point number. docs/reference/law-check.md describes it.

The proof
1. A draw is a list of outcomes with their probabilities. A number that is computed from draws is a function of them.
2. Numbers of a report that share no draw, for no answer, are independent. So each group of numbers is counted by itself:
   64 bits have 2*64 outcomes to count, and not 2^64.
3. If the answer matters only through one step, such as a public hash that is below m, then m virtual answers stand for
   all answers. The public draws of that step are then counted as if they were part of the report.
4. If the answer matters only through one `bit_at` whose threshold is linear in the answer, then the probability of each
   report is linear in the answer, and its extremes are at the first and the last answer.

A program that cannot be counted is not proved: the result then begins with CANNOT and names the reason. A program that
repeats memoized draws is proved for one report alone. What no checker of a definition can see: that a device runs this
program, and that its random numbers are random.
"""

import json
import re
import sys
from collections import namedtuple
from fractions import Fraction
from functools import reduce
from hashlib import sha256
from itertools import combinations
from math import ceil, comb
from pathlib import Path

# CANNOT is raised where a program is beyond this checker.
ALL, MOST_ANSWERS, MOST_OUTCOMES, MOST_ROWS, CANNOT = 2**64, 2**12, 2**16, 2**18, NotImplementedError


def need(condition, reason, error=ValueError):
    if not condition:
        raise error(reason)


# -- numbers that are known, and numbers that are drawn ---------------------------------------------------------------


Drawn = namedtuple("Drawn", "needs find")  # the indices of the draws, and a function of the world of their outcomes


def needs_of(x):
    return getattr(x, "needs", frozenset().union(*map(needs_of, x)) if isinstance(x, list) else frozenset())


def settled(x, world):
    return x.find(world) if isinstance(x, Drawn) else [settled(y, world) for y in x] if isinstance(x, list) else x


# Arguments that the specification does not define raise an error, so they prove nothing.
EACH = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a // b,
        "mod": lambda a, b: a % b // (b > 0), "shr": lambda a, b: a >> b, "shl": lambda a, b: a << range(2**16).index(b),
        "min": min, "max": max, "and": lambda a, b: (a & b) // (min(a, b) >= 0), "lt": lambda a, b: int(a < b),
        "xor": lambda a, b: (a ^ b) // (min(a, b) >= 0), "ge": lambda a, b: int(a >= b), "eq": lambda a, b: int(a == b),
        "where": lambda c, a, b: (b, a)[range(2).index(c)], "parity": lambda a: a.bit_count() % 2 // (a >= 0)}  # fmt: skip
WHOLE = {"list": lambda *a: list(a), "sort": sorted, "at": lambda v, i: v[range(len(v)).index(i)],
         "put": lambda v, i, a: [*v[:range(len(v)).index(i)], a, *v[i + 1:]],
         "rank": lambda v, a: sum(x <= a for x in v) // (v == sorted(v)), "first": lambda v: v.index(1) if 1 in v else 0,
         "onehot": lambda i, n: [int(j == range(n).index(i)) for j in range(n)],
         "join": lambda bits: sum(range(2).index(bit) << j for j, bit in enumerate(bits)),
         "floyd": lambda v, b: reduce(lambda row, x: [*row, b - 1 + len(row) if x in row else x], v, [])}  # fmt: skip


def apply(name, given):
    """The result of an operator that does not draw: a known number, a `Drawn`, or a list of them."""
    need(name in EACH or name in WHOLE, f"the operator {name!a}", CANNOT)
    sizes = {len(x) for x in given if isinstance(x, list)}
    if name in EACH and sizes:
        need(len(sizes) == 1, "vectors of different lengths")
        return [apply(name, [x[j] if isinstance(x, list) else x for x in given]) for j in range(max(sizes))]
    needs, function = needs_of(given), {**EACH, **WHOLE}[name]
    if not needs or name == "list" or (name in ("at", "put") and not needs_of(given[1])):
        return function(*given)
    if name == "where":  # only the branch that is taken needs its draws
        return Drawn(needs, lambda world: settled(given[2 - range(2).index(settled(given[0], world))], world))
    if name in ("put", "sort", "floyd"):
        return [Drawn(needs, lambda world, j=j: function(*settled(given, world))[j]) for j in range(len(given[0]))]
    return Drawn(needs, lambda world: function(*settled(given, world)))


def bit(t):
    need(0 <= t <= ALL, "a probability out of range")
    return [(0, Fraction(ALL - t, ALL)), (1, Fraction(t, ALL))]


def below(b, word=None):
    """A uniform number below b, or a word of 64 bits modulo b."""
    need(0 < b <= MOST_OUTCOMES, "a draw with too many outcomes", CANNOT)
    return [(r, Fraction((word - 1 - r) // b + 1, word) if word else Fraction(1, b)) for r in range(b)]


def subset(m, n):
    return [(row, p) for row, (_, p) in zip(combinations(range(m), n), below(comb(m, n)), strict=True)]


# The distributions of independent draws. Kept words are as random for one number as for another, which is left out.
DRAWS = {"bit": lambda t: [bit(t)], "bit_at": lambda t: [bit(range(ALL).index(t))], "bits": lambda t, n: [bit(t)] * n,
         "below": lambda b: [below(b)], "belows": lambda b, n: [below(b)] * n, "subset": lambda m, n: [subset(m, n)],
         "belows_from": lambda b, n: [below(b + j) for j in range(n)], "kept_bits": lambda t, n: [bit(t)] * n,
         "kept_belows": lambda b, n: [below(b + j, ALL) for j in range(n)]}  # fmt: skip


# -- one answer -------------------------------------------------------------------------------------------------------


def number(x):
    """A literal whole number, or None for a name."""
    need(type(x) is int or isinstance(x, str), "neither a number nor a name", CANNOT)
    return x if type(x) is int else int(x) if re.fullmatch(r"0|-?[1-9][0-9]*", x) else None


def numbers(table):
    return list(map(numbers, table)) if isinstance(table, list) else number(table)


def arguments(expression):
    """The arguments that matter: not the seed of a hash, and not the label and the number of kept words."""
    return expression[
        3 if expression[0].startswith("kept_") else 2 if expression[0] in ("polynomial", "bloom") else 1 :
    ]


def run(program, known, wanted):
    """What each name is with this answer, or virtual answer, and the distributions of all draws."""
    known, draws = {**{name: numbers(table) for name, table in program["tables"].items()}, **known}, []

    def value(expression):
        if not isinstance(expression, list):
            return known[expression] if number(expression) is None else number(expression)
        need(expression[0] not in DRAWS, "a draw within an expression")
        return apply(expression[0], list(map(value, expression[1:])))

    def drawn(name, expression):
        given, first = list(map(value, arguments(expression))), len(draws)
        need(not needs_of(given), "a draw that depends on a draw", CANNOT)
        draws.extend(DRAWS[name](*given))
        if name == "subset":
            return [Drawn(frozenset({first}), lambda world, j=j: world[first][j]) for j in range(given[1])]
        row = [Drawn(frozenset({i}), lambda world, i=i: world[i]) for i in range(first, len(draws))]
        return row[0] if name in ("bit", "bit_at", "below") else row

    for name, expression in program["steps"]:
        if name in wanted and name not in known:
            known[name] = drawn(expression[0], expression) if draws_at(expression) else value(expression)
    return known, draws


# -- all answers ------------------------------------------------------------------------------------------------------


def draws_at(step):
    return isinstance(step, list) and step[0] in DRAWS


def reach(names, steps, known=()):
    """All names that these names are computed from, themselves included, without looking behind `known` ones."""
    found, todo = set(), list(names)
    while todo:
        name = todo.pop()
        if isinstance(name, list):
            todo += arguments(name)
        elif number(name) is None and name not in found:
            found.add(name)
            todo += [steps[name]] if name in steps and name not in known else []
    return found


def cases(program):
    """The values that stand for all answers, and the public draws that are counted as if the report showed them."""
    steps, parts, given = dict(program["steps"]), [part[1] for part in program["report"]["parts"]], program["input"]
    kept = [f"label {step[1]}" for step in steps.values() if draws_at(step) and step[0].startswith("kept_")]
    names = [*kept, *program["tables"], "value", *(name for name, _ in program["steps"])]
    need(len(names) == len(set(names)) and (program["memo"] or not kept), "a name or a label twice, or no memo")
    count = given["last"] + 1 if given["kind"] == "number" else int(given.get("count", ALL))
    for name, step in steps.items():
        if "value" in reach([name], steps) and "value" not in reach(parts, steps, [name]):  # nothing goes around it
            public = [each for each in reach([name], steps) if draws_at(steps.get(each))]
            if step[0] == "polynomial" and "value" not in reach(public, steps):
                return [{name: cell} for cell in range(min(int(step[4]), MOST_ANSWERS + 1))], public
            if step[0] == "bit_at" and re.fullmatch(r"\['add', '?\d+'?, \['mul', 'value', '?\d+'?\]\]", str(step[1])):
                return [{"value": 0}, {"value": count - 1}], []
    return [{"value": answer} for answer in range(min(count, MOST_ANSWERS + 1))], []


def law_of(places, draws, room):
    """How likely the numbers at these places are, all of which their bytes must hold."""
    law, todo = {}, [({}, Fraction(1))]
    while todo:
        world, chance = todo.pop()
        try:
            row = tuple([settled(x, world) for x, *_ in places])
        except KeyError as missing:  # the draw that is needed next
            todo += [({**world, missing.args[0]: x}, chance * p) for x, p in draws[missing.args[0]] if p]
            continue
        need(all(0 <= x <= most for x, (_, most, _) in zip(row, places, strict=True) if most), "a number too large")
        room[0] -= 1
        need(room[0] > 0, "a program with too many outcomes", CANNOT)
        law[row] = law.get(row, 0) + chance
    return law


def ratio(p, q):
    """The largest ratio of how likely a row is under two laws."""
    need(p.keys() == q.keys(), "a report that is impossible with another answer")
    return max(p[row] / q[row] for row in p)


def worst(program, values, public):
    """An upper bound of how many times as likely a report is for one of these values as for another."""
    steps, parts, room, runs = dict(program["steps"]), program["report"]["parts"], [MOST_ROWS], []
    need(0 < len(values) <= MOST_ANSWERS, "too many answers", CANNOT)
    wanted = reach([part[1] for part in parts] + public, steps, values[0])
    for value in values:
        (known, draws), places = run(program, value, wanted), []
        for kind, name, *size in [*parts, *(["public", name] for name in public)]:
            row = known[name] if isinstance(known[name], list) else [known[name]]
            need(kind == "public" or len(row) == (1 if kind == "float64" else size[-1]), "a part of another length")
            most = 256 ** min(size[0], 8) - 1 if kind == "uint" else 1 if kind == "packed" else None
            places += [(x, most, bool(reach([name], steps, values[0]) & values[0].keys())) for x in row]
        runs.append((places, draws))
    group = list(range(len(runs[0][0])))
    for places, _ in runs:
        owner = {}
        for place, (x, _, _) in enumerate(places):
            for draw in needs_of(x):
                mine, other = group[place], group[owner.setdefault(draw, place)]
                group = group if mine == other else [other if each == mine else each for each in group]
    dense, ups, downs = Fraction(1), [Fraction(1)] * len(runs), [Fraction(1)] * len(runs)
    for each in dict.fromkeys(group):
        members = [place for place, other in enumerate(group) if other == each]
        if any(runs[0][0][place][2] for place in members):  # else its law is the same for all answers
            laws = [law_of([places[place] for place in members], draws, room) for places, draws in runs]
            usual = max(laws, key=laws.count)
            ups = [up * ratio(law, usual) for up, law in zip(ups, laws, strict=True)]
            downs = [down * ratio(usual, law) for down, law in zip(downs, laws, strict=True)]
            columns = [[law[row] for law in laws] for row in usual]
            dense *= max(max(column) / min(column) for column in columns)
    return min(dense, max(ups) * max(downs))  # both are bounds: group by group, or by way of the usual law


def check(data):
    """The definition in these bytes and its largest ratio. Any exception means: not proved."""
    program = json.loads(data)
    text = json.dumps({k: x for k, x in program.items() if k != "digest"}, sort_keys=True, separators=(",", ":"))
    need(program["digest"] == sha256(text.encode()).hexdigest(), "the digest is not that of the definition")
    need(program["format"] != "ldp-budget questionnaire", "a questionnaire", CANNOT)
    need((program["format"], program["version"]) == ("ldp-budget client", 1), "another format or version")
    epsilon, delta = program["guarantee"]["epsilon"], program["guarantee"]["delta"]
    need(epsilon is not None and delta in ("0", "0.0"), "a definition with a delta, or without an epsilon", CANNOT)
    need(re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,40})?(e-[0-9]{1,3})?", epsilon), "an epsilon that is not a number")
    # A lower bound of e^epsilon: the first terms of its series, all of them positive.
    epsilon, term, least = Fraction(epsilon), Fraction(1), Fraction(1)
    for k in range(1, 64 + 4 * ceil(epsilon)):
        term *= epsilon / k
        least += term
    found = worst(program, *cases(program))
    need(found <= least, f"a report is more than e^{program['guarantee']['epsilon']} times as likely")
    return program, found


if __name__ == "__main__":
    try:
        proved, _ = check(Path(sys.argv[1]).read_bytes())
    except Exception as error:
        sys.exit(f"{'CANNOT' if isinstance(error, CANNOT) else 'REFUSED'}: {error!r:.300}")
    what = f"{'one report' if proved['memo'] else 'every report'} of {proved['name']}"
    print(f"PROVED: {what} is at most e^{proved['guarantee']['epsilon']} times as likely as with another answer")
