// SHA-256 (FIPS 180-4), SHAKE (FIPS 202) and BLAKE2b with a key and a person (RFC 7693). Web Crypto has no SHAKE and
// no BLAKE2b, and its SHA-256 is asynchronous. Words of 64 bits are pairs of their low and their high half, as
// JavaScript works with BigInts far more slowly.

import { halves, joined, littleEndian, utf8 } from "./bytes.js";

// -- SHA-256 ------------------------------------------------------------------------------------------------------

const primes = [2];
for (let n = 3; primes.length < 64; n += 2) if (primes.every((p) => n % p)) primes.push(n);

/**
 * The first 32 bits of the fraction of a root.
 * @param {number} x
 */
const fraction = (x) => ((x % 1) * 2 ** 32) | 0;
const K = primes.map((p) => fraction(Math.cbrt(p)));

/**
 * The first 64 bits of the fraction of a square root, by Newton's method.
 * @param {number} p
 */
function root(p) {
  let x = 1n << 67n;
  for (let i = 0; i < 20; i++) x = (x + (BigInt(p) << 128n) / x) >> 1n;
  return littleEndian(x, 8);
}
/** The words that BLAKE2b begins with; the high halves are SHA-256's. */
const START = halves(joined(...primes.slice(0, 8).map(root)));

/**
 * @param {Uint8Array} message
 * @returns {Uint8Array}
 */
export function sha256(message) {
  const data = new Uint8Array(((message.length + 72) >> 6) << 6);
  data.set(message);
  data[message.length] = 0x80;
  const view = new DataView(data.buffer);
  view.setUint32(data.length - 4, message.length * 8);
  const h = START.filter((_, i) => i & 1);
  const w = new Int32Array(64);
  /** @type {(x: number, n: number) => number} */
  const right = (x, n) => (x >>> n) | (x << (32 - n));
  for (let start = 0; start < data.length; start += 64) {
    let [a, b, c, d, e, f, g, k] = h;
    for (let i = 0; i < 64; i++) {
      const x = w[i - 15];
      const y = w[i - 2];
      w[i] =
        i < 16
          ? view.getInt32(start + 4 * i)
          : w[i - 16] + w[i - 7] + (right(x, 7) ^ right(x, 18) ^ (x >>> 3)) + (right(y, 17) ^ right(y, 19) ^ (y >>> 10));
      const one = k + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
      const two = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      [a, b, c, d, e, f, g, k] = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
    }
    [a, b, c, d, e, f, g, k].forEach((x, i) => (h[i] += x));
  }
  return new Uint8Array(32).map((_, i) => h[i >> 2] >>> (8 * (~i & 3))); // the highest byte first
}

// -- SHAKE --------------------------------------------------------------------------------------------------------

/** Of each step of rho and pi: where a lane comes from, by how much it turns, and where it goes. */
const TURNS = new Uint8Array(72);
for (let t = 0, x = 1, y = 0; t < 24; t++) {
  const from = 2 * (x + 5 * y);
  const turn = (((t + 1) * (t + 2)) / 2) % 64;
  [x, y] = [y, (2 * x + 3 * y) % 5];
  // From 32 on, the halves change places.
  TURNS.set([from + (turn >> 5), turn & 31, 2 * (x + 5 * y)], 3 * t);
}

/** The low and the high half of each round's constant. */
const ROUNDS = Array.from({ length: 24 }, () => [0, 0]);
for (let round = 0, state = 1; round < 24; round++) {
  for (let j = 0; j < 7; j++) {
    const place = 2 ** j - 1;
    if (state & 1) ROUNDS[round][place >> 5] |= 1 << (place & 31);
    state = (state << 1) ^ ((state >> 7) * 0x171);
  }
}

/**
 * Keccak-f[1600] of 25 lanes, each as its low and its high half.
 * @param {Int32Array} s
 * @param {Int32Array} b as many, for what is between
 */
function keccak(s, b) {
  const c = new Int32Array(10);
  for (const [low, high] of ROUNDS) {
    for (let x = 0; x < 10; x++) c[x] = s[x] ^ s[x + 10] ^ s[x + 20] ^ s[x + 30] ^ s[x + 40];
    for (let x = 0; x < 10; x++) {
      const next = (x + 2) % 10;
      // The lane to the right, turned by one: each half takes the top bit of the other.
      const turned = ((c[next] << 1) | (c[next ^ 1] >>> 31)) ^ c[(x + 8) % 10];
      for (let y = x; y < 50; y += 10) s[y] ^= turned;
    }
    b[0] = s[0];
    b[1] = s[1];
    for (let i = 0; i < 72; i += 3) {
      const n = TURNS[i + 1];
      const to = TURNS[i + 2];
      const one = s[TURNS[i]];
      const other = s[TURNS[i] ^ 1];
      b[to] = (one << n) | (other >>> (32 - n));
      b[to + 1] = (other << n) | (one >>> (32 - n));
    }
    for (let y = 0; y < 50; y += 10) {
      for (let i = y; i < y + 2; i++) {
        s[i] = b[i] ^ (~b[i + 2] & b[i + 4]);
        s[i + 2] = b[i + 2] ^ (~b[i + 4] & b[i + 6]);
        s[i + 4] = b[i + 4] ^ (~b[i + 6] & b[i + 8]);
        s[i + 6] = b[i + 6] ^ (~b[i + 8] & b[i]);
        s[i + 8] = b[i + 8] ^ (~b[i] & b[i + 2]);
      }
    }
    s[0] ^= low;
    s[1] ^= high;
  }
}

/**
 * SHAKE-128 where `rate` is 168, SHAKE-256 where it is 136.
 * @param {number} rate
 * @param {Uint8Array} message
 * @param {number} size
 */
export function shake(rate, message, size) {
  const state = new Int32Array(50);
  const between = new Int32Array(50);
  const data = new Uint8Array(rate * Math.ceil((message.length + 1) / rate));
  data.set(message);
  data[message.length] = 0x1f;
  data[data.length - 1] ^= 0x80;
  halves(data).forEach((half, i) => {
    const place = i % (rate / 4);
    if (i && !place) keccak(state, between);
    state[place] ^= half;
  });
  return new Uint8Array(size).map((_, i) => {
    const place = i % rate;
    if (!place) keccak(state, between);
    return state[place >> 2] >>> (8 * (place & 3));
  });
}

// -- BLAKE2b ------------------------------------------------------------------------------------------------------

/** In which order the words of a block are mixed in by each of ten rounds, as the places of their low halves. */
const SIGMA = Array.from(
  "0123456789abcdef" +
    "ea489fd61c02b753" +
    "b8c052fdae367194" +
    "7931dcbe265a40f8" +
    "905724afe1bc683d" +
    "2c6a0b834d75fe19" +
    "c51fed4a0763928b" +
    "db7ec13950f4862a" +
    "6fe9b308c2d714a5" +
    "a2847615fb9e3cd0",
  (digit) => 2 * parseInt(digit, 16),
);

/** Of each step of a round, which four words it mixes: a column, then a diagonal. */
const PLACES = Array.from({ length: 8 }, (_, i) => [0, 1, 2, 3].map((row) => 8 * row + 2 * ((i + row * (i >> 2)) & 3)));

const NO_KEY = new Uint8Array(0);

/**
 * Elements of the arrays are halves, to which what is put there is cut.
 * @param {Uint32Array} v
 * @param {Uint32Array} m
 * @param {number} round
 */
function blakeRound(v, m, round) {
  for (let i = 0; i < 16; i++) {
    const [a, b, c, d] = PLACES[i >> 1];
    add(v, a, v, b);
    add(v, a, m, SIGMA[16 * (round % 10) + i]);
    turn(v, d, a, i & 1 ? 16 : 32);
    add(v, c, v, d);
    turn(v, b, c, i & 1 ? 63 : 24);
  }
}

/** @type {(v: Uint32Array, to: number, from: Uint32Array, at: number) => void} */
function add(v, to, from, at) {
  const low = v[to] + from[at];
  v[to] = low;
  v[to + 1] += from[at + 1] + (low > 0xffffffff ? 1 : 0);
}

/**
 * Adds a word modulo 2, and turns the sum to the right.
 * @type {(v: Uint32Array, to: number, by: number, n: number) => void}
 */
function turn(v, to, by, n) {
  const low = v[to] ^ v[by];
  const high = v[to + 1] ^ v[by + 1];
  const swap = n >> 5; // of a turn by 32 or more
  v[to + swap] = (low >>> n) | (high << 1 << (31 - n));
  v[to + 1 - swap] = (high >>> n) | (low << 1 << (31 - n));
}

/**
 * @param {Uint8Array} message
 * @param {{ size: number, key?: Uint8Array, person?: string }} options
 */
export function blake2b(message, { size, key = NO_KEY, person = "" }) {
  const parameters = new Uint8Array(64);
  parameters.set([size, key.length, 1, 1]);
  parameters.set(utf8(person), 48);
  const h = halves(parameters).map((half, i) => half ^ START[i]);
  const start = key.length && 128;
  const length = start + message.length;
  const blocks = Math.ceil(length / 128) || 1;
  const data = new Uint8Array(128 * blocks);
  data.set(key);
  data.set(message, start);
  const v = new Uint32Array(32);
  for (let block = 1; block <= blocks; block++) {
    const m = halves(data.subarray(128 * block - 128, 128 * block));
    v.set(h);
    v.set(START, 16);
    v[24] ^= Math.min(128 * block, length);
    if (block === blocks) for (const half of [28, 29]) v[half] = ~v[half];
    for (let round = 0; round < 12; round++) blakeRound(v, m, round);
    for (let i = 0; i < 16; i++) h[i] ^= v[i] ^ v[i + 16];
  }
  return new Uint8Array(size).map((_, i) => h[i >> 2] >>> (8 * (i & 3)));
}
