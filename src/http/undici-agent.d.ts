/** undici's Agent alone: see `createPool` of `http-client.ts`. */
declare module 'undici/lib/dispatcher/agent.js' {
  export { Agent as default } from 'undici';
}
