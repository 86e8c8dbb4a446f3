// The vectors of clients/vectors/devices.json, for Node and browsers: digests, answers, labels, amounts, and the device budget.

import { DeviceBudget, unitsOf } from "../src/budget.js";
import { fromHex, toHex } from "../src/bytes.js";
import { Draws } from "../src/draws.js";
import { Client, parseDefinition } from "../src/index.js";
import { Outbox } from "../src/outbox.js";

/** @type {(act: () => any) => any} what it returns, or `undefined` where it refuses */
function tried(act) {
  try {
    return act();
  } catch {
    return undefined;
  }
}

/** @param {Client} client @param {any} row */
function answered(client, { answer, secret, stream }) {
  const bytes = fromHex(stream);
  let at = 0;
  const draws = new Draws((count) => {
    if (at + count > bytes.length) throw new RangeError("more is read than was recorded");
    return bytes.subarray(at, (at += count));
  });
  const own = client.within(fromHex(secret));
  const report = toHex(client.program.run(client.numbered(answer), { secret: own, draws }));
  if (at < bytes.length) throw new RangeError("not all is read");
  return { report, label: client.label(answer, fromHex(secret)) };
}

/**
 * What a device does in a scenario, in a storage that is opened again for each event.
 * @param {any} scenario @param {any} definitions @param {IDBFactory} indexedDB @returns {AsyncGenerator<string>} what differs
 */
async function* played({ name, events }, definitions, indexedDB) {
  let limits;
  for (const [place, event] of events.entries()) {
    limits = event.open ?? limits;
    const now = () => new Date(event.now ?? "2026-11-21T00:00:00Z");
    const budget = await DeviceBudget.open(limits, { name, now, indexedDB });
    const outbox = new Outbox(budget);
    if (event.draw) {
      const key = event.key ?? `event ${place}`;
      const before = await outbox.entry(key);
      let says = "refused";
      try {
        const entry = await outbox.draw(key, new Client(definitions[event.draw]), event.answer);
        says = before ? (toHex(entry.report) === toHex(before.report) ? "again" : "another report") : "drawn";
      } catch (error) {
        if (error.name === "OverBudget") says = "over";
      }
      if (says !== event.says) yield `${name} ${place}: ${says}, and not ${event.says}`;
    }
    const { spent } = (await budget.state()).spent ? { spent: (await budget.state()).spent.lifetime } : { spent: undefined };
    if (spent !== event.spent) yield `${name} ${place}: ${spent} units spent, and not ${event.spent}`;
    budget.close();
  }
}

/**
 * @param {any} vectors @param {IDBFactory} indexedDB
 * @returns {Promise<{ count: number, wrong: string[] }>}
 */
export async function tryDevices({ digests, answers, amounts, definitions, budgets }, indexedDB) {
  const wrong = [];
  let count = 0;
  /** @type {(what: any, found: any, expected: any) => void} */
  const same = (what, found, expected) => {
    count++;
    if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push(`${JSON.stringify(what)}: got ${JSON.stringify(found)}`);
  };
  for (const { name, text, digest } of digests) {
    same(name, tried(() => new Client(parseDefinition(text), { digest }).definition.digest), digest);
    same(`${name}, pinned`, tried(() => !new Client(parseDefinition(text), { digest: "0".repeat(64) })), undefined);
  }
  for (const { definition, rows } of answers) {
    const client = new Client(definition);
    for (const row of rows) same([definition.name, row.answer], tried(() => answered(client, row)), row.refused ? undefined : { report: row.report, label: row.label });
  }
  for (const { text, down, up } of amounts) {
    same(text, [false, true].map((way) => tried(() => unitsOf(text, way)) ?? null), [down, up]);
  }
  for (const scenario of budgets) {
    count += scenario.events.length;
    for await (const each of played(scenario, definitions, indexedDB)) wrong.push(each);
  }
  return { count, wrong };
}
