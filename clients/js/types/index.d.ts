export class Client {
    /**
     * @param {any} definition the public definition of a collection
     * @param {{ digest?: string, within?: boolean }} [agreed] the digest that was agreed on, if the definition came from elsewhere;
     *     `within`: whether the definition is a question of a survey
     * @throws {TypeError} where its digest is another one, or it has an operator that this client does not know
     */
    constructor(definition: any, { digest, within }?: {
        digest?: string;
        within?: boolean;
    });
    definition: any;
    program: Program;
    /** Whether reports repeat what was once drawn from a secret, so that one is needed. */
    get memoises(): boolean;
    /**
     * One report: send it once, and keep it until it has arrived. Drawing again gives another one.
     * @param {string | number} answer the name of an answer, or its number where there are no names; or a number
     * @param {{ secret?: Uint8Array }} [given] at least 16 bytes, for a collection that `memoises`; see `newSecret`
     * @returns {Uint8Array}
     * @throws {RangeError} for an answer that the collection does not have
     */
    randomize(answer: string | number, { secret }?: {
        secret?: Uint8Array;
    }): Uint8Array;
    /**
     * The label to send with a report of `answer`, for the accounting.
     * @param {string | number} answer
     * @param {Uint8Array} secret
     * @returns {string | undefined} undefined where nothing is memoised, and where the reports hide what they repeat, which a
     *     label would tell, unless the collection asks for labels
     */
    labelToSend(answer: string | number, secret: Uint8Array): string | undefined;
    /**
     * The label of the memoised draw that a report of `answer` repeats. It reveals nothing of the answer.
     * @param {string | number} answer
     * @param {Uint8Array} secret
     * @returns {string | undefined} undefined where nothing is memoised
     */
    label(answer: string | number, secret: Uint8Array): string | undefined;
    /**
     * The likelihood of this report for each answer, and its share of the sum: the posterior for a uniform prior.
     * @param {Uint8Array} report
     * @returns {{ answer: string | number, likelihood: number, share: number }[] | undefined} undefined where they cannot be listed
     */
    explain(report: Uint8Array): {
        answer: string | number;
        likelihood: number;
        share: number;
    }[] | undefined;
    /**
     * Checks an answer without drawing.
     * @param {any} answer
     * @throws {RangeError} for an answer that the collection does not have
     */
    check(answer: any): void;
    /** @param {any} answer */
    numbered(answer: any): any;
    /** @param {Uint8Array | undefined} secret */
    within(secret: Uint8Array | undefined): Uint8Array<ArrayBuffer> | undefined;
}
export function newSecret(): Uint8Array<ArrayBufferLike>;
export { parseDefinition } from "./definition.js";
import { Program } from "./program.js";
export { marksOf, newMarkSecret } from "./marks.js";
