/**
 * `posthog.init(key, { before_send: forPostHog(reports, () => posthog), advanced_disable_flags: true })`.
 * @param {Reports} reports
 * @param {() => any} posthog
 * @returns {(event: any) => any}
 */
export function forPostHog(reports: Reports, posthog: () => any): (event: any) => any;
/**
 * `newTracker("sp", address, { plugins: [forSnowplow(reports, { schema, track: trackSelfDescribingEvent })] })`. An event is known by
 * the name in its schema, a structured one by its action.
 * @param {Reports} reports
 * @param {{ schema: string, track: (event: any, trackers?: string[]) => any }} options `schema` of a report: an Iglu address of your own
 */
export function forSnowplow(reports: Reports, { schema, track }: {
    schema: string;
    track: (event: any, trackers?: string[]) => any;
}): {
    /** @param {any} tracker */
    activateBrowserPlugin(tracker: any): void;
    /** @param {any} payload @returns {boolean} the tracker sends what a filter throws at */
    filter(payload: any): boolean;
};
/**
 * `OpenFeature.addHooks(forOpenFeature(reports, send))`: which variant of a flag a device got. The event is the flag's key, and its
 * properties are `variant` and `value`.
 * @param {Reports} reports
 * @param {(report: Report) => any} send which throws, or rejects, if the report was not taken
 */
export function forOpenFeature(reports: Reports, send: (report: Report) => any): {
    /** @param {Readonly<{ flagKey: string }>} context @param {Readonly<{ variant?: string, value: any }>} details */
    after({ flagKey }: Readonly<{
        flagKey: string;
    }>, { variant, value }: Readonly<{
        variant?: string;
        value: any;
    }>): void;
};
/**
 * `new BasicTracerProvider({ spanProcessors: [forSpans(reports, new BatchSpanProcessor(exporter), emit)] })`. Spans below the span of
 * a metric are not sent either, nor logs within it: they name it.
 * @param {Reports} reports
 * @param {any} processor which exports
 * @param {(report: Report) => any} emit such as a logger's, with the event name `ldp_report`
 */
export function forSpans(reports: Reports, processor: any, emit: (report: Report) => any): {
    /** @param {any} span @param {any} context */
    onStart(span: any, context: any): void;
    /** @param {any} span */
    onEnd(span: any): any;
    forceFlush: () => any;
    shutdown: () => any;
};
/**
 * `new LoggerProvider({ processors: [forLogs(reports, new BatchLogRecordProcessor(options), emit)] })`. A record is known by its
 * event name.
 * @param {Reports} reports
 * @param {any} processor which exports
 * @param {(report: Report) => any} emit such as a logger's, with the event name `ldp_report`
 */
export function forLogs(reports: Reports, processor: any, emit: (report: Report) => any): {
    /** @param {any} record @param {any} [context] */
    onEmit(record: any, context?: any): void;
    /** @param {any} [options] */
    enabled: (options?: any) => any;
    forceFlush: () => any;
    shutdown: () => any;
};
export type Reports = import("./telemetry.js").Reports;
export type Report = import("./telemetry.js").Report;
export type Properties = import("./telemetry.js").Properties;
