import type { Advice } from './advice.js';

/** Options that Passport, its wrappers, or this strategy read. */
const READ_OPTIONS = new Set([
  ...['assignProperty', 'authInfo', 'authorizationParams', 'callback', 'callbackURL', 'defaultStrategy'],
  ...['failWithError', 'failureFlash', 'failureMessage', 'failureRedirect', 'keepSessionInfo', 'pauseStream'],
  ...['property', 'scope', 'session', 'state', 'successFlash', 'successMessage', 'successRedirect'],
  ...['successReturnToOrRedirect', 'userProperty'],
]);

/** Warns, once each, of options of `passport.authenticate` that nothing reads. */
export function warnOfIgnoredOptions(options: object, advice: Advice): void {
  for (const [name, value] of Object.entries(options)) {
    if (READ_OPTIONS.has(name) || value === undefined || !/^\w{1,64}$/.test(name)) continue;
    const message = `passport.authenticate: this strategy ignores the option ${name}. A parameter of the authorization request is set as { authorizationParams: { ${name}: … } }.`;
    advice.warnOnce(`option ${name}`, 'ERR_IGNORED_OPTION', message);
  }
}
