// Check a survey that proves itself, in a browser or in Node.js: node check_books.mjs FOLDER --key VKEY
// [--receipt FILE --proof FILE] [--seen CHECKPOINT]. No library and no network; all decisions are made on integers.
// docs/reference/formats/publication.md specifies every file; check_books.py is the same checker in Python.

class Refused extends Error {}
const need = (condition, why) => { if (!condition) throw new Refused(why); };

const TILE = 256, STEPS = 16n, SMALL = 2 ** 16, LARGE = 2 ** 22, CLOCKS = 300, MOST = Number.MAX_SAFE_INTEGER, DEEPEST = 64;
const MEASURES = { epsilon: ["ε", 9], rho: ["ρ (zCDP)", 12], mu_squared: ["μ² (Gaussian DP)", 12] };
const HEX32 = /^[0-9a-f]{32}$/, HEX64 = /^[0-9a-f]{64}$/, HEX128 = /^[0-9a-f]{128}$/;
const STATEMENT = "format version time collection client accounts accounts_root charges charges_root reports reports_root " +
  "width measure limit maximum receipt_keys estimate";
const QUESTIONNAIRE = "format version client name title organisation contact purpose languages mechanism fingerprint context ask " +
  "selection report rounds questions guarantee digest";
const DEFINITION = "format version name title question purpose contact languages answers mechanism fingerprint context input " +
  "steps tables memo report guarantee digest";

// -- strict reading: each value has one form, its kind and its range, and every object exactly its keys

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

const TOKEN = new RegExp('[ \\t\\n\\r]*([\\[\\]{},:]|"[^"\\\\\\x00-\\x1f]*(?:\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\\\\x00-\\x1f]*)*"' +
  "|true|false|null|-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)[ \\t\\n\\r]*", "y");
const WORDS = { true: true, false: false, null: null };
const OTHER = Symbol("other"); // a number that is equal to nothing
// The value of JSON without repeated keys, other keys than ASCII, half characters and deep nesting. Other numbers than whole
// ones of at most 53 bits are refused, or read as OTHER if `loose`.
const parsed = (data, name, loose = false) => {
  const text = textOf(data);
  let place = 0, held = "";
  const step = () => {
    if (place === text.length) { held = ""; return; }
    TOKEN.lastIndex = place;
    const found = TOKEN.exec(text);
    need(found, `${name} is not JSON`);
    [place, held] = [TOKEN.lastIndex, found[1]];
  };
  const taken = (token) => { need(held === token, `${name} is not JSON`); step(); };
  const scalar = () => {
    const token = held;
    step();
    if (token[0] === '"') {
      const value = JSON.parse(token);
      need(!/\p{Surrogate}/u.test(value), `${name} has half a character`);
      return value;
    }
    if (Object.hasOwn(WORDS, token)) return WORDS[token];
    need(/^[-0-9]/.test(token), `${name} is not JSON`);
    const good = /^(0|-?[1-9][0-9]{0,15})$/.test(token) && Number.isSafeInteger(Number(token));
    need(good || loose, `${name} has a number that is not a whole one, or too large`);
    return good ? Number(token) : OTHER;
  };
  const value = (depth) => {
    need(depth <= DEEPEST, `${name} is nested too deeply`);
    if (held === "[") {
      step();
      const row = [];
      while (held !== "]") {
        row.push(value(depth + 1));
        if (held !== "]") { taken(","); need(held !== "]", `${name} is not JSON`); }
      }
      step();
      return row;
    }
    if (held !== "{") return scalar();
    step();
    const made = Object.create(null);
    while (held !== "}") {
      need(held[0] === '"', `${name} is not JSON`);
      const key = scalar();
      need(/^[\x00-\x7f]*$/.test(key) && !(key in made), `${name} has a key twice, or a key that is not ASCII`);
      taken(":");
      made[key] = value(depth + 1);
      if (held !== "}") { taken(","); need(held !== "}", `${name} is not JSON`); }
    }
    step();
    return made;
  };
  step();
  const found = value(0);
  need(held === "" && place === text.length, `${name} is not JSON`);
  return found;
};
const inQuotes = (text) =>
  JSON.stringify(text).replace(/[\u007f-\uffff]/g, (each) => "\\u" + each.charCodeAt(0).toString(16).padStart(4, "0"));
const canonical = (value) => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return typeof value === "string" ? inQuotes(value) : String(value);
  return `{${Object.keys(value).sort().map((key) => `${inQuotes(key)}:${canonical(value[key])}`).join(",")}}`;
};
// The value of canonical JSON, which is encoded again and compared.
const readJson = (data, name) => {
  const value = parsed(data, name);
  need(canonical(value) === textOf(data), `${name} is not canonical JSON`);
  return value;
};
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const members = (value, keys, name) => {
  need(isObject(value) && Object.keys(value).sort().join() === keys.split(" ").sort().join(), `${name} has other keys`);
  return value;
};
const textLike = (value, pattern) => {
  need(typeof value === "string" && pattern.test(value), "a text has another form");
  return value;
};
const bytesOfHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));
const bytesOfBase64 = (text) => {
  need(typeof text === "string", "a text has another form");
  need(/^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text), "bytes in another form");
  const data = atob(text);
  need(btoa(data) === text, "bytes in another form");
  return Uint8Array.from(data, (character) => character.charCodeAt(0));
};
const whole = (value, least = 0, most = MOST) => {
  need(Number.isSafeInteger(value) && least <= value && value <= most, "a number is out of range");
  return value;
};
const eightBytes = (number) => {
  const data = new Uint8Array(8);
  new DataView(data.buffer).setBigUint64(0, BigInt(number));
  return data;
};
const seconds = (time) => {
  textLike(time, /^[12][0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z$/);
  const found = new Date(time);
  need(!Number.isNaN(found.getTime()) && found.toISOString() === time.replace("Z", ".000Z"), "a text has another form");
  return found.getTime() / 1000;
};
const fileIn = (files, path, most) => {
  const data = files.get(path, most);
  need(data !== undefined, `the file ${path} is missing`);
  need(data.length <= most, `the file ${path} is too large`);
  return data;
};

// -- showing: text from a file is one piece of a line, and cannot look like anything else

const BROKEN = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]|[\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const plain = (text, most = 100) => {
  const all = Array.from(text), cut = all.length > most ? `${all.slice(0, most).join("")}\u2026` : text;
  const said = cut.replace(BROKEN, (each) => `\\u{${each.codePointAt(0).toString(16)}}`);
  return RIGHT_TO_LEFT.test(said) ? `\u2068${said}\u2069` : said;
};
const quoted = (text) => `"${plain(text.replace(/[\\"]/g, "\\$&"))}"`;
const amount = (units, measure) => {
  const [name, digits] = MEASURES[measure], text = String(units).padStart(digits + 1, "0");
  return `${name} = ${text.slice(0, -digits)}.${text.slice(-digits)}`.replace(/\.?0+$/, "");
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
// The roots of the trees of the first leaves, for each of these sizes, as a Map.
const rootsAt = (hashes, sizes) => {
  const found = new Map(), above = [];
  hashes.forEach((leaf, place) => {
    let node = leaf;
    for (let rest = place + 1; rest % 2 === 0; rest /= 2) node = sha256(join([1], above.pop(), node));
    above.push(node);
    if (!sizes.has(place + 1)) return;
    for (const left of above.slice(0, -1).reverse()) node = sha256(join([1], left, node));
    found.set(place + 1, node);
  });
  return found;
};
const treeRoot = (hashes) => rootsAt(hashes, new Set([hashes.length])).get(hashes.length);
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

const FIELD = 2n ** 255n - 19n, ORDER_8 = 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n;
const WEAK = new Set([0n, 1n, FIELD - 1n, ORDER_8, FIELD - ORDER_8]); // of the points of a small order
const checkPoint = (data) => {
  const y = BigInt(`0x${hexOf(data.slice().reverse())}`) & (2n ** 255n - 1n);
  need(y < FIELD && !WEAK.has(y), "not a point of Ed25519");
};
const isSigned = async (publicKey, message, signature) => {
  need(signature.length === 64, "a signature has another length");
  checkPoint(signature.subarray(0, 32));
  checkPoint(publicKey);
  const key = await crypto.subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
  return crypto.subtle.verify({ name: "Ed25519" }, key, signature, message);
};
const readKey = (vkey) => {
  const [name, keyId, ...rest] = vkey.split("+");
  need(/^[!-*,-~]{1,200}$/.test(name), "a verifier key has no name of printable ASCII");
  const data = bytesOfBase64(rest.join("+")), id = sha256(join(bytesOf(`${name}\n`), data)).subarray(0, 4);
  need([1, 4].includes(data[0]) && data.length === 33 && hexOf(id) === keyId, `not a verifier key: ${vkey}`);
  return { name, kind: data[0], publicKey: data.subarray(1), id };
};
const readKeys = (vkeys) => {
  const keys = vkeys.map(readKey);
  need(keys.length > 0 && keys.every((key, place) => key.kind === (place ? 4 : 1)), "the first key must be the log's, the others witnesses'");
  need(new Set(keys.map((key) => hexOf(key.publicKey))).size === keys.length, "two of the keys are the same");
  return keys;
};
const readCheckpoint = async (data, keys) => {
  const [text, ...rest] = textOf(data).split("\n\n"), lines = rest.join("\n\n").split("\n"), signers = [], witnesses = [];
  need(lines.pop() === "" && new Set(lines).size === lines.length, "the checkpoint is not a signed note");
  for (const line of lines) {
    const parts = line.split(" ");
    need(parts.length === 3 && parts[0] === "\u2014" && parts[1], "the checkpoint has a malformed signature");
    const blob = bytesOfBase64(parts[2]);
    need(blob.length > 4, "the checkpoint has a malformed signature");
    for (const key of keys) {
      if (parts[1] !== key.name || !same(blob.subarray(0, 4), key.id)) continue;
      const witness = key.kind === 4, eight = join(blob.subarray(4, 12), new Uint8Array(8)).buffer;
      need(!witness || blob.length > 12, "a signature has another length");
      const time = witness ? new DataView(eight).getBigUint64(0) : 0n;
      const message = bytesOf(`${witness ? `cosignature/v1\ntime ${time}\n` : ""}${text}\n`);
      need(await isSigned(key.publicKey, message, blob.subarray(witness ? 12 : 4)), "a key did not sign this checkpoint");
      signers.push(key);
      if (witness) witnesses.push([key.name, whole(Number(time), 0, 2 ** 36)]);
    }
  }
  const once = keys.every((key) => signers.filter((each) => each === key).length === 1);
  need(once && signers.length === keys.length, "a key that you gave did not sign this checkpoint once");
  const fields = text.split("\n");
  need(fields.length === 3 && fields[0] === keys[0].name, "the checkpoint is of another log");
  need(/^[1-9][0-9]{0,4}$/.test(fields[1]), "the checkpoint has no size that this checker reads");
  const root = bytesOfBase64(fields[2]);
  need(root.length === 32, "bytes in another form");
  return { size: whole(Number(fields[1]), 1, TILE * TILE - 1), root, witnesses };
};

// -- the log of statements (C2SP tlog-tiles)

const readLog = (files, { size, root }) => {
  const entries = [], hashes = [], above = [];
  for (let start = 0; start < size; start += TILE) {
    const width = Math.min(TILE, size - start);
    const name = String(start / TILE).padStart(3, "0") + (width < TILE ? `.p/${width}` : "");
    const bundle = fileIn(files, `tile/entries/${name}`, TILE * (SMALL + 2));
    let place = 0;
    while (place < bundle.length) {
      const end = place + 2 + (bundle[place] << 8 | bundle[place + 1]);
      entries.push(bundle.subarray(place + 2, end));
      place = end;
    }
    need(entries.length === start + width && place === bundle.length, "a tile has other statements");
    hashes.push(...entries.slice(start).map(leafHash));
    need(same(fileIn(files, `tile/0/${name}`, TILE * 32), join(...hashes.slice(start))), "a tile is not of this log");
    if (width === TILE) above.push(treeRoot(hashes.slice(start)));
  }
  if (above.length) need(same(fileIn(files, `tile/1/000.p/${above.length}`, TILE * 32), join(...above)), "a tile is not of this log");
  need(same(treeRoot(hashes), root), "the statements are not those of the checkpoint");
  return { entries, hashes };
};
// The steps of a total, and a total of so many steps: whole sixteenths of the limit, rounded up.
const stepsOf = (total, limit) => (STEPS * BigInt(total) + BigInt(limit) - 1n) / BigInt(limit);
const roundedUp = (steps, limit) => (steps * BigInt(limit) + STEPS - 1n) / STEPS;
const readStatement = (data) => {
  const made = members(readJson(data, "a statement"), STATEMENT, "a statement");
  need(made.format === "ldp-budget statement" && whole(made.version) === 1, "not a statement of version 1");
  need(typeof made.measure === "string" && Object.hasOwn(MEASURES, made.measure), "a statement counts in an unknown measure");
  seconds(made.time);
  textLike(made.collection, /^.{1,1000}$/su);
  for (const name of ["client", "accounts_root", "charges_root"]) textLike(made[name], HEX64);
  if (made.reports_root !== null) textLike(made.reports_root, HEX64);
  need(Array.isArray(made.receipt_keys) && 0 < made.receipt_keys.length && made.receipt_keys.length <= 64, "a list has another length");
  for (const key of made.receipt_keys) textLike(key, HEX64);
  whole(made.accounts, 1); whole(made.width, 1, SMALL); whole(made.limit, 1);
  need(whole(made.maximum) <= made.limit, "a total is above the limit");
  const sixteenths = Array.from({ length: 17 }, (_, steps) => roundedUp(BigInt(steps), made.limit));
  need(sixteenths.includes(BigInt(made.maximum)), "the maximum is not a number of sixteenths of the limit");
  need(whole(made.charges, 1) === whole(made.reports), "not as many reports as charges");
  const said = made.estimate;
  if (said === null) return made;
  members(said, "counts fakes first second", "an estimate");
  need(Array.isArray(said.counts) && 2 <= said.counts.length && said.counts.length <= 4096, "a list has another length");
  for (const count of said.counts) whole(count, -MOST);
  for (const name of ["fakes", "first", "second"]) whole(said[name]);
  return made;
};
// The statements of this survey, none of which contradicts another, with the newest one last.
const checkHistory = (statements, witnesses) => {
  const newest = statements[statements.length - 1], times = statements.map((each) => seconds(each.time));
  need(times.every((time, i) => i === 0 || times[i - 1] <= time), "CONTRADICTION: a statement of the log is dated before an earlier one");
  const last = times[times.length - 1];
  need(witnesses.every(([, when]) => last <= when + CLOCKS), "CONTRADICTION: the statement is dated after a witness signed it");
  const mine = statements.filter((each) => each.collection === newest.collection || each.client === newest.client);
  mine.slice(1).forEach((late, i) => {
    const old = mine[i], number = statements.indexOf(old) + 1;
    for (const name of ["collection", "client", "measure", "limit", "width"]) {
      const why = `${name} is ${plain(String(old[name]))} in statement ${number}, and ${plain(String(late[name]))} later`;
      need(old[name] === late[name], `CONTRADICTION: two statements of this survey differ: ${why}`);
    }
    for (const name of ["accounts", "charges", "reports", "maximum"]) {
      const why = `${name} falls from ${old[name]} in statement ${number} to ${late[name]}`;
      need(old[name] <= late[name], `CONTRADICTION: two statements of this survey differ: ${why}`);
    }
    const kept = old.receipt_keys.every((key, place) => late.receipt_keys[place] === key);
    const why = `receipt_keys of statement ${number}`;
    need(kept, `CONTRADICTION: two statements of this survey differ: ${why}`);
  });
  return mine;
};

// -- the program: its probabilities as fractions of `one`, its estimate, and its loss

const N = '"?(0|[1-9][0-9]{0,19})"?'; // as text if it has more than 53 bits
const SHAPES = {
  bits: `\\[\\["others",\\["bits",${N},([0-9]+)\\]\\],\\["own",\\["bit",${N}\\]\\],` +
    '\\["row",\\["put","others","value","own"\\]\\]\\]\\[\\["packed","row",([0-9]+)\\]\\]',
  answer: `\\[\\["kept",\\["bits",${N},1\\]\\],\\["others",\\["belows",([0-9]+),1\\]\\],\\["moved",\\["add","others",\\["ge",` +
    '"others","value"\\]\\]\\],\\["drawn",\\["where","kept","value","moved"\\]\\]\\]\\[\\["uint","drawn",([12]),1\\]\\]',
  yes: `\\[\\["if_yes",\\["bit",${N}\\]\\],\\["if_no",\\["bit",${N}\\]\\],` +
    '\\["report",\\["where","value","if_yes","if_no"\\]\\]\\]\\[\\["uint","report",1,1\\]\\]',
};
const readDefinition = (data, statement) => {
  const client = parsed(data, "the definition");
  need(isObject(client) && canonical(client) === textOf(data), "the definition is not canonical JSON");
  const rest = Object.assign(Object.create(null), client);
  delete rest.digest;
  const digest = hexOf(sha256(bytesOf(canonical(rest))));
  need(client.digest === digest && digest === statement.client, "the definition is not that of the statement");
  need(client.name === statement.collection, "the definition is of another collection");
  need(isObject(client.guarantee), "the definition has no guarantee");
  if (client.format === "ldp-budget questionnaire") return members(client, QUESTIONNAIRE, "the definition");
  members(client, DEFINITION, "the definition");
  need(client.format === "ldp-budget client" && whole(client.version) === 1, "not a definition of version 1");
  need(typeof client.memo === "string", "a text has another form");
  if (client.answers !== null) {
    const good = Array.isArray(client.answers) && client.answers.every((each) => typeof each === "string");
    need(good && new Set(client.answers).size === client.answers.length, "two answers have one name");
  }
  return client;
};
const lawOf = (client) => {
  if (client.format !== "ldp-budget client" || client.memo !== "" || canonical(client.tables) !== "{}") return null;
  const { input, report } = client;
  if (!isObject(input) || input.kind !== "answer" || !isObject(report)) return null;
  const { count } = input, text = canonical(client.steps) + canonical(report.parts ?? null), one = 1n << 64n;
  if (!Number.isSafeInteger(count) || count < 2 || count > 4096) return null;
  for (const [kind, shape] of Object.entries(SHAPES)) {
    const found = new RegExp(`^${shape}$`).exec(text);
    if (!found) continue;
    const [a, ...given] = found.slice(1).map(BigInt), others = BigInt(count - 1);
    if (kind === "bits" && given[0] === BigInt(count) && given[2] === given[0]) return { kind, width: Math.ceil(count / 8), count, p: given[1], q: a, one };
    if (kind === "answer" && given[0] === others) return { kind, width: Number(given[1]), count, p: a * others, q: one - a, one: one * others };
    return kind === "yes" && count === 2 ? { kind, width: 1, count, p: a, q: given[0], one } : null;
  }
  return null;
};
const supportOf = ({ kind, count, width }, records, support) => {
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
};
const rounded = (numerator, denominator) => {
  let quotient = numerator / denominator, rest = numerator % denominator;
  if (rest < 0n) { quotient -= 1n; rest += denominator; }
  return Number(2n * rest > denominator || (2n * rest === denominator && quotient & 1n) ? quotient + 1n : quotient);
};
const estimateFrom = (law, support, reports) => {
  const gap = law.p - law.q, counts = support.map((each) => BigInt(each) * law.one - BigInt(reports) * law.q);
  if (law.kind === "yes") counts[0] = BigInt(reports) * gap - counts[1]; // a report of "no" names no answer
  const [first, second] = support.map((_, answer) => answer).sort((a, b) => support[b] - support[a] || a - b);
  const thousandths = counts.map((each) => rounded(1000n * each, gap)), fakes = Math.ceil((support[first] - support[second]) / 2);
  return thousandths.every(Number.isSafeInteger) ? { counts: thousandths, fakes, first, second } : null;
};
// The estimates that follow from the first reports, for each of these numbers of them, as a Map.
const estimatesOf = (client, records, width, sizes) => {
  const law = lawOf(client), found = new Map(), support = law && new Array(law.count).fill(0);
  if (law !== null) need(law.width === width && 0n <= law.q && law.q < law.p && law.p <= law.one, "the reports are not those of the definition");
  let done = 0;
  for (const number of sizes) {
    if (law !== null) supportOf(law, records.slice(done, number), support);
    found.set(number, law === null ? null : estimateFrom(law, support, number));
    done = number;
  }
  return found;
};

// Fixed-point numbers of units 2^-256. Logarithms are rounded up; all others are wrong by less than 2^-180.
const BITS = 256n, UNIT = 1n << BITS;
const ROOT_TWO_PI = (25066282746310005024157652848110452530069867406099n * UNIT) / 10n ** 49n;
const most = (a, b) => (a > b ? a : b);
const bitLength = (x) => BigInt(x.toString(2).length);
const squareRoot = (x) => {
  let root = 1n << (bitLength(x) / 2n + 1n);
  for (;;) {
    const next = (root + x / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
};
// Twice artanh(power) for power <= 1/3.
const artanh = (first) => {
  let power = first, total = first, k = 1n;
  const square = ((first * first) >> BITS) + 1n;
  while (power > 1n) {
    power = ((power * square) >> BITS) + 1n;
    k += 2n;
    total += power / k + 1n;
  }
  return 2n * total + 2n;
};
// ln x for x >= 1: n ln 2 + 2 artanh(y), where y = (x/2^n - 1)/(x/2^n + 1).
const logarithm = (x) => {
  const n = bitLength(x) - BITS - 1n, base = UNIT << n;
  return n * artanh(UNIT / 3n + 1n) + artanh(((x - base) << BITS) / (x + base) + 1n);
};
// Where the normal distribution function is x >= 1/2, by Newton's method from below, up to 15.
const quantile = (x) => {
  let z = 0n;
  while (z < 15n * UNIT) {
    let power = UNIT, term = z, grown = 0n, series = 0n, k = 0n;
    const square = (z * z) >> BITS;
    while (power || term) { // e^(z^2/2) and z + z^3/3 + z^5/15 + ...
      grown += power;
      series += term;
      k += 1n;
      power = ((power * square) >> (BITS + 1n)) / k;
      term = ((term * square) >> BITS) / (2n * k + 1n);
    }
    const step = ((((x - UNIT / 2n) * ROOT_TWO_PI) >> BITS) * grown) / UNIT - series;
    if (step < 1n << 100n) return z;
    z += step;
  }
  return z;
};
const signedQuantile = (x) => (2n * x >= UNIT ? quantile(x) : -quantile(UNIT - x));
// Lower bounds of the loss of a program in units of the three measures, and its epsilon; null if an answer can be excluded.
const leastLosses = ({ kind, p, q, one }) => {
  const [no_p, no_q, square] = [one - p, one - q, one * one];
  const pairs = kind === "bits" ? [[[p * no_q, q * no_p], [q * no_p, p * no_q]]] // the bits of the two answers; all others are alike
    : kind === "answer" ? [[[p * one, q * one], [q * one, p * one]]]
    : [[[p * one, q * one], [no_p * one, no_q * one]], [[q * one, p * one], [no_q * one, no_p * one]]];
  let epsilon = 0n, rho = 0n, mu = 0n;
  for (const all of pairs) {
    const alike = ((square - all.reduce((sum, [mass]) => sum + mass, 0n)) << BITS) / square;
    const pair = all.filter(([a, b]) => a || b);
    if (!pair.every(([a, b]) => a && b)) return null;
    const ratios = pair.map(([a, b]) => ((a << BITS) + b - 1n) / b), masses = pair.map(([a]) => (a << BITS) / square);
    const logs = ratios.map((r) => (r >= UNIT ? logarithm(r) : -logarithm((UNIT * UNIT) / r)));
    epsilon = logs.reduce(most, epsilon);
    rho = most(rho, masses.reduce((sum, mass, i) => sum + ((mass * logs[i]) >> BITS), 0n));
    let powers = masses;
    const roots = ratios.map((ratio) => squareRoot(squareRoot(ratio << BITS) << BITS));
    for (let quarters = 1n; quarters <= 64n; quarters++) { // of the order, above 1
      powers = powers.map((power, i) => (power * roots[i]) >> BITS);
      rho = most(rho, (16n * logarithm(most(UNIT, powers.reduce((sum, each) => sum + each, alike)))) / (quarters * (quarters + 4n)));
    }
    for (const [a, b] of pair) if (a > b) mu = most(mu, signedQuantile((a << BITS) / square) - signedQuantile((b << BITS) / square));
  }
  const inUnits = (value, digits) => Number(-((-value * 10n ** digits) >> BITS));
  return { least: { epsilon: inUnits(epsilon, 9n), rho: inUnits(rho, 12n), mu_squared: inUnits((mu * mu) >> BITS, 12n) }, epsilon };
};
// The number in a text of a definition, as numerator and denominator; null for another text.
const figure = (value) => {
  const found = typeof value === "string" && /^([0-9]{1,20})(?:\.([0-9]{1,40}))?(?:[eE]([+-]?[0-9]{1,2}))?$/.exec(value);
  if (!found) return null;
  const [, units, digits = "", power = "0"] = found, exponent = BigInt(power) - BigInt(digits.length), number = BigInt(units + digits);
  return exponent < 0n ? [number, 10n ** -exponent] : [number * 10n ** exponent, 1n];
};
// The least costs of a report in each measure that can be bounded, and the epsilon that the program was proved to keep.
const checkProgram = (client) => {
  const [epsilon, delta] = [figure(client.guarantee.epsilon), figure(client.guarantee.delta)], law = lawOf(client);
  if (law === null) {
    const fresh = (client.memo ?? "") === "" && client.guarantee.kind !== "memoised";
    const stated = fresh && epsilon !== null && epsilon[0] > 0n && epsilon[0] <= 10n ** 6n * epsilon[1];
    return { least: stated ? { epsilon: Number((epsilon[0] * 10n ** 9n + epsilon[1] - 1n) / epsilon[1]) - 1 } : {}, kept: null };
  }
  need(0n <= law.q && law.q < law.p && law.p <= law.one, "the reports are not those of the definition");
  const found = leastLosses(law);
  need(found !== null, "the program reveals an answer for certain");
  if (epsilon === null || delta === null || delta[0] !== 0n) return { least: found.least, kept: null };
  need(found.epsilon * epsilon[1] <= epsilon[0] * UNIT, "the program does not keep its epsilon");
  return { least: found.least, kept: client.guarantee.epsilon };
};

// -- the folder, and the part of one respondent

const checkList = (data, size, sizes, tag, name, unique) => {
  const records = [], number = sizes[sizes.length - 1];
  need(data.length === number * size, `another number of ${name} than stated`);
  for (let start = 0; start < data.length; start += size) records.push(data.subarray(start, start + size));
  const places = records.map((record) => hexOf(record.subarray(0, unique))), starts = new Set(sizes);
  const good = places.every((place, i) => i === 0 || starts.has(i) || places[i - 1] < place) && new Set(places).size === number;
  need(good, `two ${name} are the same, or they are not in order`);
  return { records, roots: rootsAt(records.map((record) => leafHash(join(tag, record))), new Set(sizes)) };
};
const checkFolder = async (files, keys, seen) => {
  const checkpoint = await readCheckpoint(fileIn(files, "checkpoint", SMALL), keys), { entries, hashes } = readLog(files, checkpoint);
  if (seen) {
    need(seen.length <= SMALL, "the file checkpoint is too large");
    const old = await readCheckpoint(seen, keys.slice(0, 1));
    need(old.size <= hashes.length, "ROLLED BACK: the log is shorter than the checkpoint that you saw");
    need(same(treeRoot(hashes.slice(0, old.size)), old.root), "TWO HISTORIES: the log is not the one that you saw");
  }
  const statements = entries.map(readStatement), mine = checkHistory(statements, checkpoint.witnesses);
  const statement = statements[statements.length - 1], client = readDefinition(fileIn(files, "client.json", LARGE), statement);
  const { least, kept } = checkProgram(client), number = statement.charges, cost = least[statement.measure];
  const room = !cost || BigInt(statement.accounts) * (BigInt(statement.maximum) / BigInt(cost)) >= BigInt(number);
  need(room, "so few accounts cannot hold so many charges below the maximum");
  const charged = checkList(fileIn(files, "charges.bin", 32 * number), 32, [number], [67], "charges", 32);
  need(hexOf(charged.roots.get(number)) === statement.charges_root, "the charges are not those of the statement");
  const width = statement.width, data = fileIn(files, "reports.bin", (16 + width) * number), sizes = mine.map((each) => each.reports);
  const found = { statement, statements: statements.length, mine: mine.length, witnesses: checkpoint.witnesses, client, charges: charged.records, least, kept };
  if ((client.memo ?? "") !== "") { // these reports are published as a number only
    const hidden = mine.every((each) => each.reports_root === null && each.estimate === null) && data.length === 0;
    need(hidden, "reports are published");
    return { ...found, records: null };
  }
  const { records, roots } = checkList(data, 16 + width, sizes, [82], "reports", 16);
  const estimates = estimatesOf(client, records, width, new Set(sizes));
  for (const each of mine) {
    const matching = hexOf(roots.get(each.reports)) === each.reports_root;
    need(matching || each === statement, "CONTRADICTION: an earlier statement has other reports");
    need(matching, "the reports are not those of the statement");
    need(canonical(each.estimate) === canonical(estimates.get(each.reports)), "the estimate does not follow from the reports");
  }
  return { ...found, records };
};
const markOf = (kind, secret) => sha256(join(bytesOf(`ldp-budget ${kind}`), secret)).subarray(0, 16);
// A receipt, whose promise one of the ledger's keys has signed. It may have more members than are needed.
const readReceipt = async (data, statement) => {
  need(data.length <= LARGE, "the file of a receipt is too large");
  const made = parsed(data, "a receipt", true);
  need(isObject(made) && made.format === "ldp-budget receipt", "not a receipt of version 1");
  need(whole(made.version) === 1, "not a receipt of version 1");
  textLike(made.secret, HEX32); textLike(made.client, HEX64); textLike(made.report, /^([0-9a-f]{2})+$/);
  need(typeof made.collection === "string", "a text has another form");
  const costs = members(made.costs, "epsilon delta rho mu_squared", "the costs"), { promise } = made;
  for (const name of Object.keys(costs)) if (costs[name] !== null) whole(costs[name]);
  need(isObject(promise), "a receipt does not say which limit was promised");
  members(promise, "measure limit key signature", "a promise");
  need(statement.receipt_keys.includes(promise.key), "a receipt was signed by another ledger");
  textLike(promise.signature, HEX128);
  const said = { client: made.client, collection: made.collection, limit: promise.limit, measure: promise.measure };
  const message = bytesOf(`ldp-budget promise\n${canonical(said)}`);
  need(await isSigned(bytesOfHex(promise.key), message, bytesOfHex(promise.signature)), "the ledger did not sign this promise");
  return made;
};
const checkReceipt = ({ statement, charges, records, least }, receipts, proof) => {
  const [receipt] = receipts, { measure, limit } = statement;
  need(receipt.client === statement.client, "your receipt is of another survey");
  need(receipt.collection === statement.collection, "your receipt is of another survey");
  const { promise } = receipt, known = typeof promise.measure === "string" && Object.hasOwn(MEASURES, promise.measure);
  const said = known ? amount(whole(promise.limit), promise.measure) : "another measure";
  const kept = promise.measure === measure && promise.limit === limit, why = `${amount(limit, measure)}, promised ${said}`;
  need(kept, `the limit is not the one that your receipt promised: ${why}`);
  for (const name of Object.keys(least)) {
    const paid = receipt.costs[name], figures = amount(least[name], name);
    need(paid === null || paid >= least[name], `your cost is below what the program loses: ${figures}`);
  }
  const secret = bytesOfHex(receipt.secret), cost = whole(receipt.costs[measure]), drawn = bytesOfHex(receipt.report);
  need(drawn.length === statement.width, "your report is not among the reports");
  const report = join(markOf("report", secret), drawn);
  need(records === null || records.some((record) => same(record, report)), "your report is not among the reports");
  const { account, charge } = members(proof, "account charge", "the proof");
  members(account, "index path salt total", "the proof"); members(charge, "salt", "the proof");
  textLike(charge.salt, HEX32); textLike(account.salt, HEX32);
  const mine = sha256(join(bytesOfHex(charge.salt), markOf("charge", secret), eightBytes(cost)));
  need(charges.some((each) => same(each, mine)), "your charge is not among the charges");
  const total = whole(account.total), steps = stepsOf(total, limit);
  need(total <= limit && roundedUp(steps, limit) <= BigInt(statement.maximum), "your total is above the maximum");
  const hidden = sha256(join(bytesOfHex(account.salt), eightBytes(total)));
  const leaf = join([65, Number(steps)], hidden);
  const found = rootFromPath(leaf, account.index, statement.accounts, bytesOfBase64(account.path));
  need(hexOf(found) === statement.accounts_root, "your account is not among the accounts");
  need(new Set(receipts.map((each) => each.secret)).size === receipts.length, "a receipt is given twice");
  const sum = receipts.reduce((all, each) => all + BigInt(whole(each.costs[measure])), 0n);
  need(BigInt(total) >= sum, "the total is below your receipts");
  return { cost, total };
};

// Check the files of a folder (with `get(path)`, such as a Map from path to Uint8Array) and, with receipts (bytes, or objects)
// and the bytes of a proof, one respondent's part. Throws `Refused`, or another error for a malformed file; returns what is proved, and
// in `unchecked` what was given and not checked.
const check = async (files, vkeys, receipts = [], proof = null, seen = null) => {
  const keys = readKeys(vkeys), published = await checkFolder(files, keys, seen), { statement, client, records, kept, least } = published;
  need((receipts.length > 0) === (proof !== null), "receipt and proof are checked together: one of them is missing");
  let mine = null;
  if (receipts.length) {
    const read = [];
    for (const each of receipts) read.push(await readReceipt(each instanceof Uint8Array ? each : bytesOf(JSON.stringify(each)), statement));
    need(proof.length <= SMALL, "the file of the proof is too large");
    mine = checkReceipt(published, read, readJson(proof, "the proof"));
  }
  const names = statement.estimate === null ? [] : client.answers ?? statement.estimate.counts.map((_, answer) => String(answer));
  need(statement.estimate === null || names.length === statement.estimate.counts.length, "the definition has another number of answers than its program");
  const unchecked = [...(kept === null ? ["program"] : []), ...(mine && !(statement.measure in least) ? ["cost"] : [])];
  const notGiven = [...(mine ? [] : ["receipt"]), ...(keys.length > 1 ? [] : ["witness"]), ...(seen ? [] : ["seen"])];
  return {
    statement, client, names, mine, yours: mine !== null, reportsPublished: records !== null, programChecked: kept !== null,
    kept, unchecked, notGiven, witnesses: published.witnesses, statements: published.statements, ofThisSurvey: published.mine,
  };
};

export { Refused, amount, canonical, check, hexOf, lawOf, plain, quoted, sha256 };

if (typeof process !== "undefined" && process.argv?.[1]?.endsWith("check_books.mjs")) {
  const { readFileSync, statSync } = await import("node:fs"), { join: path } = await import("node:path");
  const bytes = (place, most) => {
    const found = statSync(place, { throwIfNoEntry: false });
    if (!found?.isFile()) return undefined;
    need(found.size <= most, "a file is too large");
    return new Uint8Array(readFileSync(place));
  };
  const given = { key: [], receipt: [], proof: [], seen: [] }, [folder, ...rest] = process.argv.slice(2);
  try {
    for (let i = 0; i < rest.length; i += 2) {
      const name = rest[i].slice(2);
      need(Object.hasOwn(given, name) && rest[i] === `--${name}` && i + 1 < rest.length, "the options are --key, --receipt, --proof and --seen");
      given[name].push(rest[i + 1]);
    }
    const named = (place) => {
      const found = bytes(place, LARGE);
      need(found !== undefined, "a file is missing");
      return found;
    };
    const files = { get: (name, most) => bytes(path(folder, name), most) }, one = (places) => (places.length ? named(places.at(-1)) : null);
    console.log(canonical(await check(files, given.key, given.receipt.map(named), one(given.proof), one(given.seen))));
  } catch (error) {
    console.log(error instanceof Refused ? `REFUSED: ${plain(error.message, 400)}` : `REFUSED: a file is missing or malformed: ${plain(String(error.message), 300)}`);
    process.exitCode = 1;
  }
}
