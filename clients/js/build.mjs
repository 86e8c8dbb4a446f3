// One file for pages that take no modules apart: `npm run build` writes dist/ldp-budget.js, and prints its size and the
// digest that a page names (subresource integrity).

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

for (const [name, entry] of [
  ["ldp-budget", "src/index.js"],
  ["ldp-budget-device", "src/budget.js"],
]) {
  const outfile = `dist/${name}.js`;
  await build({ entryPoints: [entry], bundle: true, format: "esm", minify: true, target: "es2022", outfile, logLevel: "error" });
  const made = readFileSync(outfile);
  const integrity = `sha384-${createHash("sha384").update(made).digest("base64")}`;
  console.log(JSON.stringify({ file: outfile, bytes: made.length, compressed: gzipSync(made, { level: 9 }).length, integrity }));
}
