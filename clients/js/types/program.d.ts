/**
 * A user's secret for one collection: what is drawn from it tells nothing of what another draws.
 * @param {Uint8Array | undefined} secret
 * @param {string} context
 */
export function secretWithin(secret: Uint8Array | undefined, context: string): Uint8Array<ArrayBuffer>;
/**
 * What reads the secret in the stream's place, and so draws the same again: what becomes of a word.
 * @type {Map<string, (word: bigint, given: Whole, place: number) => Whole>}
 */
export const MEMO: Map<string, (word: bigint, given: Whole, place: number) => Whole>;
/**
 * Public hash functions.
 * @type {Map<string, (seed: string) => (...given: any[]) => any>}
 */
export const HASHES: Map<string, (seed: string) => (...given: any[]) => any>;
export class Program {
    /**
     * @param {any} definition a collection's public definition, or what of it is the program
     * @throws {TypeError} where it has an operator that this client does not know
     */
    constructor(definition: any);
    definition: any;
    /** @type {Map<string, Step>} */
    names: Map<string, Step>;
    /** @type {Step[]} */
    steps: Step[];
    parts: any;
    /** How many bytes a report has. */
    size: number;
    memo: Step | undefined;
    /**
     * @param {string} name
     * @returns {Step}
     */
    named(name: string): Step;
    /**
     * An expression as a function of what was worked out before it. No code is made of text: a strict CSP holds.
     * @param {any} expression
     * @returns {Step}
     */
    compile(expression: any): Step;
    /**
     * @param {string} name
     * @param {any[]} given
     * @returns {Step}
     */
    call(name: string, given: any[]): Step;
    /**
     * A part of the report: its size, and how it is written.
     * @param {any[]} part
     */
    part([kind, name, ...more]: any[]): {
        size: number;
        value: (run: Run) => import("./numbers.js").Vector;
        /** @type {(run: Run, out: Uint8Array) => void} */
        write: (run: Run, out: Uint8Array) => void;
        /** @type {(bytes: Uint8Array) => Vector} */
        read: (bytes: Uint8Array) => Vector;
    } | {
        size: number;
        /** @type {(run: Run, out: Uint8Array) => void} */
        write: (run: Run, out: Uint8Array) => void;
        value?: undefined;
        /** @type {(bytes: Uint8Array) => Vector} */
        read?: undefined;
    };
    /**
     * The whole number of an answer.
     * @param {any} answer
     * @returns {Whole}
     */
    read(answer: any): Whole;
    /**
     * One report.
     * @param {any} answer
     * @param {Given} given
     */
    run(answer: any, given?: Given): Uint8Array<ArrayBuffer>;
    /**
     * @param {any} answer
     * @param {Given} given
     * @returns {Run}
     */
    evaluate(answer: any, { secret, draws }?: Given): Run;
}
export type Whole = import("./numbers.js").Whole;
export type Vector = import("./numbers.js").Vector;
export type Step = (run: Run) => any;
export type Words = (secret: Uint8Array, v: Whole, count: number) => bigint[];
export type Run = {
    values: any[];
    draws: any;
    secret: any;
    lift?: (operate: (...given: any[]) => any) => (...given: any[]) => any;
};
/**
 * `secret`: that of the collection, see `secretWithin`
 */
export type Given = {
    secret?: Uint8Array;
    draws?: any;
};
