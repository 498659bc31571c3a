import { test as base, type TestAPI } from 'vitest';
import { type Emulator, startEmulator } from './emulator.js';
import type { EmulatorOptions } from './options.js';

/** Fixtures of a test. */
export interface EmulatorFixtures {
  /** The emulator of this worker, as after its start: `reset()` is called before each test that uses it. */
  readonly service: Emulator;
}

/**
 * Returns a `test` with the fixture `service`: one emulator for each worker, reset before each test, closed at the end.
 *
 * @param options - As for `startEmulator`.
 * @example
 * import { emulatorTest } from 'passport-oauth-app/emulator/vitest';
 * const test = emulatorTest({ accessTokenLifetime: 60 });
 * test('a user sees their projects', async ({ service }) => {
 *   const response = await service.logIn(request.agent(createApp(service.options)));
 *   expect(response.status).toBe(200);
 * });
 */
export function emulatorTest(options: EmulatorOptions = {}): TestAPI<EmulatorFixtures> {
  return base.extend<EmulatorFixtures & { readonly startedService: Emulator }>({
    startedService: [
      // biome-ignore lint/correctness/noEmptyPattern: Vitest reads the names of the fixtures that a fixture needs from the pattern.
      async ({}, use) => {
        const service = await startEmulator(options);
        await use(service);
        await service.close();
      },
      { scope: 'worker' },
    ],
    service: async ({ startedService }, use) => {
      startedService.reset();
      await use(startedService);
    },
  });
}

/** A `test` with the fixture `service`, with the default options. */
export const test: TestAPI<EmulatorFixtures> = emulatorTest();
