// Requests to the service. They go to this host only, under the invitation.

import { fromHex, toHex } from "../../js/src/bytes.js";
import { parseDefinition } from "../../js/src/definition.js";
import { marksOf } from "../../js/src/marks.js";

/** @typedef {import("../../js/src/outbox.js").Entry} Entry */

const PATIENCE_MS = 20_000;
/** Answers after which a report may be sent again, by their status. */
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);
/** Statuses after which a retry fails until something changes. The report is kept: it may have arrived. */
const STUCK = new Set([401, 403, 404, 405]);

/** An error with a code: `network`, or the code of the service's problem. */
export class Problem extends Error {
  /** @param {string} code @param {any} [body] */
  constructor(code, body = {}) {
    super(code);
    this.code = code;
    this.body = body;
  }
}

/**
 * @param {string} path
 * @param {{ token?: string, method?: string, headers?: Record<string, string>, body?: Uint8Array }} [asked]
 */
function request(path, { token, headers = {}, ...rest } = {}) {
  return fetch(path, {
    ...{ cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" },
    ...{ ...rest, body: /** @type {any} */ (rest.body) },
    headers: { ...headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) },
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
}

/** @param {Response} response */
async function codeOf(response) {
  const body = await response.json().catch(() => ({}));
  return new Problem(String(body.type ?? "").split("/").pop() || `status-${response.status}`, body);
}

/**
 * @param {string} path
 * @param {string} [token]
 * @param {(text: string) => any} [parse] of the body
 * @returns {Promise<any>}
 * @throws {Problem}
 */
async function read(path, token, parse = JSON.parse) {
  const response = await request(path, { token }).catch(() => {
    throw new Problem("network");
  });
  if (!response.ok) throw await codeOf(response);
  const text = await response.text().catch(() => {
    throw new Problem("network");
  });
  try {
    return parse(text);
  } catch (error) {
    throw new Problem(error instanceof SyntaxError ? "network" : "changed", { error });
  }
}

/** The public definition. @param {string} collection @returns {Promise<any>} */
export const definitionOf = (collection) => read(`/v1/collections/${encodeURIComponent(collection)}`, undefined, parseDefinition);

/** The service's data about the person of a token. @param {string} token */
export const meAt = (token) => read("/v1/me", token);

/** The headers with the marks of a report. @param {Entry} entry @returns {Record<string, string>} */
export function markHeaders(entry) {
  if (!entry.about.secret) return {}; // it was drawn by an earlier version of this page
  const { report, charge } = marksOf(fromHex(entry.about.secret));
  return { "Report-Mark": toHex(report), "Charge-Mark": toHex(charge) };
}

/**
 * The proof of a respondent in the newest publication, byte by byte.
 * @param {string | undefined} token
 * @param {string} mark of her charge
 * @throws {Problem}
 */
export async function proofAt(token, mark) {
  const response = await request("/v1/me/proof", { token, headers: { "Charge-Mark": mark } }).catch(() => {
    throw new Problem("network");
  });
  if (!response.ok) throw await codeOf(response);
  return new Uint8Array(await response.arrayBuffer());
}

/**
 * Sends a report, and returns its state: `waiting` if it must be sent again, after `after` ms or (`stuck`) when
 * something has changed; else its final state.
 * @param {Entry} entry
 * @returns {Promise<{ state: string, [more: string]: any }>}
 */
export async function send(entry) {
  let response;
  try {
    response = await request(`/v1/collections/${encodeURIComponent(entry.collection)}/reports`, {
      method: "POST",
      token: entry.about.token,
      headers: {
        "Content-Type": "application/octet-stream",
        "Idempotency-Key": entry.key,
        "X-Collection": entry.digest,
        ...(entry.label ? { "X-Label": entry.label } : {}),
        ...markHeaders(entry),
      },
      body: entry.report,
    });
  } catch {
    return { state: "waiting", why: "network" };
  }
  const after = 1000 * Number(response.headers.get("Retry-After") ?? 0) || 0;
  if (response.ok) {
    const receipt = await response.json().catch(() => undefined);
    if (!receipt) return { state: "waiting", why: "network" };
    delete receipt.user; // the next user of a shared device need not find who answered
    return { state: "arrived", receipt };
  }
  const { code, body } = await codeOf(response);
  if (PASSING.has(response.status)) return { state: "waiting", why: "busy", after };
  if (STUCK.has(response.status)) return { state: "waiting", why: code, stuck: true };
  if (code === "budget-exceeded") return { state: "refused", limits: body.failed ?? body.limits ?? [] };
  if (code === "wrong-collection") return { state: "changed" };
  if (code === "key-conflict") return { state: "taken" };
  return { state: "rejected", why: code };
}
