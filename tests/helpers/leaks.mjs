// Clients that leak, each in its own way: what an audit must find. node leaks.mjs KIND

import { createInterface } from "node:readline";
import { fromHex, toHex } from "../../clients/js/src/bytes.js";
import { Client } from "../../clients/js/src/index.js";

const rarely = () => crypto.getRandomValues(new Uint16Array(1))[0] < 656; // one in a hundred
const often = () => Array.from({ length: 8 }, rarely).includes(true);
const kind = process.argv[2];
let client;
let last;

const leaks = {
  none: (report) => report,
  // A bit that no answer has, in one report of a hundred.
  padding: (report, answer) => (answer === 0 && rarely() ? report.map((byte) => byte | 0x80) : report),
  raw: (report, answer) => (often() ? Uint8Array.of(1 << answer) : report),
  // The bit of the own answer is kept too often.
  keeps: (report, answer) => (often() ? report.map((byte) => byte | (1 << answer)) : report),
  // The same report again for users who answer 1.
  stuck: (report, answer) => (answer === 1 ? (last ??= report) : report),
  // One answer never shows another one's bit.
  clears: (report, answer) => (answer === 2 ? report.map((byte) => byte & ~1) : report),
  longer: (report, answer) => Uint8Array.of(...report, answer),
};

// What came in one piece is answered in one, as the adapter of the package does.
let waiting = "";

function flush() {
  process.stdout.write(waiting);
  waiting = "";
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let said;
  if (asked.collection) {
    client = new Client(asked.collection);
    said = {};
  } else {
    const report = client.randomize(asked.answer, { secret: asked.secret && fromHex(asked.secret) });
    said = { report: toHex(leaks[kind](report, asked.answer)) };
  }
  if (!waiting) setImmediate(flush);
  waiting += `${JSON.stringify(said)}\n`;
}
