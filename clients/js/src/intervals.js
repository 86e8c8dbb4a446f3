// Bounds of the numbers that an operator can make of numbers within bounds.

/** @typedef {[bigint, bigint]} Interval both ends belong to it */

const LARGEST = 1n << 4096n;
const BIT = /** @type {Interval} */ ([0n, 1n]);

/** A bound that cannot be confirmed, and why. */
export class Unconfirmed extends Error {
  /** @param {string} why */
  constructor(why) {
    super(why);
    this.name = "Unconfirmed";
  }
}

/** @type {(...ends: bigint[]) => Interval} */
export const hull = (...ends) => [ends.reduce((a, b) => (a < b ? a : b)), ends.reduce((a, b) => (a > b ? a : b))];

/** @type {(a: bigint, b: bigint) => bigint} */
const floored = (a, b) => a / b - (a % b !== 0n && a < 0n ? 1n : 0n); // b > 0

/** @type {(holds: boolean, why: string) => void} */
export function requires(holds, why) {
  if (!holds) throw new Unconfirmed(why);
}

/** @type {(f: (a: bigint, b: bigint) => bigint) => (a: Interval, b: Interval) => Interval} */
const corners = (f) => (a, b) => hull(f(a[0], b[0]), f(a[0], b[1]), f(a[1], b[0]), f(a[1], b[1]));

/** @type {(a: Interval, b: Interval) => void} */
const natural = (...each) => each.forEach(([low]) => requires(low >= 0n, "bits of a number below 0"));

/** @type {(b: Interval) => void} */
const shifts = ([low, high]) => requires(low >= 0n && high <= 2048n, "a shift that may be too wide");

/**
 * Of each operator. It is refused where an operator could fail for some of the numbers: silence would give the answer away.
 * @type {Map<string, (...given: Interval[]) => Interval>}
 */
const OPERATORS = new Map(
  /** @type {[string, (...given: Interval[]) => Interval][]} */ ([
    ["add", (a, b) => [a[0] + b[0], a[1] + b[1]]],
    ["sub", (a, b) => [a[0] - b[1], a[1] - b[0]]],
    ["mul", corners((a, b) => a * b)],
    ["div", (a, b) => (requires(b[0] > 0n, "a division by 0"), corners(floored)(a, b))],
    ["mod", (a, b) => (requires(b[0] > 0n, "a division by 0"), a[0] >= 0n && a[1] < b[0] ? a : [0n, b[1] - 1n])],
    ["shr", (a, b) => (shifts(b), corners((x, y) => x >> y)(a, b))],
    ["shl", (a, b) => (shifts(b), corners((x, y) => x << y)(a, b))],
    ["and", (a, b) => (natural(a, b), [0n, a[1] < b[1] ? a[1] : b[1]])],
    ["xor", (a, b) => (natural(a, b), [0n, (1n << BigInt((a[1] | b[1]).toString(2).length)) - 1n])],
    ["min", (a, b) => [hull(a[0], b[0])[0], hull(a[1], b[1])[0]]],
    ["max", (a, b) => [hull(a[0], b[0])[1], hull(a[1], b[1])[1]]],
    ["lt", (a, b) => (a[1] < b[0] ? [1n, 1n] : a[0] >= b[1] ? [0n, 0n] : BIT)],
    ["ge", (a, b) => (a[0] >= b[1] ? [1n, 1n] : a[1] < b[0] ? [0n, 0n] : BIT)],
    ["eq", (a, b) => (a[1] < b[0] || b[1] < a[0] ? [0n, 0n] : BIT)],
    ["where", (c, a, b) => (requires(c[0] >= 0n && c[1] <= 1n, "a condition that is neither 0 nor 1"), hull(...a, ...b))],
    ["parity", (a) => (requires(a[0] >= 0n, "bits of a number below 0"), BIT)],
  ]),
);

/**
 * @param {string} name of an operator that goes number by number
 * @param {Interval[]} given
 */
export function intervalOf(name, given) {
  const operator = OPERATORS.get(name);
  if (!operator || given.length !== operator.length) {
    // Functions made by `corners` take two, as `operator.length` says; what it does not know it refuses.
    throw new Unconfirmed(`the operator ${name} of ${given.length} arguments`);
  }
  const found = operator(...given);
  requires(found[0] > -LARGEST && found[1] < LARGEST, "numbers without bounds");
  return found;
}
