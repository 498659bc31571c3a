import { integer, list, record, refuse, text } from './checks.js';
import type { Secrets } from './secrets.js';

/**
 * An OAuth application as the service knows it.
 *
 * @see service.md section 2, OAuth application
 */
export interface Application {
  readonly clientID: string;
  readonly clientSecret: string;
  /** What the consent page calls it. */
  readonly name: string;
  /** Compared character by character with `redirect_uri`. */
  readonly redirectUrls: readonly string[];
}

/** What is told of an application to register it; whatever is left out is made up, except the redirect URLs. */
export interface Registration {
  readonly clientID?: string | undefined;
  readonly clientSecret?: string | undefined;
  readonly name?: string | undefined;
  /** Absolute, with no fragment. One at least. */
  readonly redirectUrls: readonly string[];
}

/** Where an application under development is expected to run. */
const sampleRedirectUrl = 'http://localhost:3000/callback';

/** The application that stands ready when none is named. */
export const sampleApplication: Application = {
  clientID: 'sample-client-id',
  clientSecret: 'sample-client-secret',
  name: 'Sample application',
  redirectUrls: [sampleRedirectUrl],
};

/** The applications that are registered with the service. */
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

  /**
   * The application as registered: a new one, or a known one with these redirect URLs added.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the registration is malformed, or contradicts a known application's secret.
   */
  register(registration: unknown, option = 'register()'): Application {
    const told = checked(registration, option);
    const known = told.clientID === undefined ? undefined : this.#byID.get(told.clientID);
    const application = known === undefined ? this.#invent(told) : extended(known, told, option);
    this.#byID.set(application.clientID, application);
    return application;
  }

  #invent(told: Registration): Application {
    const clientID = told.clientID ?? `client-${this.#secrets.make().slice(0, 12)}`;
    return Object.freeze({
      clientID,
      clientSecret: told.clientSecret ?? this.#secrets.make(),
      name: told.name ?? clientID,
      redirectUrls: Object.freeze([...new Set(told.redirectUrls)]),
    });
  }
}

function extended(known: Application, told: Registration, option: string): Application {
  if (told.clientSecret !== undefined && told.clientSecret !== known.clientSecret) {
    refuse(`${option}.clientSecret`, 'left out or the one that this client ID has already', told.clientSecret);
  }
  return Object.freeze({
    ...known,
    name: told.name ?? known.name,
    redirectUrls: Object.freeze([...new Set([...known.redirectUrls, ...told.redirectUrls])]),
  });
}

function checked(registration: unknown, option: string): Registration {
  const told = record(option, registration, ['clientID', 'clientSecret', 'name', 'redirectUrls']);
  const optional = (key: string) => (told[key] === undefined ? undefined : text(`${option}.${key}`, told[key]));
  const urls = list(`${option}.redirectUrls`, told.redirectUrls, { min: 1 });
  return {
    clientID: optional('clientID'),
    clientSecret: optional('clientSecret'),
    name: optional('name'),
    redirectUrls: urls.map((url, index) => redirectUrl(`${option}.redirectUrls[${index}]`, url)),
  };
}

// A fragment may not stand in a redirect URL (RFC 6749, 3.1.2), nothing but ASCII in a Location header, and a script or data URL would
// run in the service's page.
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
