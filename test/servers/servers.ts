import { authlib } from './authlib.js';
import type { AuthorizationServer } from './authorization-server.js';
import { betterAuth } from './better-auth.js';
import { djangoOauthToolkit } from './django-oauth-toolkit.js';
import { doorkeeperOfToday, doorkeeperWithoutColumn } from './doorkeeper.js';
import { jmondiOauth2Server } from './jmondi-oauth2-server.js';
import { lemonldap } from './lemonldap.js';
import { nodeOauth2Server } from './node-oauth2-server.js';
import { oauth2orize } from './oauth2orize.js';
import { oidcProvider } from './oidc-provider.js';
import { rackOauth2 } from './rack-oauth2.js';

/** The servers, in the order of docs/figures/servers.md. */
export const SERVERS: readonly AuthorizationServer[] = [
  oidcProvider,
  nodeOauth2Server,
  jmondiOauth2Server,
  oauth2orize,
  betterAuth,
  djangoOauthToolkit,
  authlib,
  doorkeeperOfToday,
  doorkeeperWithoutColumn,
  rackOauth2,
  lemonldap,
];
