// Scales: a program whose first step recodes the answer, such as to whether it is one of the highest.

import { requires } from "./intervals.js";
import { literal } from "./numbers.js";

const STEP = JSON.stringify(["recoded", ["at", "recode", "value"]]);

/** @param {any} each @returns {any} */
const renamed = (each) => (Array.isArray(each) ? each.map(renamed) : each === "recoded" ? "value" : each);

/**
 * The same program of the recoded answer, any number up to the largest in the table; any other program unchanged. A function of an
 * answer tells no more than the answer, so a bound for it is one for both.
 * @param {any} definition
 * @returns {any}
 */
export function unrecoded(definition) {
  const { input, steps, tables, memo } = definition;
  const [first, ...rest] = steps;
  if (memo || JSON.stringify(first) !== STEP || /"(value|recode)"/.test(JSON.stringify(rest))) return definition;
  const { recode, ...others } = tables;
  requires(Array.isArray(recode) && recode.length > 1 && input.kind === "answer" && BigInt(input.count) === BigInt(recode.length), "a table of other answers");
  const values = recode.map((/** @type {any} */ each) => BigInt(literal(each)));
  requires(values.every((/** @type {bigint} */ each) => each >= 0n && each <= BigInt(Number.MAX_SAFE_INTEGER)), "a recoded answer that is no number");
  const most = values.reduce((/** @type {bigint} */ a, /** @type {bigint} */ b) => (a > b ? a : b));
  return { ...definition, input: { kind: "answer", count: `${most + 1n}`, text: false }, steps: renamed(rest), tables: others };
}
