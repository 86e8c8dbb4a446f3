/** @param {Properties | undefined} properties @param {Iterable<string>} names @returns {Properties} */
export function picked(properties: Properties | undefined, names: Iterable<string>): Properties;
/** @param {string} message said once, without any answer */
export function warned(message: string): void;
export class Reports {
    /**
     * @param {{ budget: import("./budget.js").Limits, metrics: Record<string, Metric>, name?: string, now?: () => Date, indexedDB?: IDBFactory }} options
     *   `name` of the device's budget: that of other metrics and surveys of this origin too, if they have the same
     * @throws {TypeError} for a metric that would tell more than its reports; nothing was charged
     * @throws {import("./loss.js").Unconfirmed} where a program may give away more than its definition states
     */
    static open({ budget, metrics, name, now, indexedDB }: {
        budget: import("./budget.js").Limits;
        metrics: Record<string, Metric>;
        name?: string;
        now?: () => Date;
        indexedDB?: IDBFactory;
    }): Promise<Reports>;
    /**
     * @param {DeviceBudget} budget
     * @param {Declared[]} metrics
     */
    constructor(budget: DeviceBudget, metrics: Declared[]);
    budget: DeviceBudget;
    metrics: Declared[];
    /** @type {Set<string>} metrics whose report of this period does not fit the device's budget */
    refused: Set<string>;
    /** The names of answers, which no other event may carry. */
    guarded: Set<string>;
    /** @type {Promise<void>} */
    queue: Promise<void>;
    /** @type {((report: Report) => any) | undefined} */
    send: ((report: Report) => any) | undefined;
    /** @type {any} */
    timer: any;
    drawing: boolean;
    /** Turns when a period begins, and each minute. */
    tick(): void;
    /**
     * Begins periods and sends the reports of past ones. A timer calls it, never an event, whose time it would tell.
     * @returns {Promise<void>}
     */
    turn(): Promise<void>;
    /**
     * How reports leave: the first one that is given. What it throws keeps the report for the next minute.
     * @param {(report: Report) => any} send
     */
    through(send: (report: Report) => any): void;
    /**
     * What of an SDK's event may be sent.
     * @param {string | undefined} event
     * @param {Properties | undefined} properties
     * @returns {Properties | null | undefined} undefined: no metric is about it; null: nothing
     */
    seen(event: string | undefined, properties: Properties | undefined): Properties | null | undefined;
    /**
     * A value without members that have the name of an answer, however deep they are.
     * @param {any} value
     * @returns {any}
     */
    without(value: any): any;
    /** Ends the timer and lets go of the store. */
    close(): void;
    /** @param {Declared} metric @param {any} answer the last one of a period counts */
    note(metric: Declared, answer: any): void;
    /** @param {() => Promise<void>} work after all other, whatever becomes of it */
    next(work: () => Promise<void>): Promise<void>;
    /** @param {Declared} metric */
    begin(metric: Declared): Promise<void>;
    /** Draws the reports of the events that came in. One that was drawn before goes, and was seen by nobody. */
    draw(): Promise<void>;
    /** Hands over the reports of past periods, each to one page's sender. */
    deliver(): Promise<void>;
    /**
     * Works on the entries of this device's metrics in one transaction.
     * @template T
     * @param {(kept: IDBObjectStore, entries: any[], transaction: IDBTransaction) => Promise<T>} work
     */
    within<T>(work: (kept: IDBObjectStore, entries: any[], transaction: IDBTransaction) => Promise<T>): Promise<T>;
}
/**
 * in UTC; a week begins on Monday
 */
export type Period = "day" | "week" | "month";
export type Metric = {
    /**
     * the name of the SDK's event: of the event, the flag, the span or the log. Left out: the metric's name
     */
    event?: string | undefined;
    /**
     * of that event whose value is the answer
     */
    property: string;
    /**
     * of the collection
     */
    definition: any;
    /**
     * the agreed one
     */
    digest?: string | undefined;
    /**
     * what becomes of the SDK's event. `strip`: it is sent with what `allow` names; its number
     * and its time then tell how often and when something happened
     */
    original?: "drop" | "strip" | undefined;
    /**
     * properties that a stripped event keeps
     */
    allow?: string[] | undefined;
    /**
     * how often each device reports
     */
    period?: Period | undefined;
    /**
     * the answer of a device on which nothing happened
     */
    none?: string | number | undefined;
};
export type Declared = Metric & {
    metric: string;
    event: string;
    original: "drop" | "strip";
    allow: string[];
    period: Period;
    none: string | number;
    client: Client;
    units: number;
    begun?: string;
    waiting?: {
        period: string;
        answer: any;
    };
};
/**
 * `report` in hexadecimal; `key` is that of a retry too
 */
export type Report = {
    metric: string;
    period: string;
    digest: string;
    key: string;
    report: string;
};
export type Properties = Record<string, any>;
import { DeviceBudget } from "./budget.js";
import { Client } from "./index.js";
export { forLogs, forOpenFeature, forPostHog, forSnowplow, forSpans } from "./telemetry_sdks.js";
