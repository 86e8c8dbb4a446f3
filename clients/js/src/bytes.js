// Texts and numbers as bytes, and back.

const encoder = new TextEncoder();

/** @param {string} text */
export const utf8 = (text) => encoder.encode(text);

const ENDS = "[\\s\\x1c-\\x1f\\x85\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u2069\\ufeff]+";
const AROUND = new RegExp(`^${ENDS}|${ENDS}$`, "gu");

/**
 * A text as all clients compare it: in Unicode's form NFC, without spaces and invisible characters at its ends.
 * @param {string} text
 */
export const canonicalText = (text) => text.normalize("NFC").replace(AROUND, "");

/**
 * The lowest `size` bytes, of at most 8, of a whole number, little-endian; those of a negative one in two's complement.
 * @param {import("./numbers.js").Whole} number
 * @param {number} size
 */
export function littleEndian(number, size) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(number), true);
  return bytes.subarray(0, size);
}

/**
 * A whole number from at most 8 little-endian bytes: a BigInt where they are more than 4.
 * @param {Uint8Array} bytes
 * @returns {import("./numbers.js").Whole}
 */
export function fromLittleEndian(bytes) {
  if (bytes.length > 4) return (BigInt(fromLittleEndian(bytes.subarray(4))) << 32n) + BigInt(fromLittleEndian(bytes.subarray(0, 4)));
  let number = 0;
  for (let i = bytes.length; i--; ) number = number * 256 + bytes[i];
  return number;
}

/**
 * The 64-bit little-endian words of some bytes.
 * @param {Uint8Array} bytes
 */
export function words(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const found = [];
  for (let i = 0; i < bytes.length; i += 8) found.push(view.getBigUint64(i, true));
  return found;
}

/**
 * The same words, each as its low and its high half.
 * @param {Uint8Array} bytes
 */
export function halves(bytes) {
  const found = new Uint32Array(bytes.length >> 2);
  for (let i = 0; i < bytes.length; i++) found[i >> 2] |= bytes[i] << (8 * (i & 3));
  return found;
}

/** @param {Uint8Array[]} parts */
export function joined(...parts) {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** @param {Uint8Array} bytes */
export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * @param {string} hex
 * @throws {TypeError} for anything else: what is no digit must not read as zero
 */
export function fromHex(hex) {
  if (typeof hex !== "string" || !/^([0-9a-f]{2})*$/i.test(hex)) throw new TypeError("expected pairs of hex digits");
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
