// What the service of this page publishes: the folder of a survey, and the proof of a receipt. Nothing is fetched from another
// host, and nothing of it is believed.

import { fromHex, toHex } from "../../../js/src/bytes.js";
import { marksOf } from "../../../js/src/marks.js";

const TILE = 256;
const PATIENCE_MS = 60_000;
const ATTEMPTS = 3;

/** Why something could not be fetched: `network`, `elsewhere`, or the code of the service's problem. */
export class NotFetched extends Error {
  /** @param {string} code */
  constructor(code) {
    super(code);
    this.code = code;
  }
}

/** @param {string | URL} address @param {Record<string, string>} [headers] */
async function fetched(address, headers = {}) {
  const options = /** @type {const} */ ({ cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" });
  const response = await fetch(address, { ...options, headers, signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => {
    throw new NotFetched("network");
  });
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new NotFetched(String(body.type ?? "").split("/").pop() || "network");
  }
  return new Uint8Array(await response.arrayBuffer());
}

/** The paths of the tiles of a log. @param {number} size */
function tiles(size) {
  const whole = Math.floor(size / TILE), rest = size % TILE;
  const names = Array.from({ length: whole + (rest ? 1 : 0) }, (_, i) => String(i).padStart(3, "0") + (i < whole ? "" : `.p/${rest}`));
  return [...names.flatMap((name) => [`tile/entries/${name}`, `tile/0/${name}`]), ...(whole ? [`tile/1/000.p/${whole}`] : [])];
}

/**
 * The files of a published folder on this host.
 * @param {string} address
 * @returns {Promise<Map<string, Uint8Array>>}
 * @throws {NotFetched}
 */
export async function folderAt(address) {
  const base = new URL(address, location.origin);
  if (base.origin !== location.origin) throw new NotFetched("elsewhere");
  const get = (/** @type {string} */ path) => fetched(new URL(path, base));
  for (let attempt = 1; ; attempt++) {
    const checkpoint = await get("checkpoint"), size = Number(new TextDecoder().decode(checkpoint).split("\n")[1]);
    const paths = ["client.json", "charges.bin", "reports.bin", ...(size >= 1 && size < TILE * TILE ? tiles(size) : [])];
    const found = await Promise.all(paths.map(async (path) => /** @type {[string, Uint8Array]} */ ([path, await get(path)]))).catch((error) => {
      if (attempt === ATTEMPTS) throw error;
    });
    // A survey that is published again in the meantime would be half of each.
    if (found && (attempt === ATTEMPTS || toHex(await get("checkpoint")) === toHex(checkpoint))) return new Map([["checkpoint", checkpoint], ...found]);
  }
}

/**
 * The proof of a receipt, byte by byte.
 * @param {any} receipt
 * @throws {NotFetched}
 */
export function proofFor({ collection, secret, publication }) {
  const mark = toHex(marksOf(fromHex(secret)).charge);
  return fetched(`/v1/collections/${encodeURIComponent(collection)}/proof`, { "Charge-Mark": mark, "Proof-Token": publication.proof });
}
