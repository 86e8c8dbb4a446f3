/**
 * A SurveyJS survey whose answers leave the page as one randomized report.
 *
 *     const outbox = new Outbox(await DeviceBudget.open({ lifetime: "20" }));
 *     protect(survey, { definition, digest, outbox, key: "2026-11" }); // right after `new Model(json)`
 *     survey.onComplete.add(({ data }) => send(data)); // ldp_report and ldp_digest in place of the answers
 *
 * The protected answers are kept apart from `survey.data`, from the first one on, so that no handler finds them there. When the
 * survey is completed, the outbox charges the device and draws; under the same key it returns the same report. A survey that
 * would tell an answer in another way is refused with the reason. A script that asks a question or a field of the page for its
 * value cannot be stopped.
 */

import { canonicalText, toHex } from "./bytes.js";
import { OverBudget } from "./budget.js";
import { Client } from "./index.js";
import { confirmOnce } from "./loss.js";
import { FORMAT, Questionnaire } from "./questionnaire.js";

/** @typedef {{ name: string, read: (value: any) => any, choices?: any[] }} Part of a SurveyJS question: one question of ours */
/** @typedef {{ question: any, parts: Part[] }} Taken */
/** @typedef {{ definition: any, owner: string }} Wanted a question, or an item of a grid: what defines it, and the question that it belongs to */

const NO_ANSWER = "no answer";
const REPORT = "ldp_report";
const DIGEST = "ldp_digest";
/** Events that hand answers to handlers, most of which save them, send them, or ask a server about them. */
const TELLING = [
  ...["onValueChanged", "onValueChanging", "onServerValidateQuestions", "onValidateQuestion", "onGetQuestionDisplayValue", "onCheckAnswerCorrect"],
  ...["onChoicesSearch", "onChoicesLazyLoad", "onProcessTextValue", "onTriggerExecuted", "onMatrixCellValueChanged", "onMatrixCellValueChanging", "onUpdateChoiceItemCss"],
  ...["onCreateCustomChoiceItem", "onProgressText"],
];
/** What sends words that no noise covers, or decides by an answer what is shown, fetched or counted. */
const OPEN = [
  ...["showOtherItem", "hasOther", "showCommentArea", "hasComment", "showNoneItem", "hasNone", "showRefuseItem", "showDontKnowItem"],
  ...["valueName", "choicesFromQuestion", "choicesLazyLoadEnabled", "correctAnswer", "setValueIf", "setValueExpression", "resetValueIf", "isUnique", "allowCustomChoices", "valuePropertyName"],
];
const FILES = ["file", "signaturepad", "paneldynamic"];
const QUIET = "ph-no-capture ph-no-autocapture sentry-block sentry-mask fs-exclude data-hj-suppress";

const choicesOf = (/** @type {any} */ question) => question.choices.map((/** @type {any} */ each) => each.value);
const one = (/** @type {any} */ question, choices = choicesOf(question)) => [{ name: question.name, read: (/** @type {any} */ value) => value, choices }];
const number = (/** @type {any} */ question) => [{ name: question.name, read: (/** @type {any} */ value) => (value === undefined || value === "" ? undefined : Number(value)) }];
/** Ticks: one question of ours for all of them, or a yes or no for each. */
const ticks = (/** @type {any} */ question, /** @type {Map<string, Wanted>} */ wanted) =>
  wanted.get(question.name)?.definition.at_most !== undefined
    ? [{ name: question.name, read: (/** @type {any} */ value) => (value?.length || isOptional(wanted.get(question.name)?.definition.answers) ? value : []), choices: choicesOf(question) }]
    : choicesOf(question).map((/** @type {any} */ item) => ({ name: partOf(question.name, item, wanted), read: (/** @type {any} */ value) => ((value ?? []).includes(item) ? "yes" : "no"), choices: ["yes", "no"] }));
/** @param {string} name @param {any} part @param {Map<string, any>} wanted */
const partOf = (name, part, wanted) => [`${name}/${part}`, `${name}_${part}`].find((each) => wanted.has(each)) ?? `${name}/${part}`;

/**
 * How a SurveyJS question becomes questions of ours, by its type.
 * @type {Record<string, (question: any, wanted: Map<string, Wanted>) => Part[]>}
 */
const READ = {
  radiogroup: (question) => one(question),
  dropdown: (question) => one(question),
  buttongroup: (question) => one(question),
  imagepicker: (question, wanted) => (question.multiSelect ? ticks(question, wanted) : one(question)),
  rating: (question) => one(question, question.visibleRateValues.map((/** @type {any} */ each) => each.value)),
  boolean: (question) => [{ name: question.name, read: (value) => (value === undefined ? undefined : value === question.getValueTrue() ? "yes" : "no"), choices: ["yes", "no"] }],
  text: (question) => (["number", "range"].includes(question.inputType) ? number(question) : []),
  slider: (question) => (question.sliderType === "range" ? [] : number(question)),
  checkbox: ticks,
  tagbox: ticks,
  matrix: (question, wanted) =>
    question.rows.map((/** @type {any} */ row) => ({
      ...{ name: partOf(question.name, row.value, wanted), read: (/** @type {any} */ value) => value?.[row.value] },
      choices: question.columns.map((/** @type {any} */ column) => column.value),
    })),
};

/** What a respondent is shown: it holds no answer. */
class Said extends Error {}

/** @param {string} why @returns {TypeError} */
const refusal = (why) => new TypeError(`this survey would leak an answer, or cannot be reported: ${why}`);

/**
 * Protects the questions of a survey that are those of a collection, by their names.
 * @param {any} survey a model of SurveyJS, before it is shown
 * @param {{ definition: any, digest?: string, outbox: import("./outbox.js").Outbox, key: string, seed?: Uint8Array }} options `key`: of this
 *   respondent's report on this device, such as the round; `seed`: of this respondent, if the survey asks some of its questions
 * @returns {{ names: string[] }} the names of the protected questions
 * @throws {TypeError} with the reason, for a survey that would tell an answer in another way; the model is as it was
 * @throws {import("./loss.js").Unconfirmed} where a program may give away more than the definition states
 */
export function protect(survey, { definition, digest, outbox, key, seed }) {
  if (typeof key !== "string" || !key) throw new TypeError("`key` must be a text, such as the round: under it a report is drawn once");
  const client = definition.format === FORMAT ? new Questionnaire(definition, { digest }) : new Client(definition, { digest });
  confirmOnce(definition);
  const wanted = wantedOf(client instanceof Questionnaire ? client.questions : [client]);
  const taken = takenOf(survey, wanted);
  checkElsewhere(survey, taken);
  const names = new Set(taken.map(({ question }) => /** @type {string} */ (question.name)));
  const asked = client instanceof Questionnaire ? askedOf(client, seed) : [definition.name];
  tried(survey, names);

  // Nothing is refused from here on.
  const filled = Object.entries(survey.data).filter(([name]) => names.has(name));
  for (const [name] of filled) survey.clearValue(name);
  setApart(survey, names);
  for (const [name, value] of filled) survey.setValue(name, value);
  const shown = taken.map(({ question, parts }) => show(question, parts, ({ name }) => asked.includes(/** @type {Wanted} */ (wanted.get(name)).owner)));
  for (const event of TELLING) if (survey[event]) shut(survey, event);
  for (const question of survey.getAllQuestions()) if (names.has(question.name)) question.autocomplete = "off";
  survey.onUpdateQuestionCssClasses.add((/** @type {any} */ _, /** @type {any} */ { question, cssClasses }) => {
    if (names.has(question.name)) cssClasses.mainRoot = `${cssClasses.mainRoot ?? ""} ${QUIET}`;
  });
  survey.onCompleting.add(async (/** @type {any} */ _, /** @type {any} */ options) => {
    try {
      const answers = answersOf(shown, wanted);
      const { report, digest: drawn } = await outbox.draw(key, client, client instanceof Questionnaire ? answers : Object.values(answers)[0]);
      if (drawn !== definition.digest) throw new Said(`The key ${key} has a report of another survey on this device: take another key.`);
      if (!report) throw new Said("The report of this key was sent, and is deleted.");
      survey.setValue(REPORT, toHex(report));
      survey.setValue(DIGEST, definition.digest);
    } catch (error) {
      options.allow = false;
      // Other messages may hold an answer, and handlers read this one.
      options.message = error instanceof OverBudget || error instanceof Said ? error.message : "An answer is missing, or is none that can be reported.";
    }
  });
  const forget = () => survey.isCompleted && taken.forEach(({ question }) => question.clearValue());
  survey.registerPropertyChangedHandlers(["isCompleted"], forget, "ldp-budget");
  return { names: [...names] };
}

/**
 * By the name of each question and of each item of a grid.
 * @param {Client[]} clients
 * @returns {Map<string, Wanted>}
 */
function wantedOf(clients) {
  const each = clients.flatMap(({ definition }) => (definition.items ?? [definition]).map((/** @type {any} */ { name }) => [name, { definition, owner: definition.name }]));
  return new Map(each);
}

/**
 * The questions of a survey that are those of the collection.
 * @param {any} survey
 * @param {Map<string, Wanted>} wanted
 * @returns {Taken[]}
 */
function takenOf(survey, wanted) {
  /** @type {Taken[]} */
  const taken = [];
  for (const question of survey.getAllQuestions()) {
    const parts = READ[question.getType()]?.(question, wanted) ?? [];
    const ours = parts.filter(({ name }) => wanted.has(name));
    if (!ours.length) continue;
    const no = (/** @type {string} */ why) => refusal(`the question ${question.name}: ${why}`);
    if (ours.length < parts.length) throw no(`${parts.filter(({ name }) => !wanted.has(name)).map(({ name }) => name)} is no question of the collection`);
    const open = OPEN.find((name) => question[name] && question[name] !== question.name);
    if (open) throw no(`\`${open}\` sends words that no noise covers, or lets an answer decide what else is shown or sent`);
    if (question.choicesByUrl && !question.choicesByUrl.isEmpty) throw no("`choicesByUrl` fetches its choices, so they are not those of the collection");
    for (const { name, choices } of ours) checkPart(question, name, /** @type {Wanted} */ (wanted.get(name)).definition, choices, no);
    taken.push({ question, parts: ours });
  }
  const found = taken.flatMap(({ parts }) => parts.map(({ name }) => name));
  const missing = [...wanted.keys()].filter((name) => !found.includes(name));
  if (missing.length) throw refusal(`it does not ask ${missing.join(", ")}, or not in a form that can be reported`);
  if (new Set(found).size < found.length) throw refusal("it asks a question twice");
  return taken;
}

/**
 * @param {any} question
 * @param {string} name of the part
 * @param {any} definition of the question of ours
 * @param {any[] | undefined} choices
 * @param {(why: string) => TypeError} no
 */
function checkPart(question, name, { answers, at_most: most }, choices, no) {
  const optional = isOptional(answers);
  const own = (optional ? answers?.slice(0, -1) : answers)?.map(canonicalText);
  const given = choices?.map((each) => canonicalText(`${each}`));
  const inAnyOrder = most !== undefined || `${given}` === "yes,no";
  const same = inAnyOrder ? `${given?.sort()}` === `${own?.sort()}` : `${given}` === `${own}`;
  if (given ? !own || !same : own) throw no(`its choices ${given ?? "(a number)"} are not the answers ${own ?? "(a number)"} of ${name}, in this order`);
  const type = question.getType();
  if (most !== undefined && most < (given?.length ?? 0) && !(question.maxSelectedChoices > 0 && question.maxSelectedChoices <= most)) {
    throw no(`at most ${most} may be ticked: set \`maxSelectedChoices\` to ${most}`);
  }
  if (optional || type === "checkbox" || type === "tagbox" || question.multiSelect) return;
  const every = type === "matrix" ? question.isAllRowRequired || question.eachRowRequired : question.isRequired;
  if (!every) throw no(`it must be required (\`${type === "matrix" ? "eachRowRequired" : "isRequired"}\`), or \`optional = true\` in the survey file: that nothing was answered would tell something`);
  for (let above = question; above; above = above.parent) {
    if (above.visibleIf || above.enableIf || above.requiredIf) throw no("a question that is not always asked must be `optional = true` in the survey file");
  }
}

/** @param {string[] | undefined} answers */
const isOptional = (answers) => answers?.[answers.length - 1] === NO_ANSWER;

/**
 * Whatever else of a survey would tell an answer.
 * @param {any} survey
 * @param {Taken[]} taken
 */
function checkElsewhere(survey, taken) {
  const names = taken.map(({ question }) => /** @type {string} */ (question.name));
  if (survey.partialSendEnabled || survey.sendResultOnPageNext) throw refusal("`partialSendEnabled` sends results before they are complete");
  if (survey.surveyPostId) throw refusal("`surveyPostId` sends results to a service of SurveyJS");
  for (const question of survey.getAllQuestions(false, false, true)) {
    if (FILES.includes(question.getType())) throw refusal(`the question ${question.name} of type ${question.getType()} may hold what a protected question asks, and leaves the page as it is`);
  }
  /** @type {(node: any, path: string, formula: boolean) => void} */
  const look = (node, path, formula) => {
    if (typeof node === "string") {
      const own = path.endsWith(".name") || /\.(choices|rows|columns|rateValues)\.\d+(\.value)?$|\.(text|title|value|description)(\.[\w-]+)?$/.test(path);
      // A name that a formula puts together is not to be found.
      if (formula && /\b(displayValue|propertyValue|getComment)\s*\(\s*(?!(['"])[^'"]*\2\s*[,)])/i.test(node)) throw refusal(`${path} asks for a question whose name is no text`);
      const told = names.find((name) => (!own && node === name) || [...(formula ? [node] : []), ...insideBraces(node)].some((each) => named(name).test(each)));
      if (told) throw refusal(`${path} depends on ${told}`);
    } else if (node && typeof node === "object") {
      for (const [name, value] of Object.entries(node)) look(value, `${path}.${name}`, formula || /(If|[eE]xpression|^triggers|^calculatedValues)$/.test(name));
    }
  };
  look(survey.toJSON(), "survey", false);
}

/** A name as a word of its own; formulas of SurveyJS know no case. @param {string} name */
const named = (name) => new RegExp(`(?<![\\p{L}\\p{N}_])${name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}(?![\\p{L}\\p{N}_])`, "iu");
/** @param {string} text */
const insideBraces = (text) => [...text.matchAll(/\{([^{}]*)\}/g)].map(([, inside]) => inside);

/** @param {string} event @returns {never} */
function closed(event) {
  throw refusal(`a handler of \`${event}\` would see answers without noise; use \`onComplete\``);
}

/** @param {any} survey @param {string} event which takes no handler from now on, nor another event or function in its place */
function shut(survey, event) {
  const own = survey[event];
  own.add = () => closed(event);
  Object.defineProperty(survey, event, { get: () => own, set: (given) => given && given !== own && closed(event), configurable: true });
}

/**
 * A model of the same survey that has shown that answers can be kept apart in this version of SurveyJS.
 * @param {any} survey
 * @param {Set<string>} names
 */
function tried(survey, names) {
  const bare = new survey.constructor(survey.toJSON());
  for (const event of TELLING) {
    // SurveyJS listens itself, too. A function in place of an event is called as well.
    if (typeof survey[event] === "function" || survey[event]?.length > bare[event]?.length) closed(event);
  }
  if (survey.valueHashGetDataCallback || survey.valueHashSetDataCallback) throw refusal("something else keeps its values already; protect it once");
  setApart(bare, names);
  for (const name of names) bare.setValue(name, "tried");
  if ([...names].some((name) => name in bare.data || bare.getValue(name) !== "tried")) throw refusal("this version of SurveyJS cannot keep answers apart");
  bare.dispose?.();
}

/**
 * Keeps the values of some names where neither `survey.data` nor expressions find them.
 * @param {any} survey
 * @param {Set<string>} names
 */
function setApart(survey, names) {
  /** @type {WeakMap<object, Record<string, any>>} SurveyJS begins another object when it is cleared */
  const apart = new WeakMap();
  const within = (/** @type {any} */ hash) => apart.get(hash) ?? /** @type {any} */ (apart.set(hash, {}).get(hash));
  const of = (/** @type {any} */ hash, /** @type {string} */ name) => (names.has(name) ? within(hash) : hash);
  survey.valueHashGetDataCallback = (/** @type {any} */ hash, /** @type {string} */ name) => of(hash, name)[name];
  survey.valueHashSetDataCallback = (/** @type {any} */ hash, /** @type {string} */ name, /** @type {any} */ value) => void (of(hash, name)[name] = value);
  survey.valueHashDeleteDataCallback = (/** @type {any} */ hash, /** @type {string} */ name) => void delete of(hash, name)[name];
  const listed = survey.getPlainData?.bind(survey);
  survey.getPlainData = (/** @type {any} */ options) => listed(options).filter((/** @type {any} */ each) => !names.has(each.name));
  const structured = survey.getStructuredData?.bind(survey);
  const left = (/** @type {any} */ pages) => Object.fromEntries(Object.entries(pages).flatMap(([name, value]) => (names.has(name) ? [] : [[name, value]])));
  if (structured) survey.getStructuredData = (/** @type {any[]} */ ...options) => deep(structured(...options), left);
}

/** An object after a change of each object in it. @param {any} value @param {(value: any) => any} change @returns {any} */
const deep = (value, change) => (!value || Object.getPrototypeOf(value) !== Object.prototype ? value : Object.fromEntries(Object.entries(change(value)).map(([name, each]) => [name, deep(each, change)])));

/**
 * The names of the questions that this person is asked.
 * @param {Questionnaire} survey
 * @param {Uint8Array | undefined} seed
 */
function askedOf(survey, seed) {
  const names = survey.questions.map(({ definition }) => /** @type {string} */ (definition.name));
  if (survey.definition.ask === names.length) return names;
  if (!seed) throw new TypeError("the survey asks each person some of its questions: give the person's `seed`");
  return survey.asked(seed).map((place) => names[place]);
}

/**
 * Shows of a question what this person is asked: whole, some of its rows or items, or not at all.
 * @param {any} question
 * @param {Part[]} parts
 * @param {(part: Part) => boolean} isAsked
 * @returns {Taken}
 */
function show(question, parts, isAsked) {
  const kept = parts.filter(isAsked);
  const list = question.getType() === "matrix" ? "rows" : "choices";
  if (!kept.length) question.visible = false;
  else if (kept.length < parts.length) question[list] = question[list].filter((/** @type {any} */ _, /** @type {number} */ place) => kept.includes(parts[place]));
  return { question, parts: kept };
}

/**
 * @param {Taken[]} shown
 * @param {Map<string, Wanted>} wanted
 * @returns {Record<string, any>} the answer to each asked question of ours
 */
function answersOf(shown, wanted) {
  /** @type {Record<string, any>} */
  const answers = {};
  for (const { question, parts } of shown) {
    for (const { name, read } of parts) {
      const { definition, owner } = /** @type {Wanted} */ (wanted.get(name));
      const own = definition.answers;
      const answer = question.isVisible === false && isOptional(own) ? undefined : read(question.value);
      const given = (answer === undefined || answer.length === 0) && isOptional(own) ? (definition.at_most === undefined ? NO_ANSWER : [NO_ANSWER]) : typeof answer === "number" && own ? `${answer}` : answer;
      if (definition.items) answers[owner] = { ...answers[owner], [name]: given };
      else answers[name] = given;
    }
  }
  return answers;
}
