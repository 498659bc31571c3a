import { apiLoop } from './api-loop.mjs';
import { application } from './application.mjs';
import { emulator } from './emulator.mjs';
import { expiries } from './expiries.mjs';
import { grants } from './grants.mjs';
import { imports } from './imports.mjs';
import { lateSave } from './late-save.mjs';
import { logins } from './logins.mjs';
import { overhead, overheadRedis } from './overhead.mjs';
import { processes } from './processes.mjs';
import { soak } from './soak.mjs';
import { stampede } from './stampede.mjs';

/** All scenarios by name, in the order in which they are played. */
export const SCENARIOS = {
  overhead,
  'overhead-redis': overheadRedis,
  'api-loop': apiLoop,
  application,
  logins,
  imports,
  stampede,
  'late-save': lateSave,
  grants,
  processes,
  expiries,
  soak,
  emulator,
};
