// oidc-provider with its built-in pages (devInteractions) and storage in memory: https://github.com/panva/node-oidc-provider
import { Provider } from 'oidc-provider';
import { place, serve } from './serve.mjs';

const { client, origin } = place;
const provider = new Provider(origin, {
  clients: [
    {
      client_id: client.id,
      client_secret: client.secret,
      redirect_uris: [client.redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
  ],
  // The built-in page takes any password: the account is the name.
  findAccount: async (_context, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  features: { revocation: { enabled: true } },
  pkce: { required: () => false },
  rotateRefreshToken: true,
});
serve(provider.callback());
