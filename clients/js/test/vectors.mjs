// Every vector of clients/vectors, on Node: the same bytes give the same report, and no more of them are read.
//
//     node test/vectors.mjs FOLDER [--first]     with `--first` it ends at the first file that differs

import { readFileSync, readdirSync } from "node:fs";
import { fromHex, toHex } from "../src/bytes.js";
import { Draws } from "../src/draws.js";
import { Program } from "../src/program.js";

/** @param {any} vectors */
function wrong({ definition, vectors }) {
  const program = new Program(definition);
  return vectors.filter((/** @type {any} */ { answer, secret, stream, report }) => {
    const bytes = fromHex(stream);
    let at = 0;
    const draws = new Draws((count) => {
      if (at + count > bytes.length) throw new RangeError("more is read than the client reads");
      return bytes.subarray(at, (at += count));
    });
    const given = typeof answer === "string" && definition.input.kind !== "word" ? BigInt(answer) : answer;
    try {
      return toHex(program.run(given, { secret: secret && fromHex(secret), draws })) !== report || at !== bytes.length;
    } catch {
      return true;
    }
  });
}

const folder = process.argv[2];
let count = 0;
for (const name of readdirSync(folder).sort()) {
  const file = JSON.parse(readFileSync(`${folder}/${name}`, "utf8"));
  const found = wrong(file);
  count += file.vectors.length;
  if (found.length) {
    process.exitCode = 1;
    console.log(`${name}: ${found.length} of ${file.vectors.length} differ; ${JSON.stringify(found[0]).slice(0, 300)}`);
    if (process.argv[3] === "--first") break;
  }
}
console.log(`${count} vectors`);
