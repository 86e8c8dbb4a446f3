// Whole numbers of any size: a Number as long as that is exact, else a BigInt.

/** @typedef {number | bigint} Whole */
/** @typedef {Whole[]} Vector */

/** The longest vector, and the largest number of bits: more is refused before it is made. */
export const MOST = 2 ** 23;
const MOST_BITS = 65536;
const LARGEST = 1n << BigInt(MOST_BITS);

/**
 * @template {Whole} T
 * @param {T} number
 * @param {Whole} least
 * @param {Whole} most
 * @returns {T} `number`
 * @throws {RangeError} unless it is a whole number from `least` to `most`
 */
export function within(number, least, most) {
  number = /** @type {T} */ (number.valueOf()); // of a draw that was put off
  if ((typeof number === "bigint" || Number.isInteger(number)) && number >= least && number <= most) return number;
  throw new RangeError(`a number of the program must be a whole number from ${least} to ${most}: got ${number}`);
}

/**
 * How many of something, as a Number.
 * @param {Whole} number
 */
export const sized = (number) => Number(within(number, 0, MOST));

/**
 * @param {bigint} number
 * @returns {Whole}
 */
export function small(number) {
  if (number > LARGEST || number < -LARGEST) throw new RangeError(`a number of more than ${MOST_BITS} bits`);
  return number >= -9007199254740991n && number <= 9007199254740991n ? Number(number) : number;
}

/**
 * Both forms of an operation: on Numbers where the result is exact, else on BigInts.
 * @param {(a: any, b: any) => any} operate
 * @returns {(a: Whole, b: Whole) => Whole}
 */
function exact(operate) {
  return (a, b) => {
    if (typeof a === "number" && typeof b === "number") {
      const result = operate(a, b);
      if (Number.isSafeInteger(result)) return result;
    }
    return small(operate(BigInt(a), BigInt(b)));
  };
}

/**
 * @param {(a: bigint, b: bigint) => bigint} operate
 * @returns {(a: Whole, b: Whole) => Whole}
 */
const wide = (operate) => (a, b) => small(operate(BigInt(a), BigInt(b)));

/**
 * The same of bits: Numbers that hold them are of 32.
 * @param {(a: any, b: any) => any} operate
 * @returns {(a: Whole, b: Whole) => Whole}
 */
const bitwise = (operate) => (a, b) => (Number(a) | 0) === a && (Number(b) | 0) === b ? operate(a, b) : wide(operate)(a, b);

/** @type {(a: bigint, b: bigint) => bigint} */
const floored = (a, b) => a / b - (a % b !== 0n && a < 0n !== b < 0n ? 1n : 0n);

/** @param {Whole} a */
function parity(a) {
  let odd = 0;
  for (let rest = BigInt(within(a, 0, LARGEST)); rest; rest >>= 1n) odd ^= Number(rest & 1n);
  return odd;
}

/**
 * The operators that go over vectors one number at a time. A map: names of an object's own, such as `constructor`,
 * are no operators.
 * @type {Map<string, (...numbers: any[]) => Whole>}
 */
export const EACH = new Map(
  /** @type {[string, (...numbers: any[]) => Whole][]} */ ([
    ["add", exact((a, b) => a + b)],
    ["sub", exact((a, b) => a - b)],
    ["mul", exact((a, b) => a * b)],
    ["div", wide(floored)],
    ["mod", wide((a, b) => a - b * floored(a, b))],
    ["shr", wide((a, b) => a >> within(b, 0, MOST_BITS))],
    ["shl", wide((a, b) => a << within(b, 0, MOST_BITS))],
    ["and", bitwise((a, b) => a & b)],
    ["xor", bitwise((a, b) => a ^ b)],
    ["min", (a, b) => (a < b ? a : b)],
    ["max", (a, b) => (a > b ? a : b)],
    ["lt", (a, b) => (a < b ? 1 : 0)],
    ["ge", (a, b) => (a >= b ? 1 : 0)],
    ["eq", (a, b) => (a == b ? 1 : 0)], // a Number and a BigInt may be the same
    ["where", (c, a, b) => (c ? a : b)],
    ["parity", parity],
  ]),
);

/** @type {(vector: Vector, place: Whole, number: Whole) => Vector} */
function put(vector, place, number) {
  const changed = [...vector];
  changed[Number(within(place, 0, vector.length - 1))] = number;
  return changed;
}

/** @type {(vector: Vector, number: Whole) => number} */
function rank(vector, number) {
  let low = 0;
  let high = vector.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (vector[middle] <= number) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** @type {(vector: Vector, least: Whole) => Vector} */
function floyd(vector, least) {
  /** @type {Set<Whole>} */
  const chosen = new Set();
  return vector.map((drawn, place) => {
    drawn = drawn.valueOf();
    const own = chosen.has(drawn) ? small(BigInt(least) - 1n + BigInt(place)) : drawn;
    chosen.add(own);
    return own;
  });
}

/** @param {Vector} bits */
const join = (bits) => small(bits.reduce((/** @type {bigint} */ sum, bit, i) => sum | (BigInt(bit) << BigInt(i)), 0n));

/**
 * Ascending.
 * @param {Whole} a
 * @param {Whole} b
 */
export const ascending = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/**
 * The operators on whole vectors.
 * @type {Map<string, (...given: any[]) => any>}
 */
export const WHOLE = new Map(
  /** @type {[string, (...given: any[]) => any][]} */ ([
    ["at", (vector, place) => vector[Number(within(place, 0, vector.length - 1))]],
    ["put", put],
    ["sort", (vector) => [...vector].sort(ascending)],
    ["first", (bits) => Math.max(0, bits.findIndex(Number))],
    ["rank", rank],
    ["onehot", (place, size) => put(new Array(sized(size)).fill(0), place, 1)],
    ["join", join],
    ["floyd", floyd],
  ]),
);
