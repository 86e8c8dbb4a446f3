/**
 * Marks: with them a respondent finds her report and her charge in a publication, and no one else can link the two.
 *
 * The device draws one secret for each report, sends the two marks, and keeps the secret.
 */

import { joined, utf8 } from "./bytes.js";
import { systemBytes } from "./draws.js";
import { sha256 } from "./hashes.js";

const SECRET_BYTES = 16;
const MARK_BYTES = 16;

/** A new secret for the marks of one report. */
export const newMarkSecret = () => systemBytes(SECRET_BYTES);

/**
 * The marks of a report and of its charge: the headers `Report-Mark` and `Charge-Mark`, in hexadecimal.
 * @param {Uint8Array} secret
 * @returns {{ report: Uint8Array, charge: Uint8Array }}
 * @throws {RangeError} for a secret of another length
 */
export function marksOf(secret) {
  if (secret.length !== SECRET_BYTES) throw new RangeError(`the secret of marks must have ${SECRET_BYTES} bytes: got ${secret.length}`);
  const mark = (/** @type {string} */ kind) => sha256(joined(utf8(`ldp-budget ${kind}`), secret)).subarray(0, MARK_BYTES);
  return { report: mark("report"), charge: mark("charge") };
}
