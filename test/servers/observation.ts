import { asClient } from './authorization-server.js';
import type { Setting } from './setting.js';

/** What a server does with refresh tokens, as seen. */
export interface Observation {
  readonly accessToken: 'JWT' | 'opaque';
  /** What comes of a refresh token once it has been used. */
  readonly refreshToken: string;
}

/** Logs in, and uses refresh tokens again after they have been used. */
export async function observe(setting: Setting): Promise<Observation> {
  await setting.open();
  await setting.logIn();
  const { accessToken, refreshToken: first } = setting.lastTokens;
  const second = await refreshWith(setting, first);
  const observation = (refreshToken: string): Observation => ({
    accessToken: accessToken.split('.').length === 3 ? 'JWT' : 'opaque',
    refreshToken,
  });
  if (second.refresh_token === undefined || second.refresh_token === first) return observation('does not rotate');
  const again = await refreshWith(setting, first);
  if (again.error !== undefined) {
    const last = await refreshWith(setting, String(second.refresh_token));
    const consequence = last.error === undefined ? '' : ', and ends the grant';
    return observation(`rotates; a used one is refused (\`${again.error}\`)${consequence}`);
  }
  // Some servers accept a used one until its successor has been used.
  const authorization = `Bearer ${second.access_token}`;
  await fetch(`${setting.options.baseUrl}/api/v2/projects`, { headers: { authorization } });
  const { error } = await refreshWith(setting, first);
  return observation(
    error === undefined
      ? 'rotates; a used one still works'
      : `rotates; a used one works until the new access token is used (then \`${error}\`)`,
  );
}

/** The JSON of the answer to a refresh. */
async function refreshWith({ options, place }: Setting, token: string): Promise<Readonly<Record<string, unknown>>> {
  const parameters = { grant_type: 'refresh_token', refresh_token: token };
  const response = await asClient(options.tokenPath ?? '', place, options, parameters);
  return (await response.json()) as Readonly<Record<string, unknown>>;
}
