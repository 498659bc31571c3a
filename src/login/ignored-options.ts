/** Options that Passport, its wrappers, or this strategy read. */
const READ = new Set([
  ...['assignProperty', 'authInfo', 'callback', 'callbackURL', 'defaultStrategy', 'failWithError', 'failureFlash'],
  ...['failureMessage', 'failureRedirect', 'keepSessionInfo', 'pauseStream', 'property', 'scope', 'session'],
  ...['successFlash', 'successMessage', 'successRedirect', 'successReturnToOrRedirect', 'userProperty'],
]);

const ADVICE: Readonly<Record<string, string>> = {
  state: 'The strategy always creates and checks the state itself. To return to a page, link to /login?returnTo=/page.',
};

/** Warns of options of `passport.authenticate` that are ignored: once each. */
export class IgnoredOptions {
  readonly #warned = new Set<string>();

  /** Warns of each option that nothing reads. */
  warn(options: object): void {
    for (const [name, value] of Object.entries(options)) {
      if (value === undefined || READ.has(name) || this.#warned.has(name) || !/^\w{1,64}$/.test(name)) continue;
      this.#warned.add(name);
      const advice = ADVICE[name] ?? 'Parameters of the authorization request are set in new Strategy(options).';
      process.emitWarning(`passport.authenticate: this strategy ignores the option ${name}. ${advice}`, {
        code: 'ERR_IGNORED_OPTION',
      });
    }
  }
}
