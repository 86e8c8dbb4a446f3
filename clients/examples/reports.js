// One answer from a page to the service: fetch the definition, charge the device, draw, and send with retry.

import { Client, parseDefinition } from "ldp-budget";
import { DeviceBudget } from "ldp-budget/budget";
import { Outbox } from "ldp-budget/outbox";

/** @typedef {{ service: string, collection: string, digest: string, limits: import("ldp-budget/budget").Limits }} Config */
/** @typedef {"new" | "waiting" | "arrived" | "refused"} State */

const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);
const ATTEMPTS = 6;

export class Question {
  /**
   * @param {Config} config
   * @param {string} invitation of the respondent: the part of her link after `#`, before `~`
   */
  static async open({ service, collection, digest, limits }, invitation) {
    const url = `${service}/v1/collections/${encodeURIComponent(collection)}`;
    const definition = parseDefinition(await (await answered(await fetch(url))).text());
    const client = new Client(definition, { digest }); // throws for another definition than the agreed one
    const bearer = { Authorization: `Bearer ${invitation}` };
    const { key } = await (await answered(await fetch(`${service}/v1/me`, { headers: bearer }))).json();
    return new Question(client, new Outbox(await DeviceBudget.open(limits)), `${url}/reports`, bearer, key);
  }

  /**
   * @param {Client} client
   * @param {Outbox} outbox
   * @param {string} url
   * @param {{ Authorization: string }} bearer
   * @param {string} key
   */
  constructor(client, outbox, url, bearer, key) {
    this.client = client;
    this.outbox = outbox;
    this.url = url;
    this.bearer = bearer;
    this.key = key;
  }

  /** The texts that the respondent agrees to. @returns {{ question: string, answers: string[], guarantee: { words: string } }} */
  get texts() {
    return this.client.definition;
  }

  /** @returns {Promise<State>} what has become of the answer of this invitation on this device */
  async state() {
    return /** @type {State} */ ((await this.outbox.entry(this.key))?.state ?? "new");
  }

  /**
   * Charges the device and draws, once for this invitation, and sends until the service has answered.
   * @param {string} answer
   * @returns {Promise<State>}
   * @throws {import("ldp-budget/budget").OverBudget} if the device has too little budget; nothing was drawn
   */
  async answer(answer) {
    await this.outbox.draw(this.key, this.client, answer);
    return this.send();
  }

  /**
   * Sends the drawn report, the same bytes under the same key each time. Call it again after a reload.
   * @returns {Promise<State>} `waiting` if the service cannot be reached
   */
  async send() {
    const entry = await this.outbox.entry(this.key);
    if (!entry || entry.state !== "waiting") return this.state();
    const headers = {
      ...this.bearer,
      "Content-Type": "application/octet-stream",
      "Idempotency-Key": entry.key, // required
      "X-Collection": entry.digest, // required
      ...(entry.label ? { "X-Label": entry.label } : {}),
    };
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const response = await fetch(this.url, { method: "POST", headers, body: /** @type {any} */ (entry.report) }).catch(() => undefined);
      if (response?.ok) return this.settle("arrived");
      if (response?.status === 409 && (await typeOf(response)) === "budget-exceeded") return this.settle("refused");
      if (response && !PASSING.has(response.status)) await answered(response);
      const seconds = Number(response?.headers.get("Retry-After")) || 2 ** attempt * (0.5 + Math.random() / 2);
      await new Promise((done) => setTimeout(done, 1000 * seconds));
    }
    return "waiting";
  }

  /** @param {State} state @returns {Promise<State>} */
  async settle(state) {
    await this.outbox.settle(this.key, { state, report: undefined });
    return state;
  }
}

/** @param {Response} response */
const typeOf = async (response) => String((await response.clone().json()).type).split("/").pop();

/**
 * @param {Response} response
 * @throws {Error} with the sentence of the service's problem
 */
async function answered(response) {
  if (!response.ok) throw new Error((await response.json().catch(() => ({}))).detail ?? `status ${response.status}`);
  return response;
}

/** The invitation in the link of this page. */
export const invitationOf = (/** @type {string} */ hash) => hash.slice(1).split("~")[0];
