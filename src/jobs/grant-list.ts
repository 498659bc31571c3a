import { type Optional, readOptions, withDefault, withMethods } from '../checks.js';
import type { GrantSummary } from '../grants/grant-summary.js';
import type { GrantManager } from '../refresh/grant-manager.js';

/** Reads an AbortSignal. */
export const abortSignal: Optional<AbortSignal | undefined> = withDefault(
  undefined,
  withMethods('an AbortSignal', ['throwIfAborted', 'addEventListener']),
);

/** Reads the options of `strategy.grants`. @throws ConfigurationError that names the wrong one */
export function readListOptions(options: unknown): { readonly signal: AbortSignal | undefined } {
  return readOptions('grants', options, { signal: abortSignal });
}

/** Yields what is known of each grant. @throws like {@link GrantManager.all} */
export async function* grantList(
  grants: Pick<GrantManager, 'all' | 'summaryOf'>,
  signal?: AbortSignal,
): AsyncGenerator<GrantSummary, void> {
  for await (const [grantId, grant] of grants.all(signal)) yield grants.summaryOf(grantId, grant);
}
