/**
 * A budget of the device's own: limits per lifetime and per day (UTC), in whole units of 1e-9 of ε, charged before a
 * report is drawn. It counts the ε of every report, whatever its δ. It needs no server, and tells the collector nothing.
 *
 *     const budget = await DeviceBudget.open({ lifetime: "4", day: "1" });
 *     const report = await budget.randomize(client, "yes");
 *
 * The browser's IndexedDB stores everything, also the secret. Node.js has none, so `open` takes one as `indexedDB` there. If a user clears it, the next budget is `fresh`. A page
 * must say so, because that budget does not count what was sent before.
 */

import { toHex, utf8 } from "./bytes.js";
import { canonical } from "./definition.js";
import { sha256 } from "./hashes.js";
import { newSecret } from "./index.js";
import { Unconfirmed, confirmOnce } from "./loss.js";

/** @typedef {import("./index.js").Client | import("./questionnaire.js").Questionnaire} Client */
/** @typedef {{ lifetime: string, day?: string }} Limits ε as decimal text */
/** @typedef {{ lifetime: number, day: number, date: string }} Spent units */
/** @typedef {[string, string]} Kept the fingerprint that kept draws belong to, and the digest of the program that reads them */
/**
 * @typedef {{ secret: Uint8Array, since: string, limits: { lifetime: number, day: number | null }, spent: Spent, labels: string[], programs?: Kept[] }} State
 */

const UNITS = 9;
const STORE = "budget";
const KEY = "device";
/** The stores of the database; that of reports on their way is `outbox.js`'s. */
const STORES = [STORE, "outbox"];
const VERSION = 1;
const REMEDY = "In a browser, use it in a page or a worker. In Node.js, pass a store that keeps its data: { indexedDB }.";

/** A charge that does not fit, of which nothing was drawn. */
export class OverBudget extends Error {
  /**
   * @param {number} asked units
   * @param {{ period: string, limit: number, spent: number }[]} limits those that it does not fit, in units
   */
  constructor(asked, limits) {
    const said = limits.map(({ period, limit, spent }) => `${period}: ${epsilonOf(spent)} of ${epsilonOf(limit)} spent`);
    super(`over the budget of this device: asked ε = ${epsilonOf(asked)}; ${said.join("; ")}`);
    this.name = "OverBudget";
    this.asked = asked;
    this.limits = limits;
  }
}

export class DeviceBudget {
  /**
   * The budget of this device, made where there is none. Limits that are there already can be lowered, not raised.
   * @param {Limits} limits
   * @param {{ name?: string, now?: () => Date, indexedDB?: IDBFactory }} [options]
   */
  static async open(limits, { name = "ldp-budget", now = () => new Date(), indexedDB = globalThis.indexedDB } = {}) {
    if (!indexedDB) throw new TypeError(`DeviceBudget needs IndexedDB, and there is none here. ${REMEDY}`);
    const given = { lifetime: unitsOf(limits.lifetime, false), day: limits.day === undefined ? null : unitsOf(limits.day, false) };
    const budget = new DeviceBudget(await opened(indexedDB, name), now);
    budget.fresh = await budget.update((stored) => {
      if (!stored) return { state: made(given, now()), result: true };
      checked(stored);
      const day = [stored.limits.day, given.day].filter((limit) => limit !== null);
      const lower = { lifetime: Math.min(stored.limits.lifetime, given.lifetime), day: day.length ? Math.min(.../** @type {number[]} */ (day)) : null };
      return { state: { ...stored, limits: lower }, result: false };
    });
    return budget;
  }

  /**
   * @param {IDBDatabase} database
   * @param {() => Date} now
   */
  constructor(database, now) {
    this.database = database;
    this.now = now;
    /** Whether nothing was kept here before: a new secret, and nothing is known of what was sent earlier. */
    this.fresh = false;
  }

  /**
   * One report, charged before it is drawn. Of a memoised answer the first report is charged all that its reports can
   * lose together, and others nothing.
   * @param {Client} client
   * @param {any} answer as `client.randomize` takes it
   * @returns {Promise<Uint8Array>}
   * @throws {OverBudget} where it does not fit
   * @throws {RangeError} for an answer that the collection does not have
   * @throws {import("./loss.js").Unconfirmed} where the program may give away more than the definition states
   */
  async randomize(client, answer) {
    client.check(answer); // what is no answer costs nothing
    const units = costOf(client.definition.guarantee);
    confirmOnce(client.definition); // what is charged is what it states
    const { secret } = await this.state();
    await this.charge(units, onceOf(client, answer, secret), keptBy(client));
    return client.randomize(answer, { secret });
  }

  /**
   * @param {number} units
   * @param {string} [label] of what is charged once only
   * @param {Kept} [kept] of a program that repeats draws
   */
  async charge(units, label, kept) {
    await this.update((stored) => ({ state: charged(bound(checked(stored), kept), units, this.now(), label), result: undefined }));
  }

  /** What was spent and what is left, as decimal text, and since when it is counted. */
  async balance() {
    const { limits, spent: last, since } = await this.state();
    const spent = today(last, this.now());
    /** @type {(period: "lifetime" | "day", limit: number | null) => { limit: string, spent: string, left: string } | undefined} */
    const line = (period, limit) =>
      limit === null ? undefined : { limit: epsilonOf(limit), spent: epsilonOf(spent[period]), left: epsilonOf(Math.max(0, limit - spent[period])) };
    return { since, lifetime: line("lifetime", limits.lifetime), day: line("day", limits.day) };
  }

  /** @returns {Promise<State>} */
  async state() {
    return this.update((state) => ({ state, result: checked(state) }));
  }

  close() {
    this.database.close();
  }

  /**
   * Reads and writes in one transaction, which no other page of this device comes between.
   * @template T
   * @param {(state: State | undefined) => { state: State | undefined, result: T }} change
   * @returns {Promise<T>}
   */
  update(change) {
    return new Promise((resolve, reject) => {
      const transaction = this.database.transaction(STORE, "readwrite", { durability: "strict" });
      const store = transaction.objectStore(STORE);
      const read = store.get(KEY);
      /** @type {T} */
      let result;
      /** @type {unknown} */
      let why;
      read.onsuccess = () => {
        try {
          const changed = change(read.result);
          result = changed.result;
          if (changed.state !== read.result) store.put(changed.state, KEY);
        } catch (error) {
          why = error;
          transaction.abort();
        }
      };
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = () => reject(why ?? transaction.error);
    });
  }

  /**
   * Does some work in one transaction on the budget and other stores: all of it is kept, durably, or none. The work may
   * wait for what it asks of the stores, and for nothing else.
   * @template T
   * @param {string[]} stores
   * @param {(transaction: IDBTransaction) => Promise<T>} work
   * @returns {Promise<T>}
   */
  async transact(stores, work) {
    const transaction = this.database.transaction([STORE, ...stores], "readwrite", { durability: "strict" });
    /** @type {Promise<void>} */
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    const ended = done.catch(() => {});
    /** @type {T} */
    let result;
    try {
      result = await work(transaction);
    } catch (error) {
      try {
        transaction.abort();
      } catch {
        // It was aborted already, which is why the work failed.
      }
      await ended;
      throw error;
    }
    await done;
    return result;
  }

  /**
   * What is kept, within a transaction on the budget.
   * @param {IDBTransaction} transaction
   * @returns {Promise<State>}
   */
  async stateWithin(transaction) {
    return checked(await answered(transaction.objectStore(STORE).get(KEY)));
  }

  /**
   * Keeps another state, within a transaction on the budget.
   * @param {IDBTransaction} transaction
   * @param {State} state
   */
  keepWithin(transaction, state) {
    transaction.objectStore(STORE).put(state, KEY);
  }
}

/**
 * What an IndexedDB request answers.
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
export function answered(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/**
 * The label of what is charged once only: what was promised of all reports of an answer; and of this program, as another
 * draws otherwise.
 * @param {Client} client
 * @param {any} answer
 * @param {Uint8Array} secret
 */
export function onceOf(client, answer, secret) {
  const { digest, guarantee } = client.definition;
  const label = guarantee.answer_epsilon === undefined ? undefined : client.label(answer, secret);
  return label && `${digest} ${label}`;
}

/**
 * Which program reads what is kept for a collection, if its program repeats draws.
 * @param {Client} client
 * @returns {Kept | undefined}
 */
export function keptBy({ definition }) {
  const { fingerprint, context, input, steps, tables, memo, report } = definition;
  return memo ? [fingerprint, toHex(sha256(utf8(canonical({ context, input, steps, tables, memo, report }))))] : undefined;
}

/**
 * The state of a device that draws by this program. Two programs that read the same kept draws would together give away
 * more than both are charged, so that the first one stays the only one.
 * @param {State} state
 * @param {Kept} [kept]
 * @returns {State}
 * @throws {Unconfirmed} where another program read them before
 */
export function bound(state, kept) {
  if (!kept) return state;
  const programs = state.programs ?? [];
  const known = programs.find(([fingerprint]) => fingerprint === kept[0]);
  if (known && known[1] !== kept[1]) throw new Unconfirmed("another program has read the draws that this device keeps for the collection");
  return known ? state : { ...state, programs: [...programs, kept] };
}

/**
 * What is kept after a charge.
 * @param {State} state
 * @param {number} units
 * @param {Date} now
 * @param {string} [label] of what is charged once only
 * @returns {State}
 * @throws {OverBudget} where it does not fit
 */
export function charged(state, units, now, label) {
  if (label && state.labels.includes(label)) return state;
  const spent = today(state.spent, now);
  const over = [
    { period: "lifetime", limit: state.limits.lifetime, spent: spent.lifetime },
    ...(state.limits.day === null ? [] : [{ period: "day", limit: state.limits.day, spent: spent.day }]),
  ].filter((each) => each.spent + units > each.limit);
  if (over.length) throw new OverBudget(units, over);
  const after = { ...spent, lifetime: spent.lifetime + units, day: spent.day + units };
  return { ...state, spent: after, labels: label ? [...state.labels, label] : state.labels };
}

/**
 * @param {{ lifetime: number, day: number | null }} limits
 * @param {Date} now
 * @returns {State}
 */
function made(limits, now) {
  return { secret: newSecret(), since: now.toISOString(), limits, spent: { lifetime: 0, day: 0, date: dateOf(now) }, labels: [] };
}

/**
 * The record, if one can go by it: what cannot be read must not look like nothing spent.
 * @param {State | undefined} stored
 * @returns {State}
 */
function checked(stored) {
  if (!stored) throw new Error("the budget of this device was cleared; open it again, which starts a new budget and reports that");
  const { limits, spent, labels } = stored;
  const units = [limits?.lifetime, limits?.day ?? 0, spent?.lifetime, spent?.day];
  const whole = units.every((each) => Number.isSafeInteger(each) && each >= 0);
  if (whole && typeof spent.date === "string" && Array.isArray(labels) && stored.secret instanceof Uint8Array) return stored;
  throw new Error("the record of this device's budget is damaged; clear it, which starts a new budget and reports that");
}

/**
 * What was spent as it counts now. A clock that goes back refills nothing.
 * @param {Spent} spent
 * @param {Date} now
 */
function today(spent, now) {
  const date = dateOf(now);
  return date > spent.date ? { ...spent, day: 0, date } : spent;
}

/** @param {Date} now */
const dateOf = (now) => now.toISOString().slice(0, 10);

/** The least δ that promises nothing, in units. */
const NO_DELTA = 10 ** UNITS;

/**
 * What a report is charged, in units, rounded up: its ε, or that of all reports of an answer, whatever δ is stated.
 * @param {any} guarantee of a definition
 */
export function costOf({ epsilon, delta, answer_epsilon: together = epsilon }) {
  if (epsilon === null || together === null || unitsOf(delta, false) >= NO_DELTA) {
    throw new TypeError(`a device charges promises of an ε, with a δ below 1; this one is ε = ${epsilon}, δ = ${delta}`);
  }
  return Math.max(unitsOf(epsilon, true), unitsOf(together, true));
}

/**
 * A decimal as whole units, rounded up or down.
 * @param {string} text
 * @param {boolean} up
 */
export function unitsOf(text, up) {
  const parts = typeof text === "string" && /^([0-9]{1,400})(?:\.([0-9]{1,400}))?(?:[eE]([+-]?[0-9]{1,3}))?$/.exec(text);
  if (!parts) throw new TypeError(`a limit must be a decimal >= 0 as text: got ${text}`);
  const [, whole, fraction = "", power = "0"] = parts;
  const places = UNITS + Number(power) - fraction.length;
  const digits = BigInt(whole + fraction);
  const cut = 10n ** BigInt(Math.abs(places));
  const units = Number(places >= 0 ? digits * cut : digits / cut + (up && digits % cut ? 1n : 0n));
  if (!Number.isSafeInteger(units)) throw new RangeError(`a limit must be at most 9007199: got ${text}`);
  return units;
}

/** @param {number} units */
export function epsilonOf(units) {
  const text = String(units).padStart(UNITS + 1, "0");
  return `${text.slice(0, -UNITS)}.${text.slice(-UNITS)}`.replace(/\.?0+$/, "");
}

/**
 * @param {IDBFactory} indexedDB
 * @param {string} name
 * @returns {Promise<IDBDatabase>}
 */
async function opened(indexedDB, name) {
  const request = indexedDB.open(name, VERSION);
  request.onupgradeneeded = () => {
    for (const store of STORES) request.result.createObjectStore(store);
  };
  const database = await answered(request);
  database.onversionchange = () => database.close(); // a page of a newer version waits for that, and so does clearing the storage
  return database;
}
