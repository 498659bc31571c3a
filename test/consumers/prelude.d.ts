// What snippets of README.md and docs/ take from their surroundings. A snippet's own declarations go before these.

declare module '@crowdin/crowdin-api-client';

/** Options that say which service it is and who the application is. */
declare const service: import('passport-oauth-app').StrategyOptions;
declare const Strategy: typeof import('passport-oauth-app').Strategy;
declare const strategy: import('passport-oauth-app').Strategy;
/** Secrets of the environment. */
declare const grantKeys: string[];
declare const options: import('passport-oauth-app').StrategyOptions;
declare const apiClient: typeof import('passport-oauth-app').apiClient;
declare const oauthErrors: typeof import('passport-oauth-app').oauthErrors;
declare const requireAuthorization: typeof import('passport-oauth-app').requireAuthorization;
declare const dispatcher: import('undici').Dispatcher;
declare const app: import('express').Express;
declare const passport: import('passport').PassportStatic;
declare const req: import('express').Request;
