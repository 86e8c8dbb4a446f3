/* The privacy officer's page: policy versions, proposals that wait for approval, and verifications. */

import { ask, byId, count, h, moment, named, Problem, run, t } from "./office.js";
import { DataTable } from "./tables.js";

const CHANGES = { first: "badge muted", raised: "badge warn", lowered: "badge good", changed: "badge muted" };
const STATES = { active: "badge good", pending: "badge warn", expired: "badge muted", revoked: "badge bad" };
const PROPOSALS = { open: "badge warn", approved: "badge good", withdrawn: "badge muted", past: "badge muted" };

const badge = (group, looks) => (value) => h("span", { class: looks[value] ?? "badge muted" }, named(group, value));
const who = (by) => by ?? t("officer.here");
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

/** The terms of a proposal, line by line. */
function said(terms) {
  const more = ["checked", "unbounded", "relation"].filter((name) => terms[name]).map((name) => t(`policies.${name}`));
  const shares = Object.entries(terms.shares ?? {}).map(([name, limits]) => `${name}: ${limits.join(", ")}`);
  return [...terms.limits.toSorted(), ...shares, ...more, ...(terms.plan ? [t("policies.plan")] : [])];
}

class Proposals {
  constructor(renew) {
    this.renew = renew;
    this.demand = h("p", { class: "small" });
    this.demandButton = h("button", { type: "button", hidden: true, onclick: () => this.demandNow() }, t("proposals.demand"));
    this.said = h("p", { class: "small", role: "status", id: "proposals-said" });
    this.list = h("div", { class: "proposals" });
    const shows = { at: moment, state: badge("proposals", PROPOSALS), terms: (terms) => lines(terms.split("; ")), by: who };
    this.table = new DataTable({
      name: "proposals",
      caption: t("proposals.caption"),
      columns: columns("proposals", ["number", "at", "policy", "terms", "by", "state", "ended_by"], { shows, numbers: ["number"] }),
    });
    this.element = card("proposals", { controls: this.demandButton }, this.demand, this.said, this.list, this.form(), this.table.element);
  }

  form() {
    this.policy = h("input", { id: "proposed-policy", list: "known-policies", required: true, maxlength: 200, autocomplete: "off" });
    this.known = h("datalist", { id: "known-policies" });
    this.limits = h("textarea", { id: "proposed-limits", rows: 4, required: true, spellcheck: "false", "aria-describedby": "limits-hint" });
    this.flags = Object.fromEntries(["checked", "relation", "unbounded"].map((name) => [name, h("input", { type: "checkbox", id: `proposed-${name}` })]));
    this.policy.addEventListener("change", () => this.fill());
    const flags = Object.entries(this.flags).map(([name, box]) => h("p", { class: "check" }, box, h("label", { for: box.id }, t(`proposals.${name}`))));
    const form = h(
      "form", { id: "propose", autocomplete: "off" },
      h("label", { for: "proposed-policy" }, t("proposals.policy")), this.policy, this.known,
      h("label", { for: "proposed-limits" }, t("proposals.limits")), this.limits,
      h("p", { class: "small muted", id: "limits-hint" }, t("proposals.limits_hint")),
      flags,
      h("button", { class: "primary" }, t("proposals.propose")),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.propose(form);
    });
    this.details = h("details", {}, h("summary", {}, t("proposals.form")), form);
    return this.details;
  }

  /** Fill the form with the current terms of the named policy. */
  fill() {
    const now = this.policies.get(this.policy.value);
    if (!now) return;
    this.limits.value = now.limits.join("\n");
    for (const [name, box] of Object.entries(this.flags)) box.checked = Boolean(now[name]);
  }

  async propose(form) {
    const limits = this.limits.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const { checked, relation, unbounded } = this.flags;
    const body = { name: this.policy.value, limits, checked: checked.checked, unbounded: unbounded.checked, relation: relation.checked ? "any" : null };
    await this.act(async () => {
      const made = await ask("/v1/proposals", { method: "POST", body });
      form.reset();
      this.details.open = false;
      return t("proposals.done_propose", { number: made.number });
    });
  }

  async demandNow() {
    if (!window.confirm(t("proposals.demand_sure"))) return;
    await this.act(async () => {
      await ask("/v1/approvals", { method: "PUT", body: { demanded: true } });
      return t("proposals.demanded");
    });
  }

  async act(act) {
    try {
      this.said.textContent = await act();
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      this.said.textContent = problem.message;
    }
    await this.renew();
    this.said.scrollIntoView({ block: "nearest" });
  }

  update({ demanded, rows }, policies) {
    this.policies = new Map(policies.toReversed().map((row) => [row.policy, row]));
    this.known.replaceChildren(...[...this.policies.keys()].map((name) => h("option", { value: name })));
    this.demand.textContent = t(demanded ? "proposals.demanded" : "proposals.not_demanded");
    this.demandButton.hidden = demanded;
    this.table.update(rows.map((row) => ({ ...row, terms: said(row.terms).join("; ") })));
    // A button must not move while a reader is about to press it.
    const waiting = rows.filter((row) => row.state === "open" || row.state === "approved");
    const shown = JSON.stringify(waiting);
    if (shown === this.shown) return;
    this.shown = shown;
    this.list.replaceChildren(...(waiting.length ? waiting.map((row) => this.article(row)) : [h("p", { class: "muted" }, t("proposals.none"))]));
  }

  article(row) {
    const now = this.policies.get(row.policy);
    const by = row.by ?? t("officer.here");
    const title = h("h3", { id: `proposal-${row.number}` }, t(now ? "proposals.wants" : "proposals.wants_new", { by, policy: row.policy }));
    const before = now ? said({ ...now, shares: {} }) : ["–"];
    const sides = [["now", before], ["then", said(row.terms)]].map(([name, texts]) =>
      h("div", {}, h("h4", {}, t(`proposals.${name}`)), h("ul", {}, texts.map((text) => h("li", { class: "mono" }, text)))));
    const reasons = row.reasons.length
      ? [h("h4", {}, t("proposals.reasons")), h("ul", {}, row.reasons.map((reason) => h("li", {}, reason)))]
      : [h("p", { class: "small" }, t("proposals.harmless"))];
    const note = row.state === "approved" ? t("proposals.approved_by", { by: row.ended_by ?? t("officer.here") }) : row.mine ? t("proposals.mine") : null;
    const actions = row.state === "approved" ? ["set"] : row.mine ? ["withdraw"] : ["approve", "withdraw"];
    return h(
      "article", { class: "proposal", "aria-labelledby": title.id, "data-proposal": row.number },
      title, h("p", { class: "small muted" }, moment(row.at)), h("div", { class: "sides" }, sides), reasons,
      note && h("p", { class: "small" }, note), h("div", { class: "field" }, actions.map((action) => this.button(action, row))),
    );
  }

  button(action, row) {
    const label = t("proposals.of", { action: t(`proposals.${action}`), number: row.number, policy: row.policy });
    const button = h("button", { type: "button", class: action === "withdraw" ? null : "primary", "aria-label": label }, t(`proposals.${action}`));
    button.addEventListener("click", () => this.act(async () => {
      const { version } = await ask(`/v1/proposals/${row.number}/${action}`, { method: "POST" });
      return t(`proposals.done_${action}`, { number: row.number, policy: row.policy, version });
    }));
    return button;
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
      terms: [
        ...row.limits,
        ...more.filter((name) => row[name]).map((name) => t(`policies.${name}`)),
        ...(row.override ? [t("policies.override", { reason: row.override })] : []),
      ].join("; "),
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

class Verification {
  constructor(renew) {
    this.said = h("p", { class: "small", role: "status", id: "verification-said" });
    this.verify = h("button", { type: "button", onclick: () => this.run(renew) }, t("verification.verify"));
    this.element = card("verification", { controls: this.verify }, this.said);
  }

  async run(renew) {
    this.verify.setAttribute("aria-disabled", "true");
    this.said.textContent = t("verification.verifying");
    try {
      const found = await ask("/v1/ledger/verifications", { method: "POST" });
      const facts = { entries: count(found.entries), problems: count(found.problems.length) };
      this.said.textContent = t(found.ok ? "verification.verified_ok" : "verification.verified_bad", facts);
      await renew();
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      this.said.textContent = problem.message;
    } finally {
      this.verify.removeAttribute("aria-disabled");
    }
  }
}

// -- the page ----------------------------------------------------------------------------------------------------------

let parts;

function build(renew) {
  const status = h("p", { class: "muted small", role: "status" });
  parts = { status, counts: new Counts(), proposals: new Proposals(renew), policies: new Policies(), verification: new Verification(renew), keys: new Keys(), records: new Records() };
  const head = h("div", { class: "page-head" }, h("h1", {}, t("officer.title")), status);
  const cards = ["proposals", "policies", "verification", "keys", "records"].map((name) => parts[name].element);
  byId("content").replaceChildren(head, parts.counts.element, h("div", { class: "cards" }, cards));
}

function load() {
  const paths = ["", "/policies", "/keys", "/records"].map((path) => `/v1/officer${path}`);
  return Promise.all([...paths, "/v1/proposals"].map((path) => ask(path)));
}

function show([summary, policies, keys, records, proposals]) {
  parts.counts.update(summary.counts);
  parts.policies.update(policies.rows);
  parts.proposals.update(proposals, policies.rows);
  parts.keys.update(keys.rows);
  parts.records.update(records.rows);
  parts.status.textContent = t("officer.as_of", { time: new Date().toISOString().slice(11, 16) });
  document.documentElement.dataset.ready = "true";
}

function stale(problem) {
  parts.status.textContent = problem.message;
}

await run({ first: "/v1/officer", build, load, show, stale });
