/** How many combinations there are. @param {bigint} m @param {bigint} n */
export function choose(m: bigint, n: bigint): bigint;
/**
 * What is kept must be kept for what reports are charged by, and reports be made of that and of draws alone.
 * @param {any} definition
 */
export function checkMemo({ memo, tables, steps, report: { parts } }: any): void;
/**
 * Bounds of the last of some steps, of which the first is drawn and given away. It is refused where that may fail, or has other draws.
 * @param {any} definition
 * @param {string[]} names of its first steps
 */
export function hashed(definition: any, names: string[]): import("./intervals.js").Interval;
/**
 * Bounds of a report (or `ever`, of all reports of an answer), by every choice of what is given away.
 * @param {any} definition
 * @param {boolean} [ever]
 * @returns {Generator<{ look: Look, largest: bigint, every: bigint | undefined } | Unconfirmed>}
 */
export function looks(definition: any, ever?: boolean): Generator<{
    look: Look;
    largest: bigint;
    every: bigint | undefined;
} | Unconfirmed>;
export function countOf(input: any): bigint;
/** Rounded up. @type {(a: bigint, b: bigint) => bigint} */
export const product: (a: bigint, b: bigint) => bigint;
/** Rounded up, to 2^-PLACES. @type {(a: bigint, b: bigint) => bigint} */
export const quotient: (a: bigint, b: bigint) => bigint;
export type Interval = import("./intervals.js").Interval;
export type Bounds = {
    lo: bigint;
    hi: bigint;
    distinct?: boolean;
};
/**
 * of bits: so many at most are 1 for one answer; `once`: each for one answer at most
 */
export type Group = {
    limit: number;
    once: boolean;
};
/** One way to look at a program. */
declare class Look {
    /**
     * @param {any} definition
     * @param {Set<string>} open names of the draws that are given away
     * @param {boolean} ever of all reports of an answer: everything that is not kept is given away
     */
    constructor(definition: any, open: Set<string>, ever: boolean);
    definition: any;
    open: Set<string>;
    ever: boolean;
    answer: number | Span;
    /** @type {Map<string, any>} */
    known: Map<string, any>;
    uses: (name: string) => number;
    /** @param {any} expression @param {string} [step] the step that it is @returns {any} */
    work(expression: any, step?: string): any;
    /** Whether a draw is read in one place alone. @param {any} name */
    isAlone(name: any): boolean;
    /** @param {string} name @param {any[]} given @param {any[]} named */
    whole(name: string, given: any[], named: any[]): any;
    /** @param {any} place @param {any} count */
    onehot(place: any, count: any): any[];
    /** @param {any} vector @param {any} number */
    rank(vector: any, number: any): any;
    /** @param {string} name @param {string} seed @param {any[]} given */
    hash(name: string, seed: string, given: any[]): any;
    /** @param {any} t @param {boolean} free whether it was given away @param {boolean} [fresh] @returns {any} */
    bit(t: any, free: boolean, fresh?: boolean): any;
    /**
     * @param {any} b
     * @param {boolean} free
     * @param {string} step
     * @param {bigint | undefined} words of how many it is the rest
     * @param {boolean} fresh
     * @returns {any}
     */
    below(b: any, free: boolean, step: string, words: bigint | undefined, fresh: boolean): any;
    /** Where the rank of a draw changes, if nothing else is made of it. @param {string} step @param {bigint} bound */
    cuts(step: string, bound: bigint): bigint[] | undefined;
    /** @param {string} name @param {any[]} given @param {string} step @param {any[]} named @returns {any} */
    draw(name: string, given: any[], step: string, named: any[]): any;
    /** @param {any} m @param {number} n @param {boolean} free @returns {any} */
    subset(m: any, n: number, free: boolean): any;
    /** @param {any[]} vector @param {boolean} free */
    shuffle(vector: any[], free: boolean): any[];
    /** @param {string} name @param {any[]} given @param {string} step */
    keep(name: string, given: any[], step: string): any;
    /**
     * The numbers of the report that hidden draws are part of. It is refused where the answer itself is in it, or where it
     * may have no report.
     */
    messages(): any;
    /** Messages that share draws. @returns {Mixed[][]} */
    components(): Mixed[][];
    /**
     * The largest ratio of probabilities of a report for two answers; and of all that is kept for every answer together,
     * where that is known. In multiples of 2^-PLACES, rounded up.
     */
    bound(): {
        largest: bigint;
        every: bigint | undefined;
    };
    /** How many different draws may be kept. @returns {bigint} */
    get draws(): bigint;
}
import { Unconfirmed } from "./intervals.js";
/** A number within bounds, that no hidden draw is part of. */
declare class Span {
    /**
     * @param {Interval} ends
     * @param {boolean} secret whether it depends on the answer
     * @param {boolean} [fresh] whether each report has another one
     */
    constructor([lo, hi]: Interval, secret: boolean, fresh?: boolean);
    lo: bigint;
    hi: bigint;
    secret: boolean;
    fresh: boolean;
    /** @type {Group | undefined} */
    group: Group | undefined;
    /** @type {any} what it is now, for one answer */
    at: any;
    /** @returns {any[]} */
    get options(): any[];
}
/** A number that hidden draws are part of. */
declare class Mixed {
    /**
     * @param {Interval} ends
     * @param {Hidden[]} hidden
     * @param {Span[]} choices numbers that depend on the answer
     * @param {() => any} work
     * @param {boolean} open whether it is not the number but something of which the number is made by what was given away
     */
    constructor([lo, hi]: Interval, hidden: Hidden[], choices: Span[], work: () => any, open?: boolean);
    lo: bigint;
    hi: bigint;
    hidden: Hidden[];
    choices: Span[];
    work: () => any;
    open: boolean;
    tick: number;
    /** @type {any} */
    known: any;
    /** @type {Hidden | undefined} the draw that it is itself */
    direct: Hidden | undefined;
    get(): any;
}
/** A hidden draw: outcomes and their weights. */
declare class Hidden {
    /** @param {() => [any, bigint][]} outcomes as they are for the answer that is looked at */
    constructor(outcomes: () => [any, bigint][]);
    outcomes: () => [any, bigint][];
    /** @type {any} */
    at: any;
}
export {};
