// The survey page: the questions, what a report can tell, and one button.

import { Client } from "../../js/src/index.js";
import { OverBudget, epsilonOf, unitsOf } from "../../js/src/budget.js";
import { fromHex, toHex } from "../../js/src/bytes.js";
import { Unconfirmed, confirmOnce } from "../../js/src/loss.js";
import { FORMAT, Questionnaire } from "../../js/src/questionnaire.js";
import { deviceBars, figures, limitBar, refusedBy } from "./budgets.js";
import { announce, contactShown, el, facts, mark, section, show } from "./elements.js";
import { meaning, price, priceHere, priceThere, promises } from "./guarantee.js";
import { drawnSecret, partShown, receiptOf } from "./receipts.js";
import { taken } from "./links.js";
import { Question, wordsOf } from "./questions.js";
import { bytesShown, likeliest, likelihoodsShown } from "./report.js";
import { save } from "./saved_files.js";
import { Problem, definitionOf, meAt } from "./service.js";
import { date, day, said, say } from "./texts.js";

/** @typedef {import("./main.js").Device} Device */
/** @typedef {import("./links.js").Link} Link */
/** @typedef {import("../../js/src/outbox.js").Entry} Entry */

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
    if (this.link?.cut) return this.failed(new Problem("cut"));
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
      client = definition.format === FORMAT ? new Questionnaire(definition, { digest: seen }) : new Client(definition, { digest: seen });
    } catch (error) {
      throw new Problem("changed", { error });
    }
    if (definition.name !== this.collection || !definition.digest.startsWith(agreed)) throw new Problem("changed");
    if (this.link) this.link = this.device.links.keep({ ...this.link, seen: definition.digest, title: definition.title });
    return client;
  }

  get definition() {
    return /** @type {Client | Questionnaire} */ (this.client).definition;
  }

  /** The texts of the collection, in the language of the page. */
  get words() {
    return wordsOf(this.definition);
  }

  /** The client as that of a survey, if it is one. */
  get survey() {
    return this.client instanceof Questionnaire ? this.client : undefined;
  }

  /**
   * The questions with these numbers, or the one of a collection.
   * @param {number[]} [places] all without
   */
  questions(places) {
    const { survey, words: { title: heading } } = this;
    if (!survey) return [new Question(/** @type {Client} */ (this.client), { name: "answer", heading })];
    const shown = places ?? survey.questions.map((_, place) => place);
    return shown.map((place, i) => new Question(survey.questions[place], { name: `answer-${place}`, heading, place: { number: i + 1, count: shown.length } }));
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
    const head = this.head();
    if (!this.link) {
      this.view([...head, this.notice("nolink"), this.listed(), this.cost(), this.how()]);
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

  /** The title of the survey, who asks, and for what. */
  head() {
    const { title, purpose } = this.words;
    const { organisation, contact } = this.definition;
    return [
      el("p", { class: "eyebrow" }, organisation ? say("ask.by", { organisation }) : say("ask.eyebrow")),
      el("h1", {}, title),
      purpose && el("p", { class: "lead" }, purpose),
      contact && el("p", { class: "contact" }, say("ask.contact"), " ", contactShown(contact)),
    ];
  }

  /** The questions with their button; or, without enough budget, the reason. @param {any} me */
  async offered(me) {
    const { guarantee } = this.definition;
    const here = priceHere(guarantee);
    const balance = await this.device.budget.balance();
    if (!promises(guarantee)) return [this.notice("nopromise"), this.listed(me), this.cost()];
    if (me.turn && !me.turn.now) return [this.outOfTurn(me.turn), this.listed(me), this.cost(me, balance)];
    // Of a memoised answer only the first report costs, and which one that is depends on the answer.
    const fresh = !this.client?.memoises;
    const binding = me.limits.filter((/** @type {any} */ limit) => me.quote.binding.includes(limit.period));
    if (me.erased || (fresh && me.quote.binding.length)) {
      const limits = el("ul", {}, binding.map((/** @type {any} */ each) => el("li", {}, refusedBy(each))));
      return [this.notice("noservice", limits), this.listed(me), this.cost(me, balance)];
    }
    if (fresh && here && ["lifetime", "day"].some((period) => lacks(/** @type {any} */ (balance)[period], here))) {
      return [this.notice("nodevice"), this.listed(me), this.cost(me, balance)];
    }
    return this.form(me, balance, here);
  }

  /**
   * @param {any} me
   * @param {any} balance
   * @param {string | undefined} here
   */
  form(me, balance, here) {
    const questions = this.questions(this.selected(me));
    const send = el("button", { type: "submit", class: "primary" }, say("ask.send"));
    const form = el("form", { novalidate: true, autocomplete: "off", onsubmit: (/** @type {Event} */ event) => this.submitted(event, form, send, questions) },
      this.selection(),
      questions.map((question) => question.control()),
      this.cost(me, balance, here),
      el("div", { class: "actions" },
        el("p", { class: "before" }, questions.length > 1 ? say("ask.before_several") : say("ask.before")),
        el("p", { class: "error", id: "problem" })),
      el("div", { class: "submit" },
        el("p", { class: "hint" }, say("ask.private")),
        send,
        el("button", { type: "button", class: "quiet", onclick: () => this.declined() }, say("ask.decline"))));
    return form;
  }

  /** How many questions of the survey one person is asked, and who selects them. */
  selection() {
    const { survey } = this;
    if (!survey || survey.questions.length === survey.definition.ask) return null;
    const { ask } = survey.definition;
    return el("p", { class: "hint", id: "selection" }, say(ask === 1 ? "ask.selection_one" : "ask.selection", { ask, count: survey.questions.length }));
  }

  /** The numbers of the questions that are selected for this person, of a survey. @param {any} [me] */
  selected(me) {
    return me && this.survey?.asked(fromHex(me.seed));
  }

  /** The questions, if they cannot be answered: all of them without an invitation. @param {any} [me] */
  listed(me) {
    return [this.selection(), this.questions(this.selected(me)).map((question) => question.listed())];
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
    const cost = asked && !this.client?.memoises ? priceThere(guarantee, me?.quote) : null;
    const limits = me?.limits ?? [];
    const bars = [...limits.map((/** @type {any} */ limit) => limitBar(limit, cost, true)), ...(balance ? deviceBars(balance, here, true) : [])];
    const rows = balance ? figures(limits, balance, cost, here) : [];
    return section(say("cost.title"), { id: "cost" },
      el("div", { class: "meaning" }, meaning(guarantee, this.survey && this.definition.ask > 1).map((sentence) => el("p", {}, sentence))),
      bars.length ? el("div", { class: "budgets" }, el("h3", {}, asked ? say("cost.budget") : say("cost.balance")), bars) : null,
      me && cost === null && asked ? el("p", { class: "hint" }, say("cost.repeated")) : null,
      promises(guarantee) && Number(guarantee.delta) > 0 ? el("p", { class: "hint" }, say("cost.delta")) : null,
      balance && this.device.budget.fresh ? el("p", { class: "hint" }, say("cost.fresh")) : null,
      el("details", { class: "figures" },
        el("summary", {}, say("cost.figures")),
        el("p", { class: "price" }, price(guarantee)),
        promises(guarantee) ? el("p", { class: "hint" }, say("cost.epsilon")) : null,
        rows.length ? facts(rows) : null));
  }

  how() {
    const { digest, mechanism, guarantee } = this.definition;
    return [
      el("details", { class: "how" },
        el("summary", {}, say("how.title")),
        el("ol", {}, ["draw", "keep", "send", "seen"].map((step) => el("li", {}, say(`how.${step}`)))),
        facts([
          [say("how.mechanism"), mechanism],
          // What is not promised is not confirmed either.
          ...(promises(guarantee) ? [row("how.epsilon", guarantee.epsilon), row("how.delta", guarantee.delta)] : []),
          [say("how.digest"), el("code", { class: "digest" }, digest)],
        ]),
        el("p", { class: "hint" }, say("how.compare"))),
    ];
  }

  /** @param {Event} event @param {any} form @param {any} button @param {Question[]} questions */
  async submitted(event, form, button, questions) {
    event.preventDefault();
    if (this.busy) return;
    const problem = form.querySelector("#problem");
    const answers = questions.map((question) => question.answer(form));
    questions.forEach((question, i) => question.say(answers[i] === undefined ? question.missing(form) : ""));
    const missing = questions[answers.indexOf(undefined)];
    if (missing) {
      missing.focus();
      return;
    }
    this.busy = true;
    problem.textContent = "";
    button.setAttribute("aria-disabled", "true");
    try {
      const named = questions.map(({ definition }, i) => [definition.name, answers[i]]);
      await this.draw(this.survey ? Object.fromEntries(named) : answers[0]);
    } catch (error) {
      if (error instanceof OverBudget) this.view([el("h1", {}, this.words.title), this.notice("nodevice")], true);
      else this.failed(error);
    } finally {
      this.busy = false;
      button.removeAttribute("aria-disabled");
    }
  }

  /** Charges, draws, stores and sends a report. This cannot be undone. @param {any} answer */
  async draw(answer) {
    const { key, token, log } = /** @type {Required<Link>} */ (this.link);
    const { guarantee } = this.definition;
    const { title, question } = this.words;
    const about = { token, log, title, question, epsilon: guarantee.epsilon, delta: guarantee.delta, secret: drawnSecret() };
    const entry = await this.device.outbox.draw(key, /** @type {Client | Questionnaire} */ (this.client), answer, { about });
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
      state === "arrived" && report && bytesShown(report, this.answered(report), entry.label),
      state === "arrived" && report && likelihoodsShown(this.answered(report)),
      state === "arrived" && this.export(entry),
      state === "arrived" && partShown(entry, this.link.token, this.device, (kept) => this.changed(kept, undefined, true)),
      el("p", { class: "contact" }, el("a", { href: `/me${location.search}` }, say("nav.mine"))),
    ], asked && focus);
  }

  /**
   * The questions that a report answers, each with its part of the report.
   * @param {Uint8Array} report
   * @returns {import("./report.js").Answered[]}
   */
  answered(report) {
    if (!this.survey) return [{ question: this.questions()[0], part: report, one: true }];
    const parts = this.survey.parts(report);
    const questions = this.questions(parts.map(({ place }) => place));
    return questions.map((question, i) => ({ question, part: parts[i].part, one: false }));
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
        ...(entry.report ? likeliest(this.answered(entry.report)) : []),
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
        ...{ definition: definition.digest, guarantee: { ...definition.guarantee, words: undefined }, drawn_at: entry.at, key: entry.key },
        ...{ report: toHex(entry.report), label: entry.label, likelihoods: this.client?.explain(entry.report), receipt: entry.receipt },
        ...receiptOf(entry),
      };
      save(`${definition.name}.receipt.json`, `${JSON.stringify(file, null, 2)}\n`);
    };
    return el("p", {}, el("button", { type: "button", class: "secondary", onclick: saved }, say("receipt.export")));
  }

  // -- what is wrong -----------------------------------------------------------------------------------------------

  /** @param {string} kind @param {any[]} more */
  notice(kind, ...more) {
    return el("div", { class: "notice", "data-notice": kind }, el("h2", {}, say(`notice.${kind}.title`)), el("p", {}, say(`notice.${kind}.text`)), more);
  }

  /** @param {{ first: string, last: string }} turn */
  outOfTurn(turn) {
    const days = { first: day(turn.first), last: day(turn.last) };
    return el("div", { class: "notice", "data-notice": "turn" }, el("h2", {}, say("notice.turn.title")), el("p", {}, say("notice.turn.text", days)));
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

/** A row of a list of facts. @type {(key: string, value: any) => [string, any]} */
const row = (key, value) => [say(key), value];

/**
 * True if a budget of the device has not enough left.
 * @param {{ left: string } | undefined} line
 * @param {string} cost
 */
const lacks = (line, cost) => line !== undefined && unitsOf(line.left, false) < unitsOf(cost, true);
