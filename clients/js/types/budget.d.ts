/**
 * What an IndexedDB request answers.
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
export function answered<T>(request: IDBRequest<T>): Promise<T>;
/**
 * The label of what is charged once only: what was promised of all reports of an answer; and of this program, as another
 * draws otherwise.
 * @param {Client} client
 * @param {any} answer
 * @param {Uint8Array} secret
 */
export function onceOf(client: Client, answer: any, secret: Uint8Array): string | undefined;
/**
 * Which program reads what is kept for a collection, if its program repeats draws.
 * @param {Client} client
 * @returns {Kept | undefined}
 */
export function keptBy({ definition }: Client): Kept | undefined;
/**
 * The state of a device that draws by this program. Two programs that read the same kept draws would together give away
 * more than both are charged, so that the first one stays the only one.
 * @param {State} state
 * @param {Kept} [kept]
 * @returns {State}
 * @throws {Unconfirmed} where another program read them before
 */
export function bound(state: State, kept?: Kept): State;
/**
 * What is kept after a charge.
 * @param {State} state
 * @param {number} units
 * @param {Date} now
 * @param {string} [label] of what is charged once only
 * @returns {State}
 * @throws {OverBudget} where it does not fit
 */
export function charged(state: State, units: number, now: Date, label?: string): State;
/**
 * What a report is charged, in units, rounded up: its ε, or that of all reports of an answer, whatever δ is stated.
 * @param {any} guarantee of a definition
 */
export function costOf({ epsilon, delta, answer_epsilon: together }: any): number;
/**
 * A decimal as whole units, rounded up or down.
 * @param {string} text
 * @param {boolean} up
 */
export function unitsOf(text: string, up: boolean): number;
/** @param {number} units */
export function epsilonOf(units: number): string;
/** A charge that does not fit, of which nothing was drawn. */
export class OverBudget extends Error {
    /**
     * @param {number} asked units
     * @param {{ period: string, limit: number, spent: number }[]} limits those that it does not fit, in units
     */
    constructor(asked: number, limits: {
        period: string;
        limit: number;
        spent: number;
    }[]);
    asked: number;
    limits: {
        period: string;
        limit: number;
        spent: number;
    }[];
}
export class DeviceBudget {
    /**
     * The budget of this device, made where there is none. Limits that are there already can be lowered, not raised.
     * @param {Limits} limits
     * @param {{ name?: string, now?: () => Date, indexedDB?: IDBFactory }} [options]
     */
    static open(limits: Limits, { name, now, indexedDB }?: {
        name?: string;
        now?: () => Date;
        indexedDB?: IDBFactory;
    }): Promise<DeviceBudget>;
    /**
     * @param {IDBDatabase} database
     * @param {() => Date} now
     */
    constructor(database: IDBDatabase, now: () => Date);
    database: IDBDatabase;
    now: () => Date;
    /** Whether nothing was kept here before: a new secret, and nothing is known of what was sent earlier. */
    fresh: boolean;
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
    randomize(client: Client, answer: any): Promise<Uint8Array>;
    /**
     * @param {number} units
     * @param {string} [label] of what is charged once only
     * @param {Kept} [kept] of a program that repeats draws
     */
    charge(units: number, label?: string, kept?: Kept): Promise<void>;
    /** What was spent and what is left, as decimal text, and since when it is counted. */
    balance(): Promise<{
        since: string;
        lifetime: {
            limit: string;
            spent: string;
            left: string;
        } | undefined;
        day: {
            limit: string;
            spent: string;
            left: string;
        } | undefined;
    }>;
    /** @returns {Promise<State>} */
    state(): Promise<State>;
    close(): void;
    /**
     * Reads and writes in one transaction, which no other page of this device comes between.
     * @template T
     * @param {(state: State | undefined) => { state: State | undefined, result: T }} change
     * @returns {Promise<T>}
     */
    update<T>(change: (state: State | undefined) => {
        state: State | undefined;
        result: T;
    }): Promise<T>;
    /**
     * Does some work in one transaction on the budget and other stores: all of it is kept, durably, or none. The work may
     * wait for what it asks of the stores, and for nothing else.
     * @template T
     * @param {string[]} stores
     * @param {(transaction: IDBTransaction) => Promise<T>} work
     * @returns {Promise<T>}
     */
    transact<T>(stores: string[], work: (transaction: IDBTransaction) => Promise<T>): Promise<T>;
    /**
     * What is kept, within a transaction on the budget.
     * @param {IDBTransaction} transaction
     * @returns {Promise<State>}
     */
    stateWithin(transaction: IDBTransaction): Promise<State>;
    /**
     * Keeps another state, within a transaction on the budget.
     * @param {IDBTransaction} transaction
     * @param {State} state
     */
    keepWithin(transaction: IDBTransaction, state: State): void;
}
export type Client = import("./index.js").Client | import("./questionnaire.js").Questionnaire;
/**
 * ε as decimal text
 */
export type Limits = {
    lifetime: string;
    day?: string;
};
/**
 * units
 */
export type Spent = {
    lifetime: number;
    day: number;
    date: string;
};
/**
 * the fingerprint that kept draws belong to, and the digest of the program that reads them
 */
export type Kept = [string, string];
export type State = {
    secret: Uint8Array;
    since: string;
    limits: {
        lifetime: number;
        day: number | null;
    };
    spent: Spent;
    labels: string[];
    programs?: Kept[];
};
