// Budgets: the amount used now, and the amount used after a report.

import { epsilonOf, unitsOf } from "../../js/src/budget.js";
import { el } from "./elements.js";
import { date, down, said, say, share, shareUp, up } from "./texts.js";

/**
 * A budget: a bar, and a line with the same figures.
 * @typedef {object} Bar
 * @property {string} name
 * @property {number} limit
 * @property {number} spent
 * @property {number} [asked] the cost of a report
 * @property {string} text
 */

/** @param {Bar} bar */
export function budgetBar({ name, limit, spent, asked = 0, text }) {
  const part = (/** @type {number} */ amount) => (limit > 0 ? Math.min(1, amount / limit) : 1);
  const used = el("span", { class: "used" });
  const next = el("span", { class: "next" });
  used.style.width = `${100 * part(spent)}%`;
  next.style.width = `${100 * Math.max(0, Math.min(part(asked), 1 - part(spent)))}%`;
  // The line has all figures; the bar shows them.
  const bar = el("div", { class: "bar", "aria-hidden": "true" }, used, next);
  return el("div", { class: "budget" }, el("p", { class: "budget-name" }, name), bar, el("p", { class: "budget-text" }, text));
}

/** @param {string} period */
const periodNamed = (period) => (said(`period.${period}`) ? say(`period.${period}`) : period);

/**
 * The used share of a limit, now and after a report, rounded up.
 * @param {string | number} limit
 * @param {string | number} spent
 * @param {string | number | null} [cost]
 */
function shares(limit, spent, cost) {
  const part = (/** @type {number} */ amount) => shareUp(Number(limit) > 0 ? Math.min(1, amount / Number(limit)) : 1);
  const now = part(Number(spent));
  return cost ? say("budget.share_after", { spent: now, after: part(Number(spent) + Number(cost)) }) : say("budget.share", { spent: now });
}

/** @param {any} limit of the service */
function parts(limit) {
  const name = say("budget.service", { period: periodNamed(limit.period) });
  const resets = limit.resets_at ? ` ${say("budget.resets", { date: date(limit.resets_at) })}` : "";
  const [measure] = Object.keys(limit.capacity);
  return { name, resets, measure, capacity: limit.capacity[measure], spent: limit.spent[measure] };
}

/**
 * ε used now, and after a report.
 * @param {string | number} limit
 * @param {string | number} spent
 * @param {string | number | null} [cost]
 */
const inFigures = (limit, spent, cost) => (cost ? moving(limit, spent, cost) : say("budget.now", { spent: up(spent), limit: down(limit) }));

/**
 * A limit of the service, from its responses. `cost` is ε of a report that will be charged.
 * @param {any} limit
 * @param {number | null} [cost]
 * @param {boolean} [inShares] shares instead of ε
 */
export function limitBar(limit, cost, inShares = false) {
  const { name, resets, measure, capacity, spent } = parts(limit);
  if (measure !== "epsilon") {
    // Amounts of other rules are hard to read, so the bar shows the used share of the limit.
    const text = say("budget.share", { spent: share(capacity ? Math.min(1, spent / capacity) : 1) }) + resets;
    return budgetBar({ name, limit: capacity, spent, text });
  }
  const text = (inShares ? shares : inFigures)(capacity, spent, cost);
  return budgetBar({ name, limit: capacity, spent, asked: cost ?? 0, text: text + resets });
}

/**
 * The device's own budget. `cost` is ε of a report that will be charged to it.
 * @param {{ lifetime?: any, day?: any }} balance
 * @param {string} [cost]
 * @param {boolean} [inShares] shares instead of ε
 */
export function deviceBars(balance, cost, inShares = false) {
  return deviceLines(balance).map(({ name, limit, spent }) => {
    const text = (inShares ? shares : inFigures)(limit, spent, cost);
    return budgetBar({ name, limit: Number(limit), spent: Number(spent), asked: Number(cost ?? 0), text });
  });
}

/** @param {{ lifetime?: any, day?: any }} balance */
const deviceLines = (balance) =>
  /** @type {const} */ (["lifetime", "day"]).filter((period) => balance[period]).map((period) => {
    const { limit, spent } = balance[period];
    return { name: say("budget.device", { period: periodNamed(period) }), limit, spent };
  });

/**
 * The budgets with ε in figures, as rows of a list of facts.
 * @param {any[]} limits of the service
 * @param {{ lifetime?: any, day?: any }} balance of the device
 * @param {number | null} [cost]
 * @param {string} [here]
 * @returns {[string, string][]}
 */
export function figures(limits, balance, cost, here) {
  const counted = limits.map(parts).filter(({ measure }) => measure === "epsilon");
  return [
    ...counted.map(({ name, capacity, spent }) => /** @type {[string, string]} */ ([name, inFigures(capacity, spent, cost)])),
    ...deviceLines(balance).map(({ name, limit, spent }) => /** @type {[string, string]} */ ([name, inFigures(limit, spent, here)])),
  ];
}

/**
 * The amounts used now and after a report, in words.
 * @param {string | number} limit
 * @param {string | number} spent
 * @param {string | number} cost
 */
function moving(limit, spent, cost) {
  const after = epsilonOf(unitsOf(String(spent), true) + unitsOf(String(cost), true));
  return say("budget.after", { spent: up(spent), after: up(after), limit: down(limit) });
}

/**
 * A limit that refused, and the date when it starts again.
 * @param {any} limit
 */
export function refusedBy(limit) {
  const name = periodNamed(limit.period);
  return limit.resets_at ? say("refused.until", { period: name, date: date(limit.resets_at) }) : say("refused.forever", { period: name });
}
