/**
 * Reports on their way: each is charged to the device's budget, drawn and kept in one transaction, before anything is
 * sent, so that neither a reload nor a second page nor a crash ever draws or charges again.
 *
 *     const outbox = new Outbox(await DeviceBudget.open({ lifetime: "4" }));
 *     const { report, label } = await outbox.draw("2026-11-23", client, "yes"); // the same again under the same key
 *     …                                                                       // send it, as often as needed
 *     await outbox.settle("2026-11-23", { state: "arrived", receipt });
 *
 * The answer is not kept.
 */

import { answered, bound, charged, costOf, keptBy, onceOf } from "./budget.js";
import { confirmOnce } from "./loss.js";

/** @typedef {import("./index.js").Client | import("./questionnaire.js").Questionnaire} Client */
/** @typedef {import("./budget.js").DeviceBudget} DeviceBudget */
/**
 * @typedef {object} Entry
 * @property {string} key which makes sending it again safe
 * @property {string} collection its name
 * @property {string} digest of its definition
 * @property {Uint8Array} [report] until it is dropped
 * @property {string} [label] which memoised draw it repeats
 * @property {string} at when it was drawn, in ISO 8601
 * @property {string} state `waiting`, until it is settled
 * @property {number | null} units what the device was charged, null where it does not count that
 * @property {any} about what the page wants to keep with it
 */

const STORE = "outbox";

export class Outbox {
  /** @param {DeviceBudget} budget */
  constructor(budget) {
    this.budget = budget;
  }

  /**
   * The report of a key: drawn now, and charged before, or the one that was drawn under this key before; then
   * the answer is not used.
   * @param {string} key
   * @param {Client} client
   * @param {any} answer as `client.randomize` takes it
   * @param {{ about?: any, uncounted?: boolean }} [options] `about` is kept with it; `uncounted`: draw also where
   *   nothing is promised, which no device's budget counts
   * @returns {Promise<Entry>}
   * @throws {import("./budget.js").OverBudget} where it does not fit the budget of the device; nothing was drawn
   * @throws {RangeError} for an answer that the collection does not have
   * @throws {import("./loss.js").Unconfirmed} where the program may give away more than the definition states
   */
  draw(key, client, answer, { about = {}, uncounted = false } = {}) {
    return this.budget.transact([STORE], async (transaction) => {
      const kept = transaction.objectStore(STORE);
      const before = await answered(kept.get(key));
      if (before) return before;
      client.check(answer); // what is no answer costs nothing
      const { definition } = client;
      if (definition.guarantee.epsilon !== null) confirmOnce(definition);
      const units = uncounted && !counts(definition.guarantee) ? null : costOf(definition.guarantee);
      const state = bound(await this.budget.stateWithin(transaction), keptBy(client));
      const { secret } = state;
      const now = this.budget.now();
      const after = units === null ? state : charged(state, units, now, onceOf(client, answer, secret));
      this.budget.keepWithin(transaction, after);
      const paid = after.spent.lifetime - state.spent.lifetime;
      /** @type {Entry} */
      const entry = {
        ...{ key, collection: definition.name, digest: definition.digest, at: now.toISOString(), state: "waiting" },
        ...{ report: client.randomize(answer, { secret }), label: client.labelToSend(answer, secret) },
        ...{ units: units === null ? null : paid, about },
      };
      kept.add(entry, key);
      return entry;
    });
  }

  /**
   * Says what has become of a report. What was settled stays as it is.
   * @param {string} key
   * @param {Partial<Entry> & Record<string, any>} change such as a `state`; undefined drops what there was
   * @returns {Promise<Entry | undefined>} as it is kept now
   */
  settle(key, change) {
    return this.budget.transact([STORE], async (transaction) => {
      const kept = transaction.objectStore(STORE);
      const before = await answered(kept.get(key));
      if (!before || before.state !== "waiting") return before;
      const after = { ...before, ...change };
      kept.put(after, key);
      return after;
    });
  }

  /**
   * Deletes the report of an entry and changes what is kept with it. The charge stays, and nothing is drawn again.
   * @param {string} key of an entry that is settled
   * @param {any} about replaces parts of what is kept; undefined deletes one
   * @returns {Promise<Entry | undefined>} as it is kept now
   */
  forget(key, about) {
    return this.budget.transact([STORE], async (transaction) => {
      const kept = transaction.objectStore(STORE);
      const before = await answered(kept.get(key));
      if (!before || before.state === "waiting") return before;
      const after = { ...before, report: undefined, about: { ...before.about, ...about } };
      kept.put(after, key);
      return after;
    });
  }

  /**
   * @param {string} key
   * @returns {Promise<Entry | undefined>}
   */
  entry(key) {
    return this.budget.transact([STORE], (transaction) => answered(transaction.objectStore(STORE).get(key)));
  }

  /** @returns {Promise<Entry[]>} all of them, oldest first */
  async entries() {
    const all = await this.budget.transact([STORE], (transaction) => answered(transaction.objectStore(STORE).getAll()));
    return all.sort((a, b) => (a.at < b.at ? -1 : 1));
  }
}

/**
 * Whether the budget of a device counts such a promise: one of an ε, whatever its δ.
 * @param {any} guarantee of a definition
 */
export const counts = (guarantee) => guarantee.epsilon !== null;
