/**
 * The number of a set of ticks: a set of at most so many of the first c + 1 options, of which c is the largest, follows all sets of
 * the first c.
 * @param {any} answer the names of the ticked options, none of them for the empty set
 * @param {{ answers: string[], at_most: number, input: any }} definition
 * @returns {bigint}
 * @throws {RangeError} for what is no option, is ticked twice, or is more than may be ticked: no tick is dropped
 */
export function numberOfTicks(answer: any, { answers, at_most: most, input }: {
    answers: string[];
    at_most: number;
    input: any;
}): bigint;
/**
 * The ticked options of a set, by their places, ascending.
 * @param {bigint} number
 * @param {{ answers: string[], at_most: number, input: any }} definition
 * @returns {number[]}
 */
export function ticksOf(number: bigint, { answers: { length }, at_most: most, input }: {
    answers: string[];
    at_most: number;
    input: any;
}): number[];
/**
 * The largest ratio of a report of ticked sets; undefined for any other program. A set with at least `least` own items has the
 * chance high/2^64 over their number, any other one the rest over the number of the others, whatever was ticked. The proof is that of
 * `ldp_budget.sdk.law.ticked_sets`; it holds for this program alone, so the program is built again and compared.
 * @param {any} definition
 * @returns {bigint | undefined} in multiples of 2^-PLACES, rounded up
 */
export function ofTicks({ input, steps, tables, report }: any): bigint | undefined;
