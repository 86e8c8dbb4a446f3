/**
 * Local differential privacy on the respondent's device: an answer in, a randomized report out.
 *
 *     const client = new Client(definition);          // what `ldp-budget collection show NAME --client` prints
 *     const report = client.randomize("yes", { secret });
 */

import { canonicalText, toHex, utf8 } from "./bytes.js";
import { systemBytes } from "./draws.js";
import { checkDigest } from "./definition.js";
import { numberOfGrid } from "./grid.js";
import { checkForm } from "./syntax.js";
import { blake2b } from "./hashes.js";
import { likelihoods } from "./likelihoods.js";
import { Program, secretWithin } from "./program.js";
import { numberOfTicks } from "./ticks.js";

export class Client {
  /**
   * @param {any} definition the public definition of a collection
   * @param {{ digest?: string, within?: boolean }} [agreed] the digest that was agreed on, if the definition came from elsewhere;
   *     `within`: whether the definition is a question of a survey
   * @throws {TypeError} where its digest is another one, or it has an operator that this client does not know
   */
  constructor(definition, { digest, within } = {}) {
    checkDigest(definition, digest);
    this.definition = definition;
    this.program = new Program(definition);
    checkForm(definition, within);
  }

  /** Whether reports repeat what was once drawn from a secret, so that one is needed. */
  get memoises() {
    return this.program.memo !== undefined;
  }

  /**
   * One report: send it once, and keep it until it has arrived. Drawing again gives another one.
   * @param {string | number} answer the name of an answer, or its number where there are no names; or a number
   * @param {{ secret?: Uint8Array }} [given] at least 16 bytes, for a collection that `memoises`; see `newSecret`
   * @returns {Uint8Array}
   * @throws {RangeError} for an answer that the collection does not have
   */
  randomize(answer, { secret } = {}) {
    return this.program.run(this.numbered(answer), { secret: this.within(secret) });
  }

  /**
   * The label to send with a report of `answer`, for the accounting.
   * @param {string | number} answer
   * @param {Uint8Array} secret
   * @returns {string | undefined} undefined where nothing is memoised, and where the reports hide what they repeat, which a
   *     label would tell, unless the collection asks for labels
   */
  labelToSend(answer, secret) {
    const { labels, mechanism } = this.definition;
    return HIDES_REPEATS.has(mechanism) && labels !== true ? undefined : this.label(answer, secret);
  }

  /**
   * The label of the memoised draw that a report of `answer` repeats. It reveals nothing of the answer.
   * @param {string | number} answer
   * @param {Uint8Array} secret
   * @returns {string | undefined} undefined where nothing is memoised
   */
  label(answer, secret) {
    const own = this.within(secret);
    if (!this.program.memo) return undefined;
    const draw = this.program.memo(this.program.evaluate(this.numbered(answer), { secret: own }));
    const key = secretWithin(own, `${this.definition.context} labels`);
    return toHex(blake2b(utf8(`${draw}`), { size: 16, key }));
  }

  /**
   * The likelihood of this report for each answer, and its share of the sum: the posterior for a uniform prior.
   * @param {Uint8Array} report
   * @returns {{ answer: string | number, likelihood: number, share: number }[] | undefined} undefined where they cannot be listed
   */
  explain(report) {
    const names = this.definition.answers;
    return likelihoods(this.program, report)?.map((each, i) => ({ answer: names && this.definition.at_most === undefined && !this.definition.items ? names[i] : i, ...each }));
  }

  /**
   * Checks an answer without drawing.
   * @param {any} answer
   * @throws {RangeError} for an answer that the collection does not have
   */
  check(answer) {
    this.program.read(this.numbered(answer));
  }

  /** @param {any} answer */
  numbered(answer) {
    const { answers: names, at_most: most, items } = this.definition;
    if (!names) return answer;
    if (items !== undefined) return numberOfGrid(answer, this.definition);
    if (most !== undefined) return numberOfTicks(answer, this.definition);
    const number = names.findIndex((/** @type {string} */ name) => canonicalText(name) === canonicalText(`${answer}`));
    if (number < 0) throw new RangeError(`the answer must be one of ${names.join(", ")}: got ${answer}`);
    return number;
  }

  /** @param {Uint8Array | undefined} secret */
  within(secret) {
    return this.memoises ? secretWithin(secret, `collection ${this.definition.fingerprint}`) : undefined;
  }
}

/** The mechanisms whose reports show only over time which answers repeat. */
const HIDES_REPEATS = new Set(["rappor", "loloha"]);

/** A secret to draw memoised answers from: made once, kept on the device, and never sent. */
export const newSecret = () => systemBytes(32);

export { parseDefinition } from "./definition.js";
export { marksOf, newMarkSecret } from "./marks.js";
