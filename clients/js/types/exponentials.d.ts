/**
 * A decimal >= 0 as a fraction.
 * @param {string} text
 * @returns {[bigint, bigint]}
 */
export function fractionOf(text: string): [bigint, bigint];
/**
 * e^ε, rounded down to a multiple of 2^-PLACES; of a very large ε less than it is.
 * @param {string} epsilon
 */
export function oddsBelow(epsilon: string): bigint;
/**
 * Whether a normal deviate that is moved by `shift` of its standard deviations keeps ε and δ:
 * Φ(s/2 - ε/s) - e^ε·Φ(-s/2 - ε/s) <= δ (Balle, Wang 2018, Theorem 8).
 * @param {[bigint, bigint]} shift
 * @param {string} epsilon
 * @param {string} delta
 */
export function normalKeeps([s, t]: [bigint, bigint], epsilon: string, delta: string): boolean;
/** Places of what ratios are compared with. */
export const PLACES: 512n;
export const ONE: bigint;
