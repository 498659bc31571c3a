/** The command line, parsed. */
export type Command =
  | { readonly kind: 'run' | 'tour' | 'help' }
  | { readonly kind: 'mistake'; readonly mistake: string };

/** The text of `--help`. */
export const usage = `Usage: npm start [-- OPTION]

Runs the example application of passport-oauth-app, with an emulated service inside.

  --tour   needs no browser: walks through login, refresh, enterprise host, decline
           and logout by itself, and checks each step; exits with 0 if all were right
  --help   this text

Environment:
  PORT            the port to listen on (3000, or a free one if that is taken)
  AUTH_URL, BASE_URL, CLIENT_ID, CLIENT_SECRET, CALLBACK_URL, SCOPE, SESSION_SECRET
                  all of them together: use this real service instead
  ENTERPRISE_BASE_URL   its API for organizations, such as https://{domain}.api.example.com
  PKCE=1          it takes a code challenge`;

/** Parses the arguments that stand after `npm start --`. */
export function readCommandLine(args: readonly string[]): Command {
  const unknown = args.find((arg) => arg !== '--tour' && arg !== '--help');
  if (unknown !== undefined) return { kind: 'mistake', mistake: `Unknown option: ${unknown}` };
  if (args.includes('--help')) return { kind: 'help' };
  return { kind: args.includes('--tour') ? 'tour' : 'run' };
}
