/** @typedef {Record<string, string | number | string[] | Record<string, string>>} Answers by the names of the asked questions; of a grid by the names of its items */
/**
 * HMAC-SHA-256 (RFC 2104). Web Crypto's is asynchronous.
 * @param {Uint8Array} key
 * @param {Uint8Array} message
 */
export function hmac(key: Uint8Array, message: Uint8Array): Uint8Array<ArrayBufferLike>;
/**
 * The `ask` questions of `count` with the smallest ranks, ascending.
 * @param {Uint8Array} seed
 * @param {number} count
 * @param {number} ask
 * @returns {number[]}
 */
export function selected(seed: Uint8Array, count: number, ask: number): number[];
/** The `format` of a survey's public definition. */
export const FORMAT: "ldp-budget questionnaire";
export function newSeed(): Uint8Array<ArrayBufferLike>;
export class Questionnaire {
    /**
     * @param {any} definition the public definition of a survey
     * @param {{ digest?: string }} [agreed] the digest that was agreed on, if the definition came from elsewhere
     * @throws {TypeError} if its digest is another one, or this client cannot read it
     */
    constructor(definition: any, { digest }?: {
        digest?: string;
    });
    definition: any;
    /** @type {Client[]} one for each question, in order */
    questions: Client[];
    key: Uint8Array<ArrayBuffer>;
    /** False: a question of a survey never repeats an earlier draw. */
    get memoises(): boolean;
    /**
     * The seed of a user whom a ledger charges.
     * @param {string} user
     */
    seedOf(user: string): Uint8Array<ArrayBufferLike>;
    /**
     * The numbers of the asked questions, ascending.
     * @param {Uint8Array} seed
     */
    asked(seed: Uint8Array): number[];
    /**
     * Checks answers without drawing.
     * @param {Answers} answers
     * @returns {number[]} the numbers of their questions, ascending
     * @throws {RangeError} for an answer that its question does not have, or another number of answers than `ask`
     */
    check(answers: Answers): number[];
    /**
     * One report: send it once, and keep it until it has arrived. Drawing again gives another one.
     * @param {Answers} answers an answer to each asked question, and to no other one
     * @param {{ draws?: () => any }} [given] `draws`: the draws of a question, for tests
     * @returns {Uint8Array}
     * @throws {RangeError} as `check`
     */
    randomize(answers: Answers, { draws }?: {
        draws?: () => any;
    }): Uint8Array;
    /** Undefined: nothing is memoised. @returns {string | undefined} */
    label(): string | undefined;
    /** Undefined: nothing is memoised. @returns {string | undefined} */
    labelToSend(): string | undefined;
    /**
     * The questions that a report answers, each with its part of the report.
     * @param {Uint8Array} report
     * @returns {{ place: number, client: Client, part: Uint8Array }[]}
     */
    parts(report: Uint8Array): {
        place: number;
        client: Client;
        part: Uint8Array;
    }[];
    /**
     * For each answered question the likelihoods of its part of a report, as `Client.explain` returns them.
     * @param {Uint8Array} report
     */
    explain(report: Uint8Array): {
        question: any;
        likelihoods: {
            answer: string | number;
            likelihood: number;
            share: number;
        }[] | undefined;
    }[];
}
/**
 * by the names of the asked questions; of a grid by the names of its items
 */
export type Answers = Record<string, string | number | string[] | Record<string, string>>;
import { Client } from "./index.js";
