// The texts of the page in the language of the document, and its formats for numbers and dates.

import de from "../../../service/ldp_budget_service/web/texts/survey.de.json";
import en from "../../../service/ldp_budget_service/web/texts/survey.en.json";
import ko from "../../../service/ldp_budget_service/web/texts/survey.ko.json";

/** @type {Record<string, Record<string, string>>} */
const LANGUAGES = { en, ko, de };

export const language = document.documentElement.lang in LANGUAGES ? document.documentElement.lang : "en";
const texts = LANGUAGES[language];

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

// Three digits are enough to read. Rounding is never optimistic: losses and charges round up, what is left rounds down.
const DIGITS = { maximumSignificantDigits: 3, useGrouping: false };
const ceiling = new Intl.NumberFormat(language, /** @type {any} */ ({ ...DIGITS, roundingMode: "ceil" }));
const floor = new Intl.NumberFormat(language, /** @type {any} */ ({ ...DIGITS, roundingMode: "floor" }));
const decimals = new Intl.NumberFormat(language, { maximumFractionDigits: 20, useGrouping: false });
const shares = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 });
const sharesUp = new Intl.NumberFormat(language, /** @type {any} */ ({ style: "percent", maximumFractionDigits: 0, roundingMode: "ceil" }));
const LONG = /** @type {const} */ ({ year: "numeric", month: "long", day: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" });
const dates = new Intl.DateTimeFormat(language, LONG);
const shortDates = new Intl.DateTimeFormat(language, { ...LONG, month: "short" });

const sizes = new Intl.NumberFormat(language, { style: "unit", unit: "byte", unitDisplay: "long" });

/** Rounded up. @param {string | number} number a decimal, of which every digit counts */
export const up = (number) => ceiling.format(/** @type {any} */ (String(number)));

/** Rounded down. @param {string | number} number */
export const down = (number) => floor.format(/** @type {any} */ (String(number)));

/** As it is. @param {string | number} number */
export const plain = (number) => decimals.format(/** @type {any} */ (String(number)));

/** @param {number} number */
export const share = (number) => shares.format(number);

/** In whole percent, rounded up. @param {number} number */
export const shareUp = (number) => sharesUp.format(number);

/** @param {number} count */
export const bytes = (count) => sizes.format(count);

/** With the time zone. @param {string | Date} moment */
export const date = (moment) => dates.format(new Date(moment));

/** A date for a table, with the time zone. @param {string | Date} moment */
export const shortDate = (moment) => shortDates.format(new Date(moment));
