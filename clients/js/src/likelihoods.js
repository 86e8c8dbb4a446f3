// How likely one report is for each answer, in doubles. It is for people to look at; what is promised is proved elsewhere.
//
// The program is run with draws that are not known, and operators on them are put off. What the report tells at once
// (which hash function, which buckets) is taken from it; what an operator has to know is tried in every way; and what
// is left are equations of a few draws each, a bit of the report for one, that have none in common: they are solved
// one by one, and their probabilities multiplied.

import { Draws } from "./draws.js";
import { sized } from "./numbers.js";

/** @typedef {import("./program.js").Program} Program */
/** @typedef {import("./numbers.js").Vector} Vector */
/** @typedef {(...given: any[]) => any} Operate */
/** @typedef {{ draws: Drawn[], valueOf: () => any, toString?: any }} Unknown a number that is worked out of draws which are not known */
/** @typedef {Unknown & { size: number, odds?: number, value?: any }} Drawn a bit that is one with some odds, or uniform below `size` */

/** What all answers together may take: an equation tried is one, a run of the program some more. */
const MOST = 2 ** 21;
const RUN = 32;

/** @type {(operate: Operate) => Operate} */
const lift = (operate) => (...given) => {
  const draws = given.flatMap((each) => each?.draws ?? []);
  const valueOf = () => operate(...given.map((each) => each?.valueOf()));
  return draws.length ? { draws, valueOf, toString: valueOf } : valueOf();
};

/** @type {(drawn: Drawn, value: any) => number} */
const chance = ({ size, odds }, value) => (odds === undefined ? (value < size ? 1 / size : 0) : value ? odds : 1 - odds);

/**
 * What the numbers of a report reveal about steps: the numbers of a draw, or a vector of draws, and its likelihood.
 * @param {any} definition
 * @param {Vector[]} report
 */
function toldBy({ steps, report: { parts } }, report) {
  const text = JSON.stringify([steps, parts]);
  /** @type {Map<any, any>} */
  const named = new Map(steps);
  /** @type {Map<any, any>} */
  const told = new Map();
  /** @type {(expression: any) => boolean} */
  const isBit = (expression) => {
    const [operator, ...given] = named.get(expression) ?? expression;
    return /^(kept_bits|bits?|eq|lt|ge)$/.test(operator) || (operator === "xor" && given.every(isBit));
  };
  /** @type {(expression: any, size: number) => boolean} */
  const isRest = (expression, size) => {
    const [operator, , by] = named.get(expression) ?? expression;
    return operator === "mod" && by <= size;
  };
  /** @type {(expression: any, numbers: any[], name?: any) => void} */
  const tell = (expression, numbers, name) => {
    if (named.has(expression)) return tell(named.get(expression), numbers, expression);
    const [operator, a, b] = [expression].flat();
    const from = named.get(a);
    if (operator === "add" && a[0] === "mul" && a[1] > 1 && (isBit(b) || isRest(b, a[1]))) tell(a[2], numbers.map((each) => Math.floor(each / a[1])));
    if (operator === "at" && b >= 0) tell(a, Object.assign([], { [b]: numbers[0] }));
    if (/below/.test(operator)) told.set(name, { drawn: numbers });
    // So many vectors of draws come to it. Nothing else may be made of them.
    if (operator === "floyd" && /belows/.test(from) && from.at(-2) === b && text.split(`"${a}"`).length === 3) {
      const ways = numbers.map((each, i) => (each === b - 1 + i ? i + 1 : +(each < b + i && numbers.indexOf(each) === i)));
      told.set(name, { numbers, likely: ways.reduce((all, each, i) => (all * each) / (b + i), 1) });
    }
  };
  parts.forEach((/** @type {any[]} */ [, name], /** @type {number} */ i) => tell(name, report[i]));
  return told;
}

/**
 * The probability of a report's numbers for each answer.
 * @param {Program} program
 * @param {Vector[]} report
 * @returns {{ likelihood: number, share: number }[]}
 */
function trials(program, report) {
  const { steps } = program.definition;
  const told = toldBy(program.definition, report);
  const made = new Map();
  const kept = new Set();
  /** Of each choice, which of how many was taken. @type {[number, number][]} */
  const path = [];
  /** @type {Drawn[]} */
  let known = [];
  let left = MOST;
  /** The logarithm of the probability of a run so far, as there may be thousands of factors. */
  let likely = 0;
  /** Of the first run that is possible at all. @type {number | undefined} */
  let first;
  let choice = 0;
  let step = 0;
  let place = 0;

  const spend = (trials = 1) => {
    if ((left -= trials) < 0) throw new RangeError("too many outcomes");
  };

  /** @param {number} factor */
  const times = (factor) => {
    likely += Math.log(factor);
  };

  /** From here on it is that. @type {(drawn: Drawn, value: any) => void} */
  const be = (drawn, value) => {
    if (drawn.value !== undefined) times(+(drawn.value == value));
    else {
      known.push(drawn);
      times(chance(drawn, value));
      drawn.value = value;
    }
  };

  /** @param {number} size */
  const pick = (size) => {
    if (choice === path.length) path.push([0, size]);
    return path[choice++][0];
  };

  /** @type {(size: number, odds?: number) => Drawn} */
  const unknown = (size, odds) => {
    const valueOf = () => {
      if (drawn.value === undefined) be(drawn, pick(size));
      return drawn.value;
    };
    /** @type {Drawn} */
    const drawn = { draws: [], size, odds, value: undefined, valueOf, toString: valueOf };
    drawn.draws.push(drawn);
    return drawn;
  };

  /** Draws of the step, the same objects in every run. @type {(n: any, size: number, odds?: number) => any[]} */
  const some = (n, size, odds) => {
    const count = sized(n);
    const from = place;
    place += count;
    const name = [step, from, count, size, odds].join();
    if (!made.has(name)) {
      spend(count);
      made.set(name, Array.from({ length: count }, () => unknown(size, odds)));
    }
    const found = made.get(name);
    // A report may reveal only one of several numbers that one step draws.
    told.get(steps[step][0])?.drawn?.slice(from, place).forEach((/** @type {any} */ value, /** @type {number} */ i) => be(found[i], value));
    return found;
  };

  /** @type {any} */
  const draws = new Draws(() => {
    throw new RangeError("endlessly many outcomes");
  });
  Object.assign(draws, {
    geometric: draws.read,
    bits: (/** @type {any} */ t, /** @type {any} */ n) => some(n, 2, Number(t) / 2 ** 64),
    bit_at: draws.bit,
    belows: (/** @type {any} */ b, /** @type {any} */ n) => some(n, Number(b)),
    subset: (/** @type {any} */ m, /** @type {any} */ n) => {
      let low = 0;
      // One after the other, and each set as likely.
      return Array.from({ length: sized(n) }, (_, i) => {
        times((i + 1) / (m - i));
        low += 1 + pick(m - n + i + 1 - low);
        return low - 1;
      });
    },
    // Two draws of the same words depend on each other, which is not worked out.
    kept: (/** @type {string} */ name, /** @type {any[]} */ label, /** @type {any} */ v, /** @type {any} */ a, /** @type {any} */ n) => {
      if (kept.size === kept.add(`${label} ${v}`).size) throw new RangeError("words that are drawn twice");
      return name === "kept_bits" ? draws.bits(a, n) : draws.belows_from(a, n);
    },
  });

  /** @type {(each: Unknown, target: any, unknown: Drawn[]) => number} */
  const solve = (each, target, [drawn, ...rest]) => {
    spend();
    if (!drawn) return +(each.valueOf() == target);
    let sum = 0;
    for (drawn.value = 0; drawn.value < drawn.size; drawn.value++) sum += chance(drawn, drawn.value) * solve(each, target, rest);
    drawn.value = undefined;
    return sum;
  };

  /** @type {(answer: number) => number} */
  const once = (answer) => {
    for (const drawn of known) drawn.value = undefined;
    known = [];
    kept.clear();
    choice = 0;
    likely = 0;
    spend(RUN + program.size);
    /** @type {any} */
    const run = { values: [answer], draws, lift };
    for (step = 0; step < steps.length; step++) {
      place = 0;
      const found = told.get(steps[step][0]);
      times(found?.likely ?? 1);
      run.values.push(found?.numbers ?? program.steps[step](run));
    }
    /** @type {[Unknown, any][]} */
    const open = [];
    program.parts.forEach((/** @type {any} */ part, /** @type {number} */ i) => {
      const found = part.value(run);
      report[i].forEach((target, j) => {
        const each = found[j] ?? 0;
        if (each.size) be(each, target);
        else open.push([each, target]);
      });
    });
    const seen = new Set();
    for (const [{ draws = [] }] of open) for (const drawn of new Set(draws)) seen.has(drawn) ? drawn.valueOf() : seen.add(drawn);
    for (const [each, target] of open) {
      if (likely === -Infinity) return 0;
      times(solve(each, target, [...new Set(each.draws)].filter(({ value }) => value === undefined)));
    }
    if (likely === -Infinity) return 0;
    first ??= likely;
    return Math.exp(likely - first);
  };

  const each = Array.from({ length: Number(program.definition.input.count) }, (_, answer) => {
    for (let sum = 0; ; ) {
      sum += once(answer);
      while (path.length && path[path.length - 1][0] + 1 === path[path.length - 1][1]) path.pop();
      if (!path.length) return sum;
      path[path.length - 1][0]++;
    }
  });
  const all = each.reduce((sum, one) => sum + one);
  return each.map((one) => ({ likelihood: one * Math.exp(first ?? 0), share: all && one / all }));
}

/**
 * The probability of `report` for each answer, and its share of the sum of all; undefined where answers or draws are
 * too many to be listed.
 * @param {Program} program
 * @param {Uint8Array} report
 */
export function likelihoods(program, report) {
  const { kind, count, text } = program.definition.input;
  if (report.length !== program.size) throw new RangeError(`a report has ${program.size} bytes: got ${report.length}`);
  if (kind !== "answer" || text || count > MOST / RUN) return undefined;
  let at = 0;
  try {
    return trials(program, program.parts.map((/** @type {any} */ part) => part.read(report.subarray(at, (at += part.size)))));
  } catch {
    return undefined; // draws without end, or more than can be tried
  }
}
