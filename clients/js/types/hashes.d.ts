/**
 * @param {Uint8Array} message
 * @returns {Uint8Array}
 */
export function sha256(message: Uint8Array): Uint8Array;
/**
 * SHAKE-128 where `rate` is 168, SHAKE-256 where it is 136.
 * @param {number} rate
 * @param {Uint8Array} message
 * @param {number} size
 */
export function shake(rate: number, message: Uint8Array, size: number): Uint8Array<ArrayBuffer>;
/**
 * @param {Uint8Array} message
 * @param {{ size: number, key?: Uint8Array, person?: string }} options
 */
export function blake2b(message: Uint8Array, { size, key, person }: {
    size: number;
    key?: Uint8Array;
    person?: string;
}): Uint8Array<ArrayBuffer>;
