// "My budget": the surveys answered on this device, their charges, and the budgets.

import { epsilonOf } from "../../js/src/budget.js";
import { deviceBars, limitBar } from "./budgets.js";
import { el, section, show } from "./elements.js";
import { price } from "./guarantee.js";
import { receiptsShown } from "./receipts.js";
import { Problem, meAt } from "./service.js";
import { date, language, said, say, shortDate } from "./texts.js";

/** @typedef {import("./main.js").Device} Device */

export class Mine {
  /** @param {Device} device */
  constructor(device) {
    this.device = device;
  }

  async start() {
    const { budget, outbox, links } = this.device;
    const [balance, entries, held] = [await budget.balance(), await outbox.entries(), links.all()];
    document.title = say("page.mine");
    const services = el("div", { id: "services" }, el("p", { class: "hint" }, held.length ? say("mine.asking") : say("mine.nolinks")));
    show([
      el("p", { class: "eyebrow" }, say("mine.eyebrow")),
      el("h1", {}, say("page.mine")),
      el("p", { class: "lead" }, say("mine.lead")),
      section(say("mine.device"), { id: "device" },
        el("p", {}, budget.fresh ? say("mine.fresh") : say("mine.since", { date: date(balance.since) })),
        el("div", { class: "budgets" }, deviceBars(balance)),
        el("p", { class: "hint" }, say("mine.device_hint"))),
      section(say("mine.sent"), { id: "sent" }, entries.length ? answered(entries) : el("p", {}, say("mine.none"))),
      receiptsShown(entries, this.device, () => this.start()),
      section(say("mine.service"), { id: "service" }, services),
    ]);
    const shown = await Promise.all(held.map((link) => this.ofService(link)));
    if (shown.length) services.replaceChildren(...shown);
  }

  changed() {
    return this.start();
  }

  /**
   * What the service has counted for the person of an invitation.
   * @param {import("./links.js").Link} link
   */
  async ofService(link) {
    const forget = el("button", { type: "button", class: "quiet", onclick: () => this.forget(link.collection) }, say("mine.forget"));
    const headed = (/** @type {string} */ title) =>
      el("h3", {}, el("a", { href: `/s/${encodeURIComponent(link.collection)}${location.search}` }, title));
    try {
      const me = await meAt(link.token);
      const title = link.title || titleOf(me);
      return el("div", { class: "service" }, headed(title),
        el("div", { class: "budgets" }, me.limits.map((/** @type {any} */ limit) => limitBar(limit))),
        me.charges.length ? charged(me.charges, title) : el("p", {}, say("mine.uncharged")),
        forget);
    } catch (error) {
      const code = error instanceof Problem && said(`problem.${error.code}.title`) ? error.code : "unexpected";
      return el("div", { class: "service" }, headed(link.title || link.collection), el("p", {}, say(`problem.${code}.title`)), forget);
    }
  }

  /** @param {string} collection */
  async forget(collection) {
    this.device.links.forget(collection);
    await this.start();
    document.getElementById("service")?.scrollIntoView();
  }
}

/** @param {import("../../js/src/outbox.js").Entry[]} entries */
function answered(entries) {
  const rows = [...entries].reverse().map((entry) =>
    el("tr", {},
      el("th", { scope: "row" }, el("a", { href: `/s/${encodeURIComponent(entry.collection)}${location.search}` }, entry.about.title || entry.collection)),
      el("td", {}, el("time", { datetime: entry.at }, shortDate(entry.at))),
      el("td", { class: "number" }, entry.units === null ? say("cost.notcounted") : price({ epsilon: epsilonOf(entry.units), delta: 0 })),
      el("td", {}, say(`state.${entry.state}.short`))));
  return table("mine.sent", ["mine.survey", "mine.when", "mine.charged", "mine.state"], rows);
}

/** The title of a survey in the language of the page. @param {any} me what the service says of an invitation */
const titleOf = (me) => me.titles?.[language] || me.title || me.collection;

/**
 * @param {any[]} charges all of one survey
 * @param {string} title of the survey
 */
function charged(charges, title) {
  const rows = charges.map(({ at, epsilon, delta, kind }) =>
    el("tr", {},
      el("td", {}, el("time", { datetime: at }, shortDate(at))),
      el("td", {}, title),
      el("td", { class: "number" }, price({ epsilon, delta: delta ?? 0 })),
      el("td", {}, said(`kind.${kind}`) ? say(`kind.${kind}`) : kind)));
  return table("mine.charges", ["mine.when", "mine.what", "mine.charged", "mine.state"], rows);
}

/**
 * A table, whose rows are lists on a phone. The roles keep it a table there, too.
 * @param {string} title
 * @param {string[]} columns
 * @param {any[]} rows
 */
function table(title, columns, rows) {
  for (const row of rows) {
    row.setAttribute("role", "row");
    [...row.cells].forEach((cell, at) => {
      cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
      cell.dataset.label = say(columns[at]);
    });
  }
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": say(title) },
    el("table", { class: "stacked", role: "table" },
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, columns.map((name) => el("th", { scope: "col", role: "columnheader" }, say(name))))),
      el("tbody", { role: "rowgroup" }, rows)));
}
