import { setTimeout as pause } from 'node:timers/promises';
import { startChild } from '../lib/child.mjs';
import { onStage } from '../lib/stage.mjs';

const SPEED = 60;
const USERS = 50;
/** Short, so that each grant is refreshed a dozen times in the hour. */
const ACCESS_TOKEN_LIFETIME_S = 300;
const SAMPLES = 12;

/** An hour of traffic in a minute: rotation, faults, logouts. The heap is to be flat at the end. */
export function soak({ quick }) {
  const durationMs = quick ? 12_000 : 60_000;
  return onStage(async (stage) => {
    const time = { start: Date.now(), speed: SPEED };
    const driver = await stage.keep(
      startChild('service/soak-driver.mjs', { time, users: USERS, accessTokenLifetime: ACCESS_TOKEN_LIFETIME_S }),
    );
    const app = await stage.appWithGc({ app: 'ours', service: driver.ready, time });
    const origin = `http://127.0.0.1:${app.ready.port}`;
    const using = driver.ask('use', { origin, durationMs });
    const heap = [];
    for (let sample = 0; sample < SAMPLES; sample += 1) {
      await pause(durationMs / SAMPLES);
      heap.push((await app.ask('memory')).heapBytes);
    }
    const counted = await using;
    await pause(500);
    heap.push((await app.ask('memory')).heapBytes);
    const events = await app.ask('events');
    const minutes = (durationMs * SPEED) / 60_000;
    return {
      title: 'A soak',
      minutes,
      users: USERS,
      ...counted,
      events,
      heap,
      growthPerRequest: growth(heap) / (counted.requests / 2),
    };
  });
}

/** Bytes by which the heap has grown from the middle to the end, by the medians of a few samples. */
function growth(heap) {
  const middle = heap.slice(5, 8).sort((a, b) => a - b)[1];
  const end = heap.slice(-3).sort((a, b) => a - b)[1];
  return end - middle;
}
