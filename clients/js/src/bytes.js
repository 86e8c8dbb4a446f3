// Texts and numbers as bytes, and back.

const encoder = new TextEncoder();

/** @param {string} text */
export const utf8 = (text) => encoder.encode(text);

/**
 * `size` bytes of a whole number >= 0, little-endian.
 * @param {import("./numbers.js").Whole} number
 * @param {number} size
 */
export function littleEndian(number, size) {
  const bytes = new Uint8Array(size);
  let rest = BigInt(number);
  for (let i = 0; i < size; i++) {
    bytes[i] = Number(rest & 255n);
    rest >>= 8n;
  }
  return bytes;
}

/**
 * A whole number from little-endian bytes.
 * @param {Uint8Array} bytes
 */
export function fromLittleEndian(bytes) {
  let number = 0n;
  for (let i = bytes.length; i--; ) number = (number << 8n) | BigInt(bytes[i]);
  return number;
}

/**
 * The 64-bit little-endian words of some bytes.
 * @param {Uint8Array} bytes
 */
export function words(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length >> 3 }, (_, i) => view.getBigUint64(8 * i, true));
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
