// The interpreter of client programs: what a mechanism's client draws and sends, as data.

import { canonicalText, fromLittleEndian, joined, littleEndian, toHex, utf8, words } from "./bytes.js";
import { Draws, MOST_BOUND } from "./draws.js";
import { blake2b, sha256, shake } from "./hashes.js";
import { EACH, MOST, WHOLE, checkNextToNone, literal, sized, small, within } from "./numbers.js";
import { DRAWS, checkProgram, finite } from "./syntax.js";
import { tabled } from "./tables.js";

/** @typedef {import("./numbers.js").Whole} Whole */
/** @typedef {import("./numbers.js").Vector} Vector */
/** @typedef {(run: Run) => any} Step */
/** @typedef {(secret: Uint8Array, v: Whole, count: number) => bigint[]} Words */
/** @typedef {{ values: any[], draws: any, secret: any, lift?: (operate: (...given: any[]) => any) => (...given: any[]) => any }} Run */
/** @typedef {{ secret?: Uint8Array, draws?: any }} Given `secret`: that of the collection, see `secretWithin` */

const VERSION = 1;
const NUMBER = /^(0|-?[1-9][0-9]*)$/;
const PRIME = (1n << 61n) - 1n;
const LARGEST_WORD = (1n << 64n) - 1n;
const LEAST_SECRET_BYTES = 16;
const MOST_REMEMBERED = 16;
const MOST_HASHES = 2 ** 16;
const LARGEST_VALUE = 1n << 63n;

/**
 * What reads the secret in the stream's place, and so draws the same again: what becomes of a word.
 * @type {Map<string, (word: bigint, given: Whole, place: number) => Whole>}
 */
export const MEMO = new Map(
  /** @type {[string, (word: bigint, given: Whole, place: number) => Whole][]} */ ([
    ["kept_bits", (word, t) => (word < t ? 1 : 0)],
    ["kept_belows", (word, b, i) => small(word % (BigInt(within(b, 1, MOST_BOUND)) + BigInt(i)))],
    ["kept_top", (word, k) => small(word >> BigInt(64 - Number(within(k, 0, 64))))],
  ]),
);

/**
 * Public hash functions.
 * @type {Map<string, (seed: string) => (...given: any[]) => any>}
 */
export const HASHES = new Map(
  /** @type {[string, (seed: string) => (...given: any[]) => any][]} */ ([
    ["polynomial", polynomial],
    ["bloom", bloom],
  ]),
);

/**
 * A function that knows what it last worked out: a page may draw many reports of a few answers.
 * @template T
 * @param {(...given: any[]) => T} work
 * @returns {(...given: any[]) => T}
 */
function remembered(work) {
  const known = new Map();
  return (...given) => {
    const key = `${given}`;
    if (!known.has(key)) {
      if (known.size === MOST_REMEMBERED) known.clear();
      known.set(key, work(...given));
    }
    return known.get(key);
  };
}

/** @param {string} seed */
function polynomial(seed) {
  const key = blake2b(utf8(seed), { size: 32, person: "ldp-budget seed" });
  /** @type {(message: Uint8Array, size: number, person: string) => bigint[]} */
  const elements = (message, size, person) => words(blake2b(message, { size, key, person })).map((word) => word % PRIME);
  return (/** @type {Whole} */ j, /** @type {Whole} */ v, /** @type {Whole} */ m) => {
    const [a, b, c] = elements(littleEndian(within(j, 0, LARGEST_WORD), 8), 24, "coefficients");
    const [x] = elements(utf8(`${v}`), 8, "value");
    return small((BigInt(within(m, 1, MOST_BOUND)) * (((a * x + b) * x + c) % PRIME)) >> 61n);
  };
}

/** @param {string} seed */
function bloom(seed) {
  return remembered((j, v, m, n) => {
    const bits = new Array(sized(within(m, 1, MOST))).fill(0);
    const digest = shake(168, utf8(`ldp-budget bloom 1:${seed}:${j}:${v}`), 8 * Number(within(n, 0, MOST_HASHES)));
    for (const word of words(digest)) bits[Number(word % BigInt(m))] = 1;
    return bits;
  });
}

const derived = remembered((secret, context) => blake2b(utf8(context), { size: 32, key: sha256(secret), person: "ldp-budget" }));

/**
 * A user's secret for one collection: what is drawn from it tells nothing of what another draws.
 * @param {Uint8Array | undefined} secret
 * @param {string} context
 */
export function secretWithin(secret, context) {
  if (!(secret instanceof Uint8Array) || secret.length < LEAST_SECRET_BYTES) {
    throw new TypeError(`it needs a secret of at least ${LEAST_SECRET_BYTES} bytes, as a Uint8Array`);
  }
  return derived(secret, context);
}

/**
 * The first words of a secret for a name and a value.
 * @param {string} name
 * @returns {Words}
 */
function kept(name) {
  const bytes = utf8(name);
  const head = joined(utf8("ldp-budget memoised words 1"), littleEndian(bytes.length, 8), bytes);
  return remembered((secret, v, count) =>
    words(shake(136, joined(head, littleEndian(secret.length, 8), secret, littleEndian(v, 8)), 8 * count)),
  );
}

/**
 * How many words of a secret are read, once the numbers that they are compared with are in their ranges.
 * @param {string} name
 * @param {Whole} a
 * @param {Whole} n
 */
function checkedCount(name, a, n) {
  if (name === "kept_top") return (within(a, 0, 64), 1);
  const count = sized(n);
  if (name === "kept_bits") within(a, 0, LARGEST_WORD + 1n);
  else within(BigInt(within(a, 1, MOST_BOUND)) + BigInt(Math.max(0, count - 1)), 1, MOST_BOUND);
  return count;
}

export class Program {
  /**
   * @param {any} definition a collection's public definition, or what of it is the program
   * @throws {TypeError} where it has an operator that this client does not know
   */
  constructor(definition) {
    if (definition.format !== "ldp-budget client" || definition.version !== VERSION) {
      throw new TypeError(`this client reads definitions of version ${VERSION}: got ${definition.version}`);
    }
    checkProgram(definition);
    this.definition = definition;
    /** @type {Map<string, Step>} */
    this.names = new Map([["value", (run) => run.values[0]]]);
    for (const [name, table] of Object.entries(definition.tables)) {
      const entries = tabled(table);
      this.names.set(name, () => entries);
    }
    /** @type {Step[]} */
    this.steps = definition.steps.map((/** @type {[string, any]} */ [name, expression], /** @type {number} */ i) => {
      const step = this.compile(expression);
      this.names.set(name, (run) => run.values[i + 1]);
      return step;
    });
    this.parts = definition.report.parts.map((/** @type {any[]} */ part) => this.part(part));
    /** How many bytes a report has. */
    this.size = sized(this.parts.reduce((/** @type {number} */ size, /** @type {any} */ part) => size + part.size, 0));
    this.memo = definition.memo ? this.named(definition.memo) : undefined;
  }

  /**
   * @param {string} name
   * @returns {Step}
   */
  named(name) {
    return /** @type {Step} */ (this.names.get(name));
  }

  /**
   * An expression as a function of what was worked out before it. No code is made of text: a strict CSP holds.
   * @param {any} expression
   * @returns {Step}
   */
  compile(expression) {
    if (Array.isArray(expression)) return this.call(expression[0], expression.slice(1));
    if (this.names.has(expression)) return this.named(expression);
    const number = literal(expression);
    return () => number;
  }

  /**
   * @param {string} name
   * @param {any[]} given
   * @returns {Step}
   */
  call(name, given) {
    const memo = MEMO.get(name);
    const hash = HASHES.get(name);
    const steps = (memo || hash ? given.slice(1) : given).map((each) => this.compile(each));
    /** @param {Run} run */
    const worked = (run) => steps.map((step) => step(run));
    if (memo) {
      const words = kept(`${this.definition.context} ${given[0]}`);
      const one = name === "kept_top";
      return (run) => {
        const [v, a, n] = worked(run);
        // Draws that are looked at in every way have these of their own.
        if (run.draws.kept) return run.draws.kept(name, given[0], v, a, n);
        const found = words(run.secret, within(v, -LARGEST_VALUE, LARGEST_VALUE - 1n), checkedCount(name, a, n)).map((word, i) => memo(word, a, i));
        return one ? found[0] : found;
      };
    }
    if (DRAWS.has(name)) return (run) => run.draws[name](...worked(run));
    if (hash) {
      const seeded = hash(given[0]);
      return (run) => seeded(...worked(run));
    }
    if (name === "list") return worked; // there may be more than a function takes
    const whole = WHOLE.get(name);
    if (whole) return (run) => whole(...worked(run));
    const each = /** @type {any} */ (EACH.get(name));
    return (run) => overVectors(name, run.lift ? run.lift(each) : each, worked(run));
  }

  /**
   * A part of the report: its size, and how it is written.
   * @param {any[]} part
   */
  part([kind, name, ...more]) {
    const step = this.named(name);
    const count = more.at(-1);
    const value = (/** @type {Run} */ run) => listed(step(run), count);
    if (kind === "packed") {
      return {
        size: Math.ceil(sized(count) / 8),
        value,
        /** @type {(run: Run, out: Uint8Array) => void} */
        write: (run, out) =>
          value(run).forEach((bit, i) => {
            if (bit === 1) out[i >> 3] |= 1 << (i & 7);
            else if (bit !== 0) within(bit, 0, 1); // and so refused
          }),
        /** @type {(bytes: Uint8Array) => Vector} */
        read: (bytes) => Array.from({ length: 8 * bytes.length }, (_, i) => (bytes[i >> 3] >> (i & 7)) & 1),
      };
    }
    if (kind === "uint") {
      const size = within(more[0], 1, 8);
      const largest = (1n << BigInt(8 * size)) - 1n;
      return {
        size: sized(size * sized(count)),
        value,
        /** @type {(run: Run, out: Uint8Array) => void} */
        write: (run, out) => value(run).forEach((number, i) => out.set(littleEndian(within(number, 0, largest), size), size * i)),
        /** @type {(bytes: Uint8Array) => Vector} */
        read: (bytes) => Array.from({ length: count }, (_, i) => small(BigInt(fromLittleEndian(bytes.subarray(size * i, size * (i + 1)))))),
      };
    }
    if (kind === "float64") {
      const [origin, unit] = more.slice(0, 2).map(finite);
      return {
        size: 8,
        /** @type {(run: Run, out: Uint8Array) => void} */
        write: (run, out) => {
          const number = origin + Number(BigInt(step(run)) + BigInt(more[2])) * unit;
          if (!Number.isFinite(number)) throw new RangeError(`the report needs a number that a double holds: got ${number}`);
          new DataView(out.buffer, out.byteOffset).setFloat64(0, number, true);
        },
      };
    }
    throw new TypeError(`the part ${kind} of a report`);
  }

  /**
   * The whole number of an answer.
   * @param {any} answer
   * @returns {Whole}
   */
  read(answer) {
    const given = this.definition.input;
    if (typeof answer === "string") answer = canonicalText(answer);
    if (given.kind === "answer") return readAnswer(answer, BigInt(given.count), given.text);
    if (given.kind === "word") return readWord(answer, sized(given.length));
    const [lower, upper] = [given.lower, given.upper].map(finite);
    if (typeof answer !== "number" || !(answer >= lower && answer <= upper)) {
      throw new RangeError(`the answer must be a number from ${lower} to ${upper}: got ${answer}`);
    }
    const point = given.times === undefined ? Math.floor((answer - lower) / finite(given.step)) : toEven((answer - lower) * finite(given.times));
    return Math.min(Math.max(point, 0), given.last);
  }

  /**
   * One report.
   * @param {any} answer
   * @param {Given} given
   */
  run(answer, given = {}) {
    const run = this.evaluate(answer, given);
    const report = new Uint8Array(this.size);
    let at = 0;
    for (const part of this.parts) {
      part.write(run, report.subarray(at, at + part.size));
      at += part.size;
    }
    return report;
  }

  /**
   * @param {any} answer
   * @param {Given} given
   * @returns {Run}
   */
  evaluate(answer, { secret, draws = new Draws() } = {}) {
    const value = this.read(answer);
    /** @type {Run} */
    const run = { values: [value], draws, secret };
    for (const step of this.steps) run.values.push(step(run));
    return run;
  }

}

/**
 * @param {string} name
 * @param {(...numbers: any[]) => Whole} operate
 * @param {any[]} given
 */
function overVectors(name, operate, given) {
  const size = given.find(Array.isArray)?.length;
  if (size === undefined) return operate(...given);
  if (size === 0) checkNextToNone(name, given);
  /** @type {Vector[]} */
  const [a, b = [], c = []] = given.map((each) => (Array.isArray(each) ? listed(each, size) : new Array(size).fill(each)));
  return a.map((number, i) => operate(number, b[i], c[i]));
}

/**
 * A vector that has to have so many numbers; one alone is a vector too.
 * @param {Whole | Vector} found
 * @param {number} count
 */
function listed(found, count) {
  const vector = Array.isArray(found) ? found : [found];
  if (vector.length !== count) throw new RangeError(`the program needs ${count} numbers: got ${vector.length}`);
  return vector;
}

/**
 * @param {any} answer
 * @param {bigint} count
 * @param {boolean} text if any text is an answer
 */
function readAnswer(answer, count, text) {
  let number = -1n;
  if (typeof answer === "bigint" || Number.isSafeInteger(answer)) number = BigInt(answer);
  else if (text && typeof answer === "string" && answer) number = numberOf(answer, count);
  if (number >= 0n && number < count) return small(number);
  throw new RangeError(`the answer must be a whole number from 0 to ${count - 1n}${text ? ", or any text" : ""}: got ${answer}`);
}

/**
 * A word as the number whose bytes, the highest first, are its own in UTF-8, filled up with zeros.
 * @param {any} answer
 * @param {number} length in bytes
 */
function readWord(answer, length) {
  if (typeof answer === "bigint" || Number.isSafeInteger(answer)) return readAnswer(answer, 1n << BigInt(8 * length), false);
  const bytes = typeof answer === "string" && !/\p{Surrogate}/u.test(answer) ? utf8(answer) : new Uint8Array();
  if (!bytes.length || bytes.length > length || bytes.includes(0)) {
    throw new RangeError(`the answer must be a text of 1 to ${length} bytes in UTF-8: got ${answer}`);
  }
  return small(BigInt(`0x${toHex(bytes).padEnd(2 * length, "0")}`));
}

/**
 * The number of a text: of a whole number without leading zeros itself, of any other text its digest.
 * @param {string} text
 * @param {bigint} count
 */
function numberOf(text, count) {
  if (NUMBER.test(text)) return BigInt(text);
  // Half of a character has no form in UTF-8, and would be counted as another answer elsewhere.
  if (/\p{Surrogate}/u.test(text)) return -1n;
  return words(blake2b(utf8(text), { size: 8, person: "ldp-budget text" }))[0] % count;
}

/**
 * The nearest whole number, ties to even.
 * @param {number} x
 */
function toEven(x) {
  const next = Math.round(x);
  return next - x === 0.5 && next % 2 ? next - 1 : next;
}
