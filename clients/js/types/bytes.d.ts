/**
 * The lowest `size` bytes, of at most 8, of a whole number, little-endian; those of a negative one in two's complement.
 * @param {import("./numbers.js").Whole} number
 * @param {number} size
 */
export function littleEndian(number: import("./numbers.js").Whole, size: number): Uint8Array<ArrayBuffer>;
/**
 * A whole number from at most 8 little-endian bytes: a BigInt where they are more than 4.
 * @param {Uint8Array} bytes
 * @returns {import("./numbers.js").Whole}
 */
export function fromLittleEndian(bytes: Uint8Array): import("./numbers.js").Whole;
/**
 * The 64-bit little-endian words of some bytes.
 * @param {Uint8Array} bytes
 */
export function words(bytes: Uint8Array): bigint[];
/**
 * The same words, each as its low and its high half.
 * @param {Uint8Array} bytes
 */
export function halves(bytes: Uint8Array): Uint32Array<ArrayBuffer>;
/** @param {Uint8Array[]} parts */
export function joined(...parts: Uint8Array[]): Uint8Array<ArrayBuffer>;
/**
 * @param {string} hex
 * @throws {TypeError} for anything else: what is no digit must not read as zero
 */
export function fromHex(hex: string): Uint8Array<ArrayBuffer>;
export function utf8(text: string): Uint8Array<ArrayBuffer>;
export function canonicalText(text: string): string;
export function toHex(bytes: Uint8Array): string;
