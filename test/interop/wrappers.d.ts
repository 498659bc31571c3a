// These packages have no types of their own.
declare module 'compression' {
  export default function compression(options?: object): never;
}
declare module 'compression-1.7' {
  export default function compression(options?: object): never;
}
declare module 'compression-1.8.1' {
  export default function compression(options?: object): never;
}
declare module 'connect-timeout' {
  export default function timeout(time: string): never;
}
