/**
 * The probability of `report` for each answer, and its share of the sum of all; undefined where answers or draws are
 * too many to be listed.
 * @param {Program} program
 * @param {Uint8Array} report
 */
export function likelihoods(program: Program, report: Uint8Array): {
    likelihood: number;
    share: number;
}[] | undefined;
export type Program = import("./program.js").Program;
export type Vector = import("./numbers.js").Vector;
export type Operate = (...given: any[]) => any;
/**
 * a number that is worked out of draws which are not known
 */
export type Unknown = {
    draws: Drawn[];
    valueOf: () => any;
    toString?: any;
};
/**
 * a bit that is one with some odds, or uniform below `size`
 */
export type Drawn = Unknown & {
    size: number;
    odds?: number;
    value?: any;
};
