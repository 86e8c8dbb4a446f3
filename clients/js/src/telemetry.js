/**
 * Metrics of a page or an app as randomized reports, one for each metric and period, through the telemetry that is there.
 *
 *     const reports = await Reports.open({ budget: { lifetime: "4" }, name: "metrics", metrics: {
 *       plan: { event: "plan_chosen", property: "plan", definition, digest },
 *     } });
 *     posthog.init(key, { before_send: forPostHog(reports, () => posthog), advanced_disable_flags: true });
 *
 * The event of a metric is not sent: its number and its time would speak. A device that was open in a period sends one report
 * about it, after the period. Where nothing happened it is a report of `none`. It is charged when the period begins, so that
 * neither what happens nor when decides what is charged, sent or refused. The device keeps a drawn report, never an answer.
 */

import { OverBudget, DeviceBudget, answered, charged, costOf } from "./budget.js";
import { toHex } from "./bytes.js";
import { systemBytes } from "./draws.js";
import { Client } from "./index.js";
import { confirmOnce } from "./loss.js";

export { forLogs, forOpenFeature, forPostHog, forSnowplow, forSpans } from "./telemetry_sdks.js";

/** @typedef {"day" | "week" | "month"} Period in UTC; a week begins on Monday */
/**
 * @typedef {object} Metric
 * @property {string} [event] the name of the SDK's event: of the event, the flag, the span or the log. Left out: the metric's name
 * @property {string} property of that event whose value is the answer
 * @property {any} definition of the collection
 * @property {string} [digest] the agreed one
 * @property {"drop" | "strip"} [original] what becomes of the SDK's event. `strip`: it is sent with what `allow` names; its number
 *   and its time then tell how often and when something happened
 * @property {string[]} [allow] properties that a stripped event keeps
 * @property {Period} [period] how often each device reports
 * @property {string | number} [none] the answer of a device on which nothing happened
 */
/** @typedef {Metric & { metric: string, event: string, original: "drop" | "strip", allow: string[], period: Period, none: string | number, client: Client, units: number, begun?: string, waiting?: { period: string, answer: any } }} Declared */
/** @typedef {{ metric: string, period: string, digest: string, key: string, report: string }} Report `report` in hexadecimal; `key` is that of a retry too */
/** @typedef {Record<string, any>} Properties */

const STORE = "outbox";
const PREFIX = "telemetry ";
const PERIODS = ["day", "week", "month"];
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const RETRY = 10 * MINUTE; // of a page that ended while it sent
const DAY = 24 * 60 * MINUTE;

export class Reports {
  /**
   * @param {{ budget: import("./budget.js").Limits, metrics: Record<string, Metric>, name?: string, now?: () => Date, indexedDB?: IDBFactory }} options
   *   `name` of the device's budget: that of other metrics and surveys of this origin too, if they have the same
   * @throws {TypeError} for a metric that would tell more than its reports; nothing was charged
   * @throws {import("./loss.js").Unconfirmed} where a program may give away more than its definition states
   */
  static async open({ budget, metrics, name, now = () => new Date(), indexedDB }) {
    const declared = Object.entries(metrics).map(([metric, given]) => declaredAs(metric, given));
    for (const one of declared) {
      const told = declared.find((other) => other.event === one.event && one.allow.includes(other.property));
      if (told) throw new TypeError(`the metric ${one.metric} allows ${told.property}, which is the answer of ${told.metric}: leave it out of \`allow\``);
    }
    const reports = new Reports(await DeviceBudget.open(budget, { name, now, indexedDB }), declared);
    await reports.turn();
    reports.tick();
    return reports;
  }

  /**
   * @param {DeviceBudget} budget
   * @param {Declared[]} metrics
   */
  constructor(budget, metrics) {
    this.budget = budget;
    this.metrics = metrics;
    /** @type {Set<string>} metrics whose report of this period does not fit the device's budget */
    this.refused = new Set();
    /** The names of answers, which no other event may carry. */
    this.guarded = new Set(metrics.map(({ property }) => property));
    /** @type {Promise<void>} */
    this.queue = Promise.resolve();
    /** @type {((report: Report) => any) | undefined} */
    this.send = undefined;
    /** @type {any} */
    this.timer = undefined;
    this.drawing = false;
  }

  /** Turns when a period begins, and each minute. */
  tick() {
    const periods = () => `${this.metrics.map(({ period }) => periodOf(this.budget.now(), period))}`;
    let [last, seconds] = [periods(), 0];
    this.timer = setInterval(() => {
      if (periods() === last && ++seconds % 60) return;
      last = periods();
      this.turn();
    }, SECOND);
    this.timer.unref?.();
  }

  /**
   * Begins periods and sends the reports of past ones. A timer calls it, never an event, whose time it would tell.
   * @returns {Promise<void>}
   */
  turn() {
    return this.next(async () => {
      for (const metric of this.metrics) await this.begin(metric);
      await this.draw();
      await this.deliver();
    });
  }

  /**
   * How reports leave: the first one that is given. What it throws keeps the report for the next minute.
   * @param {(report: Report) => any} send
   */
  through(send) {
    if (this.send) return;
    this.send = send;
    this.next(() => this.deliver());
  }

  /**
   * What of an SDK's event may be sent.
   * @param {string | undefined} event
   * @param {Properties | undefined} properties
   * @returns {Properties | null | undefined} undefined: no metric is about it; null: nothing
   */
  seen(event, properties) {
    const metrics = this.metrics.filter((metric) => metric.event === event);
    if (!metrics.length) return undefined;
    for (const metric of metrics) this.note(metric, copied(properties?.[metric.property]));
    if (metrics.some(({ original }) => original === "drop")) return null;
    const allowed = metrics[0].allow.filter((name) => metrics.every(({ allow }) => allow.includes(name)));
    return this.without(picked(properties, allowed));
  }

  /**
   * A value without members that have the name of an answer, however deep they are.
   * @param {any} value
   * @returns {any}
   */
  without(value) {
    if (Array.isArray(value)) return value.map((each) => this.without(each));
    if (!value || typeof value !== "object" || !isPlain(value)) return value;
    const names = Object.keys(value).filter((name) => !this.guarded.has(name));
    return Object.fromEntries(names.map((name) => [name, this.without(value[name])]));
  }

  /** Ends the timer and lets go of the store. */
  close() {
    clearInterval(this.timer);
    this.queue.then(() => this.budget.close());
  }

  /** @param {Declared} metric @param {any} answer the last one of a period counts */
  note(metric, answer) {
    try {
      metric.client.check(answer);
    } catch {
      warned(`${metric.metric}: the event ${metric.event} has no answer of the collection in ${metric.property}; it counts as nothing`);
      return;
    }
    metric.waiting = { period: periodOf(this.budget.now(), metric.period), answer };
    if (this.drawing) return;
    this.drawing = true;
    this.next(() => this.draw());
  }

  /** @param {() => Promise<void>} work after all other, whatever becomes of it */
  next(work) {
    this.queue = this.queue.then(work).catch((error) => warned(error.message));
    return this.queue;
  }

  /** @param {Declared} metric */
  async begin(metric) {
    const now = this.budget.now();
    const period = periodOf(now, metric.period);
    if (metric.begun === period) return;
    try {
      await this.within(async (kept, entries, transaction) => {
        const own = entries.filter((entry) => entry.about.metric === metric.metric && entry.digest === metric.definition.digest);
        // Another page has begun it, or the clock went back.
        if (own.some((entry) => entry.about.period >= period)) return;
        const paid = charged(await this.budget.stateWithin(transaction), metric.units, now);
        this.budget.keepWithin(transaction, paid);
        for (const entry of own) if (entry.state === "sent") kept.delete(entry.key);
        const { name: collection, digest } = metric.definition;
        const about = { metric: metric.metric, period, id: toHex(systemBytes(16)) };
        const entry = { key: keyOf(metric, period), collection, digest, at: now.toISOString(), state: "open", units: metric.units, about };
        kept.add({ ...entry, report: metric.client.randomize(metric.none) }, entry.key);
      });
      metric.begun = period;
      this.refused.delete(metric.metric);
    } catch (error) {
      if (!(error instanceof OverBudget)) throw error;
      this.refused.add(metric.metric); // as it would be whatever happens in the period
    }
  }

  /** Draws the reports of the events that came in. One that was drawn before goes, and was seen by nobody. */
  async draw() {
    this.drawing = false;
    for (const metric of this.metrics) {
      const { waiting } = metric;
      if (!waiting || waiting.period > (metric.begun ?? "")) continue; // the period begins within a second, or is refused
      metric.waiting = undefined;
      await this.within(async (kept) => {
        const key = keyOf(metric, waiting.period);
        const entry = await answered(kept.get(key));
        // One that was handed over may have arrived, whatever its sender said: another draw would be a second report.
        if (entry?.state === "open" && !entry.claimed) kept.put({ ...entry, report: metric.client.randomize(waiting.answer) }, key);
      });
    }
  }

  /** Hands over the reports of past periods, each to one page's sender. */
  async deliver() {
    if (!this.send) return;
    const now = this.budget.now();
    const past = (/** @type {any} */ { state, about, claimed }) => {
      const metric = this.metrics.find((each) => each.metric === about.metric);
      return metric && about.period < periodOf(now, metric.period) && (state === "open" || (state === "sending" && Date.parse(claimed) + RETRY < now.getTime()));
    };
    /** @type {any[]} */
    const due = await this.within(async (kept, entries) => {
      const found = entries.filter(past);
      for (const entry of found) kept.put({ ...entry, state: "sending", claimed: now.toISOString() }, entry.key);
      return found;
    });
    for (const { key, digest, report, about } of due) {
      /** @type {any} */
      let after = { state: "sent", report: undefined };
      try {
        await this.send({ metric: about.metric, period: about.period, digest, key: about.id, report: toHex(report) });
      } catch (error) {
        after = { state: "open" };
        warned(`a report was not taken, and is kept: ${/** @type {Error} */ (error)?.message}`);
      }
      await this.within(async (kept) => {
        const entry = await answered(kept.get(key));
        if (entry?.state === "sending") kept.put({ ...entry, ...after }, key);
      });
    }
  }

  /**
   * Works on the entries of this device's metrics in one transaction.
   * @template T
   * @param {(kept: IDBObjectStore, entries: any[], transaction: IDBTransaction) => Promise<T>} work
   */
  within(work) {
    return this.budget.transact([STORE], async (transaction) => {
      const kept = transaction.objectStore(STORE);
      const entries = (await answered(kept.getAll())).filter(({ key }) => key.startsWith(PREFIX));
      return work(kept, entries, transaction);
    });
  }
}

/**
 * @param {string} metric
 * @param {Metric} given
 * @returns {Declared}
 */
function declaredAs(metric, given) {
  /** @type {Omit<Declared, "metric" | "client" | "units">} */
  const made = { event: metric, original: "drop", allow: [], none: "none", period: "day", ...given };
  const no = (/** @type {string} */ why) => new TypeError(`the metric ${metric}: ${why}`);
  const unknown = Object.keys(made).find((name) => !["event", "property", "definition", "digest", "original", "allow", "period", "none"].includes(name));
  if (unknown) throw no(`there is no option ${unknown}`);
  if (typeof made.property !== "string") throw no("`property` must name the property of the event that holds the answer");
  if (!PERIODS.includes(made.period)) throw no(`\`period\` must be day, week or month: got ${made.period}`);
  if (!["drop", "strip"].includes(made.original)) throw no(`\`original\` must be drop or strip: got ${made.original}`);
  if (made.allow.length && made.original === "drop") throw no('`allow` is for `original: "strip"`: an event that is not sent keeps nothing');
  const client = new Client(made.definition, { digest: made.digest });
  // What repeated draws are charged depends on the answers, and so would which reports are refused.
  if (client.memoises) throw no("its collection repeats draws, whose charges tell whether an answer is new: take a mechanism that draws each report");
  try {
    client.check(made.none);
  } catch {
    throw no(`a device on which nothing happened reports \`none\`: ${JSON.stringify(made.none)} is no answer of the collection. Add it, or name one`);
  }
  confirmOnce(made.definition);
  return { ...made, metric, client, units: costOf(made.definition.guarantee) };
}

/** @param {Declared} metric @param {string} period */
const keyOf = ({ metric, definition }, period) => `${PREFIX}${JSON.stringify(metric)} ${period} ${definition.digest}`;

/** @param {Date} now @param {Period} period */
function periodOf(now, period) {
  const monday = new Date(now.getTime() - ((now.getUTCDay() + 6) % 7) * DAY);
  return (period === "week" ? monday : now).toISOString().slice(0, period === "month" ? 7 : 10);
}

/** @param {Properties | undefined} properties @param {Iterable<string>} names @returns {Properties} */
export function picked(properties, names) {
  /** @type {Properties} */
  const found = {};
  for (const name of names) if (properties && Object.hasOwn(properties, name)) found[name] = properties[name];
  return found;
}

/** @param {object} value */
const isPlain = (value) => [Object.prototype, null].includes(Object.getPrototypeOf(value));

/** An answer as it is now: what page code keeps may change before the report is drawn. @param {any} answer */
function copied(answer) {
  try {
    return structuredClone(answer);
  } catch {
    return undefined; // a function, which is no answer
  }
}

const said = new Set();

/** @param {string} message said once, without any answer */
export function warned(message) {
  if (!said.has(message)) console.warn(`ldp-budget: ${message}`);
  said.add(message);
}
