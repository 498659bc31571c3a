// These packages have no types of their own.
declare module 'koa' {
  interface Context {
    readonly path: string;
    status: number;
    body: unknown;
  }
  export default class Koa {
    keys: string[];
    silent: boolean;
    use(middleware: unknown): this;
    listen(port: number, host: string): import('node:http').Server;
  }
  export { Context };
}

declare module 'koa-passport' {
  interface KoaPassport {
    use(name: string, strategy: never): void;
    initialize(): unknown;
    session(): unknown;
    authenticate(name: string): unknown;
  }
  const passport: { KoaPassport: new () => KoaPassport };
  export default passport;
}
