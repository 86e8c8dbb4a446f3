// SHA-256 (FIPS 180-4), SHAKE (FIPS 202) and BLAKE2b with a key and a person (RFC 7693). Web Crypto has no SHAKE and
// no BLAKE2b, and its SHA-256 makes everybody wait.

import { joined, littleEndian, utf8, words } from "./bytes.js";

// -- SHA-256 ------------------------------------------------------------------------------------------------------

const primes = [2];
for (let n = 3; primes.length < 64; n += 2) if (primes.every((p) => n % p)) primes.push(n);

/**
 * The first 32 bits of the fraction of a root.
 * @param {number} x
 */
const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
const K = primes.map((p) => fraction(Math.cbrt(p)));

/**
 * The first 64 bits of the fraction of a square root, by Newton's method; the first 32 are SHA-256's.
 * @param {number} p
 */
function root(p) {
  let x = 1n << 67n;
  for (let i = 0; i < 20; i++) x = (x + (BigInt(p) << 128n) / x) >> 1n;
  return BigInt.asUintN(64, x);
}
const START = primes.slice(0, 8).map(root);

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
  const h = Int32Array.from(START, (word) => Number(BigInt.asIntN(32, word >> 32n)));
  const w = new Int32Array(64);
  /** @type {(x: number, n: number) => number} */
  const right = (x, n) => (x >>> n) | (x << (32 - n));
  for (let start = 0; start < data.length; start += 64) {
    for (let i = 0; i < 64; i++) {
      if (i < 16) {
        w[i] = view.getInt32(start + 4 * i);
        continue;
      }
      const x = w[i - 15];
      const y = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (right(x, 7) ^ right(x, 18) ^ (x >>> 3)) + (right(y, 17) ^ right(y, 19) ^ (y >>> 10));
    }
    let [a, b, c, d, e, f, g, k] = h;
    for (let i = 0; i < 64; i++) {
      const one = k + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
      const two = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      [a, b, c, d, e, f, g, k] = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
    }
    [a, b, c, d, e, f, g, k].forEach((x, i) => (h[i] += x));
  }
  const out = new Uint8Array(32);
  h.forEach((x, i) => new DataView(out.buffer).setInt32(4 * i, x));
  return out;
}

// -- SHAKE --------------------------------------------------------------------------------------------------------

/** Of each step of rho and pi, where a lane goes and by how much it turns. */
const TURNS = /** @type {[number, number][]} */ ([]);
for (let t = 0, x = 1, y = 0; t < 24; t++) {
  [x, y] = [y, (2 * x + 3 * y) % 5];
  TURNS.push([x + 5 * y, (((t + 1) * (t + 2)) / 2) % 64]);
}

/** The low and the high half of each round's constant. */
const ROUNDS = Array.from({ length: 24 }, () => [0, 0]);
for (let round = 0, state = 1; round < 24; round++) {
  for (let j = 0; j < 7; j++) {
    const place = 2 ** j - 1;
    if (state & 1) ROUNDS[round][place >> 5] |= 1 << (place & 31);
    state = state & 0x80 ? ((state << 1) ^ 0x171) & 0xff : state << 1;
  }
}

/**
 * Keccak-f[1600] of 25 lanes, each as its low and its high half.
 * @param {Int32Array} s
 */
function keccak(s) {
  const c = new Int32Array(10);
  for (const constants of ROUNDS) {
    for (let x = 0; x < 10; x++) c[x] = s[x] ^ s[x + 10] ^ s[x + 20] ^ s[x + 30] ^ s[x + 40];
    for (let x = 0; x < 10; x++) {
      const next = (x + 2) % 10;
      // The lane to the right, turned by one: each half takes the top bit of the other.
      const turned = (c[next] << 1) | (c[next ^ 1] >>> 31);
      for (let y = 0; y < 50; y += 10) s[x + y] ^= turned ^ c[(x + 8) % 10];
    }
    let low = s[2];
    let high = s[3];
    for (const [lane, turn] of TURNS) {
      const n = turn & 31;
      const [a, b] = turn < 32 ? [low, high] : [high, low];
      [low, high] = [s[2 * lane], s[2 * lane + 1]];
      s[2 * lane] = n ? (a << n) | (b >>> (32 - n)) : a;
      s[2 * lane + 1] = n ? (b << n) | (a >>> (32 - n)) : b;
    }
    for (let y = 0; y < 50; y += 10) {
      const row = s.slice(y, y + 10);
      for (let x = 0; x < 10; x++) s[x + y] ^= ~row[(x + 2) % 10] & row[(x + 4) % 10];
    }
    s[0] ^= constants[0];
    s[1] ^= constants[1];
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
  let at = 0;
  /** @param {number} byte */
  const take = (byte) => (state[at >> 2] ^= byte << (8 * (at & 3)));
  for (const byte of message) {
    take(byte);
    if (++at === rate) {
      keccak(state);
      at = 0;
    }
  }
  take(0x1f);
  at = rate - 1;
  take(0x80);
  const out = new Uint8Array(size);
  for (let i = 0; i < size; i++) {
    const place = i % rate;
    if (!place) keccak(state);
    out[i] = state[place >> 2] >>> (8 * (place & 3));
  }
  return out;
}

// -- BLAKE2b ------------------------------------------------------------------------------------------------------

const MASK = (1n << 64n) - 1n;
const SIGMA = [
  "0123456789abcdef",
  "ea489fd61c02b753",
  "b8c052fdae367194",
  "7931dcbe265a40f8",
  "905724afe1bc683d",
  "2c6a0b834d75fe19",
  "c51fed4a0763928b",
  "db7ec13950f4862a",
  "6fe9b308c2d714a5",
  "a2847615fb9e3cd0",
].map((row) => Array.from(row, (digit) => parseInt(digit, 16)));

/** Of each step of a round, which four words it mixes: a column, then a diagonal. */
const PLACES = Array.from({ length: 8 }, (_, i) => [0, 1, 2, 3].map((row) => 4 * row + ((i + row * (i >> 2)) & 3)));

/**
 * Elements of the arrays are 64-bit words, to which what is put there is cut.
 * @param {BigUint64Array} v
 * @param {BigUint64Array} m
 * @param {number[]} order
 */
function blakeRound(v, m, order) {
  for (let i = 0; i < 8; i++) {
    const [a, b, c, d] = PLACES[i];
    for (const k of [0, 1]) {
      v[a] = BigInt.asUintN(64, v[a] + v[b] + m[order[2 * i + k]]);
      turn(v, d, a, k ? 16n : 32n);
      v[c] = BigInt.asUintN(64, v[c] + v[d]);
      turn(v, b, c, k ? 63n : 24n);
    }
  }
}

/** @type {(v: BigUint64Array, to: number, by: number, n: bigint) => void} */
function turn(v, to, by, n) {
  const x = v[to] ^ v[by];
  v[to] = (x >> n) | BigInt.asUintN(64, x << (64n - n));
}

/**
 * @param {Uint8Array} message
 * @param {{ size: number, key?: Uint8Array, person?: string }} options
 */
export function blake2b(message, { size, key = new Uint8Array(0), person = "" }) {
  const parameters = new Uint8Array(64);
  parameters.set([size, key.length, 1, 1]);
  parameters.set(utf8(person), 48);
  const h = words(parameters).map((word, i) => word ^ START[i]);
  const data = key.length ? joined(key, new Uint8Array(128 - key.length), message) : message;
  const blocks = Math.max(1, Math.ceil(data.length / 128));
  for (let block = 0; block < blocks; block++) {
    const part = new Uint8Array(128);
    part.set(data.subarray(128 * block, 128 * (block + 1)));
    const v = BigUint64Array.from([...h, ...START]);
    v[12] ^= BigInt(Math.min(128 * (block + 1), data.length));
    if (block === blocks - 1) v[14] ^= MASK;
    const m = new BigUint64Array(words(part));
    for (let round = 0; round < 12; round++) blakeRound(v, m, SIGMA[round % 10]);
    for (let i = 0; i < 8; i++) h[i] ^= v[i] ^ v[i + 8];
  }
  return joined(...h.map((word) => littleEndian(word, 8))).slice(0, size);
}
