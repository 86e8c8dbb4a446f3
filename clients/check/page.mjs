// -- the page: it reads the chosen files and shows in plain words what is proved, and what is not

const element = (id) => document.getElementById(id);
const files = new Map();
let texts = TEXTS.en;

const say = (name, values = {}) => texts[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
// The reason of a refusal in the language of the page; `{}` is a part of it. A reason without a translation stays as it is.
const reasonOf = (message) => {
  for (const [english, own] of Object.entries(texts.reasons)) {
    const [before, after] = english.split("{}");
    if (after === undefined ? message !== english : !message.startsWith(before) || !message.endsWith(after)) continue;
    const part = after === undefined ? "" : message.slice(before.length, message.length - after.length);
    return own.replace("{}", () => texts.reasons[part] ?? part);
  }
  return message;
};
const show = (language) => {
  texts = TEXTS[language];
  document.documentElement.lang = language;
  document.title = texts.title;
  for (const each of document.querySelectorAll("[data-text]")) each.textContent = texts[each.dataset.text];
  element("result").replaceChildren();
};
const listed = (kind, lines) => {
  const list = document.createElement("ul");
  list.className = kind;
  list.append(...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
  return list;
};
const paragraph = (text, kind = "") => Object.assign(document.createElement("p"), { textContent: text, className: kind });

const PUBLISHED = /^(checkpoint|client\.json|charges\.bin|reports\.bin|tile\/.+)$/;
// The folder is where the file `checkpoint` is.
const keep = async (chosen) => {
  files.clear();
  const checkpoint = chosen.find(([path]) => path === "checkpoint" || path.endsWith("/checkpoint"));
  const base = checkpoint ? checkpoint[0].slice(0, -"checkpoint".length) : "";
  for (const [path, file] of chosen) {
    if (path.startsWith(base) && PUBLISHED.test(path.slice(base.length))) files.set(path.slice(base.length), new Uint8Array(await file.arrayBuffer()));
  }
  element("count").textContent = files.size ? `${files.size}` : "";
};
const entriesIn = async (entry, path = entry.name) => {
  if (entry.isFile) return [[path, await new Promise((done, fail) => entry.file(done, fail))]];
  const reader = entry.createReader(), found = [];
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!some.length) return found;
    for (const each of some) found.push(...(await entriesIn(each, `${path}/${each.name}`)));
  }
};
const dataOf = async (id) => Promise.all([...element(id).files].map(async (file) => new Uint8Array(await file.arrayBuffer())));

// The name of an answer as the checkers know it, and as the page's language has it.
const answerNames = ({ client, names }) => {
  const own = client.languages?.[document.documentElement.lang]?.answers;
  const translated = Array.isArray(own) && own.length === names.length && own.every((each) => typeof each === "string");
  return names.map((name, answer) => (translated && own[answer] !== name ? `${quoted(name)} (${quoted(own[answer])})` : quoted(name)));
};
const proved = (found, keys) => {
  const { statement, mine, reportsPublished, kept, unchecked, notGiven, witnesses, statements, ofThisSurvey } = found;
  const { estimate, measure } = statement;
  const share = Number((100 * statement.maximum) / statement.limit).toPrecision(4).replace(/\.?0+$/, "");
  const figures = { ...statement, share, limit: amount(statement.limit, measure), maximum: amount(statement.maximum, measure) };
  const lines = [say("signed", { time: statement.time, names: keys[0].split("+")[0] })];
  for (const [name, when] of witnesses) lines.push(say("witnessed", { name, time: `${new Date(1000 * when).toISOString().slice(0, 19)}Z` }));
  lines.push(say("history", { mine: ofThisSurvey, all: statements }));
  if (kept !== null) lines.push(say("program.yes", { epsilon: plain(kept) }));
  lines.push(`${say("charges", figures)}${mine ? ` ${say("charges.yours", { cost: amount(mine.cost, measure) })}` : ""}`);
  if (mine) lines.push(say("limit.promised", figures), say("totals.yours", { total: amount(mine.total, measure) }));
  if (mine && reportsPublished) lines.push(say("reports.yours", figures));
  const open = mine ? [] : [say("limit.stated", figures)];
  open.push(say("totals", figures));
  if (unchecked.includes("program")) open.push(say("program.no"));
  if (unchecked.includes("cost")) open.push(say("cost.no"));
  if (!reportsPublished) open.push(say("reports.hidden"));
  for (const part of notGiven) open.push(say(`missing.${part}`));
  if (estimate === null) return [lines, [...open, say("estimate.no")]];
  const answers = answerNames(found);
  const tenths = (count) => `${count < 0 && Math.abs(count) >= 50 ? "-" : ""}${Math.floor((Math.abs(count) + 50) / 100) / 10}`;
  const counts = estimate.counts.map((count, answer) => `${answers[answer]} ${tenths(count)}`).join(", ");
  lines.push(say("estimate", { counts }));
  lines.push(say("fakes", { fakes: estimate.fakes, first: answers[estimate.first], second: answers[estimate.second] }));
  return [lines, open];
};
const run = async () => {
  const keys = element("key").value.split(/\s+/).filter(Boolean), result = element("result");
  if (!files.size || !keys.length) return result.replaceChildren(paragraph(say("missing")));
  result.replaceChildren(paragraph(say("working")));
  try {
    const receipts = await dataOf("receipt");
    const [proof = null] = await dataOf("proof"), [seen = null] = await dataOf("seen");
    const [lines, open] = proved(await check(files, keys, receipts, proof, seen), keys);
    result.replaceChildren(listed("proved", lines), listed("open", open));
  } catch (error) {
    const message = error instanceof Refused ? error.message : "a file is missing or malformed";
    const reason = paragraph(`${say("reason")}: ${plain(reasonOf(message), 500)}`, "refused");
    result.replaceChildren(paragraph(say("refused"), "refused"), reason);
  }
};

for (const [language, its] of Object.entries(TEXTS)) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: its.language, lang: language });
  button.onclick = () => show(language);
  element("languages").append(button);
}
show(navigator.languages.map((tag) => tag.split("-")[0]).find((tag) => tag in TEXTS) ?? "en");
element("folder").onchange = (event) => keep([...event.target.files].map((file) => [file.webkitRelativePath || file.name, file]));
document.body.ondragover = (event) => event.preventDefault();
document.body.ondrop = async (event) => {
  event.preventDefault();
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
  await keep((await Promise.all(entries.map((entry) => entriesIn(entry)))).flat());
};
element("form").onsubmit = (event) => { event.preventDefault(); run(); };
