// The invitation: a token in the fragment of the link, which browsers send nowhere. It is taken out of the address bar at
// once, and kept for a reload in this tab alone: the browser drops it when the tab is closed, so that the next user of a
// shared device does not find it.

/**
 * @typedef {object} Link
 * @property {string} collection
 * @property {string} token
 * @property {string} agreed how the digest of the definition begins that the invitation was made for; empty: not said
 * @property {string} [key] under which the one report of this invitation is charged, once the service has said it
 * @property {string} [title] of the collection
 * @property {string} [seen] the digest that the definition had when the link was opened first
 * @property {string} [log] the hash of the log's public key that the invitation names
 * @property {boolean} [cut] true if the end of the link is missing
 */

const PREFIX = "ldp-budget link ";
/** A token, the beginning of a digest, and the hash of a public key. */
const WHOLE = /^([\w-]{14,2000}\.[\w-]{22})(?:~([0-9a-f]{16,64})(?:~([0-9a-f]{32}))?)?$/;
/** How a token begins: with the `["` of a list. */
const BEGINNING = /^Wy[IJ]/;

/**
 * The invitation in the fragment, if there is one, which is dropped from there. Of a link that was cut it has only that.
 * @param {string} collection
 * @returns {Link | undefined}
 */
export function taken(collection) {
  const fragment = location.hash.slice(1).replace(/[^\w~-]+$/, ""); // a mail program may add the end of a sentence
  if (location.hash || location.href.endsWith("#")) history.replaceState(null, "", location.pathname + location.search);
  const [, token, agreed = "", log] = WHOLE.exec(fragment) ?? [];
  if (token) return { collection, token, agreed, log };
  return BEGINNING.test(fragment) ? { collection, token: "", agreed, cut: true } : undefined;
}

/** The invitations that this tab has, the newest of each collection. */
export class Links {
  /** @param {Storage} [storage] */
  constructor(storage = sessionStorage) {
    this.storage = storage;
  }

  /** @param {string} collection @returns {Link | undefined} */
  find(collection) {
    const found = this.storage.getItem(PREFIX + collection);
    return found === null ? undefined : JSON.parse(found);
  }

  /** @returns {Link[]} */
  all() {
    const names = Object.keys(this.storage).filter((name) => name.startsWith(PREFIX)).sort();
    return names.map((name) => JSON.parse(/** @type {string} */ (this.storage.getItem(name))));
  }

  /**
   * Keeps an invitation, with all that was known of the same one.
   * @param {Link} link
   * @returns {Link} as it is kept
   */
  keep(link) {
    const before = this.find(link.collection);
    const kept = before?.token === link.token ? { ...before, ...link } : link;
    this.storage.setItem(PREFIX + link.collection, JSON.stringify(kept));
    return kept;
  }

  /** @param {string} collection */
  forget(collection) {
    this.storage.removeItem(PREFIX + collection);
  }
}
