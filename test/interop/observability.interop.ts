import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { metrics, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { clock, loggedIn, projects, world } from '../support/one-world.js';
import { TroubledStore } from '../support/troubled-store.js';

const HOURS = 3600;

/** Runs the file that docs/events.md says to copy. */
async function importExample(): Promise<void> {
  const code = await readFile(new URL('../../docs/telemetry.js', import.meta.url), 'utf8');
  // Below node_modules, Node runs it as it is and finds the packages that it imports.
  const folder = fileURLToPath(new URL('node_modules/.cache/observability/', import.meta.url));
  await mkdir(folder, { recursive: true });
  await writeFile(`${folder}telemetry.mjs`, code);
  await import(pathToFileURL(`${folder}telemetry.mjs`).href);
}

test('docs/telemetry.js turns events into spans and metrics', async () => {
  const spans = new InMemorySpanExporter();
  const points = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: points, exportIntervalMillis: 3_600_000 });
  const meters = new MeterProvider({ readers: [reader] });
  metrics.setGlobalMeterProvider(meters);
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
  await importExample();

  const store = new TroubledStore();
  await loggedIn({ strategy: { tokenStore: store } });
  const ben = new Browser();
  await world.logIn(ben, '2');
  await projects();
  clock.advance(2 * HOURS);
  world.service.fail('token', { status: 500 });
  await projects();
  clock.advance(31);
  store.fail('update');
  await projects();
  store.recover();
  world.service.revoke('2');
  await ben.visit(`${world.url}/projects`);
  await world.strategy.close();
  await reader.forceFlush();

  const ended = spans.getFinishedSpans();
  expect(ended.map(({ name, attributes }) => `${name} ${attributes['oauth_app.outcome'] ?? ''}`.trim())).toEqual([
    'GET',
    'oauth_app.refresh failed',
    'oauth_app.refresh unsaved',
    'GET',
    'oauth_app.refresh failed',
  ]);
  expect(ended[1]?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'ERR_SERVICE_UNAVAILABLE' });
  const { hostname, port } = new URL(world.service.baseUrl);
  const request = {
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'server.address': hostname,
    'server.port': Number(port),
  };
  expect(ended[0]?.attributes).toMatchObject({ ...request, 'url.path': '/projects' });
  expect(ended[0]?.attributes).not.toHaveProperty('error.type');
  const recorded = points.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
  const names = new Set(recorded.map(({ descriptor }) => descriptor.name));
  for (const name of ['logins', 'grants_lost', 'refresh.duration', 'refresh.unsaved_age'])
    expect(names).toContain(`oauth_app.${name}`);
  const { descriptor, dataPoints } =
    recorded.find(({ descriptor: { name } }) => name === 'http.client.request.duration') ?? {};
  const calls = ended
    .filter(({ name }) => name === 'GET')
    .map(({ duration: [whole, nanoseconds] }) => whole + nanoseconds / 1e9);
  const seconds = calls.reduce((sum, each) => sum + each);
  expect(descriptor?.unit).toBe('s');
  expect(dataPoints?.[0]?.attributes).toEqual(request);
  expect(dataPoints?.[0]?.value).toMatchObject({ count: 2, sum: expect.closeTo(seconds, 3) });
  await meters.shutdown();
});
