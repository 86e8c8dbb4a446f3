// made by clients/survey/build.mjs from 39 files with the digest 7d8dd84302b5cc42d4ccb498f70cf9c63015edab1056958a45fa1b7a117e538a
// clients/survey/src/texts.js
var texts = {};
var language = "en";
function speak(all, wanted) {
  language = wanted in all ? wanted : Object.keys(all)[0];
  texts = all[language];
  formats = formatsOf(language);
}
function say(key, values = {}) {
  const text = texts[key] ?? key;
  return text.replace(/\{([a-z_]+)\}/g, (place2, name) => name in values ? String(values[name]) : place2);
}
var said = (key) => key in texts;
function formatsOf(tag2) {
  const digits = { maximumSignificantDigits: 3, useGrouping: false };
  const date2 = (
    /** @type {const} */
    { year: "numeric", month: "long", day: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" }
  );
  const number = (options) => new Intl.NumberFormat(tag2, options);
  return {
    up: number({ ...digits, roundingMode: "ceil" }),
    down: number({ ...digits, roundingMode: "floor" }),
    plain: number({ maximumFractionDigits: 20, useGrouping: false }),
    share: number({ style: "percent", maximumFractionDigits: 1 }),
    shareUp: number({ style: "percent", maximumFractionDigits: 0, roundingMode: "ceil" }),
    low: number({ style: "percent", maximumFractionDigits: 1, roundingMode: "floor" }),
    high: number({ style: "percent", maximumFractionDigits: 1, roundingMode: "ceil" }),
    bytes: number({ style: "unit", unit: "byte", unitDisplay: "long" }),
    date: new Intl.DateTimeFormat(tag2, date2),
    day: new Intl.DateTimeFormat(tag2, { year: "numeric", month: "long", day: "numeric", timeZone: "UTC" }),
    shortDate: new Intl.DateTimeFormat(tag2, { ...date2, month: "short" })
  };
}
var formats = formatsOf(language);
var up = (number) => formats.up.format(
  /** @type {any} */
  String(number)
);
var down = (number) => formats.down.format(
  /** @type {any} */
  String(number)
);
var plain = (number) => formats.plain.format(
  /** @type {any} */
  String(number)
);
var share = (number) => formats.share.format(number);
var shareUp = (number) => formats.shareUp.format(number);
var sureness = (q) => {
  const digits = Math.max(1, Math.ceil(-Math.log10(100 * q / (1 + q))));
  const format = { style: "percent", maximumFractionDigits: digits, roundingMode: "ceil" };
  return new Intl.NumberFormat(
    language,
    /** @type {any} */
    format
  ).format(1 / (1 + q));
};
var bytes = (count) => formats.bytes.format(count);
var date = (moment) => formats.date.format(new Date(moment));
var day = (text) => formats.day.format(/* @__PURE__ */ new Date(`${text}T00:00:00Z`));
var shortDate = (moment) => formats.shortDate.format(new Date(moment));

// clients/survey/src/languages.js
var { texts: texts2 = "", integrity } = (
  /** @type {HTMLElement} */
  document.querySelector("main").dataset
);
var tag = document.documentElement.lang;
var answer = await fetch(texts2, { integrity });
speak({ [tag]: await answer.json() }, tag);

// clients/js/src/bytes.js
var encoder = new TextEncoder();
var utf8 = (text) => encoder.encode(text);
var ENDS = "[\\s\\x1c-\\x1f\\x85\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u2069\\ufeff]+";
var AROUND = new RegExp(`^${ENDS}|${ENDS}$`, "gu");
var canonicalText = (text) => text.normalize("NFC").replace(AROUND, "");
function littleEndian(number, size) {
  const bytes2 = new Uint8Array(8);
  new DataView(bytes2.buffer).setBigUint64(0, BigInt(number), true);
  return bytes2.subarray(0, size);
}
function fromLittleEndian(bytes2) {
  if (bytes2.length > 4) return (BigInt(fromLittleEndian(bytes2.subarray(4))) << 32n) + BigInt(fromLittleEndian(bytes2.subarray(0, 4)));
  let number = 0;
  for (let i = bytes2.length; i--; ) number = number * 256 + bytes2[i];
  return number;
}
function words(bytes2) {
  const view = new DataView(bytes2.buffer, bytes2.byteOffset, bytes2.length);
  const found = [];
  for (let i = 0; i < bytes2.length; i += 8) found.push(view.getBigUint64(i, true));
  return found;
}
function halves(bytes2) {
  const found = new Uint32Array(bytes2.length >> 2);
  for (let i = 0; i < bytes2.length; i++) found[i >> 2] |= bytes2[i] << 8 * (i & 3);
  return found;
}
function joined(...parts2) {
  const all = new Uint8Array(parts2.reduce((size, part) => size + part.length, 0));
  let at2 = 0;
  for (const part of parts2) {
    all.set(part, at2);
    at2 += part.length;
  }
  return all;
}
var toHex = (bytes2) => Array.from(bytes2, (byte) => byte.toString(16).padStart(2, "0")).join("");
function fromHex(hex) {
  if (typeof hex !== "string" || !/^([0-9a-f]{2})*$/i.test(hex)) throw new TypeError("expected pairs of hex digits");
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

// clients/js/src/hashes.js
var primes = [2];
for (let n = 3; primes.length < 64; n += 2) if (primes.every((p) => n % p)) primes.push(n);
var fraction = (x) => x % 1 * 2 ** 32 | 0;
var K = primes.map((p) => fraction(Math.cbrt(p)));
function root(p) {
  let x = 1n << 67n;
  for (let i = 0; i < 20; i++) x = x + (BigInt(p) << 128n) / x >> 1n;
  return littleEndian(x, 8);
}
var START = halves(joined(...primes.slice(0, 8).map(root)));
function sha256(message) {
  const data = new Uint8Array(message.length + 72 >> 6 << 6);
  data.set(message);
  data[message.length] = 128;
  const view = new DataView(data.buffer);
  view.setUint32(data.length - 4, message.length * 8);
  const h = START.filter((_, i) => i & 1);
  const w = new Int32Array(64);
  const right = (x, n) => x >>> n | x << 32 - n;
  for (let start2 = 0; start2 < data.length; start2 += 64) {
    let [a, b, c, d, e, f, g, k] = h;
    for (let i = 0; i < 64; i++) {
      const x = w[i - 15];
      const y = w[i - 2];
      w[i] = i < 16 ? view.getInt32(start2 + 4 * i) : w[i - 16] + w[i - 7] + (right(x, 7) ^ right(x, 18) ^ x >>> 3) + (right(y, 17) ^ right(y, 19) ^ y >>> 10);
      const one = k + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + (e & f ^ ~e & g) + K[i] + w[i];
      const two = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + (a & b ^ a & c ^ b & c);
      [a, b, c, d, e, f, g, k] = [one + two | 0, a, b, c, d + one | 0, e, f, g];
    }
    [a, b, c, d, e, f, g, k].forEach((x, i) => h[i] += x);
  }
  return new Uint8Array(32).map((_, i) => h[i >> 2] >>> 8 * (~i & 3));
}
var TURNS = new Uint8Array(72);
for (let t = 0, x = 1, y = 0; t < 24; t++) {
  const from = 2 * (x + 5 * y);
  const turn2 = (t + 1) * (t + 2) / 2 % 64;
  [x, y] = [y, (2 * x + 3 * y) % 5];
  TURNS.set([from + (turn2 >> 5), turn2 & 31, 2 * (x + 5 * y)], 3 * t);
}
var ROUNDS = Array.from({ length: 24 }, () => [0, 0]);
for (let round = 0, state = 1; round < 24; round++) {
  for (let j = 0; j < 7; j++) {
    const place2 = 2 ** j - 1;
    if (state & 1) ROUNDS[round][place2 >> 5] |= 1 << (place2 & 31);
    state = state << 1 ^ (state >> 7) * 369;
  }
}
function keccak(s, b) {
  const c = new Int32Array(10);
  for (const [low, high] of ROUNDS) {
    for (let x = 0; x < 10; x++) c[x] = s[x] ^ s[x + 10] ^ s[x + 20] ^ s[x + 30] ^ s[x + 40];
    for (let x = 0; x < 10; x++) {
      const next = (x + 2) % 10;
      const turned = (c[next] << 1 | c[next ^ 1] >>> 31) ^ c[(x + 8) % 10];
      for (let y = x; y < 50; y += 10) s[y] ^= turned;
    }
    b[0] = s[0];
    b[1] = s[1];
    for (let i = 0; i < 72; i += 3) {
      const n = TURNS[i + 1];
      const to = TURNS[i + 2];
      const one = s[TURNS[i]];
      const other = s[TURNS[i] ^ 1];
      b[to] = one << n | other >>> 32 - n;
      b[to + 1] = other << n | one >>> 32 - n;
    }
    for (let y = 0; y < 50; y += 10) {
      for (let i = y; i < y + 2; i++) {
        s[i] = b[i] ^ ~b[i + 2] & b[i + 4];
        s[i + 2] = b[i + 2] ^ ~b[i + 4] & b[i + 6];
        s[i + 4] = b[i + 4] ^ ~b[i + 6] & b[i + 8];
        s[i + 6] = b[i + 6] ^ ~b[i + 8] & b[i];
        s[i + 8] = b[i + 8] ^ ~b[i] & b[i + 2];
      }
    }
    s[0] ^= low;
    s[1] ^= high;
  }
}
function shake(rate, message, size) {
  const state = new Int32Array(50);
  const between = new Int32Array(50);
  const data = new Uint8Array(rate * Math.ceil((message.length + 1) / rate));
  data.set(message);
  data[message.length] = 31;
  data[data.length - 1] ^= 128;
  halves(data).forEach((half, i) => {
    const place2 = i % (rate / 4);
    if (i && !place2) keccak(state, between);
    state[place2] ^= half;
  });
  return new Uint8Array(size).map((_, i) => {
    const place2 = i % rate;
    if (!place2) keccak(state, between);
    return state[place2 >> 2] >>> 8 * (place2 & 3);
  });
}
var SIGMA = Array.from(
  "0123456789abcdefea489fd61c02b753b8c052fdae3671947931dcbe265a40f8905724afe1bc683d2c6a0b834d75fe19c51fed4a0763928bdb7ec13950f4862a6fe9b308c2d714a5a2847615fb9e3cd0",
  (digit) => 2 * parseInt(digit, 16)
);
var PLACES = Array.from({ length: 8 }, (_, i) => [0, 1, 2, 3].map((row2) => 8 * row2 + 2 * (i + row2 * (i >> 2) & 3)));
var NO_KEY = new Uint8Array(0);
function blakeRound(v, m, round) {
  for (let i = 0; i < 16; i++) {
    const [a, b, c, d] = PLACES[i >> 1];
    add(v, a, v, b);
    add(v, a, m, SIGMA[16 * (round % 10) + i]);
    turn(v, d, a, i & 1 ? 16 : 32);
    add(v, c, v, d);
    turn(v, b, c, i & 1 ? 63 : 24);
  }
}
function add(v, to, from, at2) {
  const low = v[to] + from[at2];
  v[to] = low;
  v[to + 1] += from[at2 + 1] + (low > 4294967295 ? 1 : 0);
}
function turn(v, to, by, n) {
  const low = v[to] ^ v[by];
  const high = v[to + 1] ^ v[by + 1];
  const swap = n >> 5;
  v[to + swap] = low >>> n | high << 1 << 31 - n;
  v[to + 1 - swap] = high >>> n | low << 1 << 31 - n;
}
function blake2b(message, { size, key = NO_KEY, person = "" }) {
  const parameters = new Uint8Array(64);
  parameters.set([size, key.length, 1, 1]);
  parameters.set(utf8(person), 48);
  const h = halves(parameters).map((half, i) => half ^ START[i]);
  const start2 = key.length && 128;
  const length = start2 + message.length;
  const blocks = Math.ceil(length / 128) || 1;
  const data = new Uint8Array(128 * blocks);
  data.set(key);
  data.set(message, start2);
  const v = new Uint32Array(32);
  for (let block = 1; block <= blocks; block++) {
    const m = halves(data.subarray(128 * block - 128, 128 * block));
    v.set(h);
    v.set(START, 16);
    v[24] ^= Math.min(128 * block, length);
    if (block === blocks) for (const half of [28, 29]) v[half] = ~v[half];
    for (let round = 0; round < 12; round++) blakeRound(v, m, round);
    for (let i = 0; i < 16; i++) h[i] ^= v[i] ^ v[i + 16];
  }
  return new Uint8Array(size).map((_, i) => h[i >> 2] >>> 8 * (i & 3));
}

// clients/js/src/definition.js
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value && typeof value === "object") {
    const entries = Object.keys(value).sort().map((name) => `${canonical(name)}:${canonical(value[name])}`);
    return `{${entries.join(",")}}`;
  }
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw new TypeError(`not a whole number: ${value}`);
  if (typeof value === "string" && /\p{Surrogate}/u.test(value)) throw new TypeError("a text with half of a character");
  const escaped2 = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escaped2);
}
function digestOf({ digest, ...rest }) {
  return toHex(sha256(utf8(canonical(rest))));
}
function checkDigest(definition, expected) {
  const found = digestOf(definition);
  for (const digest of [definition.digest, expected ?? found]) {
    if (digest !== found) throw new TypeError(`the definition has the digest ${found}, and not the agreed ${digest}`);
  }
}
function parseDefinition(text) {
  const found = JSON.parse(text);
  const again = text.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (token) => token[0] === '"' ? JSON.stringify(JSON.parse(token)) : "");
  if (again !== JSON.stringify(found)) throw new TypeError("the definition repeats a key, or has a number that is not whole");
  return found;
}

// clients/js/src/normal.js
var PROPOSALS = 10;
var HALF = 1n << 63n;
var shifted = (whole3, [high, low], places) => whole3 * 2 ** places + Math.floor(high * 2 ** (places - 32)) + Math.floor(low * 2 ** (places - 64));
var signed = (magnitude, negative) => negative ? -magnitude - 1 : magnitude;
function normal(draws, places) {
  for (; ; ) {
    const found = accepted(draws, places);
    const signs = draws.bits(HALF, found.length);
    if (found.length) return signed(found[0], signs[0]);
  }
}
function accepted(draws, places) {
  const whole3 = wholeParts(draws);
  const fraction2 = draws.deviates(whole3.length);
  const trials2 = whole3.map((k) => k + 1);
  const kept2 = allSucceed(trials2, (slots) => trial(draws, whole3, fraction2, slots));
  return whole3.flatMap((k, i) => kept2[i] ? [shifted(k, fraction2[i], places)] : []);
}
function wholeParts(draws) {
  const whole3 = new Array(PROPOSALS).fill(0);
  let alive = whole3.map((_, i) => i);
  while (alive.length) {
    const goesOn = halfExponential(draws, alive.length);
    alive = alive.filter((_, i) => goesOn[i]);
    for (const slot of alive) whole3[slot]++;
  }
  const trials2 = whole3.map((k) => k * (k - 1));
  const kept2 = allSucceed(trials2, (slots) => halfExponential(draws, slots.length));
  return whole3.filter((_, i) => kept2[i]);
}
function allSucceed(trials2, attempt) {
  const ok = trials2.map(() => true);
  let alive = trials2.map((_, i) => i).filter((slot) => trials2[slot] > 0);
  for (let done = 1; alive.length; done++) {
    const success = attempt(alive);
    alive.forEach((slot, i) => ok[slot] = success[i]);
    alive = alive.filter((slot) => ok[slot] && trials2[slot] > done);
  }
  return ok;
}
function halfExponential(draws, size) {
  const even = new Array(size).fill(true);
  const last = draws.deviates(size);
  let falling3 = even.map((_, i) => i).filter((i) => last[i][0] < 2 ** 31);
  while (falling3.length) {
    for (const i of falling3) even[i] = !even[i];
    falling3 = stillFalling(draws, last, falling3);
  }
  return even;
}
function stillFalling(draws, last, slots) {
  const fresh = draws.deviates(slots.length);
  const less = slots.filter((slot, i) => draws.isLess(fresh[i], last[slot]));
  slots.forEach((slot, i) => last[slot] = fresh[i]);
  return less;
}
function trial(draws, whole3, fraction2, slots) {
  const even = new Set(slots);
  const last = [...fraction2];
  for (let falling3 = slots; falling3.length; ) {
    falling3 = belowRatio(draws, whole3, fraction2, stillFalling(draws, last, falling3));
    for (const slot of falling3) even.delete(slot) || even.add(slot);
  }
  return slots.map((slot) => even.has(slot));
}
function belowRatio(draws, whole3, fraction2, slots) {
  const interval = draws.belowEach(slots.map((slot) => 2 * whole3[slot] + 1));
  const undecided = slots.filter((slot, i) => interval[i] === 2 * whole3[slot]);
  const drawn2 = draws.deviates(undecided.length);
  return slots.filter((slot, i) => interval[i] < 2 * whole3[slot] || interval[i] === 2 * whole3[slot] && draws.isLess(drawn2[undecided.indexOf(slot)], fraction2[slot]));
}

// clients/js/src/numbers.js
var MOST = 2 ** 23;
var MOST_BITS = 4096;
var MOST_SHIFT = 2 ** 16;
var LARGEST = 1n << BigInt(MOST_BITS);
var NUMBER = /^(0|-?[1-9][0-9]{0,1233})$/;
function within(number, least, most) {
  number = /** @type {T} */
  number.valueOf();
  if ((typeof number === "bigint" || Number.isInteger(number)) && number >= least && number <= most) return number;
  throw new RangeError(`a number of the program must be a whole number from ${least} to ${most}: got ${number}`);
}
var sized = (number) => Number(within(number, 0, MOST));
function small(number) {
  if (number >= LARGEST || number <= -LARGEST) throw new RangeError(`a number of more than ${MOST_BITS} bits`);
  return number >= -9007199254740991n && number <= 9007199254740991n ? Number(number) : number;
}
function literal(number) {
  if (Number.isSafeInteger(number) || typeof number === "string" && NUMBER.test(number)) return small(BigInt(number));
  throw new TypeError(`no number, and nothing before it is called ${number}`);
}
var isPlain = (text) => typeof text === "string" && /^[ -~]{0,200}$/.test(text);
function exact(operate) {
  return (a, b) => {
    if (typeof a === "number" && typeof b === "number") {
      const result = operate(a, b);
      if (Number.isSafeInteger(result)) return result;
    }
    return small(operate(BigInt(a), BigInt(b)));
  };
}
var wide = (operate) => (a, b) => small(operate(BigInt(a), BigInt(b)));
var bitwise = (operate) => (a, b) => {
  const [one, other] = [within(a, 0, LARGEST), within(b, 0, LARGEST)];
  return (Number(one) | 0) === one && (Number(other) | 0) === other ? operate(one, other) : wide(operate)(one, other);
};
var floored = (a, b) => a / b - (a % b !== 0n && a < 0n !== b < 0n ? 1n : 0n);
function parity(a) {
  let odd = 0;
  for (let rest = BigInt(within(a, 0, LARGEST)); rest; rest >>= 1n) odd ^= Number(rest & 1n);
  return odd;
}
var EACH = /* @__PURE__ */ new Map(
  /** @type {[string, (...numbers: any[]) => Whole][]} */
  [
    ["add", exact((a, b) => a + b)],
    ["sub", exact((a, b) => a - b)],
    ["mul", exact((a, b) => a * b)],
    ["div", wide((a, b) => floored(a, within(b, 1, LARGEST)))],
    ["mod", wide((a, b) => a - b * floored(a, within(b, 1, LARGEST)))],
    ["shr", wide((a, b) => a >> within(b, 0, MOST_SHIFT))],
    ["shl", wide((a, b) => a << within(b, 0, MOST_SHIFT))],
    ["and", bitwise((a, b) => a & b)],
    ["xor", bitwise((a, b) => a ^ b)],
    ["min", (a, b) => a < b ? a : b],
    ["max", (a, b) => a > b ? a : b],
    ["lt", (a, b) => a < b ? 1 : 0],
    ["ge", (a, b) => a >= b ? 1 : 0],
    ["eq", (a, b) => a == b ? 1 : 0],
    // a Number and a BigInt may be the same
    ["where", (c, a, b) => within(c, 0, 1) ? a : b],
    ["parity", parity]
  ]
);
function checkNextToNone(name, given) {
  const number = (i, least, most) => Array.isArray(given[i]) || within(given[i], least, most);
  if (name === "div" || name === "mod") number(1, 1, LARGEST);
  if (name === "shl" || name === "shr") number(1, 0, MOST_SHIFT);
  if (name === "where") number(0, 0, 1);
  if (name === "and" || name === "xor") [0, 1].forEach((i) => number(i, 0, LARGEST));
}
function put(vector, place2, number) {
  const changed = [...vector];
  changed[Number(within(place2, 0, vector.length - 1))] = number;
  return changed;
}
var ascends = /* @__PURE__ */ new WeakSet();
function rank(vector, number) {
  if (!ascends.has(vector)) {
    for (let i = 1; i < vector.length; i++) {
      if (vector[i - 1] > vector[i]) throw new RangeError("the program needs a vector that ascends");
    }
    ascends.add(vector);
  }
  let low = 0;
  let high = vector.length;
  while (low < high) {
    const middle = low + high >> 1;
    if (vector[middle] <= number) low = middle + 1;
    else high = middle;
  }
  return low;
}
function floyd(vector, least) {
  const chosen = /* @__PURE__ */ new Set();
  return vector.map((drawn2, place2) => {
    drawn2 = drawn2.valueOf();
    const own = chosen.has(drawn2) ? small(BigInt(least) - 1n + BigInt(place2)) : drawn2;
    chosen.add(own);
    return own;
  });
}
var flags = (bits) => bits.map((bit) => Number(within(bit, 0, 1)));
var join = (bits) => small(flags(bits).reduce((sum2, bit, i) => sum2 | BigInt(bit) << BigInt(i), 0n));
var ascending = (a, b) => a < b ? -1 : a > b ? 1 : 0;
var WHOLE = /* @__PURE__ */ new Map(
  /** @type {[string, (...given: any[]) => any][]} */
  [
    ["at", (vector, place2) => vector[Number(within(place2, 0, vector.length - 1))]],
    ["put", put],
    ["sort", (vector) => [...vector].sort(ascending)],
    ["first", (bits) => Math.max(0, flags(bits).indexOf(1))],
    ["rank", rank],
    ["onehot", (place2, size) => put(new Array(sized(size)).fill(0), place2, 1)],
    ["join", join],
    ["floyd", floyd]
  ]
);

// clients/js/src/draws.js
var ONE = 1n << 64n;
var HALF2 = ONE >> 1n;
var LOW = (1n << 56n) - 1n;
var MOST_BOUND = 1n << 63n;
var BLOCK = 1 << 18;
var PLACES2 = 40;
var MOST_BYTES = 65536;
var POOL = 256;
function systemBytes(count) {
  const bytes2 = new Uint8Array(count);
  for (let at2 = 0; at2 < count; at2 += MOST_BYTES) globalThis.crypto.getRandomValues(bytes2.subarray(at2, at2 + MOST_BYTES));
  return bytes2;
}
function systemStream() {
  let pool = new Uint8Array(0);
  return (count) => {
    if (pool.length < count) pool = systemBytes(Math.max(count, POOL));
    const found = pool.subarray(0, count);
    pool = pool.subarray(count);
    return found;
  };
}
var widthOf = (last) => (
  /** @type {number} */
  [1, 2, 4, 8].find((width) => last < 256 ** width)
);
var cut = (word, last) => typeof word === "bigint" ? small(BigInt.asUintN(last.toString(2).length, word)) : word % 2 ** (32 - Math.clz32(Number(last)));
var Draws = class {
  /** @param {Read} read */
  constructor(read2 = systemStream()) {
    this.read = read2;
  }
  /** @param {Whole} t */
  bit(t) {
    return this.bits(t, 1)[0];
  }
  /**
   * @param {Whole} t
   * @param {Whole} n
   */
  bits(t, n) {
    const threshold = BigInt(within(t, 0, ONE));
    const size = sized(n);
    if (!(threshold % ONE)) return new Array(size).fill(threshold ? 1 : 0);
    let found = [];
    while (found.length < size) found = found.concat(this.compare(threshold, Math.min(BLOCK, size - found.length), (threshold & LOW) !== 0n));
    return found;
  }
  /** @param {Whole} t */
  bit_at(t) {
    return this.compare(BigInt(within(t, 0, ONE - 1n)), 1, true)[0];
  }
  /**
   * @param {bigint} threshold
   * @param {number} size
   * @param {boolean} ties whether more is read where a byte does not decide
   */
  compare(threshold, size, ties) {
    const top = Number(threshold >> 56n);
    const low = threshold & LOW;
    const found = [];
    const tied = [];
    for (const byte of this.read(size)) {
      if (byte === top && ties) tied.push(found.length);
      found.push(byte < top ? 1 : 0);
    }
    const more = this.read(7 * tied.length);
    tied.forEach((place2, i) => found[place2] = fromLittleEndian(more.subarray(7 * i, 7 * i + 7)) < low ? 1 : 0);
    return found;
  }
  /** @param {Vector} vector */
  bits_each(vector) {
    return vector.map((t) => this.bit(t));
  }
  /** @param {Whole} b */
  below(b) {
    return this.belows(b, 1)[0];
  }
  /**
   * @param {Whole} b
   * @param {Whole} n
   * @returns {Vector}
   */
  belows(b, n) {
    const last = small(BigInt(within(b, 1, MOST_BOUND)) - 1n);
    const size = sized(n);
    let found = [];
    while (found.length < size) {
      const words2 = this.words(widthOf(last), new Array(size - found.length).fill(last));
      found = found.concat(words2.filter((word) => word <= last));
    }
    return found;
  }
  /**
   * Words of some bytes, each cut to the bits that a number needs.
   * @param {number} width
   * @param {Vector} numbers
   */
  words(width, numbers) {
    const bytes2 = this.read(width * numbers.length);
    return numbers.map((last, i) => cut(fromLittleEndian(bytes2.subarray(width * i, width * (i + 1))), last));
  }
  /**
   * One number up to each of these, by words as wide as the largest needs.
   * @param {number[]} lasts
   */
  belowEach(lasts) {
    const width = widthOf(Math.max(...lasts));
    const found = [];
    for (let pending = lasts.map((_, slot) => slot); pending.length; ) {
      const words2 = this.words(width, pending.map((slot) => lasts[slot]));
      pending = pending.filter((slot, i) => (found[slot] = words2[i]) > lasts[slot]);
    }
    return found;
  }
  /**
   * @param {Whole} b
   * @param {Whole} n
   */
  belows_from(b, n) {
    within(BigInt(within(b, 1, MOST_BOUND)) + BigInt(Math.max(0, sized(n) - 1)), 1, MOST_BOUND);
    return Array.from({ length: sized(n) }, (_, i) => this.below(BigInt(b) + BigInt(i)));
  }
  /**
   * @param {Whole} m
   * @param {Whole} n
   * @returns {Vector}
   */
  subset(m, n) {
    const size = sized(within(n, 0, within(m, 1, MOST_BOUND)));
    if (2 * size <= m) return this.distinct(m, size);
    const population = sized(m);
    const left = new Set(this.distinct(population, population - size));
    return Array.from({ length: population }, (_, i) => i).filter((i) => !left.has(i));
  }
  /**
   * @param {Whole} population
   * @param {number} size
   */
  distinct(population, size) {
    const row2 = this.belows(population, size).sort(ascending);
    for (; ; ) {
      const repeated = row2.flatMap((number, i) => i && number === row2[i - 1] ? [i] : []);
      if (!repeated.length) return row2;
      const drawn2 = this.belows(population, repeated.length);
      repeated.forEach((place2, i) => row2[place2] = drawn2[i]);
      row2.sort(ascending);
    }
  }
  /** @param {Vector} vector */
  shuffle(vector) {
    const row2 = [...vector];
    for (let last = row2.length - 1; last > 0; last--) {
      const chosen = Number(this.below(last + 1));
      [row2[chosen], row2[last]] = [row2[last], row2[chosen]];
    }
    return row2;
  }
  /** @param {Whole} t */
  geometric(t) {
    let count = 0;
    within(t, 0, ONE - 1n);
    while (this.bit(t)) count++;
    return count;
  }
  /** @param {Whole} k */
  laplace(k) {
    const places = Number(within(k, 0, PLACES2));
    for (let whole3 = 0; ; whole3++) {
      const [first] = this.deviates(1);
      let last = first;
      let odd = true;
      for (let [fresh] = this.deviates(1); this.isLess(fresh, last); [fresh] = this.deviates(1)) {
        last = fresh;
        odd = !odd;
      }
      if (odd) return signed(shifted(whole3, first, places), this.bit(HALF2));
    }
  }
  /** @param {Whole} k */
  normal(k) {
    return normal(this, Number(within(k, 0, PLACES2)));
  }
  /**
   * Uniform deviates that are drawn together, as their digits of 32 bits: two that are drawn at once.
   * @param {number} count
   */
  deviates(count) {
    const found = halves(this.read(8 * count));
    const drawn2 = [];
    for (let i = 0; i < found.length; i += 2) drawn2.push([found[i + 1], found[i]]);
    return drawn2;
  }
  /**
   * Whether one deviate is less than another; further digits are drawn as far as that asks for them.
   * @param {number[]} one
   * @param {number[]} other
   */
  isLess(one, other) {
    for (let place2 = 0; ; place2++) {
      for (const each of [one, other]) if (place2 === each.length) each.push(...this.deviates(1)[0]);
      if (one[place2] !== other[place2]) return one[place2] < other[place2];
    }
  }
};

// clients/js/src/intervals.js
var LARGEST2 = 1n << 4096n;
var BIT = (
  /** @type {Interval} */
  [0n, 1n]
);
var Unconfirmed = class extends Error {
  /** @param {string} why */
  constructor(why) {
    super(why);
    this.name = "Unconfirmed";
  }
};
var hull = (...ends) => [ends.reduce((a, b) => a < b ? a : b), ends.reduce((a, b) => a > b ? a : b)];
var floored2 = (a, b) => a / b - (a % b !== 0n && a < 0n ? 1n : 0n);
function requires(holds, why) {
  if (!holds) throw new Unconfirmed(why);
}
var corners = (f) => (a, b) => hull(f(a[0], b[0]), f(a[0], b[1]), f(a[1], b[0]), f(a[1], b[1]));
var natural = (...each) => each.forEach(([low]) => requires(low >= 0n, "bits of a number below 0"));
var shifts = ([low, high]) => requires(low >= 0n && high <= 2048n, "a shift that may be too wide");
var OPERATORS = /* @__PURE__ */ new Map(
  /** @type {[string, (...given: Interval[]) => Interval][]} */
  [
    ["add", (a, b) => [a[0] + b[0], a[1] + b[1]]],
    ["sub", (a, b) => [a[0] - b[1], a[1] - b[0]]],
    ["mul", corners((a, b) => a * b)],
    ["div", (a, b) => (requires(b[0] > 0n, "a division by 0"), corners(floored2)(a, b))],
    ["mod", (a, b) => (requires(b[0] > 0n, "a division by 0"), a[0] >= 0n && a[1] < b[0] ? a : [0n, b[1] - 1n])],
    ["shr", (a, b) => (shifts(b), corners((x, y) => x >> y)(a, b))],
    ["shl", (a, b) => (shifts(b), corners((x, y) => x << y)(a, b))],
    ["and", (a, b) => (natural(a, b), [0n, a[1] < b[1] ? a[1] : b[1]])],
    ["xor", (a, b) => (natural(a, b), [0n, (1n << BigInt((a[1] | b[1]).toString(2).length)) - 1n])],
    ["min", (a, b) => [hull(a[0], b[0])[0], hull(a[1], b[1])[0]]],
    ["max", (a, b) => [hull(a[0], b[0])[1], hull(a[1], b[1])[1]]],
    ["lt", (a, b) => a[1] < b[0] ? [1n, 1n] : a[0] >= b[1] ? [0n, 0n] : BIT],
    ["ge", (a, b) => a[0] >= b[1] ? [1n, 1n] : a[1] < b[0] ? [0n, 0n] : BIT],
    ["eq", (a, b) => a[1] < b[0] || b[1] < a[0] ? [0n, 0n] : BIT],
    ["where", (c, a, b) => (requires(c[0] >= 0n && c[1] <= 1n, "a condition that is neither 0 nor 1"), hull(...a, ...b))],
    ["parity", (a) => (requires(a[0] >= 0n, "bits of a number below 0"), BIT)]
  ]
);
function intervalOf(name, given) {
  const operator = OPERATORS.get(name);
  if (!operator || given.length !== operator.length) {
    throw new Unconfirmed(`the operator ${name} of ${given.length} arguments`);
  }
  const found = operator(...given);
  requires(found[0] > -LARGEST2 && found[1] < LARGEST2, "numbers without bounds");
  return found;
}

// clients/js/src/exponentials.js
var PLACES3 = 512n;
var ONE2 = 1n << PLACES3;
var FINE = 2200n;
var GUARDED = 2000n;
var LARGEST_EPSILON = 300n;
function fractionOf(text) {
  const parts2 = typeof text === "string" && /^([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,3}))?$/.exec(text);
  if (!parts2) throw new TypeError(`not a decimal >= 0: ${text}. Write it as text, such as "0.5".`);
  const [, whole3, fraction2 = "", power2 = "0"] = parts2;
  const places = Number(power2) - fraction2.length;
  const digits = BigInt(whole3 + fraction2);
  return places >= 0 ? [digits * 10n ** BigInt(places), 1n] : [digits, 10n ** BigInt(-places)];
}
function exponential([a, b], places) {
  const halvings = 64n;
  const one = 1n << places;
  const x = (a << places) / (b << halvings);
  let sum2 = one;
  for (let term = one * x >> places, n = 1n; term; n++, term = term * x / (one * n)) sum2 += term;
  for (let i = 0n; i < halvings; i++) sum2 = sum2 * sum2 >> places;
  return sum2;
}
function oddsBelow(epsilon) {
  const [a, b] = fractionOf(epsilon);
  return exponential(a > LARGEST_EPSILON * b ? [LARGEST_EPSILON, 1n] : [a, b], PLACES3);
}
function normalBelow(a, b) {
  const one = 1n << FINE;
  const x = ((a < 0n ? -a : a) << FINE) / b;
  const square = x * x >> FINE;
  let sum2 = 0n;
  for (let term = x, n = 3n; term; term = term * square / (one * n), n += 2n) sum2 += term;
  const density = one * one / (exponential([square, 2n * one], FINE) * rootOfTwoPi(one) >> FINE);
  const half = one / 2n;
  const upper = sum2 * density >> FINE;
  return a < 0n ? half - upper : half + upper;
}
function rootOfTwoPi(one) {
  const arctangent = (n) => {
    let sum2 = 0n;
    for (let power2 = one / n, k = 1n, sign = 1n; power2; power2 /= n * n, k += 2n, sign = -sign) sum2 += sign * power2 / k;
    return sum2;
  };
  const pi = 4n * (4n * arctangent(5n) - arctangent(239n));
  return rootOf(2n * pi * one);
}
function rootOf(square) {
  let root2 = 1n << BigInt(square.toString(2).length + 1 >> 1);
  for (let next = root2 + square / root2 >> 1n; next < root2; next = root2 + square / root2 >> 1n) root2 = next;
  return root2;
}
function normalKeeps([s, t], epsilon, delta) {
  if (s === 0n) return true;
  const [a, b] = fractionOf(epsilon);
  const [c, d] = fractionOf(delta);
  if (a > 50n * b || s > 50n * t || a * t > 50n * b * s || c << 1900n < d) return false;
  const below = 2n * s * t * b;
  const upper = normalBelow(s * s * b - 2n * a * t * t, below);
  const lower = normalBelow(-s * s * b - 2n * a * t * t, below);
  const found = upper - (exponential([a, b], FINE) * lower >> FINE) + (1n << FINE - GUARDED);
  return found * d <= c << FINE;
}

// clients/js/src/tables.js
function tabled(table2) {
  if (!Array.isArray(table2)) return falling(table2);
  return table2.map((row2) => Array.isArray(row2) ? row2.map(literal) : literal(row2));
}
function falling({ first, ratio, digits, floor, count }) {
  const least = BigInt(floor);
  sized(count);
  const most = 10n ** BigInt(digits);
  const [times2, power2] = decimal(ratio);
  let [weight, exponent] = decimal(first);
  let total = 0n;
  const totals = [0];
  for (let i = 0; i < count; i++) {
    const whole3 = wholePart(weight, exponent);
    total += whole3 > least ? whole3 : least;
    totals.push(small(total));
    weight *= times2;
    exponent += power2;
    for (; weight >= most; exponent++) weight /= 10n;
  }
  return totals;
}
function wholePart(weight, exponent) {
  if (weight === 0n || exponent < -1e3) return 0n;
  if (exponent > 1300) throw new RangeError("a table of numbers that are too large");
  return exponent < 0 ? weight / 10n ** BigInt(-exponent) : weight * 10n ** BigInt(exponent);
}
function decimal(text) {
  const [, whole3, fraction2 = "", power2 = "0"] = (
    /** @type {RegExpExecArray} */
    /^([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(text)
  );
  return [BigInt(whole3 + fraction2), Number(power2) - fraction2.length];
}

// clients/js/src/syntax.js
var DRAWING = `
  bit:chance:number bits:chance,size:vector bit_at:odds:number bits_each:chances:vector below:bound:number
  belows:bound,size:vector belows_from:bound,size:vector subset:bound,size:vector shuffle:vector:vector
  geometric:odds:number laplace:places:number normal:places:number`;
var KEPT = `
  kept_bits:text,word,chance,size:vector kept_belows:text,word,bound,size:vector kept_top:text,word,top:number`;
var COMPUTING = `
  polynomial:text,function,number,bound:number bloom:text,number,number,filter,hashes:vector
  add:each,each:each sub:each,each:each mul:each,each:each div:each,divisor:each mod:each,divisor:each
  shr:each,shift:each shl:each,shift:each and:natural,natural:each xor:natural,natural:each min:each,each:each
  max:each,each:each lt:each,each:each ge:each,each:each eq:each,each:each where:choice,each,each:each
  parity:natural:each list:...:vector at:vector,number:number put:vector,number,number:vector sort:vector:vector
  first:flags:number rank:vector,number:number onehot:number,size:vector join:flags:number floyd:vector,number:vector`;
var FORMS = new Map(
  `${DRAWING} ${KEPT} ${COMPUTING}`.trim().split(/\s+/).map((row2) => {
    const [name, takes, gives] = row2.split(":");
    return [name, { takes: takes.split(","), gives }];
  })
);
var namesOf = (table2) => new Set(table2.trim().split(/\s+/).map((row2) => row2.split(":")[0]));
var DRAWS = namesOf(DRAWING);
var MEMOS = namesOf(KEPT);
var EACH2 = new Set("each divisor shift natural choice".split(" "));
var VECTORS = new Set("vector chances flags".split(" "));
var NAME = /^[a-z][a-z0-9_]*$/;
var DECIMAL = /^[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?$/;
var MOST_DEPTH = 100;
var MOST_WORD = 512;
var MOST_ITEMS = 50;
var MOST_DIGITS = 1e3;
var TEXTS = "contact context digest fingerprint format mechanism memo name purpose question title".split(" ");
var KEYS = [...TEXTS, ..."answers guarantee input languages report steps tables version".split(" ")];
var OPTIONAL = ["labels", "at_most"];
var OF_QUESTIONS = "kind slot unit items".split(" ");
var WORDS = new Set("title question purpose".split(" "));
var TAG = /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/;
var HIDDEN = /[\0-\x1f\x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u2066-\u2069\u3000\ufeff]/;
function needs(holds, why) {
  if (!holds) throw new TypeError(`the definition has ${why}; this client knows no such form`);
}
var hasKeys = (value, ...keys) => isObject(value) && Object.keys(value).sort().join() === keys.sort().join();
var isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
var isText = (value) => typeof value === "string" && !/\p{Surrogate}/u.test(value);
function finite(text) {
  const number = typeof text === "string" && DECIMAL.test(text.replace(/^-/, "")) ? Number(text) : NaN;
  needs(Number.isFinite(number), `a text that is no double: ${text}`);
  return number;
}
var counted = (value, least, most = MOST) => (needs(typeof value === "number", `a count that is no number: ${value}`), within(value, least, most));
function kindOf(expression, known2, depth = MOST_DEPTH) {
  if (!Array.isArray(expression)) return known2.get(expression) ?? (literal(expression), "number");
  const [name, ...given] = expression;
  const form = FORMS.get(name);
  if (!form) throw new TypeError(`this client does not know the operator ${name}; it is too old`);
  needs(depth, "operators that are too deep within each other");
  if (depth < MOST_DEPTH && (DRAWS.has(name) || MEMOS.has(name))) throw new TypeError(`${name} stands alone at the top of a step`);
  const takes = name === "list" ? given.map(() => "number") : form.takes;
  needs(given.length === takes.length, `${name} of ${given.length} arguments`);
  const text = takes[0] === "text" ? 1 : 0;
  needs(!text || isPlain(given[0]), `${name} of what is no plain text`);
  const kinds = given.slice(text).map((each) => kindOf(each, known2, depth - 1));
  if (name === "at" && `${kinds}` === "rows,number") return "vector";
  kinds.forEach((kind, i) => {
    const wanted = takes[i + text];
    needs(EACH2.has(wanted) ? kind === "number" || kind === "vector" : kind === (VECTORS.has(wanted) ? "vector" : "number"), `${name} of a ${kind}`);
  });
  return (
    /** @type {Kind} */
    form.gives === "each" ? kinds.includes("vector") ? "vector" : "number" : form.gives
  );
}
function kindOfTable(table2) {
  if (!Array.isArray(table2)) {
    needs(hasKeys(table2, "first", "ratio", "digits", "floor", "count"), "another table");
    needs([table2.first, table2.ratio].every((each) => typeof each === "string" && DECIMAL.test(each)), "a table of no decimals");
    counted(table2.digits, 1, MOST_DIGITS);
    counted(table2.count, 0);
    needs(literal(table2.floor) >= 0, "a table below 0");
    if (Number(table2.first) > 1e300 || Number(table2.ratio) > 1 || BigInt(table2.floor) > 10n ** 1000n) falling(table2);
    return "vector";
  }
  const rows = table2.filter(Array.isArray);
  needs(table2.length <= MOST, "a table that is too long");
  table2.flat().forEach(literal);
  if (!rows.length) return "vector";
  needs(rows.length === table2.length && rows.every((row2) => row2.length === rows[0].length), "a table of vectors of several lengths, or of numbers too");
  return "rows";
}
function setsOf(options, most) {
  let [found, ways] = [0n, 1n];
  for (let i = 0; i <= Math.min(most, options); i++) {
    found += ways;
    ways = ways * BigInt(options - i) / BigInt(i + 1);
  }
  return found;
}
function checkInput(input, names, most, items) {
  needs(isObject(input), "no input");
  const { kind } = input;
  if (!["answer", "word", "number"].includes(kind)) throw new TypeError(`this client does not know answers of the kind ${kind}; it is too old`);
  needs(kind === "answer" || names === null && most === void 0, "names of what are no choices");
  needs(names === null || Array.isArray(names), "names that are no list");
  if (kind === "answer") {
    needs(hasKeys(input, "kind", "count", "text") && typeof input.text === "boolean", "another input");
    const count = BigInt(literal(input.count));
    needs(count >= 1n, "no answers");
    if (most !== void 0) counted(most, 1, names?.length ?? 200);
    if (names === null) return;
    needs(names.every(isText), "names that are no texts");
    const own = new Set(names.map(canonicalText));
    needs(own.size === names.length && !own.has(""), "names that are not each a text of its own");
    const counts2 = items !== void 0 ? [BigInt(names.length) ** BigInt(items.length)] : most === void 0 ? [BigInt(names.length)] : [setsOf(names.length, most), 1n << BigInt(names.length)];
    needs(counts2.includes(count), "more or fewer names than answers");
  } else if (kind === "word") {
    needs(hasKeys(input, "kind", "length"), "another input");
    counted(input.length, 1, MOST_WORD);
  } else {
    const by = "times" in input ? "times" : "step";
    needs(hasKeys(input, "kind", "lower", "upper", "last", by), "another input");
    const [lower, upper, scale] = [input.lower, input.upper, input[by]].map(finite);
    needs(lower <= upper && scale > 0, "no range of numbers");
    needs(Number.isFinite(by === "times" ? (upper - lower) * scale : (upper - lower) / scale), "numbers that no double holds");
    counted(input.last, 0, Number.MAX_SAFE_INTEGER);
  }
}
function checkPart(part, known2) {
  needs(Array.isArray(part), "a part of the report that is no list");
  const [kind, name, ...sizes] = part;
  if (!["uint", "packed", "float64"].includes(kind)) throw new TypeError(`this client does not know the part ${kind} of a report; it is too old`);
  needs(typeof name === "string" && ["number", kind === "float64" ? "" : "vector"].includes(known2.get(name) ?? "none"), `a part that is no step: ${name}`);
  needs(sizes.length === { uint: 2, packed: 1, float64: 3 }[
    /** @type {"uint"} */
    kind
  ], `a part ${kind} of another form`);
  if (kind === "float64") {
    sizes.slice(0, 2).forEach(finite);
    literal(sizes[2]);
  } else {
    counted(sizes.at(-1), 0);
    if (kind === "uint") counted(sizes[0], 1, 8);
  }
}
function checkProgram({ input, tables, steps, memo, report, answers: answers2 = null, at_most, items }) {
  checkInput(input, answers2, at_most, items);
  needs(isObject(tables) && Array.isArray(steps), "no tables or no steps");
  const known2 = /* @__PURE__ */ new Map([["value", "number"]]);
  const define = (name, kind) => {
    if (typeof name !== "string" || !NAME.test(name) || known2.has(name)) throw new TypeError(`not a name of its own: ${name}`);
    known2.set(name, kind());
  };
  for (const [name, table2] of Object.entries(tables)) define(name, () => kindOfTable(table2));
  const kept2 = [];
  for (const step2 of steps) {
    needs(Array.isArray(step2) && step2.length === 2, "a step that is not a name and an expression");
    define(step2[0], () => kindOf(step2[1], known2));
    if (Array.isArray(step2[1]) && MEMOS.has(step2[1][0])) kept2.push(step2[0]);
  }
  if (!(kept2.length ? known2.get(memo) === "number" : memo === "")) throw new TypeError("memo is named where something is kept, and only there");
  needs(hasKeys(report, "dtype", "shape", "parts") && typeof report.dtype === "string" && Array.isArray(report.shape), "another report");
  report.shape.forEach((size) => counted(size, 0));
  needs(Array.isArray(report.parts) && report.parts.length, "no part of a report");
  const made2 = new Map(steps.map(([name]) => [
    name,
    /** @type {Kind} */
    known2.get(name)
  ]));
  report.parts.forEach((part) => checkPart(part, made2));
  return known2;
}
function checkForm(definition, within2 = false) {
  const known2 = /* @__PURE__ */ new Set([...KEYS, ...OPTIONAL, ...within2 ? OF_QUESTIONS : []]);
  needs(isObject(definition) && Object.keys(definition).every((key) => known2.has(key)), "keys of its own");
  const missing = KEYS.find((key) => !(key in definition));
  needs(missing === void 0, `no ${missing}`);
  const { format, version, languages, name, mechanism } = definition;
  needs(format === "ldp-budget client" && version === 1, "another format or version");
  needs(!("labels" in definition) || definition.labels === true && !!definition.memo, "labels of no memo");
  if ("items" in definition) checkItems(definition);
  needs(TEXTS.every((key) => isText(definition[key])) && isText(definition.unit ?? ""), "texts that are none");
  needs(!HIDDEN.test(name + mechanism), "a name that no line can show");
  needs(isObject(languages), "no languages");
  for (const [tag2, said3] of Object.entries(languages)) {
    needs(TAG.test(tag2) && isObject(said3), "other translations");
    for (const [key, words2] of Object.entries(said3)) {
      const answers2 = key === "answers" && Array.isArray(words2) && words2.length === (definition.answers ?? []).length && words2.every(isText);
      needs(answers2 || WORDS.has(key) && isText(words2), "other translations");
    }
  }
  checkGuarantee(definition);
}
function checkItems({ items, answers: answers2, at_most: most }) {
  needs(Array.isArray(items) && items.length > 1 && items.length <= MOST_ITEMS && Array.isArray(answers2) && most === void 0, "items of no grid");
  needs(new Set(items.map((each) => each?.name)).size === items.length, "items that are not each one of its own");
  for (const each of items) {
    needs(isObject(each) && hasKeys(each, "name", "text", "languages") && isText(each.name) && isText(each.text), "an item of another form");
    needs(isObject(each.languages) && Object.values(each.languages).every(isText), "other translations of an item");
  }
}
function checkGuarantee({ guarantee, memo }) {
  const oneSided = guarantee?.kind === "one-sided" ? ["eta"] : [];
  const figures2 = /* @__PURE__ */ new Set(["epsilon", "delta", ...oneSided, ...memo ? ["answer_epsilon", "lifetime_epsilon"] : []]);
  needs(isObject(guarantee) && "epsilon" in guarantee && "delta" in guarantee, "no epsilon or no delta");
  for (const [key, said3] of Object.entries(guarantee)) {
    if (figures2.has(key)) needs(said3 === null || typeof said3 === "string" && DECIMAL.test(said3), "a figure that is no decimal");
    else needs(["kind", "relation", "words"].includes(key) && isText(said3), "figures of its own");
  }
}

// clients/js/src/program.js
var VERSION = 1;
var NUMBER2 = /^(0|-?[1-9][0-9]*)$/;
var PRIME = (1n << 61n) - 1n;
var LARGEST_WORD = (1n << 64n) - 1n;
var LEAST_SECRET_BYTES = 16;
var MOST_REMEMBERED = 16;
var MOST_HASHES = 2 ** 16;
var LARGEST_VALUE = 1n << 63n;
var MEMO = /* @__PURE__ */ new Map(
  /** @type {[string, (word: bigint, given: Whole, place: number) => Whole][]} */
  [
    ["kept_bits", (word, t) => word < t ? 1 : 0],
    ["kept_belows", (word, b, i) => small(word % (BigInt(within(b, 1, MOST_BOUND)) + BigInt(i)))],
    ["kept_top", (word, k) => small(word >> BigInt(64 - Number(within(k, 0, 64))))]
  ]
);
var HASHES = /* @__PURE__ */ new Map(
  /** @type {[string, (seed: string) => (...given: any[]) => any][]} */
  [
    ["polynomial", polynomial],
    ["bloom", bloom]
  ]
);
function remembered(work) {
  const known2 = /* @__PURE__ */ new Map();
  return (...given) => {
    const key = `${given}`;
    if (!known2.has(key)) {
      if (known2.size === MOST_REMEMBERED) known2.clear();
      known2.set(key, work(...given));
    }
    return known2.get(key);
  };
}
function polynomial(seed) {
  const key = blake2b(utf8(seed), { size: 32, person: "ldp-budget seed" });
  const elements = (message, size, person) => words(blake2b(message, { size, key, person })).map((word) => word % PRIME);
  return (j, v, m) => {
    const [a, b, c] = elements(littleEndian(within(j, 0, LARGEST_WORD), 8), 24, "coefficients");
    const [x] = elements(utf8(`${v}`), 8, "value");
    return small(BigInt(within(m, 1, MOST_BOUND)) * (((a * x + b) * x + c) % PRIME) >> 61n);
  };
}
function bloom(seed) {
  return remembered((j, v, m, n) => {
    const bits = new Array(sized(within(m, 1, MOST))).fill(0);
    const digest = shake(168, utf8(`ldp-budget bloom 1:${seed}:${j}:${v}`), 8 * Number(within(n, 0, MOST_HASHES)));
    for (const word of words(digest)) bits[Number(word % BigInt(m))] = 1;
    return bits;
  });
}
var derived = remembered((secret, context) => blake2b(utf8(context), { size: 32, key: sha256(secret), person: "ldp-budget" }));
function secretWithin(secret, context) {
  if (!(secret instanceof Uint8Array) || secret.length < LEAST_SECRET_BYTES) {
    throw new TypeError(`it needs a secret of at least ${LEAST_SECRET_BYTES} bytes, as a Uint8Array`);
  }
  return derived(secret, context);
}
function kept(name) {
  const bytes2 = utf8(name);
  const head = joined(utf8("ldp-budget memoised words 1"), littleEndian(bytes2.length, 8), bytes2);
  return remembered(
    (secret, v, count) => words(shake(136, joined(head, littleEndian(secret.length, 8), secret, littleEndian(v, 8)), 8 * count))
  );
}
function checkedCount(name, a, n) {
  if (name === "kept_top") return within(a, 0, 64), 1;
  const count = sized(n);
  if (name === "kept_bits") within(a, 0, LARGEST_WORD + 1n);
  else within(BigInt(within(a, 1, MOST_BOUND)) + BigInt(Math.max(0, count - 1)), 1, MOST_BOUND);
  return count;
}
var Program = class {
  /**
   * @param {any} definition a collection's public definition, or what of it is the program
   * @throws {TypeError} where it has an operator that this client does not know
   */
  constructor(definition) {
    if (definition.format !== "ldp-budget client" || definition.version !== VERSION) {
      throw new TypeError(`this client reads definitions of version ${VERSION}: got ${definition.version}`);
    }
    checkProgram(definition);
    this.definition = definition;
    this.names = /* @__PURE__ */ new Map([["value", (run) => run.values[0]]]);
    for (const [name, table2] of Object.entries(definition.tables)) {
      const entries = tabled(table2);
      this.names.set(name, () => entries);
    }
    this.steps = definition.steps.map(([name, expression], i) => {
      const step2 = this.compile(expression);
      this.names.set(name, (run) => run.values[i + 1]);
      return step2;
    });
    this.parts = definition.report.parts.map((part) => this.part(part));
    this.size = sized(this.parts.reduce((size, part) => size + part.size, 0));
    this.memo = definition.memo ? this.named(definition.memo) : void 0;
  }
  /**
   * @param {string} name
   * @returns {Step}
   */
  named(name) {
    return (
      /** @type {Step} */
      this.names.get(name)
    );
  }
  /**
   * An expression as a function of what was worked out before it. No code is made of text: a strict CSP holds.
   * @param {any} expression
   * @returns {Step}
   */
  compile(expression) {
    if (Array.isArray(expression)) return this.call(expression[0], expression.slice(1));
    if (this.names.has(expression)) return this.named(expression);
    const number = literal(expression);
    return () => number;
  }
  /**
   * @param {string} name
   * @param {any[]} given
   * @returns {Step}
   */
  call(name, given) {
    const memo = MEMO.get(name);
    const hash = HASHES.get(name);
    const steps = (memo || hash ? given.slice(1) : given).map((each2) => this.compile(each2));
    const worked = (run) => steps.map((step2) => step2(run));
    if (memo) {
      const words2 = kept(`${this.definition.context} ${given[0]}`);
      const one = name === "kept_top";
      return (run) => {
        const [v, a, n] = worked(run);
        if (run.draws.kept) return run.draws.kept(name, given[0], v, a, n);
        const found = words2(run.secret, within(v, -LARGEST_VALUE, LARGEST_VALUE - 1n), checkedCount(name, a, n)).map((word, i) => memo(word, a, i));
        return one ? found[0] : found;
      };
    }
    if (DRAWS.has(name)) return (run) => run.draws[name](...worked(run));
    if (hash) {
      const seeded = hash(given[0]);
      return (run) => seeded(...worked(run));
    }
    if (name === "list") return worked;
    const whole3 = WHOLE.get(name);
    if (whole3) return (run) => whole3(...worked(run));
    const each = (
      /** @type {any} */
      EACH.get(name)
    );
    return (run) => overVectors(name, run.lift ? run.lift(each) : each, worked(run));
  }
  /**
   * A part of the report: its size, and how it is written.
   * @param {any[]} part
   */
  part([kind, name, ...more]) {
    const step2 = this.named(name);
    const count = more.at(-1);
    const value = (run) => listed(step2(run), count);
    if (kind === "packed") {
      return {
        size: Math.ceil(sized(count) / 8),
        value,
        /** @type {(run: Run, out: Uint8Array) => void} */
        write: (run, out) => value(run).forEach((bit, i) => {
          if (bit === 1) out[i >> 3] |= 1 << (i & 7);
          else if (bit !== 0) within(bit, 0, 1);
        }),
        /** @type {(bytes: Uint8Array) => Vector} */
        read: (bytes2) => Array.from({ length: 8 * bytes2.length }, (_, i) => bytes2[i >> 3] >> (i & 7) & 1)
      };
    }
    if (kind === "uint") {
      const size = within(more[0], 1, 8);
      const largest = (1n << BigInt(8 * size)) - 1n;
      return {
        size: sized(size * sized(count)),
        value,
        /** @type {(run: Run, out: Uint8Array) => void} */
        write: (run, out) => value(run).forEach((number, i) => out.set(littleEndian(within(number, 0, largest), size), size * i)),
        /** @type {(bytes: Uint8Array) => Vector} */
        read: (bytes2) => Array.from({ length: count }, (_, i) => small(BigInt(fromLittleEndian(bytes2.subarray(size * i, size * (i + 1))))))
      };
    }
    if (kind === "float64") {
      const [origin, unit] = more.slice(0, 2).map(finite);
      return {
        size: 8,
        /** @type {(run: Run, out: Uint8Array) => void} */
        write: (run, out) => {
          const number = origin + Number(BigInt(step2(run)) + BigInt(more[2])) * unit;
          if (!Number.isFinite(number)) throw new RangeError(`the report needs a number that a double holds: got ${number}`);
          new DataView(out.buffer, out.byteOffset).setFloat64(0, number, true);
        }
      };
    }
    throw new TypeError(`the part ${kind} of a report`);
  }
  /**
   * The whole number of an answer.
   * @param {any} answer
   * @returns {Whole}
   */
  read(answer2) {
    const given = this.definition.input;
    if (typeof answer2 === "string") answer2 = canonicalText(answer2);
    if (given.kind === "answer") return readAnswer(answer2, BigInt(given.count), given.text);
    if (given.kind === "word") return readWord(answer2, sized(given.length));
    const [lower, upper] = [given.lower, given.upper].map(finite);
    if (typeof answer2 !== "number" || !(answer2 >= lower && answer2 <= upper)) {
      throw new RangeError(`the answer must be a number from ${lower} to ${upper}: got ${answer2}`);
    }
    const point = given.times === void 0 ? Math.floor((answer2 - lower) / finite(given.step)) : toEven((answer2 - lower) * finite(given.times));
    return Math.min(Math.max(point, 0), given.last);
  }
  /**
   * One report.
   * @param {any} answer
   * @param {Given} given
   */
  run(answer2, given = {}) {
    const run = this.evaluate(answer2, given);
    const report = new Uint8Array(this.size);
    let at2 = 0;
    for (const part of this.parts) {
      part.write(run, report.subarray(at2, at2 + part.size));
      at2 += part.size;
    }
    return report;
  }
  /**
   * @param {any} answer
   * @param {Given} given
   * @returns {Run}
   */
  evaluate(answer2, { secret, draws = new Draws() } = {}) {
    const value = this.read(answer2);
    const run = { values: [value], draws, secret };
    for (const step2 of this.steps) run.values.push(step2(run));
    return run;
  }
};
function overVectors(name, operate, given) {
  const size = given.find(Array.isArray)?.length;
  if (size === void 0) return operate(...given);
  if (size === 0) checkNextToNone(name, given);
  const [a, b = [], c = []] = given.map((each) => Array.isArray(each) ? listed(each, size) : new Array(size).fill(each));
  return a.map((number, i) => operate(number, b[i], c[i]));
}
function listed(found, count) {
  const vector = Array.isArray(found) ? found : [found];
  if (vector.length !== count) throw new RangeError(`the program needs ${count} numbers: got ${vector.length}`);
  return vector;
}
function readAnswer(answer2, count, text) {
  let number = -1n;
  if (typeof answer2 === "bigint" || Number.isSafeInteger(answer2)) number = BigInt(answer2);
  else if (text && typeof answer2 === "string" && answer2) number = numberOf(answer2, count);
  if (number >= 0n && number < count) return small(number);
  throw new RangeError(`the answer must be a whole number from 0 to ${count - 1n}${text ? ", or any text" : ""}: got ${answer2}`);
}
function readWord(answer2, length) {
  if (typeof answer2 === "bigint" || Number.isSafeInteger(answer2)) return readAnswer(answer2, 1n << BigInt(8 * length), false);
  const bytes2 = typeof answer2 === "string" && !/\p{Surrogate}/u.test(answer2) ? utf8(answer2) : new Uint8Array();
  if (!bytes2.length || bytes2.length > length || bytes2.includes(0)) {
    throw new RangeError(`the answer must be a text of 1 to ${length} bytes in UTF-8: got ${answer2}`);
  }
  return small(BigInt(`0x${toHex(bytes2).padEnd(2 * length, "0")}`));
}
function numberOf(text, count) {
  if (NUMBER2.test(text)) return BigInt(text);
  if (/\p{Surrogate}/u.test(text)) return -1n;
  return words(blake2b(utf8(text), { size: 8, person: "ldp-budget text" }))[0] % count;
}
function toEven(x) {
  const next = Math.round(x);
  return next - x === 0.5 && next % 2 ? next - 1 : next;
}

// clients/js/src/laws.js
var WORD = 1n << 64n;
var BITS = 1n << 63n;
var MOST_HASHES2 = 2 ** 16;
var MOST_EACH = 1 << 16;
var MOST_RUNS = 1 << 19;
var MOST_TRIED = 4;
var MOST_ORDERS = 5040;
var tick = 0;
var Span = class {
  /**
   * @param {Interval} ends
   * @param {boolean} secret whether it depends on the answer
   * @param {boolean} [fresh] whether each report has another one
   */
  constructor([lo, hi], secret, fresh = false) {
    requires(!(secret && fresh), "the answer meets in each report what that report drew, and what is kept");
    this.lo = lo;
    this.hi = hi;
    this.secret = secret;
    this.fresh = fresh;
    this.group = void 0;
    this.at = void 0;
  }
  /** @returns {any[]} */
  get options() {
    requires(this.hi - this.lo < MOST_EACH, "a number that depends on the answer takes too many values");
    return Array.from({ length: Number(this.hi - this.lo) + 1 }, (_, i) => small(this.lo + BigInt(i)));
  }
};
var Threshold = class extends Span {
  get options() {
    return [this.lo, this.hi];
  }
};
var Hidden = class {
  /** @param {() => [any, bigint][]} outcomes as they are for the answer that is looked at */
  constructor(outcomes) {
    this.outcomes = outcomes;
    this.at = void 0;
  }
};
var Mixed = class {
  /**
   * @param {Interval} ends
   * @param {Hidden[]} hidden
   * @param {Span[]} choices numbers that depend on the answer
   * @param {() => any} work
   * @param {boolean} open whether it is not the number but something of which the number is made by what was given away
   */
  constructor([lo, hi], hidden, choices, work, open = false) {
    this.lo = lo;
    this.hi = hi;
    this.hidden = [...new Set(hidden)];
    this.choices = [...new Set(choices)];
    this.work = work;
    this.open = open;
    this.tick = -1;
    this.known = void 0;
    this.direct = void 0;
  }
  get() {
    if (this.tick !== tick) {
      this.known = this.work();
      this.tick = tick;
    }
    return this.known;
  }
};
var Row = class {
  /** @param {any[][]} rows @param {Span} place */
  constructor(rows, place2) {
    this.rows = rows;
    this.place = place2;
  }
};
var isNumber = (each) => typeof each === "number" || typeof each === "bigint";
var endsOf = (each) => isNumber(each) ? [BigInt(each), BigInt(each)] : [each.lo, each.hi];
function now(each) {
  if (each instanceof Mixed) return each.get();
  if (each instanceof Span) return each.at;
  if (each instanceof Row) return each.rows[Number(each.place.at)];
  return Array.isArray(each) ? each.map(now) : each;
}
function partsOf(each) {
  if (Array.isArray(each)) return each.flatMap(partsOf);
  return each instanceof Row ? [each.place] : isNumber(each) ? [] : [each];
}
var span = (ends, parts2) => ends[0] === ends[1] ? small(ends[0]) : spanOf(ends, parts2);
var spanOf = (ends, parts2) => new Span(ends, parts2.some((each) => each.secret), parts2.some((each) => each.fresh));
function mixed(ends, parts2, work) {
  const inner = parts2.filter((each) => each instanceof Mixed);
  const spans = parts2.filter((each) => each instanceof Span);
  const hidden = inner.flatMap((each) => each.hidden);
  const choices = [...inner.flatMap((each) => each.choices), ...spans.filter((each) => each.secret)];
  if (!inner.some((each) => each.open) && spans.every((each) => each.secret)) return new Mixed(ends, hidden, choices, work);
  requires(spans.every((each) => !each.secret), "the answer is mixed with what was given away in a way that is not followed");
  return new Mixed(ends, hidden, choices, () => inner.map((each) => `${each.get()}`).join(), true);
}
function oneByOne(name, given) {
  if (given.every(isNumber)) return (
    /** @type {any} */
    EACH.get(name)(...given)
  );
  if (name === "where" && isNumber(given[0])) {
    requires(given[0] === 0 || given[0] === 1, "a condition that is neither 0 nor 1");
    return given[0] ? given[1] : given[2];
  }
  requires(given.every((each) => isNumber(each) || each instanceof Span || each instanceof Mixed), `${name} of vectors within vectors`);
  const ends = intervalOf(name, given.map(endsOf));
  if (ends[0] === ends[1]) return small(ends[0]);
  if (!given.some((each) => each instanceof Mixed)) return span(ends, partsOf(given));
  const operate = (
    /** @type {any} */
    EACH.get(name)
  );
  return mixed(ends, partsOf(given), () => operate(...given.map(now)));
}
function overVectors2(name, given, answer2) {
  const vector = given.find(Array.isArray);
  if (!vector) return oneByOne(name, given);
  requires(vector.length > 0, "an operation on vectors without entries");
  requires(given.every((each) => !Array.isArray(each) || each.length === vector.length), "vectors of two lengths");
  const made2 = vector.map((_, i) => oneByOne(name, given.map((each) => Array.isArray(each) ? each[i] : each)));
  const other = given.find((each) => each !== vector);
  if (name === "eq" && vector.distinct && other instanceof Span && other.secret && given.length === 2) {
    group(made2, 1, other === answer2);
  }
  return made2;
}
function group(bits, limit, once) {
  const own = { limit, once };
  for (const bit of bits) if (bit instanceof Span) bit.group = own;
  return bits;
}
function at(vector, place2) {
  requires(Array.isArray(vector) && vector.length > 0, "a place of no vector");
  const [lo, hi] = endsOf(place2);
  requires(lo >= 0n && hi < vector.length, "a place outside a vector");
  if (isNumber(place2)) return vector[Number(place2)];
  if (vector.every(Array.isArray)) {
    requires(place2 instanceof Span && place2.secret && vector.flat().every(isNumber), "a row that is not that of the answer");
    return new Row(vector, place2);
  }
  const ends = hull(...vector.flatMap(endsOf));
  if (place2 instanceof Span && vector.every(isNumber)) return span(ends, [place2]);
  requires(place2 instanceof Mixed || vector.some((each) => each instanceof Mixed), "a place of numbers that are not followed");
  return mixed(ends, partsOf([vector, place2]), () => now(vector[Number(now(place2))]));
}
function put2(vector, place2, number, answer2, alone) {
  requires(Array.isArray(vector), "a place of no vector");
  const [lo, hi] = endsOf(place2);
  requires(lo >= 0n && hi < vector.length, "a place outside a vector");
  if (isNumber(place2)) return vector.map((each, i) => i === Number(place2) ? number : each);
  if (place2 instanceof Span && place2.secret && number instanceof Mixed && number.direct && alone) {
    const bits = group(vector.map(() => new Span([0n, 1n], true)), 1, place2 === answer2);
    return vector.map((each, i) => {
      const own = drawn(
        /** @type {Hidden} */
        number.direct.outcomes,
        endsOf(number)
      );
      own.choices = number.choices;
      return mixed(hull(...endsOf(each), ...endsOf(own)), partsOf([bits[i], own, each]), () => bits[i].at ? own.get() : now(each));
    });
  }
  const ends = hull(...vector.flatMap(endsOf), ...endsOf(number));
  return together([vector, place2, number], () => (
    /** @type {any} */
    WHOLE.get("put")(now(vector), now(place2), now(number))
  ), vector.length, ends);
}
function together(given, work, size, ends) {
  const parts2 = partsOf(given);
  requires(parts2.some((each) => each instanceof Mixed), "numbers of the answer that are not followed");
  requires(parts2.every((each) => !each.open && (each instanceof Mixed || each.secret)), "a vector of what was given away and what was not");
  const whole3 = mixed(ends, parts2, work);
  return Array.from({ length: size }, (_, i) => new Mixed(ends, whole3.hidden, whole3.choices, () => whole3.get()[i]));
}
function floyd2(vector, b) {
  requires(isNumber(b) && Number(b) >= 1, "a bound that is drawn");
  const ends = hull(...vector.flatMap(endsOf), BigInt(b) - 1n, BigInt(b) - 2n + BigInt(vector.length));
  if (vector.some((each) => each instanceof Mixed)) {
    return together(vector, () => (
      /** @type {any} */
      WHOLE.get("floyd")(now(vector), b)
    ), vector.length, ends);
  }
  requires(vector.every((each) => isNumber(each) || !each.secret), "numbers of the answer that are not followed");
  const made2 = vector.map((_, i) => spanOf([ends[0], hull(ends[0], ...vector.slice(0, i + 1).flatMap(endsOf), BigInt(b) - 1n + BigInt(i))[1]], partsOf(vector)));
  return Object.assign(made2, { distinct: vector.every((each, i) => endsOf(each)[1] <= BigInt(b) - 1n + BigInt(i)) });
}
var countOf = (input) => input.kind === "word" ? 1n << BigInt(8 * sized(input.length)) : BigInt(input.count);
function drawn(outcomes, ends) {
  const own = new Hidden(outcomes);
  const found = new Mixed(ends, [own], [], () => own.at);
  found.direct = own;
  return found;
}
function combinations(m, n) {
  if (!n) return [[]];
  return Array.from({ length: m - n + 1 }, (_, i) => n - 1 + i).flatMap((last) => combinations(last, n - 1).map((each) => [...each, last]));
}
function orders(n) {
  if (!n) return [[]];
  return orders(n - 1).flatMap((each) => Array.from({ length: n }, (_, i) => [...each.slice(0, i), n - 1, ...each.slice(i)]));
}
function choose(m, n) {
  let found = 1n;
  for (let i = 0n; i < n; i++) found = found * (m - i) / (i + 1n);
  return found;
}
function namesIn(expression) {
  if (!Array.isArray(expression)) return typeof expression === "string" && !/^-?[0-9]/.test(expression) ? [expression] : [];
  return expression.slice(MEMO.has(expression[0]) || HASHES.has(expression[0]) ? 2 : 1).flatMap(namesIn);
}
var Look = class {
  /**
   * @param {any} definition
   * @param {Set<string>} open names of the draws that are given away
   * @param {boolean} ever of all reports of an answer: everything that is not kept is given away
   */
  constructor(definition, open, ever) {
    this.definition = definition;
    this.open = open;
    this.ever = ever;
    const { input, tables, steps, report, memo } = definition;
    const last = input.kind === "number" ? BigInt(Math.trunc(Number(input.last))) : countOf(input) - 1n;
    this.answer = last ? new Span([0n, last], true) : 0;
    this.known = /* @__PURE__ */ new Map([["value", this.answer]]);
    for (const [name, table2] of Object.entries(tables)) this.known.set(name, tabled(table2));
    const read2 = [...steps.flatMap(([, step2]) => namesIn(step2)), ...report.parts.map((part) => part[1]), memo];
    this.uses = (name) => read2.filter((each) => each === name).length;
    for (const [name, step2] of steps) this.known.set(name, this.work(step2, name));
  }
  /** @param {any} expression @param {string} [step] the step that it is @returns {any} */
  work(expression, step2) {
    if (!Array.isArray(expression)) return this.known.has(expression) ? this.known.get(expression) : literal(expression);
    const [name, ...given] = expression;
    if (DRAWS.has(name)) return this.draw(
      name,
      given.map((each) => this.work(each)),
      /** @type {string} */
      step2,
      given
    );
    if (MEMO.has(name)) return this.keep(
      name,
      given,
      /** @type {string} */
      step2
    );
    if (HASHES.has(name)) return this.hash(name, given[0], given.slice(1).map((each) => this.work(each)));
    const worked = given.map((each) => this.work(each));
    if (name === "list") return worked;
    if (WHOLE.has(name)) return this.whole(name, worked, given);
    requires(EACH.has(name), `the operator ${name}`);
    return overVectors2(name, worked, this.answer);
  }
  /** Whether a draw is read in one place alone. @param {any} name */
  isAlone(name) {
    const [, step2] = this.definition.steps.find(([each]) => each === name) ?? [];
    return Array.isArray(step2) && DRAWS.has(step2[0]) && this.uses(name) === 1;
  }
  /** @param {string} name @param {any[]} given @param {any[]} named */
  whole(name, given, named) {
    if (given.flat(2).every(isNumber)) return (
      /** @type {any} */
      WHOLE.get(name)(...given)
    );
    const [vector, place2, number] = given;
    if (name === "at") return at(vector, place2);
    if (name === "put") return put2(vector, place2, number, this.answer, this.isAlone(named[2]));
    if (name === "floyd") return floyd2(vector, place2);
    if (name === "onehot") return this.onehot(vector, place2);
    if (name === "rank") return this.rank(vector, place2);
    requires(Array.isArray(vector), `${name} of no vector`);
    const ends = hull(...vector.flatMap(endsOf));
    const operate = (
      /** @type {any} */
      WHOLE.get(name)
    );
    if (name === "sort") return together(vector, () => operate(now(vector)), vector.length, ends);
    requires(ends[0] >= 0n && ends[1] <= 1n && vector.length <= 1024, `${name} of what are no bits`);
    const most = name === "first" ? BigInt(vector.length - 1) : (1n << BigInt(vector.length)) - 1n;
    if (vector.some((each) => each instanceof Mixed)) return mixed([0n, most], partsOf(vector), () => operate(now(vector)));
    return span([0n, most], partsOf(vector));
  }
  /** @param {any} place @param {any} count */
  onehot(place2, count) {
    requires(isNumber(count), "a vector of a length that is drawn");
    const size = sized(count);
    const [lo, hi] = endsOf(place2);
    requires(lo >= 0n && hi < size, "a place outside a vector");
    if (place2 instanceof Mixed) return together([place2], () => (
      /** @type {any} */
      WHOLE.get("onehot")(now(place2), size)
    ), size, [0n, 1n]);
    return group(Array.from({ length: size }, () => spanOf([0n, 1n], [place2])), 1, place2 === this.answer);
  }
  /** @param {any} vector @param {any} number */
  rank(vector, number) {
    const rows = vector instanceof Row ? vector.rows : [vector];
    requires(rows.every((row2) => Array.isArray(row2) && row2.every((each, i) => isNumber(each) && (!i || row2[i - 1] <= each))), "a rank among numbers that are not known");
    const ends = [0n, BigInt(Math.max(...rows.map((row2) => row2.length)))];
    const parts2 = partsOf([vector instanceof Row ? vector : [], number]);
    if (parts2.some((each) => each instanceof Mixed)) return mixed(ends, parts2, () => (
      /** @type {any} */
      WHOLE.get("rank")(now(vector), now(number))
    ));
    return span(ends, parts2);
  }
  /** @param {string} name @param {string} seed @param {any[]} given */
  hash(name, seed, given) {
    const parts2 = partsOf(given);
    if (!parts2.length) return (
      /** @type {any} */
      HASHES.get(name)(seed)(...given)
    );
    requires(parts2.every((each) => each instanceof Span), "a hash function that is hidden");
    const size = given[2];
    requires(isNumber(size) && size >= 1 && size <= BITS && given.every((each) => !Array.isArray(each)), "a hash function of a size that is drawn");
    requires(endsOf(given[0])[0] >= 0n && endsOf(given[0])[1] < WORD, "a hash function that there is not");
    if (name === "polynomial") return span([0n, BigInt(size) - 1n], parts2);
    requires(isNumber(given[3]) && given[3] >= 0 && given[3] <= MOST_HASHES2, "a filter of a size that is drawn");
    return group(Array.from({ length: sized(size) }, () => spanOf([0n, 1n], parts2)), sized(given[3]), false);
  }
  // -- draws -------------------------------------------------------------------------------------------------------
  /** @param {any} t @param {boolean} free whether it was given away @param {boolean} [fresh] @returns {any} */
  bit(t, free, fresh = false) {
    const [lo, hi] = endsOf(t);
    requires((isNumber(t) || t instanceof Span) && lo >= 0n && hi <= WORD, "a chance that is drawn, or no chance");
    if (lo === hi && !(lo % WORD)) return lo ? 1 : 0;
    if (!isNumber(t)) {
      requires(!free && t.secret, "a chance that is not followed");
      const threshold = new Threshold([lo, hi], true);
      const found = drawn(() => weighted(threshold.at), [0n, 1n]);
      found.choices = [threshold];
      return found;
    }
    return free ? new Span([0n, 1n], false, fresh) : drawn(() => weighted(lo), [0n, 1n]);
  }
  /**
   * @param {any} b
   * @param {boolean} free
   * @param {string} step
   * @param {bigint | undefined} words of how many it is the rest
   * @param {boolean} fresh
   * @returns {any}
   */
  below(b, free, step2, words2, fresh) {
    requires(isNumber(b), "a bound that is drawn");
    const bound2 = BigInt(b);
    requires(bound2 >= 1n && bound2 <= BITS, "a bound that there is not");
    if (bound2 === 1n) return 0;
    if (free) return new Span([0n, bound2 - 1n], false, fresh);
    const cuts = bound2 > MOST_EACH ? this.cuts(step2, bound2) : void 0;
    requires(cuts !== void 0 || bound2 <= MOST_EACH, "a draw of too many outcomes");
    const least = cuts ?? Array.from({ length: Number(bound2) }, (_, i) => BigInt(i));
    const outcomes = least.map((low, i) => {
      const next = least[i + 1] ?? bound2;
      const weight = words2 === void 0 ? next - low : ((words2 - 1n - low) / bound2 + 1n) * (next - low);
      return [small(low), weight];
    });
    requires(words2 === void 0 || cuts === void 0, "a draw of too many outcomes");
    return drawn(() => outcomes, [0n, bound2 - 1n]);
  }
  /** Where the rank of a draw changes, if nothing else is made of it. @param {string} step @param {bigint} bound */
  cuts(step2, bound2) {
    const found = /* @__PURE__ */ new Set([0n]);
    let ranks = 0;
    const look = (expression) => {
      if (!Array.isArray(expression)) return;
      const [name, among, number] = expression;
      const table2 = name === "rank" && number === step2 && this.known.get(Array.isArray(among) && among[0] === "at" ? among[1] : among);
      if (Array.isArray(table2) && table2.flat().every(isNumber)) {
        ranks++;
        for (const each of table2.flat()) if (each > 0 && each < bound2) found.add(BigInt(each));
      }
      expression.forEach(look);
    };
    for (const [, expression] of this.definition.steps) look(expression);
    if (!ranks || ranks !== this.uses(step2) || found.size > MOST_EACH) return void 0;
    return [...found].sort((a, b) => a < b ? -1 : 1);
  }
  /** @param {string} name @param {any[]} given @param {string} step @param {any[]} named @returns {any} */
  draw(name, given, step2, named) {
    const fresh = this.ever;
    const free = fresh || this.open.has(step2);
    const [a, b] = given;
    const count = () => (requires(isNumber(b), "so many draws that it is drawn how many"), sized(b));
    if (name === "bit") return this.bit(a, free, fresh);
    if (name === "bits") return Array.from({ length: count() }, () => this.bit(a, free, fresh));
    if (name === "bit_at") {
      requires(endsOf(a)[1] < WORD, "no chance");
      return this.bit(a, free, fresh);
    }
    if (name === "bits_each") return a.map((each) => this.bit(each, free, fresh));
    if (name === "below") return this.below(a, free, step2, void 0, fresh);
    if (name === "belows") return Array.from({ length: count() }, () => this.below(a, free, step2, void 0, fresh));
    if (name === "belows_from") {
      requires(isNumber(a), "a bound that is drawn");
      return Array.from({ length: count() }, (_, i) => this.below(BigInt(a) + BigInt(i), free, step2, void 0, fresh));
    }
    if (name === "subset") return this.subset(a, count(), free);
    if (name === "shuffle") return this.shuffle(a, free);
    throw new Unconfirmed(`draws of ${name} in a program that is not known`);
  }
  /** @param {any} m @param {number} n @param {boolean} free @returns {any} */
  subset(m, n, free) {
    requires(isNumber(m) && m >= 1 && n <= m, "a subset that there is not");
    const ends = [0n, BigInt(m) - 1n];
    if (free) return Object.assign(Array.from({ length: n }, () => new Span(ends, false, this.ever)), { distinct: true });
    requires(choose(BigInt(m), BigInt(n)) <= MOST_EACH, "a subset of too many outcomes");
    const every = combinations(Number(m), n).map((each) => (
      /** @type {[any, bigint]} */
      [each, 1n]
    ));
    const whole3 = new Hidden(() => every);
    return Array.from({ length: n }, (_, i) => new Mixed(ends, [whole3], [], () => whole3.at[i]));
  }
  /** @param {any[]} vector @param {boolean} free */
  shuffle(vector, free) {
    let most = 1;
    for (let i = 2; i <= vector.length; i++) most *= i;
    requires(!free && most <= MOST_ORDERS, "an order of too many outcomes");
    const every = orders(vector.length).map((each) => (
      /** @type {[any, bigint]} */
      [each, 1n]
    ));
    const order = new Hidden(() => every);
    const ends = hull(...vector.flatMap(endsOf));
    const own = new Mixed(ends, [order], [], () => order.at);
    return together([vector, own], () => order.at.map((i) => now(vector[i])), vector.length, ends);
  }
  /** @param {string} name @param {any[]} given @param {string} step */
  keep(name, given, step2) {
    const [v, a, n] = given.slice(1).map((each) => this.work(each));
    const free = this.open.has(step2);
    requires(free || given[1] === this.definition.memo, "what is kept is not kept for the answer alone");
    requires(isNumber(v) || v instanceof Span, "what is kept is kept for a draw");
    requires(endsOf(v)[0] >= -BITS && endsOf(v)[1] < BITS, "what is kept for a number that is too large");
    if (name === "kept_top") {
      requires(isNumber(a) && a >= 0 && a <= 64, "a number of bits that there is not");
      return this.below(1n << BigInt(a), free, "", void 0, false);
    }
    requires(isNumber(n), "so many draws that it is drawn how many");
    if (name === "kept_bits") return Array.from({ length: sized(n) }, () => this.bit(a, free));
    requires(isNumber(a), "a bound that is drawn");
    return Array.from({ length: sized(n) }, (_, i) => this.below(BigInt(a) + BigInt(i), free, "", WORD, false));
  }
  // -- what it comes to --------------------------------------------------------------------------------------------
  /**
   * The numbers of the report that hidden draws are part of. It is refused where the answer itself is in it, or where it
   * may have no report.
   */
  messages() {
    return this.definition.report.parts.flatMap(([kind, name, ...more]) => {
      const found = this.known.get(name);
      const vector = Array.isArray(found) ? found : [found];
      const largest = kind === "packed" ? 1n : kind === "uint" ? (1n << BigInt(8 * more[0])) - 1n : void 0;
      requires(kind === "float64" ? vector.length === 1 : vector.length === more.at(-1), "a vector of another length than the report");
      for (const each of vector) {
        requires(isNumber(each) || each instanceof Span || each instanceof Mixed, "a report of vectors within vectors");
        const [lo, hi] = endsOf(each);
        requires(largest === void 0 || lo >= 0n && hi <= largest, "a number that a report may not hold");
        requires(!(each instanceof Span && each.secret), "a report holds what is worked out of the answer without a draw");
      }
      return vector.filter((each) => each instanceof Mixed);
    });
  }
  /** Messages that share draws. @returns {Mixed[][]} */
  components() {
    const sets = /* @__PURE__ */ new Map();
    for (const message of this.messages()) {
      const touched = new Set(message.hidden.map((each) => sets.get(each)).filter(Boolean));
      const all = [...[...touched].flat(), message];
      for (const each of all) for (const hidden of each.hidden) sets.set(hidden, all);
    }
    return [...new Set([...sets].map(([, messages]) => messages))];
  }
  /**
   * The largest ratio of probabilities of a report for two answers; and of all that is kept for every answer together,
   * where that is known. In multiples of 2^-PLACES, rounded up.
   */
  bound() {
    let left = MOST_RUNS;
    let largest = 1n << PLACES3;
    let every = largest;
    const groups = /* @__PURE__ */ new Map();
    for (const messages of this.components()) {
      const { ratio, up: up2, down: down2, choices, runs } = ratiosOf(messages, left);
      left -= runs;
      const own = choices.length === 1 ? choices[0].group : void 0;
      if (own) {
        const bits = groups.get(own) ?? /* @__PURE__ */ new Map();
        const { up: before = 1n << PLACES3, down: below = 1n << PLACES3 } = bits.get(choices[0]) ?? {};
        groups.set(own, bits.set(choices[0], { up: product(before, up2), down: product(below, down2) }));
      } else largest = product(largest, ratio);
      every = own?.once && every ? product(product(every, up2), down2) : choices.length ? void 0 : every;
    }
    for (const [{ limit }, found] of groups) {
      for (
        const side of
        /** @type {const} */
        ["up", "down"]
      ) {
        const sorted = [...found].map(([, each]) => each[side]).sort((a, b) => a > b ? -1 : 1);
        for (const ratio of sorted.slice(0, limit)) largest = product(largest, ratio);
      }
    }
    return { largest, every };
  }
  /** How many different draws may be kept. @returns {bigint} */
  get draws() {
    const [lo, hi] = endsOf(this.known.get(this.definition.memo));
    return hi - lo + 1n;
  }
};
var weighted = (t) => (
  /** @type {[any, bigint][]} */
  [[0, WORD - t], [1, t]].filter(([, weight]) => weight)
);
var product = (a, b) => -(-a * b >> PLACES3);
var quotient = (a, b) => ((a << PLACES3) + b - 1n) / b;
function ratiosOf(messages, most) {
  const hidden = [...new Set(messages.flatMap((each) => each.hidden))];
  const choices = [...new Set(messages.flatMap((each) => each.choices))];
  let runs = 0;
  let law = /* @__PURE__ */ new Map();
  const drawFrom = (place2, weight) => {
    if (place2 < hidden.length) {
      for (const [outcome, own] of hidden[place2].outcomes()) {
        hidden[place2].at = outcome;
        drawFrom(place2 + 1, weight * own);
      }
      return;
    }
    requires((runs += messages.length) <= most, "too many outcomes to go through");
    tick++;
    const key = messages.length > 1 ? messages.map((each) => `${each.get()}`).join(";") : `${messages[0].get()}`;
    law.set(key, (law.get(key) ?? 0n) + weight);
  };
  const laws = [];
  const chooseFrom = (place2) => {
    if (place2 < choices.length) {
      for (const option of choices[place2].options) {
        choices[place2].at = option;
        chooseFrom(place2 + 1);
      }
      return;
    }
    law = /* @__PURE__ */ new Map();
    drawFrom(0, 1n);
    laws.push(law);
  };
  chooseFrom(0);
  const [zero, one] = laws;
  const isBit = laws.length === 2;
  return { ratio: widest(laws), up: isBit ? above(one, zero) : 0n, down: isBit ? above(zero, one) : 0n, choices, runs };
}
function widest(laws) {
  let found = 1n << PLACES3;
  for (const key of new Set(laws.flatMap((law) => [...law.keys()]))) {
    const [least, most] = hull(...laws.map((law) => law.get(key) ?? 0n));
    requires(least > 0n, "a report that one answer can give is impossible for another");
    const ratio = quotient(most, least);
    if (ratio > found) found = ratio;
  }
  return found;
}
function above(one, other) {
  let found = 1n << PLACES3;
  for (const [key, weight] of one) {
    const against = other.get(key);
    requires(against !== void 0, "a report that one answer can give is impossible for another");
    const ratio = quotient(
      weight,
      /** @type {bigint} */
      against
    );
    if (ratio > found) found = ratio;
  }
  return found;
}
function checkMemo({ memo, tables, steps, report: { parts: parts2 } }) {
  const kept2 = steps.filter(([, step2]) => MEMO.has(step2[0])).map(([, step2]) => step2);
  const labels = kept2.map((step2) => step2[1]);
  requires(new Set(labels).size === labels.length, "the same kept words are read twice");
  if (!kept2.length) return;
  const told = /* @__PURE__ */ new Set([memo, ...Object.keys(tables)]);
  const own = /* @__PURE__ */ new Set(["value", ...Object.keys(tables)]);
  for (const [name, expression] of steps) {
    const used = namesIn(expression);
    if (used.every((each) => told.has(each))) told.add(name);
    if (used.every((each) => own.has(each)) && !DRAWS.has(expression[0])) own.add(name);
  }
  const needed = [...parts2.map((part) => part[1]), ...kept2.flatMap(namesIn)];
  requires(needed.every((each) => told.has(each)) && own.has(memo), "reports depend on more of the answer than what they are charged by");
}
function hashed(definition, names) {
  const steps = definition.steps.slice(0, names.length);
  const found = new Look({ ...definition, steps, report: { parts: [] } }, new Set(names.slice(0, 1)), false).known.get(names[names.length - 1]);
  requires(isNumber(found) || found instanceof Span, "a hash that is drawn");
  return endsOf(found);
}
function openable({ steps, memo }) {
  const found = steps.filter(([, [name]]) => /^(belows?|belows_from|subset|kept_belows|kept_top)$/.test(name));
  const free = found.filter(([, step2]) => !(MEMO.has(step2[0]) && step2[2] !== memo));
  return free.map(([name]) => name);
}
function* looks(definition, ever = false) {
  const free = openable(definition);
  const tried = free.slice(0, MOST_TRIED);
  const always = definition.steps.filter(([, step2]) => MEMO.has(step2[0]) && step2[2] !== definition.memo).map(([name]) => name);
  for (let mask = (1 << tried.length) - 1; mask >= 0; mask--) {
    const open = /* @__PURE__ */ new Set([...always, ...free.slice(MOST_TRIED), ...tried.filter((_, i) => mask >> i & 1)]);
    try {
      const look = new Look(definition, open, ever);
      yield { look, ...look.bound() };
    } catch (error) {
      yield error instanceof Unconfirmed ? error : new Unconfirmed(`the program fails: ${error instanceof Error ? error.message : error}`);
    }
  }
}

// clients/js/src/grid.js
var WORD2 = 1n << 64n;
var MOST_ITEMS2 = 50;
var MOST_ASKED = 20;
var MOST_ANSWERS = 40;
function numberOfGrid(answer2, { answers: answers2, items }) {
  const names = answers2.map(canonicalText);
  const known2 = items.map(({ name }) => name);
  const given = answer2 !== null && typeof answer2 === "object" ? answer2 : {};
  const unknown = Object.keys(given).find((name) => !known2.includes(name));
  if (unknown !== void 0) throw new RangeError(`there is no item ${unknown}, only ${known2.join(", ")}`);
  const places = known2.map((name) => Object.hasOwn(given, name) ? names.indexOf(canonicalText(`${given[name]}`)) : -1);
  const missing = places.indexOf(-1);
  if (missing >= 0) throw new RangeError(`the answer to ${known2[missing]} must be one of ${answers2.join(", ")}: got ${given[known2[missing]]}`);
  return places.reduceRight((sum2, place2) => sum2 * BigInt(names.length) + BigInt(place2), 0n);
}
var whole = (number) => number <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(number) : `${number}`;
function running(weights) {
  let total = 0n;
  return weights.map((each) => whole(total += each));
}
var sum = (weights) => weights.reduce((a, b) => a + b, 0n);
function gridProgram(items, d, asked, size, least, weights, high) {
  const [upper, lower] = [weights.slice(least), weights.slice(0, least)];
  const slots = Array.from({ length: asked }, (_, slot) => slot);
  const steps = [
    ["asked", ["subset", items, asked]],
    ["likelier", ["bit", high]],
    ["upper", ["below", whole(sum(upper))]],
    ["lower", ["below", whole(sum(lower))]],
    ["turns", ["shuffle", "slots"]]
  ];
  for (const slot of slots) steps.push([`others${slot}`, ["subset", d - 1, size]], [`place${slot}`, ["below", size]]);
  steps.push(["hits", ["where", "likelier", ["add", least, ["rank", "uppers", "upper"]], ["rank", "lowers", "lower"]]]);
  const cells = [];
  for (const slot of slots) {
    const [item, row2, place2, own] = [["at", "asked", slot], `row${slot}`, `place${slot}`, `own${slot}`];
    steps.push(
      [own, ["mod", ["div", "value", ["at", "powers", item]], d]],
      [row2, ["add", `others${slot}`, ["ge", `others${slot}`, own]]],
      [`cells${slot}`, ["add", ["mul", d, item], ["put", row2, place2, ["where", ["lt", ["at", "turns", slot], "hits"], own, ["at", row2, place2]]]]]
    );
    for (let number = 0; number < size; number++) cells.push(["at", `cells${slot}`, number]);
  }
  steps.push(["report", ["sort", ["list", ...cells]]]);
  const powers = Array.from({ length: items }, (_, i) => whole(BigInt(d) ** BigInt(i)));
  return { steps, tables: { powers, uppers: running(upper), lowers: running(lower), slots } };
}
function ofGrid({ input, steps, tables, report }) {
  if (steps[0]?.[0] !== "asked" || !Array.isArray(tables.powers) || steps[1]?.[0] !== "likelier") return void 0;
  const found = new Map(steps);
  const [items, asked] = (found.get("asked") ?? []).slice(1);
  const d = found.get("own0")?.[2];
  const size = found.get("others0")?.[2];
  const least = found.get("hits")?.[2]?.[1];
  requires([items, asked, d, size, least].every((each) => Number.isSafeInteger(each) && each > 0), "a grid of a size that is drawn");
  requires(items <= MOST_ITEMS2 && asked <= Math.min(items, MOST_ASKED) && d <= MOST_ANSWERS && size < d && least <= asked, "a grid of another size");
  const weights = Array.from({ length: asked + 1 }, (_, i) => choose(BigInt(asked), BigInt(i)) * BigInt(size) ** BigInt(i) * BigInt(d - size) ** BigInt(asked - i));
  const [upper, lower] = [sum(weights.slice(least)), sum(weights.slice(0, least))];
  const high = BigInt(found.get("likelier")[1]);
  requires(high > 0n && high < WORD2, "a set that is always held, or never");
  const rebuilt = gridProgram(items, d, asked, size, least, weights, found.get("likelier")[1]);
  requires(JSON.stringify(steps) === JSON.stringify(rebuilt.steps), "other steps than those of a grid");
  requires(Object.keys(tables).length === Object.keys(rebuilt.tables).length, "other tables than those of a grid");
  for (const [name, table2] of Object.entries(rebuilt.tables)) {
    requires(JSON.stringify(tables[name]) === JSON.stringify(table2), "other tables than those of a grid");
  }
  requires(input.kind === "answer" && BigInt(input.count) === BigInt(d) ** BigInt(items) && upper + lower <= 1n << 63n, "another number of answers");
  const width = items * d <= 256 ? 1 : 2;
  requires(JSON.stringify(report.parts) === JSON.stringify([["uint", "report", width, asked * size]]), "another report");
  const [over, under] = [high * lower, (WORD2 - high) * upper];
  return over > under ? quotient(over, under) : quotient(under, over);
}

// clients/js/src/likelihoods.js
var MOST2 = 2 ** 21;
var RUN = 32;
var lift = (operate) => (...given) => {
  const draws = given.flatMap((each) => each?.draws ?? []);
  const valueOf = () => operate(...given.map((each) => each?.valueOf()));
  return draws.length ? { draws, valueOf, toString: valueOf } : valueOf();
};
var chance = ({ size, odds }, value) => odds === void 0 ? value < size ? 1 / size : 0 : value ? odds : 1 - odds;
function toldBy({ steps, report: { parts: parts2 } }, report) {
  const text = JSON.stringify([steps, parts2]);
  const named = new Map(steps);
  const told = /* @__PURE__ */ new Map();
  const isBit = (expression) => {
    const [operator, ...given] = named.get(expression) ?? expression;
    return /^(kept_bits|bits?|eq|lt|ge)$/.test(operator) || operator === "xor" && given.every(isBit);
  };
  const isRest = (expression, size) => {
    const [operator, , by] = named.get(expression) ?? expression;
    return operator === "mod" && by <= size;
  };
  const tell = (expression, numbers, name) => {
    if (named.has(expression)) return tell(named.get(expression), numbers, expression);
    const [operator, a, b] = [expression].flat();
    const from = named.get(a);
    if (operator === "add" && a[0] === "mul" && a[1] > 1 && (isBit(b) || isRest(b, a[1]))) tell(a[2], numbers.map((each) => Math.floor(each / a[1])));
    if (operator === "at" && b >= 0) tell(a, Object.assign([], { [b]: numbers[0] }));
    if (/below/.test(operator)) told.set(name, { drawn: numbers });
    if (operator === "floyd" && /belows/.test(from) && from.at(-2) === b && text.split(`"${a}"`).length === 3) {
      const ways = numbers.map((each, i) => each === b - 1 + i ? i + 1 : +(each < b + i && numbers.indexOf(each) === i));
      told.set(name, { numbers, likely: ways.reduce((all, each, i) => all * each / (b + i), 1) });
    }
  };
  parts2.forEach(([, name], i) => tell(name, report[i]));
  return told;
}
function trials(program, report) {
  const { steps } = program.definition;
  const told = toldBy(program.definition, report);
  const made2 = /* @__PURE__ */ new Map();
  const kept2 = /* @__PURE__ */ new Set();
  const path = [];
  let known2 = [];
  let left = MOST2;
  let likely = 0;
  let first;
  let choice = 0;
  let step2 = 0;
  let place2 = 0;
  const spend = (trials2 = 1) => {
    if ((left -= trials2) < 0) throw new RangeError("too many outcomes");
  };
  const times2 = (factor) => {
    likely += Math.log(factor);
  };
  const be = (drawn2, value) => {
    if (drawn2.value !== void 0) times2(+(drawn2.value == value));
    else {
      known2.push(drawn2);
      times2(chance(drawn2, value));
      drawn2.value = value;
    }
  };
  const pick = (size) => {
    if (choice === path.length) path.push([0, size]);
    return path[choice++][0];
  };
  const unknown = (size, odds) => {
    const valueOf = () => {
      if (drawn2.value === void 0) be(drawn2, pick(size));
      return drawn2.value;
    };
    const drawn2 = { draws: [], size, odds, value: void 0, valueOf, toString: valueOf };
    drawn2.draws.push(drawn2);
    return drawn2;
  };
  const some = (n, size, odds) => {
    const count = sized(n);
    const from = place2;
    place2 += count;
    const name = [step2, from, count, size, odds].join();
    if (!made2.has(name)) {
      spend(count);
      made2.set(name, Array.from({ length: count }, () => unknown(size, odds)));
    }
    const found = made2.get(name);
    told.get(steps[step2][0])?.drawn?.slice(from, place2).forEach((value, i) => be(found[i], value));
    return found;
  };
  const draws = new Draws(() => {
    throw new RangeError("endlessly many outcomes");
  });
  Object.assign(draws, {
    geometric: draws.read,
    bits: (t, n) => some(n, 2, Number(t) / 2 ** 64),
    bit_at: draws.bit,
    belows: (b, n) => some(n, Number(b)),
    subset: (m, n) => {
      let low = 0;
      return Array.from({ length: sized(n) }, (_, i) => {
        times2((i + 1) / (m - i));
        low += 1 + pick(m - n + i + 1 - low);
        return low - 1;
      });
    },
    // Two draws of the same words depend on each other, which is not worked out.
    kept: (name, label, v, a, n) => {
      if (kept2.size === kept2.add(`${label} ${v}`).size) throw new RangeError("words that are drawn twice");
      return name === "kept_bits" ? draws.bits(a, n) : draws.belows_from(a, n);
    }
  });
  const solve = (each2, target, [drawn2, ...rest]) => {
    spend();
    if (!drawn2) return +(each2.valueOf() == target);
    let sum2 = 0;
    for (drawn2.value = 0; drawn2.value < drawn2.size; drawn2.value++) sum2 += chance(drawn2, drawn2.value) * solve(each2, target, rest);
    drawn2.value = void 0;
    return sum2;
  };
  const once = (answer2) => {
    for (const drawn2 of known2) drawn2.value = void 0;
    known2 = [];
    kept2.clear();
    choice = 0;
    likely = 0;
    spend(RUN + program.size);
    const run = { values: [answer2], draws, lift };
    for (step2 = 0; step2 < steps.length; step2++) {
      place2 = 0;
      const found = told.get(steps[step2][0]);
      times2(found?.likely ?? 1);
      run.values.push(found?.numbers ?? program.steps[step2](run));
    }
    const open = [];
    program.parts.forEach((part, i) => {
      const found = part.value(run);
      report[i].forEach((target, j) => {
        const each2 = found[j] ?? 0;
        if (each2.size) be(each2, target);
        else open.push([each2, target]);
      });
    });
    const seen = /* @__PURE__ */ new Set();
    for (const [{ draws: draws2 = [] }] of open) for (const drawn2 of new Set(draws2)) seen.has(drawn2) ? drawn2.valueOf() : seen.add(drawn2);
    for (const [each2, target] of open) {
      if (likely === -Infinity) return 0;
      times2(solve(each2, target, [...new Set(each2.draws)].filter(({ value }) => value === void 0)));
    }
    if (likely === -Infinity) return 0;
    first ??= likely;
    return Math.exp(likely - first);
  };
  const each = Array.from({ length: Number(program.definition.input.count) }, (_, answer2) => {
    for (let sum2 = 0; ; ) {
      sum2 += once(answer2);
      while (path.length && path[path.length - 1][0] + 1 === path[path.length - 1][1]) path.pop();
      if (!path.length) return sum2;
      path[path.length - 1][0]++;
    }
  });
  const all = each.reduce((sum2, one) => sum2 + one);
  return each.map((one) => ({ likelihood: one * Math.exp(first ?? 0), share: all && one / all }));
}
function likelihoods(program, report) {
  const { kind, count, text } = program.definition.input;
  if (report.length !== program.size) throw new RangeError(`a report has ${program.size} bytes: got ${report.length}`);
  if (kind !== "answer" || text || count > MOST2 / RUN) return void 0;
  let at2 = 0;
  try {
    return trials(program, program.parts.map((part) => part.read(report.subarray(at2, at2 += part.size))));
  } catch {
    return void 0;
  }
}

// clients/js/src/ticks.js
var WORD3 = 1n << 64n;
var MOST_TICKS = 20;
var MOST_ITEMS3 = 255;
function numberOfTicks(answer2, { answers: answers2, at_most: most, input }) {
  const names = answers2.map(canonicalText);
  const ticks = Array.isArray(answer2) ? answer2.map((each) => names.indexOf(canonicalText(`${each}`))) : [-1];
  if (ticks.includes(-1)) throw new RangeError(`the answer must be a list of options of ${answers2.join(", ")}: got ${answer2}`);
  if (new Set(ticks).size < ticks.length) throw new RangeError(`each option must be ticked once: got ${answer2}`);
  if (ticks.length > most) throw new RangeError(`at most ${most} options may be ticked: got ${ticks.length}`);
  const numbered = BigInt(input.count) === setsOf(names.length, most) ? most : names.length;
  return ticks.sort((a, b) => b - a).reduce((sum2, tick2, place2) => sum2 + setsOf(tick2, numbered - place2), 0n);
}
function ticksOf(number, { answers: { length }, at_most: most, input }) {
  const ticks = [];
  let left = number;
  for (let j = BigInt(input.count) === setsOf(length, most) ? most : length; j > 0 && left > 0n; j--) {
    let largest = length - 1;
    while (setsOf(largest, j) > left) largest--;
    ticks.unshift(largest);
    left -= setsOf(largest, j);
  }
  return ticks;
}
var whole2 = (number) => number <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(number) : `${number}`;
var gcd = (a, b) => b ? gcd(b, a % b) : a;
function running2(weights) {
  const over = weights.reduce(gcd, 0n);
  let total = 0n;
  return weights.map((each) => total += over ? each / over : 0n);
}
function setProgram(d, m, size, least, weights, high) {
  const [uppers, lowers] = [weights.slice(least), weights.slice(0, least)].map(running2);
  const steps = [
    ["likelier", ["bit", high]],
    ["upper", ["below", whole2(uppers[uppers.length - 1])]],
    ["lower", ["below", whole2(lowers[lowers.length - 1])]],
    ["drawn", ["subset", d, size]],
    ["order", ["shuffle", "places"]],
    ["turns", ["shuffle", "slots"]]
  ];
  let left = "value";
  const items = [];
  for (let slot = m; slot > 0; slot--) {
    const [row3, largest] = [["at", "starts", slot - 1], `largest${slot}`];
    steps.push([largest, ["sub", ["rank", row3, left], 1]], [`left${slot - 1}`, ["sub", left, ["at", row3, largest]]]);
    left = `left${slot - 1}`;
    items.push(["where", ["ge", largest, 1], ["sub", largest, 1], d + slot - 1]);
  }
  steps.push(["own", ["list", ...items]], ["held", ["sort", "own"]]);
  let others = "drawn";
  for (let slot = 0; slot < m; slot++) {
    steps.push([`others${slot}`, ["add", others, ["ge", others, ["at", "held", slot]]]]);
    others = `others${slot}`;
  }
  steps.push(["hits", ["where", "likelier", ["add", least, ["rank", "uppers", "upper"]], ["rank", "lowers", "lower"]]]);
  const row2 = Array.from({ length: size }, (_, place2) => {
    const other = ["at", others, ["at", "order", place2]];
    return place2 < m ? ["where", ["lt", place2, "hits"], ["at", "own", ["at", "turns", place2]], other] : other;
  });
  steps.push(["report", ["sort", ["list", ...row2]]]);
  const starts = Array.from({ length: m }, (_, j) => [0, ...Array.from({ length: d }, (_2, c) => whole2(setsOf(c, j + 1)))]);
  const [places, slots] = [size, m].map((count) => Array.from({ length: count }, (_, i) => i));
  return { steps, tables: { starts, uppers: uppers.map(whole2), lowers: lowers.map(whole2), places, slots } };
}
function ofTicks({ input, steps, tables, report }) {
  if (!Array.isArray(tables.starts) || steps[0]?.[0] !== "likelier") return void 0;
  const found = new Map(steps);
  const [d, size] = (found.get("drawn") ?? []).slice(1);
  const least = found.get("hits")?.[2]?.[1];
  const m = tables.starts.length;
  requires([d, size, least].every((each) => Number.isSafeInteger(each) && each > 0), "sets of a size that is drawn");
  requires(m <= Math.min(MOST_TICKS, d) && d + m <= MOST_ITEMS3 && size <= d && least <= Math.min(m, size), "sets of another size");
  const weights = Array.from({ length: Math.min(m, size) + 1 }, (_, i) => choose(BigInt(m), BigInt(i)) * choose(BigInt(d), BigInt(size - i)));
  const [upper, lower] = [weights.slice(least), weights.slice(0, least)].map((part) => part.reduce((a, b) => a + b, 0n));
  const high = BigInt(found.get("likelier")[1]);
  requires(high > 0n && high < WORD3 && upper > 0n && lower > 0n, "a set that is always held, or never");
  const rebuilt = setProgram(d, m, size, least, weights, found.get("likelier")[1]);
  requires(JSON.stringify(steps) === JSON.stringify(rebuilt.steps), "other steps than those of ticked sets");
  for (const [name, table2] of Object.entries(rebuilt.tables)) {
    requires(JSON.stringify(tables[name]) === JSON.stringify(table2), "other tables than those of ticked sets");
  }
  requires(input.kind === "answer" && BigInt(input.count) === setsOf(d, m), "another number of sets");
  requires(JSON.stringify(report.parts) === JSON.stringify([["uint", "report", 1, size]]), "another report");
  const [over, under] = [high * lower, (WORD3 - high) * upper];
  return over > under ? quotient(over, under) : quotient(under, over);
}

// clients/js/src/marks.js
var SECRET_BYTES = 16;
var MARK_BYTES = 16;
var newMarkSecret = () => systemBytes(SECRET_BYTES);
function marksOf(secret) {
  if (secret.length !== SECRET_BYTES) throw new RangeError(`the secret of marks must have ${SECRET_BYTES} bytes: got ${secret.length}`);
  const mark2 = (kind) => sha256(joined(utf8(`ldp-budget ${kind}`), secret)).subarray(0, MARK_BYTES);
  return { report: mark2("report"), charge: mark2("charge") };
}

// clients/js/src/index.js
var Client = class {
  /**
   * @param {any} definition the public definition of a collection
   * @param {{ digest?: string, within?: boolean }} [agreed] the digest that was agreed on, if the definition came from elsewhere;
   *     `within`: whether the definition is a question of a survey
   * @throws {TypeError} where its digest is another one, or it has an operator that this client does not know
   */
  constructor(definition, { digest, within: within2 } = {}) {
    checkDigest(definition, digest);
    this.definition = definition;
    this.program = new Program(definition);
    checkForm(definition, within2);
  }
  /** Whether reports repeat what was once drawn from a secret, so that one is needed. */
  get memoises() {
    return this.program.memo !== void 0;
  }
  /**
   * One report: send it once, and keep it until it has arrived. Drawing again gives another one.
   * @param {string | number} answer the name of an answer, or its number where there are no names; or a number
   * @param {{ secret?: Uint8Array }} [given] at least 16 bytes, for a collection that `memoises`; see `newSecret`
   * @returns {Uint8Array}
   * @throws {RangeError} for an answer that the collection does not have
   */
  randomize(answer2, { secret } = {}) {
    return this.program.run(this.numbered(answer2), { secret: this.within(secret) });
  }
  /**
   * The label to send with a report of `answer`, for the accounting.
   * @param {string | number} answer
   * @param {Uint8Array} secret
   * @returns {string | undefined} undefined where nothing is memoised, and where the reports hide what they repeat, which a
   *     label would tell, unless the collection asks for labels
   */
  labelToSend(answer2, secret) {
    const { labels, mechanism } = this.definition;
    return HIDES_REPEATS.has(mechanism) && labels !== true ? void 0 : this.label(answer2, secret);
  }
  /**
   * The label of the memoised draw that a report of `answer` repeats. It reveals nothing of the answer.
   * @param {string | number} answer
   * @param {Uint8Array} secret
   * @returns {string | undefined} undefined where nothing is memoised
   */
  label(answer2, secret) {
    const own = this.within(secret);
    if (!this.program.memo) return void 0;
    const draw = this.program.memo(this.program.evaluate(this.numbered(answer2), { secret: own }));
    const key = secretWithin(own, `${this.definition.context} labels`);
    return toHex(blake2b(utf8(`${draw}`), { size: 16, key }));
  }
  /**
   * The likelihood of this report for each answer, and its share of the sum: the posterior for a uniform prior.
   * @param {Uint8Array} report
   * @returns {{ answer: string | number, likelihood: number, share: number }[] | undefined} undefined where they cannot be listed
   */
  explain(report) {
    const names = this.definition.answers;
    return likelihoods(this.program, report)?.map((each, i) => ({ answer: names && this.definition.at_most === void 0 && !this.definition.items ? names[i] : i, ...each }));
  }
  /**
   * Checks an answer without drawing.
   * @param {any} answer
   * @throws {RangeError} for an answer that the collection does not have
   */
  check(answer2) {
    this.program.read(this.numbered(answer2));
  }
  /** @param {any} answer */
  numbered(answer2) {
    const { answers: names, at_most: most, items } = this.definition;
    if (!names) return answer2;
    if (items !== void 0) return numberOfGrid(answer2, this.definition);
    if (most !== void 0) return numberOfTicks(answer2, this.definition);
    const number = names.findIndex((name) => canonicalText(name) === canonicalText(`${answer2}`));
    if (number < 0) throw new RangeError(`the answer must be one of ${names.join(", ")}: got ${answer2}`);
    return number;
  }
  /** @param {Uint8Array | undefined} secret */
  within(secret) {
    return this.memoises ? secretWithin(secret, `collection ${this.definition.fingerprint}`) : void 0;
  }
};
var HIDES_REPEATS = /* @__PURE__ */ new Set(["rappor", "loloha"]);
var newSecret = () => systemBytes(32);

// clients/js/src/recode.js
var step = (from) => JSON.stringify(["recoded", ["at", "recode", from]]);
function recoding(steps, count) {
  if (JSON.stringify(steps[0]) === step("value")) return { steps: 1, places: count };
  const items = steps.findIndex(([name]) => name === "index");
  const size = BigInt(steps[0]?.[1]?.[2] ?? 0);
  if (items < 1 || size < 2n || JSON.stringify(steps[items + 1]) !== step("index")) return void 0;
  let total = "item0";
  for (let place2 = 0; place2 < items; place2++) {
    const [name, over] = [`item${place2}`, Number(size ** BigInt(place2))];
    if (JSON.stringify(steps[place2]) !== JSON.stringify([name, ["mod", ["div", "value", over], Number(size)]])) return void 0;
    if (place2) total = ["add", total, name];
  }
  const holds = JSON.stringify(steps[items][1]) === JSON.stringify(total) && size ** BigInt(items) === count;
  return holds ? { steps: items + 2, places: BigInt(items) * (size - 1n) + 1n } : void 0;
}
var renamed = (each) => Array.isArray(each) ? each.map(renamed) : each === "recoded" ? "value" : each;
function unrecoded(definition) {
  const { input, steps, tables, memo } = definition;
  const found = memo || input.kind !== "answer" ? void 0 : recoding(steps, BigInt(input.count));
  const rest = steps.slice(found?.steps);
  if (!found || /"(value|recode|index|item[0-9]+)"/.test(JSON.stringify(rest))) return definition;
  const { recode, ...others } = tables;
  requires(Array.isArray(recode) && recode.length > 1 && found.places === BigInt(recode.length), "a table of other answers");
  const values = recode.map((each) => BigInt(literal(each)));
  requires(values.every((each) => each >= 0n && each <= BigInt(Number.MAX_SAFE_INTEGER)), "a recoded answer that is no number");
  const most = values.reduce((a, b) => a > b ? a : b);
  return { ...definition, input: { kind: "answer", count: `${most + 1n}`, text: false }, steps: renamed(rest), tables: others };
}

// clients/js/src/loss.js
var WORD4 = 1n << 64n;
var MOST_BOUND2 = 1n << 63n;
var WINDOW = [
  ["kept", ["bit", "#t"]],
  ["near", ["below", "#w"]],
  ["far", ["below", "#m"]],
  ["inside", ["add", "value", "near"]],
  ["outside", ["add", "far", ["where", ["ge", "far", "value"], "#w", 0]]]
];
var OWN_CELL = ["where", "kept", "inside", "outside"];
var SHAPES = [
  {
    // One of the answers, kept with chance t/2^64, else another one: each of `n` independent times.
    steps: [["kept", ["bits", "#t", "#n"]], ["others", ["belows", "#m", "#n"]], ["moved", ["add", "others", ["ge", "others", "value"]]], ["drawn", ["where", "kept", "value", "moved"]]],
    parts: [["uint", "drawn", "#size", "#n"]],
    largest({ t, m, n, size }, { input }) {
      answers(input, m + 1n, size);
      requires(t > 0n && t < WORD4, "an answer that is always kept, or never");
      return power(bothWays(t * m, WORD4 - t), n);
    }
  },
  {
    // A set of n answers, with the own one with chance p/2^64: each such set is as likely, and so is each without it.
    steps: [
      ["others", ["subset", "#m", "#n"]],
      ["included", ["bit", "#p"]],
      ["place", ["below", "#n"]],
      ["row", ["add", "others", ["ge", "others", "value"]]],
      ["report", ["sort", ["put", "row", "place", ["where", "included", "value", ["at", "row", "place"]]]]]
    ],
    parts: [["uint", "report", "#size", "#n"]],
    largest({ m, n, p, size }, { input }) {
      answers(input, m + 1n, size);
      requires(p > 0n && p < WORD4 && n > 0n && n <= m, "an answer that is always in the set, or never");
      return bothWays(p * (m + 1n - n), (WORD4 - p) * n);
    }
  },
  {
    // The whole part of 2^k·(x + L) for a Laplace deviate L: moved by d/2^k its density changes by e^(d/2^k) at most.
    steps: [["noise", ["laplace", "#k"]], ["noisy", ["add", "value", "noise"]]],
    parts: [["float64", "noisy", "*", "*", "#plus"]],
    largest({ k }, { input, guarantee }) {
      requires(k <= 40n, "places that a draw does not have");
      const [a, b] = fractionOf(guarantee.epsilon);
      requires(lastOf(input) * b <= a << k, "too little noise for what is stated");
      return ONE2;
    }
  },
  {
    // A sign and a distance of g periods of a + b numbers and one of these, geometric in g, with two heights.
    steps: [
      ["periods", ["geometric", "#t"]],
      ["digits", ["bits_each", ["list", "#digits…"]]],
      ["upper", ["below", "#a"]],
      ["lower", ["below", "#b"]],
      ["is_upper", ["bit", "#p"]],
      ["left", ["bit", "#half"]],
      ["distance", ["add", ["mul", ["add", ["shl", "periods", "#k"], ["join", "digits"]], "#period"], ["where", "is_upper", "upper", ["add", "#a", "lower"]]]],
      ["cell", ["add", "value", ["where", "left", ["sub", -1, "distance"], "distance"]]]
    ],
    parts: [["float64", "cell", "*", "*", "#plus"]],
    largest({ t, digits, a, b, p, half, k, period }, { input }) {
      requires(a > 0n && b > 0n && a < MOST_BOUND2 && b < MOST_BOUND2 && period === a + b, "periods that overlap");
      requires(lastOf(input) <= period && half === WORD4 / 2n && k === BigInt(digits.length) && k <= 40n, "another shape");
      requires([t, p, ...digits].every((each) => each > 0n && each < WORD4), "an outcome that is impossible");
      const nexts = [];
      let [over, under] = [1n, 1n];
      for (const digit of digits) {
        nexts.push([over * (WORD4 - digit), under * digit]);
        [over, under] = [over * digit, under * (WORD4 - digit)];
      }
      nexts.push([over * WORD4, under * t]);
      const [upper, lower] = [p * b, (WORD4 - p) * a];
      const ratios = nexts.flatMap(([x, y]) => [bothWays(x, y), bothWays(x * lower, y * upper)]);
      return [bothWays(upper, lower), ...ratios].reduce((one, other) => one > other ? one : other);
    }
  },
  {
    // Cells of two heights, the higher ones in a window around the answer: over the sum of all, which that window decides.
    steps: [
      ["first", ["max", ["sub", "value", "#w"], 0]],
      ["inside", ["sub", ["min", ["add", "value", "#w"], "#m"], "first"]],
      ["window", ["mul", "#a", "inside"]],
      ["drawn", ["below", ["add", "window", ["mul", "#b", ["sub", "#m", "inside"]]]]],
      ["beside", ["div", ["sub", "drawn", "window"], "#b"]],
      ["other", ["add", "beside", ["where", ["ge", "beside", "first"], "inside", 0]]],
      ["own", ["add", "first", ["div", "drawn", "#a"]]],
      ["cell", ["where", ["lt", "drawn", "window"], "own", "other"]]
    ],
    parts: [["float64", "cell", "*", "*", "#plus"]],
    largest({ w, m, a, b }, { input }) {
      const last = lastOf(input);
      requires(w > 0n && w <= m && last <= m && a > 0n && b > 0n, "another shape");
      const inside = (v) => (v + w < m ? v + w : m) - (v > w ? v - w : 0n);
      const sum2 = (count) => a * count + b * (m - count);
      const sums = [inside(0n), inside(last), 2n * w < m ? 2n * w : m].map(sum2);
      const [least, most] = [sums.reduce((x, y) => x < y ? x : y), sums.reduce((x, y) => x > y ? x : y)];
      requires(most <= MOST_BOUND2, "a draw that there is not");
      return product(bothWays(a, b), quotient(most, least));
    }
  },
  {
    // Cells whose weights fall with the distance from the answer, over the sum of all.
    steps: [
      ["left", ["at", "below", "value"]],
      ["drawn", ["below", ["add", "left", ["at", "below", ["sub", "#m", "value"]]]]],
      ["is_left", ["lt", "drawn", "left"]],
      ["distance", ["sub", ["rank", "below", ["where", "is_left", "drawn", ["sub", "drawn", "left"]]], 1]],
      ["cell", ["where", "is_left", ["sub", ["sub", "value", 1], "distance"], ["add", "value", "distance"]]]
    ],
    parts: [["float64", "cell", "*", "*", "#plus"]],
    largest: ({ m }, { input, tables }) => ofFalling(tables.below, m, lastOf(input))
  },
  {
    // One of the cells of a window that begins at the answer, or one of the other cells.
    steps: [...WINDOW, ["cell", OWN_CELL]],
    parts: [["float64", "cell", "*", "*", "#plus"]],
    largest: (found, { input }) => ofWindow(found, lastOf(input))
  },
  {
    // The same, or one of two cells, of which the first is likelier the larger the answer. A mixture loses no more than either.
    steps: [
      ["windowed", ["bit", "#p"]],
      ...WINDOW,
      ["own", OWN_CELL],
      ["upper", ["bit_at", ["add", "#a", ["mul", "value", "#b"]]]],
      ["cell", ["where", "windowed", "own", ["where", "upper", "#n", "#k"]]]
    ],
    parts: [["float64", "cell", "*", "*", "#plus"]],
    largest(found, { input }) {
      const [least, most] = [found.a, found.a + found.b * lastOf(input)];
      requires(found.p <= WORD4 && least > 0n && most < WORD4, "a number that one answer alone can give");
      const numbers = [quotient(most, least), quotient(WORD4 - least, WORD4 - most), ofWindow(found, lastOf(input))];
      return numbers.reduce((one, other) => one > other ? one : other);
    }
  },
  {
    // The bits of an answer at k of n options that are drawn without it: one of 2^k cells, kept or changed to another one.
    steps: [
      ["asked", ["subset", "#n", "#k"]],
      ["kept", ["bit", "#t"]],
      ["other", ["below", "#m"]],
      ["cell", ["join", ["and", ["shr", "value", "asked"], 1]]],
      ["shown", ["where", "kept", "cell", ["add", "other", ["ge", "other", "cell"]]]],
      ["report", ["add", ["mul", 2, "asked"], ["and", ["shr", "shown", "places"], 1]]]
    ],
    parts: [["uint", "report", "#size", "#k"]],
    largest({ n, k, t, m, size }, { input, tables }) {
      requires(k > 0n && k <= n && n <= 60n && m === (1n << k) - 1n, "other cells than the bits of what is asked");
      requires(JSON.stringify(tables.places) === JSON.stringify(Array.from({ length: Number(k) }, (_, i) => i)), "other bits");
      requires(input.kind === "answer" && BigInt(input.count) === 1n << n, "another number of sets");
      requires(2n * n <= 1n << 8n * size && t > 0n && t < WORD4, "another shape");
      return bothWays(t * m, WORD4 - t);
    }
  },
  ...["sub", "xor"].map((moved) => ({
    // One of m places, moved by a hash of the answer and of a direction that is drawn without it. The k first places are the likelier ones.
    steps: [
      ["direction", ["below", "#n"]],
      ["vector", "*"],
      ["hash", "*"],
      ["kept", ["bit", "#t"]],
      ["inside", ["below", "#k"]],
      ["outside", ["below", "#a"]],
      ["place", ["where", "kept", "inside", ["add", "outside", "#k"]]],
      ["b", ["mod", [moved, "place", "hash"], "#m"]],
      ["report", ["add", ["mul", "#m", "direction"], "b"]]
    ],
    parts: [["uint", "report", "#size", 1]],
    largest({ n, t, k, a, m, size }, definition) {
      const [least, most] = hashed(definition, ["direction", "vector", "hash"]);
      requires(k > 0n && a > 0n && a + k === m && least >= 0n && most < m, "places or hashes beyond the last place");
      requires(moved === "sub" || (m & m - 1n) === 0n, "places that are moved beyond the last one");
      requires(n * m <= 1n << 8n * size && t > 0n && t < WORD4, "another shape");
      return bothWays(t * a, (WORD4 - t) * k);
    }
  }))
];
function ofWindow({ t, w, m }, last) {
  requires(t > 0n && t < WORD4 && w > 0n && m > 0n && last <= m, "another shape");
  return bothWays(t * m, (WORD4 - t) * w);
}
var NORMAL = { steps: [["noise", ["normal", "#k"]], ["noisy", ["add", "value", "noise"]]], parts: [["float64", "noisy", "*", "*", "#plus"]] };
function ofFalling(table2, m, last) {
  requires(table2 && !Array.isArray(table2) && BigInt(table2.count) === m && last <= m, "weights that do not fall by a ratio");
  const [over, under] = fractionOf(table2.ratio);
  requires(over <= under, "weights that rise");
  const totals = tabled(table2).map((each) => BigInt(each));
  const sums = totals.map((each, v) => each + totals[totals.length - 1 - v]);
  const [first, least] = [totals[1], totals[totals.length - 1] - totals[totals.length - 2]];
  requires(least > 1n && sums.every((each) => each >= sums[0] && each <= MOST_BOUND2), "a cell that is impossible, or a draw that there is not");
  const cap = quotient(first, least);
  requires(table2.digits > 1, "weights of one digit");
  const kept2 = 10n ** BigInt(table2.digits - 1);
  const step2 = quotient(under * kept2, over * (kept2 - 1n));
  let [largest, power2] = [ONE2, quotient(least + 1n, least - 1n)];
  const half = Number(m) + 1 >> 1;
  const count = Number(m);
  for (let distance = 0; distance <= count; distance++) {
    if (distance >= half) {
      const ratio = product(power2 < cap ? power2 : cap, quotient(sums[distance], sums[0]));
      if (ratio > largest) largest = ratio;
    }
    if (power2 < cap) power2 = product(power2, step2);
  }
  return largest;
}
var bothWays = (a, b) => quotient(a > b ? a : b, a > b ? b : a);
function power(ratio, times2) {
  let found = ONE2;
  for (let square = ratio, left = times2; left; left >>= 1n, square = product(square, square)) if (left & 1n) found = product(found, square);
  return found;
}
function answers({ kind, count: found }, count, size) {
  requires(kind === "answer" && BigInt(found) === count && count > 1n, "another number of answers");
  requires(count <= 1n << 8n * size, "a number that a report may not hold");
}
var lastOf = (input) => input.kind === "number" ? BigInt(input.last) : countOf(input) - 1n;
function matches(shape, part, found) {
  if (shape === "*") return true;
  if (typeof shape === "string" && shape.startsWith("#")) {
    const number = wholeOf(part);
    if (number === void 0 || (found[shape.slice(1)] ?? number) !== number) return false;
    found[shape.slice(1)] = number;
    return true;
  }
  if (!Array.isArray(shape)) return shape === part;
  if (!Array.isArray(part)) return false;
  const last = shape.at(-1);
  if (typeof last === "string" && last.endsWith("…")) {
    const numbers = part.slice(shape.length - 1).map(wholeOf);
    found[last.slice(1, -1)] = numbers;
    return numbers.every((each) => each !== void 0) && matches(shape.slice(0, -1), part.slice(0, shape.length - 1), found);
  }
  return shape.length === part.length && shape.every((each, i) => matches(each, part[i], found));
}
function wholeOf(part) {
  try {
    const number = BigInt(literal(part));
    return number >= 0n ? number : void 0;
  } catch {
    return void 0;
  }
}
function openOf(shape, { steps, report }) {
  const found = {};
  return matches(shape.steps, steps, found) && matches(shape.parts, report.parts, found) ? found : void 0;
}
function check(definition, most) {
  const rebuilt = ofTicks(definition) ?? ofGrid(definition);
  if (rebuilt) return requires(rebuilt <= most, "the program gives away more than is stated");
  for (const shape of SHAPES) {
    const found = openOf(shape, definition);
    if (found) return requires(shape.largest(found, definition) <= most, "the program gives away more than is stated");
  }
  seek(looks(definition), ({ largest }) => largest <= most);
}
function seek(found, isEnough) {
  let why = "";
  for (const each of found) {
    if (each instanceof Unconfirmed) why ||= each.message;
    else if (isEnough(each)) return;
    else why = "no bound of it is as low as is stated";
  }
  throw new Unconfirmed(why);
}
function confirmLoss(definition) {
  try {
    confirm(definition);
  } catch (error) {
    throw error instanceof Unconfirmed ? error : new Unconfirmed(`the program fails: ${error instanceof Error ? error.message : error}`);
  }
}
function confirmSurvey({ ask, questions, guarantee }) {
  checkGuarantee({ guarantee, memo: "" });
  requires(guarantee.epsilon !== null && Number.isSafeInteger(ask) && ask >= 1 && ask <= questions.length, "nothing is promised");
  for (const question of questions) {
    requires(question.format === "ldp-budget client" && !question.memo, "a question of a survey that is none, or repeats draws");
    confirm(question, true);
  }
  for (const kind of ["epsilon", "delta"]) {
    const largest = questions.map((question) => fractionOf(question.guarantee[kind])).sort(falling2).slice(0, ask);
    const [sum2, over] = largest.reduce(([a, b], [c, d]) => [a * d + c * b, b * d], [0n, 1n]);
    const [most, under] = fractionOf(guarantee[kind]);
    requires(sum2 * under <= most * over, "the questions together lose more than is stated");
  }
}
var falling2 = ([a, b], [c, d]) => a * d > c * b ? -1 : a * d < c * b ? 1 : 0;
function confirm(given, within2) {
  if (given.format === "ldp-budget questionnaire") return confirmSurvey(given);
  const { guarantee, memo } = given;
  const { epsilon, delta, lifetime_epsilon: lifetime, relation } = guarantee;
  const cap = guarantee.answer_epsilon ?? epsilon;
  requires(epsilon !== null && epsilon !== void 0, "nothing is promised");
  checkForm(given, within2);
  const definition = unrecoded(given);
  const [over, under] = fractionOf(delta);
  requires(over < under, "a δ of 1, which promises nothing");
  checkProgram(given);
  const normal2 = openOf(NORMAL, definition);
  if (normal2) {
    const shift = (
      /** @type {[bigint, bigint]} */
      [lastOf(definition.input), 1n << normal2.k]
    );
    requires(normal2.k <= 40n && normalKeeps(shift, epsilon, delta), "the noise is too little for what is stated");
    return;
  }
  checkMemo(definition);
  check(definition, oddsBelow(epsilon));
  if (!memo) return;
  requires(relation !== "any inputs", "it repeats draws, which shows when an answer changes");
  const most = oddsBelow(cap);
  seek(looks(definition, true), ({ largest }) => largest <= most);
  if (lifetime === void 0 || lifetime === null) return;
  const [a, b] = fractionOf(lifetime);
  const [c, d] = fractionOf(cap);
  requires(a * d >= c * b, "all answers together lose less than one of them");
  if (a * d === c * b) return;
  const whole3 = oddsBelow(lifetime);
  seek(looks(definition, true), ({ look, largest, every }) => largest <= most && look.draws * c * b <= a * d || every !== void 0 && every <= whole3);
}
var known = /* @__PURE__ */ new WeakMap();
function confirmOnce(definition) {
  if (!known.has(definition)) {
    let why2 = null;
    try {
      confirmLoss(definition);
    } catch (error) {
      why2 = /** @type {Unconfirmed} */
      error;
    }
    known.set(definition, why2);
  }
  const why = known.get(definition);
  if (why) throw why;
}

// clients/js/src/budget.js
var UNITS = 9;
var STORE = "budget";
var KEY = "device";
var STORES = [STORE, "outbox"];
var VERSION2 = 1;
var REMEDY = "In a browser, use it in a page or a worker. In Node.js, pass a store that keeps its data: { indexedDB }.";
var OverBudget = class extends Error {
  /**
   * @param {number} asked units
   * @param {{ period: string, limit: number, spent: number }[]} limits those that it does not fit, in units
   */
  constructor(asked, limits) {
    const said3 = limits.map(({ period, limit, spent }) => `${period}: ${epsilonOf(spent)} of ${epsilonOf(limit)} spent`);
    super(`over the budget of this device: asked ε = ${epsilonOf(asked)}; ${said3.join("; ")}`);
    this.name = "OverBudget";
    this.asked = asked;
    this.limits = limits;
  }
};
var DeviceBudget = class _DeviceBudget {
  /**
   * The budget of this device, made where there is none. Limits that are there already can be lowered, not raised.
   * @param {Limits} limits
   * @param {{ name?: string, now?: () => Date, indexedDB?: IDBFactory }} [options]
   */
  static async open(limits, { name = "ldp-budget", now: now2 = () => /* @__PURE__ */ new Date(), indexedDB = globalThis.indexedDB } = {}) {
    if (!indexedDB) throw new TypeError(`DeviceBudget needs IndexedDB, and there is none here. ${REMEDY}`);
    const given = { lifetime: unitsOf(limits.lifetime, false), day: limits.day === void 0 ? null : unitsOf(limits.day, false) };
    const budget = new _DeviceBudget(await opened(indexedDB, name), now2);
    budget.fresh = await budget.update((stored) => {
      if (!stored) return { state: made(given, now2()), result: true };
      checked(stored);
      const day2 = [stored.limits.day, given.day].filter((limit) => limit !== null);
      const lower = { lifetime: Math.min(stored.limits.lifetime, given.lifetime), day: day2.length ? Math.min(.../** @type {number[]} */
      day2) : null };
      return { state: { ...stored, limits: lower }, result: false };
    });
    return budget;
  }
  /**
   * @param {IDBDatabase} database
   * @param {() => Date} now
   */
  constructor(database, now2) {
    this.database = database;
    this.now = now2;
    this.fresh = false;
  }
  /**
   * One report, charged before it is drawn. Of a memoised answer the first report is charged all that its reports can
   * lose together, and others nothing.
   * @param {Client} client
   * @param {any} answer as `client.randomize` takes it
   * @returns {Promise<Uint8Array>}
   * @throws {OverBudget} where it does not fit
   * @throws {RangeError} for an answer that the collection does not have
   * @throws {import("./loss.js").Unconfirmed} where the program may give away more than the definition states
   */
  async randomize(client, answer2) {
    client.check(answer2);
    const units = costOf(client.definition.guarantee);
    confirmOnce(client.definition);
    const { secret } = await this.state();
    await this.charge(units, onceOf(client, answer2, secret), keptBy(client));
    return client.randomize(answer2, { secret });
  }
  /**
   * @param {number} units
   * @param {string} [label] of what is charged once only
   * @param {Kept} [kept] of a program that repeats draws
   */
  async charge(units, label, kept2) {
    await this.update((stored) => ({ state: charged(bound(checked(stored), kept2), units, this.now(), label), result: void 0 }));
  }
  /** What was spent and what is left, as decimal text, and since when it is counted. */
  async balance() {
    const { limits, spent: last, since } = await this.state();
    const spent = today(last, this.now());
    const line = (period, limit) => limit === null ? void 0 : { limit: epsilonOf(limit), spent: epsilonOf(spent[period]), left: epsilonOf(Math.max(0, limit - spent[period])) };
    return { since, lifetime: line("lifetime", limits.lifetime), day: line("day", limits.day) };
  }
  /** @returns {Promise<State>} */
  async state() {
    return this.update((state) => ({ state, result: checked(state) }));
  }
  close() {
    this.database.close();
  }
  /**
   * Reads and writes in one transaction, which no other page of this device comes between.
   * @template T
   * @param {(state: State | undefined) => { state: State | undefined, result: T }} change
   * @returns {Promise<T>}
   */
  update(change) {
    return new Promise((resolve, reject) => {
      const transaction = this.database.transaction(STORE, "readwrite", { durability: "strict" });
      const store = transaction.objectStore(STORE);
      const read2 = store.get(KEY);
      let result;
      let why;
      read2.onsuccess = () => {
        try {
          const changed = change(read2.result);
          result = changed.result;
          if (changed.state !== read2.result) store.put(changed.state, KEY);
        } catch (error) {
          why = error;
          transaction.abort();
        }
      };
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = () => reject(why ?? transaction.error);
    });
  }
  /**
   * Does some work in one transaction on the budget and other stores: all of it is kept, durably, or none. The work may
   * wait for what it asks of the stores, and for nothing else.
   * @template T
   * @param {string[]} stores
   * @param {(transaction: IDBTransaction) => Promise<T>} work
   * @returns {Promise<T>}
   */
  async transact(stores, work) {
    const transaction = this.database.transaction([STORE, ...stores], "readwrite", { durability: "strict" });
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    const ended = done.catch(() => {
    });
    let result;
    try {
      result = await work(transaction);
    } catch (error) {
      try {
        transaction.abort();
      } catch {
      }
      await ended;
      throw error;
    }
    await done;
    return result;
  }
  /**
   * What is kept, within a transaction on the budget.
   * @param {IDBTransaction} transaction
   * @returns {Promise<State>}
   */
  async stateWithin(transaction) {
    return checked(await answered(transaction.objectStore(STORE).get(KEY)));
  }
  /**
   * Keeps another state, within a transaction on the budget.
   * @param {IDBTransaction} transaction
   * @param {State} state
   */
  keepWithin(transaction, state) {
    transaction.objectStore(STORE).put(state, KEY);
  }
};
function answered(request2) {
  return new Promise((resolve, reject) => {
    request2.onsuccess = () => resolve(request2.result);
    request2.onerror = () => reject(request2.error);
  });
}
function onceOf(client, answer2, secret) {
  const { digest, guarantee } = client.definition;
  const label = guarantee.answer_epsilon === void 0 ? void 0 : client.label(answer2, secret);
  return label && `${digest} ${label}`;
}
function keptBy({ definition }) {
  const { fingerprint, context, input, steps, tables, memo, report } = definition;
  return memo ? [fingerprint, toHex(sha256(utf8(canonical({ context, input, steps, tables, memo, report }))))] : void 0;
}
function bound(state, kept2) {
  if (!kept2) return state;
  const programs = state.programs ?? [];
  const known2 = programs.find(([fingerprint]) => fingerprint === kept2[0]);
  if (known2 && known2[1] !== kept2[1]) throw new Unconfirmed("another program has read the draws that this device keeps for the collection");
  return known2 ? state : { ...state, programs: [...programs, kept2] };
}
function charged(state, units, now2, label) {
  if (label && state.labels.includes(label)) return state;
  const spent = today(state.spent, now2);
  const over = [
    { period: "lifetime", limit: state.limits.lifetime, spent: spent.lifetime },
    ...state.limits.day === null ? [] : [{ period: "day", limit: state.limits.day, spent: spent.day }]
  ].filter((each) => each.spent + units > each.limit);
  if (over.length) throw new OverBudget(units, over);
  const after = { ...spent, lifetime: spent.lifetime + units, day: spent.day + units };
  return { ...state, spent: after, labels: label ? [...state.labels, label] : state.labels };
}
function made(limits, now2) {
  return { secret: newSecret(), since: now2.toISOString(), limits, spent: { lifetime: 0, day: 0, date: dateOf(now2) }, labels: [] };
}
function checked(stored) {
  if (!stored) throw new Error("the budget of this device was cleared; open it again, which starts a new budget and reports that");
  const { limits, spent, labels } = stored;
  const units = [limits?.lifetime, limits?.day ?? 0, spent?.lifetime, spent?.day];
  const whole3 = units.every((each) => Number.isSafeInteger(each) && each >= 0);
  if (whole3 && typeof spent.date === "string" && Array.isArray(labels) && stored.secret instanceof Uint8Array) return stored;
  throw new Error("the record of this device's budget is damaged; clear it, which starts a new budget and reports that");
}
function today(spent, now2) {
  const date2 = dateOf(now2);
  return date2 > spent.date ? { ...spent, day: 0, date: date2 } : spent;
}
var dateOf = (now2) => now2.toISOString().slice(0, 10);
var NO_DELTA = 10 ** UNITS;
function costOf({ epsilon, delta, answer_epsilon: together2 = epsilon }) {
  if (epsilon === null || together2 === null || unitsOf(delta, false) >= NO_DELTA) {
    throw new TypeError(`a device charges promises of an ε, with a δ below 1; this one is ε = ${epsilon}, δ = ${delta}`);
  }
  return Math.max(unitsOf(epsilon, true), unitsOf(together2, true));
}
function unitsOf(text, up2) {
  const parts2 = typeof text === "string" && /^([0-9]{1,400})(?:\.([0-9]{1,400}))?(?:[eE]([+-]?[0-9]{1,3}))?$/.exec(text);
  if (!parts2) throw new TypeError(`a limit must be a decimal >= 0 as text: got ${text}`);
  const [, whole3, fraction2 = "", power2 = "0"] = parts2;
  const places = UNITS + Number(power2) - fraction2.length;
  const digits = BigInt(whole3 + fraction2);
  const cut2 = 10n ** BigInt(Math.abs(places));
  const units = Number(places >= 0 ? digits * cut2 : digits / cut2 + (up2 && digits % cut2 ? 1n : 0n));
  if (!Number.isSafeInteger(units)) throw new RangeError(`a limit must be at most 9007199: got ${text}`);
  return units;
}
function epsilonOf(units) {
  const text = String(units).padStart(UNITS + 1, "0");
  return `${text.slice(0, -UNITS)}.${text.slice(-UNITS)}`.replace(/\.?0+$/, "");
}
async function opened(indexedDB, name) {
  const request2 = indexedDB.open(name, VERSION2);
  request2.onupgradeneeded = () => {
    for (const store of STORES) request2.result.createObjectStore(store);
  };
  const database = await answered(request2);
  database.onversionchange = () => database.close();
  return database;
}

// clients/js/src/outbox.js
var STORE2 = "outbox";
var Outbox = class {
  /** @param {DeviceBudget} budget */
  constructor(budget) {
    this.budget = budget;
  }
  /**
   * The report of a key: drawn now, and charged before, or the one that was drawn under this key before; then
   * the answer is not used.
   * @param {string} key
   * @param {Client} client
   * @param {any} answer as `client.randomize` takes it
   * @param {{ about?: any, uncounted?: boolean }} [options] `about` is kept with it; `uncounted`: draw also where
   *   nothing is promised, which no device's budget counts
   * @returns {Promise<Entry>}
   * @throws {import("./budget.js").OverBudget} where it does not fit the budget of the device; nothing was drawn
   * @throws {RangeError} for an answer that the collection does not have
   * @throws {import("./loss.js").Unconfirmed} where the program may give away more than the definition states
   */
  draw(key, client, answer2, { about = {}, uncounted = false } = {}) {
    return this.budget.transact([STORE2], async (transaction) => {
      const kept2 = transaction.objectStore(STORE2);
      const before = await answered(kept2.get(key));
      if (before) return before;
      client.check(answer2);
      const { definition } = client;
      if (definition.guarantee.epsilon !== null) confirmOnce(definition);
      const units = uncounted && !counts(definition.guarantee) ? null : costOf(definition.guarantee);
      const state = bound(await this.budget.stateWithin(transaction), keptBy(client));
      const { secret } = state;
      const now2 = this.budget.now();
      const after = units === null ? state : charged(state, units, now2, onceOf(client, answer2, secret));
      this.budget.keepWithin(transaction, after);
      const paid = after.spent.lifetime - state.spent.lifetime;
      const entry = {
        ...{ key, collection: definition.name, digest: definition.digest, at: now2.toISOString(), state: "waiting" },
        ...{ report: client.randomize(answer2, { secret }), label: client.labelToSend(answer2, secret) },
        ...{ units: units === null ? null : paid, about }
      };
      kept2.add(entry, key);
      return entry;
    });
  }
  /**
   * Says what has become of a report. What was settled stays as it is.
   * @param {string} key
   * @param {Partial<Entry> & Record<string, any>} change such as a `state`; undefined drops what there was
   * @returns {Promise<Entry | undefined>} as it is kept now
   */
  settle(key, change) {
    return this.budget.transact([STORE2], async (transaction) => {
      const kept2 = transaction.objectStore(STORE2);
      const before = await answered(kept2.get(key));
      if (!before || before.state !== "waiting") return before;
      const after = { ...before, ...change };
      kept2.put(after, key);
      return after;
    });
  }
  /**
   * Deletes the report of an entry and changes what is kept with it. The charge stays, and nothing is drawn again.
   * @param {string} key of an entry that is settled
   * @param {any} about replaces parts of what is kept; undefined deletes one
   * @returns {Promise<Entry | undefined>} as it is kept now
   */
  forget(key, about) {
    return this.budget.transact([STORE2], async (transaction) => {
      const kept2 = transaction.objectStore(STORE2);
      const before = await answered(kept2.get(key));
      if (!before || before.state === "waiting") return before;
      const after = { ...before, report: void 0, about: { ...before.about, ...about } };
      kept2.put(after, key);
      return after;
    });
  }
  /**
   * @param {string} key
   * @returns {Promise<Entry | undefined>}
   */
  entry(key) {
    return this.budget.transact([STORE2], (transaction) => answered(transaction.objectStore(STORE2).get(key)));
  }
  /** @returns {Promise<Entry[]>} all of them, oldest first */
  async entries() {
    const all = await this.budget.transact([STORE2], (transaction) => answered(transaction.objectStore(STORE2).getAll()));
    return all.sort((a, b) => a.at < b.at ? -1 : 1);
  }
};
var counts = (guarantee) => guarantee.epsilon !== null;

// clients/survey/src/service.js
var PATIENCE_MS = 2e4;
var PASSING = /* @__PURE__ */ new Set([408, 425, 429, 500, 502, 503, 504]);
var STUCK = /* @__PURE__ */ new Set([401, 403, 404, 405]);
var Problem = class extends Error {
  /** @param {string} code @param {any} [body] */
  constructor(code, body = {}) {
    super(code);
    this.code = code;
    this.body = body;
  }
};
function request(path, { token, headers = {}, ...rest } = {}) {
  return fetch(path, {
    ...{ cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" },
    ...{ ...rest, body: (
      /** @type {any} */
      rest.body
    ) },
    headers: { ...headers, ...token ? { Authorization: `Bearer ${token}` } : {} },
    signal: AbortSignal.timeout(PATIENCE_MS)
  });
}
async function codeOf(response) {
  const body = await response.json().catch(() => ({}));
  return new Problem(String(body.type ?? "").split("/").pop() || `status-${response.status}`, body);
}
async function read(path, token, parse = JSON.parse) {
  const response = await request(path, { token }).catch(() => {
    throw new Problem("network");
  });
  if (!response.ok) throw await codeOf(response);
  const text = await response.text().catch(() => {
    throw new Problem("network");
  });
  try {
    return parse(text);
  } catch (error) {
    throw new Problem(error instanceof SyntaxError ? "network" : "changed", { error });
  }
}
var definitionOf = (collection2) => read(`/v1/collections/${encodeURIComponent(collection2)}`, void 0, parseDefinition);
var meAt = (token) => read("/v1/me", token);
function markHeaders(entry) {
  if (!entry.about.secret) return {};
  const { report, charge } = marksOf(fromHex(entry.about.secret));
  return { "Report-Mark": toHex(report), "Charge-Mark": toHex(charge) };
}
async function proofAt(token, mark2) {
  const response = await request("/v1/me/proof", { token, headers: { "Charge-Mark": mark2 } }).catch(() => {
    throw new Problem("network");
  });
  if (!response.ok) throw await codeOf(response);
  return new Uint8Array(await response.arrayBuffer());
}
async function send(entry) {
  let response;
  try {
    response = await request(`/v1/collections/${encodeURIComponent(entry.collection)}/reports`, {
      method: "POST",
      token: entry.about.token,
      headers: {
        "Content-Type": "application/octet-stream",
        "Idempotency-Key": entry.key,
        "X-Collection": entry.digest,
        ...entry.label ? { "X-Label": entry.label } : {},
        ...markHeaders(entry)
      },
      body: entry.report
    });
  } catch {
    return { state: "waiting", why: "network" };
  }
  const after = 1e3 * Number(response.headers.get("Retry-After") ?? 0) || 0;
  if (response.ok) {
    const receipt = await response.json().catch(() => void 0);
    if (!receipt) return { state: "waiting", why: "network" };
    delete receipt.user;
    return { state: "arrived", receipt };
  }
  const { code, body } = await codeOf(response);
  if (PASSING.has(response.status)) return { state: "waiting", why: "busy", after };
  if (STUCK.has(response.status)) return { state: "waiting", why: code, stuck: true };
  if (code === "budget-exceeded") return { state: "refused", limits: body.failed ?? body.limits ?? [] };
  if (code === "wrong-collection") return { state: "changed" };
  if (code === "key-conflict") return { state: "taken" };
  return { state: "rejected", why: code };
}

// clients/survey/src/delivery.js
var FIRST_MS = 1e3;
var MOST_MS = 5 * 6e4;
var Delivery = class {
  /**
   * @param {Outbox} outbox
   * @param {(entry: Entry, why?: string) => void} changed called with each result; `why`: the reason it still waits
   */
  constructor(outbox, changed) {
    this.outbox = outbox;
    this.changed = changed;
    this.failures = 0;
    this.timer = void 0;
    this.running = void 0;
    this.stuck = /* @__PURE__ */ new Set();
    this.others = new BroadcastChannel("ldp-budget");
    this.others.onmessage = async ({ data }) => {
      const entry = await this.outbox.entry(data);
      if (entry) this.changed(entry);
    };
    addEventListener("online", () => this.now());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.now());
  }
  /** Sends all waiting reports now, also after failures. */
  now() {
    this.failures = 0;
    this.stuck.clear();
    return this.run();
  }
  run() {
    clearTimeout(this.timer);
    this.running ??= this.alone(() => this.round()).finally(() => this.running = void 0);
    return this.running;
  }
  /**
   * Does the work unless another page is doing it. Sending a report twice is harmless: the service takes it once.
   * @param {() => Promise<void>} work
   */
  async alone(work) {
    if (!navigator.locks) return work();
    await navigator.locks.request("ldp-budget outbox", { ifAvailable: true }, (lock) => lock ? work() : this.later(FIRST_MS));
  }
  async round() {
    let longest = 0;
    let waits = false;
    for (const entry of await this.outbox.entries()) {
      if (entry.state !== "waiting" || this.stuck.has(entry.key)) continue;
      const { state, after = 0, stuck = false, why, ...found } = await send(entry);
      if (state === "waiting") {
        if (stuck) this.stuck.add(entry.key);
        else waits = true;
        longest = Math.max(longest, after);
        this.changed(entry, why);
        continue;
      }
      await this.settle(entry, { state, why, ...found });
    }
    if (waits) this.later(Math.max(longest, this.backoff()));
    else this.failures = 0;
  }
  /**
   * @param {Entry} entry
   * @param {any} found
   */
  async settle(entry, found) {
    const about = { ...entry.about, token: void 0, ...found.state === "arrived" ? {} : { secret: void 0 } };
    const settled = await this.outbox.settle(entry.key, { ...found, about, ...found.state === "arrived" ? {} : { report: void 0 } });
    this.others.postMessage(entry.key);
    if (settled) this.changed(settled);
  }
  /** The delay after this many failures: it doubles each time, with jitter so that devices do not retry together. */
  backoff() {
    const most = Math.min(MOST_MS, FIRST_MS * 2 ** this.failures++);
    return most * (0.5 + 0.5 * Math.random());
  }
  /** @param {number} ms */
  later(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), ms);
  }
};

// clients/survey/src/elements.js
function el(name, attributes = {}, ...children) {
  const made2 = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value === null || value === void 0 || value === false) continue;
    if (attribute.startsWith("on")) made2.addEventListener(attribute.slice(2), value);
    else made2.setAttribute(attribute, value === true ? "" : String(value));
  }
  made2.append(...nodes(children));
  return made2;
}
function nodes(children) {
  return children.flat(9).filter((child) => child !== null && child !== void 0 && child !== false).map((child) => child instanceof Node ? child : String(child));
}
function show(children, { focus = false } = {}) {
  const main = (
    /** @type {HTMLElement} */
    document.querySelector("main")
  );
  const within2 = main.contains(document.activeElement);
  main.replaceChildren(...nodes(children));
  const heading = main.querySelector("h1");
  if ((focus || within2) && heading) {
    heading.tabIndex = -1;
    heading.focus();
  }
  document.body.dataset.ready = "true";
}
function announce(text) {
  const region = (
    /** @type {HTMLElement} */
    document.getElementById("status")
  );
  if (region.textContent !== text) region.textContent = text;
}
var SVG = "http://www.w3.org/2000/svg";
var DISC = "M20 0a20 20 0 1 1 0 40 20 20 0 0 1 0-40Z";
var SIGNS = {
  arrived: "m-3.4 25.6-5.2-5.2-2.6 2.6 7.8 7.8 15-15-2.6-2.6Z",
  waiting: "m-1.9 9v12.2l8.3 5 1.9-3.1-6.5-3.9V9Z",
  stopped: "m-10 18v4h20v-4Z",
  warned: "m-2 9v13h4v-13Zm0 17v4h4v-4Z"
};
function mark(kind) {
  const sign = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  const shape = { viewBox: "0 0 40 40", class: `mark ${kind}`, "aria-hidden": "true" };
  for (const [name, value] of Object.entries(shape)) sign.setAttribute(name, value);
  path.setAttribute("fill-rule", "evenodd");
  path.setAttribute("d", DISC + SIGNS[kind]);
  sign.append(path);
  return sign;
}
function section(title, { class: kind = "card", id }, ...children) {
  return el("section", { class: kind, "aria-labelledby": id }, el("h2", { id }, title), ...children);
}
function contactShown(contact) {
  const address = /^[^\s@:/]+@[^\s@:/]+\.[^\s@:/]+$/.test(contact) ? `mailto:${contact}` : contact;
  const found = URL.canParse(address) ? new URL(address) : void 0;
  if (found?.protocol === "mailto:") return el("a", { href: found.href }, contact.replace(/^mailto:/i, ""));
  if (found?.protocol === "https:" && !found.username) return el("a", { href: found.href, target: "_blank", rel: "noopener noreferrer" }, contact);
  return el("strong", {}, contact);
}
function facts(rows) {
  return el("dl", { class: "facts" }, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// clients/survey/src/links.js
var PREFIX = "ldp-budget link ";
var WHOLE2 = /^([\w-]{14,2000}\.[\w-]{22})(?:~([0-9a-f]{16,64})(?:~([0-9a-f]{32}))?)?$/;
var BEGINNING = /^Wy[IJ]/;
function taken(collection2) {
  const fragment = location.hash.slice(1).replace(/[^\w~-]+$/, "");
  if (location.hash || location.href.endsWith("#")) history.replaceState(null, "", location.pathname + location.search);
  const [, token, agreed = "", log] = WHOLE2.exec(fragment) ?? [];
  if (token) return { collection: collection2, token, agreed, log };
  return BEGINNING.test(fragment) ? { collection: collection2, token: "", agreed, cut: true } : void 0;
}
var Links = class {
  /** @param {Storage} [storage] */
  constructor(storage = sessionStorage) {
    this.storage = storage;
  }
  /** @param {string} collection @returns {Link | undefined} */
  find(collection2) {
    const found = this.storage.getItem(PREFIX + collection2);
    return found === null ? void 0 : JSON.parse(found);
  }
  /** @returns {Link[]} */
  all() {
    const names = Object.keys(this.storage).filter((name) => name.startsWith(PREFIX)).sort();
    return names.map((name) => JSON.parse(
      /** @type {string} */
      this.storage.getItem(name)
    ));
  }
  /**
   * Keeps an invitation, with all that was known of the same one.
   * @param {Link} link
   * @returns {Link} as it is kept
   */
  keep(link2) {
    const before = this.find(link2.collection);
    const kept2 = before?.token === link2.token ? { ...before, ...link2 } : link2;
    this.storage.setItem(PREFIX + link2.collection, JSON.stringify(kept2));
    return kept2;
  }
  /** @param {string} collection */
  forget(collection2) {
    this.storage.removeItem(PREFIX + collection2);
  }
};

// clients/survey/src/budgets.js
function budgetBar({ name, limit, spent, asked = 0, text }) {
  const part = (amount) => limit > 0 ? Math.min(1, amount / limit) : 1;
  const used = el("span", { class: "used" });
  const next = el("span", { class: "next" });
  used.style.width = `${100 * part(spent)}%`;
  next.style.width = `${100 * Math.max(0, Math.min(part(asked), 1 - part(spent)))}%`;
  const bar = el("div", { class: "bar", "aria-hidden": "true" }, used, next);
  return el("div", { class: "budget" }, el("p", { class: "budget-name" }, name), bar, el("p", { class: "budget-text" }, text));
}
var periodNamed = (period) => said(`period.${period}`) ? say(`period.${period}`) : period;
function shares(limit, spent, cost) {
  const part = (amount) => shareUp(Number(limit) > 0 ? Math.min(1, amount / Number(limit)) : 1);
  const now2 = part(Number(spent));
  return cost ? say("budget.share_after", { spent: now2, after: part(Number(spent) + Number(cost)) }) : say("budget.share", { spent: now2 });
}
function parts(limit) {
  const name = say("budget.service", { period: periodNamed(limit.period) });
  const resets = limit.resets_at ? ` ${say("budget.resets", { date: date(limit.resets_at) })}` : "";
  const [measure] = Object.keys(limit.capacity);
  return { name, resets, measure, capacity: limit.capacity[measure], spent: limit.spent[measure] };
}
var inFigures = (limit, spent, cost) => cost ? moving(limit, spent, cost) : say("budget.now", { spent: up(spent), limit: down(limit) });
function limitBar(limit, cost, inShares = false) {
  const { name, resets, measure, capacity: capacity2, spent } = parts(limit);
  if (measure !== "epsilon") {
    const text2 = say("budget.share", { spent: share(capacity2 ? Math.min(1, spent / capacity2) : 1) }) + resets;
    return budgetBar({ name, limit: capacity2, spent, text: text2 });
  }
  const text = (inShares ? shares : inFigures)(capacity2, spent, cost);
  return budgetBar({ name, limit: capacity2, spent, asked: cost ?? 0, text: text + resets });
}
function deviceBars(balance, cost, inShares = false) {
  return deviceLines(balance).map(({ name, limit, spent }) => {
    const text = (inShares ? shares : inFigures)(limit, spent, cost);
    return budgetBar({ name, limit: Number(limit), spent: Number(spent), asked: Number(cost ?? 0), text });
  });
}
var deviceLines = (balance) => (
  /** @type {const} */
  ["lifetime", "day"].filter((period) => balance[period]).map((period) => {
    const { limit, spent } = balance[period];
    return { name: say("budget.device", { period: periodNamed(period) }), limit, spent };
  })
);
function figures(limits, balance, cost, here) {
  const counted2 = limits.map(parts).filter(({ measure }) => measure === "epsilon");
  return [
    ...counted2.map(({ name, capacity: capacity2, spent }) => (
      /** @type {[string, string]} */
      [name, inFigures(capacity2, spent, cost)]
    )),
    ...deviceLines(balance).map(({ name, limit, spent }) => (
      /** @type {[string, string]} */
      [name, inFigures(limit, spent, here)]
    ))
  ];
}
function moving(limit, spent, cost) {
  const after = epsilonOf(unitsOf(String(spent), true) + unitsOf(String(cost), true));
  return say("budget.after", { spent: up(spent), after: up(after), limit: down(limit) });
}
function refusedBy(limit) {
  const name = periodNamed(limit.period);
  return limit.resets_at ? say("refused.until", { period: name, date: date(limit.resets_at) }) : say("refused.forever", { period: name });
}

// clients/survey/src/guarantee.js
var MOST_EPSILON = 15;
var BEFORE = 0.5;
var promises = (guarantee) => guarantee.epsilon !== null && Number(guarantee.delta) < 1;
function meaning(guarantee, several = false) {
  if (!promises(guarantee)) return [say("meaning.none")];
  const { epsilon, delta, answer_epsilon: cap, lifetime_epsilon: lifetime, relation } = guarantee;
  if (Number(delta) > 0) return [said2(several ? "meaning.exception" : "meaning.approximate", epsilon, { delta: up(delta) })];
  const sentences = [said2(several ? "meaning.several" : "meaning.pure", epsilon)];
  if (cap !== void 0 && cap !== null) {
    sentences.push(said2("meaning.repeated", cap));
    if (Number(lifetime) > Number(cap)) sentences.push(said2("meaning.changed", lifetime));
  }
  if (relation !== "any inputs") sentences.push(say("meaning.pattern"));
  return sentences;
}
function said2(key, epsilon, more = {}) {
  if (Number(epsilon) > MOST_EPSILON) return say("meaning.little", { epsilon: up(epsilon) });
  return say(key, { before: share(BEFORE), after: sureness(Math.exp(-Number(epsilon)) * (1 - 2 ** -46)), ...more });
}
function price(guarantee) {
  if (!promises(guarantee)) return say("cost.unbounded");
  const { epsilon, delta } = guarantee;
  return Number(delta) > 0 ? `ε = ${up(epsilon)}, δ = ${up(delta)}` : `ε = ${up(epsilon)}`;
}
var priceHere = (guarantee) => promises(guarantee) ? epsilonOf(costOf(guarantee)) : void 0;
var priceThere = (guarantee, quote) => promises(guarantee) && typeof quote?.cost.epsilon === "number" ? Math.max(quote.cost.epsilon, Number(guarantee.epsilon)) : null;

// clients/survey/src/qr_code.js
var CHECKS = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26, 28, ...Array(14).fill(30)];
var BLOCKS = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19, 20, 21, 22, 24, 25];
var LOW2 = 1;
var MASKS = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => x * y % 2 + x * y % 3 === 0,
  (x, y) => (x * y % 2 + x * y % 3) % 2 === 0,
  (x, y) => ((x + y) % 2 + x * y % 3) % 2 === 0
];
function centers(size) {
  if (size === 1) return [];
  const count = Math.floor(size / 7) + 2, last = 4 * size + 10;
  const step2 = size === 32 ? 26 : 2 * Math.ceil((last - 6) / (2 * (count - 1)));
  return [6, ...Array.from({ length: count - 1 }, (_, i) => last - step2 * (count - 2 - i))];
}
function capacity(size) {
  const side = 4 * size + 17, along = centers(size).length;
  const aligned = along && 25 * (along * along - 3) - 10 * (along - 2);
  return Math.floor((side * side - 3 * 64 - 2 * (side - 16) - 31 - aligned - (size > 6 ? 36 : 0)) / 8);
}
function remainder(value, divisor, degree) {
  let rest = value << degree;
  for (let bit = 31 - Math.clz32(rest); bit >= degree; bit = 31 - Math.clz32(rest)) rest ^= divisor << bit - degree;
  return rest;
}
function times(a, b) {
  let product2 = 0;
  for (let bit = 7; bit >= 0; bit--) product2 = product2 << 1 ^ (product2 & 128 ? 285 : 0) ^ (b >> bit & 1 ? a : 0);
  return product2;
}
function checkOf(data, count) {
  let generator = [1];
  for (let i = 0, root2 = 1; i < count; i++, root2 = times(root2, 2)) {
    generator = [...generator, 0].map((each, place2) => each ^ (place2 ? times(generator[place2 - 1], root2) : 0));
  }
  const rest = Array(count).fill(0);
  for (const each of data) {
    const factor = each ^ rest.shift();
    rest.push(0);
    for (let i = 0; i < count; i++) rest[i] ^= times(generator[i + 1], factor);
  }
  return rest;
}
function codewords(content, size) {
  const total = capacity(size), blocks = BLOCKS[size - 1], checks = CHECKS[size - 1];
  const room = total - blocks * checks, bits = [0, 1, 0, 0];
  const put3 = (value, count) => {
    for (let bit = count - 1; bit >= 0; bit--) bits.push(value >> bit & 1);
  };
  put3(content.length, size < 10 ? 8 : 16);
  content.forEach((byte) => put3(byte, 8));
  put3(0, Math.min(4, 8 * room - bits.length));
  put3(0, (8 - bits.length % 8) % 8);
  for (let pad = 0; bits.length < 8 * room; pad ^= 1) put3(pad ? 17 : 236, 8);
  const data = Array.from({ length: room }, (_, i) => parseInt(bits.slice(8 * i, 8 * i + 8).join(""), 2));
  const short = Math.floor(room / blocks), long = room % blocks, parts2 = [];
  for (let i = 0, at2 = 0; i < blocks; i++) parts2.push(data.slice(at2, at2 += short + (i >= blocks - long ? 1 : 0)));
  const interleaved = (rows) => Array.from({ length: Math.max(...rows.map((row2) => row2.length)) }, (_, i) => rows.flatMap((row2) => i < row2.length ? [row2[i]] : [])).flat();
  return [...interleaved(parts2), ...interleaved(parts2.map((part) => checkOf(part, checks)))];
}
function patterns(size, mask) {
  const side = 4 * size + 17, grid = () => Array.from({ length: side }, () => Array(side).fill(false)), [dark, set] = [grid(), grid()];
  const put3 = (x, y, is) => {
    if (x < 0 || y < 0 || x >= side || y >= side) return;
    [dark[y][x], set[y][x]] = [is, true];
  };
  const square = (x, y, reach) => {
    for (let i = -reach; i <= reach; i++) for (let j = -reach; j <= reach; j++) {
      const ring = Math.max(Math.abs(i), Math.abs(j));
      put3(x + i, y + j, reach === 4 ? ring !== 2 && ring !== 4 : ring !== 1);
    }
  };
  for (let i = 0; i < side; i++) {
    put3(6, i, i % 2 === 0);
    put3(i, 6, i % 2 === 0);
  }
  const places = centers(size), last = places[places.length - 1];
  for (const x of places) for (const y of places) if (!(x === 6 && (y === 6 || y === last)) && !(y === 6 && x === last)) square(x, y, 2);
  for (const [x, y] of [[3, 3], [side - 4, 3], [3, side - 4]]) square(x, y, 4);
  const kind = LOW2 << 3 | mask, format = (kind << 10 | remainder(kind, 1335, 10)) ^ 21522;
  for (let i = 0; i < 15; i++) {
    const bit = (format >> i & 1) === 1;
    put3(8, i < 6 ? i : i < 8 ? i + 1 : side - 15 + i, bit);
    put3(i < 8 ? side - 1 - i : i === 8 ? 7 : 14 - i, 8, bit);
  }
  put3(8, side - 8, true);
  const version = size > 6 ? size << 12 | remainder(size, 7973, 12) : 0;
  for (let i = 0; size > 6 && i < 18; i++) {
    const [near, far] = [Math.floor(i / 3), side - 11 + i % 3];
    put3(near, far, (version >> i & 1) === 1);
    put3(far, near, (version >> i & 1) === 1);
  }
  return { dark, set };
}
function penalty(dark) {
  const side = dark.length, across = dark[0].map((_, x) => dark.map((row2) => row2[x]));
  let found = 0, count = 0;
  for (const row2 of [...dark, ...across]) {
    const line = row2.map(Number).join("");
    for (const run of line.match(/0{5,}|1{5,}/g) ?? []) found += run.length - 2;
    for (let at2 = 0; at2 + 11 <= side; at2++) if (["10111010000", "00001011101"].includes(line.slice(at2, at2 + 11))) found += 40;
  }
  for (let y = 0; y < side; y++) for (let x = 0; x < side; x++) {
    count += Number(dark[y][x]);
    if (x && y && dark[y][x] === dark[y][x - 1] && dark[y][x] === dark[y - 1][x] && dark[y][x] === dark[y - 1][x - 1]) found += 3;
  }
  return found + 10 * Math.floor(Math.abs(20 * count - 10 * side * side) / (side * side));
}
function qrCode(text, only) {
  const content = new TextEncoder().encode(text);
  let size = 1;
  const holds = () => capacity(size) - BLOCKS[size - 1] * CHECKS[size - 1] - (size < 10 ? 2 : 3);
  while (size <= 40 && holds() < content.length) size++;
  if (size > 40) return void 0;
  const bits = codewords(content, size).flatMap((word) => Array.from({ length: 8 }, (_, i) => word >> 7 - i & 1));
  const drawn2 = (only === void 0 ? MASKS.map((_, mask) => mask) : [only]).map((mask) => {
    const { dark, set } = patterns(size, mask), side = dark.length;
    let at2 = 0;
    for (let right = side - 1, up2 = true; right > 0; right -= 2, up2 = !up2) {
      if (right === 6) right = 5;
      for (let step2 = 0; step2 < side; step2++) for (const x of [right, right - 1]) {
        const y = up2 ? side - 1 - step2 : step2;
        if (!set[y][x]) dark[y][x] = bits[at2++] === 1 !== MASKS[mask](x, y);
      }
    }
    return dark;
  });
  return drawn2.map((dark) => ({ dark, cost: drawn2.length > 1 ? penalty(dark) : 0 })).reduce((a, b) => b.cost < a.cost ? b : a).dark;
}
var SVG2 = "http://www.w3.org/2000/svg";
var BORDER = 4;
function qrPicture(code, label) {
  const side = code.length + 2 * BORDER;
  const made2 = (name, attributes) => {
    const element = document.createElementNS(SVG2, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
    return element;
  };
  const path = code.flatMap((row2, y) => row2.flatMap((dark, x) => dark ? [`M${x + BORDER} ${y + BORDER}h1v1h-1z`] : [])).join("");
  const picture = made2("svg", { viewBox: `0 0 ${side} ${side}`, class: "qr", role: "img", "aria-label": label, "shape-rendering": "crispEdges" });
  picture.append(made2("rect", { width: side, height: side, fill: "#fff" }), made2("path", { d: path, fill: "#000" }));
  return picture;
}

// clients/survey/src/receipt_links.js
var VERSION3 = "1";
var MEASURES = ["epsilon", "delta", "rho", "mu_squared"];
var packed = (hex) => hex ? btoa(String.fromCharCode(...fromHex(hex))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "") : "";
var escaped = (text) => encodeURIComponent(text).replaceAll("~", "%7E");
function fragmentOf({ collection: collection2, client, secret, report, costs, promise, publication }) {
  const { measure = "", limit = "", key = "", signature = "" } = promise ?? {};
  const { address, key: log, invitation, proof } = publication ?? {};
  const paid = MEASURES.map((name) => costs[name] ?? "").join(".");
  const place2 = address ? escaped(address.replace(location.origin, "")) : "";
  return [
    ...[VERSION3, escaped(collection2), packed(client), packed(secret), packed(report), paid, measure, limit],
    ...[packed(key), packed(signature), place2, log ? escaped(log) : "", packed(invitation), packed(proof)]
  ].join("~");
}

// clients/survey/src/saved_files.js
function save(name, content, type = "application/json") {
  const url = URL.createObjectURL(new Blob([
    /** @type {any} */
    content
  ], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 6e4);
}

// clients/survey/src/receipts.js
var CHECKER = "/check";
var LEAST_SHARE = 0.999;
var drawnSecret = () => toHex(newMarkSecret());
var has = (entry) => Boolean(entry.state === "arrived" && entry.about.secret && entry.report && entry.receipt?.units);
function receiptOf(entry) {
  if (!has(entry)) return {};
  const costs = Object.fromEntries(MEASURES.map((measure, i) => [measure, entry.receipt.units.cost[i]]));
  if (!entry.label && entry.units !== null && costs.epsilon < LEAST_SHARE * entry.units) costs.epsilon = entry.units;
  return {
    ...{ format: "ldp-budget receipt", version: 1, collection: entry.collection, client: entry.digest },
    ...{ secret: entry.about.secret, report: toHex(entry.report), costs, promise: entry.receipt.promise ?? null },
    publication: publicationOf(entry)
  };
}
function publicationOf({ about, receipt: { publication } }) {
  if (!publication) return null;
  const { address, key, proof } = publication;
  return { address: address && new URL(address, location.origin).href, key, invitation: about.log ?? null, proof };
}
var checkOf2 = (entry) => `${CHECKER}?lang=${language}#${fragmentOf(receiptOf(entry))}`;
function checkShown(entry) {
  const code = qrCode(new URL(checkOf2(entry), location.origin).href);
  return [
    el("p", {}, el("a", { href: checkOf2(entry), class: "secondary", target: "_blank", rel: "noopener" }, say("proof.check"))),
    code && el("details", {}, el("summary", {}, say("proof.qr")), el("p", {}, say("proof.qr_hint")), qrPicture(code, say("proof.qr")))
  ];
}
function partShown(entry, token, device, deleted) {
  if (entry.about.deleted) return section(say("proof.title"), { id: "part" }, el("p", { id: "deleted" }, say("proof.deleted")));
  if (!has(entry)) return null;
  const published = Boolean(document.body.dataset.published);
  const found = el("p", { class: "hint", id: "found" }, published ? "" : say("proof.not-published"));
  const ask = published && el("button", { type: "button", class: "secondary", onclick: () => proved(entry, token, found) }, say("proof.get"));
  return section(
    say("proof.title"),
    { id: "part" },
    el("p", {}, say("proof.text")),
    checkShown(entry),
    el("p", { class: "hint" }, say("proof.others")),
    ask && el("p", {}, ask),
    found,
    deletion(entry, device, deleted)
  );
}
function receiptsShown(entries, device, deleted) {
  const mine = entries.filter(has);
  if (!mine.length) return null;
  const rows = mine.map((entry) => el(
    "div",
    { class: "service" },
    el("h3", {}, entry.about.title || entry.collection, " · ", el("time", { datetime: entry.at }, shortDate(entry.at))),
    checkShown(entry),
    el("p", {}, el("button", { type: "button", class: "secondary", onclick: () => saveReceipt(entry) }, say("proof.save"))),
    deletion(entry, device, deleted)
  ));
  return section(say("proof.receipts"), { id: "receipts" }, rows);
}
var saveReceipt = (entry) => save(`${entry.collection}.receipt.json`, `${JSON.stringify(receiptOf(entry), null, 2)}
`);
async function proved(entry, token, found) {
  let text = say("proof.saved");
  try {
    save(`${entry.collection}.proof.json`, await proofAt(token, markHeaders(entry)["Charge-Mark"]));
  } catch (error) {
    const code = error instanceof Problem ? error.code : "unexpected";
    text = said(`proof.${code}`) ? say(`proof.${code}`) : say("problem.unexpected.title");
  }
  found.textContent = text;
  announce(text);
}
function deletion(entry, { outbox, delivery }, deleted) {
  const forget = async () => {
    const after = await outbox.forget(entry.key, { secret: void 0, deleted: true });
    delivery.others.postMessage(entry.key);
    announce(say("proof.deleted"));
    if (after) deleted(after);
  };
  return el(
    "details",
    { class: "delete" },
    el("summary", {}, say("proof.delete")),
    el("p", {}, say("proof.demand")),
    el("button", { type: "button", class: "secondary", onclick: forget }, say("proof.delete_now"))
  );
}

// clients/survey/src/mine.js
var Mine = class {
  /** @param {Device} device */
  constructor(device) {
    this.device = device;
  }
  async start() {
    const { budget, outbox, links } = this.device;
    const [balance, entries, held] = [await budget.balance(), await outbox.entries(), links.all()];
    document.title = say("page.mine");
    const services = el("div", { id: "services" }, el("p", { class: "hint" }, held.length ? say("mine.asking") : say("mine.nolinks")));
    show([
      el("p", { class: "eyebrow" }, say("mine.eyebrow")),
      el("h1", {}, say("page.mine")),
      el("p", { class: "lead" }, say("mine.lead")),
      section(
        say("mine.device"),
        { id: "device" },
        el("p", {}, budget.fresh ? say("mine.fresh") : say("mine.since", { date: date(balance.since) })),
        el("div", { class: "budgets" }, deviceBars(balance)),
        el("p", { class: "hint" }, say("mine.device_hint"))
      ),
      section(say("mine.sent"), { id: "sent" }, entries.length ? answered2(entries) : el("p", {}, say("mine.none"))),
      receiptsShown(entries, this.device, () => this.start()),
      section(say("mine.service"), { id: "service" }, services)
    ]);
    const shown = await Promise.all(held.map((link2) => this.ofService(link2)));
    if (shown.length) services.replaceChildren(...shown);
  }
  changed() {
    return this.start();
  }
  /**
   * What the service has counted for the person of an invitation.
   * @param {import("./links.js").Link} link
   */
  async ofService(link2) {
    const forget = el("button", { type: "button", class: "quiet", onclick: () => this.forget(link2.collection) }, say("mine.forget"));
    const headed = (title) => el("h3", {}, el("a", { href: `/s/${encodeURIComponent(link2.collection)}${location.search}` }, title));
    try {
      const me = await meAt(link2.token);
      const title = link2.title || titleOf(me);
      return el(
        "div",
        { class: "service" },
        headed(title),
        el("div", { class: "budgets" }, me.limits.map((limit) => limitBar(limit))),
        me.charges.length ? charged2(me.charges, title) : el("p", {}, say("mine.uncharged")),
        forget
      );
    } catch (error) {
      const code = error instanceof Problem && said(`problem.${error.code}.title`) ? error.code : "unexpected";
      return el("div", { class: "service" }, headed(link2.title || link2.collection), el("p", {}, say(`problem.${code}.title`)), forget);
    }
  }
  /** @param {string} collection */
  async forget(collection2) {
    this.device.links.forget(collection2);
    await this.start();
    document.getElementById("service")?.scrollIntoView();
  }
};
function answered2(entries) {
  const rows = [...entries].reverse().map((entry) => el(
    "tr",
    {},
    el("th", { scope: "row" }, el("a", { href: `/s/${encodeURIComponent(entry.collection)}${location.search}` }, entry.about.title || entry.collection)),
    el("td", {}, el("time", { datetime: entry.at }, shortDate(entry.at))),
    el("td", { class: "number" }, entry.units === null ? say("cost.notcounted") : price({ epsilon: epsilonOf(entry.units), delta: 0 })),
    el("td", {}, say(`state.${entry.state}.short`))
  ));
  return table("mine.sent", ["mine.survey", "mine.when", "mine.charged", "mine.state"], rows);
}
var titleOf = (me) => me.titles?.[language] || me.title || me.collection;
function charged2(charges, title) {
  const rows = charges.map(({ at: at2, epsilon, delta, kind }) => el(
    "tr",
    {},
    el("td", {}, el("time", { datetime: at2 }, shortDate(at2))),
    el("td", {}, title),
    el("td", { class: "number" }, price({ epsilon, delta: delta ?? 0 })),
    el("td", {}, said(`kind.${kind}`) ? say(`kind.${kind}`) : kind)
  ));
  return table("mine.charges", ["mine.when", "mine.what", "mine.charged", "mine.state"], rows);
}
function table(title, columns, rows) {
  for (const row2 of rows) {
    row2.setAttribute("role", "row");
    [...row2.cells].forEach((cell, at2) => {
      cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
      cell.dataset.label = say(columns[at2]);
    });
  }
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": say(title) },
    el(
      "table",
      { class: "stacked", role: "table" },
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, columns.map((name) => el("th", { scope: "col", role: "columnheader" }, say(name))))),
      el("tbody", { role: "rowgroup" }, rows)
    )
  );
}

// clients/js/src/questionnaire.js
var FORMAT = "ldp-budget questionnaire";
var VERSION4 = 1;
var RULE = "hmac-sha256";
var SEED_BYTES = 32;
var BLOCK2 = 64;
var MOST_QUESTIONS = 64;
var LABEL = utf8("ldp-budget questions 1\n");
function hmac(key, message) {
  const block = new Uint8Array(BLOCK2);
  block.set(key.length > BLOCK2 ? sha256(key) : key);
  const inner = sha256(joined(block.map((byte) => byte ^ 54), message));
  return sha256(joined(block.map((byte) => byte ^ 92), inner));
}
function selected(seed, count, ask) {
  const ranked = Array.from({ length: count }, (_, place2) => ({ place: place2, rank: hmac(seed, Uint8Array.of(place2)) }));
  ranked.sort((one, other) => compared(one.rank, other.rank));
  return ranked.slice(0, ask).map(({ place: place2 }) => place2).sort((one, other) => one - other);
}
function compared(one, other) {
  const at2 = one.findIndex((byte, i) => byte !== other[i]);
  return at2 < 0 ? 0 : one[at2] - other[at2];
}
var Questionnaire = class {
  /**
   * @param {any} definition the public definition of a survey
   * @param {{ digest?: string }} [agreed] the digest that was agreed on, if the definition came from elsewhere
   * @throws {TypeError} if its digest is another one, or this client cannot read it
   */
  constructor(definition, { digest } = {}) {
    checkDigest(definition, digest);
    const { format, version, selection } = definition;
    if (format !== FORMAT || version !== VERSION4 || selection?.rule !== RULE) {
      throw new TypeError(`this client reads surveys of version ${VERSION4} with the rule ${RULE}: got ${format}, ${version}, ${selection?.rule}`);
    }
    this.definition = definition;
    this.questions = definition.questions.map((question) => new Client(question, { within: true }));
    this.key = fromHex(selection.key);
    checkLayout(definition, this.questions);
  }
  /** False: a question of a survey never repeats an earlier draw. */
  get memoises() {
    return false;
  }
  /**
   * The seed of a user whom a ledger charges.
   * @param {string} user
   */
  seedOf(user) {
    return hmac(this.key, joined(LABEL, utf8(canonicalText(user))));
  }
  /**
   * The numbers of the asked questions, ascending.
   * @param {Uint8Array} seed
   */
  asked(seed) {
    if (!(seed instanceof Uint8Array) || seed.length !== SEED_BYTES) throw new TypeError(`the seed must be a Uint8Array of ${SEED_BYTES} bytes`);
    return selected(seed, this.questions.length, this.definition.ask);
  }
  /**
   * Checks answers without drawing.
   * @param {Answers} answers
   * @returns {number[]} the numbers of their questions, ascending
   * @throws {RangeError} for an answer that its question does not have, or another number of answers than `ask`
   */
  check(answers2) {
    const { ask } = this.definition;
    const names = this.questions.map(({ definition }) => definition.name);
    const unknown = Object.keys(answers2).find((name) => !names.includes(name));
    if (unknown !== void 0) throw new RangeError(`the survey has no question ${unknown}`);
    const places = names.flatMap((name, place2) => Object.hasOwn(answers2, name) ? [place2] : []);
    if (places.length !== ask) throw new RangeError(`there must be answers to ${ask} questions: got ${places.length}`);
    for (const place2 of places) this.questions[place2].check(answers2[names[place2]]);
    return places;
  }
  /**
   * One report: send it once, and keep it until it has arrived. Drawing again gives another one.
   * @param {Answers} answers an answer to each asked question, and to no other one
   * @param {{ draws?: () => any }} [given] `draws`: the draws of a question, for tests
   * @returns {Uint8Array}
   * @throws {RangeError} as `check`
   */
  randomize(answers2, { draws } = {}) {
    const report = new Uint8Array(this.definition.report.bytes);
    for (const place2 of this.check(answers2)) {
      const { definition, program, numbered } = this.questions[place2];
      report[place2 >> 3] |= 1 << (place2 & 7);
      const answer2 = numbered.call(this.questions[place2], answers2[definition.name]);
      report.set(program.run(answer2, draws && { draws: draws() }), definition.slot[0]);
    }
    return report;
  }
  /** Undefined: nothing is memoised. @returns {string | undefined} */
  label() {
    return void 0;
  }
  /** Undefined: nothing is memoised. @returns {string | undefined} */
  labelToSend() {
    return void 0;
  }
  /**
   * The questions that a report answers, each with its part of the report.
   * @param {Uint8Array} report
   * @returns {{ place: number, client: Client, part: Uint8Array }[]}
   */
  parts(report) {
    return this.questions.flatMap((client, place2) => {
      const [start2, size] = client.definition.slot;
      return report[place2 >> 3] >> (place2 & 7) & 1 ? [{ place: place2, client, part: report.slice(start2, start2 + size) }] : [];
    });
  }
  /**
   * For each answered question the likelihoods of its part of a report, as `Client.explain` returns them.
   * @param {Uint8Array} report
   */
  explain(report) {
    return this.parts(report).map(({ client, part }) => ({ question: client.definition.name, likelihoods: client.explain(part) }));
  }
};
function checkLayout({ ask, report, questions }, clients) {
  const names = new Set(clients.map(({ definition }) => definition.name));
  const count = clients.length;
  const sound = count >= 1 && count <= MOST_QUESTIONS && names.size === count && Number.isSafeInteger(ask) && ask >= 1 && ask <= count;
  let at2 = Math.ceil(count / 8);
  const follows = clients.every(({ memoises, program }, place2) => {
    const [start2, size] = questions[place2].slot;
    const expected = at2;
    at2 += program.size;
    return !memoises && start2 === expected && size === program.size;
  });
  if (!sound || !follows || report.mask !== Math.ceil(count / 8) || report.bytes !== at2) {
    throw new TypeError("the questions of the survey and the layout of its report do not agree");
  }
}

// clients/survey/src/questions.js
var FEW = 12;
var isMissing = (name, names) => name === "no answer" && name === names[names.length - 1];
var MOST_TEXT = 1e3;
var MOST_SHORT = 3;
var MOST_SETS = 64;
function wordsOf({ name, title, question = "", purpose, answers: answers2, kind, languages = {} }) {
  const tags = Object.keys(languages);
  const found = tags.find((tag2) => tag2.toLowerCase() === language) ?? tags.find((tag2) => tag2.split("-")[0].toLowerCase() === language);
  const translated = found ? languages[found] : {};
  const own = (kind === "yes-no" || kind === "grid") && `${answers2}` === "yes,no" ? [say("answer.yes"), say("answer.no")] : answers2;
  return {
    title: translated.title || title || name,
    question: translated.question || question,
    purpose: translated.purpose || purpose,
    answers: translated.answers || own || void 0
  };
}
function itemText({ text, languages }) {
  const tags = Object.keys(languages);
  const found = tags.find((tag2) => tag2.toLowerCase() === language) ?? tags.find((tag2) => tag2.split("-")[0].toLowerCase() === language);
  return found && languages[found] || text;
}
var Question = class {
  /**
   * @param {Client} client
   * @param {{ name: string, heading: string, place?: { number: number, count: number } }} shown `name` of its control;
   *   `heading` of the page; `place` among several
   */
  constructor(client, { name, heading, place: place2 }) {
    this.client = client;
    this.definition = client.definition;
    this.words = wordsOf(this.definition);
    this.name = name;
    this.place = place2;
    const { question, title } = this.words;
    this.text = question || (this.items && title === this.definition.name ? "" : title);
    this.hidden = place2 || question && question !== heading ? null : "hidden";
  }
  /** @param {string} part */
  id(part) {
    return this.name.replace("answer", part);
  }
  /** The text of the question, with its place among several. */
  get legend() {
    return [this.place && this.place.count > 1 ? el("span", { class: "place" }, say("ask.place", this.place), " ") : null, this.text];
  }
  /** The items of a grid, each with the same answers. @returns {any[] | undefined} */
  get items() {
    return this.definition.items;
  }
  /** The question, if it cannot be answered. */
  listed() {
    if (this.items) return [el("p", { class: "asked" }, this.text), el("ul", {}, this.items.map((item) => el("li", {}, itemText(item))))];
    const { answers: answers2 } = this.words;
    const list = answers2 && answers2.length <= FEW ? el("ul", {}, answers2.map((answer2) => el("li", {}, answer2))) : null;
    const text = this.hidden ? null : el("p", { class: "asked" }, this.text);
    return text || list ? [text, list] : null;
  }
  /** The most ticks, where an answer is a set of options. @returns {number | undefined} */
  get ticks() {
    return this.definition.at_most;
  }
  /** What each answer says, by its number; undefined where answers have no names or are too many. @returns {string[] | undefined} */
  get each() {
    const { answers: answers2 } = this.words;
    const { at_most: most, input } = this.definition;
    if (this.items && answers2) {
      const { items } = this;
      if (BigInt(input.count) > BigInt(MOST_SETS)) return void 0;
      const chosen = (number, row2) => answers2[Math.floor(number / answers2.length ** row2) % answers2.length];
      return Array.from({ length: Number(input.count) }, (_, number) => items.map((item, row2) => `${itemText(item)}: ${chosen(number, row2)}`).join(", "));
    }
    if (!answers2 || most === void 0) return answers2;
    if (BigInt(input.count) > BigInt(MOST_SETS)) return void 0;
    return Array.from({ length: Number(input.count) }, (_, number) => ticksOf(BigInt(number), this.definition).map((place2) => answers2[place2]).join(", ") || say("ask.none"));
  }
  /** A box for each option, and one for none of them, so that an empty form is no answer. */
  boxes() {
    const { answers: names } = this.definition;
    const answers2 = (
      /** @type {string[]} */
      this.words.answers
    );
    const error = el("p", { class: "error", id: this.id("error") });
    const most = (
      /** @type {number} */
      this.ticks
    );
    const hint = el("p", { class: "hint", id: this.id("range") }, most < names.length ? say("ask.ticks", { most }) : say("ask.ticks_any"));
    const box = (text, own) => el("label", { class: "choice" }, el("input", { type: "checkbox", name: this.name, "aria-describedby": `${hint.id} ${error.id}`, ...own }), el("span", {}, text));
    const none = box(say("ask.none"), { value: "", "data-alone": true });
    const onchange = ({ target }) => {
      this.say("");
      const excludes = (each) => each !== target && ("alone" in each.dataset || "alone" in target.dataset);
      if (target.checked) for (const each of this.all.filter(excludes)) each.checked = false;
    };
    const options = names.map((name, i) => box(answers2[i], { value: name, ...isMissing(name, names) ? { "data-alone": true } : {} }));
    const last = options.length - (isMissing(names[names.length - 1], names) ? 1 : 0);
    return el("fieldset", { class: "question", onchange }, el("legend", { class: this.hidden }, this.legend), hint, error, options.slice(0, last), none, options.slice(last));
  }
  /** A row of answers for each item of a grid. */
  grid() {
    const { answers: names } = this.definition;
    const answers2 = (
      /** @type {string[]} */
      this.words.answers
    );
    const error = el("p", { class: "error", id: this.id("error") });
    const short = answers2.every((answer2) => answer2.length <= MOST_SHORT);
    const onchange = () => this.say("");
    const rows = (
      /** @type {any[]} */
      this.items.map((item, row2) => {
        const choices = names.map((name, i) => el("label", { class: "choice" }, el("input", { type: "radio", name: `${this.name}-${row2}`, value: name, required: true, "aria-describedby": error.id }), el("span", {}, answers2[i])));
        return el("fieldset", { class: "item" }, el("legend", {}, itemText(item)), el("div", { class: short ? "short" : "long" }, choices));
      })
    );
    return el("fieldset", { class: "question grid", onchange }, el("legend", {}, this.legend), error, rows);
  }
  /** The boxes of the form. @returns {any[]} */
  get all() {
    return [...this.element.querySelectorAll("input[type=checkbox]")];
  }
  /** The question with its control and its error. */
  control() {
    if (this.ticks !== void 0) return this.element = this.boxes();
    if (this.items) return this.element = this.grid();
    const { answers: names } = this.definition;
    const { answers: answers2 } = this.words;
    const [legend, error] = [{ class: this.hidden }, el("p", { class: "error", id: this.id("error") })];
    const onchange = () => this.say("");
    if (names && answers2 && names.length <= FEW) {
      const choices = names.map((name, i) => el("label", { class: "choice" }, el("input", { type: "radio", name: this.name, value: name, required: true, "aria-describedby": error.id }), el("span", {}, answers2[i])));
      this.element = el("fieldset", { class: "question", onchange }, el("legend", legend, this.legend), error, choices);
    } else {
      this.element = el("div", { class: "question", onchange }, el("label", { for: this.name, ...legend }, this.legend), error, this.field());
    }
    return this.element;
  }
  /** The control of a question without choices. */
  field() {
    const { input, answers: names } = this.definition;
    const { answers: answers2 } = this.words;
    const given = { id: this.name, name: this.name, required: true, "aria-describedby": this.id("error") };
    if (names && answers2) {
      const options = names.map((name, i) => el("option", { value: name }, answers2[i]));
      return el("select", given, el("option", { value: "" }, say("ask.choose")), options);
    }
    if (input.text || input.kind === "word") return el("input", { ...given, type: "text", maxlength: input.length ?? MOST_TEXT });
    const [least, most] = this.ends;
    const step2 = input.kind === "number" ? "any" : 1;
    const hint = el("p", { class: "hint", id: this.id("range") }, say("ask.range", this.range));
    return [hint, el("input", { ...given, type: "number", min: least, max: most, step: step2, inputmode: "decimal", "aria-describedby": `${hint.id} ${this.id("error")}` })];
  }
  /** The least and the most number that a question allows. */
  get ends() {
    const { input } = this.definition;
    return input.kind === "number" ? [input.lower, input.upper] : [0, Number(input.count) - 1];
  }
  /** The same for sentences, with the unit. */
  get range() {
    const [least, most] = this.ends.map(plain), { unit } = this.definition;
    return { least, most: unit ? `${most} ${unit}` : most };
  }
  /**
   * Why the form has no answer to the question, and what it allows.
   * @param {any} form
   */
  missing(form) {
    const { input, answers: answers2 } = this.definition;
    if (this.ticks !== void 0) {
      const ticked = this.all.filter((each) => each.checked).length;
      return ticked > this.ticks ? say("ask.too_many", { ticked, most: this.ticks }) : say("ask.missing_ticks");
    }
    if (this.items) return say("ask.missing_items", { count: this.items.filter((_, row2) => !form.elements.namedItem(`${this.name}-${row2}`).value).length });
    if (answers2) return say("ask.missing");
    if (input.text || input.kind === "word") return say("ask.missing_text", { most: input.length ?? MOST_TEXT });
    const given = form.elements.namedItem(this.name).value, [least, most] = this.ends.map(Number);
    if (given !== "" && (Number(given) < least || Number(given) > most)) return say("ask.outside", { value: plain(given), ...this.range });
    return input.kind === "number" ? say("ask.missing_number", this.range) : say("ask.missing_whole", this.range);
  }
  /**
   * The answer in the form, or undefined without one that the question allows.
   * @param {any} form
   * @returns {string | number | string[] | Record<string, string> | undefined}
   */
  answer(form) {
    if (this.ticks !== void 0) {
      const ticked = this.all.filter((each) => each.checked);
      const names = ticked.map((each) => each.value).filter(Boolean);
      return ticked.length && names.length <= this.ticks ? names : void 0;
    }
    if (this.items) {
      const chosen = this.items.map(({ name }, row2) => [name, form.elements.namedItem(`${this.name}-${row2}`).value]);
      return chosen.every(([, value]) => value) ? Object.fromEntries(chosen) : void 0;
    }
    const { input, answers: answers2 } = this.definition;
    const given = form.elements.namedItem(this.name).value;
    if (given === "") return void 0;
    const answer2 = answers2 || input.text || input.kind === "word" ? given : Number(given);
    try {
      this.client.check(answer2);
      return answer2;
    } catch (error) {
      if (error instanceof RangeError) return void 0;
      throw error;
    }
  }
  /** Shows an error at the question; an empty text removes it. @param {string} text */
  say(text) {
    this.element.querySelector(".error").textContent = text;
    for (const control of this.element.querySelectorAll("input, select")) {
      if (text) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    }
  }
  /** Focuses the control; of a grid the first item without an answer. */
  focus() {
    const open = [...this.element.querySelectorAll(".item")].find((item) => !item.querySelector(":checked"));
    (open ?? this.element).querySelector("input, select").focus();
  }
};

// clients/survey/src/report.js
var MOST_SHOWN = 64;
function partsOf2(definition, report) {
  let at2 = 0;
  return definition.report.parts.map(([kind, name, ...rest]) => {
    const [size, count] = kind === "uint" ? rest.map(Number) : kind === "packed" ? [Math.ceil(Number(rest[0]) / 8), 1] : [8, 1];
    const own = report.subarray(at2, at2 += size * count);
    if (kind === "packed") return { name, values: Array.from({ length: Number(rest[0]) }, (_, i) => String(own[i >> 3] >> (i & 7) & 1)) };
    if (kind === "float64") return { name, values: [String(new DataView(own.buffer, own.byteOffset, 8).getFloat64(0, true))] };
    return { name, values: Array.from({ length: count }, (_, i) => String(fromLittleEndian(own.subarray(i * size, (i + 1) * size)))) };
  });
}
var hexOf = (report) => toHex(report).replace(/(..)(?=.)/g, "$1 ");
function bytesShown(report, answered3, label) {
  const rows = answered3.flatMap((each) => {
    const { question: { definition, text }, part, one } = each;
    return partsOf2(definition, part).map(({ name, values }) => valuesShown(one ? name : text, values, each));
  });
  return section(
    say("sent.bytes_title"),
    { id: "bytes" },
    el("p", {}, say("sent.bytes", { size: bytes(report.length) })),
    el("pre", { tabindex: 0, "aria-label": say("sent.hex") }, el("code", { id: "hex" }, hexOf(report))),
    el("table", {}, el("caption", { class: "hidden" }, say("sent.parts")), el("tbody", {}, rows)),
    answered3.some(({ one }) => !one) ? el("p", { class: "hint" }, say("sent.mask")) : null,
    el("p", { class: "hint" }, label ? say("sent.label", { label }) : say("sent.nothing_else"))
  );
}
function valuesShown(name, values, answered3) {
  const answers2 = answered3.question.each;
  const each = answers2 && answered3.question.ticks === void 0 && values.length === answers2.length && values.length > 1;
  const shown = values.slice(0, MOST_SHOWN).map((value, i) => each ? `${answers2[i]}: ${value}` : value);
  if (values.length > MOST_SHOWN) shown.push(say("sent.more", { count: values.length - MOST_SHOWN }));
  const [best, ...others] = values.length === 1 && answers2 ? likeliestOf(answered3) : [];
  if (best !== void 0 && !others.length && answers2?.[Number(values[0])] === best) shown[0] = `${values[0]}: ${best}`;
  return el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, each ? el("ul", {}, shown.map((text) => el("li", {}, text))) : shown.join(" ")));
}
function likelihoodsShown(answered3) {
  const explained = answered3.map(({ question: { client }, part }) => client.explain(part)).map((found) => found && found.length <= MOST_SHOWN ? found : void 0);
  const listed2 = explained.filter((found) => found !== void 0);
  const possible = listed2.every((found) => found.every(({ likelihood }) => likelihood > 0));
  return section(
    say("likely.title"),
    { id: "likely" },
    listed2.length ? el("p", {}, possible ? say("likely.text") : say("likely.impossible")) : null,
    answered3.map(({ question: { each, text }, one }, i) => [
      one ? null : el("h3", {}, text),
      explained[i] ? likelihoodTable(explained[i], each, one ? say("likely.title") : text) : el("p", {}, say("likely.many"))
    ])
  );
}
function likelihoodTable(found, answers2, title) {
  const most = Math.max(...found.map((each) => each.likelihood));
  const rows = found.map(({ answer: answer2, likelihood }, i) => {
    const bar = el("span", { class: "likely-bar" });
    bar.style.width = `${most ? 100 * likelihood / most : 0}%`;
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, answers2 ? answers2[i] : answer2),
      el("td", { class: "number" }, share(likelihood)),
      el("td", { class: "picture", "aria-hidden": "true" }, bar)
    );
  });
  return el(
    "table",
    { class: "likely" },
    el("caption", { class: "hidden" }, title),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, say("likely.answer")), el("th", { scope: "col", class: "number" }, say("likely.chance")), el("td", { "aria-hidden": "true" }))),
    el("tbody", {}, rows)
  );
}
function likeliestOf({ question: { client, each: answers2 }, part }) {
  const found = answers2 && client.explain(part);
  if (!answers2 || !found || found.length > MOST_SHOWN) return [];
  const most = Math.max(...found.map((each) => each.likelihood));
  return answers2.filter((_, i) => found[i].likelihood >= most * (1 - 1e-9));
}
function likeliest(answered3) {
  return answered3.flatMap((each) => {
    const { question: { each: answers2, text }, one } = each;
    const names = likeliestOf(each);
    if (!answers2 || !names.length) return [];
    const name = one ? say("receipt.likeliest") : [text, el("span", { class: "under" }, say("receipt.likeliest"))];
    return [
      /** @type {[any, any]} */
      [name, names.length < answers2.length ? names.join(", ") : say("receipt.every")]
    ];
  });
}

// clients/survey/src/survey.js
var Survey = class {
  /**
   * @param {Device} device
   * @param {string} collection
   * @param {Link | undefined} link that was in the address bar
   */
  constructor(device, collection2, link2) {
    this.device = device;
    this.collection = collection2;
    this.link = link2;
    this.shown = void 0;
    addEventListener("hashchange", () => this.invited());
  }
  /** Handles another link that was opened in this page. */
  async invited() {
    const link2 = taken(this.collection);
    if (!link2) return;
    this.link = link2;
    await this.start();
  }
  async start() {
    const { links } = this.device;
    if (this.link?.cut) return this.failed(new Problem("cut"));
    this.link = this.link ? links.keep(this.link) : links.find(this.collection);
    try {
      this.client = await this.agreed();
      this.shown = void 0;
      const entry = this.link?.key && await this.device.outbox.entry(this.link.key);
      if (entry) this.changed(entry);
      else await this.ask();
    } catch (error) {
      this.failed(error);
    }
  }
  /** The client of the agreed definition. Another definition is refused. */
  async agreed() {
    const definition = await definitionOf(this.collection);
    const { agreed = "", seen = definition.digest } = this.link ?? {};
    let client;
    try {
      client = definition.format === FORMAT ? new Questionnaire(definition, { digest: seen }) : new Client(definition, { digest: seen });
    } catch (error) {
      throw new Problem("changed", { error });
    }
    if (definition.name !== this.collection || !definition.digest.startsWith(agreed)) throw new Problem("changed");
    if (this.link) this.link = this.device.links.keep({ ...this.link, seen: definition.digest, title: definition.title });
    return client;
  }
  get definition() {
    return (
      /** @type {Client | Questionnaire} */
      this.client.definition
    );
  }
  /** The texts of the collection, in the language of the page. */
  get words() {
    return wordsOf(this.definition);
  }
  /** The client as that of a survey, if it is one. */
  get survey() {
    return this.client instanceof Questionnaire ? this.client : void 0;
  }
  /**
   * The questions with these numbers, or the one of a collection.
   * @param {number[]} [places] all without
   */
  questions(places) {
    const { survey, words: { title: heading } } = this;
    if (!survey) return [new Question(
      /** @type {Client} */
      this.client,
      { name: "answer", heading }
    )];
    const shown = places ?? survey.questions.map((_, place2) => place2);
    return shown.map((place2, i) => new Question(survey.questions[place2], { name: `answer-${place2}`, heading, place: { number: i + 1, count: shown.length } }));
  }
  // -- before ------------------------------------------------------------------------------------------------------
  /** Refuses a program that may give away more than its definition states. */
  confirm() {
    if (!promises(this.definition.guarantee)) return;
    try {
      confirmOnce(this.definition);
    } catch (error) {
      throw error instanceof Unconfirmed ? new Problem("unconfirmed", { error }) : error;
    }
  }
  async ask() {
    this.confirm();
    const head = this.head();
    if (!this.link) {
      this.view([...head, this.notice("nolink"), this.listed(), this.cost(), this.how()]);
      return;
    }
    const me = await meAt(this.link.token);
    if (me.collection !== this.collection) throw new Problem("forbidden");
    if (me.digest !== this.definition.digest) throw new Problem("changed");
    this.link = this.device.links.keep({ ...this.link, key: me.key });
    const entry = await this.device.outbox.entry(me.key);
    if (entry) this.changed(entry);
    else this.view([...head, await this.offered(me), this.how()]);
  }
  /** The title of the survey, who asks, and for what. */
  head() {
    const { title, purpose } = this.words;
    const { organisation, contact } = this.definition;
    return [
      el("p", { class: "eyebrow" }, organisation ? say("ask.by", { organisation }) : say("ask.eyebrow")),
      el("h1", {}, title),
      purpose && el("p", { class: "lead" }, purpose),
      contact && el("p", { class: "contact" }, say("ask.contact"), " ", contactShown(contact))
    ];
  }
  /** The questions with their button; or, without enough budget, the reason. @param {any} me */
  async offered(me) {
    const { guarantee } = this.definition;
    const here = priceHere(guarantee);
    const balance = await this.device.budget.balance();
    if (!promises(guarantee)) return [this.notice("nopromise"), this.listed(me), this.cost()];
    if (me.turn && !me.turn.now) return [this.outOfTurn(me.turn), this.listed(me), this.cost(me, balance)];
    const fresh = !this.client?.memoises;
    const binding = me.limits.filter((limit) => me.quote.binding.includes(limit.period));
    if (me.erased || fresh && me.quote.binding.length) {
      const limits = el("ul", {}, binding.map((each) => el("li", {}, refusedBy(each))));
      return [this.notice("noservice", limits), this.listed(me), this.cost(me, balance)];
    }
    if (fresh && here && ["lifetime", "day"].some((period) => lacks(
      /** @type {any} */
      balance[period],
      here
    ))) {
      return [this.notice("nodevice"), this.listed(me), this.cost(me, balance)];
    }
    return this.form(me, balance, here);
  }
  /**
   * @param {any} me
   * @param {any} balance
   * @param {string | undefined} here
   */
  form(me, balance, here) {
    const questions = this.questions(this.selected(me));
    const send2 = el("button", { type: "submit", class: "primary" }, say("ask.send"));
    const form = el(
      "form",
      { novalidate: true, autocomplete: "off", onsubmit: (event) => this.submitted(event, form, send2, questions) },
      this.selection(),
      questions.map((question) => question.control()),
      this.cost(me, balance, here),
      el(
        "div",
        { class: "actions" },
        el("p", { class: "before" }, questions.length > 1 ? say("ask.before_several") : say("ask.before")),
        el("p", { class: "error", id: "problem" })
      ),
      el(
        "div",
        { class: "submit" },
        el("p", { class: "hint" }, say("ask.private")),
        send2,
        el("button", { type: "button", class: "quiet", onclick: () => this.declined() }, say("ask.decline"))
      )
    );
    return form;
  }
  /** How many questions of the survey one person is asked, and who selects them. */
  selection() {
    const { survey } = this;
    if (!survey || survey.questions.length === survey.definition.ask) return null;
    const { ask } = survey.definition;
    return el("p", { class: "hint", id: "selection" }, say(ask === 1 ? "ask.selection_one" : "ask.selection", { ask, count: survey.questions.length }));
  }
  /** The numbers of the questions that are selected for this person, of a survey. @param {any} [me] */
  selected(me) {
    return me && this.survey?.asked(fromHex(me.seed));
  }
  /** The questions, if they cannot be answered: all of them without an invitation. @param {any} [me] */
  listed(me) {
    return [this.selection(), this.questions(this.selected(me)).map((question) => question.listed())];
  }
  /**
   * The cost of a report, and its meaning.
   * @param {any} [me]
   * @param {any} [balance]
   * @param {string} [here]
   */
  cost(me, balance, here) {
    const { guarantee } = this.definition;
    const asked = here !== void 0;
    const cost = asked && !this.client?.memoises ? priceThere(guarantee, me?.quote) : null;
    const limits = me?.limits ?? [];
    const bars = [...limits.map((limit) => limitBar(limit, cost, true)), ...balance ? deviceBars(balance, here, true) : []];
    const rows = balance ? figures(limits, balance, cost, here) : [];
    return section(
      say("cost.title"),
      { id: "cost" },
      el("div", { class: "meaning" }, meaning(guarantee, this.survey && this.definition.ask > 1).map((sentence) => el("p", {}, sentence))),
      bars.length ? el("div", { class: "budgets" }, el("h3", {}, asked ? say("cost.budget") : say("cost.balance")), bars) : null,
      me && cost === null && asked ? el("p", { class: "hint" }, say("cost.repeated")) : null,
      promises(guarantee) && Number(guarantee.delta) > 0 ? el("p", { class: "hint" }, say("cost.delta")) : null,
      balance && this.device.budget.fresh ? el("p", { class: "hint" }, say("cost.fresh")) : null,
      el(
        "details",
        { class: "figures" },
        el("summary", {}, say("cost.figures")),
        el("p", { class: "price" }, price(guarantee)),
        promises(guarantee) ? el("p", { class: "hint" }, say("cost.epsilon")) : null,
        rows.length ? facts(rows) : null
      )
    );
  }
  how() {
    const { digest, mechanism, guarantee } = this.definition;
    return [
      el(
        "details",
        { class: "how" },
        el("summary", {}, say("how.title")),
        el("ol", {}, ["draw", "keep", "send", "seen"].map((step2) => el("li", {}, say(`how.${step2}`)))),
        facts([
          [say("how.mechanism"), mechanism],
          // What is not promised is not confirmed either.
          ...promises(guarantee) ? [row("how.epsilon", guarantee.epsilon), row("how.delta", guarantee.delta)] : [],
          [say("how.digest"), el("code", { class: "digest" }, digest)]
        ]),
        el("p", { class: "hint" }, say("how.compare"))
      )
    ];
  }
  /** @param {Event} event @param {any} form @param {any} button @param {Question[]} questions */
  async submitted(event, form, button, questions) {
    event.preventDefault();
    if (this.busy) return;
    const problem = form.querySelector("#problem");
    const answers2 = questions.map((question) => question.answer(form));
    questions.forEach((question, i) => question.say(answers2[i] === void 0 ? question.missing(form) : ""));
    const missing = questions[answers2.indexOf(void 0)];
    if (missing) {
      missing.focus();
      return;
    }
    this.busy = true;
    problem.textContent = "";
    button.setAttribute("aria-disabled", "true");
    try {
      const named = questions.map(({ definition }, i) => [definition.name, answers2[i]]);
      await this.draw(this.survey ? Object.fromEntries(named) : answers2[0]);
    } catch (error) {
      if (error instanceof OverBudget) this.view([el("h1", {}, this.words.title), this.notice("nodevice")], true);
      else this.failed(error);
    } finally {
      this.busy = false;
      button.removeAttribute("aria-disabled");
    }
  }
  /** Charges, draws, stores and sends a report. This cannot be undone. @param {any} answer */
  async draw(answer2) {
    const { key, token, log } = (
      /** @type {Required<Link>} */
      this.link
    );
    const { guarantee } = this.definition;
    const { title, question } = this.words;
    const about = { token, log, title, question, epsilon: guarantee.epsilon, delta: guarantee.delta, secret: drawnSecret() };
    const entry = await this.device.outbox.draw(
      key,
      /** @type {Client | Questionnaire} */
      this.client,
      answer2,
      { about }
    );
    this.changed(entry, void 0, true);
    await this.device.delivery.now();
  }
  async declined() {
    this.device.links.forget(this.collection);
    this.link = void 0;
    this.view([el("h1", {}, say("declined.title")), el("p", { class: "lead" }, say("declined.text"))], true);
    announce(say("declined.title"));
  }
  // -- after -------------------------------------------------------------------------------------------------------
  /**
   * Shows the state of a report, if it is the one of this page.
   * @param {Entry} entry
   * @param {string} [why] the reason it still waits
   * @param {boolean} [focus]
   */
  changed(entry, why, focus = false) {
    if (!this.client || entry.key !== this.link?.key) return;
    const { state, report } = entry;
    const title = say(`state.${state}.title`);
    const text = state === "waiting" && why && said(`waiting.${why}`) ? say(`waiting.${why}`) : say(`state.${state}.text`);
    const shown = `${entry.key} ${state} ${why} ${entry.about.deleted}`;
    if (this.shown === shown) return;
    const asked = focus || this.shown !== void 0;
    this.shown = shown;
    announce(`${title} ${text}`);
    this.view([
      mark(state === "arrived" || state === "waiting" ? state : "stopped"),
      el("p", { class: "eyebrow" }, this.words.title),
      el("h1", { "data-state": state }, title),
      el("p", { class: "lead" }, text),
      state === "waiting" && el("p", {}, el("button", { type: "button", class: "secondary", onclick: () => this.device.delivery.now() }, say("waiting.now"))),
      state === "refused" && this.refusal(entry),
      state === "arrived" && this.receipt(entry),
      // Only after it arrived: a person who sees a waiting report could stop it, and so reveal something.
      state === "arrived" && report && bytesShown(report, this.answered(report), entry.label),
      state === "arrived" && report && likelihoodsShown(this.answered(report)),
      state === "arrived" && this.export(entry),
      state === "arrived" && partShown(entry, this.link.token, this.device, (kept2) => this.changed(kept2, void 0, true)),
      el("p", { class: "contact" }, el("a", { href: `/me${location.search}` }, say("nav.mine")))
    ], asked && focus);
  }
  /**
   * The questions that a report answers, each with its part of the report.
   * @param {Uint8Array} report
   * @returns {import("./report.js").Answered[]}
   */
  answered(report) {
    if (!this.survey) return [{ question: this.questions()[0], part: report, one: true }];
    const parts2 = this.survey.parts(report);
    const questions = this.questions(parts2.map(({ place: place2 }) => place2));
    return questions.map((question, i) => ({ question, part: parts2[i].part, one: false }));
  }
  /** @param {any} entry */
  refusal(entry) {
    return section(say("refused.title"), { id: "refused" }, el("ul", {}, entry.limits.map((limit) => el("li", {}, refusedBy(limit)))), el("p", {}, say("refused.dropped")));
  }
  /** @param {any} entry */
  receipt(entry) {
    const { receipt } = entry.receipt;
    return section(
      say("receipt.title"),
      { id: "receipt" },
      facts([
        [say("receipt.number"), el("code", { id: "number" }, receipt)],
        ...entry.report ? likeliest(this.answered(entry.report)) : [],
        [say("receipt.drawn"), el("time", { datetime: entry.at }, date(entry.at))],
        [say("receipt.charged"), price({ epsilon: entry.receipt.cost.epsilon, delta: entry.receipt.cost.delta ?? 0 })],
        [say("receipt.device"), entry.units === null ? say("cost.notcounted") : price({ epsilon: epsilonOf(entry.units), delta: 0 })]
      ]),
      el("div", { class: "budgets" }, entry.receipt.limits.map((limit) => limitBar(limit)))
    );
  }
  /** Saves what this page knows about the report to a file. The page no longer has the answer. @param {any} entry */
  export(entry) {
    if (!entry.report) return null;
    const { definition } = this;
    const saved = () => {
      const file = {
        ...{ format: "ldp-budget receipt", version: 1, collection: definition.name, title: this.words.title, question: this.words.question },
        ...{ definition: definition.digest, guarantee: { ...definition.guarantee, words: void 0 }, drawn_at: entry.at, key: entry.key },
        ...{ report: toHex(entry.report), label: entry.label, likelihoods: this.client?.explain(entry.report), receipt: entry.receipt },
        ...receiptOf(entry)
      };
      save(`${definition.name}.receipt.json`, `${JSON.stringify(file, null, 2)}
`);
    };
    return el("p", {}, el("button", { type: "button", class: "secondary", onclick: saved }, say("receipt.export")));
  }
  // -- what is wrong -----------------------------------------------------------------------------------------------
  /** @param {string} kind @param {any[]} more */
  notice(kind, ...more) {
    return el("div", { class: "notice", "data-notice": kind }, el("h2", {}, say(`notice.${kind}.title`)), el("p", {}, say(`notice.${kind}.text`)), more);
  }
  /** @param {{ first: string, last: string }} turn */
  outOfTurn(turn2) {
    const days = { first: day(turn2.first), last: day(turn2.last) };
    return el("div", { class: "notice", "data-notice": "turn" }, el("h2", {}, say("notice.turn.title")), el("p", {}, say("notice.turn.text", days)));
  }
  /** @param {any} error */
  failed(error) {
    const code = error instanceof Problem ? error.code : "unexpected";
    const kind = said(`problem.${code}.title`) ? code : "unexpected";
    if (kind === "unexpected") console.error(error);
    announce(say(`problem.${kind}.title`));
    this.view([
      mark("stopped"),
      el("h1", { "data-problem": code }, say(`problem.${kind}.title`)),
      el("p", { class: "lead" }, say(`problem.${kind}.text`)),
      ["network", "unexpected"].includes(kind) && el("p", {}, el("button", { type: "button", class: "secondary", onclick: () => this.start() }, say("problem.again")))
    ], false);
  }
  /** @param {any[]} children @param {boolean} [focus] */
  view(children, focus = false) {
    document.title = this.client ? `${this.words.title} · ${say("page.survey")}` : say("page.survey");
    show(children, { focus });
  }
};
var row = (key, value) => [say(key), value];
var lacks = (line, cost) => line !== void 0 && unitsOf(line.left, false) < unitsOf(cost, true);

// clients/survey/src/main.js
var place = /^\/s\/([^/]+)$/.exec(location.pathname);
var collection = place && decodeURIComponent(place[1]);
var link = collection ? taken(collection) : void 0;
var page;
async function start() {
  const { lifetime = "", day: day2 } = document.body.dataset;
  const budget = await DeviceBudget.open({ lifetime, day: day2 || void 0 });
  const outbox = new Outbox(budget);
  const delivery = new Delivery(outbox, (entry, why) => page?.changed(entry, why));
  const device = { budget, outbox, links: new Links(), delivery };
  page = collection ? new Survey(device, collection, link) : new Mine(device);
  await page.start();
  await delivery.now();
}
try {
  await start();
} catch (error) {
  console.error(error);
  show([el("h1", { "data-problem": "storage" }, say("problem.storage.title")), el("p", { class: "lead" }, say("problem.storage.text"))]);
}
