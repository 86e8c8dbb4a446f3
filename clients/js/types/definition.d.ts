/**
 * Canonical JSON: keys in order, no spaces, ASCII alone. Numbers are whole, so that every language writes them alike.
 * @param {any} value
 * @returns {string}
 */
export function canonical(value: any): string;
/** @param {any} definition */
export function digestOf({ digest, ...rest }: any): string;
/**
 * @param {any} definition
 * @param {string} [expected] the digest that was agreed on
 * @throws {TypeError} unless the definition has the digest that it states, and that is the expected one
 */
export function checkDigest(definition: any, expected?: string): void;
/**
 * A definition from its text. `JSON.parse` takes the last one of repeated keys, and reads 1.0 as 1; other clients do not.
 * @param {string} text
 * @returns {any}
 * @throws {TypeError | SyntaxError} where the text is no JSON, repeats a key, or has a number that is not written as a whole one
 */
export function parseDefinition(text: string): any;
