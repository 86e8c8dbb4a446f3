// A bound of what a report gives away, worked out from the program itself. Nothing that a definition says of it is used.
//
// The program is run once on bounds of numbers. Draws are either hidden, and then every outcome of them is looked at,
// or given to the reader of the report too, which can only raise the bound: their laws do not depend on the answer. What is
// worked out of the answer and of draws that were given away may then be any number within its bounds, for each of
// two answers another one, which again can only raise the bound. Numbers of a report that share no hidden draw are
// independent, so that the largest ratios of their probabilities multiply.

import { PLACES } from "./exponentials.js";
import { Unconfirmed, hull, intervalOf, requires } from "./intervals.js";
import { EACH, WHOLE, literal, sized, small } from "./numbers.js";
import { HASHES, MEMO } from "./program.js";
import { tabled } from "./tables.js";
import { DRAWS } from "./syntax.js";

/** @typedef {import("./intervals.js").Interval} Interval */
/** @typedef {{ lo: bigint, hi: bigint, distinct?: boolean }} Bounds */
/** @typedef {{ limit: number, once: boolean }} Group of bits: so many at most are 1 for one answer; `once`: each for one answer at most */

const WORD = 1n << 64n;
const BITS = 1n << 63n;
const MOST_HASHES = 2 ** 16;
/** So many outcomes one hidden draw may have, and one number that depends on the answer. */
const MOST_EACH = 1 << 16;
/** So many runs of parts of the program one attempt may take. */
const MOST_RUNS = 1 << 19;
/** So many draws are tried as hidden and as given away. */
const MOST_TRIED = 4;
const MOST_ORDERS = 5040;

let tick = 0;

/** A number within bounds, that no hidden draw is part of. */
class Span {
  /**
   * @param {Interval} ends
   * @param {boolean} secret whether it depends on the answer
   * @param {boolean} [fresh] whether each report has another one
   */
  constructor([lo, hi], secret, fresh = false) {
    requires(!(secret && fresh), "the answer meets in each report what that report drew, and what is kept");
    this.lo = lo;
    this.hi = hi;
    this.secret = secret;
    this.fresh = fresh;
    /** @type {Group | undefined} */
    this.group = undefined;
    /** @type {any} what it is now, for one answer */
    this.at = undefined;
  }

  /** @returns {any[]} */
  get options() {
    requires(this.hi - this.lo < MOST_EACH, "a number that depends on the answer takes too many values");
    return Array.from({ length: Number(this.hi - this.lo) + 1 }, (_, i) => small(this.lo + BigInt(i)));
  }
}

/** A threshold that depends on the answer: likelihoods are linear in it, so its ends have the largest ratios. */
class Threshold extends Span {
  get options() {
    return [this.lo, this.hi];
  }
}

/** A hidden draw: outcomes and their weights. */
class Hidden {
  /** @param {() => [any, bigint][]} outcomes as they are for the answer that is looked at */
  constructor(outcomes) {
    this.outcomes = outcomes;
    /** @type {any} */
    this.at = undefined;
  }
}

/** A number that hidden draws are part of. */
class Mixed {
  /**
   * @param {Interval} ends
   * @param {Hidden[]} hidden
   * @param {Span[]} choices numbers that depend on the answer
   * @param {() => any} work
   * @param {boolean} open whether it is not the number but something of which the number is made by what was given away
   */
  constructor([lo, hi], hidden, choices, work, open = false) {
    this.lo = lo;
    this.hi = hi;
    this.hidden = [...new Set(hidden)];
    this.choices = [...new Set(choices)];
    this.work = work;
    this.open = open;
    this.tick = -1;
    /** @type {any} */
    this.known = undefined;
    /** @type {Hidden | undefined} the draw that it is itself */
    this.direct = undefined;
  }

  get() {
    if (this.tick !== tick) {
      this.known = this.work();
      this.tick = tick;
    }
    return this.known;
  }
}

/** A row of a table, at a place that depends on the answer. */
class Row {
  /** @param {any[][]} rows @param {Span} place */
  constructor(rows, place) {
    this.rows = rows;
    this.place = place;
  }
}

/** @param {any} each */
const isNumber = (each) => typeof each === "number" || typeof each === "bigint";

/** @param {any} each @returns {Interval} */
const endsOf = (each) => (isNumber(each) ? [BigInt(each), BigInt(each)] : [each.lo, each.hi]);

/** What it is in one run. @param {any} each @returns {any} */
function now(each) {
  if (each instanceof Mixed) return each.get();
  if (each instanceof Span) return each.at;
  if (each instanceof Row) return each.rows[Number(each.place.at)];
  return Array.isArray(each) ? each.map(now) : each;
}

/** All that something is made of. @param {any} each @returns {any[]} */
function partsOf(each) {
  if (Array.isArray(each)) return each.flatMap(partsOf);
  return each instanceof Row ? [each.place] : isNumber(each) ? [] : [each];
}

/** A number that is worked out of these spans. @type {(ends: Interval, parts: any[]) => any} */
const span = (ends, parts) => (ends[0] === ends[1] ? small(ends[0]) : spanOf(ends, parts));

/** @type {(ends: Interval, parts: any[]) => Span} */
const spanOf = (ends, parts) => new Span(ends, parts.some((each) => each.secret), parts.some((each) => each.fresh));

/**
 * Something made of parts some of which are mixed.
 * @param {Interval} ends
 * @param {any[]} parts
 * @param {() => any} work
 */
function mixed(ends, parts, work) {
  const inner = parts.filter((each) => each instanceof Mixed);
  const spans = parts.filter((each) => each instanceof Span);
  const hidden = inner.flatMap((each) => each.hidden);
  const choices = [...inner.flatMap((each) => each.choices), ...spans.filter((each) => each.secret)];
  if (!inner.some((each) => each.open) && spans.every((each) => each.secret)) return new Mixed(ends, hidden, choices, work);
  // It depends on what the report reveals already, so a reader of the report can compute it from that.
  requires(spans.every((each) => !each.secret), "the answer is mixed with what was given away in a way that is not followed");
  return new Mixed(ends, hidden, choices, () => inner.map((each) => `${each.get()}`).join(), true);
}

/** @param {string} name @param {any[]} given scalars */
function oneByOne(name, given) {
  if (given.every(isNumber)) return /** @type {any} */ (EACH.get(name))(...given);
  if (name === "where" && isNumber(given[0])) {
    requires(given[0] === 0 || given[0] === 1, "a condition that is neither 0 nor 1");
    return given[0] ? given[1] : given[2];
  }
  requires(given.every((each) => isNumber(each) || each instanceof Span || each instanceof Mixed), `${name} of vectors within vectors`);
  const ends = intervalOf(name, given.map(endsOf));
  if (ends[0] === ends[1]) return small(ends[0]);
  if (!given.some((each) => each instanceof Mixed)) return span(ends, partsOf(given));
  const operate = /** @type {any} */ (EACH.get(name));
  return mixed(ends, partsOf(given), () => operate(...given.map(now)));
}

/** @param {string} name @param {any[]} given @param {any} answer */
function overVectors(name, given, answer) {
  /** @type {any} */
  const vector = given.find(Array.isArray);
  if (!vector) return oneByOne(name, given);
  requires(vector.length > 0, "an operation on vectors without entries");
  requires(given.every((each) => !Array.isArray(each) || each.length === vector.length), "vectors of two lengths");
  const made = vector.map((/** @type {any} */ _, /** @type {number} */ i) => oneByOne(name, given.map((each) => (Array.isArray(each) ? each[i] : each))));
  const other = given.find((each) => each !== vector);
  // Of different numbers one at most is that of the answer, and it is that of one answer alone.
  if (name === "eq" && vector.distinct && other instanceof Span && other.secret && given.length === 2) {
    group(made, 1, other === answer);
  }
  return made;
}

/** @param {any[]} bits @param {number} limit @param {boolean} once */
function group(bits, limit, once) {
  const own = { limit, once };
  for (const bit of bits) if (bit instanceof Span) bit.group = own;
  return bits;
}

/** What of a vector is one place of it. @param {any} vector @param {any} place */
function at(vector, place) {
  requires(Array.isArray(vector) && vector.length > 0, "a place of no vector");
  const [lo, hi] = endsOf(place);
  requires(lo >= 0n && hi < vector.length, "a place outside a vector");
  if (isNumber(place)) return vector[Number(place)];
  if (vector.every(Array.isArray)) {
    requires(place instanceof Span && place.secret && vector.flat().every(isNumber), "a row that is not that of the answer");
    return new Row(vector, place);
  }
  const ends = hull(...vector.flatMap(endsOf));
  if (place instanceof Span && vector.every(isNumber)) return span(ends, [place]);
  requires(place instanceof Mixed || vector.some((/** @type {any} */ each) => each instanceof Mixed), "a place of numbers that are not followed");
  return mixed(ends, partsOf([vector, place]), () => now(vector[Number(now(place))]));
}

/** @type {(vector: any[], place: any, number: any, answer: any, alone: boolean) => any[]} */
function put(vector, place, number, answer, alone) {
  requires(Array.isArray(vector), "a place of no vector");
  const [lo, hi] = endsOf(place);
  requires(lo >= 0n && hi < vector.length, "a place outside a vector");
  if (isNumber(place)) return vector.map((each, i) => (i === Number(place) ? number : each));
  if (place instanceof Span && place.secret && number instanceof Mixed && number.direct && alone) {
    // One place takes the draw, which is read nowhere else, so that each place may have one of its own.
    const bits = group(vector.map(() => new Span([0n, 1n], true)), 1, place === answer);
    return vector.map((each, i) => {
      const own = drawn(/** @type {Hidden} */ (number.direct).outcomes, endsOf(number));
      own.choices = number.choices;
      return mixed(hull(...endsOf(each), ...endsOf(own)), partsOf([bits[i], own, each]), () => (bits[i].at ? own.get() : now(each)));
    });
  }
  const ends = hull(...vector.flatMap(endsOf), ...endsOf(number));
  return together([vector, place, number], () => /** @type {any} */ (WHOLE.get("put"))(now(vector), now(place), now(number)), vector.length, ends);
}

/** A vector that is worked out as a whole. @type {(given: any, work: () => any[], size: number, ends: Interval) => any[]} */
function together(given, work, size, ends) {
  const parts = partsOf(given);
  requires(parts.some((each) => each instanceof Mixed), "numbers of the answer that are not followed");
  requires(parts.every((each) => !each.open && (each instanceof Mixed || each.secret)), "a vector of what was given away and what was not");
  const whole = mixed(ends, parts, work);
  return Array.from({ length: size }, (_, i) => new Mixed(ends, whole.hidden, whole.choices, () => whole.get()[i]));
}

/** @type {(vector: any[], b: any) => any[]} */
function floyd(vector, b) {
  requires(isNumber(b) && Number(b) >= 1, "a bound that is drawn");
  const ends = hull(...vector.flatMap(endsOf), BigInt(b) - 1n, BigInt(b) - 2n + BigInt(vector.length));
  if (vector.some((each) => each instanceof Mixed)) {
    return together(vector, () => /** @type {any} */ (WHOLE.get("floyd"))(now(vector), b), vector.length, ends);
  }
  requires(vector.every((each) => isNumber(each) || !each.secret), "numbers of the answer that are not followed");
  const made = vector.map((_, i) => spanOf([ends[0], hull(ends[0], ...vector.slice(0, i + 1).flatMap(endsOf), BigInt(b) - 1n + BigInt(i))[1]], partsOf(vector)));
  // An entry is replaced by one that no earlier one can be.
  return Object.assign(made, { distinct: vector.every((each, i) => endsOf(each)[1] <= BigInt(b) - 1n + BigInt(i)) });
}

/** How many numbers an answer or a word may become. @param {any} input @returns {bigint} */
export const countOf = (input) => (input.kind === "word" ? 1n << BigInt(8 * sized(input.length)) : BigInt(input.count));

/** A draw as a number. @type {(outcomes: () => [any, bigint][], ends: Interval) => Mixed} */
function drawn(outcomes, ends) {
  const own = new Hidden(outcomes);
  const found = new Mixed(ends, [own], [], () => own.at);
  found.direct = own;
  return found;
}

/** Combinations of `n` of 0, …, m - 1. @param {number} m @param {number} n @returns {number[][]} */
function combinations(m, n) {
  if (!n) return [[]];
  return Array.from({ length: m - n + 1 }, (_, i) => n - 1 + i).flatMap((last) => combinations(last, n - 1).map((each) => [...each, last]));
}

/** Orders of so many things. @param {number} n @returns {number[][]} */
function orders(n) {
  if (!n) return [[]];
  return orders(n - 1).flatMap((each) => Array.from({ length: n }, (_, i) => [...each.slice(0, i), n - 1, ...each.slice(i)]));
}

/** How many combinations there are. @param {bigint} m @param {bigint} n */
export function choose(m, n) {
  let found = 1n;
  for (let i = 0n; i < n; i++) found = (found * (m - i)) / (i + 1n);
  return found;
}

/** Names in an expression, or nested in it. @param {any} expression @returns {string[]} */
function namesIn(expression) {
  if (!Array.isArray(expression)) return typeof expression === "string" && !/^-?[0-9]/.test(expression) ? [expression] : [];
  return expression.slice(MEMO.has(expression[0]) || HASHES.has(expression[0]) ? 2 : 1).flatMap(namesIn);
}

/** One way to look at a program. */
class Look {
  /**
   * @param {any} definition
   * @param {Set<string>} open names of the draws that are given away
   * @param {boolean} ever of all reports of an answer: everything that is not kept is given away
   */
  constructor(definition, open, ever) {
    this.definition = definition;
    this.open = open;
    this.ever = ever;
    const { input, tables, steps, report, memo } = definition;
    const last = input.kind === "number" ? BigInt(Math.trunc(Number(input.last))) : countOf(input) - 1n;
    this.answer = last ? new Span([0n, last], true) : 0;
    /** @type {Map<string, any>} */
    this.known = new Map([["value", this.answer]]);
    for (const [name, table] of Object.entries(tables)) this.known.set(name, tabled(table));
    const read = [...steps.flatMap((/** @type {any} */ [, step]) => namesIn(step)), ...report.parts.map((/** @type {any} */ part) => part[1]), memo];
    this.uses = (/** @type {string} */ name) => read.filter((each) => each === name).length;
    for (const [name, step] of steps) this.known.set(name, this.work(step, name));
  }

  /** @param {any} expression @param {string} [step] the step that it is @returns {any} */
  work(expression, step) {
    if (!Array.isArray(expression)) return this.known.has(expression) ? this.known.get(expression) : literal(expression);
    const [name, ...given] = expression;
    if (DRAWS.has(name)) return this.draw(name, given.map((each) => this.work(each)), /** @type {string} */ (step), given);
    if (MEMO.has(name)) return this.keep(name, given, /** @type {string} */ (step));
    if (HASHES.has(name)) return this.hash(name, given[0], given.slice(1).map((each) => this.work(each)));
    const worked = given.map((each) => this.work(each));
    if (name === "list") return worked;
    if (WHOLE.has(name)) return this.whole(name, worked, given);
    requires(EACH.has(name), `the operator ${name}`);
    return overVectors(name, worked, this.answer);
  }

  /** Whether a draw is read in one place alone. @param {any} name */
  isAlone(name) {
    const [, step] = this.definition.steps.find((/** @type {any} */ [each]) => each === name) ?? [];
    return Array.isArray(step) && DRAWS.has(step[0]) && this.uses(name) === 1;
  }

  /** @param {string} name @param {any[]} given @param {any[]} named */
  whole(name, given, named) {
    if (given.flat(2).every(isNumber)) return /** @type {any} */ (WHOLE.get(name))(...given);
    const [vector, place, number] = given;
    if (name === "at") return at(vector, place);
    if (name === "put") return put(vector, place, number, this.answer, this.isAlone(named[2]));
    if (name === "floyd") return floyd(vector, place);
    if (name === "onehot") return this.onehot(vector, place);
    if (name === "rank") return this.rank(vector, place);
    requires(Array.isArray(vector), `${name} of no vector`);
    const ends = hull(...vector.flatMap(endsOf));
    const operate = /** @type {any} */ (WHOLE.get(name));
    if (name === "sort") return together(vector, () => operate(now(vector)), vector.length, ends);
    // Of `first` and `join`, bits.
    requires(ends[0] >= 0n && ends[1] <= 1n && vector.length <= 1024, `${name} of what are no bits`);
    const most = name === "first" ? BigInt(vector.length - 1) : (1n << BigInt(vector.length)) - 1n;
    if (vector.some((/** @type {any} */ each) => each instanceof Mixed)) return mixed([0n, most], partsOf(vector), () => operate(now(vector)));
    return span([0n, most], partsOf(vector));
  }

  /** @param {any} place @param {any} count */
  onehot(place, count) {
    requires(isNumber(count), "a vector of a length that is drawn");
    const size = sized(count);
    const [lo, hi] = endsOf(place);
    requires(lo >= 0n && hi < size, "a place outside a vector");
    if (place instanceof Mixed) return together([place], () => /** @type {any} */ (WHOLE.get("onehot"))(now(place), size), size, [0n, 1n]);
    return group(Array.from({ length: size }, () => spanOf([0n, 1n], [place])), 1, place === this.answer);
  }

  /** @param {any} vector @param {any} number */
  rank(vector, number) {
    const rows = vector instanceof Row ? vector.rows : [vector];
    requires(rows.every((/** @type {any} */ row) => Array.isArray(row) && row.every((each, i) => isNumber(each) && (!i || row[i - 1] <= each))), "a rank among numbers that are not known");
    /** @type {Interval} */
    const ends = [0n, BigInt(Math.max(...rows.map((row) => row.length)))];
    const parts = partsOf([vector instanceof Row ? vector : [], number]);
    if (parts.some((each) => each instanceof Mixed)) return mixed(ends, parts, () => /** @type {any} */ (WHOLE.get("rank"))(now(vector), now(number)));
    return span(ends, parts);
  }

  /** @param {string} name @param {string} seed @param {any[]} given */
  hash(name, seed, given) {
    const parts = partsOf(given);
    if (!parts.length) return /** @type {any} */ (HASHES.get(name))(seed)(...given);
    requires(parts.every((each) => each instanceof Span), "a hash function that is hidden");
    const size = given[2];
    requires(isNumber(size) && size >= 1 && size <= BITS && given.every((each) => !Array.isArray(each)), "a hash function of a size that is drawn");
    requires(endsOf(given[0])[0] >= 0n && endsOf(given[0])[1] < WORD, "a hash function that there is not");
    // For each answer it may be anything.
    if (name === "polynomial") return span([0n, BigInt(size) - 1n], parts);
    requires(isNumber(given[3]) && given[3] >= 0 && given[3] <= MOST_HASHES, "a filter of a size that is drawn");
    return group(Array.from({ length: sized(size) }, () => spanOf([0n, 1n], parts)), sized(given[3]), false);
  }

  // -- draws -------------------------------------------------------------------------------------------------------

  /** @param {any} t @param {boolean} free whether it was given away @param {boolean} [fresh] @returns {any} */
  bit(t, free, fresh = false) {
    const [lo, hi] = endsOf(t);
    requires((isNumber(t) || t instanceof Span) && lo >= 0n && hi <= WORD, "a chance that is drawn, or no chance");
    if (lo === hi && !(lo % WORD)) return lo ? 1 : 0;
    if (!isNumber(t)) {
      requires(!free && t.secret, "a chance that is not followed");
      const threshold = new Threshold([lo, hi], true);
      const found = drawn(() => weighted(threshold.at), [0n, 1n]);
      found.choices = [threshold];
      return found;
    }
    return free ? new Span([0n, 1n], false, fresh) : drawn(() => weighted(lo), [0n, 1n]);
  }

  /**
   * @param {any} b
   * @param {boolean} free
   * @param {string} step
   * @param {bigint | undefined} words of how many it is the rest
   * @param {boolean} fresh
   * @returns {any}
   */
  below(b, free, step, words, fresh) {
    requires(isNumber(b), "a bound that is drawn");
    const bound = BigInt(b);
    requires(bound >= 1n && bound <= BITS, "a bound that there is not");
    if (bound === 1n) return 0;
    if (free) return new Span([0n, bound - 1n], false, fresh);
    const cuts = bound > MOST_EACH ? this.cuts(step, bound) : undefined;
    requires(cuts !== undefined || bound <= MOST_EACH, "a draw of too many outcomes");
    const least = cuts ?? Array.from({ length: Number(bound) }, (_, i) => BigInt(i));
    /** @type {[any, bigint][]} */
    const outcomes = least.map((low, i) => {
      const next = least[i + 1] ?? bound;
      const weight = words === undefined ? next - low : ((words - 1n - low) / bound + 1n) * (next - low);
      return [small(low), weight];
    });
    requires(words === undefined || cuts === undefined, "a draw of too many outcomes");
    return drawn(() => outcomes, [0n, bound - 1n]);
  }

  /** Where the rank of a draw changes, if nothing else is made of it. @param {string} step @param {bigint} bound */
  cuts(step, bound) {
    /** @type {Set<bigint>} */
    const found = new Set([0n]);
    let ranks = 0;
    const look = (/** @type {any} */ expression) => {
      if (!Array.isArray(expression)) return;
      const [name, among, number] = expression;
      const table = name === "rank" && number === step && this.known.get(Array.isArray(among) && among[0] === "at" ? among[1] : among);
      if (Array.isArray(table) && table.flat().every(isNumber)) {
        ranks++;
        for (const each of table.flat()) if (each > 0 && each < bound) found.add(BigInt(each));
      }
      expression.forEach(look);
    };
    for (const [, expression] of this.definition.steps) look(expression);
    if (!ranks || ranks !== this.uses(step) || found.size > MOST_EACH) return undefined;
    return [...found].sort((a, b) => (a < b ? -1 : 1));
  }

  /** @param {string} name @param {any[]} given @param {string} step @param {any[]} named @returns {any} */
  draw(name, given, step, named) {
    const fresh = this.ever;
    const free = fresh || this.open.has(step);
    const [a, b] = given;
    const count = () => (requires(isNumber(b), "so many draws that it is drawn how many"), sized(b));
    if (name === "bit") return this.bit(a, free, fresh);
    if (name === "bits") return Array.from({ length: count() }, () => this.bit(a, free, fresh));
    if (name === "bit_at") {
      requires(endsOf(a)[1] < WORD, "no chance");
      return this.bit(a, free, fresh);
    }
    if (name === "bits_each") return a.map((/** @type {any} */ each) => this.bit(each, free, fresh));
    if (name === "below") return this.below(a, free, step, undefined, fresh);
    if (name === "belows") return Array.from({ length: count() }, () => this.below(a, free, step, undefined, fresh));
    if (name === "belows_from") {
      requires(isNumber(a), "a bound that is drawn");
      return Array.from({ length: count() }, (_, i) => this.below(BigInt(a) + BigInt(i), free, step, undefined, fresh));
    }
    if (name === "subset") return this.subset(a, count(), free);
    if (name === "shuffle") return this.shuffle(a, free);
    throw new Unconfirmed(`draws of ${name} in a program that is not known`);
  }

  /** @param {any} m @param {number} n @param {boolean} free @returns {any} */
  subset(m, n, free) {
    requires(isNumber(m) && m >= 1 && n <= m, "a subset that there is not");
    /** @type {Interval} */
    const ends = [0n, BigInt(m) - 1n];
    if (free) return Object.assign(Array.from({ length: n }, () => new Span(ends, false, this.ever)), { distinct: true });
    requires(choose(BigInt(m), BigInt(n)) <= MOST_EACH, "a subset of too many outcomes");
    const every = combinations(Number(m), n).map((each) => /** @type {[any, bigint]} */ ([each, 1n]));
    const whole = new Hidden(() => every);
    return Array.from({ length: n }, (_, i) => new Mixed(ends, [whole], [], () => whole.at[i]));
  }

  /** @param {any[]} vector @param {boolean} free */
  shuffle(vector, free) {
    let most = 1;
    for (let i = 2; i <= vector.length; i++) most *= i;
    requires(!free && most <= MOST_ORDERS, "an order of too many outcomes");
    const every = orders(vector.length).map((each) => /** @type {[any, bigint]} */ ([each, 1n]));
    const order = new Hidden(() => every);
    const ends = hull(...vector.flatMap(endsOf));
    const own = new Mixed(ends, [order], [], () => order.at);
    return together([vector, own], () => order.at.map((/** @type {number} */ i) => now(vector[i])), vector.length, ends);
  }

  /** @param {string} name @param {any[]} given @param {string} step */
  keep(name, given, step) {
    const [v, a, n] = given.slice(1).map((each) => this.work(each));
    // Answers that share words would give away how they differ.
    const free = this.open.has(step);
    requires(free || given[1] === this.definition.memo, "what is kept is not kept for the answer alone");
    requires(isNumber(v) || v instanceof Span, "what is kept is kept for a draw");
    requires(endsOf(v)[0] >= -BITS && endsOf(v)[1] < BITS, "what is kept for a number that is too large");
    if (name === "kept_top") {
      requires(isNumber(a) && a >= 0 && a <= 64, "a number of bits that there is not");
      return this.below(1n << BigInt(a), free, "", undefined, false);
    }
    requires(isNumber(n), "so many draws that it is drawn how many");
    if (name === "kept_bits") return Array.from({ length: sized(n) }, () => this.bit(a, free));
    requires(isNumber(a), "a bound that is drawn");
    return Array.from({ length: sized(n) }, (_, i) => this.below(BigInt(a) + BigInt(i), free, "", WORD, false));
  }

  // -- what it comes to --------------------------------------------------------------------------------------------

  /**
   * The numbers of the report that hidden draws are part of. It is refused where the answer itself is in it, or where it
   * may have no report.
   */
  messages() {
    return this.definition.report.parts.flatMap((/** @type {any[]} */ [kind, name, ...more]) => {
      const found = this.known.get(name);
      const vector = Array.isArray(found) ? found : [found];
      const largest = kind === "packed" ? 1n : kind === "uint" ? (1n << BigInt(8 * more[0])) - 1n : undefined;
      requires(kind === "float64" ? vector.length === 1 : vector.length === more.at(-1), "a vector of another length than the report");
      for (const each of vector) {
        requires(isNumber(each) || each instanceof Span || each instanceof Mixed, "a report of vectors within vectors");
        const [lo, hi] = endsOf(each);
        requires(largest === undefined || (lo >= 0n && hi <= largest), "a number that a report may not hold");
        requires(!(each instanceof Span && each.secret), "a report holds what is worked out of the answer without a draw");
      }
      return vector.filter((each) => each instanceof Mixed);
    });
  }

  /** Messages that share draws. @returns {Mixed[][]} */
  components() {
    /** @type {Map<Hidden, Mixed[]>} */
    const sets = new Map();
    for (const message of this.messages()) {
      const touched = new Set(message.hidden.map((/** @type {Hidden} */ each) => sets.get(each)).filter(Boolean));
      const all = [...[...touched].flat(), message];
      for (const each of all) for (const hidden of each.hidden) sets.set(hidden, all);
    }
    return [...new Set([...sets].map(([, messages]) => messages))];
  }

  /**
   * The largest ratio of probabilities of a report for two answers; and of all that is kept for every answer together,
   * where that is known. In multiples of 2^-PLACES, rounded up.
   */
  bound() {
    let left = MOST_RUNS;
    let largest = 1n << PLACES;
    /** @type {bigint | undefined} */
    let every = largest;
    /** @type {Map<Group, Map<Span, { up: bigint, down: bigint }>>} */
    const groups = new Map();
    for (const messages of this.components()) {
      const { ratio, up, down, choices, runs } = ratiosOf(messages, left);
      left -= runs;
      const own = choices.length === 1 ? choices[0].group : undefined;
      if (own) {
        const bits = groups.get(own) ?? new Map();
        const { up: before = 1n << PLACES, down: below = 1n << PLACES } = bits.get(choices[0]) ?? {};
        groups.set(own, bits.set(choices[0], { up: product(before, up), down: product(below, down) }));
      } else largest = product(largest, ratio);
      every = own?.once && every ? product(product(every, up), down) : choices.length ? undefined : every;
    }
    for (const [{ limit }, found] of groups) {
      for (const side of /** @type {const} */ (["up", "down"])) {
        const sorted = [...found].map(([, each]) => each[side]).sort((a, b) => (a > b ? -1 : 1));
        for (const ratio of sorted.slice(0, limit)) largest = product(largest, ratio);
      }
    }
    return { largest, every };
  }

  /** How many different draws may be kept. @returns {bigint} */
  get draws() {
    const [lo, hi] = endsOf(this.known.get(this.definition.memo));
    return hi - lo + 1n;
  }
}

/** @param {bigint} t @returns {[any, bigint][]} */
const weighted = (t) => /** @type {[any, bigint][]} */ ([[0, WORD - t], [1, t]]).filter(([, weight]) => weight);

/** Rounded up. @type {(a: bigint, b: bigint) => bigint} */
export const product = (a, b) => -((-a * b) >> PLACES);

/** Rounded up, to 2^-PLACES. @type {(a: bigint, b: bigint) => bigint} */
export const quotient = (a, b) => ((a << PLACES) + b - 1n) / b;

/**
 * The largest ratios of the probabilities of messages that share draws.
 * @param {Mixed[]} messages
 * @param {number} most runs
 */
function ratiosOf(messages, most) {
  const hidden = [...new Set(messages.flatMap((each) => each.hidden))];
  const choices = [...new Set(messages.flatMap((each) => each.choices))];
  let runs = 0;
  /** @type {Map<any, bigint>} */
  let law = new Map();
  /** @type {(place: number, weight: bigint) => void} */
  const drawFrom = (place, weight) => {
    if (place < hidden.length) {
      for (const [outcome, own] of hidden[place].outcomes()) {
        hidden[place].at = outcome;
        drawFrom(place + 1, weight * own);
      }
      return;
    }
    requires((runs += messages.length) <= most, "too many outcomes to go through");
    tick++;
    const key = messages.length > 1 ? messages.map((each) => `${each.get()}`).join(";") : `${messages[0].get()}`;
    law.set(key, (law.get(key) ?? 0n) + weight);
  };
  /** @type {Map<any, bigint>[]} */
  const laws = [];
  /** @type {(place: number) => void} */
  const chooseFrom = (place) => {
    if (place < choices.length) {
      for (const option of choices[place].options) {
        choices[place].at = option;
        chooseFrom(place + 1);
      }
      return;
    }
    law = new Map();
    drawFrom(0, 1n);
    laws.push(law);
  };
  chooseFrom(0);
  const [zero, one] = laws;
  const isBit = laws.length === 2;
  return { ratio: widest(laws), up: isBit ? above(one, zero) : 0n, down: isBit ? above(zero, one) : 0n, choices, runs };
}

/** @param {Map<any, bigint>[]} laws */
function widest(laws) {
  let found = 1n << PLACES;
  for (const key of new Set(laws.flatMap((law) => [...law.keys()]))) {
    const [least, most] = hull(...laws.map((law) => law.get(key) ?? 0n));
    requires(least > 0n, "a report that one answer can give is impossible for another");
    const ratio = quotient(most, least);
    if (ratio > found) found = ratio;
  }
  return found;
}

/** The largest probability of one law over that of another. @type {(one: Map<any, bigint>, other: Map<any, bigint>) => bigint} */
function above(one, other) {
  let found = 1n << PLACES;
  for (const [key, weight] of one) {
    const against = other.get(key);
    requires(against !== undefined, "a report that one answer can give is impossible for another");
    const ratio = quotient(weight, /** @type {bigint} */ (against));
    if (ratio > found) found = ratio;
  }
  return found;
}

/**
 * What is kept must be kept for what reports are charged by, and reports be made of that and of draws alone.
 * @param {any} definition
 */
export function checkMemo({ memo, tables, steps, report: { parts } }) {
  const kept = steps.filter((/** @type {any} */ [, step]) => MEMO.has(step[0])).map((/** @type {any} */ [, step]) => step);
  const labels = kept.map((/** @type {any} */ step) => step[1]);
  requires(new Set(labels).size === labels.length, "the same kept words are read twice");
  if (!kept.length) return;
  const told = new Set([memo, ...Object.keys(tables)]);
  const own = new Set(["value", ...Object.keys(tables)]);
  for (const [name, expression] of steps) {
    const used = namesIn(expression);
    if (used.every((each) => told.has(each))) told.add(name);
    if (used.every((each) => own.has(each)) && !DRAWS.has(expression[0])) own.add(name);
  }
  const needed = [...parts.map((/** @type {any} */ part) => part[1]), ...kept.flatMap(namesIn)];
  requires(needed.every((each) => told.has(each)) && own.has(memo), "reports depend on more of the answer than what they are charged by");
}

/**
 * Bounds of the last of some steps, of which the first is drawn and given away. It is refused where that may fail, or has other draws.
 * @param {any} definition
 * @param {string[]} names of its first steps
 */
export function hashed(definition, names) {
  const steps = definition.steps.slice(0, names.length);
  const found = new Look({ ...definition, steps, report: { parts: [] } }, new Set(names.slice(0, 1)), false).known.get(names[names.length - 1]);
  requires(isNumber(found) || found instanceof Span, "a hash that is drawn");
  return endsOf(found);
}

/** Steps that may be given away. @param {any} definition @returns {string[]} */
function openable({ steps, memo }) {
  const found = steps.filter((/** @type {any} */ [, [name]]) => /^(belows?|belows_from|subset|kept_belows|kept_top)$/.test(name));
  // What is kept for something else than the answer must be, as other answers share it.
  const free = found.filter((/** @type {any} */ [, step]) => !(MEMO.has(step[0]) && step[2] !== memo));
  return free.map((/** @type {any} */ [name]) => name);
}

/**
 * Bounds of a report (or `ever`, of all reports of an answer), by every choice of what is given away.
 * @param {any} definition
 * @param {boolean} [ever]
 * @returns {Generator<{ look: Look, largest: bigint, every: bigint | undefined } | Unconfirmed>}
 */
export function* looks(definition, ever = false) {
  const free = openable(definition);
  const tried = free.slice(0, MOST_TRIED);
  const always = definition.steps.filter((/** @type {any} */ [, step]) => MEMO.has(step[0]) && step[2] !== definition.memo).map((/** @type {any} */ [name]) => name);
  // The more is given away, the less there is to go through.
  for (let mask = (1 << tried.length) - 1; mask >= 0; mask--) {
    const open = new Set([...always, ...free.slice(MOST_TRIED), ...tried.filter((_, i) => (mask >> i) & 1)]);
    try {
      const look = new Look(definition, open, ever);
      yield { look, ...look.bound() };
    } catch (error) {
      // What fails while it is looked at may fail on the device, for some answers alone.
      yield error instanceof Unconfirmed ? error : new Unconfirmed(`the program fails: ${error instanceof Error ? error.message : error}`);
    }
  }
}
