// Budgets: the amount used now, and the amount used after a report.

import { epsilonOf, unitsOf } from "../../js/src/budget.js";
import { el } from "./elements.js";
import { date, down, said, say, share, up } from "./texts.js";

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
 * A limit of the service, from its responses. `cost` is ε of a report that will be charged.
 * @param {any} limit
 * @param {number | null} [cost]
 */
export function limitBar(limit, cost) {
  const name = say("budget.service", { period: periodNamed(limit.period) });
  const resets = limit.resets_at ? ` ${say("budget.resets", { date: date(limit.resets_at) })}` : "";
  const [measure] = Object.keys(limit.capacity);
  const capacity = limit.capacity[measure];
  const spent = limit.spent[measure];
  if (measure !== "epsilon") {
    // Amounts of other rules are hard to read, so the bar shows the used share of the limit.
    const text = say("budget.share", { spent: share(capacity ? Math.min(1, spent / capacity) : 1) }) + resets;
    return budgetBar({ name, limit: capacity, spent, text });
  }
  const text = cost ? moving(capacity, spent, cost) : say("budget.now", { spent: up(spent), limit: down(capacity) });
  return budgetBar({ name, limit: capacity, spent, asked: cost ?? 0, text: text + resets });
}

/**
 * The device's own budget. `cost` is ε of a report that will be charged to it.
 * @param {{ lifetime?: any, day?: any }} balance
 * @param {string} [cost]
 */
export function deviceBars(balance, cost) {
  return /** @type {const} */ (["lifetime", "day"]).filter((period) => balance[period]).map((period) => {
    const { limit, spent } = balance[period];
    const name = say("budget.device", { period: periodNamed(period) });
    const text = cost ? moving(limit, spent, cost) : say("budget.now", { spent: up(spent), limit: down(limit) });
    return budgetBar({ name, limit: Number(limit), spent: Number(spent), asked: Number(cost ?? 0), text });
  });
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
