/**
 * Protects the questions of a survey that are those of a collection, by their names.
 * @param {any} survey a model of SurveyJS, before it is shown
 * @param {{ definition: any, digest?: string, outbox: import("./outbox.js").Outbox, key: string, seed?: Uint8Array }} options `key`: of this
 *   respondent's report on this device, such as the round; `seed`: of this respondent, if the survey asks some of its questions
 * @returns {{ names: string[] }} the names of the protected questions
 * @throws {TypeError} with the reason, for a survey that would tell an answer in another way; the model is as it was
 * @throws {import("./loss.js").Unconfirmed} where a program may give away more than the definition states
 */
export function protect(survey: any, { definition, digest, outbox, key, seed }: {
    definition: any;
    digest?: string;
    outbox: import("./outbox.js").Outbox;
    key: string;
    seed?: Uint8Array;
}): {
    names: string[];
};
/**
 * of a SurveyJS question: one question of ours
 */
export type Part = {
    name: string;
    read: (value: any) => any;
    choices?: any[];
};
export type Taken = {
    question: any;
    parts: Part[];
};
/**
 * a question, or an item of a grid: what defines it, and the question that it belongs to
 */
export type Wanted = {
    definition: any;
    owner: string;
};
