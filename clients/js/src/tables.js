// The tables of client programs: lists, and running totals of numbers that fall geometrically.

import { literal, sized, small } from "./numbers.js";

/** @typedef {import("./numbers.js").Vector} Vector */

/** @param {any} table */
export function tabled(table) {
  if (!Array.isArray(table)) return falling(table);
  return table.map((row) => (Array.isArray(row) ? row.map(literal) : literal(row)));
}

/**
 * Running totals of whole parts of numbers that fall geometrically, in decimals rounded down to so many digits.
 * @param {{ first: string, ratio: string, digits: number, floor: string | number, count: number }} table
 */
export function falling({ first, ratio, digits, floor, count }) {
  const least = BigInt(floor);
  sized(count);
  const most = 10n ** BigInt(digits);
  const [times, power] = decimal(ratio);
  let [weight, exponent] = decimal(first);
  let total = 0n;
  /** @type {Vector} */
  const totals = [0];
  for (let i = 0; i < count; i++) {
    const whole = wholePart(weight, exponent);
    total += whole > least ? whole : least;
    totals.push(small(total));
    weight *= times;
    exponent += power;
    for (; weight >= most; exponent++) weight /= 10n;
  }
  return totals;
}

/**
 * The whole part of weight·10^exponent, whose weight has at most 1000 digits. Powers that do not matter are not worked out.
 * @param {bigint} weight
 * @param {number} exponent
 */
function wholePart(weight, exponent) {
  if (weight === 0n || exponent < -1000) return 0n;
  if (exponent > 1300) throw new RangeError("a table of numbers that are too large");
  return exponent < 0 ? weight / 10n ** BigInt(-exponent) : weight * 10n ** BigInt(exponent);
}

/**
 * A decimal as a whole number and a power of ten.
 * @param {string} text
 * @returns {[bigint, number]}
 */
function decimal(text) {
  const [, whole, fraction = "", power = "0"] = /** @type {RegExpExecArray} */ (/^([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(text));
  return [BigInt(whole + fraction), Number(power) - fraction.length];
}
