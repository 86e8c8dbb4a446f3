// A page with PostHog, whose answers leave the device as one randomized report a day.

import { Reports, forPostHog } from "ldp-budget/telemetry";
import posthog from "posthog-js";
import definition from "./plan.json";

const digest = "d7611f54e2fb66803e48ff9e533b37a1bbd78ce56a13b255ad00b23869969f0f";
const days = Number(new URLSearchParams(location.search).get("days")); // of this exercise alone: ?days=1 is tomorrow

const reports = await Reports.open({
  name: "metrics",
  budget: { lifetime: "30" },
  metrics: { plan: { event: "plan_chosen", property: "plan", definition, digest } },
  now: () => new Date(Date.now() + days * 86_400_000),
});

posthog.init("phc_practice", {
  api_host: location.origin,
  before_send: forPostHog(reports, () => posthog), // the last one, if there are several
  advanced_disable_flags: true, // required: requests for flags hold person properties
  persistence: "localStorage", // or a cookie tells your own server when something happened
  disable_external_dependency_loading: true,
  disable_compression: true, // of this exercise alone, so that you can read what is sent
  opt_out_useragent_filter: true, // of this exercise alone: PostHog ignores browsers that tests start
});

for (const button of document.querySelectorAll("button")) {
  button.addEventListener("click", () => {
    posthog.capture("plan_chosen", { plan: button.textContent }); // as before: it is not sent
    posthog.capture("step_done", { step: 1 }); // an event of no metric is
    document.querySelector("#said").textContent = "Thank you";
  });
}
document.querySelector("#said").textContent = `A day has ${reports.refused.size ? "no report left" : "one report"}.`;
