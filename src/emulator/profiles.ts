import { choice, integer, isRecord, record, refuse, text } from './checks.js';

/** What becomes of a refresh token that was used before. */
export type RefreshTokenReuse = 'refuse' | 'revoke' | 'grace' | 'until-used' | 'until-refreshed';

/** The differences between services. The defaults: JSON token requests, credentials in the body, an API below `/api/v2`. */
export interface Profile {
  /** Default `/oauth/authorize`. */
  readonly authorizationPath: string;
  /** Default `/oauth/token`. */
  readonly tokenPath: string;
  /** Revocation endpoint (RFC 7009), if the service documents one. Without it, one is at `/oauth/revoke` all the same. */
  readonly revocationPath: string | undefined;
  /** Default `/api/v2`; `''` if the API is at the root. */
  readonly apiPath: string;
  /** Format of the token request: `json` (the default), or `form` as in RFC 6749. */
  readonly tokenRequest: 'json' | 'form';
  /**
   * Place of the client's credentials in the token request: `body` (the default), `basic` as in RFC 6749, 2.3.1, or `basic-raw`:
   * the header is not decoded as a form.
   */
  readonly clientAuthentication: 'body' | 'basic' | 'basic-raw';
  /** Default: a space. */
  readonly scopeSeparator: string;
  /** Refuses authorization requests without a scope. Default true. */
  readonly scopeRequired: boolean;
  /** Parameters that an authorization request must have, with their values. Default: none. */
  readonly authorizationParams: Readonly<Record<string, string>>;
  /** `response_type` may be absent, and so may `grant_type` and `redirect_uri` of a code exchange. Default false. */
  readonly impliesCodeFlow: boolean;
  /** Refresh token of a refresh response: `rotate` (the default) issues a new one, `same` repeats it, `omit` leaves it out. */
  readonly rotation: 'rotate' | 'same' | 'omit';
  /** What becomes of a used refresh token. Default `refuse`. The option `refreshTokenReuse` takes precedence. */
  readonly refreshTokenReuse: RefreshTokenReuse;
  /** Seconds until a refresh token expires. Default: never. The option `refreshTokenLifetime` takes precedence. */
  readonly refreshTokenLifetime: number | undefined;
  /** A refresh ends the former access token too. Default false. */
  readonly endsFormerAccessToken: boolean;
  /** An application has one grant at a time: a new one ends the former. Default false. */
  readonly singleGrant: boolean;
  /** Tokens expire, and come with a refresh token, only if the code exchange asks for it with `expiring=1`. Default false. */
  readonly expiringOnRequest: boolean;
  /** Header of API requests that carries the bare access token. Default: `Authorization` with `Bearer`. */
  readonly accessTokenHeader: string | undefined;
  /** Format of access tokens: `jwt` (the default) or `opaque`. */
  readonly accessToken: 'jwt' | 'opaque';
  /** Token responses have `expires_in`. Default true. */
  readonly expiresIn: boolean;
  /** Seconds; default 7200. The option `accessTokenLifetime` takes precedence. */
  readonly accessTokenLifetime: number;
  /** Status of token endpoint refusals; default 400 (401 for `invalid_client`). Some services answer with 200. */
  readonly refusalStatus: number;
  /** Body of the refusal of a refresh token; default `{ error: 'invalid_grant', error_description }`. */
  readonly refreshRefusal: Readonly<Record<string, unknown>> | undefined;
  /** Accepts tokens of organization members on the plain API host. Default true. */
  readonly plainHostForOrganizations: boolean;
}

/** All treatments of a used refresh token. */
export const reuses: readonly RefreshTokenReuse[] = ['refuse', 'revoke', 'grace', 'until-used', 'until-refreshed'];

const standard: Profile = Object.freeze({
  authorizationPath: '/oauth/authorize',
  tokenPath: '/oauth/token',
  revocationPath: undefined,
  apiPath: '/api/v2',
  tokenRequest: 'json',
  clientAuthentication: 'body',
  scopeSeparator: ' ',
  scopeRequired: true,
  authorizationParams: {},
  impliesCodeFlow: false,
  rotation: 'rotate',
  refreshTokenReuse: 'refuse',
  refreshTokenLifetime: undefined,
  endsFormerAccessToken: false,
  singleGrant: false,
  expiringOnRequest: false,
  accessTokenHeader: undefined,
  accessToken: 'jwt',
  expiresIn: true,
  accessTokenLifetime: 7200,
  refusalStatus: 400,
  refreshRefusal: undefined,
  plainHostForOrganizations: true,
});

const form = { tokenRequest: 'form', scopeRequired: false } as const;
const basic = { ...form, clientAuthentication: 'basic' } as const;
const opaque = { accessToken: 'opaque' } as const;

/** The wire formats of known services, as differences from service.md. Hosts are not part of them: all endpoints are on one origin. */
const profiles = {
  crowdin: { plainHostForOrganizations: false },
  form,
  basic,
  gitlab: { ...form, ...opaque, revocationPath: '/oauth/revoke', apiPath: '/api/v4', scopeRequired: true },
  atlassian: {
    authorizationPath: '/authorize',
    apiPath: '',
    accessToken: 'opaque',
    accessTokenLifetime: 3600,
    authorizationParams: { audience: 'api.atlassian.com', prompt: 'consent' },
  },
  linear: { ...form, ...opaque, apiPath: '', scopeSeparator: ',', accessTokenLifetime: 86_400 },
  notion: {
    ...basic,
    ...opaque,
    tokenRequest: 'json',
    authorizationPath: '/v1/oauth/authorize',
    tokenPath: '/v1/oauth/token',
    revocationPath: '/v1/oauth/revoke',
    apiPath: '/v1',
    authorizationParams: { owner: 'user' },
    expiresIn: false,
  },
  hubspot: {
    ...form,
    ...opaque,
    tokenPath: '/oauth/v3/token',
    apiPath: '',
    scopeRequired: true,
    refreshRefusal: { status: 'BAD_REFRESH_TOKEN', message: 'missing or invalid refresh token' },
    rotation: 'same',
    accessTokenLifetime: 1800,
  },
  zoom: { ...basic, ...opaque, apiPath: '/v2', accessTokenLifetime: 3600 },
  box: {
    ...form,
    ...opaque,
    authorizationPath: '/api/oauth2/authorize',
    tokenPath: '/oauth2/token',
    revocationPath: '/oauth2/revoke',
    apiPath: '/2.0',
    accessTokenLifetime: 3600,
  },
  miro: { ...form, ...opaque, tokenPath: '/v1/oauth/token', apiPath: '/v2', accessTokenLifetime: 3600 },
  calendly: { ...form, ...opaque, revocationPath: '/oauth/revoke', apiPath: '' },
  github: {
    ...form,
    ...opaque,
    authorizationPath: '/login/oauth/authorize',
    tokenPath: '/login/oauth/access_token',
    apiPath: '',
    accessTokenLifetime: 28_800,
    refusalStatus: 200,
  },
  google: {
    ...form,
    ...opaque,
    authorizationPath: '/o/oauth2/v2/auth',
    tokenPath: '/token',
    revocationPath: '/revoke',
    apiPath: '',
    scopeRequired: true,
    authorizationParams: { access_type: 'offline', prompt: 'consent' },
    rotation: 'omit',
    accessTokenLifetime: 3600,
  },
  microsoft: {
    ...form,
    ...opaque,
    authorizationPath: '/common/oauth2/v2.0/authorize',
    tokenPath: '/common/oauth2/v2.0/token',
    apiPath: '/v1.0',
    scopeRequired: true,
    accessTokenLifetime: 3600,
  },
  discord: {
    ...form,
    ...opaque,
    authorizationPath: '/api/oauth2/authorize',
    tokenPath: '/api/oauth2/token',
    revocationPath: '/api/oauth2/token/revoke',
    apiPath: '/api/v10',
    accessTokenLifetime: 604_800,
  },
  twitch: {
    ...form,
    ...opaque,
    authorizationPath: '/oauth2/authorize',
    tokenPath: '/oauth2/token',
    apiPath: '/helix',
    refreshRefusal: { error: 'Bad Request', status: 400, message: 'Invalid refresh token' },
    rotation: 'same',
    accessTokenLifetime: 14_400,
  },
  spotify: {
    ...basic,
    ...opaque,
    authorizationPath: '/authorize',
    tokenPath: '/api/token',
    apiPath: '/v1',
    rotation: 'omit',
    accessTokenLifetime: 3600,
  },
  quickbooks: {
    ...basic,
    ...opaque,
    authorizationPath: '/connect/oauth2',
    tokenPath: '/oauth2/v1/tokens/bearer',
    apiPath: '/v3',
    scopeRequired: true,
    accessTokenLifetime: 3600,
  },
  salesforce: {
    ...form,
    ...opaque,
    authorizationPath: '/services/oauth2/authorize',
    tokenPath: '/services/oauth2/token',
    revocationPath: '/services/oauth2/revoke',
    apiPath: '/services/data',
    expiresIn: false,
    refreshTokenReuse: 'revoke',
  },
  zendesk: {
    ...opaque,
    authorizationPath: '/oauth/authorizations/new',
    tokenPath: '/oauth/tokens',
    accessTokenLifetime: 1800,
    refreshTokenLifetime: 2_592_000,
    endsFormerAccessToken: true,
  },
  shopify: {
    ...opaque,
    authorizationPath: '/admin/oauth/authorize',
    tokenPath: '/admin/oauth/access_token',
    apiPath: '/admin/api',
    scopeSeparator: ',',
    scopeRequired: false,
    impliesCodeFlow: true,
    accessTokenLifetime: 3600,
    refreshTokenLifetime: 7_776_000,
    refreshTokenReuse: 'until-refreshed',
    singleGrant: true,
    expiringOnRequest: true,
    accessTokenHeader: 'X-Shopify-Access-Token',
  },
} as const satisfies Readonly<Record<string, Partial<Profile>>>;

/** Name of a built-in profile. */
export type ProfileName =
  | 'crowdin'
  | 'form'
  | 'basic'
  | 'gitlab'
  | 'atlassian'
  | 'linear'
  | 'notion'
  | 'hubspot'
  | 'zoom'
  | 'box'
  | 'miro'
  | 'calendly'
  | 'github'
  | 'google'
  | 'microsoft'
  | 'discord'
  | 'twitch'
  | 'spotify'
  | 'quickbooks'
  | 'salesforce'
  | 'zendesk'
  | 'shopify';

const names = Object.keys(profiles) as readonly (keyof typeof profiles & ProfileName)[];

/**
 * Returns a complete profile.
 *
 * @param value - A name, or an object of differences from service.md; `undefined` for service.md itself.
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if it is neither.
 */
export function resolveProfile(value: unknown): Profile {
  if (value === undefined) return standard;
  if (!isRecord(value)) return { ...standard, ...profiles[choice('profile', value, names)] };
  const given = record('profile', value, Object.keys(standard));
  const entries = Object.entries(given).filter(([, its]) => its !== undefined);
  for (const [name, its] of entries) checkMember(name, its);
  return { ...standard, ...Object.fromEntries(entries) };
}

function checkMember(name: string, value: unknown): void {
  const option = `profile.${name}`;
  const usual: unknown = Reflect.get(standard, name);
  if (name === 'tokenRequest') choice(option, value, ['json', 'form']);
  else if (name === 'clientAuthentication') choice(option, value, ['body', 'basic', 'basic-raw']);
  else if (name === 'rotation') choice(option, value, ['rotate', 'same', 'omit']);
  else if (name === 'accessToken') choice(option, value, ['jwt', 'opaque']);
  else if (name === 'refreshTokenReuse') choice(option, value, reuses);
  else if (name === 'refreshTokenLifetime') integer(option, value, 1, Number.MAX_SAFE_INTEGER);
  else if (name === 'accessTokenHeader') text(option, value);
  else if (name === 'refreshRefusal') {
    if (!isRecord(value)) refuse(option, 'an object: the body of the refusal', value);
  } else if (name === 'authorizationParams') {
    if (!isRecord(value)) refuse(option, 'an object of parameters and their values', value);
    for (const [parameter, its] of Object.entries(value)) text(`${option}.${parameter}`, its);
  } else if (name.endsWith('Path')) {
    const isPath = typeof value === 'string' && /^(\/[^\s?#]*[^\s?#/])?$/.test(value.replace(/(?<=.)\/$/, ''));
    if (!isPath || (name === 'apiPath' && value.endsWith('/')) || (value === '' && name !== 'apiPath'))
      refuse(option, 'a path such as /oauth/token', value);
  } else if (typeof value !== typeof usual) refuse(option, `a ${typeof usual}`, value);
}

/** Options of a strategy that must be set for a service with a profile. */
export type ProfileOptions = Pick<
  Profile,
  | 'authorizationPath'
  | 'tokenPath'
  | 'revocationPath'
  | 'apiPath'
  | 'tokenRequest'
  | 'clientAuthentication'
  | 'scopeSeparator'
  | 'authorizationParams'
  | 'accessTokenHeader'
> & {
  /** No host of a provider may get a token. */
  readonly enterpriseHosts: undefined;
};

/** Returns all options of a strategy that decide about addresses and formats, so that none of a provider's remains below them. */
export function profileOptions({
  authorizationPath,
  tokenPath,
  revocationPath,
  apiPath,
  tokenRequest,
  clientAuthentication,
  scopeSeparator,
  authorizationParams,
  accessTokenHeader,
}: Profile): ProfileOptions {
  const paths = { authorizationPath, tokenPath, revocationPath, apiPath };
  const wire = { tokenRequest, clientAuthentication, scopeSeparator, authorizationParams, accessTokenHeader };
  return { ...paths, ...wire, enterpriseHosts: undefined };
}
