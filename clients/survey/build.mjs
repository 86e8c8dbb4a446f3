// The respondents' pages: `npm run build` writes the script of the survey page, pinned by `integrity`, to the service, and the
// page that checks published surveys, one file that loads nothing, to clients/check.
//
// A script is bundled because an import map, which would hold the digests of modules that import modules, must be an inline
// script, and the pages allow none. It is not minified: respondents may read what the page does. The
// first line holds the digest of every file that it was made from, so that a test finds it stale without building it.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const STATIC = "service/ldp_budget_service/web/static";

/** The checker is a program of Node.js too; a page needs what it exports. */
const withoutProgram = {
  name: "without program",
  setup(building) {
    building.onLoad({ filter: /check_books\.mjs$/ }, ({ path }) => ({ contents: /[^]*\nexport \{.*\n/.exec(readFileSync(path, "utf8"))[0], loader: "js" }));
  },
};

/** The script of a page, after a line with the digest of all files that it and `others` were made from. */
async function bundled(entry, others = []) {
  const { outputFiles, metafile } = await build({
    entryPoints: [join(here, entry)],
    absWorkingDir: root,
    bundle: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    logLevel: "error",
    metafile: true,
    plugins: [withoutProgram],
    write: false,
  });
  const inputs = [...Object.keys(metafile.inputs), ...others].sort();
  const hash = createHash("sha256");
  for (const name of inputs) hash.update(`${name}\n`).update(readFileSync(join(root, name))).update("\n");
  return `// made by clients/survey/build.mjs from ${inputs.length} files with the digest ${hash.digest("hex")}\n${outputFiles[0].text}`;
}

async function checkPage() {
  const sources = [`${STATIC}/survey.css`, "clients/survey/src/check/page.css", "clients/survey/src/check/page.html"];
  const [survey, own, page] = sources.map((name) => readFileSync(join(root, name), "utf8"));
  // No text of a program may end the element that holds it.
  const parts = { script: (await bundled("src/check/main.js", sources)).replaceAll("</", "<\\/"), style: survey + own };
  const digest = (text) => createHash("sha256").update(text).digest("base64");
  return page.replace(/\{\{(script|style)( digest)?\}\}/g, (_, name, digested) => (digested ? digest(parts[name]) : parts[name]));
}

const made = { [`${STATIC}/survey.js`]: await bundled("src/main.js"), "clients/check/check.html": await checkPage() };
for (const [file, text] of Object.entries(made)) {
  writeFileSync(join(root, file), text);
  console.log(JSON.stringify({ file, bytes: text.length }));
}
