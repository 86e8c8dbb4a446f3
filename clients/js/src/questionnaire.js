/**
 * A survey of several questions on the respondent's device: the answers to the asked questions in, one report out.
 *
 *     const survey = new Questionnaire(definition);      // the output of `ldp-budget collection show NAME --client`
 *     const asked = survey.asked(seed);                  // `seed` of GET /v1/me, or `newSeed()` without a user
 *     const report = survey.randomize({ mood: "good" }); // an answer to each asked question, by name
 *
 * The format is specified in docs/reference/questionnaires.md.
 */

import { canonicalText, fromHex, joined, utf8 } from "./bytes.js";
import { checkDigest } from "./definition.js";
import { systemBytes } from "./draws.js";
import { sha256 } from "./hashes.js";
import { Client } from "./index.js";

/** The `format` of a survey's public definition. */
export const FORMAT = "ldp-budget questionnaire";
const VERSION = 1;
const RULE = "hmac-sha256";
const SEED_BYTES = 32;
const BLOCK = 64;
const MOST_QUESTIONS = 64;
const LABEL = utf8("ldp-budget questions 1\n");

/** @typedef {Record<string, string | number | string[] | Record<string, string>>} Answers by the names of the asked questions; of a grid by the names of its items */

/**
 * HMAC-SHA-256 (RFC 2104). Web Crypto's is asynchronous.
 * @param {Uint8Array} key
 * @param {Uint8Array} message
 */
export function hmac(key, message) {
  const block = new Uint8Array(BLOCK);
  block.set(key.length > BLOCK ? sha256(key) : key);
  const inner = sha256(joined(block.map((byte) => byte ^ 0x36), message));
  return sha256(joined(block.map((byte) => byte ^ 0x5c), inner));
}

/** The seed of a respondent whom no ledger charges. */
export const newSeed = () => systemBytes(SEED_BYTES);

/**
 * The `ask` questions of `count` with the smallest ranks, ascending.
 * @param {Uint8Array} seed
 * @param {number} count
 * @param {number} ask
 * @returns {number[]}
 */
export function selected(seed, count, ask) {
  const ranked = Array.from({ length: count }, (_, place) => ({ place, rank: hmac(seed, Uint8Array.of(place)) }));
  ranked.sort((one, other) => compared(one.rank, other.rank));
  return ranked.slice(0, ask).map(({ place }) => place).sort((one, other) => one - other);
}

/** @param {Uint8Array} one @param {Uint8Array} other */
function compared(one, other) {
  const at = one.findIndex((byte, i) => byte !== other[i]);
  return at < 0 ? 0 : one[at] - other[at];
}

export class Questionnaire {
  /**
   * @param {any} definition the public definition of a survey
   * @param {{ digest?: string }} [agreed] the digest that was agreed on, if the definition came from elsewhere
   * @throws {TypeError} if its digest is another one, or this client cannot read it
   */
  constructor(definition, { digest } = {}) {
    checkDigest(definition, digest);
    const { format, version, selection } = definition;
    if (format !== FORMAT || version !== VERSION || selection?.rule !== RULE) {
      throw new TypeError(`this client reads surveys of version ${VERSION} with the rule ${RULE}: got ${format}, ${version}, ${selection?.rule}`);
    }
    this.definition = definition;
    /** @type {Client[]} one for each question, in order */
    this.questions = definition.questions.map((/** @type {any} */ question) => new Client(question, { within: true }));
    this.key = fromHex(selection.key);
    checkLayout(definition, this.questions);
  }

  /** False: a question of a survey never repeats an earlier draw. */
  get memoises() {
    return false;
  }

  /**
   * The seed of a user whom a ledger charges.
   * @param {string} user
   */
  seedOf(user) {
    return hmac(this.key, joined(LABEL, utf8(canonicalText(user))));
  }

  /**
   * The numbers of the asked questions, ascending.
   * @param {Uint8Array} seed
   */
  asked(seed) {
    if (!(seed instanceof Uint8Array) || seed.length !== SEED_BYTES) throw new TypeError(`the seed must be a Uint8Array of ${SEED_BYTES} bytes`);
    return selected(seed, this.questions.length, this.definition.ask);
  }

  /**
   * Checks answers without drawing.
   * @param {Answers} answers
   * @returns {number[]} the numbers of their questions, ascending
   * @throws {RangeError} for an answer that its question does not have, or another number of answers than `ask`
   */
  check(answers) {
    const { ask } = this.definition;
    const names = this.questions.map(({ definition }) => definition.name);
    const unknown = Object.keys(answers).find((name) => !names.includes(name));
    if (unknown !== undefined) throw new RangeError(`the survey has no question ${unknown}`);
    const places = names.flatMap((name, place) => (Object.hasOwn(answers, name) ? [place] : []));
    if (places.length !== ask) throw new RangeError(`there must be answers to ${ask} questions: got ${places.length}`);
    for (const place of places) this.questions[place].check(answers[names[place]]);
    return places;
  }

  /**
   * One report: send it once, and keep it until it has arrived. Drawing again gives another one.
   * @param {Answers} answers an answer to each asked question, and to no other one
   * @param {{ draws?: () => any }} [given] `draws`: the draws of a question, for tests
   * @returns {Uint8Array}
   * @throws {RangeError} as `check`
   */
  randomize(answers, { draws } = {}) {
    const report = new Uint8Array(this.definition.report.bytes);
    for (const place of this.check(answers)) {
      const { definition, program, numbered } = this.questions[place];
      report[place >> 3] |= 1 << (place & 7);
      const answer = numbered.call(this.questions[place], answers[definition.name]);
      report.set(program.run(answer, draws && { draws: draws() }), definition.slot[0]);
    }
    return report;
  }

  /** Undefined: nothing is memoised. @returns {string | undefined} */
  label() {
    return undefined;
  }

  /** Undefined: nothing is memoised. @returns {string | undefined} */
  labelToSend() {
    return undefined;
  }

  /**
   * The questions that a report answers, each with its part of the report.
   * @param {Uint8Array} report
   * @returns {{ place: number, client: Client, part: Uint8Array }[]}
   */
  parts(report) {
    return this.questions.flatMap((client, place) => {
      const [start, size] = client.definition.slot;
      return (report[place >> 3] >> (place & 7)) & 1 ? [{ place, client, part: report.slice(start, start + size) }] : [];
    });
  }

  /**
   * For each answered question the likelihoods of its part of a report, as `Client.explain` returns them.
   * @param {Uint8Array} report
   */
  explain(report) {
    return this.parts(report).map(({ client, part }) => ({ question: client.definition.name, likelihoods: client.explain(part) }));
  }
}

/**
 * Slots must follow the mask and each other, so that no program writes into the part of another one.
 * @param {any} definition
 * @param {Client[]} clients
 */
function checkLayout({ ask, report, questions }, clients) {
  const names = new Set(clients.map(({ definition }) => definition.name));
  const count = clients.length;
  const sound = count >= 1 && count <= MOST_QUESTIONS && names.size === count && Number.isSafeInteger(ask) && ask >= 1 && ask <= count;
  let at = Math.ceil(count / 8);
  const follows = clients.every(({ memoises, program }, place) => {
    const [start, size] = questions[place].slot;
    const expected = at;
    at += program.size;
    return !memoises && start === expected && size === program.size;
  });
  if (!sound || !follows || report.mask !== Math.ceil(count / 8) || report.bytes !== at) {
    throw new TypeError("the questions of the survey and the layout of its report do not agree");
  }
}
