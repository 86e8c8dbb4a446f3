// Elements of the page. Texts go in as text, never as HTML.

/** @typedef {any} Child a node, a text or a number; nothing; or a list of these */

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
 * Shows a view in place of what there is.
 * @param {Child[]} children
 * @param {{ focus?: boolean }} [options] `focus`: somebody asked for it, and goes on from its heading
 */
export function show(children, { focus = false } = {}) {
  const main = /** @type {HTMLElement} */ (document.querySelector("main"));
  const within = main.contains(document.activeElement); // what has the focus goes, and with it the place of whoever reads
  main.replaceChildren(...nodes(children));
  const heading = main.querySelector("h1");
  if ((focus || within) && heading) {
    heading.tabIndex = -1;
    heading.focus();
  }
  document.body.dataset.ready = "true";
}

/**
 * Says something to those who do not see the page change.
 * @param {string} text
 */
export function announce(text) {
  const region = /** @type {HTMLElement} */ (document.getElementById("status"));
  if (region.textContent !== text) region.textContent = text;
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
 * What something is, side by side.
 * @param {[string, Child][]} rows
 */
export function facts(rows) {
  return el("dl", { class: "facts" }, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}
