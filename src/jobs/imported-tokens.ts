import * as check from '../checks.js';
import { type Grant, type GrantSummary, issuedGrant, newGrantId, summaryOf } from '../grants/grant.js';
import { MAX_TOKEN_LENGTH, organizationDomainOf, readClaims, subjectOf } from '../oauth/claims.js';
import { type TokenReading, type TokenSet, VISIBLE_ASCII, wholeLifetime } from '../oauth/token-response.js';
import type { ImportedTokens } from '../options.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { Runtime } from '../strategy/runtime.js';

/** Never sent: its grant has expired, and is refreshed before it is used. */
const NO_ACCESS_TOKEN = 'imported-without-access-token';

/** 2001-09-09 in epoch milliseconds. A smaller number is most likely in seconds. */
const MIN_EXPIRES_AT = 1_000_000_000_000;

const REPLACE = { replace: check.withDefault(true, check.boolean) };

const readExpiry = check.number(MIN_EXPIRES_AT, Number.MAX_SAFE_INTEGER, 'milliseconds since 1970');

const TOKEN_READERS: check.Readers<Omit<ImportedTokens, 'expiresAt'> & { readonly expiresAt: number | undefined }> = {
  accessToken: check.withDefault(undefined, visibleText),
  refreshToken: check.withDefault(undefined, visibleText),
  expiresAt: check.withDefault(undefined, (option, value) =>
    readExpiry(option, value instanceof Date ? value.getTime() : value),
  ),
};

/** Does the work of `strategy.importGrant`. */
export async function importGrant(
  runtime: Runtime,
  grantId: string,
  tokens: ImportedTokens,
  options: object,
): Promise<boolean> {
  const { replace } = check.readOptions('importGrant', options, REPLACE);
  const id = newGrantId(grantId);
  const { settings, issuedBy } = runtime;
  const manager = runtime.managers.only();
  const tokenSet = { ...readImportedTokens(tokens, settings.clock(), settings), issuedBy };
  const grant = issuedGrant(tokenSet, settings.clock(), runtime.endpoint.id);
  return await save(manager, id, grant, replace);
}

/** Does the work of `strategy.importCode`. */
export async function importCode(
  { managers, endpoint, settings }: Runtime,
  grantId: string | ((grant: GrantSummary) => string | undefined),
  code: string,
  options: object,
): Promise<GrantSummary | undefined> {
  const { replace } = check.readOptions('importCode', options, REPLACE);
  const fixedId = typeof grantId === 'function' ? undefined : newGrantId(grantId);
  const checked = visibleText('code', code);
  const manager = managers.only();
  const tokens = await endpoint.exchangeCode({ code: checked });
  const grant = issuedGrant(tokens, settings.clock(), endpoint.id);
  const summary = summaryOf('', grant, settings.clock());
  const id = typeof grantId === 'function' ? check.result('grantId', grantId(summary)) : fixedId;
  if (id === undefined || !(await save(manager, newGrantId(id), grant, replace))) return undefined;
  return { ...summary, grantId: id };
}

/**
 * Saves a grant whose tokens were obtained elsewhere. Returns whether it did.
 *
 * @param replace False: not if the id has a grant, or had one that the service ended.
 */
async function save(manager: GrantManager, grantId: string, grant: Grant, replace: boolean): Promise<boolean> {
  await manager.expectIdOfUser(grantId);
  const { repository } = manager;
  const forget = () => manager.forget(grantId, grant);
  const isSaved = await (replace ? repository.create(grantId, grant, forget) : repository.add(grantId, grant, forget));
  if (isSaved) manager.onGrant(grantId, 'imported');
  return isSaved;
}

/** Reads a token or a code. @see RFC 6749, appendix A */
function visibleText(option: string, value: unknown): string {
  const token = check.text(option, value);
  if (token.length > MAX_TOKEN_LENGTH)
    throw check.optionError(option, `expected at most ${MAX_TOKEN_LENGTH} characters, got ${token.length}`);
  if (VISIBLE_ASCII.test(token)) return token;
  throw check.optionError(option, 'expected visible ASCII characters, without line breaks');
}

/**
 * Reads tokens that were obtained elsewhere.
 *
 * @param now Epoch milliseconds.
 * @throws ConfigurationError that names the member that is wrong, missing or unknown
 * @throws TokenResponseError if the token names an invalid organization domain
 */
function readImportedTokens(
  tokens: unknown,
  now: number,
  { organizationDomain, enterpriseUrl, accessTokenLifetime }: TokenReading,
): TokenSet {
  const given = check.readOptions('importGrant(grantId, tokens)', check.record('tokens', tokens), TOKEN_READERS);
  if (given.accessToken === undefined && given.refreshToken === undefined)
    throw check.optionError('refreshToken', 'expected a refresh token, an access token, or both, got neither');
  const accessToken = given.accessToken ?? NO_ACCESS_TOKEN;
  const claims = readClaims(accessToken);
  const { exp } = claims;
  const isReplaceable = given.refreshToken !== undefined;
  const guess = isReplaceable ? now : now + wholeLifetime(undefined, {}, now, accessTokenLifetime);
  const claimedExpiry = typeof exp === 'number' ? Math.min(exp * 1000, Number.MAX_SAFE_INTEGER) : guess;
  const expiresAt = given.accessToken === undefined ? now : (given.expiresAt ?? claimedExpiry);
  const lifetimeMs = Math.max(0, expiresAt - now);
  return {
    accessToken,
    refreshToken: given.refreshToken,
    lifetimeMs,
    renewableLifetimeMs: lifetimeMs,
    refreshTokenLifetimeMs: undefined,
    scope: undefined,
    claims,
    subject: subjectOf(claims),
    organizationDomain: organizationDomainOf(claims, organizationDomain),
    enterpriseUrl: enterpriseUrl?.(claims, {}),
    params: {},
  };
}
