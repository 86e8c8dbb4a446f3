"""Mutation tests of the vectors: an interpreter with one fault never agrees with all of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from javascript import PACKAGE, VECTORS, run

MUTANTS = [
    ("draws.js", "byte < top ? 1 : 0", "byte <= top ? 1 : 0"),
    ("draws.js", "< low ? 1 : 0", "<= low ? 1 : 0"),
    ("draws.js", "(threshold & LOW) !== 0n", "false"),
    ("draws.js", "this.compare(BigInt(within(t, 0, ONE - 1n)), 1, true)[0]", "this.bit(t)"),
    ("draws.js", "word <= last)", "word < last)"),
    ("draws.js", "2 * size <= m", "2 * size < m"),
    ("draws.js", "      row.sort(ascending);\n", ""),
    ("draws.js", "last > 0; last--", "last > 1; last--"),
    ("draws.js", "BigInt(b) + BigInt(i)", "BigInt(b)"),
    ("draws.js", "odd = !odd;", ""),
    ("normal.js", "? -magnitude - 1 :", "? -magnitude :"),
    ("draws.js", "one[place] !== other[place]", "true"),
    ("draws.js", "words[i]) > lasts[slot]", "words[i]) >= lasts[slot]"),
    ("program.js", "weight /= 10n", "weight = (weight + 5n) / 10n"),
    ("normal.js", "k * (k - 1)", "k * k"),
    ("normal.js", "PROPOSALS = 10", "PROPOSALS = 8"),
    ("normal.js", "2 * whole[slot] + 1", "2 * whole[slot]"),
    ("normal.js", "draws.isLess(drawn[undecided.indexOf(slot)], fraction[slot])", "true"),
    ("normal.js", "const trials = whole.map((k) => k + 1);", "const trials = whole.map((k) => k);"),
    ("normal.js", "last[i][0] < 2 ** 31", "last[i][0] <= 2 ** 32"),
    ("numbers.js", "a % b !== 0n && a < 0n !== b < 0n", "false"),
    ("numbers.js", "vector[middle] <= number", "vector[middle] < number"),
    ("numbers.js", "small(BigInt(least) - 1n + BigInt(place))", "Number(least) - 1 + place"),
    ("numbers.js", "[...vector].sort(ascending)", "vector"),
    ("program.js", "word < t ? 1 : 0", "word <= t ? 1 : 0"),
    ("program.js", "BigInt(64 - Number(", "BigInt(63 - Number("),
    ("program.js", 'person: "ldp-budget seed"', 'person: "ldp-budget sees"'),
    ("program.js", "a * x + b", "a * x"),
    ("program.js", "next - x === 0.5 && next % 2", "next - x === 0.5"),
    ("program.js", "Number(BigInt(step(run)) + BigInt(more[2])) * unit", "(Number(step(run)) + more[2]) * unit"),
    ("program.js", "return small((BigInt(m)", "return Number((BigInt(m)"),
    (
        "program.js",
        "Math.floor((answer - lower) / finite(given.step))",
        "toEven((answer - lower) / finite(given.step))",
    ),
    ("program.js", "littleEndian(secret.length, 8), ", ""),
    # A memory that does not tell one answer, or one secret, from another.
    ("program.js", "const key = `${given}`", "const key = `${given[0]}`"),
    ("program.js", "const key = `${given}`", "const key = `${given.slice(1)}`"),
    ("program.js", "10n ** BigInt(digits)", "10n ** 12n"),
    ("program.js", "whole > least ? whole : least", "whole"),
    ("hashes.js", " ^ c[(x + 8) % 10]", ""),
    ("hashes.js", "[28, 29]", "[26, 27]"),
    ("hashes.js", "low > 0xffffffff ? 1 : 0", "0"),
    ("hashes.js", "if (i && !place) keccak(state, between);", ""),
    ("draws.js", "[found[i + 1], found[i]]", "[found[i], found[i + 1]]"),
    ("draws.js", "32 - Math.clz32(Number(last))", "31 - Math.clz32(Number(last))"),
    ("hashes.js", "data[message.length] = 0x1f", "data[message.length] = 0x06"),
]


@pytest.mark.some(20)
@pytest.mark.parametrize(("file", "old", "new"), MUTANTS, ids=lambda part: None)
def test_vectors_find_a_fault(tmp_path: Path, file: str, old: str, new: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "js")
    source = tmp_path / "js" / "src" / file
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new, 1))
    done = run(tmp_path / "js" / "test" / "vectors.mjs", VECTORS, "--first")
    assert done.returncode == 1, f"{file}: {old} -> {new} is not seen"
