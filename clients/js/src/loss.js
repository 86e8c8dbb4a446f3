/**
 * An upper bound on what a report gives away, computed on the device from the program that draws it. The definition states
 * a bound too, but it comes from the collector.
 *
 *     confirmLoss(definition); // throws an `Unconfirmed` unless the program keeps what the definition states
 *
 * Never optimistic: whole numbers alone, ratios rounded up and e^ε rounded down. A program for which no bound is found
 * is refused, though it may keep what it states.
 */

import { ONE, fractionOf, normalKeeps, oddsBelow } from "./exponentials.js";
import { ofGrid } from "./grid.js";
import { Unconfirmed, requires } from "./intervals.js";
import { checkMemo, choose, countOf, hashed, looks, product, quotient } from "./laws.js";
import { literal } from "./numbers.js";
import { tabled } from "./tables.js";
import { unrecoded } from "./recode.js";
import { ofTicks } from "./ticks.js";
import { checkForm, checkGuarantee, checkProgram } from "./syntax.js";

export { Unconfirmed };

const WORD = 1n << 64n;
const MOST_BOUND = 1n << 63n;

/** @typedef {Record<"a" | "b" | "half" | "k" | "m" | "n" | "p" | "period" | "size" | "t" | "w", bigint> & { digits: bigint[] }} Open */

/** Cells from the answer on, and the others: one of each is drawn. */
const WINDOW = [
  ["kept", ["bit", "#t"]],
  ["near", ["below", "#w"]],
  ["far", ["below", "#m"]],
  ["inside", ["add", "value", "near"]],
  ["outside", ["add", "far", ["where", ["ge", "far", "value"], "#w", 0]]],
];
const OWN_CELL = ["where", "kept", "inside", "outside"];

/**
 * Programs with a proof of their own: their steps, with `#name` for a whole number and `#name…` for a list of whole numbers,
 * and their parts of the report. A comment says what each bound is of.
 * @type {{ steps: any[], parts: any[], largest: (found: Open, definition: any) => bigint }[]}
 */
const SHAPES = [
  {
    // One of the answers, kept with chance t/2^64, else another one: each of `n` independent times.
    steps: [["kept", ["bits", "#t", "#n"]], ["others", ["belows", "#m", "#n"]], ["moved", ["add", "others", ["ge", "others", "value"]]], ["drawn", ["where", "kept", "value", "moved"]]],
    parts: [["uint", "drawn", "#size", "#n"]],
    largest({ t, m, n, size }, { input }) {
      answers(input, m + 1n, size);
      requires(t > 0n && t < WORD, "an answer that is always kept, or never");
      return power(bothWays(t * m, WORD - t), n);
    },
  },
  {
    // A set of n answers, with the own one with chance p/2^64: each such set is as likely, and so is each without it.
    steps: [
      ["others", ["subset", "#m", "#n"]],
      ["included", ["bit", "#p"]],
      ["place", ["below", "#n"]],
      ["row", ["add", "others", ["ge", "others", "value"]]],
      ["report", ["sort", ["put", "row", "place", ["where", "included", "value", ["at", "row", "place"]]]]],
    ],
    parts: [["uint", "report", "#size", "#n"]],
    largest({ m, n, p, size }, { input }) {
      answers(input, m + 1n, size);
      requires(p > 0n && p < WORD && n > 0n && n <= m, "an answer that is always in the set, or never");
      return bothWays(p * (m + 1n - n), (WORD - p) * n);
    },
  },
  {
    // The whole part of 2^k·(x + L) for a Laplace deviate L: moved by d/2^k its density changes by e^(d/2^k) at most.
    steps: [["noise", ["laplace", "#k"]], ["noisy", ["add", "value", "noise"]]],
    parts: [["float64", "noisy", "*", "*", "#plus"]],
    largest({ k }, { input, guarantee }) {
      requires(k <= 40n, "places that a draw does not have");
      const [a, b] = fractionOf(guarantee.epsilon);
      requires(lastOf(input) * b <= a << k, "too little noise for what is stated");
      return ONE; // it was compared just now
    },
  },
  {
    // A sign and a distance of g periods of a + b numbers and one of these, geometric in g, with two heights.
    steps: [
      ["periods", ["geometric", "#t"]],
      ["digits", ["bits_each", ["list", "#digits…"]]],
      ["upper", ["below", "#a"]],
      ["lower", ["below", "#b"]],
      ["is_upper", ["bit", "#p"]],
      ["left", ["bit", "#half"]],
      ["distance", ["add", ["mul", ["add", ["shl", "periods", "#k"], ["join", "digits"]], "#period"], ["where", "is_upper", "upper", ["add", "#a", "lower"]]]],
      ["cell", ["add", "value", ["where", "left", ["sub", -1, "distance"], "distance"]]],
    ],
    parts: [["float64", "cell", "*", "*", "#plus"]],
    largest({ t, digits, a, b, p, half, k, period }, { input }) {
      requires(a > 0n && b > 0n && a < MOST_BOUND && b < MOST_BOUND && period === a + b, "periods that overlap");
      requires(lastOf(input) <= period && half === WORD / 2n && k === BigInt(digits.length) && k <= 40n, "another shape");
      requires([t, p, ...digits].every((each) => each > 0n && each < WORD), "an outcome that is impossible");
      // From one period to the next: digits before the lowest 0 fall, that 0 rises; or all fall, and another one is drawn.
      const nexts = [];
      let [over, under] = [1n, 1n];
      for (const digit of digits) {
        nexts.push([over * (WORD - digit), under * digit]);
        [over, under] = [over * digit, under * (WORD - digit)];
      }
      nexts.push([over * WORD, under * t]);
      // Answers are no more than a period apart, and so are the distances of a report from two of them.
      const [upper, lower] = [p * b, (WORD - p) * a];
      const ratios = nexts.flatMap(([x, y]) => [bothWays(x, y), bothWays(x * lower, y * upper)]);
      return [bothWays(upper, lower), ...ratios].reduce((one, other) => (one > other ? one : other));
    },
  },
  {
    // Cells of two heights, the higher ones in a window around the answer: over the sum of all, which that window decides.
    steps: [
      ["first", ["max", ["sub", "value", "#w"], 0]],
      ["inside", ["sub", ["min", ["add", "value", "#w"], "#m"], "first"]],
      ["window", ["mul", "#a", "inside"]],
      ["drawn", ["below", ["add", "window", ["mul", "#b", ["sub", "#m", "inside"]]]]],
      ["beside", ["div", ["sub", "drawn", "window"], "#b"]],
      ["other", ["add", "beside", ["where", ["ge", "beside", "first"], "inside", 0]]],
      ["own", ["add", "first", ["div", "drawn", "#a"]]],
      ["cell", ["where", ["lt", "drawn", "window"], "own", "other"]],
    ],
    parts: [["float64", "cell", "*", "*", "#plus"]],
    largest({ w, m, a, b }, { input }) {
      const last = lastOf(input);
      requires(w > 0n && w <= m && last <= m && a > 0n && b > 0n, "another shape");
      const inside = (/** @type {bigint} */ v) => (v + w < m ? v + w : m) - (v > w ? v - w : 0n);
      const sum = (/** @type {bigint} */ count) => a * count + b * (m - count);
      // A window grows towards the middle, so that the least are at the ends.
      const sums = [inside(0n), inside(last), 2n * w < m ? 2n * w : m].map(sum);
      const [least, most] = [sums.reduce((x, y) => (x < y ? x : y)), sums.reduce((x, y) => (x > y ? x : y))];
      requires(most <= MOST_BOUND, "a draw that there is not");
      return product(bothWays(a, b), quotient(most, least));
    },
  },
  {
    // Cells whose weights fall with the distance from the answer, over the sum of all.
    steps: [
      ["left", ["at", "below", "value"]],
      ["drawn", ["below", ["add", "left", ["at", "below", ["sub", "#m", "value"]]]]],
      ["is_left", ["lt", "drawn", "left"]],
      ["distance", ["sub", ["rank", "below", ["where", "is_left", "drawn", ["sub", "drawn", "left"]]], 1]],
      ["cell", ["where", "is_left", ["sub", ["sub", "value", 1], "distance"], ["add", "value", "distance"]]],
    ],
    parts: [["float64", "cell", "*", "*", "#plus"]],
    largest: ({ m }, { input, tables }) => ofFalling(tables.below, m, lastOf(input)),
  },
  {
    // One of the cells of a window that begins at the answer, or one of the other cells.
    steps: [...WINDOW, ["cell", OWN_CELL]],
    parts: [["float64", "cell", "*", "*", "#plus"]],
    largest: (found, { input }) => ofWindow(found, lastOf(input)),
  },
  {
    // The same, or one of two cells, of which the first is likelier the larger the answer. A mixture loses no more than either.
    steps: [
      ["windowed", ["bit", "#p"]],
      ...WINDOW,
      ["own", OWN_CELL],
      ["upper", ["bit_at", ["add", "#a", ["mul", "value", "#b"]]]],
      ["cell", ["where", "windowed", "own", ["where", "upper", "#n", "#k"]]],
    ],
    parts: [["float64", "cell", "*", "*", "#plus"]],
    largest(found, { input }) {
      const [least, most] = [found.a, found.a + found.b * lastOf(input)];
      requires(found.p <= WORD && least > 0n && most < WORD, "a number that one answer alone can give");
      const numbers = [quotient(most, least), quotient(WORD - least, WORD - most), ofWindow(found, lastOf(input))];
      return numbers.reduce((one, other) => (one > other ? one : other));
    },
  },
  {
    // The bits of an answer at k of n options that are drawn without it: one of 2^k cells, kept or changed to another one.
    steps: [
      ["asked", ["subset", "#n", "#k"]],
      ["kept", ["bit", "#t"]],
      ["other", ["below", "#m"]],
      ["cell", ["join", ["and", ["shr", "value", "asked"], 1]]],
      ["shown", ["where", "kept", "cell", ["add", "other", ["ge", "other", "cell"]]]],
      ["report", ["add", ["mul", 2, "asked"], ["and", ["shr", "shown", "places"], 1]]],
    ],
    parts: [["uint", "report", "#size", "#k"]],
    largest({ n, k, t, m, size }, { input, tables }) {
      requires(k > 0n && k <= n && n <= 60n && m === (1n << k) - 1n, "other cells than the bits of what is asked");
      requires(JSON.stringify(tables.places) === JSON.stringify(Array.from({ length: Number(k) }, (_, i) => i)), "other bits");
      requires(input.kind === "answer" && BigInt(input.count) === 1n << n, "another number of sets");
      requires(2n * n <= 1n << (8n * size) && t > 0n && t < WORD, "another shape");
      return bothWays(t * m, WORD - t);
    },
  },
  ...["sub", "xor"].map((moved) => ({
    // One of m places, moved by a hash of the answer and of a direction that is drawn without it. The k first places are the likelier ones.
    steps: [
      ["direction", ["below", "#n"]],
      ["vector", "*"],
      ["hash", "*"],
      ["kept", ["bit", "#t"]],
      ["inside", ["below", "#k"]],
      ["outside", ["below", "#a"]],
      ["place", ["where", "kept", "inside", ["add", "outside", "#k"]]],
      ["b", ["mod", [moved, "place", "hash"], "#m"]],
      ["report", ["add", ["mul", "#m", "direction"], "b"]],
    ],
    parts: [["uint", "report", "#size", 1]],
    largest(/** @type {Open} */ { n, t, k, a, m, size }, /** @type {any} */ definition) {
      const [least, most] = hashed(definition, ["direction", "vector", "hash"]);
      requires(k > 0n && a > 0n && a + k === m && least >= 0n && most < m, "places or hashes beyond the last place");
      requires(moved === "sub" || (m & (m - 1n)) === 0n, "places that are moved beyond the last one");
      requires(n * m <= 1n << (8n * size) && t > 0n && t < WORD, "another shape");
      return bothWays(t * a, (WORD - t) * k);
    },
  })),
];

/** The likelihoods of a cell of the window and of another one. @param {Open} found @param {bigint} last */
function ofWindow({ t, w, m }, last) {
  requires(t > 0n && t < WORD && w > 0n && m > 0n && last <= m, "another shape");
  return bothWays(t * m, (WORD - t) * w);
}

/** A normal deviate of standard deviation 1, moved by d/2^k: of the promises with a δ, the one that is known. */
const NORMAL = { steps: [["noise", ["normal", "#k"]], ["noisy", ["add", "value", "noise"]]], parts: [["float64", "noisy", "*", "*", "#plus"]] };

/**
 * Weights w_d that fall by a ratio r, the whole part of each or a floor. A report at one distance from an answer is at one
 * from another which differs by m at most if the answers do, so that likelihoods differ by w_d/w_(d+m) times the
 * sums. Of all answers those at the ends have the least sum, and are farthest.
 * @param {any} table
 * @param {bigint} m
 * @param {bigint} last
 */
function ofFalling(table, m, last) {
  requires(table && !Array.isArray(table) && BigInt(table.count) === m && last <= m, "weights that do not fall by a ratio");
  const [over, under] = fractionOf(table.ratio);
  requires(over <= under, "weights that rise");
  const totals = tabled(table).map((/** @type {any} */ each) => BigInt(each));
  const sums = totals.map((/** @type {bigint} */ each, /** @type {number} */ v) => each + totals[totals.length - 1 - v]);
  const [first, least] = [totals[1], totals[totals.length - 1] - totals[totals.length - 2]];
  requires(least > 1n && sums.every((/** @type {bigint} */ each) => each >= sums[0] && each <= MOST_BOUND), "a cell that is impossible, or a draw that there is not");
  const cap = quotient(first, least);
  // Whole parts are less by 1 at most, and the totals' decimals are cut at each step.
  requires(table.digits > 1, "weights of one digit");
  const kept = 10n ** BigInt(table.digits - 1);
  const step = quotient(under * kept, over * (kept - 1n));
  let [largest, power] = [ONE, quotient(least + 1n, least - 1n)];
  const half = (Number(m) + 1) >> 1;
  const count = Number(m);
  for (let distance = 0; distance <= count; distance++) {
    if (distance >= half) {
      const ratio = product(power < cap ? power : cap, quotient(sums[distance], sums[0]));
      if (ratio > largest) largest = ratio;
    }
    if (power < cap) power = product(power, step);
  }
  return largest;
}

/** The larger one of a/b and b/a. @type {(a: bigint, b: bigint) => bigint} */
const bothWays = (a, b) => quotient(a > b ? a : b, a > b ? b : a);

/** @param {bigint} ratio @param {bigint} times */
function power(ratio, times) {
  let found = ONE;
  for (let square = ratio, left = times; left; left >>= 1n, square = product(square, square)) if (left & 1n) found = product(found, square);
  return found;
}

/** Checks what is asked. @param {any} input @param {bigint} count @param {bigint} size in bytes */
function answers({ kind, count: found }, count, size) {
  requires(kind === "answer" && BigInt(found) === count && count > 1n, "another number of answers");
  requires(count <= 1n << (8n * size), "a number that a report may not hold");
}

/** The largest number that an answer becomes. @param {any} input @returns {bigint} */
const lastOf = (input) => (input.kind === "number" ? BigInt(input.last) : countOf(input) - 1n);

/**
 * Compares a part of a program with a shape, and fills `found` with what it leaves open.
 * @param {any} shape
 * @param {any} part
 * @param {Record<string, any>} found
 * @returns {boolean}
 */
function matches(shape, part, found) {
  if (shape === "*") return true;
  if (typeof shape === "string" && shape.startsWith("#")) {
    const number = wholeOf(part);
    if (number === undefined || (found[shape.slice(1)] ?? number) !== number) return false;
    found[shape.slice(1)] = number;
    return true;
  }
  if (!Array.isArray(shape)) return shape === part;
  if (!Array.isArray(part)) return false;
  const last = shape.at(-1);
  if (typeof last === "string" && last.endsWith("…")) {
    const numbers = part.slice(shape.length - 1).map(wholeOf);
    found[last.slice(1, -1)] = numbers;
    return numbers.every((each) => each !== undefined) && matches(shape.slice(0, -1), part.slice(0, shape.length - 1), found);
  }
  return shape.length === part.length && shape.every((each, i) => matches(each, part[i], found));
}

/** A whole number >= 0 of a program. @param {any} part @returns {bigint | undefined} */
function wholeOf(part) {
  try {
    const number = BigInt(literal(part));
    return number >= 0n ? number : undefined;
  } catch {
    return undefined; // a name, or an expression
  }
}

/** @param {{ steps: any, parts: any }} shape @param {any} definition @returns {any} what the shape leaves open, if it is that */
function openOf(shape, { steps, report }) {
  const found = {};
  return matches(shape.steps, steps, found) && matches(shape.parts, report.parts, found) ? found : undefined;
}

/**
 * Bounds by any argument that applies; of a program that is none of the shapes, by looking at it.
 * @param {any} definition
 * @param {bigint} most
 */
function check(definition, most) {
  const rebuilt = ofTicks(definition) ?? ofGrid(definition);
  if (rebuilt) return requires(rebuilt <= most, "the program gives away more than is stated");
  for (const shape of SHAPES) {
    const found = openOf(shape, definition);
    if (found) return requires(shape.largest(found, definition) <= most, "the program gives away more than is stated");
  }
  seek(looks(definition), ({ largest }) => largest <= most);
}

/**
 * @param {ReturnType<typeof looks>} found
 * @param {(each: any) => boolean} isEnough
 */
function seek(found, isEnough) {
  let why = "";
  for (const each of found) {
    if (each instanceof Unconfirmed) why ||= each.message;
    else if (isEnough(each)) return;
    else why = "no bound of it is as low as is stated";
  }
  throw new Unconfirmed(why);
}

/**
 * Confirms the loss that a definition states: that its program gives away no more than its definition states: by a report, and, where it repeats what it drew once,
 * by all reports of an answer and of all answers.
 * @param {any} definition
 * @throws {Unconfirmed} where that cannot be confirmed
 */
export function confirmLoss(definition) {
  try {
    confirm(definition);
  } catch (error) {
    // What cannot be looked at is not confirmed.
    throw error instanceof Unconfirmed ? error : new Unconfirmed(`the program fails: ${error instanceof Error ? error.message : error}`);
  }
}

/**
 * The questions of a survey draw independently, and k of them are asked, so that the k largest losses add up.
 * @param {any} definition
 */
function confirmSurvey({ ask, questions, guarantee }) {
  checkGuarantee({ guarantee, memo: "" }); // no question repeats draws
  requires(guarantee.epsilon !== null && Number.isSafeInteger(ask) && ask >= 1 && ask <= questions.length, "nothing is promised");
  for (const question of questions) {
    requires(question.format === "ldp-budget client" && !question.memo, "a question of a survey that is none, or repeats draws");
    confirm(question, true);
  }
  for (const kind of ["epsilon", "delta"]) {
    const largest = questions.map((/** @type {any} */ question) => fractionOf(question.guarantee[kind])).sort(falling).slice(0, ask);
    const [sum, over] = largest.reduce((/** @type {bigint[]} */ [a, b], /** @type {bigint[]} */ [c, d]) => [a * d + c * b, b * d], [0n, 1n]);
    const [most, under] = fractionOf(guarantee[kind]);
    requires(sum * under <= most * over, "the questions together lose more than is stated");
  }
}

/** @type {(one: [bigint, bigint], other: [bigint, bigint]) => number} */
const falling = ([a, b], [c, d]) => (a * d > c * b ? -1 : a * d < c * b ? 1 : 0);

/** @param {any} given a definition @param {boolean} [within] whether it is a question of a survey */
function confirm(given, within) {
  // By the format, as the classes that draw choose: other keys of a definition must not choose what is confirmed.
  if (given.format === "ldp-budget questionnaire") return confirmSurvey(given);
  const { guarantee, memo } = given;
  const { epsilon, delta, lifetime_epsilon: lifetime, relation } = guarantee;
  // Where nothing is stated of all reports of an answer, each is charged as the first one is.
  const cap = guarantee.answer_epsilon ?? epsilon;
  requires(epsilon !== null && epsilon !== undefined, "nothing is promised");
  checkForm(given, within);
  const definition = unrecoded(given);
  const [over, under] = fractionOf(delta);
  requires(over < under, "a δ of 1, which promises nothing");
  checkProgram(given);
  const normal = openOf(NORMAL, definition);
  if (normal) {
    const shift = /** @type {[bigint, bigint]} */ ([lastOf(definition.input), 1n << normal.k]);
    requires(normal.k <= 40n && normalKeeps(shift, epsilon, delta), "the noise is too little for what is stated");
    return;
  }
  // What holds without a δ holds with any.
  checkMemo(definition);
  check(definition, oddsBelow(epsilon));
  if (!memo) return;
  requires(relation !== "any inputs", "it repeats draws, which shows when an answer changes");
  const most = oddsBelow(cap);
  seek(looks(definition, true), ({ largest }) => largest <= most);
  if (lifetime === undefined || lifetime === null) return; // nothing is said of it
  const [a, b] = fractionOf(lifetime);
  const [c, d] = fractionOf(cap);
  requires(a * d >= c * b, "all answers together lose less than one of them");
  if (a * d === c * b) return; // the same is said of one answer
  const whole = oddsBelow(lifetime);
  seek(looks(definition, true), ({ look, largest, every }) => (largest <= most && look.draws * c * b <= a * d) || (every !== undefined && every <= whole));
}

/** @type {WeakMap<any, Unconfirmed | null>} */
const known = new WeakMap();

/**
 * The same, worked out once for a definition.
 * @param {any} definition
 * @throws {Unconfirmed}
 */
export function confirmOnce(definition) {
  if (!known.has(definition)) {
    /** @type {Unconfirmed | null} */
    let why = null;
    try {
      confirmLoss(definition);
    } catch (error) {
      why = /** @type {Unconfirmed} */ (error);
    }
    known.set(definition, why);
  }
  const why = known.get(definition);
  if (why) throw why;
}
