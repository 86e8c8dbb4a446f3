// QR codes (ISO/IEC 18004) of texts: byte mode, the lowest error correction, the smallest size.

/** For each size from 1 to 40: the codewords for error correction in a block, and the number of blocks. */
const CHECKS = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26, 28, ...Array(14).fill(30)];
const BLOCKS = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19, 20, 21, 22, 24, 25];
const LOW = 0b01;

/** @type {((x: number, y: number) => boolean)[]} */
const MASKS = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

/** Centers of the alignment patterns along a side. @param {number} size from 1 to 40 */
function centers(size) {
  if (size === 1) return [];
  const count = Math.floor(size / 7) + 2, last = 4 * size + 10;
  const step = size === 32 ? 26 : 2 * Math.ceil((last - 6) / (2 * (count - 1)));
  return [6, ...Array.from({ length: count - 1 }, (_, i) => last - step * (count - 2 - i))];
}

/** The codewords that a size holds, with those for error correction. @param {number} size */
function capacity(size) {
  const side = 4 * size + 17, along = centers(size).length;
  // Less three finders with their borders, two timing lines, the format, and the alignment patterns beside the timing lines.
  const aligned = along && 25 * (along * along - 3) - 10 * (along - 2);
  return Math.floor((side * side - 3 * 64 - 2 * (side - 16) - 31 - aligned - (size > 6 ? 36 : 0)) / 8);
}

/** The remainder of a number of bits by a polynomial over GF(2). @param {number} value @param {number} divisor @param {number} degree */
function remainder(value, divisor, degree) {
  let rest = value << degree;
  for (let bit = 31 - Math.clz32(rest); bit >= degree; bit = 31 - Math.clz32(rest)) rest ^= divisor << (bit - degree);
  return rest;
}

/** A product in GF(256) of the polynomial 0x11d. @param {number} a @param {number} b */
function times(a, b) {
  let product = 0;
  for (let bit = 7; bit >= 0; bit--) product = (product << 1) ^ (product & 128 ? 0x11d : 0) ^ ((b >> bit) & 1 ? a : 0);
  return product;
}

/** The error correction of a block (Reed and Solomon). @param {number[]} data @param {number} count */
function checkOf(data, count) {
  let generator = [1];
  for (let i = 0, root = 1; i < count; i++, root = times(root, 2)) {
    generator = [...generator, 0].map((each, place) => each ^ (place ? times(generator[place - 1], root) : 0));
  }
  const rest = Array(count).fill(0);
  for (const each of data) {
    const factor = each ^ rest.shift();
    rest.push(0);
    for (let i = 0; i < count; i++) rest[i] ^= times(generator[i + 1], factor);
  }
  return rest;
}

/** @param {Uint8Array} content @param {number} size */
function codewords(content, size) {
  const total = capacity(size), blocks = BLOCKS[size - 1], checks = CHECKS[size - 1];
  const room = total - blocks * checks, bits = [0, 1, 0, 0];
  const put = (/** @type {number} */ value, /** @type {number} */ count) => { for (let bit = count - 1; bit >= 0; bit--) bits.push((value >> bit) & 1); };
  put(content.length, size < 10 ? 8 : 16);
  content.forEach((byte) => put(byte, 8));
  put(0, Math.min(4, 8 * room - bits.length));
  put(0, (8 - (bits.length % 8)) % 8);
  for (let pad = 0; bits.length < 8 * room; pad ^= 1) put(pad ? 0x11 : 0xec, 8);
  const data = Array.from({ length: room }, (_, i) => parseInt(bits.slice(8 * i, 8 * i + 8).join(""), 2));
  const short = Math.floor(room / blocks), long = room % blocks, parts = [];
  for (let i = 0, at = 0; i < blocks; i++) parts.push(data.slice(at, (at += short + (i >= blocks - long ? 1 : 0))));
  const interleaved = (/** @type {number[][]} */ rows) =>
    Array.from({ length: Math.max(...rows.map((row) => row.length)) }, (_, i) => rows.flatMap((row) => (i < row.length ? [row[i]] : []))).flat();
  return [...interleaved(parts), ...interleaved(parts.map((part) => checkOf(part, checks)))];
}

/** The functions of a size: `dark` modules and those that are `set`. @param {number} size @param {number} mask */
function patterns(size, mask) {
  const side = 4 * size + 17, grid = () => Array.from({ length: side }, () => Array(side).fill(false)), [dark, set] = [grid(), grid()];
  const put = (/** @type {number} */ x, /** @type {number} */ y, /** @type {boolean} */ is) => {
    if (x < 0 || y < 0 || x >= side || y >= side) return;
    [dark[y][x], set[y][x]] = [is, true];
  };
  const square = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ reach) => {
    for (let i = -reach; i <= reach; i++) for (let j = -reach; j <= reach; j++) {
      const ring = Math.max(Math.abs(i), Math.abs(j));
      put(x + i, y + j, reach === 4 ? ring !== 2 && ring !== 4 : ring !== 1);
    }
  };
  for (let i = 0; i < side; i++) { put(6, i, i % 2 === 0); put(i, 6, i % 2 === 0); }
  const places = centers(size), last = places[places.length - 1];
  for (const x of places) for (const y of places) if (!(x === 6 && (y === 6 || y === last)) && !(y === 6 && x === last)) square(x, y, 2);
  for (const [x, y] of [[3, 3], [side - 4, 3], [3, side - 4]]) square(x, y, 4);
  const kind = (LOW << 3) | mask, format = ((kind << 10) | remainder(kind, 0x537, 10)) ^ 0x5412;
  for (let i = 0; i < 15; i++) {
    const bit = ((format >> i) & 1) === 1;
    put(8, i < 6 ? i : i < 8 ? i + 1 : side - 15 + i, bit);
    put(i < 8 ? side - 1 - i : i === 8 ? 7 : 14 - i, 8, bit);
  }
  put(8, side - 8, true);
  const version = size > 6 ? (size << 12) | remainder(size, 0x1f25, 12) : 0;
  for (let i = 0; size > 6 && i < 18; i++) {
    const [near, far] = [Math.floor(i / 3), side - 11 + (i % 3)];
    put(near, far, ((version >> i) & 1) === 1);
    put(far, near, ((version >> i) & 1) === 1);
  }
  return { dark, set };
}

/** How hard a code is to read: runs, blocks, false finders and an unequal share of dark modules. @param {boolean[][]} dark */
function penalty(dark) {
  const side = dark.length, across = dark[0].map((_, x) => dark.map((row) => row[x]));
  let found = 0, count = 0;
  for (const row of [...dark, ...across]) {
    const line = row.map(Number).join("");
    for (const run of line.match(/0{5,}|1{5,}/g) ?? []) found += run.length - 2;
    for (let at = 0; at + 11 <= side; at++) if (["10111010000", "00001011101"].includes(line.slice(at, at + 11))) found += 40;
  }
  for (let y = 0; y < side; y++) for (let x = 0; x < side; x++) {
    count += Number(dark[y][x]);
    if (x && y && dark[y][x] === dark[y][x - 1] && dark[y][x] === dark[y - 1][x] && dark[y][x] === dark[y - 1][x - 1]) found += 3;
  }
  return found + 10 * Math.floor(Math.abs(20 * count - 10 * side * side) / (side * side));
}

/**
 * The modules of a code, row by row: true is dark.
 * @param {string} text
 * @param {number} [only] the mask, without which the best is chosen
 * @returns {boolean[][] | undefined} undefined if the text is too long for a code
 */
export function qrCode(text, only) {
  const content = new TextEncoder().encode(text);
  let size = 1;
  const holds = () => capacity(size) - BLOCKS[size - 1] * CHECKS[size - 1] - (size < 10 ? 2 : 3);
  while (size <= 40 && holds() < content.length) size++;
  if (size > 40) return undefined;
  const bits = codewords(content, size).flatMap((word) => Array.from({ length: 8 }, (_, i) => (word >> (7 - i)) & 1));
  const drawn = (only === undefined ? MASKS.map((_, mask) => mask) : [only]).map((mask) => {
    const { dark, set } = patterns(size, mask), side = dark.length;
    let at = 0;
    for (let right = side - 1, up = true; right > 0; right -= 2, up = !up) {
      if (right === 6) right = 5; // the timing line
      for (let step = 0; step < side; step++) for (const x of [right, right - 1]) {
        const y = up ? side - 1 - step : step;
        if (!set[y][x]) dark[y][x] = (bits[at++] === 1) !== MASKS[mask](x, y);
      }
    }
    return dark;
  });
  return drawn.map((dark) => ({ dark, cost: drawn.length > 1 ? penalty(dark) : 0 })).reduce((a, b) => (b.cost < a.cost ? b : a)).dark;
}

const SVG = "http://www.w3.org/2000/svg";
const BORDER = 4;

/**
 * A picture of a code, dark on white also in the dark.
 * @param {boolean[][]} code
 * @param {string} label
 */
export function qrPicture(code, label) {
  const side = code.length + 2 * BORDER;
  const made = (/** @type {string} */ name, /** @type {Record<string, any>} */ attributes) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
    return element;
  };
  const path = code.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x + BORDER} ${y + BORDER}h1v1h-1z`] : []))).join("");
  const picture = made("svg", { viewBox: `0 0 ${side} ${side}`, class: "qr", role: "img", "aria-label": label, "shape-rendering": "crispEdges" });
  picture.append(made("rect", { width: side, height: side, fill: "#fff" }), made("path", { d: path, fill: "#000" }));
  return picture;
}
