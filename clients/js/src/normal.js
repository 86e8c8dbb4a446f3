// Exact normal deviates (Karney 2016, Algorithm N): ten proposals side by side, in the order in which every client
// reads the stream. What is drawn for several of them is drawn for all before any is compared.

/** @typedef {import("./draws.js").Draws} Draws */
/** @typedef {number[][]} Deviates */

const PROPOSALS = 10;
const HALF = 1n << 63n;

/**
 * The whole part of 2**places times a number that has these digits of 32 bits after the point.
 * @param {number} whole
 * @param {number[]} digits
 * @param {number} places
 */
export const shifted = (whole, [high, low], places) =>
  whole * 2 ** places + Math.floor(high * 2 ** (places - 32)) + Math.floor(low * 2 ** (places - 64));

/**
 * The whole part of a number that has this magnitude, and is negative for a bit that is 1.
 * @param {number} magnitude
 * @param {number} negative
 */
export const signed = (magnitude, negative) => (negative ? -magnitude - 1 : magnitude);

/**
 * floor(2**places * Z) of a standard normal Z.
 * @param {Draws} draws
 * @param {number} places
 */
export function normal(draws, places) {
  for (;;) {
    const found = accepted(draws, places);
    const signs = draws.bits(HALF, found.length);
    if (found.length) return signed(found[0], signs[0]);
  }
}

/**
 * The magnitudes of the proposals that are accepted.
 * @param {Draws} draws
 * @param {number} places
 */
function accepted(draws, places) {
  const whole = wholeParts(draws);
  const fraction = draws.deviates(whole.length);
  const trials = whole.map((k) => k + 1);
  const kept = allSucceed(trials, (slots) => trial(draws, whole, fraction, slots));
  return whole.flatMap((k, i) => (kept[i] ? [shifted(k, fraction[i], places)] : []));
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
  const last = draws.deviates(size);
  let falling = even.map((_, i) => i).filter((i) => last[i][0] < 2 ** 31);
  while (falling.length) {
    for (const i of falling) even[i] = !even[i];
    falling = stillFalling(draws, last, falling);
  }
  return even;
}

/**
 * Draws the next deviate of each run, and returns the slots in which it is less than the last.
 * @param {Draws} draws
 * @param {Deviates} last
 * @param {number[]} slots
 */
function stillFalling(draws, last, slots) {
  const fresh = draws.deviates(slots.length);
  const less = slots.filter((slot, i) => draws.isLess(fresh[i], last[slot]));
  slots.forEach((slot, i) => (last[slot] = fresh[i]));
  return less;
}

/**
 * For each slot a bit that is true with probability exp(-x(2k+x)/(2k+2)).
 * @param {Draws} draws
 * @param {number[]} whole
 * @param {Deviates} fraction
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
 * @param {Deviates} fraction
 * @param {number[]} slots
 */
function belowRatio(draws, whole, fraction, slots) {
  const interval = draws.belowEach(slots.map((slot) => 2 * whole[slot] + 1));
  const undecided = slots.filter((slot, i) => interval[i] === 2 * whole[slot]);
  const drawn = draws.deviates(undecided.length);
  return slots.filter((slot, i) => interval[i] < 2 * whole[slot] || (interval[i] === 2 * whole[slot] && draws.isLess(drawn[undecided.indexOf(slot)], fraction[slot])));
}
