// The draws that a client program makes of a stream of random bytes. The order in which bytes are read is a contract:
// every client of every language reads the same stream in the same way.

import { fromLittleEndian, halves } from "./bytes.js";
import { normal, shifted, signed } from "./normal.js";
import { ascending, sized, small, within } from "./numbers.js";

/** @typedef {import("./numbers.js").Whole} Whole */
/** @typedef {import("./numbers.js").Vector} Vector */
/** @typedef {(count: number) => Uint8Array} Read the next so many uniform bytes */

const ONE = 1n << 64n;
const HALF = ONE >> 1n;
const LOW = (1n << 56n) - 1n;
export const MOST_BOUND = 1n << 63n;
/** So many bits are drawn at a time, with what their ties read. */
const BLOCK = 1 << 18;
/** The most places of a deviate. */
const PLACES = 40;
// A browser gives out no more at a time.
const MOST_BYTES = 65536;
/** So many are asked for at least. */
const POOL = 256;

/**
 * The operating system's cryptographic generator.
 * @type {Read}
 */
export function systemBytes(count) {
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count; at += MOST_BYTES) globalThis.crypto.getRandomValues(bytes.subarray(at, at + MOST_BYTES));
  return bytes;
}

/**
 * The same generator for one report. To ask it takes longer than some more bytes do: what is not read ends with the report.
 * @returns {Read}
 */
function systemStream() {
  /** @type {Uint8Array} */
  let pool = new Uint8Array(0);
  return (count) => {
    if (pool.length < count) pool = systemBytes(Math.max(count, POOL));
    const found = pool.subarray(0, count);
    pool = pool.subarray(count);
    return found;
  };
}

/**
 * How many bytes a word has that holds `last`.
 * @param {Whole} last
 */
const widthOf = (last) => /** @type {number} */ ([1, 2, 4, 8].find((width) => last < 256 ** width));

/**
 * A word cut to the bits that `last` needs; it is a BigInt where they may be more than 32.
 * @param {Whole} word
 * @param {Whole} last
 */
const cut = (word, last) =>
  typeof word === "bigint" ? small(BigInt.asUintN(last.toString(2).length, word)) : word % 2 ** (32 - Math.clz32(Number(last)));

export class Draws {
  /** @param {Read} read */
  constructor(read = systemStream()) {
    this.read = read;
  }

  /** @param {Whole} t */
  bit(t) {
    return this.bits(t, 1)[0];
  }

  /**
   * @param {Whole} t
   * @param {Whole} n
   */
  bits(t, n) {
    const threshold = BigInt(within(t, 0, ONE));
    const size = sized(n);
    if (!(threshold % ONE)) return new Array(size).fill(threshold ? 1 : 0);
    /** @type {number[]} */
    let found = [];
    while (found.length < size) found = found.concat(this.compare(threshold, Math.min(BLOCK, size - found.length), (threshold & LOW) !== 0n));
    return found;
  }

  /** @param {Whole} t */
  bit_at(t) {
    return this.compare(BigInt(within(t, 0, ONE - 1n)), 1, true)[0];
  }

  /**
   * @param {bigint} threshold
   * @param {number} size
   * @param {boolean} ties whether more is read where a byte does not decide
   */
  compare(threshold, size, ties) {
    const top = Number(threshold >> 56n);
    const low = threshold & LOW;
    /** @type {number[]} */
    const found = [];
    const tied = [];
    for (const byte of this.read(size)) {
      if (byte === top && ties) tied.push(found.length);
      found.push(byte < top ? 1 : 0);
    }
    const more = this.read(7 * tied.length);
    tied.forEach((place, i) => (found[place] = fromLittleEndian(more.subarray(7 * i, 7 * i + 7)) < low ? 1 : 0));
    return found;
  }

  /** @param {Vector} vector */
  bits_each(vector) {
    return vector.map((t) => this.bit(t));
  }

  /** @param {Whole} b */
  below(b) {
    return this.belows(b, 1)[0];
  }

  /**
   * @param {Whole} b
   * @param {Whole} n
   * @returns {Vector}
   */
  belows(b, n) {
    const last = small(BigInt(within(b, 1, MOST_BOUND)) - 1n);
    const size = sized(n);
    /** @type {Vector} */
    let found = [];
    while (found.length < size) {
      const words = this.words(widthOf(last), new Array(size - found.length).fill(last));
      found = found.concat(words.filter((word) => word <= last));
    }
    return found;
  }

  /**
   * Words of some bytes, each cut to the bits that a number needs.
   * @param {number} width
   * @param {Vector} numbers
   */
  words(width, numbers) {
    const bytes = this.read(width * numbers.length);
    return numbers.map((last, i) => cut(fromLittleEndian(bytes.subarray(width * i, width * (i + 1))), last));
  }

  /**
   * One number up to each of these, by words as wide as the largest needs.
   * @param {number[]} lasts
   */
  belowEach(lasts) {
    const width = widthOf(Math.max(...lasts));
    /** @type {Vector} */
    const found = [];
    for (let pending = lasts.map((_, slot) => slot); pending.length; ) {
      const words = this.words(width, pending.map((slot) => lasts[slot]));
      pending = pending.filter((slot, i) => (found[slot] = words[i]) > lasts[slot]);
    }
    return found;
  }

  /**
   * @param {Whole} b
   * @param {Whole} n
   */
  belows_from(b, n) {
    within(BigInt(within(b, 1, MOST_BOUND)) + BigInt(Math.max(0, sized(n) - 1)), 1, MOST_BOUND);
    return Array.from({ length: sized(n) }, (_, i) => this.below(BigInt(b) + BigInt(i)));
  }

  /**
   * @param {Whole} m
   * @param {Whole} n
   * @returns {Vector}
   */
  subset(m, n) {
    const size = sized(within(n, 0, within(m, 1, MOST_BOUND)));
    if (2 * size <= m) return this.distinct(m, size);
    const population = sized(m);
    const left = new Set(this.distinct(population, population - size));
    return Array.from({ length: population }, (_, i) => i).filter((i) => !left.has(i));
  }

  /**
   * @param {Whole} population
   * @param {number} size
   */
  distinct(population, size) {
    const row = this.belows(population, size).sort(ascending);
    for (;;) {
      const repeated = row.flatMap((number, i) => (i && number === row[i - 1] ? [i] : []));
      if (!repeated.length) return row;
      const drawn = this.belows(population, repeated.length);
      repeated.forEach((place, i) => (row[place] = drawn[i]));
      row.sort(ascending);
    }
  }

  /** @param {Vector} vector */
  shuffle(vector) {
    const row = [...vector];
    for (let last = row.length - 1; last > 0; last--) {
      const chosen = Number(this.below(last + 1));
      [row[chosen], row[last]] = [row[last], row[chosen]];
    }
    return row;
  }

  /** @param {Whole} t */
  geometric(t) {
    let count = 0;
    within(t, 0, ONE - 1n);
    while (this.bit(t)) count++;
    return count;
  }

  /** @param {Whole} k */
  laplace(k) {
    const places = Number(within(k, 0, PLACES));
    for (let whole = 0; ; whole++) {
      const [first] = this.deviates(1);
      let last = first;
      let odd = true;
      for (let [fresh] = this.deviates(1); this.isLess(fresh, last); [fresh] = this.deviates(1)) {
        last = fresh;
        odd = !odd;
      }
      if (odd) return signed(shifted(whole, first, places), this.bit(HALF));
    }
  }

  /** @param {Whole} k */
  normal(k) {
    return normal(this, Number(within(k, 0, PLACES)));
  }

  /**
   * Uniform deviates that are drawn together, as their digits of 32 bits: two that are drawn at once.
   * @param {number} count
   */
  deviates(count) {
    const found = halves(this.read(8 * count));
    const drawn = [];
    for (let i = 0; i < found.length; i += 2) drawn.push([found[i + 1], found[i]]);
    return drawn;
  }

  /**
   * Whether one deviate is less than another; further digits are drawn as far as that asks for them.
   * @param {number[]} one
   * @param {number[]} other
   */
  isLess(one, other) {
    for (let place = 0; ; place++) {
      for (const each of [one, other]) if (place === each.length) each.push(...this.deviates(1)[0]);
      if (one[place] !== other[place]) return one[place] < other[place];
    }
  }
}
