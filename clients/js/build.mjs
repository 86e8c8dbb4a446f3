// One file for pages that take no modules apart: `npm run build` writes dist/ldp-budget.js, and prints its size and the
// digest that a page names (subresource integrity).

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";

// Properties of our own that no page, no definition and not the other file knows, so that they may have short names.
const OWN = [
  ..."after belowEach compare deviates distinct draws drawn isLess kept lift likely odds".split(" "),
  ..."call compile define evaluate named names part run value within words write".split(" "),
];
const shorter = {
  module: true,
  compress: { ecma: 2020, passes: 3, hoist_funs: true, inline: 1, unsafe_arrows: true },
  mangle: { properties: { builtins: true, regex: new RegExp(`^(${OWN.join("|")})$`) } },
  format: { ecma: 2020 },
};

for (const [name, entry] of [
  ["ldp-budget", "src/index.js"],
  ["ldp-budget-device", "src/budget.js"],
  ["ldp-budget-loss", "src/loss.js"],
]) {
  const outfile = `dist/${name}.js`;
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: "esm", target: "es2022", minifySyntax: true, write: false, logLevel: "error" });
  const { code } = await minify(outputFiles[0].text, shorter);
  const made = Buffer.from(code);
  mkdirSync("dist", { recursive: true });
  writeFileSync(outfile, made);
  const integrity = `sha384-${createHash("sha384").update(made).digest("base64")}`;
  console.log(JSON.stringify({ file: outfile, bytes: made.length, compressed: gzipSync(made, { level: 9 }).length, integrity }));
}
