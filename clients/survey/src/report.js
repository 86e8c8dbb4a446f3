// A report in a form that a respondent can read.

import { fromLittleEndian, toHex } from "../../js/src/bytes.js";
import { el, section } from "./elements.js";
import { bytes, say, share } from "./texts.js";

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
 * @param {any} definition
 * @param {Uint8Array} report
 * @param {string[] | undefined} answers the names of the answers on the page
 * @param {string} [label] that was sent with the report
 */
export function bytesShown(definition, report, answers, label) {
  const rows = partsOf(definition, report).map(({ name, values }) => {
    const named = answers && values.length === answers.length && values.length > 1;
    const shown = values.slice(0, MOST_SHOWN).map((value, i) => (named ? `${answers[i]}: ${value}` : value));
    if (values.length > MOST_SHOWN) shown.push(say("sent.more", { count: values.length - MOST_SHOWN }));
    return el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, named ? el("ul", {}, shown.map((text) => el("li", {}, text))) : shown.join(" ")));
  });
  return section(say("sent.bytes_title"), { id: "bytes" },
    el("p", {}, say("sent.bytes", { size: bytes(report.length) })),
    el("pre", { tabindex: 0, "aria-label": say("sent.hex") }, el("code", { id: "hex" }, hexOf(report))),
    el("table", {}, el("caption", { class: "hidden" }, say("sent.parts")), el("tbody", {}, rows)),
    el("p", { class: "hint" }, label ? say("sent.label", { label }) : say("sent.nothing_else")));
}

/**
 * The section on the probability of the report for each answer.
 * @param {import("../../js/src/index.js").Client} client
 * @param {Uint8Array} report
 * @param {string[] | undefined} answers
 */
export function likelihoodsShown(client, report, answers) {
  const found = client.explain(report);
  if (!found || found.length > MOST_SHOWN) return section(say("likely.title"), { id: "likely" }, el("p", {}, say("likely.many")));
  const most = Math.max(...found.map((each) => each.likelihood));
  const rows = found.map(({ answer, likelihood }, i) => {
    const bar = el("span", { class: "likely-bar" });
    bar.style.width = `${most ? (100 * likelihood) / most : 0}%`;
    return el("tr", {},
      el("th", { scope: "row" }, answers ? answers[i] : answer),
      el("td", { class: "number" }, share(likelihood)),
      el("td", { class: "picture", "aria-hidden": "true" }, bar));
  });
  return section(say("likely.title"), { id: "likely" },
    el("p", {}, say(found.every(({ likelihood }) => likelihood > 0) ? "likely.text" : "likely.impossible")),
    el("table", { class: "likely" },
      el("caption", { class: "hidden" }, say("likely.title")),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, say("likely.answer")), el("th", { scope: "col", class: "number" }, say("likely.chance")), el("td", { "aria-hidden": "true" }))),
      el("tbody", {}, rows)));
}
