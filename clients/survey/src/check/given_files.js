// The files that a respondent chooses, recognized by their content: a receipt, a proof, a checkpoint, or a published survey as
// one .zip.

/** @typedef {Map<string, Uint8Array>} Files the files of a published folder by their paths */
/** @typedef {{ kind: "receipt" | "proof" | "checkpoint" | "folder", data: Uint8Array, files: Files }} Given */

const PUBLISHED = /^(checkpoint|client\.json|charges\.bin|reports\.bin|tile\/.+)$/;
/** The most bytes of a file in a .zip, and of all of them. */
const MOST = 2 ** 29;

/** The folder is where the file `checkpoint` is. @param {[string, any][]} chosen */
export function published(chosen) {
  const checkpoint = chosen.map(([path]) => path).filter((path) => path === "checkpoint" || path.endsWith("/checkpoint"));
  const base = checkpoint.length ? checkpoint[0].slice(0, -"checkpoint".length) : "";
  const inside = chosen.filter(([path]) => path.startsWith(base)).map(([path, file]) => /** @type {[string, any]} */ ([path.slice(base.length), file]));
  return inside.filter(([path]) => PUBLISHED.test(path));
}

/**
 * What a file is; undefined for anything else.
 * @param {File} file
 * @returns {Promise<Given | undefined>}
 */
export async function given(file) {
  const data = new Uint8Array(await file.arrayBuffer()), files = new Map();
  if (data[0] === 0x50 && data[1] === 0x4b) {
    const found = await unzipped(data).catch(() => new Map());
    return found.size ? { kind: "folder", data, files: found } : undefined;
  }
  const text = new TextDecoder().decode(data.subarray(0, 2 ** 22));
  if (/^[^\n]+\n[0-9]+\n[^\n]+\n\n\u2014 /.test(text)) return { kind: "checkpoint", data, files };
  try {
    const found = JSON.parse(text);
    if (found.format === "ldp-budget receipt") return { kind: "receipt", data, files };
    if (found.account && found.charge) return { kind: "proof", data, files };
  } catch {} // not JSON
  return undefined;
}

/**
 * The files of a published folder in a .zip (APPNOTE 6.3.9: stored and deflated, not encrypted, below 4 GiB).
 * @param {Uint8Array} data
 * @returns {Promise<Files>}
 */
async function unzipped(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let end = data.length - 22;
  while (view.getUint32(end, true) !== 0x06054b50) end--; // a comment may follow; without an end this throws
  /** @type {[string, [number, number, number, number]][]} */
  const listed = [];
  for (let at = view.getUint32(end + 16, true), count = view.getUint16(end + 10, true); count > 0; count--) {
    if (view.getUint32(at, true) !== 0x02014b50) throw new TypeError("not a directory of a .zip");
    const [name, extra, comment] = [28, 30, 32].map((place) => view.getUint16(at + place, true));
    const path = new TextDecoder().decode(data.subarray(at + 46, at + 46 + name));
    listed.push([path, [view.getUint16(at + 10, true), view.getUint32(at + 20, true), view.getUint32(at + 24, true), view.getUint32(at + 42, true)]]);
    at += 46 + name + extra + comment;
  }
  const found = new Map();
  let room = MOST;
  for (const [path, [method, packed, size, at]] of published(listed)) {
    const from = at + 30 + view.getUint16(at + 26, true) + view.getUint16(at + 28, true), content = data.subarray(from, from + packed);
    room -= size;
    if (room < 0 || (method !== 0 && method !== 8)) throw new TypeError("too large, or packed in another way");
    found.set(path, method ? await inflated(content, size) : content);
  }
  return found;
}

/** @param {Uint8Array} content @param {number} size that the directory states */
async function inflated(content, size) {
  const stream = new Blob([/** @type {any} */ (content)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = stream.getReader(), whole = new Uint8Array(size);
  for (let at = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return whole.subarray(0, at);
    whole.set(value, at); // throws if there is more than stated
    at += value.length;
  }
}

/**
 * The files below a dropped folder, or a dropped file.
 * @param {any} entry
 * @param {string} [path]
 * @returns {Promise<[string, File][]>}
 */
export async function below(entry, path = entry.name) {
  if (entry.isFile) return [[path, await new Promise((done, fail) => entry.file(done, fail))]];
  const reader = entry.createReader(), found = [];
  for (;;) {
    /** @type {any[]} */
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!some.length) return found;
    for (const each of some) found.push(...(await below(each, `${path}/${each.name}`)));
  }
}
