// The smoke application as an ES module.

import * as oauthApp from 'passport-oauth-app';
import { startEmulator } from 'passport-oauth-app/emulator';
import scenario from './scenario.cjs';

const load = async (name) => {
  const loaded = await import(name);
  return loaded.default ?? loaded;
};

await scenario.run({ oauthApp, startEmulator, load, combination: JSON.parse(process.argv[2]) });
