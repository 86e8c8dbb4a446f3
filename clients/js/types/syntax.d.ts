/**
 * A double in a program.
 * @param {any} text
 */
export function finite(text: any): number;
/** How many sets there are of at most `most` of so many options. @param {number} options @param {number} most @returns {bigint} */
export function setsOf(options: number, most: number): bigint;
/**
 * Refuses a program that the specification does not define: its input, tables, steps, memo and report.
 * @param {any} definition
 * @returns {Map<string, Kind>} the kinds of its names
 * @throws {TypeError | RangeError}
 */
export function checkProgram({ input, tables, steps, memo, report, answers, at_most, items }: any): Map<string, Kind>;
/**
 * Refuses a definition with other keys, or with texts or a guarantee of another form, than the specification names.
 * `checkProgram` looks at the program.
 * @param {any} definition
 * @param {boolean} [within] whether it is a question of a survey, which has keys of its own
 * @throws {TypeError | RangeError}
 */
export function checkForm(definition: any, within?: boolean): void;
/**
 * Refuses a guarantee with other figures than the specification names: those of repeated draws are of programs with a memo,
 * and `eta` is of the kind `one-sided`.
 * @param {any} definition
 * @throws {TypeError}
 */
export function checkGuarantee({ guarantee, memo }: any): void;
/** Each operator: the kinds of its arguments, and of its result. `each` is a number, or a vector place by place. */
export const FORMS: Map<string, {
    takes: string[];
    gives: string;
}>;
/** What reads the stream. */
export const DRAWS: Set<string>;
/** What reads the secret. */
export const MEMOS: Set<string>;
/**
 * `rows` are a table of vectors of one length
 */
export type Kind = "number" | "vector" | "rows";
