// The form of a definition: keys, names, numbers of arguments, and kinds. What docs/reference/client-programs.md does not
// define is refused before anything runs, as clients/check/check_law.py refuses it.

import { canonicalText } from "./bytes.js";
import { MOST, isPlain, literal, sized, within } from "./numbers.js";
import { falling } from "./tables.js";

/** @typedef {"number" | "vector" | "rows"} Kind `rows` are a table of vectors of one length */

const DRAWING = `
  bit:chance:number bits:chance,size:vector bit_at:odds:number bits_each:chances:vector below:bound:number
  belows:bound,size:vector belows_from:bound,size:vector subset:bound,size:vector shuffle:vector:vector
  geometric:odds:number laplace:places:number normal:places:number`;
const KEPT = `
  kept_bits:text,word,chance,size:vector kept_belows:text,word,bound,size:vector kept_top:text,word,top:number`;
const COMPUTING = `
  polynomial:text,function,number,bound:number bloom:text,number,number,filter,hashes:vector
  add:each,each:each sub:each,each:each mul:each,each:each div:each,divisor:each mod:each,divisor:each
  shr:each,shift:each shl:each,shift:each and:natural,natural:each xor:natural,natural:each min:each,each:each
  max:each,each:each lt:each,each:each ge:each,each:each eq:each,each:each where:choice,each,each:each
  parity:natural:each list:...:vector at:vector,number:number put:vector,number,number:vector sort:vector:vector
  first:flags:number rank:vector,number:number onehot:number,size:vector join:flags:number floyd:vector,number:vector`;

/** Each operator: the kinds of its arguments, and of its result. `each` is a number, or a vector place by place. */
export const FORMS = new Map(
  `${DRAWING} ${KEPT} ${COMPUTING}`.trim().split(/\s+/).map((row) => {
    const [name, takes, gives] = row.split(":");
    return [name, { takes: takes.split(","), gives }];
  }),
);
/** @param {string} table */
const namesOf = (table) => new Set(table.trim().split(/\s+/).map((row) => row.split(":")[0]));
/** What reads the stream. */
export const DRAWS = namesOf(DRAWING);
/** What reads the secret. */
export const MEMOS = namesOf(KEPT);

const EACH = new Set("each divisor shift natural choice".split(" "));
const VECTORS = new Set("vector chances flags".split(" "));
const NAME = /^[a-z][a-z0-9_]*$/;
const DECIMAL = /^[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?$/;
const MOST_DEPTH = 100;
const MOST_WORD = 512;
const MOST_ITEMS = 50;
const MOST_DIGITS = 1000;
const TEXTS = "contact context digest fingerprint format mechanism memo name purpose question title".split(" ");
const KEYS = [...TEXTS, ..."answers guarantee input languages report steps tables version".split(" ")];
const OPTIONAL = ["labels", "at_most"];
/** Keys of the questions of a survey. */
const OF_QUESTIONS = "kind slot unit items".split(" ");
const WORDS = new Set("title question purpose".split(" "));
const TAG = /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/;
/** What no line shows, or shows elsewhere. */
const HIDDEN = /[\0-\x1f\x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u2066-\u2069\u3000\ufeff]/;

/** @type {(holds: unknown, why: string) => asserts holds} */
function needs(holds, why) {
  if (!holds) throw new TypeError(`the definition has ${why}; this client knows no such form`);
}

/** @type {(value: any, ...keys: string[]) => boolean} */
const hasKeys = (value, ...keys) => isObject(value) && Object.keys(value).sort().join() === keys.sort().join();

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** @param {any} value */
const isText = (value) => typeof value === "string" && !/\p{Surrogate}/u.test(value);

/**
 * A double in a program.
 * @param {any} text
 */
export function finite(text) {
  const number = typeof text === "string" && DECIMAL.test(text.replace(/^-/, "")) ? Number(text) : NaN;
  needs(Number.isFinite(number), `a text that is no double: ${text}`);
  return number;
}

/** @type {(value: any, least: number, most?: number) => any} */
const counted = (value, least, most = MOST) => (needs(typeof value === "number", `a count that is no number: ${value}`), within(value, least, most));

/**
 * The kind of an expression.
 * @param {any} expression
 * @param {Map<any, Kind>} known
 * @param {number} depth
 * @returns {Kind}
 */
function kindOf(expression, known, depth = MOST_DEPTH) {
  if (!Array.isArray(expression)) return known.get(expression) ?? (literal(expression), "number");
  const [name, ...given] = expression;
  const form = FORMS.get(name);
  if (!form) throw new TypeError(`this client does not know the operator ${name}; it is too old`);
  needs(depth, "operators that are too deep within each other");
  if (depth < MOST_DEPTH && (DRAWS.has(name) || MEMOS.has(name))) throw new TypeError(`${name} stands alone at the top of a step`);
  const takes = name === "list" ? given.map(() => "number") : form.takes;
  needs(given.length === takes.length, `${name} of ${given.length} arguments`);
  const text = takes[0] === "text" ? 1 : 0;
  needs(!text || isPlain(given[0]), `${name} of what is no plain text`);
  const kinds = given.slice(text).map((each) => kindOf(each, known, depth - 1));
  if (name === "at" && `${kinds}` === "rows,number") return "vector";
  kinds.forEach((kind, i) => {
    const wanted = takes[i + text];
    needs(EACH.has(wanted) ? kind === "number" || kind === "vector" : kind === (VECTORS.has(wanted) ? "vector" : "number"), `${name} of a ${kind}`);
  });
  return /** @type {Kind} */ (form.gives === "each" ? (kinds.includes("vector") ? "vector" : "number") : form.gives);
}

/** @param {any} table @returns {Kind} */
function kindOfTable(table) {
  if (!Array.isArray(table)) {
    needs(hasKeys(table, "first", "ratio", "digits", "floor", "count"), "another table");
    needs([table.first, table.ratio].every((each) => typeof each === "string" && DECIMAL.test(each)), "a table of no decimals");
    counted(table.digits, 1, MOST_DIGITS);
    counted(table.count, 0);
    needs(literal(table.floor) >= 0, "a table below 0");
    // Totals of weights that do not grow are small enough; those of others are tried.
    if (Number(table.first) > 1e300 || Number(table.ratio) > 1 || BigInt(table.floor) > 10n ** 1000n) falling(table);
    return "vector";
  }
  const rows = table.filter(Array.isArray);
  needs(table.length <= MOST, "a table that is too long");
  table.flat().forEach(literal);
  if (!rows.length) return "vector";
  needs(rows.length === table.length && rows.every((row) => row.length === rows[0].length), "a table of vectors of several lengths, or of numbers too");
  return "rows";
}

/** How many sets there are of at most `most` of so many options. @param {number} options @param {number} most @returns {bigint} */
export function setsOf(options, most) {
  let [found, ways] = [0n, 1n];
  for (let i = 0; i <= Math.min(most, options); i++) {
    found += ways;
    ways = (ways * BigInt(options - i)) / BigInt(i + 1);
  }
  return found;
}

/**
 * @param {any} input
 * @param {any} names
 * @param {any} most the most ticks, where an answer is a set of the named options
 * @param {any} items those of a grid, where an answer has a name for each
 */
function checkInput(input, names, most, items) {
  needs(isObject(input), "no input");
  const { kind } = input;
  if (!["answer", "word", "number"].includes(kind)) throw new TypeError(`this client does not know answers of the kind ${kind}; it is too old`);
  needs(kind === "answer" || (names === null && most === undefined), "names of what are no choices");
  needs(names === null || Array.isArray(names), "names that are no list");
  if (kind === "answer") {
    needs(hasKeys(input, "kind", "count", "text") && typeof input.text === "boolean", "another input");
    const count = BigInt(literal(input.count));
    needs(count >= 1n, "no answers");
    if (most !== undefined) counted(most, 1, names?.length ?? 200);
    if (names === null) return;
    needs(names.every(isText), "names that are no texts");
    const own = new Set(names.map(canonicalText));
    needs(own.size === names.length && !own.has(""), "names that are not each a text of its own");
    const counts = items !== undefined ? [BigInt(names.length) ** BigInt(items.length)] : most === undefined ? [BigInt(names.length)] : [setsOf(names.length, most), 1n << BigInt(names.length)];
    needs(counts.includes(count), "more or fewer names than answers");
  } else if (kind === "word") {
    needs(hasKeys(input, "kind", "length"), "another input");
    counted(input.length, 1, MOST_WORD);
  } else {
    const by = "times" in input ? "times" : "step";
    needs(hasKeys(input, "kind", "lower", "upper", "last", by), "another input");
    const [lower, upper, scale] = [input.lower, input.upper, input[by]].map(finite);
    needs(lower <= upper && scale > 0, "no range of numbers");
    needs(Number.isFinite(by === "times" ? (upper - lower) * scale : (upper - lower) / scale), "numbers that no double holds");
    counted(input.last, 0, Number.MAX_SAFE_INTEGER);
  }
}

/** @param {any} part @param {Map<any, Kind>} known of the steps */
function checkPart(part, known) {
  needs(Array.isArray(part), "a part of the report that is no list");
  const [kind, name, ...sizes] = part;
  if (!["uint", "packed", "float64"].includes(kind)) throw new TypeError(`this client does not know the part ${kind} of a report; it is too old`);
  needs(typeof name === "string" && ["number", kind === "float64" ? "" : "vector"].includes(known.get(name) ?? "none"), `a part that is no step: ${name}`);
  needs(sizes.length === { uint: 2, packed: 1, float64: 3 }[/** @type {"uint"} */ (kind)], `a part ${kind} of another form`);
  if (kind === "float64") {
    sizes.slice(0, 2).forEach(finite);
    literal(sizes[2]);
  } else {
    counted(sizes.at(-1), 0);
    if (kind === "uint") counted(sizes[0], 1, 8);
  }
}

/**
 * Refuses a program that the specification does not define: its input, tables, steps, memo and report.
 * @param {any} definition
 * @returns {Map<string, Kind>} the kinds of its names
 * @throws {TypeError | RangeError}
 */
export function checkProgram({ input, tables, steps, memo, report, answers = null, at_most, items }) {
  checkInput(input, answers, at_most, items);
  needs(isObject(tables) && Array.isArray(steps), "no tables or no steps");
  /** @type {Map<any, Kind>} */
  const known = new Map([["value", "number"]]);
  /** @type {(name: any, kind: () => Kind) => void} */
  const define = (name, kind) => {
    if (typeof name !== "string" || !NAME.test(name) || known.has(name)) throw new TypeError(`not a name of its own: ${name}`);
    known.set(name, kind());
  };
  for (const [name, table] of Object.entries(tables)) define(name, () => kindOfTable(table));
  /** @type {string[]} */
  const kept = [];
  for (const step of steps) {
    needs(Array.isArray(step) && step.length === 2, "a step that is not a name and an expression");
    define(step[0], () => kindOf(step[1], known));
    if (Array.isArray(step[1]) && MEMOS.has(step[1][0])) kept.push(step[0]);
  }
  if (!(kept.length ? known.get(memo) === "number" : memo === "")) throw new TypeError("memo is named where something is kept, and only there");
  needs(hasKeys(report, "dtype", "shape", "parts") && typeof report.dtype === "string" && Array.isArray(report.shape), "another report");
  report.shape.forEach((/** @type {any} */ size) => counted(size, 0));
  needs(Array.isArray(report.parts) && report.parts.length, "no part of a report");
  const made = new Map(steps.map(([name]) => [name, /** @type {Kind} */ (known.get(name))]));
  report.parts.forEach((/** @type {any} */ part) => checkPart(part, made));
  return known;
}

/**
 * Refuses a definition with other keys, or with texts or a guarantee of another form, than the specification names.
 * `checkProgram` looks at the program.
 * @param {any} definition
 * @param {boolean} [within] whether it is a question of a survey, which has keys of its own
 * @throws {TypeError | RangeError}
 */
export function checkForm(definition, within = false) {
  const known = new Set([...KEYS, ...OPTIONAL, ...(within ? OF_QUESTIONS : [])]);
  needs(isObject(definition) && Object.keys(definition).every((key) => known.has(key)), "keys of its own");
  const missing = KEYS.find((key) => !(key in definition));
  needs(missing === undefined, `no ${missing}`);
  const { format, version, languages, name, mechanism } = definition;
  needs(format === "ldp-budget client" && version === 1, "another format or version");
  needs(!("labels" in definition) || (definition.labels === true && !!definition.memo), "labels of no memo");
  if ("items" in definition) checkItems(definition);
  needs(TEXTS.every((key) => isText(definition[key])) && isText(definition.unit ?? ""), "texts that are none");
  needs(!HIDDEN.test(name + mechanism), "a name that no line can show");
  needs(isObject(languages), "no languages");
  for (const [tag, said] of Object.entries(languages)) {
    needs(TAG.test(tag) && isObject(said), "other translations");
    for (const [key, words] of Object.entries(said)) {
      const answers = key === "answers" && Array.isArray(words) && words.length === (definition.answers ?? []).length && words.every(isText);
      needs(answers || (WORDS.has(key) && isText(words)), "other translations");
    }
  }
  checkGuarantee(definition);
}

/** @param {any} definition */
function checkItems({ items, answers, at_most: most }) {
  needs(Array.isArray(items) && items.length > 1 && items.length <= MOST_ITEMS && Array.isArray(answers) && most === undefined, "items of no grid");
  needs(new Set(items.map((/** @type {any} */ each) => each?.name)).size === items.length, "items that are not each one of its own");
  for (const each of items) {
    needs(isObject(each) && hasKeys(each, "name", "text", "languages") && isText(each.name) && isText(each.text), "an item of another form");
    needs(isObject(each.languages) && Object.values(each.languages).every(isText), "other translations of an item");
  }
}

/**
 * Refuses a guarantee with other figures than the specification names: those of repeated draws are of programs with a memo,
 * and `eta` is of the kind `one-sided`.
 * @param {any} definition
 * @throws {TypeError}
 */
export function checkGuarantee({ guarantee, memo }) {
  const oneSided = guarantee?.kind === "one-sided" ? ["eta"] : [];
  const figures = new Set(["epsilon", "delta", ...oneSided, ...(memo ? ["answer_epsilon", "lifetime_epsilon"] : [])]);
  needs(isObject(guarantee) && "epsilon" in guarantee && "delta" in guarantee, "no epsilon or no delta");
  for (const [key, said] of Object.entries(guarantee)) {
    if (figures.has(key)) needs(said === null || (typeof said === "string" && DECIMAL.test(said)), "a figure that is no decimal");
    else needs(["kind", "relation", "words"].includes(key) && isText(said), "figures of its own");
  }
}
