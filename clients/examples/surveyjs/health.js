// A survey of SurveyJS whose answers leave the page as one randomized report.

import { DeviceBudget } from "ldp-budget/budget";
import { Outbox } from "ldp-budget/outbox";
import { protect } from "ldp-budget/surveyjs";
import { Model } from "survey-core";
import "survey-core/survey-core.css";
import { renderSurvey } from "survey-js-ui";
import form from "./form.json";
import definition from "./health.public.json";

const digest = "d578e5e228f42d820c2e31c452febce7793338bff74dfb11a9a2b3c55706b08f";
const person = new URLSearchParams(location.search).get("person"); // of this exercise: take your own key of a person
const survey = new Model(form);
const outbox = new Outbox(await DeviceBudget.open({ lifetime: "8" }));

protect(survey, { definition, digest, outbox, key: "2026-11" }); // before it is shown

survey.onComplete.add(async ({ data }, options) => {
  options.showSaveInProgress();
  const body = JSON.stringify({ user: person, key: "2026-11", report: data.ldp_report, town: data.town });
  const { ok } = await fetch("/answers", { method: "POST", body }).catch(() => ({ ok: false }));
  if (ok) options.showSaveSuccess();
  else options.showSaveError(); // with a button to send the same report again
});

renderSurvey(survey, document.querySelector("#survey"));
