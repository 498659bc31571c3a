/** The part of Lua's C interface that the simulation uses. */
declare module 'fengari' {
  interface LuaState {
    readonly brand: 'lua_State';
  }
  type LuaString = Uint8Array;
  export function to_luastring(text: string): LuaString;
  export const lauxlib: {
    luaL_newstate(): LuaState;
    luaL_loadstring(state: LuaState, script: LuaString): number;
    luaL_ref(state: LuaState, index: number): number;
    luaL_error(state: LuaState, message: LuaString): never;
  };
  export const lualib: { luaL_openlibs(state: LuaState): void };
  export const lua: {
    readonly LUA_OK: number;
    readonly LUA_REGISTRYINDEX: number;
    readonly LUA_TNUMBER: number;
    readonly LUA_TSTRING: number;
    readonly LUA_TBOOLEAN: number;
    lua_createtable(state: LuaState, list: number, fields: number): void;
    lua_gettop(state: LuaState): number;
    lua_newtable(state: LuaState): void;
    lua_pcall(state: LuaState, parameters: number, results: number, handler: number): number;
    lua_pushboolean(state: LuaState, value: boolean): void;
    lua_pushcfunction(state: LuaState, run: (state: LuaState) => number): void;
    lua_pushlightuserdata(state: LuaState, value: unknown): void;
    lua_pushnumber(state: LuaState, value: number): void;
    lua_pushstring(state: LuaState, text: LuaString): void;
    lua_rawgeti(state: LuaState, index: number, key: number): void;
    lua_rawseti(state: LuaState, index: number, key: number): void;
    lua_setfield(state: LuaState, index: number, key: LuaString): void;
    lua_setglobal(state: LuaState, name: LuaString): void;
    lua_settop(state: LuaState, index: number): void;
    lua_toboolean(state: LuaState, index: number): boolean;
    lua_tojsstring(state: LuaState, index: number): string | null;
    lua_tonumber(state: LuaState, index: number): number;
    lua_type(state: LuaState, index: number): number;
  };
}
