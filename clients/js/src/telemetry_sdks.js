// The hooks of telemetry SDKs. Each lets pass what is on a list, and nothing else: reports with their own members; the event of a
// metric, if at all, with the properties that it allows; other events of the page with their own properties. What an SDK adds to
// each event by itself may hold the answer: addresses, titles, contexts, person properties, super properties, counters of events.

import { picked, warned } from "./telemetry.js";

/** @typedef {import("./telemetry.js").Reports} Reports */
/** @typedef {import("./telemetry.js").Report} Report */
/** @typedef {import("./telemetry.js").Properties} Properties */

/** The name of a report's event. */
const REPORT = "ldp_report";
const MEMBERS = ["metric", "period", "digest", "key", "report"];

/**
 * What of an event may be sent; null: nothing.
 * @param {Reports} reports
 * @param {string | undefined} event
 * @param {Properties | undefined} properties
 * @param {() => Properties | null} others what of an event that no metric is about
 */
function passed(reports, event, properties, others) {
  if (event === REPORT) return picked(properties, MEMBERS);
  const seen = reports.seen(event, properties);
  return seen === undefined ? others() : seen;
}

/** @param {Reports} reports @param {Properties} [properties] of an event that no metric is about */
const unguarded = (reports, properties = {}) => reports.without({ ...properties });

// -- PostHog -----------------------------------------------------------------------------------------------------------

const POSTHOG_NEEDS = ["token", "distinct_id", "$lib", "$lib_version", "$device_id", "$anon_distinct_id"];
/** PostHog's own events that are sent; autocapture, heat maps, session replay, errors and web vitals read the page. */
const POSTHOG_OWN = ["$pageview", "$pageleave", "$identify", "$opt_in"];

/**
 * `posthog.init(key, { before_send: forPostHog(reports, () => posthog), advanced_disable_flags: true })`.
 * @param {Reports} reports
 * @param {() => any} posthog
 * @returns {(event: any) => any}
 */
export function forPostHog(reports, posthog) {
  reports.through((report) => {
    if (!posthog()?.capture(REPORT, { ...report }, { send_instantly: true })) throw new Error("PostHog captures nothing now");
  });
  return (event) => {
    const sdk = posthog();
    if (!event || !sdk) return null;
    if (!sdk.config?.advanced_disable_flags) {
      warned("PostHog sends nothing until `advanced_disable_flags` is true: requests for flags hold person properties, and turn on session replay");
      return null;
    }
    const { uuid, event: name, timestamp, properties = {} } = event;
    const kept = passed(reports, name, properties, () => {
      if (name.startsWith("$")) return POSTHOG_OWN.includes(name) ? {} : null;
      // Super properties are merged in already, and those of a visit; PostHog's own begin with a dollar.
      const added = (/** @type {string} */ each) => each.startsWith("$") || sdk.get_property(each) !== undefined || sdk.getSessionProperty(each) !== undefined;
      return unguarded(reports, picked(properties, Object.keys(properties).filter((each) => !added(each))));
    });
    if (!kept) return kept;
    // Otherwise PostHog turns it on after the first call of the page about a person or a group, such as the one that tells a choice.
    const { person_profiles: profiles } = sdk.config;
    const person = profiles === "always" || (profiles !== "never" && properties.$is_identified === true);
    return { uuid, event: name, timestamp, properties: { ...kept, ...picked(properties, POSTHOG_NEEDS), $process_person_profile: person } };
  };
}

// -- Snowplow ----------------------------------------------------------------------------------------------------------

/** The fields of a payload that are sent: what it is, whose, when, and its own data. No address, title, context or visit. */
const SNOWPLOW_NEEDS = ["e", "eid", "tv", "tna", "aid", "p", "dtm", "ttm", "duid", "uid", "ue_px", "ue_pr"];
const STRUCTURED = { category: "se_ca", action: "se_ac", label: "se_la", property: "se_pr", value: "se_va" };
const UNSTRUCTURED = "iglu:com.snowplowanalytics.snowplow/unstruct_event/jsonschema/1-0-0";
/** Links, forms, buttons, errors and media: events that Snowplow's plugins read from the page. */
const READ_FROM_PAGE = /^iglu:com\.snowplowanalytics\./;

/**
 * `newTracker("sp", address, { plugins: [forSnowplow(reports, { schema, track: trackSelfDescribingEvent })] })`. An event is known by
 * the name in its schema, a structured one by its action.
 * @param {Reports} reports
 * @param {{ schema: string, track: (event: any, trackers?: string[]) => any }} options `schema` of a report: an Iglu address of your own
 */
export function forSnowplow(reports, { schema, track }) {
  const fields = /** @type {[string, string][]} */ (Object.entries(STRUCTURED));
  /** @param {any} payload which the tracker sends as it is afterwards */
  const reduce = (payload) => {
    const all = { ...payload };
    for (const name of Object.keys(payload)) if (!SNOWPLOW_NEEDS.includes(name)) delete payload[name];
    if (all.e === "ue") {
      const inner = JSON.parse(all.ue_pr ?? fromBase64(all.ue_px)).data;
      if (READ_FROM_PAGE.test(inner.schema)) return false;
      const event = inner.schema === schema ? REPORT : inner.schema.split("/")[1];
      const data = passed(reports, event, inner.data, () => unguarded(reports, inner.data));
      const text = JSON.stringify({ schema: UNSTRUCTURED, data: { schema: inner.schema, data } });
      if (all.ue_pr) payload.ue_pr = text;
      else payload.ue_px = toBase64(text);
      return data !== null;
    }
    if (all.e !== "se") return all.e === "pv"; // no page pings, which hold how far a page was scrolled, nor transactions
    const named = Object.fromEntries(fields.filter(([, field]) => field in all).map(([name, field]) => [name, all[field]]));
    const data = passed(reports, named.action, named, () => unguarded(reports, named));
    if (data) for (const [name, field] of fields) if (name in data || name === "action") payload[field] = all[field];
    return data !== null;
  };
  return {
    /** @param {any} tracker */
    activateBrowserPlugin(tracker) {
      reports.through((data) => track({ event: { schema, data } }, tracker?.id && [tracker.id]));
    },
    /** @param {any} payload @returns {boolean} the tracker sends what a filter throws at */
    filter(payload) {
      try {
        return reduce(payload);
      } catch (error) {
        warned(`an event of Snowplow could not be read, and is not sent: ${/** @type {Error} */ (error).name}`);
        return false;
      }
    },
  };
}

/** @param {string} text of URL-safe Base64 */
const fromBase64 = (text) => new TextDecoder().decode(Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0)));
/** @param {string} text */
const toBase64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

// -- OpenFeature -------------------------------------------------------------------------------------------------------

/**
 * `OpenFeature.addHooks(forOpenFeature(reports, send))`: which variant of a flag a device got. The event is the flag's key, and its
 * properties are `variant` and `value`.
 * @param {Reports} reports
 * @param {(report: Report) => any} send which throws, or rejects, if the report was not taken
 */
export function forOpenFeature(reports, send) {
  reports.through(send);
  return {
    /** @param {Readonly<{ flagKey: string }>} context @param {Readonly<{ variant?: string, value: any }>} details */
    after({ flagKey }, { variant, value }) {
      reports.seen(flagKey, { variant: variant ?? `${value}`, value });
    },
  };
}

// -- OpenTelemetry -----------------------------------------------------------------------------------------------------

/** Where a context keeps its span. */
const SPAN = Symbol.for("OpenTelemetry Context Key SPAN");

/** Spans below the span of a metric: what is sent of them, or within them, would name it. @type {WeakSet<object>} */
const HIDDEN = new WeakSet();
/** @param {Reports} reports @param {string | undefined} name of an event, a span or a log */
const isMetric = (reports, name) => reports.metrics.some(({ event }) => event === name);
/** @param {Reports} reports @param {any} span */
const isHidden = (reports, span) => HIDDEN.has(span) || isMetric(reports, span.name);

/** @param {any} of @param {Properties} values a view with other values; exporters read a span or record by its members */
const view = (of, values) => Object.create(of, Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value, enumerable: true }])));

/**
 * `new BasicTracerProvider({ spanProcessors: [forSpans(reports, new BatchSpanProcessor(exporter), emit)] })`. Spans below the span of
 * a metric are not sent either, nor logs within it: they name it.
 * @param {Reports} reports
 * @param {any} processor which exports
 * @param {(report: Report) => any} emit such as a logger's, with the event name `ldp_report`
 */
export function forSpans(reports, processor, emit) {
  reports.through(emit);
  const inner = (/** @type {any[]} */ parts = []) => parts.map((part) => ({ ...part, attributes: reports.without(part.attributes) }));
  /** @type {WeakMap<object, string>} the names with which spans of metrics began, which code may change */
  const names = new WeakMap();
  return {
    /** @param {any} span @param {any} context */
    onStart(span, context) {
      const parent = context?.getValue?.(SPAN);
      if (isMetric(reports, span.name)) names.set(span, span.name);
      if (parent && isHidden(reports, parent)) HIDDEN.add(span);
      else processor.onStart(span, context);
    },
    /** @param {any} span */
    onEnd(span) {
      const name = names.get(span) ?? span.name;
      const own = name === REPORT || names.has(span) || isMetric(reports, span.name);
      const kept = passed(reports, name, span.attributes, () => unguarded(reports, span.attributes));
      if (!kept || HIDDEN.has(span)) return;
      if (!own) return processor.onEnd(view(span, { attributes: kept, events: inner(span.events), links: inner(span.links) }));
      const { traceId, spanId, traceFlags } = span.spanContext();
      const nothing = { events: [], links: [], status: { code: 0 }, parentSpanContext: undefined, droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 };
      const when = { endTime: span.startTime, duration: [0, 0] };
      processor.onEnd(view(span, { name, attributes: kept, ...nothing, ...when, spanContext: () => ({ traceId, spanId, traceFlags }) }));
    },
    forceFlush: () => processor.forceFlush(),
    shutdown: () => processor.shutdown(),
  };
}

/**
 * `new LoggerProvider({ processors: [forLogs(reports, new BatchLogRecordProcessor(options), emit)] })`. A record is known by its
 * event name.
 * @param {Reports} reports
 * @param {any} processor which exports
 * @param {(report: Report) => any} emit such as a logger's, with the event name `ldp_report`
 */
export function forLogs(reports, processor, emit) {
  reports.through(emit);
  return {
    /** @param {any} record @param {any} [context] */
    onEmit(record, context) {
      const name = record.eventName ?? record.attributes?.["event.name"]; // as it was before events had a name
      const own = name === REPORT || isMetric(reports, name);
      const kept = passed(reports, name, record.attributes, () => unguarded(reports, record.attributes));
      const within = context?.getValue?.(SPAN);
      if (!kept || (!own && within && isHidden(reports, within))) return;
      const nothing = !own ? { body: reports.without(record.body) } : { body: undefined, spanContext: undefined, severityText: undefined, severityNumber: undefined, droppedAttributesCount: 0 };
      processor.onEmit(view(record, { attributes: kept, ...nothing }), context);
    },
    /** @param {any} [options] */
    enabled: (options) => processor.enabled?.(options) ?? true,
    forceFlush: () => processor.forceFlush(),
    shutdown: () => processor.shutdown(),
  };
}
