import { apiLoop } from './api-loop.mjs';
import { application } from './application.mjs';
import { emulator } from './emulator.mjs';
import { expiries } from './expiries.mjs';
import { grants } from './grants.mjs';
import { growthGrants } from './growth-grants.mjs';
import { growthLifetimes } from './growth-lifetimes.mjs';
import { growthProcesses } from './growth-processes.mjs';
import { heap } from './heap.mjs';
import { imports } from './imports.mjs';
import { lateSave } from './late-save.mjs';
import { logins } from './logins.mjs';
import { middleware } from './middleware.mjs';
import { overhead, overheadRedis } from './overhead.mjs';
import { profiles } from './profiles.mjs';
import { soak } from './soak.mjs';
import { stampede } from './stampede.mjs';

/** All scenarios by name, in the order in which they are played. */
export const SCENARIOS = {
  middleware,
  overhead,
  'overhead-redis': overheadRedis,
  'api-loop': apiLoop,
  application,
  logins,
  stampede,
  heap,
  grants,
  imports,
  'late-save': lateSave,
  profiles,
  emulator,
  'growth-grants': growthGrants,
  'growth-processes': growthProcesses,
  'growth-lifetimes': growthLifetimes,
  expiries,
  soak,
};
