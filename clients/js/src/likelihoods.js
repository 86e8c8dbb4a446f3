// How likely one report is for each answer: the program run with every draw taken in every way, in doubles. It is for
// people to look at; what is promised is proved elsewhere.

/** @typedef {import("./program.js").Program} Program */

const MOST_RUNS = 20000;

/** Draws that take every outcome in turn, and the probability of the run. */
class EveryOutcome {
  constructor() {
    /** @type {[number, number][]} */
    this.path = [];
    this.probability = 1;
    this.place = 0;
    this.kept = new Map();
  }

  start() {
    this.place = 0;
    this.probability = 1;
    this.kept = new Map();
  }

  goOn() {
    while (this.path.length && this.path[this.path.length - 1][0] + 1 === this.path[this.path.length - 1][1]) this.path.pop();
    if (!this.path.length) return false;
    this.path[this.path.length - 1][0]++;
    return true;
  }

  /** @param {number[]} probabilities */
  pick(probabilities) {
    if (this.place === this.path.length) this.path.push([0, probabilities.length]);
    const taken = this.path[this.place++][0];
    this.probability *= probabilities[taken];
    return taken;
  }

  /** @param {any} t */
  bit(t) {
    const one = Number(t) / 2 ** 64;
    return one === 0 || one === 1 ? one : this.pick([1 - one, one]);
  }

  /** @param {any} t */
  bit_at(t) {
    return this.bit(t);
  }

  /** @type {(t: any, n: any) => number[]} */
  bits(t, n) {
    return Array.from({ length: Number(n) }, () => this.bit(t));
  }

  /** @param {any[]} vector */
  bits_each(vector) {
    return vector.map((t) => this.bit(t));
  }

  /** @param {any} b */
  below(b) {
    const choices = Number(b);
    if (choices > MOST_RUNS) throw new RangeError("too many outcomes");
    return choices > 1 ? this.pick(new Array(choices).fill(1 / choices)) : 0;
  }

  /** @type {(b: any, n: any) => number[]} */
  belows(b, n) {
    return Array.from({ length: Number(n) }, () => this.below(b));
  }

  /** @type {(b: any, n: any) => number[]} */
  belows_from(b, n) {
    return Array.from({ length: Number(n) }, (_, i) => this.below(Number(b) + i));
  }

  /** @type {(m: any, n: any) => number[]} */
  subset(m, n) {
    const left = Array.from({ length: Number(m) }, (_, i) => i);
    // Drawn in order, each next one is uniform among those that leave enough behind it: sets are equally likely.
    const chosen = [];
    for (let size = Number(n); size; size--) {
      const ways = left.map((_, i) => combinations(left.length - 1 - i, size - 1));
      const all = ways.reduce((sum, each) => sum + each, 0);
      const taken = this.pick(ways.map((each) => each / all));
      chosen.push(left[taken]);
      left.splice(0, taken + 1);
    }
    return chosen;
  }

  /** @param {any[]} vector */
  shuffle(vector) {
    const left = [...vector];
    return vector.map(() => left.splice(this.below(left.length), 1)[0]);
  }

  geometric() {
    throw new RangeError("endlessly many outcomes");
  }

  laplace() {
    throw new RangeError("endlessly many outcomes");
  }

  normal() {
    throw new RangeError("endlessly many outcomes");
  }

  words_of() {
    throw new RangeError("a secret's words are not listed");
  }
}

/** @type {(n: number, k: number) => number} */
function combinations(n, k) {
  if (k > n) return 0;
  let ways = 1;
  for (let i = 1; i <= k; i++) ways = (ways * (n - k + i)) / i;
  return ways;
}

/**
 * The probability of `report` for each answer; undefined where answers or draws are too many to be listed.
 * @param {Program} program
 * @param {Uint8Array} report
 * @returns {number[] | undefined}
 */
export function likelihoods(program, report) {
  const { kind, count, text } = program.definition.input;
  if (kind !== "answer" || text || Number(count) > MOST_RUNS) return undefined;
  let runs = 0;
  try {
    return Array.from({ length: Number(count) }, (_, answer) => {
      const draws = new EveryOutcome();
      let sum = 0;
      do {
        draws.start();
        if (++runs > MOST_RUNS) throw new RangeError("too many outcomes");
        const found = program.run(answer, { draws });
        if (found.every((byte, i) => byte === report[i])) sum += draws.probability;
      } while (draws.goOn());
      return sum;
    });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
