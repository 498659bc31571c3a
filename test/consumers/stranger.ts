import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { FollowingBrowser } from '../support/following-browser.js';
import { hasEnded, type Program, signalTo, startProgram } from '../support/program.js';
import { snippetsOf } from './snippets.js';

/** A program that runs until it is stopped. */
export interface Running extends Program {
  stop(): Promise<void>;
}

/** The emulator's command, and the environment that it says to set. */
export interface RunningEmulator extends Running {
  readonly variables: Readonly<Record<string, string>>;
}

/** An application that listens on a port of localhost. */
export interface RunningApplication extends Running {
  /** Logs in as a person would, from a page on through the consent page. Returns the text of the page that this leads to. */
  logIn(path: string): Promise<string>;
}

/** Starts the emulator's command in a project. @param command How it is called; by its file unless told */
export async function startEmulatorCommand(
  folder: string,
  args: readonly string[],
  command: readonly string[] = [process.execPath, join(folder, 'node_modules/passport-oauth-app/dist/cli.js')],
): Promise<RunningEmulator> {
  const emulator = await startCommand(folder, [...command, 'emulator', ...args]);
  const variables = [...emulator.stdout().matchAll(/^([A-Z_]+)=(\S*)$/gm)];
  return { ...emulator, variables: Object.fromEntries(variables.map(([, name, value]) => [name, value])) };
}

/** Starts a command in a folder, and waits until it says how it is ended. */
export async function startCommand(folder: string, command: readonly string[]): Promise<Running> {
  const program = start(folder, command, {});
  await program.says(/Ctrl-C/);
  return program;
}

/** Starts this Node with arguments in a folder, and waits until it listens on a port of localhost. */
export async function startFile(folder: string, args: readonly string[], port: number): Promise<Running> {
  const program = start(folder, [process.execPath, ...args], {});
  await untilListening(program, port);
  return program;
}

/**
 * Starts an application, and waits until it listens.
 *
 * @param command A file for this Node, or a whole command
 */
export async function startApplication(
  folder: string,
  command: string | readonly string[],
  variables: Readonly<Record<string, string>>,
  port: number,
): Promise<RunningApplication> {
  const words = typeof command === 'string' ? [process.execPath, command] : command;
  const application = start(folder, words, variables);
  await untilListening(application, port);
  return { ...application, logIn: (path) => logInAt(`http://localhost:${port}`, path) };
}

async function logInAt(origin: string, path: string): Promise<string> {
  const browser = new FollowingBrowser();
  const page = await browser.settle(await browser.visit(`${origin}${path}`));
  return (await browser.decide(page, 'approve')).text;
}

function start(cwd: string, [file = '', ...args]: readonly string[], variables: NodeJS.ProcessEnv): Running {
  // Variables that Vitest sets in its workers: a terminal does not have them.
  const { NODE_ENV: _testing, BASE_URL: _base, ...environment } = process.env;
  // A group of its own: npx passes no signal on to what it runs.
  const program = startProgram(file, args, { cwd, env: { ...environment, ...variables }, detached: true });
  const stop = async (): Promise<void> => {
    if (!hasEnded(program.child) && signalTo(program.child, 'SIGTERM')) await program.ended;
  };
  return { ...program, stop };
}

/** Waits until a program is ready, however busy the machine is. @throws If it ends before. */
async function untilListening(program: Running, port: number): Promise<void> {
  while (!(await isListening(port))) {
    if (hasEnded(program.child)) throw new Error(`Ended before it was ready. ${program.stdout()}${program.stderr()}`);
    await wait(50);
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, 'localhost', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}

/** What the lines in README.md take from their surroundings. */
const SURROUNDINGS = `import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { Strategy, apiClient, oauthErrors, requireAuthorization } from 'passport-oauth-app';
const { AUTH_URL: authUrl, BASE_URL: baseUrl, CLIENT_ID: clientID, CLIENT_SECRET: clientSecret } = process.env;
const options = { authUrl, baseUrl, clientID, clientSecret, callbackURL: 'http://localhost:3000/callback', scope: ['project', 'tm'] };
passport.serializeUser((user, done) => done(null, user));
passport.deserializeUser((user, done) => done(null, user));
const app = express().use(session({ secret: 'only for tests', resave: false, saveUninitialized: false }));
`;

/** Returns an application of the lines in README.md, which listens on a port. */
export function readmeApplication(port: number): string {
  const lines = snippetsOf('README.md').find(({ language }) => language === 'js')?.text ?? '';
  return `${SURROUNDINGS}${lines}`.replaceAll('3000', String(port));
}
