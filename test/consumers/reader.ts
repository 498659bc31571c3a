import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from '../support/browser.js';
import { FollowingBrowser } from '../support/following-browser.js';
import { freePort } from '../support/service-process.js';
import { type Snippet, snippetsOf } from './snippets.js';
import { type Running, startCommand, startFile } from './stranger.js';

const run = promisify(execFile);

/** How a reader of the tutorial does what cannot be done as it is written. */
export interface ReaderOptions {
  /** An empty folder. */
  readonly folder: string;
  /** Runs `npm install` with these packages in a folder. */
  readonly install: (folder: string, packages: readonly string[]) => Promise<void>;
}

/**
 * Does what a tutorial says: saves the files under the names that it gives them, and runs its commands in their order.
 *
 * Only ports differ: 3000 and 4000 become free ones, in files and commands alike. `mkdir` and `cd` count from the
 * first folder: only new terminals are told to go anywhere.
 */
export class Reader {
  readonly browser = new FollowingBrowser();
  readonly #snippets: readonly Snippet[];
  readonly #options: ReaderOptions;
  readonly #ports: Readonly<Record<string, number>>;
  readonly #programs = new Map<'emulator' | 'application', Running>();
  #folder: string;

  private constructor(document: string, options: ReaderOptions, ports: Readonly<Record<string, number>>) {
    this.#snippets = snippetsOf(document);
    this.#options = options;
    this.#ports = ports;
    this.#folder = options.folder;
  }

  static async of(document: string, options: ReaderOptions): Promise<Reader> {
    return new Reader(document, options, { 3000: await freePort(), 4000: await freePort() });
  }

  /** Does one section of the document, and returns its blocks. */
  async follow(heading: string): Promise<readonly Snippet[]> {
    const snippets = this.#snippets.filter((snippet) => snippet.heading === heading);
    if (snippets.length === 0) throw new Error(`The document has no code below a heading ${heading}`);
    for (const { language, file, text } of snippets) {
      if (language === 'sh') for (const line of text.trim().split('\n')) await this.#type(line);
      else await this.#save(file, this.withPorts(text));
    }
    return snippets;
  }

  /** A text of the document, with the ports that are used in place of its own. */
  withPorts(text: string): string {
    return text.replaceAll(/\b[34]000\b/g, (port) => String(this.#ports[port]));
  }

  /** Opens a page of the application, and follows redirects as far as the consent page. */
  async open(path: string): Promise<Page> {
    const page = await this.browser.visit(this.withPorts(`http://localhost:3000${path}`));
    return this.browser.settle(page);
  }

  /** Text that a program has printed. */
  printed(program: 'emulator' | 'application'): { readonly stdout: string; readonly stderr: string } {
    const running = this.#programs.get(program);
    return { stdout: running?.stdout() ?? '', stderr: running?.stderr() ?? '' };
  }

  async close(): Promise<void> {
    for (const program of this.#programs.values()) await program.stop();
  }

  /** Saves a file. A block that says which file it is added to goes before the last statement there, which listens. */
  async #save(file: string, text: string): Promise<void> {
    const added = /^\/\/ Add to (\S+)\n/.exec(text)?.[1];
    const path = join(this.#folder, added ?? file);
    if (added === undefined) return await writeFile(path, text);
    const before = await readFile(path, 'utf8');
    const end = before.lastIndexOf('app.listen(');
    await writeFile(path, `${before.slice(0, end)}${text}${before.slice(end)}`);
  }

  async #type(line: string): Promise<void> {
    const [command = '', ...args] = line.split(' ');
    if (command === 'mkdir') await mkdir(join(this.#options.folder, args[0] ?? ''));
    else if (command === 'cd') this.#folder = join(this.#options.folder, args[0] ?? '');
    else if (command === 'npm' && args[0] === 'install') await this.#options.install(this.#folder, args.slice(1));
    else if (command === 'npm') await run('npm', args, { cwd: this.#folder });
    else if (line.startsWith('npx passport-oauth-app emulator')) await this.#startEmulator(line);
    else if (command === 'node') await this.#startApplication(args);
    else throw new Error(`A reader does not know what this does: ${line}`);
  }

  async #startEmulator(line: string): Promise<void> {
    await this.#programs.get('emulator')?.stop();
    const flags = this.withPorts('--port 4000 --redirect-url http://localhost:3000/callback');
    const command = [...line.split(' '), ...flags.split(' ')];
    this.#programs.set('emulator', await startCommand(this.#folder, command));
  }

  async #startApplication(args: readonly string[]): Promise<void> {
    await this.#programs.get('application')?.stop();
    this.#programs.set('application', await startFile(this.#folder, args, Number(this.withPorts('3000'))));
  }
}
