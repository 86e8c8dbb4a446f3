// A report in a form that a respondent can read.

import { fromLittleEndian, toHex } from "../../js/src/bytes.js";
import { el, section } from "./elements.js";
import { bytes, say, share } from "./texts.js";

/**
 * @typedef {object} Answered a question that a report answers
 * @property {import("./questions.js").Question} question
 * @property {Uint8Array} part the bytes of the report that answer it
 * @property {boolean} one true if the report has no other
 */

const MOST_SHOWN = 64;

/**
 * The parts of a report by their names.
 * @param {any} definition
 * @param {Uint8Array} report
 * @returns {{ name: string, values: string[] }[]}
 */
export function partsOf(definition, report) {
  let at = 0;
  return definition.report.parts.map((/** @type {any[]} */ [kind, name, ...rest]) => {
    const [size, count] = kind === "uint" ? rest.map(Number) : kind === "packed" ? [Math.ceil(Number(rest[0]) / 8), 1] : [8, 1];
    const own = report.subarray(at, (at += size * count));
    if (kind === "packed") return { name, values: Array.from({ length: Number(rest[0]) }, (_, i) => String((own[i >> 3] >> (i & 7)) & 1)) };
    if (kind === "float64") return { name, values: [String(new DataView(own.buffer, own.byteOffset, 8).getFloat64(0, true))] };
    return { name, values: Array.from({ length: count }, (_, i) => String(fromLittleEndian(own.subarray(i * size, (i + 1) * size)))) };
  });
}

/** Two digits for each byte, in groups. @param {Uint8Array} report */
const hexOf = (report) => toHex(report).replace(/(..)(?=.)/g, "$1 ");

/**
 * The section on the bytes that left the device.
 * @param {Uint8Array} report
 * @param {Answered[]} answered
 * @param {string} [label] that was sent with the report
 */
export function bytesShown(report, answered, label) {
  const rows = answered.flatMap((each) => {
    const { question: { definition, text }, part, one } = each;
    return partsOf(definition, part).map(({ name, values }) => valuesShown(one ? name : text, values, each));
  });
  return section(say("sent.bytes_title"), { id: "bytes" },
    el("p", {}, say("sent.bytes", { size: bytes(report.length) })),
    el("pre", { tabindex: 0, "aria-label": say("sent.hex") }, el("code", { id: "hex" }, hexOf(report))),
    el("table", {}, el("caption", { class: "hidden" }, say("sent.parts")), el("tbody", {}, rows)),
    answered.some(({ one }) => !one) ? el("p", { class: "hint" }, say("sent.mask")) : null,
    el("p", { class: "hint" }, label ? say("sent.label", { label }) : say("sent.nothing_else")));
}

/**
 * A row of numbers, with the names of the answers that they are about.
 * @param {string} name
 * @param {string[]} values
 * @param {Answered} answered
 */
function valuesShown(name, values, answered) {
  const answers = answered.question.each;
  const each = answers && answered.question.ticks === undefined && values.length === answers.length && values.length > 1;
  const shown = values.slice(0, MOST_SHOWN).map((value, i) => (each ? `${answers[i]}: ${value}` : value));
  if (values.length > MOST_SHOWN) shown.push(say("sent.more", { count: values.length - MOST_SHOWN }));
  const [best, ...others] = values.length === 1 && answers ? likeliestOf(answered) : [];
  // A number of an answer, and not another number.
  if (best !== undefined && !others.length && answers?.[Number(values[0])] === best) shown[0] = `${values[0]}: ${best}`;
  return el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, each ? el("ul", {}, shown.map((text) => el("li", {}, text))) : shown.join(" ")));
}

/**
 * The section on the probability of the report for each answer.
 * @param {Answered[]} answered
 */
export function likelihoodsShown(answered) {
  const explained = answered.map(({ question: { client }, part }) => client.explain(part)).map((found) => (found && found.length <= MOST_SHOWN ? found : undefined));
  const listed = explained.filter((found) => found !== undefined);
  const possible = listed.every((found) => found.every(({ likelihood }) => likelihood > 0));
  return section(say("likely.title"), { id: "likely" },
    listed.length ? el("p", {}, possible ? say("likely.text") : say("likely.impossible")) : null,
    answered.map(({ question: { each, text }, one }, i) => [
      one ? null : el("h3", {}, text),
      explained[i] ? likelihoodTable(explained[i], each, one ? say("likely.title") : text) : el("p", {}, say("likely.many")),
    ]));
}

/**
 * @param {{ answer: string | number, likelihood: number }[]} found
 * @param {string[] | undefined} answers
 * @param {string} title
 */
function likelihoodTable(found, answers, title) {
  const most = Math.max(...found.map((each) => each.likelihood));
  const rows = found.map(({ answer, likelihood }, i) => {
    const bar = el("span", { class: "likely-bar" });
    bar.style.width = `${most ? (100 * likelihood) / most : 0}%`;
    return el("tr", {},
      el("th", { scope: "row" }, answers ? answers[i] : answer),
      el("td", { class: "number" }, share(likelihood)),
      el("td", { class: "picture", "aria-hidden": "true" }, bar));
  });
  return el("table", { class: "likely" },
    el("caption", { class: "hidden" }, title),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, say("likely.answer")), el("th", { scope: "col", class: "number" }, say("likely.chance")), el("td", { "aria-hidden": "true" }))),
    el("tbody", {}, rows));
}

/**
 * The names of the answers for which a report is the most likely; none if they cannot be listed.
 * @param {Answered} answered
 * @returns {string[]}
 */
function likeliestOf({ question: { client, each: answers }, part }) {
  const found = answers && client.explain(part);
  if (!answers || !found || found.length > MOST_SHOWN) return [];
  const most = Math.max(...found.map((each) => each.likelihood));
  return answers.filter((_, i) => found[i].likelihood >= most * (1 - 1e-9));
}

/**
 * The answers that the report fits best, by question, as rows of a list of facts.
 * @param {Answered[]} answered
 * @returns {[any, any][]}
 */
export function likeliest(answered) {
  return answered.flatMap((each) => {
    const { question: { each: answers, text }, one } = each;
    const names = likeliestOf(each);
    if (!answers || !names.length) return [];
    const name = one ? say("receipt.likeliest") : [text, el("span", { class: "under" }, say("receipt.likeliest"))];
    return [/** @type {[any, any]} */ ([name, names.length < answers.length ? names.join(", ") : say("receipt.every")])];
  });
}
