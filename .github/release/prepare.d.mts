/** Types of what the tests take from prepare.mjs. */
export declare function withAbsoluteLinks(text: string, repository: string, tag: string, server?: string): string;
export declare function withLinksToUnpublished(
  text: string,
  manifest: { readonly files: readonly string[] },
  repository: string,
  tag: string,
  server?: string,
): string;
