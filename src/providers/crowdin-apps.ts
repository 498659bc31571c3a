/** An application of Crowdin that is installed in an organization, as its Installed event describes it. */
export interface CrowdinInstallation {
  readonly appId: string;
  readonly appSecret: string;
  /** Of an enterprise organization; left out, `undefined` or `null` on crowdin.com. */
  readonly domain?: string | null | undefined;
  /** The user who has installed it. */
  readonly userId: number | string;
}

/** Parameters of a token request, the client's apart. */
export type CrowdinTokenParameters = Readonly<Record<string, string | number>> & { readonly grant_type: string };

/**
 * Returns the parameters of the token request of an installed application (grant type `crowdin_app`), for the option
 * `applicationGrant`. As in `@crowdin/crowdin-apps-functions` 0.13.0.
 *
 * @example
 * ```ts
 * applicationGrant: async (grantId) => crowdinApp(await installations.get(grantId)),
 * ```
 * @see https://support.crowdin.com/developer/crowdin-apps-installation/
 */
export function crowdinApp({ appId, appSecret, domain, userId }: CrowdinInstallation): CrowdinTokenParameters {
  const organization = domain ? { domain } : {};
  return { grant_type: 'crowdin_app', app_id: appId, app_secret: appSecret, ...organization, user_id: userId };
}

/** Returns the same for the agent of an installed application (grant type `crowdin_agent`). @see crowdinApp */
export function crowdinAgent({
  agentId,
  ...installation
}: CrowdinInstallation & { readonly agentId: number | string }): CrowdinTokenParameters {
  return { ...crowdinApp(installation), grant_type: 'crowdin_agent', agent_id: agentId };
}
