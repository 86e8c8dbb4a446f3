// The meaning of a guarantee, in sentences that are true of its kind.

import { costOf, epsilonOf } from "../../js/src/budget.js";
import { say, share, sureness, up } from "./texts.js";

/** The page shows no probability above this ε: it would be too close to 1 to be useful. */
const MOST_EPSILON = 15;
/** How sure a person is of an answer before the report, in the sentences. */
const BEFORE = 0.5;

/** True if there is a guarantee at all. @param {any} guarantee of a definition */
export const promises = (guarantee) => guarantee.epsilon !== null && Number(guarantee.delta) < 1;

/**
 * The meaning of the guarantee of a report. The page shows it after `confirmOnce` has computed each of its figures from the
 * program: figures on repeated answers are refused of a program that draws each time.
 *
 * - *ε alone*: by Bayes the odds of x against all other answers are multiplied by P[report | x]/P[report | not x], which
 *   is at most e^ε, for any prior. So a reader who is 1/2 sure of x becomes at most e^ε/(e^ε + 1) sure.
 * - *ε and δ*: of two answers, a report reveals no more than one that reveals all with probability δ and else shifts
 *   the odds by e^ε at most (Kairouz, Oh, Viswanath 2015, Theorem 2). That holds for each pair, so the sentence is about pairs.
 * - *memoized*: a sentence on one report, one on all reports that repeat an answer, and one on the relation.
 *
 * - *several answers*: the same, about all answers of a report together.
 *
 * @param {any} guarantee
 * @param {boolean} [several] true if a report answers several questions
 * @returns {string[]} sentences
 */
export function meaning(guarantee, several = false) {
  if (!promises(guarantee)) return [say("meaning.none")];
  const { epsilon, delta, answer_epsilon: cap, lifetime_epsilon: lifetime, relation } = guarantee;
  if (Number(delta) > 0) return [said(several ? "meaning.exception" : "meaning.approximate", epsilon, { delta: up(delta) })];
  const sentences = [said(several ? "meaning.several" : "meaning.pure", epsilon)];
  if (cap !== undefined && cap !== null) {
    sentences.push(said("meaning.repeated", cap));
    // It bounds all reports only if it exceeds the bound of one answer. Else there is no sentence on other answers.
    if (Number(lifetime) > Number(cap)) sentences.push(said("meaning.changed", lifetime));
  }
  // Always shown: a definition that repeats draws need not state what all reports of an answer lose.
  if (relation !== "any inputs") sentences.push(say("meaning.pattern"));
  return sentences;
}

/**
 * @param {string} key
 * @param {string} epsilon
 * @param {Record<string, string>} [more]
 */
function said(key, epsilon, more = {}) {
  if (Number(epsilon) > MOST_EPSILON) return say("meaning.little", { epsilon: up(epsilon) });
  return say(key, { before: share(BEFORE), after: sureness(Math.exp(-Number(epsilon)) * (1 - 2 ** -46)), ...more });
}

/** ε of one report, and δ if there is one. @param {any} guarantee */
export function price(guarantee) {
  if (!promises(guarantee)) return say("cost.unbounded");
  const { epsilon, delta } = guarantee;
  return Number(delta) > 0 ? `ε = ${up(epsilon)}, δ = ${up(delta)}` : `ε = ${up(epsilon)}`;
}

/** The charge to a device, as decimal text; undefined if nothing is promised. @param {any} guarantee */
export const priceHere = (guarantee) => (promises(guarantee) ? epsilonOf(costOf(guarantee)) : undefined);

/**
 * The ε that a service charges for a report: what it says, and no less than what the page confirmed.
 * @param {any} guarantee
 * @param {any} [quote] of the service
 * @returns {number | null}
 */
export const priceThere = (guarantee, quote) =>
  promises(guarantee) && typeof quote?.cost.epsilon === "number" ? Math.max(quote.cost.epsilon, Number(guarantee.epsilon)) : null;
