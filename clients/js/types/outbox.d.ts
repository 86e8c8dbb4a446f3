export class Outbox {
    /** @param {DeviceBudget} budget */
    constructor(budget: DeviceBudget);
    budget: import("./budget.js").DeviceBudget;
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
    draw(key: string, client: Client, answer: any, { about, uncounted }?: {
        about?: any;
        uncounted?: boolean;
    }): Promise<Entry>;
    /**
     * Says what has become of a report. What was settled stays as it is.
     * @param {string} key
     * @param {Partial<Entry> & Record<string, any>} change such as a `state`; undefined drops what there was
     * @returns {Promise<Entry | undefined>} as it is kept now
     */
    settle(key: string, change: Partial<Entry> & Record<string, any>): Promise<Entry | undefined>;
    /**
     * Deletes the report of an entry and changes what is kept with it. The charge stays, and nothing is drawn again.
     * @param {string} key of an entry that is settled
     * @param {any} about replaces parts of what is kept; undefined deletes one
     * @returns {Promise<Entry | undefined>} as it is kept now
     */
    forget(key: string, about: any): Promise<Entry | undefined>;
    /**
     * @param {string} key
     * @returns {Promise<Entry | undefined>}
     */
    entry(key: string): Promise<Entry | undefined>;
    /** @returns {Promise<Entry[]>} all of them, oldest first */
    entries(): Promise<Entry[]>;
}
export function counts(guarantee: any): boolean;
export type Client = import("./index.js").Client | import("./questionnaire.js").Questionnaire;
export type DeviceBudget = import("./budget.js").DeviceBudget;
export type Entry = {
    /**
     * which makes sending it again safe
     */
    key: string;
    /**
     * its name
     */
    collection: string;
    /**
     * of its definition
     */
    digest: string;
    /**
     * until it is dropped
     */
    report?: Uint8Array<ArrayBufferLike> | undefined;
    /**
     * which memoised draw it repeats
     */
    label?: string | undefined;
    /**
     * when it was drawn, in ISO 8601
     */
    at: string;
    /**
     * `waiting`, until it is settled
     */
    state: string;
    /**
     * what the device was charged, null where it does not count that
     */
    units: number | null;
    /**
     * what the page wants to keep with it
     */
    about: any;
};
