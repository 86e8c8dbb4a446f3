// Every vector of clients/vectors/questionnaires.json, on Node: the same selections, and the same reports from the same bytes.
//
//     node test/questionnaires.mjs FILE

import { readFileSync } from "node:fs";
import { fromHex, toHex } from "../src/bytes.js";
import { Draws } from "../src/draws.js";
import { confirmLoss } from "../src/loss.js";
import { Questionnaire } from "../src/questionnaire.js";

/** The draws from recorded bytes, and the number of bytes that are left. @param {Uint8Array} bytes */
function recorded(bytes) {
  let at = 0;
  const read = (/** @type {number} */ count) => {
    if (at + count > bytes.length) throw new RangeError("more is read than was recorded");
    return bytes.subarray(at, (at += count));
  };
  return { draws: () => new Draws(read), left: () => bytes.length - at };
}

let count = 0;
const wrong = [];
for (const { definition, selections, reports } of JSON.parse(readFileSync(process.argv[2], "utf8"))) {
  const survey = new Questionnaire(definition);
  confirmLoss(definition);
  for (const { user, seed, asked } of selections) {
    count++;
    const found = toHex(survey.seedOf(user));
    if (found !== seed || `${survey.asked(fromHex(seed))}` !== `${asked}`) wrong.push({ survey: definition.name, user, found });
  }
  for (const { asked, answers, stream, report } of reports) {
    count++;
    const { draws, left } = recorded(fromHex(stream));
    const found = survey.randomize(answers, { draws });
    const places = survey.parts(found).map(({ place }) => place);
    if (toHex(found) !== report || left() || `${places}` !== `${asked}`) wrong.push({ survey: definition.name, answers, found: toHex(found) });
  }
}
for (const each of wrong) console.log(JSON.stringify(each));
console.log(`${count} vectors, ${wrong.length} wrong`);
process.exitCode = wrong.length ? 1 : 0;
