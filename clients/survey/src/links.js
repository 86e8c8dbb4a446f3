// The invitation: a token in the fragment of the link, which browsers send nowhere. It is taken out of the address bar at
// once, and kept on the device for a reload and for reports that are still on their way.

import { answered } from "../../js/src/budget.js";

/**
 * @typedef {object} Link
 * @property {string} collection
 * @property {string} token
 * @property {string} agreed how the digest of the definition begins that the invitation was made for; empty: not said
 * @property {string} [key] under which the one report of this invitation is charged, once the service has said it
 * @property {string} [title] of the collection
 * @property {string} [seen] the digest that the definition had when the link was opened first
 */

const STORE = "links";

/**
 * The invitation in the fragment, if there is one, which is dropped from there.
 * @param {string} collection
 * @returns {Link | undefined}
 */
export function taken(collection) {
  const fragment = location.hash.slice(1);
  if (location.hash || location.href.endsWith("#")) history.replaceState(null, "", location.pathname + location.search);
  const [token, agreed = ""] = fragment.split("~");
  if (!/^[\w.=-]{16,2000}$/.test(token) || !/^([0-9a-f]{16,64})?$/.test(agreed)) return undefined;
  return { collection, token, agreed };
}

/** The invitations that this device has, the newest of each collection. */
export class Links {
  static async open() {
    const request = indexedDB.open("ldp-budget-links", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "collection" });
    return new Links(await answered(request));
  }

  /** @param {IDBDatabase} database */
  constructor(database) {
    this.database = database;
    database.onversionchange = () => database.close();
  }

  /** @param {"readonly" | "readwrite"} mode */
  store(mode) {
    return this.database.transaction(STORE, mode).objectStore(STORE);
  }

  /** @param {string} collection @returns {Promise<Link | undefined>} */
  find(collection) {
    return answered(this.store("readonly").get(collection));
  }

  /** @returns {Promise<Link[]>} */
  all() {
    return answered(this.store("readonly").getAll());
  }

  /**
   * Keeps an invitation, with all that was known of the same one.
   * @param {Link} link
   * @returns {Promise<Link>} as it is kept
   */
  async keep(link) {
    const before = await this.find(link.collection);
    const kept = before?.token === link.token ? { ...before, ...link } : link;
    await answered(this.store("readwrite").put(kept));
    return kept;
  }

  /** @param {string} collection */
  async forget(collection) {
    await answered(this.store("readwrite").delete(collection));
  }
}
