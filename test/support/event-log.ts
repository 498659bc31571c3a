import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { onTestFinished } from 'vitest';

const PREFIX = 'passport-oauth-app:';
export type EventName = 'login' | 'refresh' | 'grant-lost' | 'grant' | 'api';

/** What is told on the diagnostics channels from its creation on. */
export class EventLog {
  readonly events: { readonly name: EventName; readonly event: Readonly<Record<string, unknown>> }[] = [];
  readonly #stops: (() => void)[] = [];

  constructor(...names: EventName[]) {
    for (const name of names) {
      const listener = (event: unknown) => void this.events.push({ name, event: event as Record<string, unknown> });
      subscribe(PREFIX + name, listener);
      this.#stops.push(() => unsubscribe(PREFIX + name, listener));
    }
  }

  /** The values of a field, in the order in which the events came. */
  values(name: EventName, field: string): unknown[] {
    return this.events.filter((entry) => entry.name === name).map(({ event }) => event[field]);
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }
}

/** What is told on the diagnostics channels until the test ends. */
export function listen(...names: EventName[]): EventLog {
  const log = new EventLog(...names);
  onTestFinished(() => log.stop());
  return log;
}
