// Spans and metrics of OpenTelemetry, out of the events of passport-oauth-app: see events.md. Names and units of HTTP requests
// follow the semantic conventions: https://opentelemetry.io/docs/specs/semconv/http/
import { subscribe } from 'node:diagnostics_channel';
import { metrics, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';

const meter = metrics.getMeter('passport-oauth-app');
const tracer = trace.getTracer('passport-oauth-app');

/** Bounds of the conventions, in seconds. */
const advice = {
  explicitBucketBoundaries: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
};
const logins = meter.createCounter('oauth_app.logins');
const grantsLost = meter.createCounter('oauth_app.grants_lost');
const tokensReused = meter.createCounter('oauth_app.refresh_tokens_reused');
const leasesLost = meter.createCounter('oauth_app.leases_lost');
const refreshDuration = meter.createHistogram('oauth_app.refresh.duration', { unit: 's', advice });
const lockWait = meter.createHistogram('oauth_app.refresh.lock_wait', { unit: 's', advice });
const unsavedAge = meter.createHistogram('oauth_app.refresh.unsaved_age', { unit: 's', advice });
const requestDuration = meter.createHistogram('http.client.request.duration', { unit: 's', advice });

subscribe('passport-oauth-app:login', (/** @type {any} */ { strategy, outcome, reason = 'none' }) => {
  logins.add(1, { strategy, outcome, reason });
});

subscribe('passport-oauth-app:grant-lost', (/** @type {any} */ { strategy, reason }) => {
  grantsLost.add(1, { strategy, reason });
});

subscribe(
  'passport-oauth-app:refresh',
  (/** @type {any} */ { strategy, grantId, trigger, outcome, reason, durationMs, ...event }) => {
    if (outcome === 'saved') {
      unsavedAge.record(durationMs / 1000, { strategy });
      return;
    }
    const error = outcome === 'failed' ? { 'error.type': reason } : {};
    refreshDuration.record(durationMs / 1000, { strategy, trigger, outcome, ...error });
    if (event.lockWaitMs !== undefined) lockWait.record(event.lockWaitMs / 1000, { strategy });
    if (event.lostLease) leasesLost.add(1, { strategy });
    if (event.reused) tokensReused.add(1, { strategy });
    record('oauth_app.refresh', SpanKind.INTERNAL, durationMs, {
      'oauth_app.strategy': strategy,
      'oauth_app.grant_id': grantId,
      'oauth_app.trigger': trigger,
      'oauth_app.outcome': outcome,
      ...error,
    });
  },
);

subscribe(
  'passport-oauth-app:api',
  (/** @type {any} */ { strategy, grantId, method, origin, path, status, reason, attempts, durationMs }) => {
    // No request was sent.
    if (origin === undefined) return;
    const { hostname, port, protocol } = new URL(origin);
    const request = {
      'http.request.method': method,
      'server.address': hostname,
      'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
      ...(status === undefined ? {} : { 'http.response.status_code': status }),
      ...(reason === undefined ? {} : { 'error.type': String(status ?? reason) }),
    };
    requestDuration.record(durationMs / 1000, request);
    record(method, SpanKind.CLIENT, durationMs, {
      ...request,
      ...(attempts > 1 ? { 'http.request.resend_count': attempts - 1 } : {}),
      'url.path': path,
      'oauth_app.strategy': strategy,
      'oauth_app.grant_id': grantId ?? '',
    });
  },
);

/**
 * Records a span that has just ended.
 *
 * @param {string} name
 * @param {SpanKind} kind
 * @param {number} durationMs
 * @param {Record<string, string | number>} attributes
 */
function record(name, kind, durationMs, attributes) {
  const endTime = Date.now();
  const span = tracer.startSpan(name, { kind, startTime: endTime - durationMs, attributes });
  if (attributes['error.type'] !== undefined)
    span.setStatus({ code: SpanStatusCode.ERROR, message: String(attributes['error.type']) });
  span.end(endTime);
}
