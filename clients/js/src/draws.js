// The draws that a client program makes of a stream of random bytes. The order in which bytes are read is a contract:
// every client of every language reads the same stream in the same way.

import { fromLittleEndian } from "./bytes.js";
import { normal } from "./normal.js";
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

/**
 * The operating system's cryptographic generator.
 * @type {Read}
 */
export function systemBytes(count) {
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count; at += MOST_BYTES) globalThis.crypto.getRandomValues(bytes.subarray(at, at + MOST_BYTES));
  return bytes;
}

/** @param {bigint} number */
const bitLength = (number) => (number ? number.toString(2).length : 0);

/**
 * How many bytes a word has that holds `last`.
 * @param {bigint} last
 */
const widthOf = (last) => /** @type {number} */ ([1, 2, 4, 8].find((width) => last < 1n << BigInt(8 * width)));

/**
 * The i-th word of some bytes, cut to the bits that `last` needs.
 * @param {Uint8Array} bytes
 * @param {number} width
 * @param {number} i
 * @param {bigint} last
 */
const wordOf = (bytes, width, i, last) => BigInt.asUintN(bitLength(last), fromLittleEndian(bytes.subarray(width * i, width * (i + 1))));

export class Draws {
  /** @param {Read} read */
  constructor(read = systemBytes) {
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
    if (threshold === 0n || threshold === ONE) return new Array(size).fill(threshold ? 1 : 0);
    const found = [];
    for (let at = 0; at < size; at += BLOCK) found.push(this.compared(threshold, Math.min(BLOCK, size - at), (threshold & LOW) !== 0n));
    return found.flat();
  }

  /** @param {Whole} t */
  bit_at(t) {
    return this.compared(BigInt(within(t, 0, ONE - 1n)), 1, true)[0];
  }

  /**
   * @param {bigint} threshold
   * @param {number} size
   * @param {boolean} ties whether more is read where a byte does not decide
   */
  compared(threshold, size, ties) {
    const top = Number(threshold >> 56n);
    const low = threshold & LOW;
    // What is read stays as it is only until more is read.
    const bytes = Array.from(this.read(size));
    const tied = ties ? bytes.filter((byte) => byte === top).length : 0;
    const more = tied ? this.read(7 * tied) : new Uint8Array(0);
    let at = 0;
    return bytes.map((byte) => {
      if (byte !== top || !ties) return byte < top ? 1 : 0;
      at += 7;
      return fromLittleEndian(more.subarray(at - 7, at)) < low ? 1 : 0;
    });
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
    const last = BigInt(within(b, 1, MOST_BOUND)) - 1n;
    const width = widthOf(last);
    const size = sized(n);
    /** @type {Vector} */
    let found = [];
    while (found.length < size) found = found.concat(this.words(width, size - found.length, last));
    return found;
  }

  /**
   * Words of some bytes, cut to the bits that `last` needs; those beyond it are left out.
   * @param {number} width
   * @param {number} count
   * @param {bigint} last
   * @returns {Vector}
   */
  words(width, count, last) {
    const bytes = this.read(width * count);
    const words = Array.from({ length: count }, (_, i) => wordOf(bytes, width, i, last));
    return words.flatMap((word) => (word <= last ? [small(word)] : []));
  }

  /**
   * One number below each bound, by words as wide as the largest needs.
   * @param {number[]} bounds
   */
  belowEach(bounds) {
    const width = widthOf(BigInt(Math.max(...bounds, 1) - 1));
    /** @type {number[]} */
    const found = [];
    let pending = bounds.map((_, slot) => slot);
    while (pending.length) {
      const bytes = this.read(width * pending.length).slice();
      pending = pending.filter((slot, i) => {
        const last = BigInt(bounds[slot] - 1);
        found[slot] = Number(wordOf(bytes, width, i, last));
        return found[slot] > Number(last);
      });
    }
    return found;
  }

  /**
   * @param {Whole} b
   * @param {Whole} n
   */
  belows_from(b, n) {
    return Array.from({ length: sized(n) }, (_, i) => this.below(BigInt(b) + BigInt(i)));
  }

  /**
   * @param {Whole} m
   * @param {Whole} n
   * @returns {Vector}
   */
  subset(m, n) {
    const size = sized(within(n, 0, m));
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
    const places = BigInt(within(k, 0, PLACES));
    for (let whole = 0n; ; whole += 1n << places) {
      const first = this.deviate();
      let last = first;
      let odd = true;
      for (let fresh = this.deviate(); fresh.isLess(last); fresh = this.deviate()) {
        last = fresh;
        odd = !odd;
      }
      if (odd) return this.signed(whole + (first.digits[0] >> (64n - places)));
    }
  }

  /** @param {Whole} k */
  normal(k) {
    return normal(this, BigInt(within(k, 0, PLACES)));
  }

  /**
   * The whole part of a deviate whose magnitude has this one, negative for one half of them.
   * @param {bigint} magnitude
   */
  signed(magnitude) {
    return small(this.bit(HALF) ? ~magnitude : magnitude);
  }

  deviate() {
    return new Deviate(this);
  }

  digit() {
    return fromLittleEndian(this.read(8));
  }
}

/** A uniform deviate, of which digits are drawn as far as comparisons ask for them. */
export class Deviate {
  /** @param {Draws} draws */
  constructor(draws) {
    this.draws = draws;
    this.digits = [draws.digit()];
  }

  /** @param {number} place */
  at(place) {
    if (place === this.digits.length) this.digits.push(this.draws.digit());
    return this.digits[place];
  }

  /** @param {Deviate} other */
  isLess(other) {
    for (let place = 0; ; place++) {
      const [mine, theirs] = [this.at(place), other.at(place)];
      if (mine !== theirs) return mine < theirs;
    }
  }
}
