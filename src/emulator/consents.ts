/**
 * Remembers which scopes each user approved. There is one browser: its user is the one who decided last, or who opened an
 * embedded page last.
 */
export class Consents {
  readonly #approved = new Set<string>();
  /** Id of the user who is logged in at the service with this browser. */
  userId: string | undefined;

  /** Remembers that the user has approved these scopes for an application. */
  remember(userId: string, clientID: string, scopes: readonly string[]): void {
    this.userId = userId;
    this.#approved.add(keyOf(userId, clientID, scopes));
  }

  /** Returns the id of the browser's user, if that user approved exactly these scopes for the application. */
  approver(clientID: string, scopes: readonly string[]): string | undefined {
    const { userId } = this;
    return userId !== undefined && this.#approved.has(keyOf(userId, clientID, scopes)) ? userId : undefined;
  }

  /** Forgets what a user has approved, or everything. */
  forget(userId?: string): void {
    for (const key of this.#approved)
      if (userId === undefined || key.startsWith(keyOf(userId))) this.#approved.delete(key);
    if (userId === undefined) this.userId = undefined;
  }
}

function keyOf(userId: string, clientID?: string, scopes: readonly string[] = []): string {
  return [userId, ...(clientID === undefined ? [''] : [clientID, ...[...scopes].sort()])].join('\n');
}
