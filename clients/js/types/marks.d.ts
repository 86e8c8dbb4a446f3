/**
 * The marks of a report and of its charge: the headers `Report-Mark` and `Charge-Mark`, in hexadecimal.
 * @param {Uint8Array} secret
 * @returns {{ report: Uint8Array, charge: Uint8Array }}
 * @throws {RangeError} for a secret of another length
 */
export function marksOf(secret: Uint8Array): {
    report: Uint8Array;
    charge: Uint8Array;
};
export function newMarkSecret(): Uint8Array<ArrayBufferLike>;
