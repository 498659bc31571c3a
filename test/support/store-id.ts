import { createHash } from 'node:crypto';

/** The id under which a token store keeps a grant: name and service of the strategy, then the id, escaped. */
export function storeId(
  { authUrl, clientID }: { readonly authUrl: string; readonly clientID: string },
  grantId: string,
  name = 'oauth-app',
): string {
  const service = createHash('sha256')
    .update(JSON.stringify([authUrl, clientID]))
    .digest('base64url')
    .slice(0, 11);
  return `${encodeURIComponent(`${name}.${service}`)}+${encodeURIComponent(grantId)}`;
}
