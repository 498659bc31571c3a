import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { onTestFinished } from 'vitest';

type EventName = 'login' | 'refresh' | 'grant-lost' | 'grant' | 'api';
export type EventLog = ReturnType<typeof listen>;

/** What is told on the diagnostics channels until the test ends. */
export function listen(...names: EventName[]) {
  const events: { readonly name: EventName; readonly event: Readonly<Record<string, unknown>> }[] = [];
  for (const name of names) {
    const listener = (event: unknown) => void events.push({ name, event: event as Record<string, unknown> });
    subscribe(`passport-oauth-app:${name}`, listener);
    onTestFinished(() => void unsubscribe(`passport-oauth-app:${name}`, listener));
  }
  /** The values of a field, in the order in which the events came. */
  const values = (name: EventName, field: string) =>
    events.filter((entry) => entry.name === name).map(({ event }) => event[field]);
  return { events, values };
}
