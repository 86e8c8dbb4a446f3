/* The privacy officer's page: who set what, what waits for a second person, and whether anybody would be told. */

import { ask, byId, count, h, moment, named, Problem, run, t } from "./office.js";
import { DataTable } from "./tables.js";

const RENEW = 15_000;
const CHANGES = { first: "badge muted", raised: "badge warn", lowered: "badge good", changed: "badge muted" };
const STATES = { active: "badge good", pending: "badge warn", expired: "badge muted", revoked: "badge bad" };
const SENT = { sent: "badge good", waiting: "badge warn", "given up": "badge bad" };

const badge = (group, looks) => (value) => h("span", { class: looks[value] ?? "badge muted" }, named(group, value));
const who = (by, row) => by ?? t(row.by_known === false ? "officer.reading" : "officer.here");
const lines = (texts) => texts.flatMap((text, at) => (at ? [h("br"), text] : [text]));

function card(name, { controls = null } = {}, ...children) {
  const heading = h("h2", { id: `${name}-title` }, t(`${name}.title`));
  const head = h("div", {}, heading, h("p", { class: "muted small" }, t(`${name}.note`)));
  const attributes = { class: "card", id: name, "aria-labelledby": `${name}-title` };
  return h("section", attributes, h("div", { class: "card-head" }, head, controls), children);
}

/** Columns by their keys, with titles from a group of texts; texts unless `numbers` names them. */
const columns = (group, keys, { shows = {}, numbers = [] } = {}) =>
  keys.map((key) => ({ key, title: t(`${group}.${key}`), text: !numbers.includes(key), show: shows[key] }));

class Counts {
  constructor() {
    this.element = h("dl", { class: "figures", "aria-label": t("counts.label") });
  }

  update(counts) {
    this.element.replaceChildren(...Object.entries(counts).map(([name, value]) =>
      h("div", { "data-figure": name }, h("dt", {}, t(`counts.${name}`)), h("dd", { class: "number" }, count(value)))));
  }
}

class Policies {
  constructor() {
    const shows = { at: moment, change: badge("policies", CHANGES), terms: (terms) => lines(terms.split("; ")), by: who };
    this.table = new DataTable({
      name: "policies",
      caption: t("policies.caption"),
      open: true,
      columns: columns("policies", ["at", "policy", "version", "change", "terms", "by"], { shows, numbers: ["version"] }),
    });
    this.element = card("policies", {}, this.table.element);
  }

  update(rows) {
    const more = ["checked", "unbounded", "relation", "plan"];
    this.table.update(rows.map((row) => ({
      ...row,
      terms: [...row.limits, ...more.filter((name) => row[name]).map((name) => t(`policies.${name}`))].join("; "),
    })));
  }
}

class Keys {
  constructor() {
    const shows = { state: badge("keys", STATES), made: moment, expires: moment, by: who };
    this.table = new DataTable({
      name: "keys",
      caption: t("keys.caption"),
      open: true,
      columns: columns("keys", ["name", "state", "scopes", "bound", "share", "made", "by", "expires"], { shows }),
    });
    this.element = card("keys", {}, this.table.element);
  }

  update(rows) {
    this.table.update(rows.map((row) => ({
      ...row,
      scopes: row.scopes.join(", "),
      bound: [...(row.policies ?? []), ...(row.collections ?? [])].join(", ") || t("keys.everything"),
    })));
  }
}

class Records {
  constructor() {
    const shows = { at: moment, by: who, said: (said) => h("span", { class: "mono" }, said) };
    this.table = new DataTable({
      name: "records",
      caption: t("records.caption"),
      columns: columns("records", ["number", "at", "kind", "about", "by", "said"], { shows, numbers: ["number"] }),
      open: true,
    });
    this.element = card("records", {}, this.table.element);
  }

  update(rows) {
    const said = (body) => Object.entries(body).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
    this.table.update(rows.map((row) => ({ ...row, about: row.name, said: said(row.body).join(", ") })));
  }
}

const TYPES = { "limit.used": "limit_used", "refusals.many": "refusals_many", "verification.failed": "verification_failed", test: "test" };

class Alerts {
  constructor(renew) {
    const shows = { raised: moment, state: badge("alerts", SENT), by: (by) => by ?? "–" };
    this.table = new DataTable({
      name: "alerts",
      caption: t("alerts.caption"),
      open: true,
      columns: columns("alerts", ["raised", "said", "state", "tries", "by"], { shows, numbers: ["tries"] }),
    });
    this.rules = h("p", { class: "small" });
    this.said = h("p", { class: "small", role: "status", id: "alerts-said" });
    this.test = this.button("alerts.send", async () => {
      await ask("/v1/alerts:test", { method: "POST" });
      this.said.textContent = t("alerts.sent_test");
      await renew();
    });
    this.verify = this.button("alerts.verify", async () => {
      this.said.textContent = t("alerts.verifying");
      const found = await ask("/v1/ledger/verifications", { method: "POST" });
      const facts = { entries: count(found.entries), problems: count(found.problems.length) };
      this.said.textContent = t(found.ok ? "alerts.verified_ok" : "alerts.verified_bad", facts);
      await renew();
    });
    const controls = h("div", { class: "field" }, this.verify, this.test);
    this.element = card("alerts", { controls }, this.rules, this.said, this.table.element);
  }

  button(text, act) {
    const button = h("button", { type: "button" }, t(text));
    button.addEventListener("click", async () => {
      button.setAttribute("aria-disabled", "true");
      try {
        await act();
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        this.said.textContent = problem.message;
      } finally {
        button.removeAttribute("aria-disabled");
      }
    });
    return button;
  }

  update({ configured, rules, rows }) {
    const used = rules.used.map((percent) => t("alerts.percent", { used: percent })).join(t("alerts.and"));
    const facts = { used, users: 100 * rules.users, refusals: 100 * rules.refusals, least: rules.least };
    this.rules.textContent = configured ? t("alerts.rules", facts) : t("alerts.unset");
    this.test.hidden = !configured;
    this.table.update(rows.map((row) => {
      const data = { ...row.data, period: named("limit", row.data.period) };
      return { ...row, said: row.type in TYPES ? t(`alerts.${TYPES[row.type]}`, data) : row.type };
    }));
  }
}

// -- the page ----------------------------------------------------------------------------------------------------------

let timer;
let parts;
let out;

function build() {
  const status = h("p", { class: "muted small", role: "status" });
  parts = { status, counts: new Counts(), policies: new Policies(), alerts: new Alerts(renew), keys: new Keys(), records: new Records() };
  const head = h("div", { class: "page-head" }, h("h1", {}, t("officer.title")), status);
  const cards = ["policies", "alerts", "keys", "records"].map((name) => parts[name].element);
  byId("content").replaceChildren(head, parts.counts.element, h("div", { class: "cards" }, cards));
}

async function load() {
  const paths = ["/v1/officer", "/v1/officer/policies", "/v1/officer/keys", "/v1/officer/records"];
  const [summary, policies, keys, records] = await Promise.all(paths.map((path) => ask(path)));
  parts.counts.update(summary.counts);
  parts.policies.update(policies.rows);
  parts.keys.update(keys.rows);
  parts.records.update(records.rows);
  parts.alerts.update(await ask("/v1/officer/alerts"));
}

async function renew() {
  clearTimeout(timer);
  try {
    await load();
    parts.status.textContent = t("officer.as_of", { time: new Date().toISOString().slice(11, 16) });
    document.documentElement.dataset.ready = "true";
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (problem.status === 401 || problem.status === 403) return void out(problem.message);
    parts.status.textContent = problem.message;
  }
  timer = setTimeout(() => (document.hidden ? null : renew()), RENEW);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && timer && !byId("content").hidden) renew();
});

out = await run({
  begin: async () => {
    await ask("/v1/officer");
    build();
    await renew();
  },
  end: () => clearTimeout(timer),
});
