#!/usr/bin/env node
// For `ldp-budget audit COLLECTION --client`: lines of JSON on pipes. First {"collection": definition}, to which nothing is
// said, then for each {"answer": …, "secret": hex?} one {"report": hex}; what goes wrong is {"error": …}. With `stream`, a
// report is drawn from these bytes, and exactly these, and `label` is said too; `own` is the secret of the collection, in place of the device's.

import { createInterface } from "node:readline";
import { fromHex, toHex } from "./bytes.js";
import { Draws } from "./draws.js";
import { Client, parseDefinition } from "./index.js";

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
  const answer = answerOf(asked.answer, client.definition);
  if (asked.stream === undefined) return { report: toHex(client.randomize(answer, { secret })) };
  const bytes = fromHex(asked.stream);
  let at = 0;
  const draws = new Draws((count) => {
    if (at + count > bytes.length) throw new RangeError("the recorded stream has no more bytes");
    return bytes.subarray(at, (at += count));
  });
  const own = asked.own === undefined ? client.within(secret) : fromHex(asked.own);
  const report = client.program.run(client.numbered(answer), { secret: own, draws });
  if (at < bytes.length) throw new RangeError(`${bytes.length - at} bytes of the stream were not read`);
  return { report: toHex(report), ...(client.memoises && secret ? { label: client.label(answer, secret) } : {}) };
}

/** A line of JSON has a number beyond 2**53 - 1 as a text. @param {any} answer @param {any} definition */
function answerOf(answer, { answers, input }) {
  const wide = answers === null && input.kind === "answer" && !input.text && /^[0-9]{16,}$/.test(answer);
  return wide ? BigInt(answer) : answer;
}

let waiting = "";

function flush() {
  process.stdout.write(waiting);
  waiting = "";
}

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    const names = line.startsWith('{"collection"');
    if (names) client = undefined; // also where the text is refused
    said = answered(names ? parseDefinition(line) : JSON.parse(line));
  } catch (error) {
    said = { error: error instanceof Error ? error.message : `${error}` };
  }
  if (!said) continue;
  // What came in one piece is answered in one: a write of its own for each line takes longer than the report.
  if (!waiting) setImmediate(flush);
  waiting += `${JSON.stringify(said)}\n`;
}
