import { LuaScripts } from './lua.js';
import { EPOCH } from './machine.js';
import type { Row } from './store.js';

/** A reply of Redis: a bulk string, an integer, nil, or a list of them. */
export type Reply = string | number | null | readonly Reply[];

/** One script host for all servers: compiled scripts keep nothing of a server. */
const SCRIPTS = new LuaScripts();

/**
 * Redis, as far as the package's scripts ask for it: strings that expire, and scripts that run atomically. A command that it does
 * not know is an error, so that a new one is noticed.
 */
export class RedisServer {
  readonly #rows = new Map<string, Row>();
  readonly #now: () => number;

  /** @param now Milliseconds of simulated time. */
  constructor(now: () => number) {
    this.#now = now;
  }

  read(key: string): Row | undefined {
    const row = this.#rows.get(key);
    return row && row.until > this.#now() ? row : undefined;
  }

  write(key: string, row: Row | undefined): void {
    if (row === undefined) this.#rows.delete(key);
    else this.#rows.set(key, row);
  }

  /** Performs one command. */
  execute([name = '', ...args]: readonly string[]): Reply {
    if (name.toUpperCase() !== 'EVAL') return this.#call(name, args);
    const [script = '', count = '0', ...rest] = args;
    const keys = rest.slice(0, Number(count));
    return SCRIPTS.run(script, keys, rest.slice(keys.length), (command, parameters) => this.#call(command, parameters));
  }

  #call(name: string, args: readonly string[]): Reply {
    const [key = '', value = '', ...options] = args;
    switch (name.toUpperCase()) {
      case 'GET':
        return this.read(key)?.value ?? null;
      case 'SET':
        return this.#set(key, value, options);
      case 'DEL':
        return args.filter((each) => {
          const isThere = this.read(each) !== undefined;
          this.#rows.delete(each);
          return isThere;
        }).length;
      // All at once: it has few keys.
      case 'SCAN':
        return ['0', [...this.#rows.keys()].filter((each) => this.read(each))];
      // Nobody listens.
      case 'PUBLISH':
        return 0;
      case 'PTTL': {
        const row = this.read(key);
        return row ? row.until - this.#now() : -2;
      }
      case 'TIME': {
        const ms = EPOCH + this.#now();
        // Numbers, not texts: Redis' Lua reckons in doubles, this interpreter with integers of 32 bits where it can.
        return [Math.floor(ms / 1000), Math.floor((ms % 1000) * 1000)];
      }
      default:
        throw new Error(`ERR unknown command '${name}'`);
    }
  }

  #set(key: string, value: string, options: readonly string[]): Reply {
    const words = options.map((option) => option.toUpperCase());
    const ms = Number(options[words.indexOf('PX') + 1]);
    const unknown = words.filter((word) => word !== 'NX' && word !== 'PX' && word !== String(ms));
    if (unknown.length > 0 || !(ms > 0)) throw new Error(`ERR syntax error: SET with ${options.join(' ')}`);
    if (words.includes('NX') && this.read(key)) return null;
    this.#rows.set(key, { value, until: this.#now() + ms });
    return 'OK';
  }
}

/** Returns what a command does, as the observer calls it. `take`, `check` and `release` are those of a lease. */
export function operationOf([name = '', script = '', , key = '']: readonly string[]): string {
  if (name.toUpperCase() !== 'EVAL') return name.toLowerCase();
  if (/(^|:)lock /.test(key)) return /'set'/i.test(script) ? 'take' : /'del'/i.test(script) ? 'release' : 'check';
  if (/'del'/i.test(script)) return 'delete';
  if (!/'set'/i.test(script)) return 'get';
  return /cjson/.test(script) ? 'update' : 'set';
}
