import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';

const LATENCY_MS = 20;

/**
 * A token endpoint and an API that are strict: a refresh token works once, and its second use ends the whole grant (RFC 9700,
 * 4.14.2). Takes JSON and forms, Basic and credentials in the body.
 */
export async function startServer() {
  /** The grant of each token, by token. A refresh token that has been used stays there. */
  const grants = { access: new Map(), refresh: new Map() };
  const counts = { tokenRequests: 0 };
  const ofJsforce = { id: 'https://login.example/id/organization/user', instance_url: '' };
  const issue = (grant) => {
    const tokens = { access_token: randomUUID(), refresh_token: randomUUID() };
    grants.access.set(tokens.access_token, grant);
    grants.refresh.set(tokens.refresh_token, grant);
    grant.latest = tokens.refresh_token;
    return {
      ...tokens,
      token_type: 'bearer',
      expires_in: 7200,
      refresh_token_expires_in: 15_000_000,
      scope: 'api',
      ...ofJsforce,
    };
  };
  const refresh = (used) => {
    const grant = grants.refresh.get(used);
    if (grant !== undefined && grant.latest !== used) grant.isRevoked = true;
    return grant === undefined || grant.isRevoked ? [400, { error: 'invalid_grant' }] : [200, issue(grant)];
  };
  const server = createServer(async (req, res) => {
    let body = '';
    for await (const chunk of req.setEncoding('utf8')) body += chunk;
    const answer = (status, value) => {
      res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    };
    if (req.method === 'GET') {
      const grant = grants.access.get(req.headers.authorization?.replace(/^(bearer|token) /i, ''));
      answer(grant === undefined || grant.isRevoked ? 401 : 200, {});
      return;
    }
    counts.tokenRequests += 1;
    const fields = body.startsWith('{') ? JSON.parse(body) : Object.fromEntries(new URLSearchParams(body));
    setTimeout(() => answer(...refresh(fields.refresh_token)), LATENCY_MS);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${server.address().port}`;
  ofJsforce.instance_url = origin;
  return {
    origin,
    counts,
    /** The tokens of a new login. */
    logIn: () => issue({ isRevoked: false }),
    /** Ends every access token, as time does. */
    expire: () => grants.access.clear(),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
