/** @typedef {import("./numbers.js").Vector} Vector */
/** @param {any} table */
export function tabled(table: any): (import("./numbers.js").Whole | import("./numbers.js").Whole[])[];
/**
 * Running totals of whole parts of numbers that fall geometrically, in decimals rounded down to so many digits.
 * @param {{ first: string, ratio: string, digits: number, floor: string | number, count: number }} table
 */
export function falling({ first, ratio, digits, floor, count }: {
    first: string;
    ratio: string;
    digits: number;
    floor: string | number;
    count: number;
}): import("./numbers.js").Vector;
export type Vector = import("./numbers.js").Vector;
