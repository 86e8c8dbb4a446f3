// The script of the respondents' pages in one file, pinned by `integrity`: `npm run build` writes it to the service.
//
// It is bundled because an import map, which would hold the digests of modules that import modules, must be an inline
// script, and the pages allow none. It is not minified: respondents may read what the page does. The
// first line holds the digest of every file that it was made from, so that a test finds it stale without building it.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const out = process.argv[2] ?? join(root, "service/ldp_budget_service/web/static/survey.js");

const { outputFiles, metafile } = await build({
  entryPoints: [join(here, "src/main.js")],
  absWorkingDir: root,
  bundle: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  logLevel: "error",
  metafile: true,
  write: false,
});
const inputs = Object.keys(metafile.inputs).sort();
const hash = createHash("sha256");
for (const name of inputs) hash.update(`${name}\n`).update(readFileSync(join(root, name))).update("\n");
const head = `// made by clients/survey/build.mjs from ${inputs.length} files with the digest ${hash.digest("hex")}\n`;
writeFileSync(out, head + outputFiles[0].text);
console.log(JSON.stringify({ file: relative(root, out), bytes: outputFiles[0].contents.length, inputs }));
