import { LOOPBACK_HOST } from '../checks.js';
import type { Visit } from '../session/visit.js';

/** A login begun over http whose callback has https. */
export const OVER_HTTP =
  'This login was begun over http, as far as the application knows, and came back over https: browsers keep no cookie of a page over http for that. Open the application over https. Behind a proxy, have it set X-Forwarded-Proto.';

const CONTRADICTED =
  "callbackURL is relative, and X-Forwarded-Proto or X-Forwarded-Host of this login contradicts what was made of it: behind a proxy, set Express' trust proxy, or an absolute callbackURL.";

/**
 * Returns what is wrong with a login that begins under another host name than that of its callback, such as 127.0.0.1 and
 * localhost, or over http if the callback has https: the browser will not send its cookie.
 *
 * @param isRelative True if the redirect URL was resolved against the request.
 * @returns `message`: for the callback, if the login is lost. `warning`: for the developer, when the login begins.
 */
export function hostMismatch(
  visit: Visit,
  redirectUri: string,
  isRelative: boolean,
): { readonly message?: string; readonly warning?: string } | undefined {
  const { host: header, 'x-forwarded-host': forwardedHost, 'x-forwarded-proto': forwardedProto } = visit.headers;
  const isTls = () => visit.isSecure || /^\s*https\b/i.test(String(forwardedProto ?? ''));
  const isHttps = /^https:/i.test(redirectUri);
  if (isRelative) {
    // It follows what Express trusts: otherwise the headers of the proxy contradict it.
    const isOtherHost = forwardedHost !== undefined && String(forwardedHost).split(',', 1)[0]?.trim() !== visit.host;
    const isOther = isOtherHost || (!isHttps && isTls());
    return isOther ? { warning: `${CONTRADICTED} It became ${redirectUri}.` } : undefined;
  }
  const overHttp = isHttps && !isTls() ? { message: OVER_HTTP } : undefined;
  // Nearly every login: no URL has to be parsed to see that its host is the same.
  const isSame = redirectUri.startsWith(`//${header}/`, redirectUri.indexOf(':') + 1);
  const { host: here } = visit;
  if ((isSame && forwardedHost === undefined) || here === undefined) return overHttp;
  const { host, hostname } = new URL(redirectUri);
  // Cookies do not distinguish ports.
  const { hostname: hereName } = new URL(`http://${here}`);
  if (hereName === hostname) return overHttp;
  const message = `This login was begun at ${here} and came back to ${host}, where the browser does not send its cookie. Open the application at ${host}.`;
  // Tests reach an application by a loopback address, whatever its callbackURL is. Their logins are not lost.
  const isTest = process.env.NODE_ENV !== 'production' && LOOPBACK_HOST.test(hostname) && LOOPBACK_HOST.test(hereName);
  if (isTest) return { message };
  const warning = `A login was begun at ${here}, but callbackURL leads to ${host}: the browser does not send the cookie of the login there. Open the application at ${host}. If a proxy has changed the Host header, set Express' trust proxy.`;
  return { message, warning };
}
