// The newest core of SurveyJS without a user interface: the definition comes from standard input, what was completed goes to output.

import { readFileSync } from "node:fs";
import { Model } from "survey-core-3";
import { Questionnaire } from "ldp-budget/questionnaire";
import { protect } from "ldp-budget/surveyjs";

const { definition, json, answers } = JSON.parse(readFileSync(0, "utf8"));
const survey = new Model(json);
const outbox = { draw: async (_, client, given) => ({ report: client.randomize(given), digest: definition.digest }) };
protect(survey, { definition, outbox, key: "2026-11" });
for (const [name, value] of Object.entries(answers)) survey.setValue(name, value);
const before = { data: survey.data, plain: survey.getPlainData().map(({ name }) => name) };
await new Promise((done) => {
  survey.onComplete.add(done);
  survey.doComplete();
});
const asked = new Questionnaire(definition).explain(Uint8Array.from(Buffer.from(survey.data.ldp_report, "hex")));
let late;
try {
  survey.onValueChanged.add(() => {});
} catch (error) {
  late = error.message;
}
const left = survey.getAllQuestions().map(({ value }) => value ?? null);
console.log(JSON.stringify({ before, data: Object.keys(survey.data), left, asked: asked.length, late }));
