import { integer, list, record, refuse, text } from './checks.js';
import type { Secrets } from './secrets.js';

/**
 * A registered OAuth application.
 *
 * @see RFC 6749, 2
 */
export interface Application {
  readonly clientID: string;
  readonly clientSecret: string;
  /** Display name on the consent page. */
  readonly name: string;
  /** Compared character by character with `redirect_uri`. */
  readonly redirectUrls: readonly string[];
}

/** Data that registers an application. Everything but the redirect URLs is generated if left out. */
export interface Registration {
  readonly clientID?: string | undefined;
  readonly clientSecret?: string | undefined;
  readonly name?: string | undefined;
  /** Absolute, without a fragment. At least one. */
  readonly redirectUrls: readonly string[];
}

/** Default application. */
export const sampleApplication: Application = {
  clientID: 'sample-client-id',
  clientSecret: 'sample-client-secret',
  name: 'Sample application',
  redirectUrls: ['http://localhost:3000/callback'],
};

/** Registered applications. */
export class Applications {
  readonly #byID = new Map<string, Application>();
  readonly #secrets: Secrets;

  constructor(secrets: Secrets) {
    this.#secrets = secrets;
  }

  find(clientID: string): Application | undefined {
    return this.#byID.get(clientID);
  }

  all(): IterableIterator<Application> {
    return this.#byID.values();
  }

  /** Adds the redirect URLs of an application from an earlier start. Its secret does not replace one that is set now. */
  restore(application: unknown): void {
    const { clientSecret, ...registration } = checkedRegistration(application, 'state');
    const isKnown = registration.clientID !== undefined && this.#byID.has(registration.clientID);
    this.register(isKnown ? registration : { ...registration, clientSecret }, 'state');
  }

  /**
   * Registers a new application, or adds redirect URLs to a known one, and returns it.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the registration is malformed, or contradicts a known application's secret.
   */
  register(registration: unknown, option = 'register()'): Application {
    const given = checkedRegistration(registration, option);
    const known = given.clientID === undefined ? undefined : this.#byID.get(given.clientID);
    const application = known === undefined ? this.#generated(given) : extended(known, given, option);
    this.#byID.set(application.clientID, application);
    return application;
  }

  #generated(given: Registration): Application {
    const clientID = given.clientID ?? `client-${this.#secrets.make().slice(0, 12)}`;
    return Object.freeze({
      clientID,
      clientSecret: given.clientSecret ?? this.#secrets.make(),
      name: given.name ?? clientID,
      redirectUrls: Object.freeze([...new Set(given.redirectUrls)]),
    });
  }
}

function extended(known: Application, given: Registration, option: string): Application {
  if (given.clientSecret !== undefined && given.clientSecret !== known.clientSecret) {
    refuse(`${option}.clientSecret`, 'left out or the one that this client ID has already', given.clientSecret);
  }
  return Object.freeze({
    ...known,
    name: given.name ?? known.name,
    redirectUrls: Object.freeze([...new Set([...known.redirectUrls, ...given.redirectUrls])]),
  });
}

function checkedRegistration(registration: unknown, option: string): Registration {
  const given = record(option, registration, ['clientID', 'clientSecret', 'name', 'redirectUrls']);
  const optional = (key: string) => (given[key] === undefined ? undefined : text(`${option}.${key}`, given[key]));
  const urls = list(`${option}.redirectUrls`, given.redirectUrls, { min: 1 });
  return {
    clientID: optional('clientID'),
    clientSecret: optional('clientSecret'),
    name: optional('name'),
    redirectUrls: urls.map((url, index) => redirectUrl(`${option}.redirectUrls[${index}]`, url)),
  };
}

// RFC 6749, 3.1.2, forbids a fragment. A Location header allows ASCII only. A script or data URL would run in the service's page.
function redirectUrl(option: string, value: unknown): string {
  const url = text(option, value);
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const harmful = /^(javascript|data|vbscript|blob|about|file):$/;
  const isAscii = /^[\x21-\x7e]+$/.test(url);
  if (parsed === undefined || !isAscii || url.includes('#') || harmful.test(parsed.protocol)) {
    refuse(option, 'an absolute URL in ASCII without a fragment, such as http://localhost:3000/callback', value);
  }
  integer(`${option} (length)`, url.length, 1, 2000);
  return url;
}
