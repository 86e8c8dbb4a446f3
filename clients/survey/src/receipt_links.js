// A receipt as a link to the page that checks it, short enough for a QR code. Everything is in the fragment, which browsers
// send nowhere: fields between tildes, bytes in base64url.

import { fromHex, toHex } from "../../js/src/bytes.js";

/**
 * A receipt, as in docs/reference/formats/publication.md.
 * @typedef {object} Receipt
 * @property {string} format
 * @property {number} version
 * @property {string} collection
 * @property {string} client
 * @property {string} secret
 * @property {string} report
 * @property {Record<string, number | null>} costs
 * @property {{ measure: string, limit: number, key: string, signature: string } | null} promise
 * @property {Published | null} publication
 */

/**
 * Where a survey is published, and under which key.
 * @typedef {object} Published
 * @property {string | null} address of the folder
 * @property {string | null} key of its log
 * @property {string | null} invitation the hash of the key that the invitation names
 * @property {string | null} proof a token for the proof of this charge
 */

const VERSION = "1";
/** The order of the costs. */
export const MEASURES = ["epsilon", "delta", "rho", "mu_squared"];

/** @param {string | null | undefined} hex */
const packed = (hex) => (hex ? btoa(String.fromCharCode(...fromHex(hex))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "") : "");

/** A text without the sign between two fields. @param {string} text */
const escaped = (text) => encodeURIComponent(text).replaceAll("~", "%7E");

/** @param {string} text */
const unpacked = (text) => toHex(Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0)));

/**
 * The fragment that has a receipt.
 * @param {any} receipt
 */
export function fragmentOf({ collection, client, secret, report, costs, promise, publication }) {
  const { measure = "", limit = "", key = "", signature = "" } = promise ?? {};
  const { address, key: log, invitation, proof } = publication ?? {};
  const paid = MEASURES.map((name) => costs[name] ?? "").join(".");
  // Without its host the address is that of the page.
  const place = address ? escaped(address.replace(location.origin, "")) : "";
  return [
    ...[VERSION, escaped(collection), packed(client), packed(secret), packed(report), paid, measure, limit],
    ...[packed(key), packed(signature), place, log ? escaped(log) : "", packed(invitation), packed(proof)],
  ].join("~");
}

/**
 * The receipt in a fragment; undefined for another fragment. The checker looks at every value.
 * @param {string} fragment
 * @returns {Receipt | undefined}
 */
export function receiptIn(fragment) {
  const fields = fragment.split("~");
  if (fields.length !== 14 || fields[0] !== VERSION) return undefined;
  try {
    const [, collection, client, secret, report, paid, measure, limit, key, signature, place, log, invitation, proof] = fields;
    const amounts = paid.split(".").map((amount) => (amount === "" ? null : Number(amount)));
    const address = place && new URL(decodeURIComponent(place), location.origin).href;
    return {
      ...{ format: "ldp-budget receipt", version: 1, collection: decodeURIComponent(collection), client: unpacked(client) },
      ...{ secret: unpacked(secret), report: unpacked(report) },
      costs: Object.fromEntries(MEASURES.map((name, i) => [name, amounts[i] ?? null])),
      promise: measure ? { measure, limit: Number(limit), key: unpacked(key), signature: unpacked(signature) } : null,
      publication: { address: address || null, key: log ? decodeURIComponent(log) : null, invitation: unpacked(invitation) || null, proof: unpacked(proof) || null },
    };
  } catch {
    return undefined;
  }
}
