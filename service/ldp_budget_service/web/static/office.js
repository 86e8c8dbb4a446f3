/* What both pages share: the reader's key, asking the API, texts, and building elements. Nothing is ever written as
   HTML: texts become text nodes. */

const KEY = "ldp-budget-key";

/** An element with properties, attributes (`aria-…`, `data-…`, others by name) and children. */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** The element of an id. */
export const byId = (id) => document.getElementById(id);

// -- texts -------------------------------------------------------------------------------------------------------

let texts = {};

/** A text by its key, with what stands in braces filled in. */
export function t(key, values = {}) {
  const found = key.split(".").reduce((at, part) => at?.[part], texts);
  if (typeof found !== "string") throw new Error(`no text ${key}`);
  return found.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** A text of a group by a name that the API gave; the name itself where there is none. */
export const named = (group, name) => texts[group]?.[name] ?? name;

async function loadTexts() {
  const { content, dataset } = document.querySelector("meta[name=texts]");
  texts = await (await fetch(content, { integrity: dataset.integrity })).json();
}

// -- numbers and times ---------------------------------------------------------------------------------------------

const whole = new Intl.NumberFormat("en");
const percents = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });
const moments = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" });
const dates = new Intl.DateTimeFormat("en", { weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

export const count = (value) => whole.format(value);
export const share = (part, of) => (of ? percents.format(part / of) : "–");
export const moment = (iso) => (iso ? `${moments.format(new Date(iso))} UTC` : "–");
export const date = (day) => dates.format(new Date(`${day}T00:00Z`));

// -- the API -------------------------------------------------------------------------------------------------------

/** What the API said was wrong. */
export class Problem extends Error {
  constructor(status, detail, code) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** What the API answers; throws `Problem`. */
export async function ask(path, { method = "GET", body } = {}) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY)}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, body: body && JSON.stringify(body), cache: "no-store", credentials: "omit" });
  } catch {
    throw new Problem(0, t("frame.unreachable"), "unreachable");
  }
  const told = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(response.status, told.detail ?? response.statusText, (told.type ?? "").split("/").at(-1));
  return told;
}

// -- signing in ----------------------------------------------------------------------------------------------------

const REFUSED = { 401: "frame.unknown_key", 403: "frame.wrong_scope" };

/**
 * Ask for a key where none is kept: `begin(out)` shows the page and throws what the API said was wrong; `end()` stops
 * it, and `out(why)` asks for another key. A key is kept for as long as this tab is open, and sent to this host alone.
 */
async function signedIn({ begin, end }) {
  await loadTexts();
  const [form, field, error] = [byId("sign-in-form"), byId("key"), byId("key-error")];

  const show = (signed) => {
    byId("sign-in").hidden = signed;
    byId("content").hidden = byId("signed").hidden = !signed;
  };
  const out = (why) => {
    sessionStorage.removeItem(KEY);
    end();
    show(false);
    byId("content").replaceChildren();
    error.hidden = !why;
    error.textContent = why ?? "";
    field.focus();
  };
  const enter = async () => {
    try {
      show(true);
      await begin(out);
      byId("main").focus({ preventScroll: true });
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      out(problem.status in REFUSED ? t(REFUSED[problem.status], { why: problem.message }) : problem.message);
    }
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, field.value.trim());
    field.value = "";
    enter();
  });
  byId("sign-out").addEventListener("click", () => out());
  if (sessionStorage.getItem(KEY)) await enter();
  else show(false);
}

// -- a page ------------------------------------------------------------------------------------------------------

const RENEW = 15_000;

/**
 * A page that is renewed as long as somebody looks. `first` is what the API is asked before `build(renew)` makes the
 * page. `load()` asks for what it shows, `show(found)` puts that there and may say after how many milliseconds it is
 * asked again, and `stale(problem)` says why that could not be.
 */
export async function run({ first, build, load, show, stale }) {
  let timer;
  let leave;
  let turn = 0;

  const renew = async () => {
    clearTimeout(timer);
    // Of several that are under way the newest alone says what there is.
    const mine = ++turn;
    try {
      const found = await load();
      if (mine !== turn) return;
      show(found);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (mine !== turn) return;
      if (problem.status in REFUSED) return void leave(problem.message);
      stale(problem);
    }
    timer = setTimeout(() => (document.hidden ? null : renew()), RENEW);
  };

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && timer && !byId("content").hidden) renew();
  });

  await signedIn({
    begin: async (out) => {
      leave = out;
      await ask(first);
      build(renew);
      await renew();
    },
    end: () => {
      clearTimeout(timer);
      turn++;
    },
  });
}
