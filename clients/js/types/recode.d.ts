/**
 * The same program of the recoded answer, any number up to the largest in the table; any other program unchanged. A function of an
 * answer tells no more than the answer, so a bound for it is one for both.
 * @param {any} definition
 * @returns {any}
 */
export function unrecoded(definition: any): any;
