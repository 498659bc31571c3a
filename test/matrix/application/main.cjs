// The smoke application as a CommonJS module.
const oauthApp = require('passport-oauth-app');
const { startEmulator } = require('passport-oauth-app/emulator');
const scenario = require('./scenario.cjs');

scenario.run({
  oauthApp,
  startEmulator,
  load: async (name) => require(name),
  combination: JSON.parse(process.argv[2]),
});
