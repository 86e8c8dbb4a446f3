/* The dashboard: statistics of the ledger, updated while the page is visible. */

import { bars, columns, drawn, intervals, span, swatch, trend } from "./charts.js";
import { ask, byId, count, date, h, LANGUAGE, moment, named, percent, Problem, run, share, t } from "./office.js";
import { DataTable } from "./tables.js";

const SPANS = [7, 30, 90, 365];
const NEAR = 80;
const LIMITS = ["lifetime", "month", "week", "day", "plan", "several", "other"];
const MOST_TRENDS = 6;

const amount = (value) => (value && value < 1e-3 ? value.toExponential() : String(value));
const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
const texts = (about) => ({ ...about, ...(about?.languages?.[LANGUAGE] ?? {}) });
const time = () => new Date().toISOString().slice(11, 16);

/** A card with a heading, a note and controls. */
function card(name, { half = false, controls = null, note = true } = {}, ...children) {
  const heading = h("h2", { id: `${name}-title` }, t(`${name}.title`));
  const head = h("div", {}, heading, note ? h("p", { class: "muted small" }, t(`${name}.note`)) : null);
  const attributes = { class: half ? "card half" : "card", id: name, "aria-labelledby": `${name}-title` };
  return h("section", attributes, h("div", { class: "card-head" }, head, controls), children);
}

/** Draw into a figure, or say in its place what it will show. */
function drawnOr(figure, none, draw) {
  figure.hidden = Boolean(none);
  figure.empty ??= figure.insertAdjacentElement("afterend", h("p", { class: "empty muted" }));
  figure.empty.hidden = !none;
  figure.empty.textContent = none ?? "";
  if (!none) drawn(figure, draw);
}

// -- the numbers at the top ------------------------------------------------------------------------------------------

class Figures {
  constructor() {
    this.element = h("dl", { class: "figures", "aria-label": t("figures.label") });
  }

  update({ totals, recent, ledger }, limits) {
    const near = nearest(limits);
    const verified = ledger.verified;
    const cells = [
      ["users", count(totals.users), t("figures.users_note", { erased: count(totals.erased) })],
      ["charged", count(recent.charges), t("figures.charged_note", { charges: count(totals.charges), reports: count(totals.reports) })],
      ["refused", count(recent.refused), t("figures.refused_note", { share: share(recent.refused, recent.charges + recent.refused) })],
      near
        ? ["near", count(near.near), t("figures.near_note", { left: 100 - NEAR, limit: limitName(near) })]
        : ["near", "0", t("figures.near_none", { used: NEAR })],
      verified
        ? ["verified", t(verified.ok ? "figures.verified_ok" : "figures.verified_bad"), t("figures.verified_note", { time: moment(verified.at) }), verified.ok ? "good" : "bad"]
        : ["verified", t("figures.verified_never"), t("figures.verified_hint"), "muted"],
    ];
    this.element.replaceChildren(...cells.map(([name, number, note, look]) =>
      h("div", { "data-figure": name }, h("dt", {}, t(`figures.${name}`)), h("dd", { class: `number ${look ?? ""}` }, number), h("dd", { class: "note" }, note)),
    ));
  }
}

const usedAtLeast = (limit, percent) => sum(limit.used.slice(percent));
const limitName = (limit) => `${limit.policy} · ${limit.scope ? `${limit.scope} · ` : ""}${named("limit", limit.period)}`;

/** The limit with the most users near it. */
function nearest(limits) {
  const rows = limits.map((limit) => ({ ...limit, near: usedAtLeast(limit, NEAR) })).filter((limit) => limit.near);
  return rows.sort((one, other) => other.near - one.near)[0];
}

// -- charges and refusals over time ----------------------------------------------------------------------------------

class Activity {
  constructor(chosen) {
    this.state = {};
    this.readout = h("p", { class: "readout muted", "aria-hidden": "true" });
    this.figure = h("figure");
    this.table = new DataTable({
      name: "activity",
      caption: t("activity.caption"),
      columns: [
        { key: "day", title: t("activity.day"), text: true },
        ...["users", "charges", "reports", "voided", "refused"].map((key) => ({ key, title: t(`activity.${key}`) })),
      ],
    });
    this.days = 30;
    const choices = SPANS.map((days) => {
      const input = h("input", { type: "radio", name: "span", value: days, checked: days === this.days, onchange: () => { this.days = days; chosen(); } });
      return h("label", {}, input, t("activity.days", { days }));
    });
    const controls = h("fieldset", { class: "choices" }, h("legend", { class: "visually-hidden" }, t("activity.span")), choices);
    this.element = card("activity", { controls }, this.readout, this.figure, this.table.element);
  }

  update(rows) {
    if (rows.length !== this.rows?.length) this.state.at = undefined;
    this.rows = rows;
    const say = (at) => {
      const row = rows[at];
      const said = t("activity.say", { day: date(row.day), users: count(row.users), charges: count(row.charges), reports: count(row.reports) });
      return row.voided ? said + t("activity.say_voided", { voided: count(row.voided) }) : said;
    };
    const none = sum(rows.map((row) => row.users)) ? null : t("activity.none");
    this.readout.hidden = Boolean(none);
    drawnOr(this.figure, none, bars({
      days: rows.map((row) => row.day),
      unit: t("activity.unit"),
      series: [{ class: "charged", values: rows.map((row) => row.users) }],
      label: t("activity.label"),
      say,
      state: this.state,
      choose: (at) => { this.readout.textContent = say(at); },
    }));
    this.table.update(rows.toReversed());
  }
}

const limitClass = (limit) => (limit.includes(" and ") ? "several" : LIMITS.includes(limit) ? limit : "other");

class Refusals {
  constructor() {
    this.state = {};
    this.readout = h("p", { class: "readout muted", "aria-hidden": "true" });
    this.figure = h("figure");
    this.legend = h("ul", { class: "legend" });
    this.truth = h("p", { class: "small muted" });
    this.table = new DataTable({
      name: "refusals",
      caption: t("refusals.caption"),
      columns: [
        { key: "day", title: t("refusals.day"), text: true },
        { key: "policy", title: t("refusals.policy"), text: true },
        { key: "limit", title: t("refusals.limit"), text: true },
        { key: "refused", title: t("refusals.refused") },
      ],
    });
    this.element = card("refusals", {}, this.legend, this.readout, this.figure, this.table.element, this.truth);
  }

  update(rows, days, { totals, seen }) {
    if (days.length !== this.days?.length) this.state.at = undefined;
    this.days = days;
    const place = new Map(days.map((day, at) => [day, at]));
    const values = new Map(LIMITS.map((name) => [name, days.map(() => 0)]));
    for (const row of rows) if (place.has(row.day)) values.get(limitClass(row.limit))[place.get(row.day)] += row.refused;
    const series = LIMITS.filter((name) => sum(values.get(name))).map((name) => ({ class: name, values: values.get(name) }));
    const say = (at) => {
      const parts = series.filter((each) => each.values[at]).map((each) => `${t(`limit.${each.class}`)} ${count(each.values[at])}`);
      const refused = count(sum(series.map((each) => each.values[at])));
      return parts.length ? `${t("refusals.say", { day: date(days[at]), refused })} (${parts.join(", ")})` : t("refusals.say_none", { day: date(days[at]) });
    };
    const none = series.length ? null : t("refusals.none");
    this.readout.hidden = Boolean(none);
    drawnOr(this.figure, none, bars({
      days,
      series,
      unit: t("refusals.unit"),
      label: t("refusals.label"),
      say,
      state: this.state,
      choose: (at) => { this.readout.textContent = say(at); },
    }));
    this.legend.replaceChildren(...series.map((each) => h("li", {}, swatch(each.class), `${t(`limit.${each.class}`)}: ${count(sum(each.values))}`)));
    this.table.update(rows.toReversed());
    const told = [t("refusals.truth")];
    if (totals.refused_in_bulk) told.push(t("refusals.bulk", { count: count(totals.refused_in_bulk) }));
    told.push(t("refusals.seen", { count: count(seen.refused ?? 0) }));
    this.truth.textContent = told.join(" ");
  }
}

// -- what is left ------------------------------------------------------------------------------------------------------

/** Users by tenths of the remaining budget, from all to nothing. */
function bins(used) {
  const tenths = Array.from({ length: 10 }, (_, at) => ({ most: 100 - 10 * at, users: sum(used.slice(10 * at, 10 * at + 10)) }));
  return [...tenths, { most: 0, users: used[100] }];
}

class Limits {
  constructor() {
    this.select = h("select", { id: "policy", onchange: () => this.draw() });
    this.multiples = h("div", { class: "multiples" });
    this.figures = new Map();
    this.table = new DataTable({
      name: "limits",
      caption: t("limits.caption"),
      columns: [
        { key: "policy", title: t("limits.policy_column"), text: true },
        { key: "period", title: t("limits.period"), text: true },
        { key: "rule", title: t("limits.rule"), text: true },
        ...["epsilon", "delta"].map((key) => ({ key, title: t(`limits.${key}`), show: String })),
        ...["users", "half", "near", "none"].map((key) => ({ key, title: t(`limits.${key}`) })),
      ],
    });
    this.spread = new DataTable({
      name: "spread",
      caption: t("limits.spread_caption"),
      columns: [
        { key: "policy", title: t("limits.policy_column"), text: true },
        { key: "period", title: t("limits.period"), text: true },
        { key: "rule", title: t("limits.rule"), text: true },
        { key: "left", title: t("limits.left") },
        { key: "users", title: t("limits.users") },
      ],
    });
    const controls = h("div", { class: "field" }, h("label", { for: "policy" }, t("limits.policy")), this.select);
    const axis = h("p", { class: "small muted" }, t("limits.axis"));
    this.element = card("limits", { controls }, this.multiples, axis, this.table.element, this.spread.element);
  }

  update(limits) {
    const rows = limits.map((row) => ({ ...row, period: row.scope ? `${row.scope}:${row.period}` : row.period }));
    this.rows = rows;
    const policies = [...new Set(rows.map((row) => row.policy))];
    const chosen = policies.includes(this.select.value) ? this.select.value : policies.includes("default") ? "default" : policies[0];
    if (policies.join("\n") !== this.policies) {
      this.select.replaceChildren(...policies.map((policy) => h("option", { value: policy }, policy)));
      this.policies = policies.join("\n");
      this.select.value = chosen ?? "";
    }
    this.draw();
    this.table.update(rows.map((row) => ({ ...row, half: usedAtLeast(row, 50), near: usedAtLeast(row, NEAR), none: row.used[100] })));
    this.spread.update(rows.flatMap((row) => bins(row.used).map(({ most, users }) => ({ ...row, left: most, users }))));
  }

  draw() {
    const rows = this.rows.filter((row) => row.policy === this.select.value);
    const names = rows.map((row) => `${row.policy} ${row.period} ${row.rule}`);
    if (names.join("\n") !== this.names) {
      this.names = names.join("\n");
      this.figures = rows.map(() => ({ figure: h("figure"), title: h("h3"), note: h("p", { class: "small muted" }) }));
      this.multiples.replaceChildren(...this.figures.map(({ figure, title, note }) => {
        figure.append(h("figcaption", {}, title, note));
        return figure;
      }));
    }
    if (!rows.length) this.multiples.replaceChildren(h("p", { class: "muted" }, t("limits.no_policy")));
    rows.forEach((row, at) => {
      const { figure, title, note } = this.figures[at];
      const period = named("limit", row.period);
      title.textContent = t(row.delta ? "limits.limit_delta" : "limits.limit_title", {
        ...row,
        ...{ period: period[0].toUpperCase() + period.slice(1), epsilon: amount(row.epsilon), delta: amount(row.delta) },
      });
      const counts = { near: count(usedAtLeast(row, NEAR)), users: count(row.users), left: 100 - NEAR, none: count(row.used[100]) };
      note.textContent = t("limits.limit_note", counts);
      const label = `${t("limits.label", { period })}: ${note.textContent}`;
      const shown = bins(row.used).map(({ most, users }) => ({
        label: String(most),
        value: users,
        class: most === 0 ? "level-2" : most <= 100 - NEAR ? "level-1" : "level-0",
        say: t("limits.say", { users: count(users), left: most ? t("limits.left_some", { most }) : t("limits.left_none") }),
      }));
      drawn(figure, columns({ bins: shown, label, unit: t("limits.unit") }));
    });
  }
}

// -- collections -------------------------------------------------------------------------------------------------------

const plain = (value) => String(Number(value.toPrecision(3)));

/** A round with the interval of each share, or of the mean, which is an answer without a name. */
function withAnswers({ round, reports, answers, mean, low, high }) {
  const shown = answers
    ? answers.map((each) => ({ answer: each.answer, count: each.count, raw: each.raw_count ?? null, share: each.share, mean: null, low: each.share_low, high: each.share_high }))
    : [{ answer: null, count: null, raw: null, share: null, mean, low, high }];
  return { round, reports, answers: shown };
}

const rows = (rounds) => rounds.flatMap(({ round, reports, answers }) => answers.map((answer) => ({ round, reports, ...answer })));
const short = (value) => (value === null ? "–" : String(Number(value.toPrecision(5))));

/** What can be chosen: a collection, or each question of a survey, with the texts as the respondents see them. */
function questionsOf(definition) {
  const { name, survey } = definition;
  if (!survey) return [{ ...definition, value: name }];
  return survey.questions.map((question) => {
    const tags = new Set([...Object.keys(survey.languages ?? {}), ...Object.keys(question.languages ?? {})]);
    const languages = Object.fromEntries([...tags].map((tag) => {
      const { text, categories } = question.languages?.[tag] ?? {};
      const found = { title: survey.languages?.[tag]?.title, question: text, answers: categories };
      return [tag, Object.fromEntries(Object.entries(found).filter(([, said]) => said))];
    }));
    const about = { title: survey.title, question: question.text ?? question.name, languages };
    const categories = question.categories ?? (question.kind === "yes-no" ? ["yes", "no"] : null);
    return { name, value: `${name}\n${question.name}`, question: question.name, about, categories };
  });
}

class Collections {
  constructor(chosen) {
    this.select = h("select", { id: "collection", onchange: chosen });
    this.field = h("div", { class: "field" }, h("label", { for: "collection" }, t("collections.choose")), this.select);
    this.question = h("h3");
    this.invited = h("input", { id: "invited", type: "number", min: 1, step: 1, inputmode: "numeric", oninput: () => this.rate(true) });
    this.rateSaid = h("span", { role: "status" });
    const invited = h("div", { class: "field" }, h("label", { for: "invited" }, t("collections.invited")), this.invited);
    this.response = h("div", { class: "response small muted" }, invited, this.rateSaid);
    this.figure = h("figure", { class: "results" });
    this.caption = h("figcaption", { class: "small muted" });
    this.trends = h("div", { class: "multiples" });
    this.said = h("p", { class: "muted" });
    this.table = new DataTable({
      name: "collections",
      caption: t("collections.caption"),
      columns: [
        { key: "collection", title: t("collections.choose"), text: true },
        { key: "round", title: t("collections.round"), text: true },
        { key: "reports", title: t("collections.reports") },
        { key: "answer", title: t("collections.answer"), text: true },
        ...["count", "raw", "share", "mean", "low", "high"].map((key) => ({ key, title: t(`collections.${key}`), show: short })),
      ],
    });
    this.figure.append(this.caption);
    this.element = card("collections", { controls: this.field }, this.question, this.said, this.figure, this.response, this.trends, this.table.element);
  }

  /** Load the sealed rounds of the chosen collection. */
  async load() {
    const found = await ask("/v1/collections");
    this.offer(found.flatMap(questionsOf));
    return found.length ? this.rounds(this.select.value) : undefined;
  }

  update(row) {
    this.row = row;
    this.draw();
    const rounds = this.row?.rounds ?? [];
    const collection = this.row?.collection;
    this.table.update(rows(rounds).map((row) => ({ collection, ...row, answer: row.answer && this.answer(row.answer) })));
  }

  /** Offer the collections by their titles, in the language of the page. */
  offer(found) {
    const names = found.map((each) => each.value);
    if (names.join("\n") === this.names) return;
    this.definitions = new Map(found.map((each) => [each.value, each]));
    const chosen = this.select.value;
    this.select.replaceChildren(...found.map((each) =>
      h("option", { value: each.value }, each.question ? `${this.title(each.value)}: ${this.about(each.value).question}` : this.title(each.value))));
    this.names = names.join("\n");
    if (names.includes(chosen)) this.select.value = chosen;
    this.field.hidden = !names.length;
  }

  about(value) {
    return texts(this.definitions.get(value)?.about);
  }

  title(value) {
    const { title, question } = this.about(value);
    return title || (this.definitions.get(value).question ? null : question) || this.definitions.get(value).name;
  }

  /** An answer of the chosen collection, in the language of the page. */
  answer(answer) {
    const at = this.definitions.get(this.row.value)?.categories?.indexOf(answer) ?? -1;
    return this.about(this.row.value).answers?.[at] ?? answer;
  }

  /** Show the response rate of the newest round; the number of the invited people stays in this browser. */
  rate(typed = false) {
    const [key, answered] = [`ldp-budget-invited:${this.row.collection}`, this.row.rounds.at(-1).reports];
    if (typed) localStorage.setItem(key, this.invited.value);
    else if (document.activeElement !== this.invited) this.invited.value = localStorage.getItem(key) ?? "";
    const invited = Number(this.invited.value);
    const facts = { answered: count(answered), invited: count(invited), rate: share(answered, invited) };
    this.rateSaid.textContent = t(invited > 0 ? "collections.rate" : "collections.rate_hint", facts);
  }

  async rounds(value) {
    const { name: collection, question } = this.definitions.get(value);
    const path = `/v1/collections/${encodeURIComponent(collection)}/estimate`;
    try {
      const { rounds } = await ask(`${path}?by_round=true&consistent=true`);
      const own = question ? rounds.filter((round) => round[question].asked).map((round) => ({ ...round[question], round: round.round, reports: round.respondents })) : rounds;
      return { value, collection, rounds: own.map(withAnswers), failed: t("collections.unsealed") };
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.status === 401 || problem.status === 403) throw problem;
      return { value, collection, rounds: [], failed: problem.message };
    }
  }

  draw() {
    const row = this.row;
    const newest = row?.rounds.at(-1);
    this.figure.hidden = this.response.hidden = !newest;
    this.question.hidden = !row;
    this.question.textContent = row ? this.about(row.value).question || this.title(row.value) : "";
    this.said.hidden = Boolean(newest);
    this.said.textContent = row ? t("collections.failed", { why: row.failed ?? "" }) : t("collections.none");
    this.trends.replaceChildren();
    if (!newest) return;
    this.rate();
    const shares = newest.answers[0].share !== null;
    const [format, value] = shares ? [percent, (answer) => answer.share] : [plain, (answer) => answer.mean];
    const points = (answer, name) => ({ name, value: value(answer), low: answer.low, high: answer.high });
    this.caption.textContent = t("collections.latest", { collection: this.title(row.value), round: newest.round, reports: count(newest.reports) });
    const lines = newest.answers.map((answer) => {
      const point = points(answer, answer.answer === null ? t("collections.mean") : this.answer(answer.answer));
      return { ...point, say: t("collections.say", { answer: point.name, value: format(point.value), low: format(point.low), high: format(point.high) }) };
    });
    drawn(this.figure, intervals({ rows: lines, format, unit: t(shares ? "collections.unit_share" : "collections.unit_mean"), label: t("collections.label", { collection: this.title(row.value) }), ...(shares && { least: 0 }) }));
    if (row.rounds.length < 2) return;
    const all = row.rounds.flatMap((round) => round.answers).flatMap((answer) => [answer.low, answer.high, value(answer)]);
    const marks = span(Math.min(...all), Math.max(...all));
    const largest = newest.answers.toSorted((one, other) => value(other) - value(one)).slice(0, MOST_TRENDS);
    for (const { answer } of largest) {
      const title = answer === null ? t("collections.mean") : this.answer(answer);
      const figure = h("figure", {}, h("figcaption", {}, h("h3", {}, title)));
      this.trends.append(figure);
      const course = row.rounds.map((round) => {
        const found = round.answers.find((each) => each.answer === answer);
        return found ? points(found, round.round) : { name: round.round };
      });
      drawn(figure, trend({ points: course, label: t("collections.trend_label", { answer: title }), format, marks }));
    }
  }
}

// -- mechanisms and the ledger -----------------------------------------------------------------------------------------

const LEVEL_LOOKS = { exact: "badge good", audited: "badge warn", no: "badge bad" };

/** A declared value; of questions their names. */
const declared = (value) => (Array.isArray(value) ? value.map((each) => each?.name ?? JSON.stringify(each)).join(" ") : value);

class Mechanisms {
  constructor() {
    this.table = new DataTable({
      name: "mechanisms",
      caption: t("mechanisms.caption"),
      none: t("mechanisms.none"),
      open: true,
      columns: [
        { key: "mechanism", title: t("mechanisms.mechanism"), text: true },
        { key: "checked", title: t("mechanisms.checked"), text: true, show: (level) => h("span", { class: LEVEL_LOOKS[level] }, named("mechanisms", level)) },
        { key: "collection", title: t("mechanisms.collection"), text: true },
        { key: "declared", title: t("mechanisms.declared"), text: true, show: (declared) => h("span", { class: "mono" }, declared) },
        { key: "charges", title: t("mechanisms.charges") },
        { key: "reports", title: t("mechanisms.reports") },
        { key: "last", title: t("mechanisms.last"), text: true, show: moment },
      ],
    });
    this.element = card("mechanisms", {}, this.table.element);
  }

  update(rows) {
    this.table.update(rows.map((row) => ({ ...row, declared: Object.entries(JSON.parse(row.declared)).map(([name, value]) => `${name} = ${declared(value)}`).join(", ") })));
  }
}

class Ledger {
  constructor() {
    this.table = new DataTable({
      name: "ledger",
      caption: t("ledger.caption"),
      open: true,
      columns: [
        { key: "fact", title: t("ledger.fact"), text: true },
        { key: "value", title: t("ledger.value"), text: true, show: (value, row) => h("span", { class: row.look ?? "" }, String(value)) },
      ],
    });
    const copy = h("button", { type: "button", class: "quiet" }, t("ledger.copy"));
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(this.head);
      copy.textContent = t("ledger.copied");
    });
    this.copy = copy;
    this.element = card("ledger", { controls: copy }, this.table.element);
  }

  update({ ledger }) {
    const { verified } = ledger;
    const facts = { time: moment(verified?.at), entries: verified && count(verified.entries), problems: verified?.problems };
    const said = verified ? t(verified.ok ? "ledger.verified_ok" : "ledger.verified_bad", facts) : t("ledger.verified_never");
    if (this.head !== ledger.head) this.copy.textContent = t("ledger.copy");
    this.head = ledger.head;
    this.copy.hidden = !ledger.head;
    this.table.update([
      { fact: t("ledger.head"), value: ledger.head ?? t("ledger.head_none"), look: "mono" },
      { fact: t("ledger.verified"), value: said, look: verified ? (verified.ok ? "good" : "bad") : "muted" },
      { fact: t("ledger.entries"), value: ledger.entries },
      { fact: t("ledger.last"), value: moment(ledger.last_entry_at) },
      { fact: t("ledger.partitions"), value: ledger.partitions },
    ]);
  }
}

// -- the page ----------------------------------------------------------------------------------------------------------

let parts;

function build(renew) {
  const status = h("p", { class: "muted small", role: "status" });
  const sandbox = h("p", { class: "notice", hidden: true }, t("dashboard.sandbox"));
  parts = {
    ...{ status, sandbox, figures: new Figures(), activity: new Activity(renew), refusals: new Refusals() },
    ...{ limits: new Limits(), collections: new Collections(renew), mechanisms: new Mechanisms(), ledger: new Ledger() },
  };
  const head = h("div", { class: "page-head" }, h("h1", {}, t("dashboard.title")), status);
  const cards = ["collections", "activity", "refusals", "limits", "mechanisms", "ledger"].map((name) => parts[name].element);
  byId("content").replaceChildren(head, sandbox, parts.figures.element, h("div", { class: "cards" }, cards));
}

async function load() {
  const days = parts.activity.days;
  const summary = await ask("/v1/overview");
  const paths = [`activity?days=${days}`, `refusals?days=${days}`, "limits", "mechanisms"];
  const rows = await Promise.all(paths.map(async (path) => (await ask(`/v1/overview/${path}`)).rows));
  return { summary, rows, collection: await parts.collections.load() };
}

function show({ summary, rows: [activity, refusals, limits, mechanisms], collection }) {
  parts.figures.update(summary, limits);
  parts.activity.update(activity);
  parts.refusals.update(refusals, activity.map((row) => row.day), summary);
  parts.limits.update(limits);
  parts.collections.update(collection);
  parts.mechanisms.update(mechanisms);
  parts.ledger.update(summary);
  parts.sandbox.hidden = !summary.ledger.sandbox;
  parts.asOf = time();
  parts.status.textContent = t("dashboard.as_of", { time: parts.asOf });
  document.documentElement.dataset.ready = "true";
}

function stale(problem) {
  parts.status.textContent = t("dashboard.stale", { time: parts.asOf ?? "–", why: problem.message });
}

await run({ first: "/v1/overview", build, load, show, stale });
