import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';

/** Often enough that a frame of a third of a percent has been seen a hundred times in some seconds. */
const INTERVAL_US = 200;

let session;

/** Starts V8's CPU profiler, the one of `node --cpu-prof`, when the code is warm. */
export async function startProfile() {
  session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
  await session.post('Profiler.start');
}

/** Ends it. @param {{ file: string }} options where to write the profile */
export async function stopProfile({ file }) {
  const { profile } = await session.post('Profiler.stop');
  session.disconnect();
  writeFileSync(file, JSON.stringify(profile));
}
