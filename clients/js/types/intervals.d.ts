export function requires(holds: boolean, why: string): void;
/**
 * @param {string} name of an operator that goes number by number
 * @param {Interval[]} given
 */
export function intervalOf(name: string, given: Interval[]): Interval;
/** A bound that cannot be confirmed, and why. */
export class Unconfirmed extends Error {
    /** @param {string} why */
    constructor(why: string);
}
/** @type {(...ends: bigint[]) => Interval} */
export const hull: (...ends: bigint[]) => Interval;
/**
 * both ends belong to it
 */
export type Interval = [bigint, bigint];
