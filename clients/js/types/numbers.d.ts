/**
 * @template {Whole} T
 * @param {T} number
 * @param {Whole} least
 * @param {Whole} most
 * @returns {T} `number`
 * @throws {RangeError} unless it is a whole number from `least` to `most`
 */
export function within<T extends Whole>(number: T, least: Whole, most: Whole): T;
/**
 * @param {bigint} number
 * @returns {Whole}
 */
export function small(number: bigint): Whole;
/**
 * A whole number in a program.
 * @param {any} number
 */
export function literal(number: any): Whole;
/**
 * Checks the numbers that an operator takes next to vectors that have no entry: others are checked entry by entry.
 * @param {string} name
 * @param {any[]} given
 */
export function checkNextToNone(name: string, given: any[]): void;
/** @typedef {number | bigint} Whole */
/** @typedef {Whole[]} Vector */
/** The longest vector, and the largest number of bits: more is refused before it is made. */
export const MOST: number;
export function sized(number: Whole): number;
export function isPlain(text: any): boolean;
/**
 * The operators that go over vectors one number at a time. A map: names of an object's own, such as `constructor`,
 * are no operators.
 * @type {Map<string, (...numbers: any[]) => Whole>}
 */
export const EACH: Map<string, (...numbers: any[]) => Whole>;
export function ascending(a: Whole, b: Whole): 0 | 1 | -1;
/**
 * The operators on whole vectors.
 * @type {Map<string, (...given: any[]) => any>}
 */
export const WHOLE: Map<string, (...given: any[]) => any>;
export type Whole = number | bigint;
export type Vector = Whole[];
