/** What an API call is made with. Immutable: a refresh makes a new one. */
export interface Credential {
  /** The access token: printable ASCII without white space. */
  readonly accessToken: string;
  /** The enterprise organization that the token names: one lower-case DNS label; `undefined` for none. */
  readonly organizationDomain: string | undefined;
}

/** Where an API client gets its credential from, anew for each call. Never holds a credential itself. */
export interface CredentialSource {
  /** The grant's id; `undefined` where there is no grant. */
  readonly grantId: string | undefined;
  /** False once it is known that there is no grant (any more). An outage of a store or of the service is no such knowledge. */
  readonly authorized: boolean;
  /** Of the credential last seen; no I/O. */
  readonly organizationDomain: string | undefined;
  /**
   * A credential that is good now, after a refresh if one is due. Synchronous when it is at hand.
   *
   * @throws NotAuthorizedError, TokenError, TokenResponseError, ServiceUnavailableError, TokenStoreError, ConfigurationError
   */
  credential(): Credential | Promise<Credential>;
  /**
   * After the API refused `refused` with 401: a newer credential, or `refused` itself (the same object) where
   * there is no newer one to be had for now (the cool-down, or a source that cannot refresh).
   *
   * @throws like {@link credential}
   */
  renew(refused: Credential): Promise<Credential>;
  /** Tells that the API accepted (any status but 401) or refused (401) a credential that `renew` gave. */
  reportOutcome(credential: Credential, accepted: boolean): void;
}
