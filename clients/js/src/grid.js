// Grids: the number of answers to several items, and the bound of a report that randomizes them together.

import { canonicalText } from "./bytes.js";
import { requires } from "./intervals.js";
import { choose, quotient } from "./laws.js";

const WORD = 1n << 64n;
const MOST_ITEMS = 50;
const MOST_ASKED = 20;
const MOST_ANSWERS = 40;

/**
 * The number of the answers to all items: with d answers to each, the sum of the places of the answers times powers of d.
 * @param {any} answer an object with the name of an answer for the name of each item
 * @param {{ answers: string[], items: { name: string }[] }} definition
 * @returns {bigint}
 * @throws {RangeError} where an item has no answer, or another one
 */
export function numberOfGrid(answer, { answers, items }) {
  const names = answers.map(canonicalText);
  const known = items.map(({ name }) => name);
  const given = answer !== null && typeof answer === "object" ? answer : {};
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new RangeError(`there is no item ${unknown}, only ${known.join(", ")}`);
  const places = known.map((name) => (Object.hasOwn(given, name) ? names.indexOf(canonicalText(`${given[name]}`)) : -1));
  const missing = places.indexOf(-1);
  if (missing >= 0) throw new RangeError(`the answer to ${known[missing]} must be one of ${answers.join(", ")}: got ${given[known[missing]]}`);
  return places.reduceRight((sum, place) => sum * BigInt(names.length) + BigInt(place), 0n);
}

/** A whole number as programs write it. @param {bigint} number */
const whole = (number) => (number <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(number) : `${number}`);

/** @param {bigint[]} weights */
function running(weights) {
  let total = 0n;
  return weights.map((each) => whole((total += each)));
}

/** @param {bigint[]} weights */
const sum = (weights) => weights.reduce((a, b) => a + b, 0n);

/**
 * The steps and tables of a grid; see `grid_program` of the package in Python.
 * @param {number} items @param {number} d @param {number} asked @param {number} size @param {number} least @param {bigint[]} weights @param {any} high
 */
function gridProgram(items, d, asked, size, least, weights, high) {
  const [upper, lower] = [weights.slice(least), weights.slice(0, least)];
  const slots = Array.from({ length: asked }, (_, slot) => slot);
  /** @type {any[]} */
  const steps = [
    ["asked", ["subset", items, asked]],
    ["likelier", ["bit", high]],
    ["upper", ["below", whole(sum(upper))]],
    ["lower", ["below", whole(sum(lower))]],
    ["turns", ["shuffle", "slots"]],
  ];
  for (const slot of slots) steps.push([`others${slot}`, ["subset", d - 1, size]], [`place${slot}`, ["below", size]]);
  steps.push(["hits", ["where", "likelier", ["add", least, ["rank", "uppers", "upper"]], ["rank", "lowers", "lower"]]]);
  const cells = [];
  for (const slot of slots) {
    const [item, row, place, own] = [["at", "asked", slot], `row${slot}`, `place${slot}`, `own${slot}`];
    steps.push(
      [own, ["mod", ["div", "value", ["at", "powers", item]], d]],
      [row, ["add", `others${slot}`, ["ge", `others${slot}`, own]]],
      [`cells${slot}`, ["add", ["mul", d, item], ["put", row, place, ["where", ["lt", ["at", "turns", slot], "hits"], own, ["at", row, place]]]]],
    );
    for (let number = 0; number < size; number++) cells.push(["at", `cells${slot}`, number]);
  }
  steps.push(["report", ["sort", ["list", ...cells]]]);
  const powers = Array.from({ length: items }, (_, i) => whole(BigInt(d) ** BigInt(i)));
  return { steps, tables: { powers, uppers: running(upper), lowers: running(lower), slots } };
}

/**
 * The largest ratio of a report of a grid; undefined for any other program. Given the items that are drawn without the answers, a row of
 * sets of which `least` hold the answers of their items has the chance high/2^64 over the number of such rows, any other one
 * the rest over the number of the others, whatever the answers are. The proof is that of `ldp_budget_verify.law.asked_items`; it
 * holds for this program alone, so the program is built again and compared.
 * @param {any} definition
 * @returns {bigint | undefined} in multiples of 2^-PLACES, rounded up
 */
export function ofGrid({ input, steps, tables, report }) {
  if (steps[0]?.[0] !== "asked" || !Array.isArray(tables.powers) || steps[1]?.[0] !== "likelier") return undefined;
  const found = new Map(steps);
  const [items, asked] = (found.get("asked") ?? []).slice(1);
  const d = found.get("own0")?.[2];
  const size = found.get("others0")?.[2];
  const least = found.get("hits")?.[2]?.[1];
  requires([items, asked, d, size, least].every((each) => Number.isSafeInteger(each) && each > 0), "a grid of a size that is drawn");
  requires(items <= MOST_ITEMS && asked <= Math.min(items, MOST_ASKED) && d <= MOST_ANSWERS && size < d && least <= asked, "a grid of another size");
  const weights = Array.from({ length: asked + 1 }, (_, i) => choose(BigInt(asked), BigInt(i)) * BigInt(size) ** BigInt(i) * BigInt(d - size) ** BigInt(asked - i));
  const [upper, lower] = [sum(weights.slice(least)), sum(weights.slice(0, least))];
  const high = BigInt(found.get("likelier")[1]);
  requires(high > 0n && high < WORD, "a set that is always held, or never");
  const rebuilt = gridProgram(items, d, asked, size, least, weights, found.get("likelier")[1]);
  requires(JSON.stringify(steps) === JSON.stringify(rebuilt.steps), "other steps than those of a grid");
  requires(Object.keys(tables).length === Object.keys(rebuilt.tables).length, "other tables than those of a grid");
  for (const [name, table] of Object.entries(rebuilt.tables)) {
    requires(JSON.stringify(tables[name]) === JSON.stringify(table), "other tables than those of a grid");
  }
  requires(input.kind === "answer" && BigInt(input.count) === BigInt(d) ** BigInt(items) && upper + lower <= 1n << 63n, "another number of answers");
  const width = items * d <= 256 ? 1 : 2;
  requires(JSON.stringify(report.parts) === JSON.stringify([["uint", "report", width, asked * size]]), "another report");
  const [over, under] = [high * lower, (WORD - high) * upper];
  return over > under ? quotient(over, under) : quotient(under, over);
}
