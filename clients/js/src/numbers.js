// Whole numbers of any size: a Number as long as that is exact, else a BigInt.

/** @typedef {number | bigint} Whole */
/** @typedef {Whole[]} Vector */

/** The longest vector, and the largest number of bits: more is refused before it is made. */
export const MOST = 2 ** 23;
const MOST_BITS = 4096;
const MOST_SHIFT = 2 ** 16;
const LARGEST = 1n << BigInt(MOST_BITS);
const NUMBER = /^(0|-?[1-9][0-9]{0,1233})$/;

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
  if (number >= LARGEST || number <= -LARGEST) throw new RangeError(`a number of more than ${MOST_BITS} bits`);
  return number >= -9007199254740991n && number <= 9007199254740991n ? Number(number) : number;
}

/**
 * A whole number in a program.
 * @param {any} number
 */
export function literal(number) {
  if (Number.isSafeInteger(number) || (typeof number === "string" && NUMBER.test(number))) return small(BigInt(number));
  throw new TypeError(`no number, and nothing before it is called ${number}`);
}

/** A label or a seed. @param {any} text */
export const isPlain = (text) => typeof text === "string" && /^[ -~]{0,200}$/.test(text);

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
const bitwise = (operate) => (a, b) => {
  const [one, other] = [within(a, 0, LARGEST), within(b, 0, LARGEST)];
  return (Number(one) | 0) === one && (Number(other) | 0) === other ? operate(one, other) : wide(operate)(one, other);
};

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
    ["div", wide((a, b) => floored(a, within(b, 1, LARGEST)))],
    ["mod", wide((a, b) => a - b * floored(a, within(b, 1, LARGEST)))],
    ["shr", wide((a, b) => a >> within(b, 0, MOST_SHIFT))],
    ["shl", wide((a, b) => a << within(b, 0, MOST_SHIFT))],
    ["and", bitwise((a, b) => a & b)],
    ["xor", bitwise((a, b) => a ^ b)],
    ["min", (a, b) => (a < b ? a : b)],
    ["max", (a, b) => (a > b ? a : b)],
    ["lt", (a, b) => (a < b ? 1 : 0)],
    ["ge", (a, b) => (a >= b ? 1 : 0)],
    ["eq", (a, b) => (a == b ? 1 : 0)], // a Number and a BigInt may be the same
    ["where", (c, a, b) => (within(c, 0, 1) ? a : b)],
    ["parity", parity],
  ]),
);

/**
 * Checks the numbers that an operator takes next to vectors that have no entry: others are checked entry by entry.
 * @param {string} name
 * @param {any[]} given
 */
export function checkNextToNone(name, given) {
  const number = (/** @type {number} */ i, /** @type {Whole} */ least, /** @type {Whole} */ most) => Array.isArray(given[i]) || within(given[i], least, most);
  if (name === "div" || name === "mod") number(1, 1, LARGEST);
  if (name === "shl" || name === "shr") number(1, 0, MOST_SHIFT);
  if (name === "where") number(0, 0, 1);
  if (name === "and" || name === "xor") [0, 1].forEach((i) => number(i, 0, LARGEST));
}

/** @type {(vector: Vector, place: Whole, number: Whole) => Vector} */
function put(vector, place, number) {
  const changed = [...vector];
  changed[Number(within(place, 0, vector.length - 1))] = number;
  return changed;
}

/** Vectors that are known to ascend: tables, which are the same objects in every run. @type {WeakSet<Vector>} */
const ascends = new WeakSet();

/** @type {(vector: Vector, number: Whole) => number} */
function rank(vector, number) {
  if (!ascends.has(vector)) {
    for (let i = 1; i < vector.length; i++) {
      if (vector[i - 1] > vector[i]) throw new RangeError("the program needs a vector that ascends");
    }
    ascends.add(vector);
  }
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
const flags = (bits) => bits.map((bit) => Number(within(bit, 0, 1)));

/** @param {Vector} bits */
const join = (bits) => small(flags(bits).reduce((sum, bit, i) => sum | (BigInt(bit) << BigInt(i)), 0n));

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
    ["first", (bits) => Math.max(0, flags(bits).indexOf(1))],
    ["rank", rank],
    ["onehot", (place, size) => put(new Array(sized(size)).fill(0), place, 1)],
    ["join", join],
    ["floyd", floyd],
  ]),
);
