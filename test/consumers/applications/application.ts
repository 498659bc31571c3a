import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Emulator, startEmulator } from 'passport-oauth-app/emulator';
import { freePort } from '../../support/service-process.js';
import { type Packed, repository } from '../packed.js';
import { type RunningApplication, startApplication } from '../stranger.js';
import { applyPatch } from './patch.js';

/** An application of others, in a folder of APPLICATIONS_DIR. */
export interface Application {
  /** The name of its folder and of its patch. */
  readonly name: string;
  /** The file that starts it. */
  readonly start: string;
  /** Packages that docs/migration.md says to install. */
  readonly packages?: readonly string[];
}

/** A copy of an application with the patch and the package, which can be started again and again. */
export interface Moved {
  readonly folder: string;
  readonly port: number;
  start(variables: Readonly<Record<string, string>>): Promise<RunningApplication>;
  remove(): Promise<void>;
}

/** Says why the checks of an application are skipped; `undefined` where it can be had. */
export function absence(name: string): string | undefined {
  const checkouts = process.env.APPLICATIONS_DIR;
  if (!checkouts) return 'APPLICATIONS_DIR is not set: see CONTRIBUTING.md';
  if (!existsSync(join(checkouts, name, 'node_modules')))
    return `no checkout with its packages in ${join(checkouts, name)}`;
  return undefined;
}

/** Copies an application, applies its patch, and installs the package beside the application's own packages. */
export async function moveApplication(packed: Packed, { name, start, packages = [] }: Application): Promise<Moved> {
  const checkout = await realpath(join(process.env.APPLICATIONS_DIR ?? '', name));
  const folder = await mkdtemp(join(tmpdir(), `passport-oauth-app-${name}-`));
  const isOurs = (path: string) => path !== join(checkout, 'node_modules') && path !== join(checkout, '.git');
  await cp(checkout, folder, { recursive: true, filter: isOurs });
  await applyPatch(await readFile(join(import.meta.dirname, `${name}.patch`), 'utf8'), folder);

  const modules = join(folder, 'node_modules');
  await mkdir(modules);
  for (const found of await readdir(join(checkout, 'node_modules'))) {
    if (!packages.includes(found)) await symlink(join(checkout, 'node_modules', found), join(modules, found));
  }
  for (const found of packages) await symlink(join(repository, 'node_modules', found), join(modules, found));
  const own = join(modules, 'passport-oauth-app');
  await cp(packed.folder, own, { recursive: true });
  for (const found of ['cookie', 'jose', 'passport-oauth2', 'undici']) {
    await mkdir(dirname(join(own, 'node_modules', found)), { recursive: true });
    await symlink(join(repository, 'node_modules', found), join(own, 'node_modules', found));
  }
  const port = await freePort();
  return {
    folder,
    port,
    start: (variables) => startApplication(folder, join(folder, start), { ...variables, PORT: String(port) }, port),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** A service whose used refresh tokens end the grant, with users 1 to 4. */
export async function startService(
  options: Parameters<typeof startEmulator>[0],
  callbackURL: string,
): Promise<Emulator> {
  const users = ['1', '2', '3', '4'].map((id) => ({ id, name: `User ${id}` }));
  const service = await startEmulator({ users, refreshTokenReuse: 'revoke', ...options });
  service.register({ clientID: service.options.clientID, redirectUrls: [callbackURL] });
  return service;
}

/** The refreshes that a service has seen since its requests were last forgotten. */
export function refreshesOf({ requests }: Emulator): number {
  return requests.filter(({ body }) => /grant_type['"]?[=:]['"]?refresh_token/.test(JSON.stringify(body))).length;
}

/** A refresh token that an application got before it was moved. */
export async function formerRefreshToken(
  { options, approve }: Emulator,
  callbackURL: string,
  user: string,
): Promise<string> {
  const { authUrl, authorizationPath = '', tokenPath = '', clientID, clientSecret, clientAuthentication } = options;
  const query = { client_id: clientID, redirect_uri: callbackURL, response_type: 'code', state: 's'.repeat(43) };
  const callback = await approve(`${authUrl}${authorizationPath}?${new URLSearchParams(query)}`, { user });
  const inBody = { client_id: clientID, client_secret: clientSecret };
  const response = await fetch(`${authUrl}${tokenPath}`, {
    method: 'POST',
    headers: clientAuthentication === 'basic' ? { authorization: `Basic ${btoa(`${clientID}:${clientSecret}`)}` } : {},
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      redirect_uri: callbackURL,
      code: new URL(callback).searchParams.get('code') ?? '',
      ...(clientAuthentication === 'basic' ? {} : inBody),
    }),
  });
  const { refresh_token: refreshToken } = (await response.json()) as { readonly refresh_token: string };
  return refreshToken;
}
