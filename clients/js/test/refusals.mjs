// The vectors of refusals: what no client may load, what no checker may confirm, and runs that must fail.
//
//     node test/refusals.mjs ../vectors/refusals.json

import { readFileSync } from "node:fs";
import { Draws } from "../src/draws.js";
import { Client, parseDefinition } from "../src/index.js";
import { confirmLoss } from "../src/loss.js";
import { Program, secretWithin } from "../src/program.js";

const { forms, guarantees, leaks, failures } = JSON.parse(readFileSync(process.argv[2], "utf8"));
let count = 0;

/** @type {(name: string, what: string, act: () => void) => void} */
function refused(name, what, act) {
  count++;
  try {
    act();
  } catch {
    return;
  }
  process.exitCode = 1;
  console.log(`${name}: ${what}`);
}

for (const { name, text } of forms) {
  refused(name, "was loaded", () => new Client(parseDefinition(text)));
  if (name !== "another digest") refused(name, "was confirmed", () => confirmLoss(parseDefinition(text)));
}
for (const { name, definition } of [...guarantees, ...leaks]) {
  refused(name, "was confirmed", () => confirmLoss(definition));
}
for (const { name, definition } of guarantees) refused(name, "was loaded", () => new Client(definition));
for (const { definition } of leaks) new Client(definition); // its form is specified
for (const { name, definition, answer } of failures) {
  const draws = new Draws((length) => new Uint8Array(length).fill(255));
  refused(name, "was run", () => new Program(definition).run(answer, { secret: secretWithin(new Uint8Array(16), ""), draws }));
}
console.log(`${count} refusals`);
