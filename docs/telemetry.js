// Spans and metrics of OpenTelemetry, out of the events of passport-oauth-app: see events.md.
import { subscribe } from 'node:diagnostics_channel';
import { metrics, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';

const meter = metrics.getMeter('passport-oauth-app');
const tracer = trace.getTracer('passport-oauth-app');

const logins = meter.createCounter('oauth_app.logins');
const grantsLost = meter.createCounter('oauth_app.grants_lost');
const tokensReused = meter.createCounter('oauth_app.refresh_tokens_reused');
const leasesLost = meter.createCounter('oauth_app.leases_lost');
const refreshDuration = meter.createHistogram('oauth_app.refresh.duration', { unit: 'ms' });
const lockWait = meter.createHistogram('oauth_app.refresh.lock_wait', { unit: 'ms' });
const unsavedAge = meter.createHistogram('oauth_app.refresh.unsaved_age', { unit: 'ms' });
const callDuration = meter.createHistogram('oauth_app.api.duration', { unit: 'ms' });

subscribe('passport-oauth-app:login', (/** @type {any} */ { strategy, outcome, reason = 'none' }) => {
  logins.add(1, { strategy, outcome, reason });
});

subscribe('passport-oauth-app:grant-lost', (/** @type {any} */ { strategy, reason }) => {
  grantsLost.add(1, { strategy, reason });
});

subscribe(
  'passport-oauth-app:refresh',
  (/** @type {any} */ { strategy, grantId, trigger, outcome, reason = 'none', ...event }) => {
    if (outcome === 'saved') {
      unsavedAge.record(event.durationMs, { strategy });
      return;
    }
    refreshDuration.record(event.durationMs, { strategy, trigger, outcome, reason });
    if (event.lockWaitMs !== undefined) lockWait.record(event.lockWaitMs, { strategy });
    if (event.lostLease) leasesLost.add(1, { strategy });
    if (event.reused) tokensReused.add(1, { strategy });
    record('oauth_app.refresh', event.durationMs, outcome === 'failed' ? reason : undefined, {
      'oauth_app.strategy': strategy,
      'oauth_app.grant_id': grantId,
      'oauth_app.trigger': trigger,
      'oauth_app.outcome': outcome,
    });
  },
);

subscribe(
  'passport-oauth-app:api',
  (/** @type {any} */ { strategy, grantId, method, path, status, reason, attempts, durationMs }) => {
    callDuration.record(durationMs, { strategy, method, status: status ?? 0 });
    record(`oauth_app.api ${method}`, durationMs, reason, {
      'oauth_app.strategy': strategy,
      'oauth_app.grant_id': grantId ?? '',
      'oauth_app.attempts': attempts,
      'http.request.method': method,
      'http.response.status_code': status ?? 0,
      'url.path': path,
    });
  },
);

/**
 * Records a span that has just ended.
 *
 * @param {string} name
 * @param {number} durationMs
 * @param {string | undefined} error
 * @param {Record<string, string | number>} attributes
 */
function record(name, durationMs, error, attributes) {
  const endTime = Date.now();
  const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, startTime: endTime - durationMs, attributes });
  if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
  span.end(endTime);
}
