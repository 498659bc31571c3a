import type { AuthorizationServer } from './authorization-server.js';
import { djangoOauthToolkit } from './django-oauth-toolkit.js';
import { doorkeeperOfToday, doorkeeperWithoutColumn } from './doorkeeper.js';
import { nodeOauth2Server } from './node-oauth2-server.js';
import { oauth2orize } from './oauth2orize.js';
import { oidcProvider } from './oidc-provider.js';

/** The servers, in the order of docs/servers.md. */
export const SERVERS: readonly AuthorizationServer[] = [
  oidcProvider,
  nodeOauth2Server,
  oauth2orize,
  djangoOauthToolkit,
  doorkeeperOfToday,
  doorkeeperWithoutColumn,
];
