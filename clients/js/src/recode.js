// Scales: a program whose first step recodes the answer, such as to whether it is one of the highest.

import { requires } from "./intervals.js";
import { literal } from "./numbers.js";

/** @param {string} from */
const step = (from) => JSON.stringify(["recoded", ["at", "recode", from]]);

/**
 * How many steps recode the answer, and to how many places of the table: one, or those of an index of so many items, which has a
 * place for each sum of what these are; undefined for steps that do not.
 * @param {any[]} steps
 * @param {bigint} count
 * @returns {{ steps: number, places: bigint } | undefined}
 */
function recoding(steps, count) {
  if (JSON.stringify(steps[0]) === step("value")) return { steps: 1, places: count };
  const items = steps.findIndex(([name]) => name === "index");
  const size = BigInt(steps[0]?.[1]?.[2] ?? 0);
  if (items < 1 || size < 2n || JSON.stringify(steps[items + 1]) !== step("index")) return undefined;
  /** @type {any} */
  let total = "item0";
  for (let place = 0; place < items; place++) {
    const [name, over] = [`item${place}`, Number(size ** BigInt(place))];
    if (JSON.stringify(steps[place]) !== JSON.stringify([name, ["mod", ["div", "value", over], Number(size)]])) return undefined;
    if (place) total = ["add", total, name];
  }
  const holds = JSON.stringify(steps[items][1]) === JSON.stringify(total) && size ** BigInt(items) === count;
  return holds ? { steps: items + 2, places: BigInt(items) * (size - 1n) + 1n } : undefined;
}

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
  const found = memo || input.kind !== "answer" ? undefined : recoding(steps, BigInt(input.count));
  const rest = steps.slice(found?.steps);
  if (!found || /"(value|recode|index|item[0-9]+)"/.test(JSON.stringify(rest))) return definition;
  const { recode, ...others } = tables;
  requires(Array.isArray(recode) && recode.length > 1 && found.places === BigInt(recode.length), "a table of other answers");
  const values = recode.map((/** @type {any} */ each) => BigInt(literal(each)));
  requires(values.every((/** @type {bigint} */ each) => each >= 0n && each <= BigInt(Number.MAX_SAFE_INTEGER)), "a recoded answer that is no number");
  const most = values.reduce((/** @type {bigint} */ a, /** @type {bigint} */ b) => (a > b ? a : b));
  return { ...definition, input: { kind: "answer", count: `${most + 1n}`, text: false }, steps: renamed(rest), tables: others };
}
