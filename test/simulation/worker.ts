import { readFileSync } from 'node:fs';
import { packageLoader } from './environment.js';
import { SCENARIOS } from './scenarios.js';
import { runTrial } from './trial.js';

const [file = ''] = process.argv.slice(2);
const load = packageLoader(readFileSync(file, 'utf8'), file);
const t = performance.now();
for (const scenario of Object.values(SCENARIOS)) {
  const r = await runTrial({ scenario, mode: 'revoke', seed: 1, load, faultAt: () => undefined, isTraced: true });
  console.log(r.lines.join('\n'));
  console.log({ ...r, lines: 0, steps: r.steps.length });
}
console.log(performance.now() - t);
