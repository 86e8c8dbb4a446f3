// A collection's public definition and its digest.

import { toHex, utf8 } from "./bytes.js";
import { sha256 } from "./hashes.js";

/**
 * Canonical JSON: keys in order, no spaces, ASCII alone. Numbers are whole, so that every language writes them alike.
 * @param {any} value
 * @returns {string}
 */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value && typeof value === "object") {
    const entries = Object.keys(value).sort().map((name) => `${canonical(name)}:${canonical(value[name])}`);
    return `{${entries.join(",")}}`;
  }
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw new TypeError(`not a whole number: ${value}`);
  if (typeof value === "string" && /\p{Surrogate}/u.test(value)) throw new TypeError("a text with half of a character");
  const escaped = (/** @type {string} */ unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escaped);
}

/** @param {any} definition */
export function digestOf({ digest, ...rest }) {
  return toHex(sha256(utf8(canonical(rest))));
}

/**
 * @param {any} definition
 * @param {string} [expected] the digest that was agreed on
 * @throws {TypeError} unless the definition has the digest that it states, and that is the expected one
 */
export function checkDigest(definition, expected) {
  const found = digestOf(definition);
  for (const digest of [definition.digest, expected ?? found]) {
    if (digest !== found) throw new TypeError(`the definition has the digest ${found}, and not the agreed ${digest}`);
  }
}

/**
 * A definition from its text. `JSON.parse` takes the last one of repeated keys, and reads 1.0 as 1; other clients do not.
 * @param {string} text
 * @returns {any}
 * @throws {TypeError | SyntaxError} where the text is no JSON, repeats a key, or has a number that is not written as a whole one
 */
export function parseDefinition(text) {
  const found = JSON.parse(text);
  // Written again without spaces, and each text in one way, it is the same unless something of it was dropped.
  const again = text.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (token) => (token[0] === '"' ? JSON.stringify(JSON.parse(token)) : ""));
  if (again !== JSON.stringify(found)) throw new TypeError("the definition repeats a key, or has a number that is not whole");
  return found;
}
