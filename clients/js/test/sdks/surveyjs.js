// A page with the real SurveyJS and its user interface. The test fills it in, and listens at `sink`.

import posthog from "posthog-js";
import { Model } from "survey-core";
import { renderSurvey } from "survey-js-ui";
import { DeviceBudget } from "ldp-budget/budget";
import { Outbox } from "ldp-budget/outbox";
import { protect } from "ldp-budget/surveyjs";

let inside = false;

/** What a page may do with a survey's data: keep it and send it, in every event that SurveyJS has. */
const everywhere = (survey, reason, wanted = () => true) => {
  for (const event of Object.keys(survey).filter((name) => /^on[A-Z]/.test(name) && survey[name]?.add && wanted(survey[name]))) {
    try {
      survey[event].add((sender, options) => {
        if (inside) return; // it asks for what makes events itself
        inside = true;
        const text = JSON.stringify([event, reason, sender.data, sender.comments, sender.getPlainData(), sender.getAllValues?.(), options?.value, options?.message]);
        localStorage.setItem(event, text);
        handled.push(text);
        inside = false;
      });
    } catch (error) {
      (window.shut ??= []).push(`${event}: ${error.message}`);
    }
  }
};

const TELLING = ["onValueChanged", "onValueChanging", "onServerValidateQuestions", "onValidateQuestion", "onGetQuestionDisplayValue", "onCheckAnswerCorrect", "onChoicesSearch", "onChoicesLazyLoad", "onProcessTextValue", "onTriggerExecuted", "onMatrixCellValueChanged", "onMatrixCellValueChanging", "onUpdateChoiceItemCss", "onCreateCustomChoiceItem", "onProgressText"];

window.open_ = async ({ json, definition, sink, key = "2026-11", seed, lifetime = "1000000", handlers = false, listen, capture = false, bare = false, filled, validate }) => {
  const survey = new Model(json);
  const outbox = new Outbox(await DeviceBudget.open({ lifetime }));
  Object.assign(window, { survey, outbox, completed: false, handled: [], shut: [] });
  if (capture) posthog.init("phc_test", { api_host: `${sink}/posthog`, autocapture: true, opt_out_useragent_filter: true, disable_external_dependency_loading: true, advanced_disable_flags: true, disable_compression: true, capture_pageview: false, person_profiles: "always", request_queue_config: { flush_interval_ms: 250 } });
  if (listen) survey[listen].add((sender) => fetch(`${sink}/saved`, { method: "POST", body: JSON.stringify(sender.data) }));
  if (handlers) {
    const telling = new Set(TELLING.map((name) => survey[name]));
    everywhere(survey, "before", (event) => !telling.has(event)); // `protect` refuses these
  }
  if (filled) survey.data = filled;
  if (validate) survey.onServerValidateQuestions = () => {};
  if (!bare) protect(survey, { definition, digest: definition.digest, outbox, key, seed: seed && Uint8Array.from(seed) });
  if (handlers) everywhere(survey, "after");
  survey.onComplete.add(async ({ data }) => {
    localStorage.setItem("completed", JSON.stringify(data));
    await fetch(`${sink}/answers`, { method: "POST", body: JSON.stringify(data) }).catch(() => {});
    window.completed = true;
  });
  document.getElementById("page").replaceChildren();
  renderSurvey(survey, document.getElementById("page"));
};
window.try_ = (act) => {
  try {
    act();
    return "done";
  } catch (error) {
    return error.message;
  }
};
window.refused = (options) => window.open_(options).then(() => "accepted", (error) => error.message);
window.answer = (values) => {
  for (const [name, value] of Object.entries(values)) survey.setValue(name, value);
};
/** Complete, and what is left in the model. */
window.complete = async () => {
  survey.doComplete();
  for (let i = 0; i < 400 && !(survey.state === "completed" && window.completed) && !survey.notifier.message; i++) await new Promise((ok) => setTimeout(ok, 5));
  return { state: survey.state, data: survey.data, said: survey.notifier.message ?? "", left: survey.getAllQuestions().map((each) => each.value ?? null), balance: (await outbox.budget.balance()).lifetime };
};
window.ready = true;
