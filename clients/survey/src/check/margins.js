// Intervals of estimated counts, at 95 %: every true number that an exact test does not reject (Clopper and Pearson 1934, for
// the sum of two binomials). Of n reports C name an answer: C = Bin(N, p) + Bin(n - N, q), where N people hold it.

import { lawOf } from "../../../check/check_books.mjs";

const BEYOND = 0.025;
/** The product's own intervals lie within these; the margin is for the rounding of doubles. */
const SLACK = 1e-9;

/** The probabilities of the successes from `from` on, those that matter. @param {number} trials @param {number} p */
function binomial(trials, p) {
  const mean = trials * p, reach = 10 * Math.sqrt(mean * (1 - p)) + 50;
  const from = Math.max(0, Math.floor(mean - reach)), to = Math.min(trials, Math.ceil(mean + reach));
  if (p <= 0 || p >= 1) return { from: p <= 0 ? 0 : trials, odds: [1] };
  const top = Math.min(Math.max(Math.round(mean), from), to), odds = Array(to - from + 1).fill(1), ratio = p / (1 - p);
  for (let k = top; k < to; k++) odds[k + 1 - from] = odds[k - from] * ratio * ((trials - k) / (k + 1));
  for (let k = top; k > from; k--) odds[k - 1 - from] = (odds[k - from] * k) / (ratio * (trials - k + 1));
  const all = odds.reduce((sum, each) => sum + each, 0);
  return { from, odds: odds.map((each) => each / all) };
}

/**
 * P[C >= least], where `held` of n people hold the answer.
 * @param {number} n @param {number} held @param {number} p @param {number} q @param {number} least
 */
function atLeast(n, held, p, q, least) {
  const own = binomial(held, p), others = binomial(n - held, q), tails = [...others.odds, 0];
  for (let i = tails.length - 2; i >= 0; i--) tails[i] += tails[i + 1];
  return own.odds.reduce((sum, odds, i) => {
    const wanted = least - own.from - i - others.from;
    return sum + odds * (wanted <= 0 ? 1 : wanted < tails.length ? tails[wanted] : 0);
  }, 0);
}

/** The first of 0..n from which on `holds`; n without one. @param {number} n @param {(held: number) => boolean} holds */
function first(n, holds) {
  let [low, high] = [0, n];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * The least and the most people of n who may hold an answer that `named` reports name. A number that is further out than a
 * standard deviation from what no person (or each person) gives counts as one at that distance, so no interval is empty.
 * @param {number} n @param {number} named @param {number} p @param {number} q
 * @returns {[number, number]}
 */
export function interval(n, named, p, q) {
  const spread = (/** @type {number} */ chance) => Math.sqrt(n * chance * (1 - chance));
  const most = Math.min(named, Math.ceil(n * p + spread(p))), least = Math.max(named, Math.floor(n * q - spread(q)));
  const low = first(n, (held) => atLeast(n, held, p, q, most) >= BEYOND - SLACK);
  const high = n - first(n, (others) => 1 - atLeast(n, n - others, p, q, least + 1) >= BEYOND - SLACK);
  return [low, Math.max(low, high)];
}

/**
 * The interval of each count of an estimate.
 * @param {any} client the definition
 * @param {any} statement
 * @param {number[]} places of the answers that are wanted
 * @returns {[number, number][]}
 */
export function intervals(client, statement, places) {
  const law = lawOf(client);
  if (law === null) return [];
  const { reports: n, estimate: { counts } } = statement, [p, q] = [law.p, law.q].map((each) => Number(each) / Number(law.one));
  const of = (/** @type {number} */ place) => interval(n, Math.round((counts[place] / 1000) * (p - q) + n * q), p, q);
  return places.map((place) => {
    if (law.kind !== "yes" || place === 1) return of(place);
    const [low, high] = of(1); // of two coins only a "yes" is counted
    return [n - high, n - low];
  });
}
