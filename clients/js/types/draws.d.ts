export function systemBytes(count: number): Uint8Array;
export const MOST_BOUND: bigint;
export class Draws {
    /** @param {Read} read */
    constructor(read?: Read);
    read: Read;
    /** @param {Whole} t */
    bit(t: Whole): any;
    /**
     * @param {Whole} t
     * @param {Whole} n
     */
    bits(t: Whole, n: Whole): any[];
    /** @param {Whole} t */
    bit_at(t: Whole): number;
    /**
     * @param {bigint} threshold
     * @param {number} size
     * @param {boolean} ties whether more is read where a byte does not decide
     */
    compare(threshold: bigint, size: number, ties: boolean): number[];
    /** @param {Vector} vector */
    bits_each(vector: Vector): any[];
    /** @param {Whole} b */
    below(b: Whole): import("./numbers.js").Whole;
    /**
     * @param {Whole} b
     * @param {Whole} n
     * @returns {Vector}
     */
    belows(b: Whole, n: Whole): Vector;
    /**
     * Words of some bytes, each cut to the bits that a number needs.
     * @param {number} width
     * @param {Vector} numbers
     */
    words(width: number, numbers: Vector): import("./numbers.js").Whole[];
    /**
     * One number up to each of these, by words as wide as the largest needs.
     * @param {number[]} lasts
     */
    belowEach(lasts: number[]): import("./numbers.js").Vector;
    /**
     * @param {Whole} b
     * @param {Whole} n
     */
    belows_from(b: Whole, n: Whole): import("./numbers.js").Whole[];
    /**
     * @param {Whole} m
     * @param {Whole} n
     * @returns {Vector}
     */
    subset(m: Whole, n: Whole): Vector;
    /**
     * @param {Whole} population
     * @param {number} size
     */
    distinct(population: Whole, size: number): import("./numbers.js").Vector;
    /** @param {Vector} vector */
    shuffle(vector: Vector): import("./numbers.js").Whole[];
    /** @param {Whole} t */
    geometric(t: Whole): number;
    /** @param {Whole} k */
    laplace(k: Whole): number;
    /** @param {Whole} k */
    normal(k: Whole): number;
    /**
     * Uniform deviates that are drawn together, as their digits of 32 bits: two that are drawn at once.
     * @param {number} count
     */
    deviates(count: number): number[][];
    /**
     * Whether one deviate is less than another; further digits are drawn as far as that asks for them.
     * @param {number[]} one
     * @param {number[]} other
     */
    isLess(one: number[], other: number[]): boolean;
}
export type Whole = import("./numbers.js").Whole;
export type Vector = import("./numbers.js").Vector;
/**
 * the next so many uniform bytes
 */
export type Read = (count: number) => Uint8Array;
