import { apiLoop } from './api-loop.mjs';
import { application, forward } from './application.mjs';
import { growthGrants } from './growth-grants.mjs';
import { growthProcesses } from './growth-processes.mjs';
import { imports } from './imports.mjs';
import { lateSave } from './late-save.mjs';
import { logins } from './logins.mjs';
import { memory } from './memory.mjs';
import { middleware } from './middleware.mjs';
import { morning } from './morning.mjs';
import { overhead, overheadRedis } from './overhead.mjs';
import { stampede } from './stampede.mjs';
import { sweep } from './sweep.mjs';

/** The scenarios by name, in the order in which they are played. */
export const TARGETS = {
  middleware,
  overhead,
  'overhead-redis': overheadRedis,
  'api-loop': apiLoop,
  application,
  logins,
  stampede,
  morning,
  forward,
  memory,
  imports,
  'late-save': lateSave,
};

/** Those that take long. */
export const GROWTH = { 'growth-grants': growthGrants, 'growth-processes': growthProcesses, sweep };
