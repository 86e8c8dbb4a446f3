/**
 * The number of the answers to all items: with d answers to each, the sum of the places of the answers times powers of d.
 * @param {any} answer an object with the name of an answer for the name of each item
 * @param {{ answers: string[], items: { name: string }[] }} definition
 * @returns {bigint}
 * @throws {RangeError} where an item has no answer, or another one
 */
export function numberOfGrid(answer: any, { answers, items }: {
    answers: string[];
    items: {
        name: string;
    }[];
}): bigint;
/**
 * The largest ratio of a report of a grid; undefined for any other program. Given the items that are drawn without the answers, a row of
 * sets of which `least` hold the answers of their items has the chance high/2^64 over the number of such rows, any other one
 * the rest over the number of the others, whatever the answers are. The proof is that of `ldp_budget_verify.law.asked_items`; it
 * holds for this program alone, so the program is built again and compared.
 * @param {any} definition
 * @returns {bigint | undefined} in multiples of 2^-PLACES, rounded up
 */
export function ofGrid({ input, steps, tables, report }: any): bigint | undefined;
