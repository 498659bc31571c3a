import type { StrategyOptions } from '../options.js';

/** Options that are the same for every application of one service. To be spread into the options of a strategy. */
export type Provider = Pick<StrategyOptions, 'authUrl' | 'baseUrl'> &
  Partial<
    Pick<
      StrategyOptions,
      | 'enterpriseBaseUrl'
      | 'organizationDomain'
      | 'pkce'
      | 'userProfile'
      | 'concurrency'
      | 'name'
      | 'scope'
      | 'headers'
      | 'authorizationPath'
      | 'tokenPath'
      | 'apiPath'
      | 'tokenRequest'
      | 'clientAuthentication'
      | 'authorizationParams'
      | 'scopeSeparator'
    >
  >;
