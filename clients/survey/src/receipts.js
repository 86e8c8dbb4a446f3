// Receipts: what a respondent keeps to check a published survey. A receipt has the secret of her marks, her report, her
// costs and the limit that the service promised and signed. The service gets two hashes of the secret, and never the secret.

import { toHex } from "../../js/src/bytes.js";
import { newMarkSecret } from "../../js/src/marks.js";
import { announce, el, section } from "./elements.js";
import { qrCode, qrPicture } from "./qr_code.js";
import { MEASURES, fragmentOf } from "./receipt_links.js";
import { save } from "./saved_files.js";
import { Problem, markHeaders, proofAt } from "./service.js";
import { language, said, say, shortDate } from "./texts.js";

/** @typedef {import("../../js/src/outbox.js").Entry} Entry */
/** @typedef {import("./main.js").Device} Device */

const CHECKER = "/check";
/** Of the device's own charge. Only rounding may make the two differ. */
const LEAST_SHARE = 0.999;

/** A new secret for the marks of one report, in hexadecimal. */
export const drawnSecret = () => toHex(newMarkSecret());

/** True if the device has the receipt of a report that arrived. @param {any} entry */
const has = (entry) => Boolean(entry.state === "arrived" && entry.about.secret && entry.report && entry.receipt?.units);

/** What a checker needs of an entry; empty without a receipt. @param {any} entry */
export function receiptOf(entry) {
  if (!has(entry)) return {};
  const costs = Object.fromEntries(MEASURES.map((measure, i) => [measure, entry.receipt.units.cost[i]]));
  // A service that charged clearly less than the definition states: with the device's own figure, the check refuses.
  if (!entry.label && entry.units !== null && costs.epsilon < LEAST_SHARE * entry.units) costs.epsilon = entry.units;
  return {
    ...{ format: "ldp-budget receipt", version: 1, collection: entry.collection, client: entry.digest },
    ...{ secret: entry.about.secret, report: toHex(entry.report), costs, promise: entry.receipt.promise ?? null },
    publication: publicationOf(entry),
  };
}

/** Where the survey is published, and under which key, as the service said when it charged. @param {any} entry */
function publicationOf({ about, receipt: { publication } }) {
  if (!publication) return null; // an earlier version of the service
  const { address, key, proof } = publication;
  return { address: address && new URL(address, location.origin).href, key, invitation: about.log ?? null, proof };
}

/** The address of the page that checks a receipt. @param {any} entry */
const checkOf = (entry) => `${CHECKER}?lang=${language}#${fragmentOf(receiptOf(entry))}`;

/** The link that checks the respondent's part, and the receipt as a code for another device. @param {any} entry */
function checkShown(entry) {
  const code = qrCode(new URL(checkOf(entry), location.origin).href);
  return [
    el("p", {}, el("a", { href: checkOf(entry), class: "secondary", target: "_blank", rel: "noopener" }, say("proof.check"))),
    code && el("details", {}, el("summary", {}, say("proof.qr")), el("p", {}, say("proof.qr_hint")), qrPicture(code, say("proof.qr"))),
  ];
}

/**
 * The section of a survey page on checking the respondent's own part.
 * @param {any} entry
 * @param {string | undefined} token of the invitation
 * @param {Device} device
 * @param {(entry: Entry) => void} deleted called when the receipt was deleted
 */
export function partShown(entry, token, device, deleted) {
  if (entry.about.deleted) return section(say("proof.title"), { id: "part" }, el("p", { id: "deleted" }, say("proof.deleted")));
  if (!has(entry)) return null;
  // The service says with the page if there is a publication: asking for a proof would be an error in the browser's console.
  const published = Boolean(document.body.dataset.published);
  const found = el("p", { class: "hint", id: "found" }, published ? "" : say("proof.not-published"));
  const ask = published && el("button", { type: "button", class: "secondary", onclick: () => proved(entry, token, found) }, say("proof.get"));
  return section(say("proof.title"), { id: "part" },
    el("p", {}, say("proof.text")),
    checkShown(entry),
    el("p", { class: "hint" }, say("proof.others")),
    ask && el("p", {}, ask),
    found,
    deletion(entry, device, deleted));
}

/**
 * The section with all receipts of the device; null without any.
 * @param {Entry[]} entries
 * @param {Device} device
 * @param {() => void} deleted
 */
export function receiptsShown(entries, device, deleted) {
  const mine = entries.filter(has);
  if (!mine.length) return null;
  const rows = mine.map((entry) =>
    el("div", { class: "service" },
      el("h3", {}, entry.about.title || entry.collection, " · ", el("time", { datetime: entry.at }, shortDate(entry.at))),
      checkShown(entry),
      el("p", {}, el("button", { type: "button", class: "secondary", onclick: () => saveReceipt(entry) }, say("proof.save"))),
      deletion(entry, device, deleted)));
  return section(say("proof.receipts"), { id: "receipts" }, rows);
}

/** @param {Entry} entry */
const saveReceipt = (entry) => save(`${entry.collection}.receipt.json`, `${JSON.stringify(receiptOf(entry), null, 2)}\n`);

/**
 * Saves the proof of a respondent, or says why there is none.
 * @param {Entry} entry
 * @param {string | undefined} token
 * @param {HTMLElement} found
 */
async function proved(entry, token, found) {
  let text = say("proof.saved");
  try {
    // The bytes as they came: a checker takes no other form.
    save(`${entry.collection}.proof.json`, await proofAt(token, markHeaders(entry)["Charge-Mark"]));
  } catch (error) {
    const code = error instanceof Problem ? error.code : "unexpected";
    text = said(`proof.${code}`) ? say(`proof.${code}`) : say("problem.unexpected.title");
  }
  found.textContent = text;
  announce(text);
}

/**
 * The button that deletes a receipt, after the reason to do so.
 * @param {Entry} entry
 * @param {Device} device
 * @param {(entry: Entry) => void} deleted
 */
function deletion(entry, { outbox, delivery }, deleted) {
  const forget = async () => {
    const after = await outbox.forget(entry.key, { secret: undefined, deleted: true });
    delivery.others.postMessage(entry.key); // the other pages of this device show it, too
    announce(say("proof.deleted"));
    if (after) deleted(after);
  };
  return el("details", { class: "delete" },
    el("summary", {}, say("proof.delete")),
    el("p", {}, say("proof.demand")),
    el("button", { type: "button", class: "secondary", onclick: forget }, say("proof.delete_now")));
}
