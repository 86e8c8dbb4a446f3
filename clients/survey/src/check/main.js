// The page `/check`: a published survey, and the part of one respondent, checked on her device. It runs without a network, too.

import { Refused, check, hexOf, plain, sha256 } from "../../../check/check_books.mjs";
import de from "../../../check/texts/de.json";
import en from "../../../check/texts/en.json";
import ko from "../../../check/texts/ko.json";
import { announce, el, mark, section, show } from "../elements.js";
import { receiptIn } from "../receipt_links.js";
import { save } from "../saved_files.js";
import { ends, language, say, share, speak } from "../texts.js";
import { NotFetched, folderAt, proofFor } from "./fetched_folder.js";
import { below, given, published } from "./given_files.js";
import { estimateOf, linesOf, verdictOf } from "./verdict.js";

/** @typedef {Map<string, Uint8Array>} Files */

/** @type {Record<string, any>} */
const ALL = { en, ko, de };
const STANDING = ["device", "people", "others", "ledger", "maximum"];
const AGAIN_MS = 1500;

/** What was given: by a link, or as files. `receipts` are bytes of a file, or the receipt of a link. */
const held = {
  /** @type {(Uint8Array | any)[]} */ receipts: [],
  /** @type {Uint8Array | null} */ proof: null,
  /** @type {Uint8Array | null} */ seen: null,
  /** @type {Files | null} */ files: null,
  /** @type {string[]} */ keys: [],
  /** @type {string[]} */ unknown: [],
};
/** Shows the newest state again, in another language. */
let again = () => start();
let run = 0;

/** The first receipt. @returns {any} */
function receipt() {
  const [first] = held.receipts;
  if (!(first instanceof Uint8Array)) return first;
  try {
    return JSON.parse(new TextDecoder().decode(first));
  } catch {
    return undefined;
  }
}

// -- the check -----------------------------------------------------------------------------------------------------

/** The key to check with, and what it was compared with. @param {any} publication of the receipt */
function keyOf(publication) {
  const [typed] = held.keys, carried = typeof publication?.key === "string" ? publication.key : undefined, key = typed ?? carried;
  if (key === undefined) return undefined;
  if (typed !== undefined && carried !== undefined && typed !== carried) throw new Refused("the key that you entered is not the one of your receipt");
  const named = publication?.invitation, compared = named ? "invitation" : typed === undefined ? null : "typed";
  if (named && hexOf(sha256(new TextEncoder().encode(key))).slice(0, 32) !== named) throw new Refused("the key is not the one that your invitation names");
  return { keys: [key, ...held.keys.slice(1)], compared: /** @type {"invitation" | "typed" | null} */ (compared) };
}

/** Fetches what was not given. Without a proof it says why. @param {any} own the receipt */
async function fetchedFor(own) {
  const files = held.files ?? (await folderAt(own.publication.address));
  if (!own) return { files, proof: null, without: "receipt" };
  if (held.proof) return { files, proof: held.proof };
  if (!own.publication?.proof || location.protocol === "file:") return { files, proof: null, without: "proof" };
  try {
    return { files, proof: await proofFor(own) };
  } catch (error) {
    if (!(error instanceof NotFetched)) throw error;
    if (["not-published", "network"].includes(error.code)) throw error;
    return { files, proof: null, without: error.code };
  }
}

/** Checks what is held, and shows what was found. */
async function checked() {
  const mine = ++run, own = receipt();
  try {
    const key = keyOf(own?.publication);
    if (!held.files && !own?.publication?.address) return asked("nofolder");
    if (!key) return asked("nokey");
    working();
    for (let attempt = 1; ; attempt++) {
      const { files, proof, without } = await fetchedFor(own);
      try {
        const found = await check(files, key.keys, proof ? held.receipts : [], proof, held.seen);
        if (mine === run) proven({ found, files, ...key, without });
        return;
      } catch (error) {
        // The survey may have been published again between two requests.
        if (held.files || attempt > 1) throw error;
        await new Promise((done) => setTimeout(done, AGAIN_MS));
      }
    }
  } catch (error) {
    if (mine !== run) return;
    if (error instanceof NotFetched) asked(error.code === "not-found" ? "not-published" : error.code);
    else refused(error instanceof Refused ? error.message : "a file is missing or malformed");
  }
}

// -- views -----------------------------------------------------------------------------------------------------------

/** @param {any[]} children @param {() => void} view that shows the same again */
function shown(children, view) {
  again = view;
  document.title = say("title");
  show(children, { focus: run > 0 });
}

function start() {
  shown([el("h1", {}, say("title")), el("p", { class: "lead" }, say("lead")), choice(true), secret()], start);
}

function working() {
  shown([el("h1", {}, say("working"))], working);
}

/** Something is missing. @param {string} code */
function asked(code) {
  const kind = `asked.${code}.title` in ALL.en ? code : "network", address = receipt()?.publication?.address;
  announce(say(`asked.${kind}.title`));
  shown([
    mark("waiting"),
    el("h1", { "data-asked": kind }, say(`asked.${kind}.title`)),
    el("p", { class: "lead" }, say(`asked.${kind}.text`)),
    kind === "elsewhere" && address ? el("p", {}, el("code", {}, plain(String(address), 300))) : null,
    kind === "network" || kind === "not-published" ? el("p", {}, el("button", { type: "button", class: "secondary", onclick: checked }, say("again"))) : null,
    choice(kind !== "network" && kind !== "not-published"),
    secret(),
  ], () => asked(code));
}

/** @param {string} message of the checker */
function refused(message) {
  announce(say("verdict.refused"));
  shown([
    mark("stopped"),
    el("h1", { "data-verdict": "refused" }, say("verdict.refused")),
    el("p", { class: "lead refused" }, say("verdict.reason", { reason: plain(reasonOf(message), 500) })),
    el("p", {}, say("verdict.contact")),
    choice(false),
    secret(),
  ], () => refused(message));
}

/** @param {{ found: any, files: Files, keys: string[], compared: "invitation" | "typed" | null, without?: string }} result */
function proven({ found, files, ...key }) {
  const lines = linesOf(found, key), { kind, text, next } = verdictOf(found, lines);
  const heading = found.client.languages?.[language]?.title || found.client.title || found.statement.collection;
  const part = (/** @type {string} */ wanted) => lines.filter((line) => line.kind === wanted).map((line) => lineShown(line, files));
  announce(text);
  const [warned, proved, open] = ["warned", "proved", "open"].map(part);
  shown([
    mark(kind === "proved" ? "arrived" : "warned"),
    el("p", { class: "eyebrow" }, plain(String(heading), 200)),
    el("h1", { "data-verdict": kind }, text),
    el("p", { class: "lead" }, next),
    warned.length ? section(say("lines.warned"), { id: "warned" }, el("ul", { class: "lines" }, warned)) : null,
    section(say("lines.proved"), { id: "proved" }, el("ul", { class: "lines" }, proved)),
    estimateShown(found),
    section(say("lines.open"), { id: "open" },
      el("ul", { class: "lines" }, open),
      el("h3", {}, say("not.title")),
      el("ul", {}, STANDING.map((each) => el("li", {}, say(`not.${each}`))))),
    secret(),
    choice(false),
  ], () => proven({ found, files, ...key }));
}

/** @param {import("./verdict.js").Line} line @param {Files} files */
function lineShown({ kind, text, meaning, file }, files) {
  const data = file === undefined ? undefined : files.get(file);
  const link = file !== undefined && data && el("button", { type: "button", class: "file", onclick: () => save(file.startsWith("tile/") ? "statements" : file, data, "application/octet-stream") }, say("line.file", { file: file.startsWith("tile/") ? say("line.statement") : file }));
  return el("li", { class: kind },
    el("p", { class: "line" }, el("span", { class: "hidden" }, `${say(`kind.${kind}`)} `), text),
    el("p", { class: "hint" }, meaning, " ", link));
}

/** The estimate, with its intervals. @param {any} found */
function estimateShown(found) {
  const { rows, more } = estimateOf(found);
  if (!rows.length) return null;
  const column = (/** @type {string} */ key) => el("th", { scope: "col" }, say(key));
  const shares = rows.map(({ name, share: estimated, low, high }) =>
    el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "number" }, share(estimated)), el("td", { class: "number" }, say("estimate.ends", ends(low, high)))));
  return section(say("estimate.title"), { id: "estimate" },
    el("div", { class: "scroll", tabindex: 0, role: "group", "aria-labelledby": "estimate" },
      el("table", {}, el("thead", {}, el("tr", {}, ["estimate.answer", "estimate.share", "estimate.interval"].map(column))), el("tbody", {}, shares))),
    el("p", { class: "hint" }, say("estimate.why"), more ? ` ${say("estimate.more", { count: more })}` : null));
}

/** The choice of files, and the key. @param {boolean} open true if it is what to do next */
function choice(open) {
  const input = el("input", { type: "file", id: "files", multiple: true, class: "hidden", onchange: () => take([...input.files].map((file) => /** @type {[string, File]} */ ([file.name, file]))) });
  const key = el("textarea", { id: "key", rows: 2, spellcheck: "false", autocomplete: "off" }, held.keys.join("\n"));
  const checking = (/** @type {Event} */ event) => {
    event.preventDefault();
    held.keys = key.value.split(/\s+/).filter(Boolean);
    checked();
  };
  const files = [
    el("p", { class: "choose" }, input, el("label", { for: "files", class: open ? "primary" : "secondary" }, say("choose"))),
    el("p", { class: "hint" }, say("choose.hint")),
    held.unknown.length ? el("p", { class: "error" }, say("choose.unknown", { names: held.unknown.join(", ") })) : null,
  ];
  const form = el("form", { novalidate: true, onsubmit: checking }, el("label", { for: "key" }, say("key")), el("p", { class: "hint" }, say("key.hint")), key,
    el("p", {}, el("button", { type: "submit", class: "secondary" }, say("check"))));
  const typed = open && (held.files || held.receipts.length) ? form : el("details", {}, el("summary", {}, say("key.title")), form);
  return open ? section(say("choose.title"), { id: "choice" }, files, typed) : el("details", { class: "other" }, el("summary", {}, say("choose.others")), files, form);
}

const secret = () => section(say("receipt.title"), { id: "secret", class: "notice" }, el("p", {}, say("receipt.text")));

// -- what is given ---------------------------------------------------------------------------------------------------

/** Takes files, each for what it is, and checks what is held. @param {[string, File][]} chosen by their paths */
async function take(chosen) {
  held.unknown = [];
  const folder = published(chosen);
  if (folder.some(([path]) => path === "checkpoint") && folder.length > 1) {
    held.files = new Map(await Promise.all(folder.map(async ([path, file]) => /** @type {[string, Uint8Array]} */ ([path, new Uint8Array(await file.arrayBuffer())]))));
    chosen = [];
  }
  const receipts = [];
  for (const [path, file] of chosen) {
    const found = await given(file);
    if (found?.kind === "receipt") receipts.push(found.data);
    else if (found?.kind === "proof") held.proof = found.data;
    else if (found?.kind === "checkpoint") held.seen = found.data;
    else if (found) held.files = found.files;
    else held.unknown.push(plain(path));
  }
  if (receipts.length) held.receipts = receipts;
  if (held.files || receipt()) await checked();
  else start();
}

/** The reason of a refusal in the language of the page; `{}` is a part of it. One without a translation stays as it is. @param {string} message */
function reasonOf(message) {
  const { reasons } = ALL[language];
  for (const [english, own] of Object.entries(/** @type {Record<string, string>} */ (reasons))) {
    const [before, after] = english.split("{}");
    if (after === undefined ? message !== english : !message.startsWith(before) || !message.endsWith(after)) continue;
    const part = after === undefined ? "" : message.slice(before.length, message.length - after.length);
    return own.replace("{}", () => reasons[part] ?? part);
  }
  return message;
}

// -- the page --------------------------------------------------------------------------------------------------------

/** @param {string | undefined} wanted */
function speaking(wanted) {
  speak(ALL, wanted ?? "en");
  document.documentElement.lang = language;
  for (const each of document.querySelectorAll("[data-text]")) each.textContent = say(/** @type {HTMLElement} */ (each).dataset.text ?? "");
  const nav = /** @type {HTMLElement} */ (document.getElementById("pages"));
  nav.setAttribute("aria-label", say("nav.pages"));
  document.getElementById("languages")?.setAttribute("aria-label", say("nav.languages"));
  // Saved as a file, the page has no others.
  nav.replaceChildren(...(location.protocol === "file:" ? [] : [el("a", { href: `/me?lang=${language}` }, say("nav.mine"))]));
}

const liked = navigator.languages.map((tag) => tag.split("-")[0]).find((tag) => tag in ALL);
const wanted = new URLSearchParams(location.search).get("lang");
speaking(wanted !== null && wanted in ALL ? wanted : liked);
for (const link of document.querySelectorAll("#languages a")) {
  link.addEventListener("click", (event) => {
    event.preventDefault(); // what was checked stays
    speaking(/** @type {HTMLElement} */ (link).lang);
    again();
  });
}
document.body.ondragover = (/** @type {DragEvent} */ event) => event.preventDefault();
document.body.ondrop = async (/** @type {DragEvent} */ event) => {
  event.preventDefault();
  const entries = [...(event.dataTransfer?.items ?? [])].map((item) => item.webkitGetAsEntry()).filter(Boolean);
  await take((await Promise.all(entries.map((entry) => below(entry)))).flat());
};

/** The receipt in the link, which must not stay in the address bar. */
function opened() {
  const found = receiptIn(location.hash.slice(1));
  if (!found) return false;
  history.replaceState(null, "", location.pathname + location.search);
  Object.assign(held, { receipts: [found], proof: null, files: null, unknown: [] });
  checked();
  return true;
}
addEventListener("hashchange", opened);
if (!opened()) start();
