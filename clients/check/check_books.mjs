// Check a survey that proves itself, in a browser or in Node.js: node check_books.mjs FOLDER --key VKEY
// [--receipt FILE --proof FILE] [--seen CHECKPOINT]. No library and no network; all decisions are made on integers.
// docs/reference/formats/publication.md specifies every file; check_books.py is the same checker in Python.

class Refused extends Error {}
const need = (condition, why) => { if (!condition) throw new Refused(why); };

// -- encodings: each value has one form, and everything read is encoded again and compared

const bytesOf = (text) => new TextEncoder().encode(text);
const textOf = (data) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
const hexOf = (data) => Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
const same = (a, b) => a.length === b.length && a.every((byte, place) => byte === b[place]);
const join = (...parts) => {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let place = 0;
  for (const part of parts) { all.set(part, place); place += part.length; }
  return all;
};
const bytesOfHex = (text, size) => {
  need(typeof text === "string" && /^([0-9a-f]{2})*$/.test(text), "hexadecimal digits in another form");
  need(size === undefined || text.length === 2 * size, "hexadecimal digits of another length");
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));
};
const bytesOfBase64 = (text) => {
  const data = atob(text);
  need(btoa(data) === text, "base64 in another form");
  return Uint8Array.from(data, (character) => character.charCodeAt(0));
};
const whole = (value, least = 0) => {
  need(Number.isSafeInteger(value) && value >= least, "a number is out of range");
  return value;
};
const eightBytes = (number) => {
  const data = new Uint8Array(8);
  new DataView(data.buffer).setBigUint64(0, BigInt(number));
  return data;
};
const quoted = (text) =>
  JSON.stringify(text).replace(/[\u007f-\uffff]/g, (each) => "\\u" + each.charCodeAt(0).toString(16).padStart(4, "0"));
const canonical = (value) => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return typeof value === "string" ? quoted(value) : String(value);
  return `{${Object.keys(value).sort().map((key) => `${quoted(key)}:${canonical(value[key])}`).join(",")}}`;
};
const readJson = (data, name) => {
  const value = JSON.parse(textOf(data));
  need(canonical(value) === textOf(data), `${name} is not canonical JSON`);
  return value;
};

// -- SHA-256 (FIPS 180-4). WebCrypto has it too, but asynchronously: too slow for many small hashes.

const rootsOfPrimes = (count, root) => {
  const found = [];
  for (let candidate = 2n; found.length < count; candidate++) {
    let prime = true;
    for (let factor = 2n; factor * factor <= candidate; factor++) prime &&= candidate % factor !== 0n;
    if (!prime) continue;
    let low = 0n, high = 1n << 40n;
    while (low < high) {
      const middle = (low + high + 1n) >> 1n;
      if (middle ** root <= candidate << (32n * root)) low = middle; else high = middle - 1n;
    }
    found.push(Number(low & 0xffffffffn));
  }
  return new Int32Array(found);
};
const ROUND = rootsOfPrimes(64, 3n), START = rootsOfPrimes(8, 2n), SCHEDULE = new Int32Array(64);
const rotated = (word, by) => (word >>> by) | (word << (32 - by));
const sha256 = (data) => {
  const padded = new Uint8Array((((data.length + 8) >> 6) + 1) << 6), view = new DataView(padded.buffer);
  padded.set(data);
  padded[data.length] = 128;
  view.setBigUint64(padded.length - 8, BigInt(data.length) * 8n);
  const state = START.slice(), w = SCHEDULE;
  for (let start = 0; start < padded.length; start += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getUint32(start + 4 * i);
    for (let i = 16; i < 64; i++) {
      const a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ (a >>> 3)) + w[i - 7] + (rotated(b, 17) ^ rotated(b, 19) ^ (b >>> 10));
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const t = (h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[i] + w[i]) | 0;
      const u = ((rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t) | 0, c, b, a, (t + u) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => { state[i] += word; });
  }
  const digest = new Uint8Array(32), out = new DataView(digest.buffer);
  state.forEach((word, i) => out.setUint32(4 * i, word));
  return digest;
};

// -- Merkle trees (RFC 6962)

const leafHash = (leaf) => sha256(join([0], leaf));
const treeRoot = (hashes) => {
  while (hashes.length > 1) {
    const above = [];
    for (let i = 0; i + 1 < hashes.length; i += 2) above.push(sha256(join([1], hashes[i], hashes[i + 1])));
    if (hashes.length % 2) above.push(hashes[hashes.length - 1]);
    hashes = above;
  }
  return hashes[0];
};
const rootFromPath = (leaf, index, size, path) => {
  need(whole(index) < whole(size), "the proof is of another tree");
  let found = leafHash(leaf), place = 0;
  while (size > 1) {
    const sibling = index % 2 ? index - 1 : index + 1;
    if (sibling < size) {
      const other = path.subarray(place, (place += 32));
      need(other.length === 32, "the path of the proof is too short");
      found = sha256(index % 2 ? join([1], other, found) : join([1], found, other));
    }
    [index, size] = [Math.floor(index / 2), Math.ceil(size / 2)];
  }
  need(place === path.length, "the path of the proof is too long");
  return found;
};

// -- signed notes (C2SP signed-note, tlog-checkpoint, tlog-cosignature); Ed25519 is WebCrypto's

const isSigned = async (publicKey, message, signature) => {
  const key = await crypto.subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
  return crypto.subtle.verify({ name: "Ed25519" }, key, signature, message);
};
const readKey = (vkey) => {
  const [name, keyId, ...rest] = vkey.split("+");
  const data = bytesOfBase64(rest.join("+")), id = sha256(join(bytesOf(`${name}\n`), data)).subarray(0, 4);
  need([1, 4].includes(data[0]) && data.length === 33 && hexOf(id) === keyId, `not a verifier key: ${vkey}`);
  return { name, kind: data[0], publicKey: data.subarray(1), id };
};
const readCheckpoint = async (data, keys) => {
  const [text, ...rest] = textOf(data).split("\n\n"), lines = rest.join("\n\n").split("\n"), signers = [];
  need(rest.length > 0 && lines.pop() === "" && new Set(lines).size === lines.length, "the checkpoint is not a signed note");
  for (const line of lines) {
    const parts = line.split(" "), blob = bytesOfBase64(parts[2] ?? "");
    need(parts.length === 3 && parts[0] === "\u2014" && parts[1] && blob.length > 4, "the checkpoint has a malformed signature");
    for (const key of keys) {
      if (parts[1] !== key.name || !same(blob.subarray(0, 4), key.id)) continue;
      const witness = key.kind === 4;
      const time = witness && blob.length > 12 ? new DataView(blob.buffer).getBigUint64(4) : 0n;
      const message = bytesOf(`${witness ? `cosignature/v1\ntime ${time}\n` : ""}${text}\n`);
      need(await isSigned(key.publicKey, message, blob.subarray(witness ? 12 : 4)), `${key.name} did not sign this`);
      signers.push(key);
    }
  }
  need(keys.every((key) => signers.filter((each) => each === key).length === 1), "a key that you gave did not sign this checkpoint once");
  const fields = text.split("\n");
  need(fields.length === 3 && keys[0].kind === 1 && fields[0] === keys[0].name, "the checkpoint is of another log");
  need(/^[1-9][0-9]{0,4}$/.test(fields[1]), "the checkpoint has no size that this checker reads");
  return { size: Number(fields[1]), root: bytesOfBase64(fields[2]) };
};

// -- the log of statements (C2SP tlog-tiles)

const TILE = 256;
const fileIn = (files, path) => {
  need(files.has(path), `the file ${path} is missing`);
  return files.get(path);
};
const readLog = (files, { size, root }) => {
  const entries = [], hashes = [], above = [];
  for (let start = 0; start < size; start += TILE) {
    const width = Math.min(TILE, size - start);
    const name = String(start / TILE).padStart(3, "0") + (width < TILE ? `.p/${width}` : "");
    const bundle = fileIn(files, `tile/entries/${name}`);
    let place = 0;
    while (place < bundle.length) {
      const end = place + 2 + (bundle[place] << 8 | bundle[place + 1]);
      entries.push(bundle.subarray(place + 2, end));
      place = end;
    }
    need(entries.length === start + width && place === bundle.length, "a tile has other statements");
    hashes.push(...entries.slice(start).map(leafHash));
    need(same(fileIn(files, `tile/0/${name}`), join(...hashes.slice(start))), "a tile is not of this log");
    if (width === TILE) above.push(treeRoot(hashes.slice(start)));
  }
  if (above.length) need(same(fileIn(files, `tile/1/000.p/${above.length}`), join(...above)), "a tile is not of this log");
  need(same(treeRoot(hashes), root), "the statements are not those of the checkpoint");
  return { entries, hashes };
};

// -- the program: its probabilities as fractions of `one`, its estimate, and its epsilon

const lawOf = (client) => {
  if (!client.steps) return null; // a questionnaire has a program for each question
  const { input, steps, report: { parts } } = client;
  if (input.kind !== "answer" || client.memo || Object.keys(client.tables).length || whole(input.count, 2) > 4096) return null;
  const count = input.count, is = (program, part) => canonical(steps) === canonical(program) && canonical(parts) === canonical(part);
  const drawn = steps.filter(([, step]) => ["bit", "bits"].includes(step[0])).map(([, step]) => String(step[1]))
    .filter((text) => /^(0|[1-9][0-9]{0,19})$/.test(text));
  const first = drawn[0] ?? "0", last = drawn[drawn.length - 1] ?? "0", one = 1n << 64n, [a, b] = [BigInt(first), BigInt(last)];
  const bits = [["others", ["bits", first, count]], ["own", ["bit", last]], ["row", ["put", "others", "value", "own"]]];
  if (is(bits, [["packed", "row", count]])) return { kind: "bits", width: Math.ceil(count / 8), count, p: b, q: a, one };
  const moved = ["add", "others", ["ge", "others", "value"]], kept = ["where", "kept", "value", "moved"];
  const answer = [["kept", ["bits", first, 1]], ["others", ["belows", count - 1, 1]], ["moved", moved], ["drawn", kept]];
  const others = BigInt(count - 1);
  for (const width of [1, 2]) {
    if (is(answer, [["uint", "drawn", width, 1]])) return { kind: "answer", width, count, p: a * others, q: one - a, one: one * others };
  }
  const coins = [["if_yes", ["bit", first]], ["if_no", ["bit", last]], ["report", ["where", "value", "if_yes", "if_no"]]];
  return is(coins, [["uint", "report", 1, 1]]) && count === 2 ? { kind: "yes", width: 1, count, p: a, q: b, one } : null;
};
const supportOf = ({ kind, count, width }, records) => {
  const support = new Array(count).fill(0);
  for (const record of records) {
    if (kind === "bits") {
      need(record[15 + width] >> ((count - 1) % 8 + 1) === 0, "a report has bits after the last answer");
      for (let i = 0; i < count; i++) support[i] += (record[16 + (i >> 3)] >> (i & 7)) & 1;
    } else {
      const answer = record[16] + (width === 2 ? 256 * record[17] : 0);
      need(answer < count, "a report names an answer that does not exist");
      support[answer] += 1;
    }
  }
  return support;
};
const rounded = (numerator, denominator) => {
  let quotient = numerator / denominator, rest = numerator % denominator;
  if (rest < 0n) { quotient -= 1n; rest += denominator; }
  return Number(2n * rest > denominator || (2n * rest === denominator && quotient & 1n) ? quotient + 1n : quotient);
};
const estimateOf = (client, records, width) => {
  const law = lawOf(client);
  if (law === null) return null;
  need(law.width === width && 0n <= law.q && law.q < law.p && law.p <= law.one, "the reports are not those of the definition");
  const support = supportOf(law, records), reports = BigInt(records.length), gap = law.p - law.q;
  const counts = support.map((each) => BigInt(each) * law.one - reports * law.q);
  if (law.kind === "yes") counts[0] = reports * gap - counts[1];
  const [first, second] = support.map((_, answer) => answer).sort((a, b) => support[b] - support[a] || a - b);
  const fakes = Math.ceil((support[first] - support[second]) / 2);
  return { counts: counts.map((each) => rounded(1000n * each, gap)), fakes, first, second };
};
// True if the program keeps its epsilon. e^epsilon is bounded from below by its series, in integers.
const keepsEpsilon = (client) => {
  const law = lawOf(client), text = client.guarantee.epsilon;
  if (law === null || Number(client.guarantee.delta) !== 0 || !/^[0-9]+(\.[0-9]+)?$/.test(text)) return null;
  const { p, q, one } = law, [units, digits = ""] = text.split("."), scale = 10n ** BigInt(digits.length);
  const pairs = law.kind === "bits" ? [[p * (one - q), q * (one - p)]] : law.kind === "yes" ? [[p, q], [one - q, one - p]] : [[p, q]];
  const unit = 1n << 256n;
  let series = 0n, term = unit;
  for (let k = 1n; term > 0n; k++) { series += term; term = (term * BigInt(units + digits)) / (scale * k); }
  return pairs.every(([most, least]) => most * unit <= series * least);
};

// -- the folder, and the part of one respondent

const checkList = (data, size, number, tag, root, name) => {
  const records = [];
  for (let start = 0; start < data.length; start += size) records.push(data.subarray(start, start + size));
  need(data.length === number * size, `another number of ${name} than stated`);
  const places = records.map((record) => hexOf(record.subarray(0, 16)));
  need(places.every((place, i) => i === 0 || places[i - 1] < place), `two ${name} are the same, or they are not in order`);
  const found = treeRoot(records.map((record) => leafHash(join(tag, record))));
  need(hexOf(found) === root, `the ${name} are not those of the statement`);
  return records;
};
const checkFolder = async (files, keys, seen) => {
  const { entries, hashes } = readLog(files, await readCheckpoint(fileIn(files, "checkpoint"), keys));
  if (seen) {
    const old = await readCheckpoint(seen, keys.slice(0, 1));
    need(old.size <= hashes.length, "ROLLED BACK: the log is shorter than the checkpoint that you saw");
    need(same(treeRoot(hashes.slice(0, old.size)), old.root), "TWO HISTORIES: the log is not the one that you saw");
  }
  const statement = readJson(entries[entries.length - 1], "the statement");
  need(Object.keys(statement).length === 16, "the statement has other keys");
  need(statement.format === "ldp-budget statement" && statement.version === 1, "not a statement of version 1");
  const client = readJson(fileIn(files, "client.json"), "the definition"), { digest, ...rest } = client;
  need(hexOf(sha256(bytesOf(canonical(rest)))) === digest && digest === statement.client, "the definition is not that of the statement");
  need(whole(statement.maximum) <= whole(statement.limit, 1), "a total is above the limit");
  need(whole(statement.charges, 1) === whole(statement.reports), "not as many reports as charges");
  const charges = checkList(fileIn(files, "charges.bin"), 32, statement.charges, [67], statement.charges_root, "charges");
  const width = whole(statement.width, 1), data = fileIn(files, "reports.bin");
  if (client.memo) { // these reports are published as a number only
    need(statement.reports_root === null && statement.estimate === null && data.length === 0, "reports are published");
    return { statement, client, charges, records: null };
  }
  const records = checkList(data, 16 + width, statement.reports, [82], statement.reports_root, "reports");
  need(canonical(statement.estimate) === canonical(estimateOf(client, records, width)), "the estimate does not follow from the reports");
  return { statement, client, charges, records };
};
const markOf = (kind, secret) => sha256(join(bytesOf(`ldp-budget ${kind}`), secret)).subarray(0, 16);
const checkReceipt = ({ statement, charges, records }, receipts, proof) => {
  const [receipt] = receipts, { measure } = statement, { account, charge } = proof;
  need(receipt.client === statement.client, "your receipt is of another survey");
  const secret = bytesOfHex(receipt.secret, 16), cost = whole(receipt.costs[measure]);
  const report = join(markOf("report", secret), bytesOfHex(receipt.report));
  need(records === null || records.some((record) => same(record, report)), "your report is not among the reports");
  need([proof, account, charge].map((each) => Object.keys(each).length).join() === "2,4,1", "the proof has other keys");
  const mine = sha256(join(bytesOfHex(charge.salt, 16), markOf("charge", secret), eightBytes(cost)));
  need(charges.some((each) => same(each, mine)), "your charge is not among the charges");
  const total = whole(account.total), limit = BigInt(statement.limit), steps = (16n * BigInt(total) + limit - 1n) / limit;
  const roundedUp = (steps * limit + 15n) / 16n;
  need(total <= statement.limit && roundedUp <= BigInt(statement.maximum), "your total is above the maximum");
  const hidden = sha256(join(bytesOfHex(account.salt, 16), eightBytes(total)));
  const leaf = join([65, Number(steps)], hidden);
  const found = rootFromPath(leaf, account.index, statement.accounts, bytesOfBase64(account.path));
  need(hexOf(found) === statement.accounts_root, "your account is not among the accounts");
  need(new Set(receipts.map((each) => each.secret)).size === receipts.length, "a receipt is given twice");
  need(total >= receipts.reduce((sum, each) => sum + whole(each.costs[measure]), 0), "the total is below your receipts");
};

// Check the files of a folder (a Map from path to Uint8Array) and, with receipts and proof, one respondent's part.
// Throws `Refused`, or another error for a malformed file; returns what is proved.
const check = async (files, keys, receipts = [], proof = null, seen = null) => {
  const published = await checkFolder(files, keys.map(readKey), seen), { statement, client, records } = published;
  need((receipts.length > 0) === (proof !== null), "receipt and proof are checked together: one of them is missing");
  if (receipts.length) checkReceipt(published, receipts, readJson(proof, "the proof"));
  const names = client.answers ?? Array.from({ length: client.input?.count ?? 0 }, (_, answer) => String(answer));
  const keeps = keepsEpsilon(client);
  need(keeps !== false, `the program does not keep epsilon ${client.guarantee.epsilon}`);
  return { statement, client, names, yours: receipts.length > 0, reportsPublished: records !== null, programChecked: keeps === true };
};

export { Refused, canonical, check, hexOf, sha256 };

if (typeof process !== "undefined" && process.argv?.[1]?.endsWith("check_books.mjs")) {
  const { readFile, readdir } = await import("node:fs/promises"), { relative } = await import("node:path");
  const [folder, ...rest] = process.argv.slice(2), given = { key: [], receipt: [], proof: [], seen: [] };
  for (let i = 0; i < rest.length; i += 2) given[rest[i].slice(2)].push(rest[i + 1]);
  const files = new Map(), bytes = async (path) => new Uint8Array(await readFile(path));
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = `${entry.parentPath ?? entry.path}/${entry.name}`;
    if (entry.isFile()) files.set(relative(folder, path), await bytes(path));
  }
  try {
    const receipts = await Promise.all(given.receipt.map(async (path) => JSON.parse(textOf(await bytes(path)))));
    const proof = given.proof[0] ? await bytes(given.proof[0]) : null, seen = given.seen[0] ? await bytes(given.seen[0]) : null;
    console.log(JSON.stringify(await check(files, given.key, receipts, proof, seen)));
  } catch (error) {
    console.log(`REFUSED: ${error.message}`);
    process.exitCode = 1;
  }
}
