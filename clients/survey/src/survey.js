// The survey page: one question, what it costs, and one button.

import { Client } from "../../js/src/index.js";
import { OverBudget, epsilonOf, unitsOf } from "../../js/src/budget.js";
import { toHex } from "../../js/src/bytes.js";
import { Unconfirmed, confirmOnce } from "../../js/src/loss.js";
import { deviceBars, limitBar, refusedBy } from "./budgets.js";
import { announce, el, facts, mark, section, show } from "./elements.js";
import { meaning, price, priceHere, promises } from "./guarantee.js";
import { drawnSecret, partShown, receiptOf } from "./receipts.js";
import { taken } from "./links.js";
import { bytesShown, likelihoodsShown } from "./report.js";
import { Problem, definitionOf, meAt } from "./service.js";
import { date, language, plain, said, say } from "./texts.js";

/** @typedef {import("./main.js").Device} Device */
/** @typedef {import("./links.js").Link} Link */
/** @typedef {import("../../js/src/outbox.js").Entry} Entry */

/** The most answers shown as choices; more are shown as a list. */
const FEW = 12;

export class Survey {
  /**
   * @param {Device} device
   * @param {string} collection
   * @param {Link | undefined} link that was in the address bar
   */
  constructor(device, collection, link) {
    this.device = device;
    this.collection = collection;
    this.link = link;
    /** @type {string | undefined} what is shown now */
    this.shown = undefined;
    addEventListener("hashchange", () => this.invited());
  }

  /** Handles another link that was opened in this page. */
  async invited() {
    const link = taken(this.collection);
    if (!link) return; // a place on the page
    this.link = link;
    await this.start();
  }

  async start() {
    const { links } = this.device;
    this.link = this.link ? links.keep(this.link) : links.find(this.collection);
    try {
      this.client = await this.agreed();
      this.shown = undefined;
      const entry = this.link?.key && (await this.device.outbox.entry(this.link.key));
      if (entry) this.changed(entry);
      else await this.ask();
    } catch (error) {
      this.failed(error);
    }
  }

  /** The client of the agreed definition. Another definition is refused. */
  async agreed() {
    const definition = await definitionOf(this.collection);
    const { agreed = "", seen = definition.digest } = this.link ?? {};
    let client;
    try {
      client = new Client(definition, { digest: seen });
    } catch (error) {
      throw new Problem("changed", { error });
    }
    if (definition.name !== this.collection || !definition.digest.startsWith(agreed)) throw new Problem("changed");
    if (this.link) this.link = this.device.links.keep({ ...this.link, seen: definition.digest, title: definition.title });
    return client;
  }

  get definition() {
    return /** @type {Client} */ (this.client).definition;
  }

  /** The texts of the collection, in the language of the page where it has them. */
  get words() {
    const { title, question, purpose, answers, languages = {} } = this.definition;
    const found = Object.keys(languages).find((tag) => tag.toLowerCase() === language) ?? Object.keys(languages).find((tag) => tag.split("-")[0].toLowerCase() === language);
    const translated = found ? languages[found] : {};
    return {
      title: translated.title || title,
      question: translated.question || question,
      purpose: translated.purpose || purpose,
      answers: /** @type {string[] | undefined} */ ((translated.answers ?? answers) || undefined),
    };
  }

  // -- before ------------------------------------------------------------------------------------------------------

  /** Refuses a program that may give away more than its definition states. */
  confirm() {
    if (!promises(this.definition.guarantee)) return; // the page says that there is no guarantee, and sends nothing
    try {
      confirmOnce(this.definition);
    } catch (error) {
      throw error instanceof Unconfirmed ? new Problem("unconfirmed", { error }) : error;
    }
  }

  async ask() {
    this.confirm();
    const { title, purpose } = this.words;
    const head = [
      el("p", { class: "eyebrow" }, say("ask.eyebrow")),
      el("h1", {}, title),
      purpose && el("p", { class: "lead" }, purpose),
    ];
    if (!this.link) {
      this.view([...head, this.notice("nolink"), this.asked(), this.cost(), this.how()]);
      return;
    }
    const me = await meAt(this.link.token);
    if (me.collection !== this.collection) throw new Problem("forbidden");
    if (me.digest !== this.definition.digest) throw new Problem("changed");
    this.link = this.device.links.keep({ ...this.link, key: me.key });
    const entry = await this.device.outbox.entry(me.key); // it was answered by another link to the same round
    if (entry) this.changed(entry);
    else this.view([...head, await this.offered(me), this.how()]);
  }

  /** The question with its button; or, without enough budget, the reason. @param {any} me */
  async offered(me) {
    const { guarantee } = this.definition;
    const here = priceHere(guarantee);
    const balance = await this.device.budget.balance();
    if (!promises(guarantee)) return [this.notice("nopromise"), this.asked(), this.cost()];
    // Of a memoised answer only the first report costs, and which one that is depends on the answer.
    const fresh = !this.client?.memoises;
    const binding = me.limits.filter((/** @type {any} */ limit) => me.quote.binding.includes(limit.period));
    if (me.erased || (fresh && me.quote.binding.length)) {
      const limits = el("ul", {}, binding.map((/** @type {any} */ each) => el("li", {}, refusedBy(each))));
      return [this.notice("noservice", limits), this.asked(), this.cost(me, balance)];
    }
    if (fresh && here && ["lifetime", "day"].some((period) => lacks(/** @type {any} */ (balance)[period], here))) {
      return [this.notice("nodevice"), this.asked(), this.cost(me, balance)];
    }
    return this.form(me, balance, here);
  }

  /**
   * @param {any} me
   * @param {any} balance
   * @param {string | undefined} here
   */
  form(me, balance, here) {
    const send = el("button", { type: "submit", class: "primary" }, say("ask.send"));
    const form = el("form", { novalidate: true, autocomplete: "off", onsubmit: (/** @type {Event} */ event) => this.submitted(event, form, send) },
      this.question(),
      this.cost(me, balance, here),
      el("div", { class: "actions" },
        el("p", { class: "error", id: "error" }),
        el("p", { class: "before" }, say("ask.before")),
        send,
        el("button", { type: "button", class: "quiet", onclick: () => this.declined() }, say("ask.decline"))));
    return form;
  }

  /** The question, if it cannot be answered. */
  asked() {
    const { question, answers } = this.words;
    const listed = answers && answers.length <= FEW ? el("ul", {}, answers.map((answer) => el("li", {}, answer))) : null;
    return question || listed ? [el("p", { class: "asked" }, question), listed] : null;
  }

  /** The question, with the controls for its kind of answer. */
  question() {
    const { input, answers: names } = this.definition;
    const { question, answers, title } = this.words;
    const legend = question || title;
    const hidden = question ? null : "hidden"; // the title is the heading above
    if (names && answers && names.length <= FEW) {
      const choices = names.map((/** @type {string} */ name, /** @type {number} */ i) =>
        el("label", { class: "choice" }, el("input", { type: "radio", name: "answer", value: name, required: true, "aria-describedby": "error" }), el("span", {}, answers[i])));
      return el("fieldset", { class: "question" }, el("legend", { class: hidden }, legend), choices);
    }
    const given = { id: "answer", name: "answer", required: true, "aria-describedby": "error" };
    if (names && answers) {
      const options = names.map((/** @type {string} */ name, /** @type {number} */ i) => el("option", { value: name }, answers[i]));
      return el("div", { class: "question" }, el("label", { for: "answer", class: hidden }, legend), el("select", given, el("option", { value: "" }, say("ask.choose")), options));
    }
    if (input.text || input.kind === "word") return el("div", { class: "question" }, el("label", { for: "answer", class: hidden }, legend), el("input", { ...given, type: "text", maxlength: input.length ?? 1000 }))
    const [least, most, step] = input.kind === "number" ? [input.lower, input.upper, "any"] : [0, Number(input.count) - 1, 1];
    return el("div", { class: "question" },
      el("label", { for: "answer", class: hidden }, legend),
      el("p", { class: "hint", id: "range" }, say("ask.range", { least: plain(least), most: plain(most) })),
      el("input", { ...given, type: "number", min: least, max: most, step, inputmode: "decimal", "aria-describedby": "range error" }));
  }

  /**
   * The cost of a report, and its meaning.
   * @param {any} [me]
   * @param {any} [balance]
   * @param {string} [here]
   */
  cost(me, balance, here) {
    const { guarantee } = this.definition;
    const asked = here !== undefined;
    const cost = asked && !this.client?.memoises ? me?.quote.cost.epsilon : null;
    const bars = [...(me?.limits ?? []).map((/** @type {any} */ limit) => limitBar(limit, cost)), ...(balance ? deviceBars(balance, here) : [])];
    return section(say("cost.title"), { id: "cost" },
      el("p", { class: "price" }, price(guarantee)),
      el("div", { class: "meaning" }, meaning(guarantee).map((sentence) => el("p", {}, sentence))),
      promises(guarantee) ? el("p", { class: "hint" }, say("cost.epsilon")) : null,
      bars.length ? el("div", { class: "budgets" }, el("h3", {}, asked ? say("cost.budget") : say("cost.balance")), bars) : null,
      me && cost === null && asked ? el("p", { class: "hint" }, say("cost.repeated")) : null,
      me && !priceHere(guarantee) && promises(guarantee) ? el("p", { class: "hint" }, say("cost.uncounted")) : null,
      balance && this.device.budget.fresh ? el("p", { class: "hint" }, say("cost.fresh")) : null);
  }

  how() {
    const { contact, digest, mechanism, guarantee } = this.definition;
    return [
      contact && el("p", { class: "contact" }, say("ask.contact"), " ", el("strong", {}, contact)),
      el("details", { class: "how" },
        el("summary", {}, say("how.title")),
        el("ol", {}, ["draw", "keep", "send", "seen"].map((step) => el("li", {}, say(`how.${step}`)))),
        facts([
          [say("how.mechanism"), mechanism],
          [say("how.epsilon"), String(guarantee.epsilon)],
          [say("how.delta"), String(guarantee.delta)],
          [say("how.digest"), el("code", { class: "digest" }, digest)],
        ]),
        el("p", { class: "hint" }, say("how.compare"))),
    ];
  }

  /** @param {Event} event @param {any} form @param {any} button */
  async submitted(event, form, button) {
    event.preventDefault();
    if (this.busy) return;
    const error = form.querySelector("#error");
    const answer = this.answerIn(form);
    if (answer === undefined) {
      error.textContent = say("ask.missing");
      form.querySelector("[name=answer]").focus();
      return;
    }
    this.busy = true;
    error.textContent = "";
    button.setAttribute("aria-disabled", "true");
    try {
      await this.draw(answer);
    } catch (problem) {
      if (problem instanceof RangeError) error.textContent = say("ask.missing");
      else if (problem instanceof OverBudget) this.view([el("h1", {}, this.words.title), this.notice("nodevice")], true);
      else this.failed(problem);
    } finally {
      this.busy = false;
      button.removeAttribute("aria-disabled");
    }
  }

  /** @param {any} form @returns {string | number | undefined} */
  answerIn(form) {
    const { input, answers } = this.definition;
    const given = form.elements.namedItem("answer").value;
    if (given === "") return undefined;
    return answers || input.text || input.kind === "word" ? given : Number(given);
  }

  /** Charges, draws, stores and sends a report. This cannot be undone. @param {string | number} answer */
  async draw(answer) {
    const { key, token } = /** @type {Required<Link>} */ (this.link);
    const { guarantee } = this.definition;
    const { title, question } = this.words;
    const about = { token, title, question, epsilon: guarantee.epsilon, delta: guarantee.delta, secret: drawnSecret() };
    const entry = await this.device.outbox.draw(key, /** @type {Client} */ (this.client), answer, { about, uncounted: true });
    this.changed(entry, undefined, true);
    await this.device.delivery.now();
  }

  async declined() {
    this.device.links.forget(this.collection);
    this.link = undefined;
    this.view([el("h1", {}, say("declined.title")), el("p", { class: "lead" }, say("declined.text"))], true);
    announce(say("declined.title"));
  }

  // -- after -------------------------------------------------------------------------------------------------------

  /**
   * Shows the state of a report, if it is the one of this page.
   * @param {Entry} entry
   * @param {string} [why] the reason it still waits
   * @param {boolean} [focus]
   */
  changed(entry, why, focus = false) {
    if (!this.client || entry.key !== this.link?.key) return;
    const { state, report } = entry;
    const title = say(`state.${state}.title`);
    const text = state === "waiting" && why && said(`waiting.${why}`) ? say(`waiting.${why}`) : say(`state.${state}.text`);
    const shown = `${entry.key} ${state} ${why} ${entry.about.deleted}`;
    if (this.shown === shown) return;
    const asked = focus || this.shown !== undefined;
    this.shown = shown;
    announce(`${title} ${text}`);
    this.view([
      mark(state === "arrived" || state === "waiting" ? state : "stopped"),
      el("p", { class: "eyebrow" }, this.words.title),
      el("h1", { "data-state": state }, title),
      el("p", { class: "lead" }, text),
      state === "waiting" && el("p", {}, el("button", { type: "button", class: "secondary", onclick: () => this.device.delivery.now() }, say("waiting.now"))),
      state === "refused" && this.refusal(entry),
      state === "arrived" && this.receipt(entry),
      // Only after it arrived: a person who sees a waiting report could stop it, and so reveal something.
      state === "arrived" && report && bytesShown(this.definition, report, this.words.answers, entry.label),
      state === "arrived" && report && likelihoodsShown(this.client, report, this.words.answers),
      state === "arrived" && this.export(entry),
      state === "arrived" && partShown(entry, this.link.token, this.device, (kept) => this.changed(kept, undefined, true)),
      el("p", { class: "contact" }, el("a", { href: `/me${location.search}` }, say("nav.mine"))),
    ], asked && focus);
  }

  /** @param {any} entry */
  refusal(entry) {
    return section(say("refused.title"), { id: "refused" }, el("ul", {}, entry.limits.map((/** @type {any} */ limit) => el("li", {}, refusedBy(limit)))), el("p", {}, say("refused.dropped")));
  }

  /** @param {any} entry */
  receipt(entry) {
    const { receipt } = entry.receipt;
    return section(say("receipt.title"), { id: "receipt" },
      facts([
        [say("receipt.number"), el("code", { id: "number" }, receipt)],
        [say("receipt.drawn"), el("time", { datetime: entry.at }, date(entry.at))],
        [say("receipt.charged"), price({ epsilon: entry.receipt.cost.epsilon, delta: entry.receipt.cost.delta ?? 0 })],
        [say("receipt.device"), entry.units === null ? say("cost.notcounted") : price({ epsilon: epsilonOf(entry.units), delta: 0 })],
      ]),
      el("div", { class: "budgets" }, entry.receipt.limits.map((/** @type {any} */ limit) => limitBar(limit))));
  }

  /** Saves what this page knows about the report to a file. The page no longer has the answer. @param {any} entry */
  export(entry) {
    if (!entry.report) return null; // the receipt was deleted
    const { definition } = this;
    const saved = () => {
      const file = {
        ...{ format: "ldp-budget receipt", version: 1, collection: definition.name, title: this.words.title, question: this.words.question },
        ...{ definition: definition.digest, guarantee: definition.guarantee, drawn_at: entry.at, key: entry.key },
        ...{ report: toHex(entry.report), label: entry.label, likelihoods: this.client?.explain(entry.report), receipt: entry.receipt },
        ...receiptOf(entry),
      };
      const url = URL.createObjectURL(new Blob([`${JSON.stringify(file, null, 2)}\n`], { type: "application/json" }));
      el("a", { href: url, download: `${definition.name}.receipt.json` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    };
    return el("p", {}, el("button", { type: "button", class: "secondary", onclick: saved }, say("receipt.export")));
  }

  // -- what is wrong -----------------------------------------------------------------------------------------------

  /** @param {string} kind @param {any[]} more */
  notice(kind, ...more) {
    return el("div", { class: "notice", "data-notice": kind }, el("h2", {}, say(`notice.${kind}.title`)), el("p", {}, say(`notice.${kind}.text`)), more);
  }

  /** @param {any} error */
  failed(error) {
    const code = error instanceof Problem ? error.code : "unexpected";
    const kind = said(`problem.${code}.title`) ? code : "unexpected";
    if (kind === "unexpected") console.error(error);
    announce(say(`problem.${kind}.title`));
    this.view([
      mark("stopped"),
      el("h1", { "data-problem": code }, say(`problem.${kind}.title`)),
      el("p", { class: "lead" }, say(`problem.${kind}.text`)),
      ["network", "unexpected"].includes(kind) && el("p", {}, el("button", { type: "button", class: "secondary", onclick: () => this.start() }, say("problem.again"))),
    ], false);
  }

  /** @param {any[]} children @param {boolean} [focus] */
  view(children, focus = false) {
    document.title = this.client ? `${this.words.title} · ${say("page.survey")}` : say("page.survey");
    show(children, { focus });
  }
}

/**
 * True if a budget of the device has not enough left.
 * @param {{ left: string } | undefined} line
 * @param {string} cost
 */
const lacks = (line, cost) => line !== undefined && unitsOf(line.left, false) < unitsOf(cost, true);
