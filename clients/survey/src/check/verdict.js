// What was found, in sentences: a verdict, and lines that are proved, need attention (`warned`), or are `open`.

import { amount, plain, quoted } from "../../../check/check_books.mjs";
import { date, language, said, say, share } from "../texts.js";
import { intervals } from "./margins.js";

/** @typedef {import("../../../check/check_books.mjs").Found} Found */
/** @typedef {{ kind: "proved" | "warned" | "open", text: string, meaning: string, file?: string }} Line `file`: where it was read */

/** The most answers of the table, the most frequent ones. */
const MOST_ANSWERS = 20;

/** @param {Line["kind"]} kind @param {string} key @param {Record<string, any>} [values] @param {string} [file] @returns {Line} */
const line = (kind, key, values = {}, file) => ({ kind, text: say(key, values), meaning: say(`${key}.why`, values), file });

/**
 * The lines of a check.
 * @param {Found} found
 * @param {{ keys: string[], compared: "invitation" | "typed" | null, without?: string }} given `compared`: what the key was
 *   compared with; `without`: why there is no proof
 * @returns {Line[]}
 */
export function linesOf(found, { keys, compared, without }) {
  const { statement, mine, reportsPublished, kept, unchecked, notGiven, witnesses, statements, ofThisSurvey } = found;
  const { estimate, measure, charges, reports, accounts } = statement;
  const figures = { charges, reports, accounts, limit: amount(statement.limit, measure), maximum: amount(statement.maximum, measure) };
  const log = `tile/entries/${statements < 256 ? `000.p/${statements}` : "000"}`;
  const lines = [];
  if (mine) {
    lines.push(reportsPublished ? line("proved", "line.report", figures, "reports.bin") : line("warned", "line.hidden", figures));
    lines.push(line("proved", "line.charge", { cost: amount(mine.cost, measure), ...figures }, "charges.bin"));
  } else {
    lines.push(line("warned", said(`line.without.${without}`) ? `line.without.${without}` : "line.without.receipt"));
    lines.push(line("proved", "line.charges", figures, "charges.bin"));
  }
  lines.push(estimate === null ? line("warned", "line.noestimate") : line("proved", "line.estimate", figures, "reports.bin"));
  lines.push(kept === null ? line("warned", "line.noprogram", {}, "client.json") : line("proved", "line.program", { epsilon: plain(kept) }, "client.json"));
  if (unchecked.includes("cost")) lines.push(line("warned", "line.nocost"));
  if (mine) lines.push(line("proved", "line.promise", figures, log), line("proved", "line.total", { total: amount(mine.total, measure), ...figures }, log));
  lines.push(line(compared ? "proved" : "warned", `line.key.${compared ?? "alone"}`, { key: keys[0] }));
  lines.push(line("proved", "line.signed", { time: date(statement.time), name: plain(keys[0].split("+")[0]) }, "checkpoint"));
  lines.push(line("proved", "line.history", { all: statements, mine: ofThisSurvey }, log));
  for (const [name, when] of witnesses) lines.push(line("proved", "line.witness", { name: plain(name), time: date(new Date(1000 * when)) }, "checkpoint"));
  if (!mine) lines.push(line("open", "line.limit", figures, log));
  lines.push(line("open", "line.totals", { ...figures, share: share(statement.maximum / statement.limit) }, log));
  if (estimate !== null) {
    const [first, second] = [estimate.first, estimate.second].map((answer) => answerNamed(found, answer));
    lines.push(line("open", "line.fakes", { fakes: estimate.fakes, first, second }));
  }
  for (const part of ["witness", "seen"]) if (notGiven.includes(part)) lines.push(line("open", `line.no${part}`));
  return lines;
}

/** The verdict of a check. @param {Found} found @param {Line[]} lines */
export function verdictOf({ statement: { reports, estimate }, mine, reportsPublished }, lines) {
  const kind = mine ? (!reportsPublished ? "hidden" : estimate === null ? "counted" : "yours") : estimate === null ? "folder" : "estimate";
  const warned = lines.filter((each) => each.kind === "warned").length;
  return { kind: warned ? "warned" : "proved", text: say(`verdict.${kind}`, { reports }), next: warned ? say("verdict.warned", { count: warned }) : say("verdict.proved") };
}

/** The name of an answer, and in the language of the page where the definition has it. @param {Found} found @param {number} answer */
function answerNamed({ client, names }, answer) {
  const own = client.languages?.[language]?.answers;
  const translated = Array.isArray(own) && own.length === names.length && own.every((each) => typeof each === "string");
  return translated && own[answer] !== names[answer] ? `${quoted(own[answer])} (${quoted(names[answer])})` : quoted(names[answer]);
}

/**
 * The rows of the estimate: an answer, its estimated number of people, and the interval as shares.
 * @param {Found} found
 * @returns {{ rows: { name: string, share: number, low: number, high: number }[], more: number }}
 */
export function estimateOf(found) {
  const { client, statement } = found, { estimate, reports } = statement;
  if (estimate === null) return { rows: [], more: 0 };
  const counts = /** @type {number[]} */ (estimate.counts);
  const largest = counts.map((_, place) => place).sort((a, b) => counts[b] - counts[a]).slice(0, MOST_ANSWERS).sort((a, b) => a - b);
  const ends = intervals(client, statement, largest);
  const rows = largest.map((place, i) => ({ name: answerNamed(found, place), share: counts[place] / 1000 / reports, low: ends[i][0] / reports, high: ends[i][1] / reports }));
  return { rows, more: counts.length - rows.length };
}
