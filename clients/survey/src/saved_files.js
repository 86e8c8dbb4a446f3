// Files that the page makes.

import { el } from "./elements.js";

/**
 * Saves a file on the device.
 * @param {string} name
 * @param {string | Uint8Array} content
 * @param {string} [type]
 */
export function save(name, content, type = "application/json") {
  const url = URL.createObjectURL(new Blob([/** @type {any} */ (content)], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
