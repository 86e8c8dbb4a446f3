/* The privacy officer's page: policy versions, proposals that wait for approval, and verifications. */

import { ask, byId, count, h, LANGUAGE, moment, named, Problem, run, t } from "./office.js";
import { parsed, saidReason, saidRecord, saidTerms, shownLimit, written } from "./sentences.js";
import { DataTable, save, today } from "./tables.js";

const CHANGES = { first: "badge muted", raised: "badge warn", lowered: "badge good", changed: "badge muted" };
const STATES = { active: "badge good", pending: "badge warn", expired: "badge muted", revoked: "badge bad" };
const PROPOSALS = { open: "badge warn", approved: "badge good", withdrawn: "badge muted", past: "badge muted" };

const badge = (group, looks) => (value) => h("span", { class: looks[value] ?? "badge muted" }, named(group, value));
const who = (by) => by ?? t("officer.here");
const long = (text) => (text ? h("span", { class: "long" }, text) : "–");
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

const PERIODS = ["lifetime", "month", "week", "day"];
const RULES = ["basic", "zcdp", "gdp", "renyi"];

/** The limits of a policy as fields, and a preview of what they change. */
class LimitFields {
  constructor() {
    this.rows = h("div", { class: "limit-rows" });
    this.preview = h("ul", { class: "small", "aria-live": "polite" });
    const add = h("button", { type: "button", class: "quiet", onclick: () => this.add({ period: "day", epsilon: "", delta: "", rule: "basic" }) }, t("proposals.add_limit"));
    const legend = h("legend", {}, t("proposals.limits"));
    this.element = h("fieldset", { class: "limits-field" }, legend, this.rows, add, h("h3", {}, t("proposals.preview")), this.preview);
    this.element.addEventListener("input", () => this.show());
    this.fill([]);
  }

  get values() {
    return [...this.rows.children].map((row) => Object.fromEntries([...row.querySelectorAll("[name]")].map((field) => [field.name, field.value.trim()])));
  }

  get limits() {
    return this.values.map(written);
  }

  /** Show the current limits of a policy, to be changed. */
  fill(limits) {
    this.before = limits.map(parsed);
    this.rows.replaceChildren();
    for (const each of limits.length ? this.before : [{ period: "lifetime", epsilon: "", delta: "", rule: "basic" }]) this.add(each);
  }

  add(limit) {
    const choice = (name, known) => h("select", { name }, [...new Set([...known, limit[name]])].map((value) =>
      h("option", { value, selected: value === limit[name] }, name === "period" ? named("limit", value) : value)));
    const field = (name, input) => h("label", {}, h("span", {}, t(`proposals.${name}`)), input);
    const number = (name, required) => h("input", { name, value: limit[name], inputmode: "decimal", autocomplete: "off", size: 8, required });
    const remove = h("button", { type: "button", class: "quiet", "aria-label": t("proposals.remove_limit") }, "×");
    const row = h("div", { class: "limit-row" }, field("period", choice("period", PERIODS)), field("epsilon", number("epsilon", true)), field("delta", number("delta", false)), field("rule", choice("rule", RULES)), remove);
    remove.addEventListener("click", () => {
      row.remove();
      this.show();
    });
    this.rows.append(row);
    this.show();
  }

  /** Say for each limit if it is new, allows more or less than now, or goes. The ledger decides; this is a preview. */
  show() {
    const [now, then] = [this.before, this.values.filter((each) => each.epsilon)];
    const same = (one, other) => one.period === other.period && one.rule === other.rule;
    const lines = then.map((limit) => {
      const old = now.find((each) => same(each, limit));
      const [less, more] = ["lowered", "raised"].map((change) => t(`policies.${change}`));
      if (!old) return [limit, t("proposals.new_limit"), null];
      const change = Number(limit.epsilon) - Number(old.epsilon) || Number(limit.delta || 0) - Number(old.delta || 0);
      return [limit, change ? (change > 0 ? more : less) : t("proposals.same_limit"), change ? old : null];
    });
    const gone = now.filter((old) => !then.some((each) => same(each, old))).map((old) => [old, t("proposals.gone_limit"), null]);
    const items = [...lines, ...gone].map(([limit, change, old]) =>
      h("li", {}, `${shownLimit(limit)} — ${change}${old ? ` (${t("proposals.now")}: ε = ${old.epsilon}${old.delta ? `, δ = ${old.delta}` : ""})` : ""}`));
    this.preview.replaceChildren(...(items.length ? items : [h("li", { class: "muted" }, t("proposals.preview_none"))]));
  }
}

class Proposals {
  constructor(renew) {
    this.renew = renew;
    this.demand = h("p", { class: "small" });
    this.demandButton = h("button", { type: "button", hidden: true, onclick: () => this.demandNow() }, t("proposals.demand"));
    this.said = h("p", { class: "small", role: "status", id: "proposals-said" });
    this.list = h("div", { class: "proposals" });
    const shows = { at: moment, state: badge("proposals", PROPOSALS), terms: (terms) => lines(terms.split("; ")), reason: long, by: who };
    this.table = new DataTable({
      name: "proposals",
      caption: t("proposals.caption"),
      columns: columns("proposals", ["number", "at", "policy", "terms", "reason", "by", "state", "ended_by"], { shows, numbers: ["number"] }),
    });
    this.element = card("proposals", { controls: this.demandButton }, this.demand, this.said, this.list, this.form(), this.table.element);
  }

  form() {
    this.policy = h("select", { id: "proposed-policy" });
    this.name = h("input", { id: "proposed-name", maxlength: 200, autocomplete: "off" });
    this.named = h("div", { class: "field", hidden: true }, h("label", { for: "proposed-name" }, t("proposals.new_name")), this.name);
    this.reason = h("textarea", { id: "proposed-reason", rows: 2, maxlength: 500, required: true, "aria-describedby": "reason-hint" });
    this.limits = new LimitFields();
    this.flags = Object.fromEntries(["checked", "relation", "unbounded"].map((name) => [name, h("input", { type: "checkbox", id: `proposed-${name}` })]));
    this.policy.addEventListener("change", () => this.fill());
    const flags = Object.entries(this.flags).map(([name, box]) => h("p", { class: "check" }, box, h("label", { for: box.id }, t(`proposals.${name}`))));
    const form = h(
      "form", { id: "propose", autocomplete: "off" },
      h("label", { for: "proposed-policy" }, t("proposals.policy")), this.policy, this.named,
      this.limits.element,
      h("p", { class: "small muted" }, t("proposals.limits_hint")),
      flags,
      h("label", { for: "proposed-reason" }, t("proposals.reason")), this.reason,
      h("p", { class: "small muted", id: "reason-hint" }, t("proposals.reason_hint")),
      h("button", { class: "primary" }, t("proposals.propose")),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.propose(form);
    });
    this.details = h("details", {}, h("summary", {}, t("proposals.form")), form);
    return this.details;
  }

  /** Fill the form with the current terms of the chosen policy; a new one has none, and needs a name. */
  fill() {
    const now = this.policies.get(this.policy.value);
    this.named.hidden = Boolean(now);
    this.name.required = !now;
    this.limits.fill(now?.limits ?? []);
    for (const [name, box] of Object.entries(this.flags)) box.checked = Boolean(now?.[name]);
  }

  /** Offer the policies, and a new one last; the chosen one stays chosen. */
  offer() {
    const names = [...this.policies.keys()];
    if (names.join("\n") === this.offered) return;
    const [chosen, isFirst] = [this.policy.value, this.offered === undefined];
    this.offered = names.join("\n");
    this.policy.replaceChildren(...names.map((name) => h("option", { value: name }, name)), h("option", { value: "" }, t("proposals.new_policy")));
    if (isFirst) this.fill();
    else this.policy.value = names.includes(chosen) ? chosen : "";
  }

  async propose(form) {
    const { limits } = this.limits;
    const { checked, relation, unbounded } = this.flags;
    const body = { name: this.policy.value || this.name.value.trim(), reason: this.reason.value.trim(), limits, checked: checked.checked, unbounded: unbounded.checked, relation: relation.checked ? "any" : null };
    await this.act(async () => {
      const made = await ask("/v1/proposals", { method: "POST", body });
      form.reset();
      this.fill();
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
    this.offer();
    this.demand.textContent = t(demanded ? "proposals.demanded" : "proposals.not_demanded");
    this.demandButton.hidden = demanded;
    this.table.update(rows.map((row) => ({ ...row, terms: saidTerms(row.terms).join("; ") })));
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
    const before = now ? saidTerms(now) : ["–"];
    const sides = [["now", before], ["then", saidTerms(row.terms)]].map(([name, texts]) =>
      h("div", {}, h("h4", {}, t(`proposals.${name}`)), h("ul", {}, texts.map((text) => h("li", {}, text)))));
    const why = row.reason && h("p", {}, t("said.reason", { reason: row.reason }));
    const reasons = row.reasons.length
      ? [h("h4", {}, t("proposals.reasons")), h("ul", {}, row.reasons.map((reason) => h("li", {}, saidReason(reason))))]
      : [h("p", { class: "small" }, t("proposals.harmless"))];
    const note = row.state === "approved" ? t("proposals.approved_by", { by: row.ended_by ?? t("officer.here") }) : row.mine ? t("proposals.mine") : null;
    const actions = row.state === "approved" ? ["set"] : row.mine ? ["withdraw"] : ["approve", "withdraw"];
    return h(
      "article", { class: "proposal", "aria-labelledby": title.id, "data-proposal": row.number },
      title, h("p", { class: "small muted" }, moment(row.at)), why, h("div", { class: "sides" }, sides), reasons,
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
    const shows = { at: moment, change: badge("policies", CHANGES), terms: (terms) => lines(terms.split("; ")), by: who, reason: long };
    this.table = new DataTable({
      name: "policies",
      caption: t("policies.caption"),
      open: true,
      columns: columns("policies", ["at", "policy", "version", "change", "terms", "by", "proposed_by", "approved_by", "reason"], { shows, numbers: ["version"] }),
    });
    this.element = card("policies", {}, this.table.element);
  }

  update(rows) {
    const by = (row, name) => (row.proposal === null ? null : who(row[name]));
    this.table.update(rows.map((row) => ({
      ...row,
      terms: saidTerms(row).join("; "),
      proposed_by: by(row, "proposed_by"),
      approved_by: by(row, "approved_by"),
      reason: row.override ? t("policies.override", { reason: row.override }) : row.reason,
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
    const shows = { at: moment, by: who, kind: (kind) => named("kinds", kind), said: long };
    this.table = new DataTable({
      name: "records",
      caption: t("records.caption"),
      columns: columns("records", ["number", "at", "kind", "about", "by", "said"], { shows, numbers: ["number"] }),
      open: true,
    });
    this.element = card("records", {}, this.table.element);
  }

  update(rows) {
    this.table.update(rows.map((row) => ({ ...row, about: row.name, said: saidRecord(row) })));
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
      const facts = { entries: count(found.entries), problems: count(found.problems.length), head: found.head };
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

class Statements {
  constructor() {
    this.user = h("input", { id: "statement-user", required: true, autocomplete: "off", autocapitalize: "off", spellcheck: "false" });
    this.said = h("p", { class: "small", role: "status", id: "statements-said" });
    const form = h(
      "form", { id: "statement", class: "field", autocomplete: "off" },
      h("label", { for: "statement-user" }, t("statements.user")), this.user, h("button", {}, t("statements.make")),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.make(this.user.value);
    });
    this.element = card("statements", {}, form, this.said);
  }

  /** Save the statement of a user as a file. The name is in the body, so that no log on the way contains it. */
  async make(user) {
    this.said.textContent = t("statements.making");
    try {
      const page = await ask(`/v1/users:statement?lang=${LANGUAGE}`, { method: "POST", body: { user }, accept: "text/html" });
      const file = `ldp-budget-statement-${today()}.html`;
      save(file, page, "text/html");
      this.said.textContent = t("statements.made", { user, file });
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      this.said.textContent = problem.message;
    }
  }
}

// -- the page ----------------------------------------------------------------------------------------------------------

let parts;

function build(renew) {
  const status = h("p", { class: "muted small", role: "status" });
  parts = { status, counts: new Counts(), proposals: new Proposals(renew), policies: new Policies(), verification: new Verification(renew), statements: new Statements(), keys: new Keys(), records: new Records() };
  const head = h("div", { class: "page-head" }, h("h1", {}, t("officer.title")), status);
  const cards = ["proposals", "policies", "statements", "verification", "keys", "records"].map((name) => parts[name].element);
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
