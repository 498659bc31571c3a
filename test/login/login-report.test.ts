import { expect, onTestFinished, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.js';
import { LoginReport } from '../../src/login/login-report.js';
import { EventLog } from '../support/event-log.js';

test.for<[what: string, report: (report: LoginReport) => void, event: object]>([
  [
    'that has succeeded',
    (report) => report.publish('success', { grantId: 'grant', scope: ['tm'] }),
    { outcome: 'success', grantId: 'grant', scope: ['tm'] },
  ],
  ['that was declined', (report) => report.publish('declined'), { outcome: 'declined' }],
  [
    'that has failed',
    (report) => report.publishError(new ConfigurationError('Its own', { code: 'ERR_NO_SESSION' })),
    { outcome: 'error', reason: 'ERR_NO_SESSION' },
  ],
  [
    'that the application has ended',
    (report) => report.publishError(Object.assign(new Error('Its own'), { code: 'ERR_OTHER' })),
    { outcome: 'error', reason: 'ERR_APPLICATION' },
  ],
])('a login %s is published once', ([, publish, event]) => {
  const log = new EventLog('login');
  onTestFinished(() => log.stop());
  const report = new LoginReport('oauth-app');
  publish(report);
  report.publish('refused');
  report.publishError(new Error('Another one'));
  const durationMs = expect.toSatisfy((ms: number) => ms >= 0 && ms <= performance.now());
  expect(log.events).toEqual([{ name: 'login', event: { strategy: 'oauth-app', durationMs, ...event } }]);
});
