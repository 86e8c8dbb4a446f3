// Exact normal deviates (Karney 2016, Algorithm N): ten proposals side by side, in the order in which every client
// reads the stream. What is drawn for several of them is drawn for all before any is compared.

import { small } from "./numbers.js";

/** @typedef {import("./draws.js").Draws} Draws */
/** @typedef {import("./draws.js").Deviate} Deviate */

const PROPOSALS = 10;
const HALF = 1n << 63n;

/**
 * floor(2**places * Z) of a standard normal Z.
 * @param {Draws} draws
 * @param {bigint} places
 */
export function normal(draws, places) {
  for (;;) {
    const found = accepted(draws, places);
    const signs = draws.bits(HALF, found.length);
    if (found.length) return small(signs[0] ? ~found[0] : found[0]);
  }
}

/**
 * The magnitudes of the proposals that are accepted.
 * @param {Draws} draws
 * @param {bigint} places
 */
function accepted(draws, places) {
  const whole = wholeParts(draws);
  const fraction = whole.map(() => draws.deviate());
  const trials = whole.map((k) => k + 1);
  const kept = allSucceed(trials, (slots) => trial(draws, whole, fraction, slots));
  return whole.flatMap((k, i) => (kept[i] ? [(BigInt(k) << places) + (fraction[i].digits[0] >> (64n - places))] : []));
}

/**
 * The whole parts k that survive, as likely as exp(-k²/2).
 * @param {Draws} draws
 */
function wholeParts(draws) {
  const whole = new Array(PROPOSALS).fill(0);
  let alive = whole.map((_, i) => i);
  while (alive.length) {
    const goesOn = halfExponential(draws, alive.length);
    alive = alive.filter((_, i) => goesOn[i]);
    for (const slot of alive) whole[slot]++;
  }
  const trials = whole.map((k) => k * (k - 1));
  const kept = allSucceed(trials, (slots) => halfExponential(draws, slots.length));
  return whole.filter((_, i) => kept[i]);
}

/**
 * For each slot, whether so many attempts all succeed.
 * @param {number[]} trials
 * @param {(slots: number[]) => boolean[]} attempt
 */
function allSucceed(trials, attempt) {
  const ok = trials.map(() => true);
  let alive = trials.map((_, i) => i).filter((slot) => trials[slot] > 0);
  for (let done = 1; alive.length; done++) {
    const success = attempt(alive);
    alive.forEach((slot, i) => (ok[slot] = success[i]));
    alive = alive.filter((slot) => ok[slot] && trials[slot] > done);
  }
  return ok;
}

/**
 * Bits that are true with probability exp(-1/2).
 * @param {Draws} draws
 * @param {number} size
 */
function halfExponential(draws, size) {
  const even = new Array(size).fill(true);
  const last = even.map(() => draws.deviate());
  let falling = even.map((_, i) => i).filter((i) => last[i].digits[0] < HALF);
  while (falling.length) {
    for (const i of falling) even[i] = !even[i];
    falling = stillFalling(draws, last, falling);
  }
  return even;
}

/**
 * Draws the next deviate of each run, and returns the slots in which it is less than the last.
 * @param {Draws} draws
 * @param {Deviate[]} last
 * @param {number[]} slots
 */
function stillFalling(draws, last, slots) {
  const fresh = slots.map(() => draws.deviate());
  const less = slots.filter((slot, i) => fresh[i].isLess(last[slot]));
  slots.forEach((slot, i) => (last[slot] = fresh[i]));
  return less;
}

/**
 * For each slot a bit that is true with probability exp(-x(2k+x)/(2k+2)).
 * @param {Draws} draws
 * @param {number[]} whole
 * @param {Deviate[]} fraction
 * @param {number[]} slots
 */
function trial(draws, whole, fraction, slots) {
  const even = new Set(slots);
  const last = [...fraction];
  for (let falling = slots; falling.length; ) {
    falling = belowRatio(draws, whole, fraction, stillFalling(draws, last, falling));
    for (const slot of falling) even.delete(slot) || even.add(slot);
  }
  return slots.map((slot) => even.has(slot));
}

/**
 * The slots in which a fresh uniform deviate is below (2k+x)/(2k+2).
 * @param {Draws} draws
 * @param {number[]} whole
 * @param {Deviate[]} fraction
 * @param {number[]} slots
 */
function belowRatio(draws, whole, fraction, slots) {
  const interval = draws.belowEach(slots.map((slot) => 2 * whole[slot] + 2));
  const undecided = slots.filter((slot, i) => interval[i] === 2 * whole[slot]);
  const place = new Map(undecided.map((slot) => [slot, draws.deviate()]));
  return slots.filter((slot, i) => interval[i] < 2 * whole[slot] || place.get(slot)?.isLess(fraction[slot]));
}
