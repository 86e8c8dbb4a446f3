/* Code of both pages: the reader's key, API requests, texts, and elements. Nothing is ever written as HTML: texts become
   text nodes. */

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

/** A text by its key, with its placeholders filled in. */
export function t(key, values = {}) {
  const found = key.split(".").reduce((at, part) => at?.[part], texts);
  if (typeof found !== "string") throw new Error(`no text ${key}`);
  return found.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** A text of a group by a name from the API; the name itself if there is no text. */
export const named = (group, name) => texts[group]?.[name] ?? name;

async function loadTexts() {
  const { content, dataset } = document.querySelector("meta[name=texts]");
  texts = await (await fetch(content, { integrity: dataset.integrity })).json();
}

// -- numbers and times ---------------------------------------------------------------------------------------------

/** The language of the page. */
export const LANGUAGE = document.documentElement.lang;

const whole = new Intl.NumberFormat(LANGUAGE);
const moments = new Intl.DateTimeFormat(LANGUAGE, { dateStyle: "medium", timeStyle: "short", hourCycle: "h23", timeZone: "UTC" });
const dates = new Intl.DateTimeFormat(LANGUAGE, { weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

export const count = (value) => whole.format(value);
export const percent = (value) => `${Number((100 * value).toFixed(1)).toLocaleString(LANGUAGE)} %`;
export const share = (part, of) => (of ? percent(part / of) : "–");
export const moment = (iso) => (iso ? `${moments.format(new Date(iso))} UTC` : "–");
export const date = (day) => dates.format(new Date(`${day}T00:00Z`));

// -- the API -------------------------------------------------------------------------------------------------------

/** An error from the API. */
export class Problem extends Error {
  constructor(status, detail, code) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** The response of the API, its text if it is not JSON; throws `Problem`. */
export async function ask(path, { method = "GET", body, accept = "application/json" } = {}) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY)}`, Accept: accept };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, body: body && JSON.stringify(body), cache: "no-store", credentials: "omit" });
  } catch {
    throw new Problem(0, t("frame.unreachable"), "unreachable");
  }
  if (response.ok && accept !== "application/json") return response.text();
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(response.status, found.detail ?? response.statusText, (found.type ?? "").split("/").at(-1));
  return found;
}

// -- signing in ----------------------------------------------------------------------------------------------------

const REFUSED = { 401: "frame.unknown_key", 403: "frame.wrong_scope" };

/**
 * Ask for a key if none is stored. `begin(out)` shows the page and throws the API's `Problem`; `end()` stops the page,
 * and `out(why)` asks for another key. The key is stored while this tab is open, and sent to this host only.
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
 * A page that is updated while it is visible. The API must answer the path `first` before `build(renew)` makes the
 * page. `load()` requests the data, `show(found)` shows it, and `stale(problem)` says why an update failed.
 */
export async function run({ first, build, load, show, stale }) {
  let timer;
  let leave;
  let turn = 0;

  const renew = async () => {
    clearTimeout(timer);
    // Only the newest of several updates counts.
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
