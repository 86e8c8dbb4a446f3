/* Sentences about policies and administrative records, in the language of the page. */

import { count, moment, named, t } from "./office.js";

/** The parts of a limit such as `lifetime=4,1e-6,zcdp`. */
export function parsed(limit) {
  const [period, rest] = limit.split("=");
  const [epsilon, delta = "", rule = "basic"] = rest.split(",");
  return { period, epsilon, delta, rule };
}

/** The same as text, as the API takes it. */
export function written({ period, epsilon, delta, rule }) {
  const more = delta || rule !== "basic" ? [delta || "0", ...(rule === "basic" ? [] : [rule])] : [];
  return `${period}=${[epsilon, ...more].join(",")}`;
}

export const shownLimit = ({ period, epsilon, delta, rule }) =>
  `${named("limit", period)}: ε = ${epsilon}${delta && delta !== "0" ? `, δ = ${delta}` : ""} (${rule})`;

/** A limit as text, of a share with the name of the share first. */
function saidLimit(text) {
  const [, share, limit] = /^(?:(.*):)?([^:=]*=.*)$/.exec(text) ?? [null, null, text];
  return `${share ? `${share}: ` : ""}${shownLimit(parsed(limit))}`;
}

const FLAGS = ["checked", "unbounded", "relation", "plan"];

/** The limits and terms of a policy or proposal, line by line. */
export function saidTerms(terms) {
  const shares = Object.values(terms.shares ?? {}).flat();
  const zone = terms.zone && terms.zone !== "UTC" ? [t("policies.zone", { zone: terms.zone })] : [];
  return [...terms.limits, ...shares].map(saidLimit).concat(zone, FLAGS.filter((name) => terms[name]).map((name) => t(`policies.${name}`)));
}

// Why a change needs an approval, as the API says it.
const REASONS = {
  is_new: /^it is a new policy$/,
  drops: /^it drops the limit (.+)$/,
  raises: /^it raises the limit (.+) to (.+)$/,
  relation: /^it admits promises for other relations than/,
  unchecked: /^it admits mechanisms that were not checked$/,
  unbounded: /^it is unbounded$/,
  plan: /^it (?:has another plan, or none|counts other plans in addition to its own)$/,
  share: /^it has a new share, (.+)$/,
  zone: /^its days are those of (?:other rules of )?(.+), not of (.+)$/,
};

/** A reason why a change needs an approval; as the API says it if there is no sentence for it. */
export function saidReason(text) {
  for (const [name, pattern] of Object.entries(REASONS)) {
    const found = pattern.exec(text);
    if (!found) continue;
    const [one, other] = found.slice(1).map((part) => (part.includes("=") ? saidLimit(part) : part));
    return t(`why.${name}`, { one, other });
  }
  return text;
}

/** Members of a body of any kind, without the marks of JSON. */
function plain(value) {
  if (value === null || typeof value !== "object") return String(value ?? "–");
  if (Array.isArray(value)) return value.map(plain).join(", ");
  return Object.entries(value).map(([name, one]) => `${name}: ${plain(one)}`).join("; ");
}

function saidKey({ scopes, policies, collections, share, starts, expires, until }) {
  const bound = [...(policies ?? []), ...(collections ?? [])].join(", ");
  const parts = { bound, share, starts: starts && moment(starts), expires: expires && moment(expires), until: until && moment(until) };
  const more = Object.entries(parts).filter(([, value]) => value).map(([name, value]) => t(`said.key_${name}`, { value }));
  return [t("said.key", { scopes: scopes.join(", ") }), ...more].join(" ");
}

const SAID = {
  key: saidKey,
  "key-revoked": () => t("said.key-revoked"),
  "invitations-revoked": ({ user }) => t(user ? "said.invitations_of_one" : "said.invitations_of_all"),
  "approvals-demanded": ({ demanded }) => t(demanded ? "said.demanded" : "said.not_demanded"),
  proposed: ({ against, terms, reason }) => withReason(t("said.proposed", { version: against + 1, terms: saidTerms(terms).join("; ") }), reason),
  approved: ({ proposal }) => t("said.approved", { proposal }),
  withdrawn: ({ proposal }) => t("said.withdrawn", { proposal }),
  "approval-overridden": ({ version, reason }) => withReason(t("said.overridden", { version }), reason),
  acknowledged: ({ entries, reason }) => withReason(t("said.acknowledged", { entries: Object.keys(entries).join(", ") }), reason),
  verified: ({ ok, entries, problems, head }) => t(ok ? "said.verified" : "said.failed", { entries: count(entries), problems: count(problems), head }),
};

const withReason = (sentence, reason) => (reason ? `${sentence} ${t("said.reason", { reason })}` : sentence);

/** What an administrative record says, as a sentence. */
export function saidRecord({ kind, body, fault }) {
  if (fault) return t("said.fault", { fault });
  return SAID[kind]?.(body) ?? plain(body);
}
