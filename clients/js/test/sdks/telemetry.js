// A page with the real telemetry libraries and the hooks in front of them. The test drives it, and listens at `sink`.

import { OpenFeature, InMemoryProvider } from "@openfeature/web-sdk";
import { ROOT_CONTEXT, createTraceState, trace } from "@opentelemetry/api";
import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { FormTrackingPlugin, enableFormTracking } from "@snowplow/browser-plugin-form-tracking";
import { LinkClickTrackingPlugin, enableLinkClickTracking } from "@snowplow/browser-plugin-link-click-tracking";
import { addGlobalContexts, flushBuffer, newTracker, trackPageView, trackSelfDescribingEvent, trackStructEvent } from "@snowplow/browser-tracker";
import posthog from "posthog-js";
import * as hooks from "ldp-budget/telemetry";

const { Reports } = hooks;
/** Without hooks, to see that a library does send what the page is asked for. */
const BARE = { forPostHog: () => (event) => event, forSnowplow: () => ({}), forOpenFeature: () => ({}), forSpans: (_, next) => next, forLogs: (_, next) => next };
let used = hooks;

const ORG = "iglu:org.example";
const DAY = 86_400_000;
let clock = Date.UTC(2026, 10, 2, 9);
let reports;

const metric = ({ definition, original, event, property = "plan", digest = definition.digest }) => ({
  ...{ event, property, definition, digest, original },
  ...(original === "strip" ? { allow: ["page"] } : {}),
});

/** Each: set up with the hook; one event of the metric with an answer; other events, with the answer where an SDK may take it; flush. */
const SDKS = {
  posthog: {
    event: "plan_chosen",
    start: (sink, given) => {
      posthog.init("phc_test", {
        before_send: used.forPostHog(reports, () => posthog),
        advanced_disable_flags: true,
        ...{ api_host: `${sink}/posthog`, opt_out_useragent_filter: true, disable_compression: true, disable_external_dependency_loading: true },
        ...{ autocapture: true, capture_heatmaps: true, capture_pageview: "history_change", capture_exceptions: true, person_profiles: "always" },
        ...{ request_queue_config: { flush_interval_ms: 250 }, rate_limiting: { events_per_second: 1e6, events_burst_limit: 1e6 } },
        ...given,
      });
    },
    choose: (plan) => posthog.capture("plan_chosen", { plan, page: "pricing", $set: { plan } }, { $set_once: { first: plan } }),
    others: (plan, i) => {
      posthog.register({ last_plan: plan, plan });
      posthog.register_for_session({ session_plan: plan });
      posthog.identify("user-1", { plan }, { plan });
      posthog.setPersonProperties({ plan });
      posthog.group("company", "c1", { plan });
      posthog.capture("checkout", { step: i, $set: { plan } });
      posthog.capture(`$${plan}`, { plan });
      posthog.captureException(new Error(`no ${plan}`));
      posthog.capture("$snapshot", { $snapshot_data: [plan] }, { _batchKey: "recordings", _url: `${posthog.config.api_host}/s/` });
      posthog.capture("$$heatmap", { $heatmap_data: { [plan]: 1 } });
    },
    flush: () => {},
  },
  snowplow: {
    event: "plan_chosen",
    start: (sink, { base64 = false, ...more } = {}) => {
      const hook = used.forSnowplow(reports, { schema: `${ORG}/ldp_report/jsonschema/1-0-0`, track: trackSelfDescribingEvent });
      const { origin, pathname } = new URL(sink);
      newTracker("sp", origin, {
        ...{ appId: "a", encodeBase64: base64, bufferSize: 20, eventMethod: "post", postPath: `${pathname}/snowplow/tp2` },
        ...{ contexts: { webPage: true, session: true, browser: true } },
        ...more,
        plugins: [hook, LinkClickTrackingPlugin(), FormTrackingPlugin()],
      });
      enableLinkClickTracking({ content: (element) => element.textContent });
      enableFormTracking();
    },
    choose: (plan) => trackSelfDescribingEvent({ event: { schema: `${ORG}/plan_chosen/jsonschema/1-0-0`, data: { plan, page: "pricing" } }, context: [{ schema: `${ORG}/c/jsonschema/1-0-0`, data: { plan } }] }),
    others: (plan, i) => {
      addGlobalContexts([{ schema: `${ORG}/chosen/jsonschema/1-0-0`, data: { plan } }]);
      trackPageView({ title: plan });
      trackSelfDescribingEvent({ event: { schema: `${ORG}/checkout/jsonschema/1-0-0`, data: { step: i, plan } } });
      trackStructEvent({ category: "shop", action: "checkout", label: "l" });
    },
    flush: () => flushBuffer(),
  },
  openfeature: {
    event: "plan_flag",
    property: "variant",
    start: async (sink) => {
      const plans = ["no", "topaz", "zirconium-plan", "ruby", "none"];
      const provider = new InMemoryProvider({ plan_flag: { disabled: false, variants: Object.fromEntries(plans.map((plan) => [plan, plan])), defaultVariant: "none", contextEvaluator: ({ wants }) => wants } });
      await OpenFeature.setProviderAndWait(provider);
      const send = async (report) => {
        const response = await fetch(`${sink}/openfeature`, { method: "POST", body: JSON.stringify(report) });
        if (!response.ok) throw new Error(`status ${response.status}`);
      };
      OpenFeature.addHooks(used.forOpenFeature(reports, send));
    },
    choose: async (plan) => {
      await OpenFeature.setContext({ wants: plan });
      OpenFeature.getClient().getStringValue("plan_flag", "none");
    },
    others: () => {},
    flush: () => {},
  },
  otel: {
    event: "plan_chosen",
    start: (sink) => {
      const logs = new LoggerProvider({ processors: [used.forLogs(reports, new BatchLogRecordProcessor({ exporter: new OTLPLogExporter({ url: `${sink}/otel/v1/logs` }), maxQueueSize: 200_000, scheduledDelayMillis: 200 }), (report) => emit(report))] });
      const emit = (report) => logs.getLogger("ldp").emit({ eventName: "ldp_report", attributes: report });
      const spans = new BasicTracerProvider({ spanProcessors: [used.forSpans(reports, new BatchSpanProcessor(new OTLPTraceExporter({ url: `${sink}/otel/v1/traces` }), { maxQueueSize: 200_000, scheduledDelayMillis: 200 }), emit)] });
      Object.assign(SDKS.otel, { logs, spans, logger: logs.getLogger("shop"), tracer: spans.getTracer("shop") });
    },
    choose: (plan, i) => {
      const { logger, tracer } = SDKS.otel;
      if (i % 2) return logger.emit({ eventName: "plan_chosen", body: `chose ${plan}`, severityText: plan, attributes: { plan, page: "pricing" } });
      const above = trace.setSpanContext(ROOT_CONTEXT, { traceId: "1".repeat(32), spanId: "2".repeat(16), traceFlags: 1, traceState: createTraceState(`plan=${plan}`) });
      const span = tracer.startSpan("plan_chosen", { attributes: { plan, page: "pricing" } }, above);
      const child = tracer.startSpan("below", { attributes: { of: plan } }, trace.setSpan(ROOT_CONTEXT, span));
      child.end();
      span.addEvent(`clicked ${plan}`);
      span.addLink({ context: span.spanContext(), attributes: { plan } });
      span.recordException(new Error(plan));
      span.setStatus({ code: 2, message: plan });
      span.end();
    },
    others: (plan, i) => {
      SDKS.otel.tracer.startSpan("checkout", { attributes: { step: i, plan } }).end();
      SDKS.otel.logger.emit({ eventName: "checkout", body: "done", attributes: { step: i, plan } });
    },
    flush: async () => {
      await SDKS.otel.spans.forceFlush();
      await SDKS.otel.logs.forceFlush();
    },
  },
};

/** Of a shop: its links, buttons and fields hold the answers, which libraries read that listen to clicks. */
const PAGE = `<a href="#topaz" id="topaz" class="topaz">topaz</a><button data-plan="topaz" id="buy" value="topaz">topaz</button>
<form id="zirconium-form" onsubmit="return false"><input name="plan" id="field" value="topaz"><select name="plans" id="list"><option>no<option>topaz</select><button id="send">topaz</button></form>`;
window.warnings = [];
console.warn = (text) => void warnings.push(`${text}`);

let sdk;
window.start = async ({ which, sink, definition, original = "drop", lifetime = "100", day, period, given, bare = false }) => {
  used = bare ? BARE : hooks;
  document.getElementById("page").innerHTML = PAGE;
  sdk = SDKS[which];
  clock = given?.clock ?? clock;
  if (given?.still) window.setInterval = () => 0;
  const { event, property } = sdk;
  const declared = { ...metric({ definition, original, event, property }), ...(period ? { period } : {}) };
  reports = await Reports.open({ budget: { lifetime, day }, name: which, now: () => new Date(clock), metrics: { plan: declared } });
  await sdk.start(sink, given);
};
/** Events of the metric, `each` on each of `days` days, then the next morning. */
window.days = async (days, each, plans, extra = 1, flush = true) => {
  for (let day = 0; day < days; day++) {
    for (let i = 0; i < each; i++) await sdk.choose(plans[i % plans.length], i);
    for (let i = 0; i < extra; i++) await sdk.others(plans[0] ?? "none", i);
    await reports.queue;
    clock += DAY;
    await reports.turn();
    if (flush) await sdk.flush();
  }
  return { balance: await reports.budget.balance(), refused: [...reports.refused] };
};
window.pass = (days) => void (clock += days * DAY);
window.choose = (plan) => sdk.choose(plan, 0);
window.others = () => sdk.others("none", 9);
window.turn = async (days = 0) => {
  clock += days * DAY;
  await reports.turn();
  await sdk.flush();
};
window.stored = async () => JSON.stringify(await reports.within(async (_, entries) => entries.map(({ report, ...entry }) => ({ ...entry, bytes: report?.length }))));
window.declare = (metrics, options = {}) => Reports.open({ budget: { lifetime: "4" }, name: "declared", metrics, ...options }).then(() => "opened", (error) => `${error.name}: ${error.message}`);
Object.assign(window, { posthog, trackSelfDescribingEvent, trace, ROOT_CONTEXT, SDKS, ORG });
/** The sender of reports, which fails after they have left. */
window.failing = (sent) => {
  const send = reports.send;
  reports.send = async (report) => {
    sent.push(report.report);
    await send(report);
    if (window.fails) throw new Error("no receipt");
  };
};
window.reports_ = () => reports;
window.ready = true;
