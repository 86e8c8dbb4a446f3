// The questions of a page: one of a collection, or those of a survey that are asked of this person. Each has its words,
// its control and its error.

import { ticksOf } from "../../js/src/ticks.js";
import { el } from "./elements.js";
import { language, plain, say } from "./texts.js";

/** @typedef {import("../../js/src/index.js").Client} Client */
/** @typedef {{ title: string, question: string, purpose: string, answers: string[] | undefined }} Words */

/** The most answers shown as choices; more are shown as a list. */
const FEW = 12;
/** Whether an answer is that of nobody who answered: the last one of an optional question. */
const isMissing = (/** @type {string} */ name, /** @type {string[]} */ names) => name === "no answer" && name === names[names.length - 1];
const MOST_TEXT = 1000;
/** The most characters of answers in a row. */
const MOST_SHORT = 3;
/** The most sets of ticks that are named. */
const MOST_SETS = 64;

/**
 * The texts of a definition, in the language of the page where it has them.
 * @param {any} definition
 * @returns {Words}
 */
export function wordsOf({ name, title, question = "", purpose, answers, kind, languages = {} }) {
  const tags = Object.keys(languages);
  const found = tags.find((tag) => tag.toLowerCase() === language) ?? tags.find((tag) => tag.split("-")[0].toLowerCase() === language);
  const translated = found ? languages[found] : {};
  const own = (kind === "yes-no" || kind === "grid") && `${answers}` === "yes,no" ? [say("answer.yes"), say("answer.no")] : answers;
  return {
    title: translated.title || title || name,
    question: translated.question || question,
    purpose: translated.purpose || purpose,
    answers: translated.answers || own || undefined,
  };
}

/**
 * The text of an item of a grid, in the language of the page where it has one.
 * @param {{ text: string, languages: Record<string, string> }} item
 */
export function itemText({ text, languages }) {
  const tags = Object.keys(languages);
  const found = tags.find((tag) => tag.toLowerCase() === language) ?? tags.find((tag) => tag.split("-")[0].toLowerCase() === language);
  return (found && languages[found]) || text;
}

export class Question {
  /**
   * @param {Client} client
   * @param {{ name: string, heading: string, place?: { number: number, count: number } }} shown `name` of its control;
   *   `heading` of the page; `place` among several
   */
  constructor(client, { name, heading, place }) {
    this.client = client;
    this.definition = client.definition;
    this.words = wordsOf(this.definition);
    this.name = name;
    this.place = place;
    const { question, title } = this.words;
    // Questions that are randomized together have no text of their own.
    this.text = question || (this.items && title === this.definition.name ? "" : title);
    // The heading of the page says the same.
    this.hidden = place || (question && question !== heading) ? null : "hidden";
  }

  /** @param {string} part */
  id(part) {
    return this.name.replace("answer", part);
  }

  /** The text of the question, with its place among several. */
  get legend() {
    return [this.place && this.place.count > 1 ? el("span", { class: "place" }, say("ask.place", this.place), " ") : null, this.text];
  }

  /** The items of a grid, each with the same answers. @returns {any[] | undefined} */
  get items() {
    return this.definition.items;
  }

  /** The question, if it cannot be answered. */
  listed() {
    if (this.items) return [el("p", { class: "asked" }, this.text), el("ul", {}, this.items.map((item) => el("li", {}, itemText(item))))];
    const { answers } = this.words;
    const list = answers && answers.length <= FEW ? el("ul", {}, answers.map((answer) => el("li", {}, answer))) : null;
    const text = this.hidden ? null : el("p", { class: "asked" }, this.text);
    return text || list ? [text, list] : null;
  }

  /** The most ticks, where an answer is a set of options. @returns {number | undefined} */
  get ticks() {
    return this.definition.at_most;
  }

  /** What each answer says, by its number; undefined where answers have no names or are too many. @returns {string[] | undefined} */
  get each() {
    const { answers } = this.words;
    const { at_most: most, input } = this.definition;
    if (this.items && answers) {
      const { items } = this;
      if (BigInt(input.count) > BigInt(MOST_SETS)) return undefined;
      const chosen = (/** @type {number} */ number, /** @type {number} */ row) => answers[Math.floor(number / answers.length ** row) % answers.length];
      return Array.from({ length: Number(input.count) }, (_, number) => items.map((item, row) => `${itemText(item)}: ${chosen(number, row)}`).join(", "));
    }
    if (!answers || most === undefined) return answers;
    if (BigInt(input.count) > BigInt(MOST_SETS)) return undefined;
    return Array.from({ length: Number(input.count) }, (_, number) =>
      ticksOf(BigInt(number), this.definition).map((place) => answers[place]).join(", ") || say("ask.none"));
  }

  /** A box for each option, and one for none of them, so that an empty form is no answer. */
  boxes() {
    const { answers: names } = this.definition;
    const answers = /** @type {string[]} */ (this.words.answers);
    const error = el("p", { class: "error", id: this.id("error") });
    const most = /** @type {number} */ (this.ticks);
    const hint = el("p", { class: "hint", id: this.id("range") }, most < names.length ? say("ask.ticks", { most }) : say("ask.ticks_any"));
    const box = (/** @type {string} */ text, /** @type {any} */ own) =>
      el("label", { class: "choice" }, el("input", { type: "checkbox", name: this.name, "aria-describedby": `${hint.id} ${error.id}`, ...own }), el("span", {}, text));
    const none = box(say("ask.none"), { value: "", "data-alone": true });
    const onchange = (/** @type {any} */ { target }) => {
      this.say("");
      // None of them, and no answer, exclude all others.
      const excludes = (/** @type {any} */ each) => each !== target && ("alone" in each.dataset || "alone" in target.dataset);
      if (target.checked) for (const each of this.all.filter(excludes)) each.checked = false;
    };
    const options = names.map((/** @type {string} */ name, /** @type {number} */ i) =>
      box(answers[i], { value: name, ...(isMissing(name, names) ? { "data-alone": true } : {}) }));
    const last = options.length - (isMissing(names[names.length - 1], names) ? 1 : 0);
    return el("fieldset", { class: "question", onchange }, el("legend", { class: this.hidden }, this.legend), hint, error, options.slice(0, last), none, options.slice(last));
  }

  /** A row of answers for each item of a grid. */
  grid() {
    const { answers: names } = this.definition;
    const answers = /** @type {string[]} */ (this.words.answers);
    const error = el("p", { class: "error", id: this.id("error") });
    const short = answers.every((answer) => answer.length <= MOST_SHORT);
    const onchange = () => this.say("");
    const rows = /** @type {any[]} */ (this.items).map((item, row) => {
      const choices = names.map((/** @type {string} */ name, /** @type {number} */ i) =>
        el("label", { class: "choice" }, el("input", { type: "radio", name: `${this.name}-${row}`, value: name, required: true, "aria-describedby": error.id }), el("span", {}, answers[i])));
      return el("fieldset", { class: "item" }, el("legend", {}, itemText(item)), el("div", { class: short ? "short" : "long" }, choices));
    });
    return el("fieldset", { class: "question grid", onchange }, el("legend", {}, this.legend), error, rows);
  }

  /** The boxes of the form. @returns {any[]} */
  get all() {
    return [...this.element.querySelectorAll("input[type=checkbox]")];
  }

  /** The question with its control and its error. */
  control() {
    if (this.ticks !== undefined) return (this.element = this.boxes());
    if (this.items) return (this.element = this.grid());
    const { answers: names } = this.definition;
    const { answers } = this.words;
    const [legend, error] = [{ class: this.hidden }, el("p", { class: "error", id: this.id("error") })];
    const onchange = () => this.say("");
    if (names && answers && names.length <= FEW) {
      const choices = names.map((/** @type {string} */ name, /** @type {number} */ i) =>
        el("label", { class: "choice" }, el("input", { type: "radio", name: this.name, value: name, required: true, "aria-describedby": error.id }), el("span", {}, answers[i])));
      this.element = el("fieldset", { class: "question", onchange }, el("legend", legend, this.legend), error, choices);
    } else {
      this.element = el("div", { class: "question", onchange }, el("label", { for: this.name, ...legend }, this.legend), error, this.field());
    }
    return this.element;
  }

  /** The control of a question without choices. */
  field() {
    const { input, answers: names } = this.definition;
    const { answers } = this.words;
    const given = { id: this.name, name: this.name, required: true, "aria-describedby": this.id("error") };
    if (names && answers) {
      const options = names.map((/** @type {string} */ name, /** @type {number} */ i) => el("option", { value: name }, answers[i]));
      return el("select", given, el("option", { value: "" }, say("ask.choose")), options);
    }
    if (input.text || input.kind === "word") return el("input", { ...given, type: "text", maxlength: input.length ?? MOST_TEXT });
    const [least, most] = this.ends;
    const step = input.kind === "number" ? "any" : 1;
    const hint = el("p", { class: "hint", id: this.id("range") }, say("ask.range", this.range));
    return [hint, el("input", { ...given, type: "number", min: least, max: most, step, inputmode: "decimal", "aria-describedby": `${hint.id} ${this.id("error")}` })];
  }

  /** The least and the most number that a question allows. */
  get ends() {
    const { input } = this.definition;
    return input.kind === "number" ? [input.lower, input.upper] : [0, Number(input.count) - 1];
  }

  /** The same for sentences, with the unit. */
  get range() {
    const [least, most] = this.ends.map(plain), { unit } = this.definition;
    return { least, most: unit ? `${most} ${unit}` : most };
  }

  /**
   * Why the form has no answer to the question, and what it allows.
   * @param {any} form
   */
  missing(form) {
    const { input, answers } = this.definition;
    if (this.ticks !== undefined) {
      const ticked = this.all.filter((each) => each.checked).length;
      return ticked > this.ticks ? say("ask.too_many", { ticked, most: this.ticks }) : say("ask.missing_ticks");
    }
    if (this.items) return say("ask.missing_items", { count: this.items.filter((_, row) => !form.elements.namedItem(`${this.name}-${row}`).value).length });
    if (answers) return say("ask.missing");
    if (input.text || input.kind === "word") return say("ask.missing_text", { most: input.length ?? MOST_TEXT });
    const given = form.elements.namedItem(this.name).value, [least, most] = this.ends.map(Number);
    if (given !== "" && (Number(given) < least || Number(given) > most)) return say("ask.outside", { value: plain(given), ...this.range });
    return input.kind === "number" ? say("ask.missing_number", this.range) : say("ask.missing_whole", this.range);
  }

  /**
   * The answer in the form, or undefined without one that the question allows.
   * @param {any} form
   * @returns {string | number | string[] | Record<string, string> | undefined}
   */
  answer(form) {
    if (this.ticks !== undefined) {
      const ticked = this.all.filter((each) => each.checked);
      const names = ticked.map((each) => each.value).filter(Boolean);
      return ticked.length && names.length <= this.ticks ? names : undefined;
    }
    if (this.items) {
      const chosen = this.items.map(({ name }, row) => [name, form.elements.namedItem(`${this.name}-${row}`).value]);
      return chosen.every(([, value]) => value) ? Object.fromEntries(chosen) : undefined;
    }
    const { input, answers } = this.definition;
    const given = form.elements.namedItem(this.name).value;
    if (given === "") return undefined;
    const answer = answers || input.text || input.kind === "word" ? given : Number(given);
    try {
      this.client.check(answer);
      return answer;
    } catch (error) {
      if (error instanceof RangeError) return undefined;
      throw error;
    }
  }

  /** Shows an error at the question; an empty text removes it. @param {string} text */
  say(text) {
    this.element.querySelector(".error").textContent = text;
    for (const control of this.element.querySelectorAll("input, select")) {
      if (text) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    }
  }

  /** Focuses the control; of a grid the first item without an answer. */
  focus() {
    const open = [...this.element.querySelectorAll(".item")].find((item) => !item.querySelector(":checked"));
    (open ?? this.element).querySelector("input, select").focus();
  }
}
