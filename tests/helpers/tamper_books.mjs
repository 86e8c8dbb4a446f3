// node tamper_books.mjs CHECKER SITE TIMES KEY… -- RECEIPT PROOF: random changes; prints how many were accepted.
import { readFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";

const [checker, site, times, ...rest] = process.argv.slice(2), split = rest.indexOf("--");
const keys = rest.slice(0, split), [receiptPath, proofPath] = rest.slice(split + 1);
const { check } = await import(pathToFileURL(checker).href);
let state = 12345;
const random = (below) => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return Math.floor((state / 2 ** 32) * below); };
const files = new Map();
for (const entry of readdirSync(site, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath ?? entry.path, entry.name);
  if (entry.isFile()) files.set(relative(site, path), new Uint8Array(readFileSync(path)));
}
const receipt = JSON.parse(readFileSync(receiptPath, "utf8")), proof = new Uint8Array(readFileSync(proofPath));
const accepts = async (changed, changedProof) => {
  try { await check(changed, keys, [receipt], changedProof); return true; } catch { return false; }
};
if (!(await accepts(files, proof))) throw new Error("the unchanged files are refused");
const names = [...files.keys(), "proof"], accepted = [];
for (let done = 0; done < Number(times); ) {
  const name = names[random(names.length)], data = name === "proof" ? proof : files.get(name), bytes = [...data];
  const place = random(bytes.length), kind = random(7);
  if (kind === 0) bytes[place] ^= 1 << random(8);
  else if (kind === 1) bytes[place] = random(256);
  else if (kind === 2) bytes.splice(place, 1);
  else if (kind === 3) bytes.splice(random(bytes.length + 1), 0, [random(256), 10, 32, bytes[place]][random(4)]);
  else if (kind === 4) bytes.length = place;
  else if (kind === 5) bytes.splice(place, 0, ...bytes.slice(Math.max(0, place - 1 - random(39)), place));
  else { const other = random(bytes.length); [bytes[place], bytes[other]] = [bytes[other], bytes[place]]; }
  const changed = Uint8Array.from(bytes);
  if (changed.length === data.length && changed.every((byte, i) => byte === data[i])) continue;
  done += 1;
  const all = name === "proof" ? files : new Map(files).set(name, changed);
  if (await accepts(all, name === "proof" ? changed : proof)) accepted.push([name, kind]);
}
console.log(JSON.stringify(accepted));
