// Elements of the page. Texts go in as text, never as HTML.

/** @typedef {any} Child a node, a text, a number or nothing, or a list of these */

/**
 * @param {string} name of a tag
 * @param {Record<string, any>} attributes `on…` are listeners; null, undefined and false leave one out
 * @param {Child[]} children
 * @returns {any}
 */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (attribute.startsWith("on")) made.addEventListener(attribute.slice(2), value);
    else made.setAttribute(attribute, value === true ? "" : String(value));
  }
  made.append(...nodes(children));
  return made;
}

/**
 * @param {Child[]} children
 * @returns {(Node | string)[]}
 */
export function nodes(children) {
  return children.flat(9).filter((child) => child !== null && child !== undefined && child !== false).map((child) => (child instanceof Node ? child : String(child)));
}

/**
 * Replaces the current view.
 * @param {Child[]} children
 * @param {{ focus?: boolean }} [options] `focus`: a person asked for it and continues from its heading
 */
export function show(children, { focus = false } = {}) {
  const main = /** @type {HTMLElement} */ (document.querySelector("main"));
  const within = main.contains(document.activeElement); // the focused element is removed, and the reader would lose the place
  main.replaceChildren(...nodes(children));
  const heading = main.querySelector("h1");
  if ((focus || within) && heading) {
    heading.tabIndex = -1;
    heading.focus();
  }
  document.body.dataset.ready = "true";
}

/**
 * Announces a change to screen readers.
 * @param {string} text
 */
export function announce(text) {
  const region = /** @type {HTMLElement} */ (document.getElementById("status"));
  if (region.textContent !== text) region.textContent = text;
}

const SVG = "http://www.w3.org/2000/svg";
const DISC = "M20 0a20 20 0 1 1 0 40 20 20 0 0 1 0-40Z";
const SIGNS = {
  arrived: "m-3.4 25.6-5.2-5.2-2.6 2.6 7.8 7.8 15-15-2.6-2.6Z",
  waiting: "m-1.9 9v12.2l8.3 5 1.9-3.1-6.5-3.9V9Z",
  stopped: "m-10 18v4h20v-4Z",
  warned: "m-2 9v13h4v-13Zm0 17v4h4v-4Z",
};

/** An icon. The page draws it itself, because it may be offline. @param {keyof SIGNS} kind */
export function mark(kind) {
  const sign = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  const shape = { viewBox: "0 0 40 40", class: `mark ${kind}`, "aria-hidden": "true" };
  for (const [name, value] of Object.entries(shape)) sign.setAttribute(name, value);
  path.setAttribute("fill-rule", "evenodd");
  path.setAttribute("d", DISC + SIGNS[kind]);
  sign.append(path);
  return sign;
}

/**
 * A part of the page under a heading.
 * @param {string} title
 * @param {{ class?: string, id: string }} attributes
 * @param {Child[]} children
 */
export function section(title, { class: kind = "card", id }, ...children) {
  return el("section", { class: kind, "aria-labelledby": id }, el("h2", { id }, title), ...children);
}

/**
 * The contact of a survey: a link if it is an address of a page or of mail, else a text.
 * @param {string} contact
 */
export function contactShown(contact) {
  const address = /^[^\s@:/]+@[^\s@:/]+\.[^\s@:/]+$/.test(contact) ? `mailto:${contact}` : contact;
  const found = URL.canParse(address) ? new URL(address) : undefined;
  if (found?.protocol === "mailto:") return el("a", { href: found.href }, contact.replace(/^mailto:/i, ""));
  if (found?.protocol === "https:" && !found.username) return el("a", { href: found.href, target: "_blank", rel: "noopener noreferrer" }, contact);
  return el("strong", {}, contact);
}

/**
 * A list of names and values.
 * @param {[string, Child][]} rows
 */
export function facts(rows) {
  return el("dl", { class: "facts" }, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}
