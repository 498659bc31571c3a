import type { Provider } from 'passport-oauth-app/providers';

export const acme = {
  authUrl: 'https://accounts.acme.example',
  baseUrl: 'https://api.acme.example',
  authorizationPath: '/authorize',
  apiPath: '/rest',
  tokenRequest: 'form',
  clientAuthentication: 'basic',
  organizationDomain: (_claims, { team }) => team,
} satisfies Provider;
