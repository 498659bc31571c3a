import { subscribe } from 'node:diagnostics_channel';

/** Counts what the package tells on its channels: refreshes by outcome, grants lost by reason. */
export function countEvents() {
  const counts = {};
  const count = (name) => {
    counts[name] = (counts[name] ?? 0) + 1;
  };
  subscribe('passport-oauth-app:refresh', ({ outcome }) => count(outcome));
  subscribe('passport-oauth-app:grant-lost', ({ reason }) => count(`lost: ${reason}`));
  return () => counts;
}
