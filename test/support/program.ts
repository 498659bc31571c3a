import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';

/** How a program has ended, and all that it has printed. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program that runs in a process of its own. */
export interface Program {
  readonly child: ChildProcess;
  /** Resolves once it has ended and its output is complete. */
  readonly ended: Promise<Ended>;
  /** What it has printed so far. */
  stdout(): string;
  stderr(): string;
  /** Resolves to what it has printed on stdout once a whole line of its output matches. @throws If it ends before */
  says(line: RegExp): Promise<string>;
}

/** Children that run, and whether each has a process group of its own. */
const running = new Map<ChildProcess, boolean>();

// A test run that is broken off leaves nothing behind that still runs.
process.once('exit', () => {
  for (const child of running.keys()) signalTo(child, 'SIGKILL');
});

/** Starts a program. With the option `detached`, it has a process group of its own, which gets its signals as a whole. */
export function startProgram(file: string, args: readonly string[], options: SpawnOptions = {}): Program {
  const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  running.set(child, options.detached === true);
  const printed = { stdout: '', stderr: '' };
  const changes = new EventEmitter().setMaxListeners(0);
  const print = (stream: keyof typeof printed, text: string) => {
    printed[stream] += text;
    changes.emit('change');
  };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]?.setEncoding('utf8').on('data', (text: string) => print(stream, text));
  }
  child.once('error', ({ message }) => print('stderr', message)).once('exit', () => changes.emit('change'));
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve({ code, signal, ...printed });
    });
  });
  const says = async (line: RegExp): Promise<string> => {
    const lines = () => Object.values(printed).flatMap((text) => text.split('\n').slice(0, -1));
    while (!lines().some((each) => line.test(each))) {
      if (hasEnded(child)) throw new Error(`${file} has ended.\n${printed.stdout}${printed.stderr}`);
      await once(changes, 'change');
    }
    return printed.stdout;
  };
  return { child, ended, stdout: () => printed.stdout, stderr: () => printed.stderr, says };
}

/** Whether a process has ended, or could not be started. */
export function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

/** Sends a signal to a process, or to its group. Returns false if there is none any more. */
export function signalTo(child: ChildProcess, signal: NodeJS.Signals): boolean {
  if (!running.get(child)) return child.kill(signal);
  try {
    return child.pid !== undefined && process.kill(-child.pid, signal);
  } catch {
    return false;
  }
}
