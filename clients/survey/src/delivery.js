// Reports on their way: what waits in the outbox is sent until the service has answered, the same bytes under the same
// key, by one page of the device at a time.

import { send } from "./service.js";

/** @typedef {import("../../js/src/outbox.js").Outbox} Outbox */
/** @typedef {import("../../js/src/outbox.js").Entry} Entry */

const FIRST_MS = 1000;
const MOST_MS = 5 * 60_000;

export class Delivery {
  /**
   * @param {Outbox} outbox
   * @param {(entry: Entry, why?: string) => void} changed called with each result; `why`: the reason it still waits
   */
  constructor(outbox, changed) {
    this.outbox = outbox;
    this.changed = changed;
    this.failures = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    /** @type {Promise<void> | undefined} */
    this.running = undefined;
    /** @type {Set<string>} reports that wait until something changes */
    this.stuck = new Set();
    this.others = new BroadcastChannel("ldp-budget");
    this.others.onmessage = async ({ data }) => {
      const entry = await this.outbox.entry(data);
      if (entry) this.changed(entry);
    };
    addEventListener("online", () => this.now());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.now());
  }

  /** Sends all waiting reports now, also after failures. */
  now() {
    this.failures = 0;
    this.stuck.clear();
    return this.run();
  }

  run() {
    clearTimeout(this.timer);
    this.running ??= this.alone(() => this.round()).finally(() => (this.running = undefined));
    return this.running;
  }

  /**
   * Does the work unless another page is doing it. Sending a report twice is harmless: the service takes it once.
   * @param {() => Promise<void>} work
   */
  async alone(work) {
    if (!navigator.locks) return work();
    await navigator.locks.request("ldp-budget outbox", { ifAvailable: true }, (lock) => (lock ? work() : this.later(FIRST_MS)));
  }

  async round() {
    let longest = 0;
    let waits = false;
    for (const entry of await this.outbox.entries()) {
      if (entry.state !== "waiting" || this.stuck.has(entry.key)) continue;
      const { state, after = 0, stuck = false, why, ...found } = await send(entry);
      if (state === "waiting") {
        if (stuck) this.stuck.add(entry.key);
        else waits = true;
        longest = Math.max(longest, after);
        this.changed(entry, why);
        continue;
      }
      await this.settle(entry, { state, why, ...found });
    }
    if (waits) this.later(Math.max(longest, this.backoff()));
    else this.failures = 0;
  }

  /**
   * @param {Entry} entry
   * @param {any} found
   */
  async settle(entry, found) {
    // A report that did not arrive is deleted, and never drawn again. The token is no longer needed.
    const about = { ...entry.about, token: undefined, ...(found.state === "arrived" ? {} : { secret: undefined }) };
    const settled = await this.outbox.settle(entry.key, { ...found, about, ...(found.state === "arrived" ? {} : { report: undefined }) });
    this.others.postMessage(entry.key);
    if (settled) this.changed(settled);
  }

  /** The delay after this many failures: it doubles each time, with jitter so that devices do not retry together. */
  backoff() {
    const most = Math.min(MOST_MS, FIRST_MS * 2 ** this.failures++);
    return most * (0.5 + 0.5 * Math.random());
  }

  /** @param {number} ms */
  later(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), ms);
  }
}
