import { startChild } from '../lib/child.mjs';
import { compared, inTurns, measured } from '../lib/rounds.mjs';
import { onStage } from '../lib/stage.mjs';

const CONCURRENCY = 50;

/** The slow ones make fewer requests, so that all take about as long. */
const CONTESTANTS = [
  { name: 'undici.request', client: 'undici-request', requests: 6000 },
  { name: 'passport-oauth-app', client: 'ours', requests: 6000 },
  { name: 'undici dispatch, own handler (limit)', client: 'undici-dispatch', requests: 6000 },
  { name: 'fetch', client: 'fetch', requests: 1500 },
  { name: 'axios', client: 'axios', requests: 1500 },
  { name: 'official SDK', client: 'official-sdk', requests: 1500 },
];

/** A loop of API calls, against what one would call the API with otherwise. */
export function apiLoop({ rounds, share }) {
  return onStage(async (stage) => {
    const service = await stage.service();
    const entered = [];
    for (const { name, client, requests } of CONTESTANTS) {
      const child = await stage.keep(startChild('clients/loop.mjs', { client, service: service.ready }));
      const task = { requests: Math.round(requests * share), concurrency: CONCURRENCY };
      entered.push({ name, measure: () => measured(child, task.requests, () => child.ask('run', task), 200) });
    }
    await inTurns(entered, 2);
    return {
      title: `A loop of GET /api/v2/projects, ${CONCURRENCY} at once`,
      rows: compared(await inTurns(entered, rounds), CONTESTANTS[0].name),
    };
  });
}
