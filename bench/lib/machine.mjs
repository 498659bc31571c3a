import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { postgresVersion } from './databases.mjs';

const require = createRequire(import.meta.url);

const PACKAGES = [
  ...['undici', 'express', 'express-session', 'passport', 'passport-oauth2', 'connect-redis', 'redis', 'pg'],
  ...['express-openid-connect', 'axios', '@crowdin/crowdin-api-client'],
];

/** What was measured on, and with which versions. */
export function machine() {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release().split('-')[0]}`,
    node: process.version,
    redis: /v=([\d.]+)/.exec(execFileSync('redis-server', ['--version'], { encoding: 'utf8' }))?.[1],
    postgres: postgresVersion(),
    packages: Object.fromEntries(PACKAGES.map((name) => [name, versionOf(name)])),
  };
}

function versionOf(name) {
  const folder = require.resolve.paths(name)?.find((path) => existsSync(`${path}/${name}/package.json`));
  return JSON.parse(readFileSync(`${folder}/${name}/package.json`, 'utf8')).version;
}
