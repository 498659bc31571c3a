import { lauxlib, lua, lualib, to_luastring } from 'fengari';
import type { Reply } from './redis-server.js';

/** Runs a command of the server for a script. */
export type RedisCall = (name: string, args: readonly string[]) => Reply;

/** Runs Lua scripts as Redis does: `KEYS`, `ARGV`, `redis.call`, `redis.pcall` and `cjson.decode`. Each text is compiled once. */
export class LuaScripts {
  readonly #state = lauxlib.luaL_newstate();
  /** References of compiled scripts. */
  readonly #compiled = new Map<string, number>();
  #call: RedisCall = () => null;

  constructor() {
    lualib.luaL_openlibs(this.#state);
    // A command that fails ends a script here, whichever of the two has sent it.
    this.#library('redis', { call: () => this.#redisCall(), pcall: () => this.#redisCall() });
    this.#library('cjson', { decode: () => this.#decode() });
  }

  /** Runs a script. @throws Error as Redis would reply one */
  run(script: string, keys: readonly string[], args: readonly string[], call: RedisCall): string | number | null {
    const state = this.#state;
    this.#call = call;
    this.#list('KEYS', keys);
    this.#list('ARGV', args);
    lua.lua_rawgeti(state, lua.LUA_REGISTRYINDEX, this.#compile(script));
    if (lua.lua_pcall(state, 0, 1, 0) !== lua.LUA_OK) throw new Error(`ERR ${this.#popText()}`);
    return this.#popReply();
  }

  #compile(script: string): number {
    const known = this.#compiled.get(script);
    if (known !== undefined) return known;
    const state = this.#state;
    if (lauxlib.luaL_loadstring(state, to_luastring(script)) !== lua.LUA_OK)
      throw new Error(`ERR Error compiling script: ${this.#popText()}`);
    const reference = lauxlib.luaL_ref(state, lua.LUA_REGISTRYINDEX);
    this.#compiled.set(script, reference);
    return reference;
  }

  #library(name: string, functions: Readonly<Record<string, () => number>>): void {
    const state = this.#state;
    lua.lua_newtable(state);
    for (const [field, run] of Object.entries(functions)) {
      lua.lua_pushcfunction(state, run);
      lua.lua_setfield(state, -2, to_luastring(field));
    }
    lua.lua_setglobal(state, to_luastring(name));
  }

  #list(name: string, entries: readonly string[]): void {
    const state = this.#state;
    lua.lua_createtable(state, entries.length, 0);
    for (const [index, entry] of entries.entries()) {
      lua.lua_pushstring(state, to_luastring(entry));
      lua.lua_rawseti(state, -2, index + 1);
    }
    lua.lua_setglobal(state, to_luastring(name));
  }

  /** `redis.call`: nil becomes `false`, as a script gets it. */
  #redisCall(): number {
    const state = this.#state;
    const args = Array.from(
      { length: lua.lua_gettop(state) },
      (_, index) => lua.lua_tojsstring(state, index + 1) ?? '',
    );
    const [name = '', ...rest] = args;
    const reply = this.#call(name, rest);
    if (reply === null) lua.lua_pushboolean(state, false);
    else this.#push(reply);
    return 1;
  }

  #decode(): number {
    const state = this.#state;
    let value: unknown;
    try {
      value = JSON.parse(lua.lua_tojsstring(state, 1) ?? '');
    } catch {
      return lauxlib.luaL_error(state, to_luastring('Expected value but found invalid token'));
    }
    this.#push(value);
    return 1;
  }

  #push(value: unknown): void {
    const state = this.#state;
    if (typeof value === 'string') lua.lua_pushstring(state, to_luastring(value));
    // Numbers of Redis' Lua are doubles.
    else if (typeof value === 'number') lua.lua_pushnumber(state, value);
    else if (typeof value === 'boolean') lua.lua_pushboolean(state, value);
    else if (typeof value !== 'object' || value === null) lua.lua_pushlightuserdata(state, null);
    else {
      lua.lua_newtable(state);
      for (const [key, entry] of Object.entries(value)) {
        this.#push(entry);
        if (Array.isArray(value)) lua.lua_rawseti(state, -2, Number(key) + 1);
        else lua.lua_setfield(state, -2, to_luastring(key));
      }
    }
  }

  /** Takes the result of a script, as Redis converts it. */
  #popReply(): string | number | null {
    const state = this.#state;
    const type = lua.lua_type(state, -1);
    const isTrue = type === lua.LUA_TBOOLEAN && lua.lua_toboolean(state, -1);
    const reply =
      type === lua.LUA_TNUMBER
        ? Math.trunc(lua.lua_tonumber(state, -1))
        : type === lua.LUA_TSTRING
          ? lua.lua_tojsstring(state, -1)
          : isTrue
            ? 1
            : null;
    lua.lua_settop(state, 0);
    return reply;
  }

  #popText(): string {
    const text = lua.lua_tojsstring(this.#state, -1) ?? 'unknown error';
    lua.lua_settop(this.#state, 0);
    return text;
  }
}
