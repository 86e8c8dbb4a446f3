#!/usr/bin/env node
// For `ldp-budget audit COLLECTION --client`: lines of JSON on pipes. First {"collection": definition}, to which nothing is
// said, then for each {"answer": …, "secret": hex?} one {"report": hex}; what goes wrong is {"error": …}.

import { createInterface } from "node:readline";
import { fromHex, toHex } from "./bytes.js";
import { Client } from "./index.js";

/** @type {Client | undefined} */
let client;

/** @param {any} asked */
function answered(asked) {
  if (asked.collection) {
    client = new Client(asked.collection);
    return undefined;
  }
  if (!client) throw new TypeError("the first line names the collection");
  const secret = asked.secret === undefined ? undefined : fromHex(asked.secret);
  return { report: toHex(client.randomize(asked.answer, { secret })) };
}

let waiting = "";

function flush() {
  process.stdout.write(waiting);
  waiting = "";
}

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    said = answered(JSON.parse(line));
  } catch (error) {
    said = { error: error instanceof Error ? error.message : `${error}` };
  }
  if (!said) continue;
  // What came in one piece is answered in one: a write of its own for each line takes longer than the report.
  if (!waiting) setImmediate(flush);
  waiting += `${JSON.stringify(said)}\n`;
}
