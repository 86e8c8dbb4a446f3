/* A table that is collapsed under its chart, and the same rows as a CSV file. */

import { h, t, count } from "./office.js";

// A spreadsheet runs a text that begins with one of these as a formula.
const FORMULA = /^[=+\-@\t\r]/;

function cell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "number" ? String(value) : FORMULA.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows as CSV (RFC 4180), with a header. */
export function csv(columns, rows) {
  const lines = [columns.map((column) => cell(column.title)), ...rows.map((row) => columns.map((column) => cell(row[column.key])))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

/** The day in UTC, for the names of files. */
export const today = () => new Date().toISOString().slice(0, 10);

/** Save a text as a file. */
export function save(name, text, type = "text/csv") {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/**
 * The table of a chart. `columns`: [{ key, title, text, show }]; numbers are aligned right. `open` shows the table at
 * once. `update(rows)` replaces the rows; without rows the table says `none`.
 */
export class DataTable {
  constructor({ name, caption, columns, open = false, none = t("table.none") }) {
    this.none = none;
    this.columns = columns;
    this.rows = [];
    this.body = h("tbody");
    const header = h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.text ? null : "number-cell" }, column.title)));
    const table = h("table", {}, h("caption", { class: "visually-hidden" }, caption), h("thead", {}, header), this.body);
    const scroll = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table);
    const download = h("button", { type: "button", class: "quiet", "aria-label": t("table.download", { caption }) }, t("table.csv"));
    download.addEventListener("click", () => save(`ldp-budget-${name}-${today()}.csv`, csv(this.columns, this.rows)));
    if (open) {
      this.element = h("div", { class: columns.length > 4 ? "data wide" : "data", "data-table": name }, scroll, h("div", { class: "bar" }, h("span"), download));
      return;
    }
    scroll.hidden = true;
    const toggle = h("button", { type: "button", class: "quiet", "aria-expanded": "false", "aria-label": t("table.show", { caption }) }, t("table.table"));
    toggle.addEventListener("click", () => {
      scroll.hidden = !scroll.hidden;
      toggle.setAttribute("aria-expanded", String(!scroll.hidden));
    });
    this.element = h("div", { class: "data", "data-table": name }, h("div", { class: "bar" }, h("span", { "aria-hidden": "true" }, caption), toggle, download), scroll);
  }

  update(rows) {
    this.rows = rows;
    const lines = rows.map((row) =>
      h("tr", {}, this.columns.map((column, at) => {
        const value = row[column.key];
        const shown = column.show ? column.show(value, row) : typeof value === "number" ? count(value) : value ?? "–";
        return h(at ? "td" : "th", { scope: at ? null : "row", class: column.text ? null : "number-cell" }, shown);
      })),
    );
    const none = h("tr", {}, h("td", { colspan: this.columns.length, class: "muted" }, this.none));
    this.body.replaceChildren(...(lines.length ? lines : [none]));
  }
}
