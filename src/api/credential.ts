/** Credential of one API request. Immutable: a refresh creates a new one. */
export interface Credential {
  /** The access token: printable ASCII without white space. */
  readonly accessToken: string;
  /** The enterprise organization that the token names: one lower-case DNS label; `undefined` for none. */
  readonly organizationDomain: string | undefined;
  /** The user that the token names, if it names one. */
  readonly subject?: string | undefined;
}

/** Source of an API client's credentials, asked anew for each request. */
export interface CredentialSource {
  /** The grant's id; `undefined` without a grant. */
  readonly grantId: string | undefined;
  /** False once it is known that there is no grant (any more). An outage of a store or of the service does not count. */
  readonly authorized: boolean;
  /** Of the credential last seen; no I/O. */
  readonly organizationDomain: string | undefined;
  /**
   * Returns a credential that is valid now, after a refresh if one is due. Synchronous if it is at hand.
   *
   * @throws NotAuthorizedError, TokenError, TokenResponseError, ServiceUnavailableError, TokenStoreError, ConfigurationError
   */
  credential(): Credential | Promise<Credential>;
  /**
   * Returns a newer credential after the API refused `refused` with 401, or `refused` itself (the same object) if there
   * is no newer one for now (the cool-down, or a source that cannot refresh).
   *
   * @throws like {@link credential}
   */
  renew(refused: Credential): Promise<Credential>;
  /** Reports that the API accepted (any status but 401) or refused (401) a credential of `renew`. */
  reportOutcome(credential: Credential, accepted: boolean): void;
}
