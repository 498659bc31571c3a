import { Advice } from '../advice/advice.js';
import { LoopGuard } from '../advice/loop-guard.js';
import { ABSOLUTE_URL, asRouted } from '../session/visit.js';
import { authorizationRequest, furtherParams } from './begin-login.js';
import type { LoginContext, LoginRuntime } from './login-context.js';
import { PendingLogins } from './pending-logins.js';
import { UsedLogins } from './used-logins.js';

/** Returns what the logins of a strategy share, created by the first of them. */
export function loginsOf(runtime: LoginRuntime): LoginContext {
  runtime.logins ??= createLogins(runtime);
  return runtime.logins;
}

function createLogins(runtime: LoginRuntime): LoginContext {
  const { settings, service, openStrategy, grants, clients, returns } = runtime;
  const { name, callbackURL, clock, scope, authorizationParams: params } = settings;
  // A path such as `callback` without a slash is resolved against that of each request.
  const isFixed = ABSOLUTE_URL.test(callbackURL) || callbackURL.startsWith('/');
  return {
    ...runtime,
    get popups() {
      return runtime.popups;
    },
    advice: new Advice(openStrategy, grants, clients),
    loops: new LoopGuard(returns),
    pendingLogins: new PendingLogins(settings, service),
    usedLogins: new UsedLogins({ namespace: encodeURIComponent(`${name}.${service}`), clock }),
    defaultRequest: authorizationRequest(settings, callbackURL, scope),
    defaultParams: typeof params === 'function' ? undefined : furtherParams(params),
    callbackPath: isFixed ? asRouted(new URL(callbackURL, 'http://relative.invalid').pathname) : undefined,
  };
}
