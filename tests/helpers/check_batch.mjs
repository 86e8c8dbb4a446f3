// node check_batch.mjs totals|books CHECKERS CASES: the verdict on each case, null or what was proved, as JSON.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [kind, checkers, cases] = process.argv.slice(2), found = [];
const { check } = await import(pathToFileURL(join(checkers, kind === "totals" ? "check_total.mjs" : "check_books.mjs")).href);
const bytes = (text) => new Uint8Array(Buffer.from(text, "utf8"));
const decoded = (text) => new Uint8Array(Buffer.from(text, "base64"));
for (const each of JSON.parse(readFileSync(cases, "utf8"))) {
  try {
    if (kind === "totals") { found.push(check(decoded(each)).epsilon); continue; }
    const files = new Map(Object.entries(each.files).map(([name, text]) => [name, decoded(text)]));
    const { statement, unchecked } = await check(files, each.keys, each.receipts.map(bytes), each.proof === null ? null : bytes(each.proof));
    found.push([statement.maximum, unchecked]);
  } catch {
    found.push(null);
  }
}
console.log(JSON.stringify(found));
