// The texts of a page, and its formats for numbers and dates, in a language that `speak` chooses.

/** @type {Record<string, string>} */
let texts = {};
/** The language of the page. */
export let language = "en";

/**
 * Chooses the language of all texts and formats.
 * @param {Record<string, Record<string, any>>} all the texts by language
 * @param {string} wanted the first one in place of one that is not there
 */
export function speak(all, wanted) {
  language = wanted in all ? wanted : Object.keys(all)[0];
  texts = all[language];
  formats = formatsOf(language);
}

/**
 * @param {string} key
 * @param {Record<string, string | number>} [values] for the places `{name}`
 */
export function say(key, values = {}) {
  const text = texts[key] ?? key;
  return text.replace(/\{([a-z_]+)\}/g, (place, name) => (name in values ? String(values[name]) : place));
}

/** True if there is such a text. @param {string} key */
export const said = (key) => key in texts;

/** @param {string} tag of a language */
function formatsOf(tag) {
  // Three digits are enough to read. Rounding is never optimistic: losses and charges round up, what is left rounds down.
  const digits = { maximumSignificantDigits: 3, useGrouping: false };
  const date = /** @type {const} */ ({ year: "numeric", month: "long", day: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" });
  const number = (/** @type {any} */ options) => new Intl.NumberFormat(tag, options);
  return {
    up: number({ ...digits, roundingMode: "ceil" }),
    down: number({ ...digits, roundingMode: "floor" }),
    plain: number({ maximumFractionDigits: 20, useGrouping: false }),
    share: number({ style: "percent", maximumFractionDigits: 1 }),
    shareUp: number({ style: "percent", maximumFractionDigits: 0, roundingMode: "ceil" }),
    low: number({ style: "percent", maximumFractionDigits: 1, roundingMode: "floor" }),
    high: number({ style: "percent", maximumFractionDigits: 1, roundingMode: "ceil" }),
    bytes: number({ style: "unit", unit: "byte", unitDisplay: "long" }),
    date: new Intl.DateTimeFormat(tag, date),
    day: new Intl.DateTimeFormat(tag, { year: "numeric", month: "long", day: "numeric", timeZone: "UTC" }),
    shortDate: new Intl.DateTimeFormat(tag, { ...date, month: "short" }),
  };
}

let formats = formatsOf(language);

/** Rounded up. @param {string | number} number a decimal, of which every digit counts */
export const up = (number) => formats.up.format(/** @type {any} */ (String(number)));

/** Rounded down. @param {string | number} number */
export const down = (number) => formats.down.format(/** @type {any} */ (String(number)));

/** As it is. @param {string | number} number */
export const plain = (number) => formats.plain.format(/** @type {any} */ (String(number)));

/** @param {number} number */
export const share = (number) => formats.share.format(number);

/** The ends of an interval, rounded outward. @param {number} low @param {number} high */
export const ends = (low, high) => ({ low: formats.low.format(low), high: formats.high.format(high) });

/** In whole percent, rounded up. @param {number} number */
export const shareUp = (number) => formats.shareUp.format(number);

/**
 * The probability 1/(1 + q), rounded up, with so many digits that it stays below 1.
 * @param {number} q above 0
 */
export const sureness = (q) => {
  const digits = Math.max(1, Math.ceil(-Math.log10((100 * q) / (1 + q))));
  const format = { style: "percent", maximumFractionDigits: digits, roundingMode: "ceil" };
  return new Intl.NumberFormat(language, /** @type {any} */ (format)).format(1 / (1 + q));
};

/** @param {number} count */
export const bytes = (count) => formats.bytes.format(count);

/** With the time zone. @param {string | Date} moment */
export const date = (moment) => formats.date.format(new Date(moment));

/** A day of a calendar, the same in each time zone. @param {string} text such as 2026-11-23 */
export const day = (text) => formats.day.format(new Date(`${text}T00:00:00Z`));

/** A date for a table, with the time zone. @param {string | Date} moment */
export const shortDate = (moment) => formats.shortDate.format(new Date(moment));
