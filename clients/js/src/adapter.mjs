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

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    said = answered(JSON.parse(line));
  } catch (error) {
    said = { error: error instanceof Error ? error.message : `${error}` };
  }
  if (said) process.stdout.write(`${JSON.stringify(said)}\n`);
}
