// Tick all that apply: the numbers of sets of ticks, and the bound of a report of such a set.

import { canonicalText } from "./bytes.js";
import { requires } from "./intervals.js";
import { choose, quotient } from "./laws.js";
import { setsOf } from "./syntax.js";

const WORD = 1n << 64n;
const MOST_TICKS = 20;
const MOST_ITEMS = 255;

/**
 * The number of a set of ticks: a set of at most so many of the first c + 1 options, of which c is the largest, follows all sets of
 * the first c.
 * @param {any} answer the names of the ticked options, none of them for the empty set
 * @param {{ answers: string[], at_most: number, input: any }} definition
 * @returns {bigint}
 * @throws {RangeError} for what is no option, is ticked twice, or is more than may be ticked: no tick is dropped
 */
export function numberOfTicks(answer, { answers, at_most: most, input }) {
  const names = answers.map(canonicalText);
  const ticks = Array.isArray(answer) ? answer.map((each) => names.indexOf(canonicalText(`${each}`))) : [-1];
  if (ticks.includes(-1)) throw new RangeError(`the answer must be a list of options of ${answers.join(", ")}: got ${answer}`);
  if (new Set(ticks).size < ticks.length) throw new RangeError(`each option must be ticked once: got ${answer}`);
  if (ticks.length > most) throw new RangeError(`at most ${most} options may be ticked: got ${ticks.length}`);
  const numbered = BigInt(input.count) === setsOf(names.length, most) ? most : names.length;
  return ticks.sort((a, b) => b - a).reduce((sum, tick, place) => sum + setsOf(tick, numbered - place), 0n);
}

/**
 * The ticked options of a set, by their places, ascending.
 * @param {bigint} number
 * @param {{ answers: string[], at_most: number, input: any }} definition
 * @returns {number[]}
 */
export function ticksOf(number, { answers: { length }, at_most: most, input }) {
  const ticks = [];
  let left = number;
  for (let j = BigInt(input.count) === setsOf(length, most) ? most : length; j > 0 && left > 0n; j--) {
    let largest = length - 1;
    while (setsOf(largest, j) > left) largest--;
    ticks.unshift(largest);
    left -= setsOf(largest, j);
  }
  return ticks;
}

/** A whole number as programs write it. @param {bigint} number */
const whole = (number) => (number <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(number) : `${number}`);

/** @param {bigint} a @param {bigint} b @returns {bigint} */
const gcd = (a, b) => (b ? gcd(b, a % b) : a);

/** @param {bigint[]} weights */
function running(weights) {
  const over = weights.reduce(gcd, 0n);
  let total = 0n;
  return weights.map((each) => (total += over ? each / over : 0n));
}

/**
 * The steps and tables of a report that is a set of `size` of the own items, m of them, and of the d others.
 * @param {number} d @param {number} m @param {number} size @param {number} least @param {bigint[]} weights @param {any} high
 */
function setProgram(d, m, size, least, weights, high) {
  const [uppers, lowers] = [weights.slice(least), weights.slice(0, least)].map(running);
  /** @type {any[]} */
  const steps = [
    ["likelier", ["bit", high]],
    ["upper", ["below", whole(uppers[uppers.length - 1])]],
    ["lower", ["below", whole(lowers[lowers.length - 1])]],
    ["drawn", ["subset", d, size]],
    ["order", ["shuffle", "places"]],
    ["turns", ["shuffle", "slots"]],
  ];
  let left = "value";
  const items = [];
  for (let slot = m; slot > 0; slot--) {
    const [row, largest] = [["at", "starts", slot - 1], `largest${slot}`];
    steps.push([largest, ["sub", ["rank", row, left], 1]], [`left${slot - 1}`, ["sub", left, ["at", row, largest]]]);
    left = `left${slot - 1}`;
    items.push(["where", ["ge", largest, 1], ["sub", largest, 1], d + slot - 1]);
  }
  steps.push(["own", ["list", ...items]], ["held", ["sort", "own"]]);
  let others = "drawn";
  for (let slot = 0; slot < m; slot++) {
    steps.push([`others${slot}`, ["add", others, ["ge", others, ["at", "held", slot]]]]);
    others = `others${slot}`;
  }
  steps.push(["hits", ["where", "likelier", ["add", least, ["rank", "uppers", "upper"]], ["rank", "lowers", "lower"]]]);
  const row = Array.from({ length: size }, (_, place) => {
    const other = ["at", others, ["at", "order", place]];
    return place < m ? ["where", ["lt", place, "hits"], ["at", "own", ["at", "turns", place]], other] : other;
  });
  steps.push(["report", ["sort", ["list", ...row]]]);
  const starts = Array.from({ length: m }, (_, j) => [0, ...Array.from({ length: d }, (_, c) => whole(setsOf(c, j + 1)))]);
  const [places, slots] = [size, m].map((count) => Array.from({ length: count }, (_, i) => i));
  return { steps, tables: { starts, uppers: uppers.map(whole), lowers: lowers.map(whole), places, slots } };
}

/**
 * The largest ratio of a report of ticked sets; undefined for any other program. A set with at least `least` own items has the
 * chance high/2^64 over their number, any other one the rest over the number of the others, whatever was ticked. The proof is that of
 * `ldp_budget.sdk.law.ticked_sets`; it holds for this program alone, so the program is built again and compared.
 * @param {any} definition
 * @returns {bigint | undefined} in multiples of 2^-PLACES, rounded up
 */
export function ofTicks({ input, steps, tables, report }) {
  if (!Array.isArray(tables.starts) || steps[0]?.[0] !== "likelier") return undefined;
  const found = new Map(steps);
  const [d, size] = (found.get("drawn") ?? []).slice(1);
  const least = found.get("hits")?.[2]?.[1];
  const m = tables.starts.length;
  requires([d, size, least].every((each) => Number.isSafeInteger(each) && each > 0), "sets of a size that is drawn");
  requires(m <= Math.min(MOST_TICKS, d) && d + m <= MOST_ITEMS && size <= d && least <= Math.min(m, size), "sets of another size");
  const weights = Array.from({ length: Math.min(m, size) + 1 }, (_, i) => choose(BigInt(m), BigInt(i)) * choose(BigInt(d), BigInt(size - i)));
  const [upper, lower] = [weights.slice(least), weights.slice(0, least)].map((part) => part.reduce((a, b) => a + b, 0n));
  const high = BigInt(found.get("likelier")[1]);
  requires(high > 0n && high < WORD && upper > 0n && lower > 0n, "a set that is always held, or never");
  const rebuilt = setProgram(d, m, size, least, weights, found.get("likelier")[1]);
  requires(JSON.stringify(steps) === JSON.stringify(rebuilt.steps), "other steps than those of ticked sets");
  for (const [name, table] of Object.entries(rebuilt.tables)) {
    requires(JSON.stringify(tables[name]) === JSON.stringify(table), "other tables than those of ticked sets");
  }
  requires(input.kind === "answer" && BigInt(input.count) === setsOf(d, m), "another number of sets");
  requires(JSON.stringify(report.parts) === JSON.stringify([["uint", "report", 1, size]]), "another report");
  const [over, under] = [high * lower, (WORD - high) * upper];
  return over > under ? quotient(over, under) : quotient(under, over);
}
