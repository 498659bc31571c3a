import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Browser } from '../support/browser.js';

/** A program that runs until it is stopped. */
export interface Running {
  stdout(): string;
  stderr(): string;
  stop(): Promise<void>;
}

/** One that may end by itself. */
interface Program extends Running {
  hasEnded(): boolean;
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
  await until(program, () => program.stdout().includes('Ctrl-C'));
  return program;
}

/** Starts this Node with arguments in a folder, and waits until it listens on a port of localhost. */
export async function startFile(folder: string, args: readonly string[], port: number): Promise<Running> {
  const program = start(folder, [process.execPath, ...args], {});
  await until(program, () => isListening(port));
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
  await until(application, () => isListening(port));
  return { ...application, logIn: (path) => logInAt(`http://localhost:${port}`, path) };
}

async function logInAt(origin: string, path: string): Promise<string> {
  const browser = new Browser();
  const { headers } = await browser.settle(await browser.visit(`${origin}${path}`));
  const consent = new URL(headers.get('location') ?? '');
  await browser.visit(consent.href);
  const form = new URLSearchParams(consent.search);
  form.set('user', '1');
  form.set('decision', 'approve');
  const decided = await browser.visit(`${consent.origin}${consent.pathname}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: form.toString(),
  });
  const page = await browser.visit(decided.headers.get('location') ?? '');
  return (await browser.settle(page)).text;
}

const running = new Set<ChildProcess>();

// A test run that is broken off leaves nothing behind that still runs.
process.once('exit', () => {
  for (const child of running) end(child, 'SIGKILL');
});

function start(cwd: string, [program = '', ...args]: readonly string[], variables: NodeJS.ProcessEnv): Program {
  // Variables that Vitest sets in its workers: a terminal does not have them.
  const { NODE_ENV: _testing, BASE_URL: _base, ...environment } = process.env;
  // A group of its own: npx passes no signal on to what it runs.
  const child = spawn(program, args, { cwd, env: { ...environment, ...variables }, detached: true });
  running.add(child);
  const closed = new Promise<void>((resolve) => {
    child.once('close', () => {
      running.delete(child);
      resolve();
    });
  });
  const text = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (chunk: string) => {
      text[stream] += chunk;
    });
  }
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const stop = async (): Promise<void> => {
    if (hasEnded() || !end(child, 'SIGTERM')) return;
    await closed;
  };
  return { stdout: () => text.stdout, stderr: () => text.stderr, hasEnded, stop };
}

/** Sends a signal to the group of a process. Returns false if there is none any more. */
function end({ pid }: ChildProcess, signal: NodeJS.Signals): boolean {
  try {
    return pid !== undefined && process.kill(-pid, signal);
  } catch {
    return false;
  }
}

/** Waits until a program is ready, however busy the machine is. @throws If it ends before. */
async function until(program: Program, isReady: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isReady())) {
    if (program.hasEnded()) throw new Error(`Ended before it was ready. ${program.stdout()}${program.stderr()}`);
    await wait(50);
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, 'localhost', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}
